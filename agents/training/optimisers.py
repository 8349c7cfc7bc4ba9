"""What changes the weights, and what it keeps from update to update."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from . import soap


class Kind(NamedTuple):
    """A kind of optimiser.

    Attributes:
        make: from parameters and `lr`.
        empty: the tensors that it keeps for a parameter besides `step`, by torch's names, before the first update.
    """

    make: Callable[..., Optimizer]
    empty: Callable[[Tensor], dict[str, Tensor]]


def _adam(parameter: Tensor) -> dict[str, Tensor]:
    return {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}


OPTIMISERS = {"adam": Kind(Adam, _adam), "soap": Kind(soap.SOAP, soap.empty)}
"""Name -> kind."""
