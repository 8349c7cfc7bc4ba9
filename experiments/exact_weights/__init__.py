"""Weights, written by hand, with which an `NCA` solves every maze exactly: `python -m experiments.exact_weights`."""
