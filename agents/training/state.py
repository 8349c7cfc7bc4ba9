"""The state of a training run between updates, and its way into a file and back."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from maze_nca_gym.files import validated_read

from ..policy import Policy
from ..tensor_files import CHECKSUM, Layouts, load_tensors, save_tensors
from .config import TrainingConfig
from .evolving_levels import EvolvingLevels
from .optimisers import OPTIMISERS
from .pool import StatePool

KIND, CALLED = "maze_nca_gym checkpoint 2", "checkpoint"
POPULATION = "population"
"""Prefix of the names of an evolution's tensors."""


@dataclass(eq=False)
class TrainingState:
    """A run after `update` updates.

    Attributes:
        config: the configuration of the run.
        model: the model that is trained, on the device.
        optimiser: its optimiser, of the configuration's kind.
        average: the moving average of the weights, or None if the configuration has none.
        pools: inner size -> levels with their states.
        evolution: the levels of a configuration whose levels evolve, else None.
        update: updates made.
        seconds: the time that they took, over all sessions.
        losses: the losses of the updates since the last line of metrics, so that the next line is the same in a later
            session.
        unread: the (2,) losses and norms of gradients of the updates after those, still on the device.
        line_seconds: the time that these took.
    """

    config: TrainingConfig
    model: Policy
    optimiser: Optimizer
    average: Policy | None
    pools: dict[int, StatePool] = field(default_factory=dict)
    evolution: EvolvingLevels | None = None
    update: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    unread: list[Tensor] = field(default_factory=list)
    line_seconds: float = 0.0

    @classmethod
    def start(cls, config: TrainingConfig, device: torch.device) -> TrainingState:
        """Return a run before its first update.

        Raises:
            ValueError: its levels are to evolve, and nearly all of their size are held out.
        """
        state = cls._without_levels(config, device)
        state.evolution = EvolvingLevels.start(config) if config.evolve else None
        return state

    @classmethod
    def _without_levels(cls, config: TrainingConfig, device: torch.device) -> TrainingState:
        model = config.make_model().to(device)
        average = copy.deepcopy(model) if config.optimiser.ema_decay else None
        if config.compile:
            model.compile()
        optimiser = OPTIMISERS[config.optimiser.optimiser].make(model.parameters(), lr=config.optimiser.learning_rate)
        return cls(config, model, optimiser, average)

    @property
    def best_model(self) -> Policy:
        """The model to save: the average, if there is one."""
        return self.model if self.average is None else self.average

    def save(self, path: Path) -> None:
        """Write a checkpoint, atomically.

        Raises:
            ValueError: weights that are not finite.
            OSError: it could not be written; an older one is as it was.
        """
        description = {
            "config": self.config.to_json(),
            "update": self.update,
            "seconds": self.seconds,
            "losses": self.losses,
            "line_seconds": self.line_seconds,
            "pools": sorted(self.pools),
            "evolution": None if self.evolution is None else self.evolution.description(),
        }
        save_tensors(path, KIND, description, self._tensors())

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"model.{key}": tensor for key, tensor in self.model.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{key}": tensor for key, tensor in self.average.state_dict().items()}
        for key, parameter in self.model.named_parameters() if self.update else ():
            kept = self.optimiser.state.get(parameter, {})  # nothing where there was no gradient
            empty = OPTIMISERS[self.config.optimiser.optimiser].empty(parameter)
            tensors |= {f"{name}.{key}": kept.get(name, tensor) for name, tensor in empty.items()}
        for size, pool in self.pools.items():
            tensors |= {f"pool {size}.{key}": tensor for key, tensor in pool.tensors().items()}
        if self.evolution is not None:
            tensors |= {f"{POPULATION}.{key}": tensor for key, tensor in self.evolution.tensors().items()}
        return tensors

    @classmethod
    def load(cls, path: Path, device: torch.device) -> TrainingState:
        """Read a checkpoint, which its digest guards: what `save` wrote is what is read.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no checkpoint, or damaged; the message says what is wrong.
        """
        description, tensors = load_tensors(path, KIND, CALLED, _check)
        with validated_read(path, f"is not a readable {CALLED}"):
            return cls._from_tensors(description, tensors, device)

    @classmethod
    def _from_tensors(
        cls, description: Mapping[str, Any], tensors: dict[str, Tensor], device: torch.device
    ) -> TrainingState:
        """Return the run of which these were taken."""
        state = cls._without_levels(TrainingConfig.from_json(description["config"]), device)
        state.update, state.seconds = description["update"], description["seconds"]
        state.losses, state.line_seconds = description["losses"], description["line_seconds"]
        state.model.load_state_dict(_under("model", tensors))
        if state.average is not None:
            state.average.load_state_dict(_under("average", tensors))
        state._load_optimiser(tensors)
        for size in description["pools"]:
            levels = _under(f"pool {size}", tensors)
            state.pools[size] = StatePool.from_tensors(levels, state.config, device)
        if state.config.evolve:
            levels = _under(POPULATION, tensors)
            state.evolution = EvolvingLevels.from_tensors(description["evolution"], levels)
        return state

    def _load_optimiser(self, tensors: dict[str, Tensor]) -> None:
        if not self.update:
            return
        on_device = self.optimiser.defaults.get("capturable", False)
        for key, parameter in self.model.named_parameters():
            names = OPTIMISERS[self.config.optimiser.optimiser].empty(parameter)
            kept = {name: tensors[f"{name}.{key}"].to(parameter, copy=True) for name in names}
            step = torch.tensor(float(self.update), device=parameter.device if on_device else None)
            self.optimiser.state[parameter] = {"step": step, **kept}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(f"{prefix}."): value for key, value in tensors.items() if key.startswith(f"{prefix}.")}


def _check(description: Any, layouts: Layouts) -> None:
    """Check that there is a digest to compare with."""
    if CHECKSUM not in description:
        raise ValueError(f"it has no {CHECKSUM}")
