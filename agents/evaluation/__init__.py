"""Measurements of policies: metrics with intervals on named test sets, stability, results and figures."""

DEFAULT_N = 128
"""Default number of levels of a test set that are measured."""
