"""Training policies by supervised rollouts (paper, section "Experimental setup").

Importing this package does not load torch. Making a configuration or a run loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maze_nca_gym.support.doors import lazily

from .config import TrainingConfig, changed, register_preset
from .presets import PRESETS

if TYPE_CHECKING:
    from .loop import LEVELS, Report, run_updates
    from .processes import Workers, find_workers
    from .state import MODEL, TrainingState
    from .updates import Diverged

__all__ = [
    "LEVELS",
    "MODEL",
    "PRESETS",
    "Diverged",
    "Report",
    "TrainingConfig",
    "TrainingState",
    "Workers",
    "changed",
    "find_workers",
    "register_preset",
    "run_updates",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__)
