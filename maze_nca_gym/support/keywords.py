"""Types of the `**options` of public functions: mappings whose names type checkers read from `keywords.pyi`."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

__all__ = ["EvolveOptions", "GeneratorOptions", "HintOptions", "TrainOptions", "Unpack"]

TrainOptions = HintOptions = EvolveOptions = GeneratorOptions = dict[str, Any]
