"""How good a policy is: metrics with intervals on named test sets, stability, and their figures."""

DEFAULT_N = 128
"""Default number of levels of a test set that are measured."""
