"""Training policies by supervised rollouts (paper, section "Experimental setup")."""

from .config import PRESETS, TrainingConfig, changed, preset
from .loop import CHECKPOINT, LEVELS, MODEL, Intervals, train
from .processes import Workers, find_workers
from .report import Line, NullReport, Report
from .reports import RunReport
from .state import TrainingState
from .updates import Diverged

__all__ = [
    "CHECKPOINT",
    "LEVELS",
    "MODEL",
    "PRESETS",
    "Diverged",
    "Intervals",
    "Line",
    "NullReport",
    "Report",
    "RunReport",
    "TrainingConfig",
    "TrainingState",
    "Workers",
    "changed",
    "find_workers",
    "preset",
    "train",
]
