"""Training policies by supervised rollouts (paper, section "Experimental setup")."""

from .config import PRESETS, TrainingConfig, changed, preset
from .loop import CHECKPOINT, LEVELS, MODEL, Rhythm, train
from .report import Line, Report, Silence
from .run_report import RunReport
from .state import TrainingState
from .updates import Diverged
from .workers import Workers, find_workers

__all__ = [
    "CHECKPOINT",
    "LEVELS",
    "MODEL",
    "PRESETS",
    "Diverged",
    "Line",
    "Report",
    "Rhythm",
    "RunReport",
    "Silence",
    "TrainingConfig",
    "TrainingState",
    "Workers",
    "changed",
    "find_workers",
    "preset",
    "train",
]
