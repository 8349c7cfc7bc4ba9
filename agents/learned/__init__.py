"""Learned policies: models whose weights come from training, or are written into them by hand."""

from .nca import NCA
from .surrogate import LeakyGradient, SmoothGradient

__all__ = ["NCA", "LeakyGradient", "SmoothGradient"]
