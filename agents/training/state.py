"""The state of a training run between updates, saved to and loaded from a checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from maze_nca_gym.mazes.population import LevelPopulation

from ..policies.policy import Policy
from ..rollouts.cuda_graphs import CudaGraphs
from ..runs import Line, RunFolder
from .config import TrainingConfig
from .data import LevelStream
from .evolving_levels import EvolvingLevels
from .optimisers import OPTIMISERS
from .pool import StatePool

MODEL = "model.safetensors"
"""File of a run with the trained model."""
POPULATION = "population"
"""Name of the part of a checkpoint that contains the tensors of the population."""


@dataclass(eq=False)
class TrainingState:
    """The state of a training run after `update` updates.

    Attributes:
        config: the configuration of the run.
        stream: the levels of the run.
        model: the model that is trained, on the device.
        optimiser: the optimiser of the model, as the configuration names it.
        average: a model with the moving average of the weights, or None if the configuration has no `ema_decay`.
        pools: inner size -> the pool of levels of this size with their states; empty without a pool.
        evolution: the population of levels, or None if levels do not evolve.
        compiled: whether `torch.compile` compiles the iterations, or "graphs" if rollouts are CUDA graphs.
        graphs: the engine that records rollouts as CUDA graphs and replays them, or None without CUDA graphs.
        update: number of updates so far.
        continued: the number of updates each time that the run had finished and was then continued with a new optimiser
            and schedule.
        seconds: the time of all updates so far, in all sessions.
        losses: the losses of the updates since the last line of metrics. They are part of a checkpoint, so that the
            next line is the same after the run resumes.
        unread: loss and gradient norm, (2,) float32, of each later update whose loss is still on the device and not yet
            in `losses`.
        line_seconds: the time of the updates since the last line of metrics.
    """

    config: TrainingConfig
    stream: LevelStream
    model: Policy
    optimiser: Optimizer
    average: Policy | None
    pools: dict[int, StatePool] = field(default_factory=dict)
    evolution: EvolvingLevels | None = None
    compiled: bool | Literal["graphs"] = False
    graphs: CudaGraphs | None = None
    update: int = 0
    continued: tuple[int, ...] = ()
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    unread: list[Tensor] = field(default_factory=list)
    line_seconds: float = 0.0

    @classmethod
    def start(cls, config: TrainingConfig, device: torch.device) -> TrainingState:
        """Return the state of a run before its first update: a model with initial weights on a device, a new optimiser
        and, if levels evolve, a new population.

        Raises:
            ValueError: the level set of the configuration cannot be used, or levels evolve and nearly all levels of
                their size are held out.
        """
        stream = LevelStream(config)
        evolution = EvolvingLevels.start(stream) if config.evolve else None
        model = config.make_model().to(device)
        model.guarantees = stream.guarantees
        average = copy.deepcopy(model) if config.ema_decay else None
        optimiser = OPTIMISERS[config.optimiser].make(model.parameters(), lr=config.learning_rate)
        return cls(config, stream, model, optimiser, average, evolution=evolution)

    def compile(self, how: Literal[True, "graphs"] = True) -> None:
        """Make further updates faster.

        Args:
            how: True compiles the iterations of the model with `torch.compile`. "graphs" records its rollouts as CUDA
                graphs.
        """
        if how == "graphs":
            self.graphs = CudaGraphs(self.model)
        else:
            self.model.compile()
        self.compiled = how

    def continue_run(self, policy: Policy, line: Line, continued: Sequence[int]) -> None:
        """Continue a finished run: start from its weights, with a new optimiser, schedule, pool and population.

        Args:
            policy: the policy of the finished run.
            line: the last line of metrics of the finished run.
            continued: the attribute `continued` of the finished run.
        """
        for model in (self.model, self.average):
            if model is not None:
                model.load_state_dict(policy.state_dict())
        self.update, self.seconds = int(line["update"]), line["seconds"]
        self.continued = (*continued, self.update)
        self.stream.all_sizes = True

    @property
    def begin(self) -> int:
        """The number of updates before the optimiser and the schedule began: 0, or the last number in `continued`."""
        return self.continued[-1] if self.continued else 0

    @property
    def best_model(self) -> Policy:
        """The model to validate and save: the moving average of the weights if there is an average, or else `model`."""
        return self.model if self.average is None else self.average

    def save(self, run: RunFolder) -> None:
        """Write the checkpoint of a run.

        Raises:
            ValueError: weights that are not finite.
            OSError: the file could not be written. An older checkpoint is unchanged.
        """
        names = ("update", "continued", "compiled", "seconds", "losses", "line_seconds")
        numbers: dict[str, Any] = {name: getattr(self, name) for name in names}
        numbers |= {"pools": sorted(self.pools), "evolution": None}
        if (levels := self.evolution) is not None:
            progress = {name: getattr(levels, name) for name in ("regret", "n_rounds", "seconds")}
            numbers["evolution"] = {**progress, "population": levels.population.to_arrays()[1]}
        run.save(numbers, self.tensors())

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return all tensors of the run by part and name, for a checkpoint."""
        parts: dict[str, dict[str, Tensor]] = {"model": self.model.state_dict()}
        if self.average is not None:
            parts["average"] = self.average.state_dict()
        for key, parameter in self.model.named_parameters() if self.update > self.begin else ():
            moments = self.optimiser.state.get(parameter, {})  # empty if the parameter has had no gradient
            for name, tensor in OPTIMISERS[self.config.optimiser].empty(parameter).items():
                parts.setdefault(name, {})[key] = moments.get(name, tensor)
        parts |= {f"pool {size}": pool.tensors() for size, pool in self.pools.items()}
        if self.evolution is not None:
            arrays, _ = self.evolution.population.to_arrays()
            parts[POPULATION] = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return parts

    def restore(self, run: RunFolder, device: torch.device) -> bool:
        """Load the state from the checkpoint of a run, if the run has a checkpoint, and return whether it has.

        Args:
            run: the folder of the run.
            device: the device of the model and its levels.

        Raises:
            ValueError: the file is not a checkpoint, is damaged, or has another configuration. The message contains
                advice.
        """
        checkpoint = run.load(MODEL)
        if checkpoint is None:
            return False
        numbers, parts = checkpoint
        if self.evolution is not None:
            arrays = {name: tensor.numpy() for name, tensor in parts[POPULATION].items()}
            population = LevelPopulation.from_arrays(arrays, numbers["evolution"].pop("population"))
            self.evolution = EvolvingLevels(population, **numbers["evolution"])
        for name in ("update", "seconds", "losses", "line_seconds"):
            setattr(self, name, numbers[name])
        self.continued = tuple(numbers["continued"])
        self.stream.all_sizes = bool(self.continued)
        if numbers["compiled"]:
            self.compile(numbers["compiled"])
        self.model.load_state_dict(parts["model"])
        if self.average is not None:
            self.average.load_state_dict(parts["average"])
        on_device = self.optimiser.defaults.get("capturable", False)
        for key, parameter in self.model.named_parameters() if self.update > self.begin else ():
            names = OPTIMISERS[self.config.optimiser].empty(parameter)
            moments = {name: parts[name][key].to(parameter, copy=True) for name in names}
            where = parameter.device if on_device else None
            step = torch.tensor(float(self.update - self.begin), dtype=torch.float32, device=where)
            self.optimiser.state[parameter] = {"step": step, **moments}
        for size in numbers["pools"]:
            self.pools[size] = StatePool.from_tensors(parts[f"pool {size}"], self.config, device)
        return True
