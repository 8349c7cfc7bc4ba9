"""The configuration of a training run.

Importing this module does not load torch. Making a configuration loads torch, because the options of the model are
checked against the model's class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from maze_nca_gym.mazes.guidance import Guidance
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.mutation import MUTATIONS, find_mutation
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.support.files import OTHER_VERSION
from maze_nca_gym.support.options import (
    Option,
    ReadOnly,
    check,
    check_known,
    check_options,
    options_of,
    options_of_each,
    to_json,
    with_defaults,
)
from maze_nca_gym.support.random_streams import torch_rng_for

from ..policies.registry import load
from .options import (
    MODEL_OPTIONS,
    LevelsOptions,
    LossOptions,
    ModelOptions,
    OptimiserOptions,
    PoolOptions,
    TrainingOptions,
    options_of_model,
)
from .presets import PRESETS

if TYPE_CHECKING:
    from ..policies.policy import Policy

FIRST_BIAS = 0.3
"""Usual initial bias of the channels in the loss, for NCAs that end each iteration with a ReLU.

The bias is positive because a ReLU has no gradient where its output is 0: a path of zeros everywhere could not change.
"""


@dataclass(frozen=True)
class TrainingConfig(
    BreedingSchedule,
    PopulationConfig,
    PoolOptions,
    OptimiserOptions,
    LossOptions,
    LevelsOptions,
    ModelOptions,
    TrainingOptions,
):
    """All options that determine the weights at the end of a training run. Each option is a field.

    The help lists the options below a heading for each base class, beginning with the last base class. This class
    replaces the defaults of the population by the values of the paper's training. `mutation_options` always contains
    every option of the mutation.

    Raises:
        ValueError: an invalid value, or options that contradict each other.
    """

    capacity: int = 10_000
    prioritisation: str = "uniform"
    top_k: int = 64
    staleness_weight: float = 0.0
    score: str = "loss"
    replay_probability: float = 1.0

    def __post_init__(self) -> None:
        check_options(self)
        self._check_model_options()
        self._check_levels()
        self._check_loss()
        self._check_pool()
        # from here on, the name of the task contains the order, because all code that solves a task receives only its
        # name
        task, mutation = find_task(self.task, self.order), find_mutation(self.mutation, self.mutation_options)
        vars(self).update(task=task.name, order=None, problem=task, mutation_options=ReadOnly(vars(mutation)))
        # rules between options of several groups
        is_own = self.nearest_solution and task.judge is not None
        check(not is_own, f"nearest_solution is for the tasks of this package, not {self.task}")
        check(not self.guidance or bool(task.guided), f"the task {self.task} brings no guidance: set guidance to 0")
        self._check_model()
        endless = "n_iterations must be a number unless there is a pool, which draws the iterations"
        check(self.pool_size > 0 or self.n_iterations is not None, endless)
        if self.pool_size:
            n, least = self.pool_size, self.batch_size
            check(n >= least, f"pool_size must be 0 or at least batch_size {least}, got {n}")
            check(self.n_levels is None, "a pool takes fresh levels: leave n_levels at None")
            check(not self.evolve, "levels that evolve cannot be in a pool: set pool_size to 0, or leave evolve out")
        if self.evolve:
            capacity, every = self.capacity, self.evolve_every
            check(capacity <= 2**20, f"capacity must be from 1 to {2**20:,}, got {capacity:,}")
            check(every >= 1, f"evolve_every must be at least 1, got {every}")
            several = "nearest_solution is not for levels that evolve: regret needs one solution"
            check(not self.nearest_solution, several)
            check(self.level_set is None, "levels that evolve start from generated ones: leave level_set at None")
            check(len(self.sizes) == 1, f"levels that evolve are of one size, got sizes {self.sizes}")
            n_most = f"n_levels must be at most the capacity of {capacity:,}, got {self.n_levels}"
            check(self.n_levels is None or self.n_levels <= capacity, n_most)
            task.check_one_channel("its levels cannot evolve")
        else:
            now = {**vars(self), **self.mutation_options}
            idle = [name for name, usual in WITHOUT_EVOLUTION.items() if name in now and now[name] != usual]
            check(not idle, f"without levels that evolve there is no {', '.join(idle)}: set evolve")
        # every family has a fresh level in each update
        n_families = len(self.families) if self.level_set is None else 1
        change = ", or change pool_fresh" if self.pool_size else ", or change replay_probability" * self.evolve
        lacking = f"an update needs a fresh level of each of {n_families} families, it has {self.n_fresh}"
        check(self.n_fresh >= n_families or not self.fresh_fraction, f"{lacking}: raise batch_size{change}")

    def _check_model(self) -> None:
        """Check the options of the model by making a model of one iteration on the meta device, without memory for its
        weights.

        Raises:
            ValueError: the constructor rejects an option, or the model does not fit the other options of the run.
        """
        from ..policies.weights import made_again
        from .model import begin_with

        model, sizes = self.model, self.sizes
        taken = sorted(options_of_model(model).keys() & _OF_RUN.keys())
        check(not taken, f"a model of class {model} takes {', '.join(taken)}, as the run does: choose other names")
        is_endless = self.model_arguments.get("n_iterations") is None
        # raises ValueError if the constructor rejects an option
        shapes = self.shapes() if is_endless else self.shapes(n_iterations=1)
        other_task = f"a model of class {model} is for the task {shapes.task}, not {self.task}: its constructor"
        check(shapes.task == self.task, f"{other_task} must take `task` and pass it on to that of Policy")
        made_again(shapes)  # raises ValueError if the trained model could not be loaded from its file
        if self.guidance:
            least = self.n_shown + 2 * bool(self.model_options.get("max_pool"))
            check(shapes.n_channels >= least, f"guidance needs at least {least} channels, got {shapes.n_channels}")
        is_start = self.start_from is not None or not self.model_options.get("n_frozen")
        check(is_start, "n_frozen counts channels of another network: set start_from")
        if self.start is not None:
            begin_with(shapes, self.start, str(self.start_from))  # raises ValueError if the network does not fit
        one_size = f"a model of class {model} is built for one size, got sizes {sizes}"
        check(shapes.size is None or len(sizes) == 1, one_size)
        if self.pool_size:
            steady = shapes.stationary_from
            # if only the last of n_iterations differs, compare without it, because a pool's rollouts end anywhere
            if steady and not is_endless:
                steady = self.shapes(n_iterations=None).stationary_from
            differ = f"a pool needs a model whose iterations are all the same; those of {model} depend on the step"
            check(steady == 0, f"{differ} (`stationary_from`), with n_iterations {self.n_iterations}")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the options, because a run of a sweep reads them before it imports the module of the task."""
        return {name: value for name, value in vars(self).items() if name not in ("problem", "start")}

    def __deepcopy__(self, memo: object) -> TrainingConfig:
        return self  # a configuration never changes, and a copy could find another task registered by the same name

    @cached_property
    def problem(self) -> Task:
        """The task of the run."""
        return find_task(self.task)

    @cached_property
    def start(self) -> Policy | None:
        """The network in `start_from`, which is read only once, or None without `start_from`."""
        return None if self.start_from is None else load(self.start_from)

    @property
    def fresh_fraction(self) -> float:
        """Fraction of the levels of an update that are new, 0 to 1. It is 1 unless there is a pool or a population,
        because those provide the other levels."""
        if self.pool_size:
            return self.pool_fresh
        return round(1 - self.replay_probability, 9) if self.evolve else 1.0  # 0.1, not 1 - 0.9

    @property
    def n_fresh(self) -> int:
        """Number of new levels in an update: `fresh_fraction` times the batch size, rounded."""
        return round(self.fresh_fraction * self.batch_size)

    @property
    def n_shown(self) -> int:
        """Number of leading channels that the loss reads: the channels of the answer and, if guidance has a weight, of
        the guidance."""
        return len(self.problem.answers) + len(self.guided)

    @property
    def guided(self) -> tuple[str, ...]:
        """Names of the guidance channels, which follow the channels of the answer; empty if guidance has no weight."""
        return self.problem.guided if self.guidance else ()

    @property
    def guide(self) -> Callable[[Tiles], Guidance] | None:
        """The task's function from (N, H, W) levels to their guidance, or None if guidance has no weight."""
        return self.problem.guide if self.guidance else None

    @property
    def model_arguments(self) -> dict[str, Any]:
        """Keyword arguments of the model's constructor, except the random generator."""
        from ..policies.weights import arguments_of, model_class

        # the constructor of a class for a single task may have no argument `task`; `_check_model` compares the tasks
        optional = {"task": self.task, "n_iterations": self.n_iterations, "size": self.sizes[0]}
        taken = arguments_of(model_class(self.model))
        counts = {"n_tiles": self.problem.n_tiles, "n_channels": self.n_channels}
        return {**self.model_options, **counts, **{name: optional[name] for name in optional if name in taken}}

    def shapes(self, **others: Any) -> Policy:
        """Return the model on the meta device, where weights have shapes but no memory.

        Args:
            others: arguments of the model's constructor, which replace the values of the run.

        Raises:
            ValueError: the class is unknown, or its constructor rejects an argument or lacks an argument that training
                passes.
        """
        from ..policies.weights import arguments_of, model_class, without_memory

        kind = model_class(self.model)
        lacking = [name for name in ("n_tiles", "n_channels", "generator") if name not in arguments_of(kind)]
        check(not lacking, f"the constructor of a model of class {self.model} must take {', '.join(lacking)}")
        try:
            return without_memory(kind, {**self.model_arguments, **others})
        except TypeError as error:
            raise ValueError(f"a model of class {self.model} cannot be made: {error}") from error

    def make_model(self) -> Policy:
        """Return the model with its initial weights, on the CPU.

        The caller sets the guarantees of the model from `LevelStream.guarantees`.

        Raises:
            ValueError: the network in `start_from` is unknown or does not fit the model.
        """
        import torch

        from ..policies.policy import program_of
        from ..policies.weights import constructed, model_class
        from .model import begin_with

        generator = torch_rng_for(self.seed, "weights")
        arguments = {**self.model_arguments, "generator": generator}
        model = cast(Any, constructed(model_class(self.model), arguments))
        if self.initialisation == "paper":
            model.draw_as_published(generator)
        if self.guided:
            model.channel_names = (*self.problem.answers, *self.guided, *model.channel_names[self.n_shown :])
        is_frozen = bool(self.model_options.get("n_frozen"))
        if self.start is not None:
            begin_with(model, self.start, str(self.start_from))
        program = program_of(model) if self.start_from is None or is_frozen else None
        if program is not None and program.unbounded is None and self.initialisation == "usual":
            with torch.no_grad():
                (model.biases[0] if is_frozen else program.bias)[: self.n_shown] = FIRST_BIAS
        return cast("Policy", model)

    @property
    def values(self) -> dict[str, Any]:
        """The values of all options by name: options of the run, of its model and of its mutation."""
        return {**{name: getattr(self, name) for name in _FIELDS}, **self.model_options, **self.mutation_options}

    def to_json(self) -> dict[str, Any]:
        """Return the options by name as a JSON-serialisable dict, which `from_json` reads back."""
        return cast(dict[str, Any], to_json({**_UNUSED, **self.values}))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the configuration with these values, which `to_json` returned.

        A missing option gets its default, so that options can be added to this class without rewriting every file.

        Raises:
            ValueError: an unknown option, or an invalid value.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"a configuration must be an object with a value for every field, got {values!r}")
        of_model = options_of_model(values.get("model", cls.model))
        check_known(values, {*OPTIONS, *of_model}, "a configuration", OTHER_VERSION)
        return _configured({}, values)


FURTHER = ("model_options", "mutation_options")
"""Fields that are mappings of further options. In `changed`, on the command line and in files, each of the further
options stands under its own name."""
_OF_MUTATIONS = options_of_each({name: options_of(mutation) for name, mutation in MUTATIONS.items()})
_FIELDS = {name: option for name, option in options_of(TrainingConfig).items() if name not in FURTHER}
_OF_RUN = {**_FIELDS, **_OF_MUTATIONS}
_FIRST = {name: option for name, option in _OF_RUN.items() if option.group in (TrainingOptions, ModelOptions)}
OPTIONS = with_defaults({**_FIRST, **MODEL_OPTIONS, **_OF_RUN}, {})
"""All options by name, except the options of users' own models."""
_UNUSED = {name: OPTIONS[name].default for name in (*MODEL_OPTIONS, *_OF_MUTATIONS)}
"""Values that files contain for the options of other models and mutations, which the run does not use."""
_EVOLUTION = (PopulationConfig, BreedingSchedule, *MUTATIONS.values())
WITHOUT_EVOLUTION = {name: option.default for name, option in OPTIONS.items() if option.group in _EVOLUTION}
WITHOUT_EVOLUTION["evolve_absolute"] = False
"""Values of the options that have no effect while no levels evolve."""


def options_of_run(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of a run and of its model by name, with the values of the preset as defaults.

    Args:
        given: the options that the user gives. Only `preset` and `model` are read.

    Raises:
        ValueError: an unknown preset.
    """
    usual = PRESETS.find(given.get("preset", "fast"))
    own = options_of_model({**usual, **given}.get("model", TrainingConfig.model))
    return with_defaults({**OPTIONS, **{name: own[name] for name in own if name not in _OF_RUN}}, usual)


def changed(start: str | TrainingConfig, /, **changes: Any) -> TrainingConfig:
    """Return a copy of a configuration or a preset with other values of some options.

    - If the model or the mutation changes, only options that the new model or mutation has are copied.
    - If `pool_size=0` or `evolve=False` makes options meaningless, these options get their defaults, unless `changes`
      contains them.
    - Without a pool, an `n_iterations` of None is replaced by its default, because only a pool draws the iterations.

    Args:
        start: a configuration, or the name of a preset.
        changes: options by name, including options of your own model.

    Raises:
        ValueError: an unknown preset, an unknown option, or an invalid value.
    """
    return _configured(PRESETS.find(start) if isinstance(start, str) else start.values, changes)


def _configured(before: Mapping[str, Any], changes: Mapping[str, Any]) -> TrainingConfig:
    """Return the configuration with the options in `before`, by name, after the changes that `changed` describes."""
    if not changes.get("pool_size", True):
        usual = {name: OPTIONS[name].default for name in options_of(PoolOptions)}
        if before.get("n_iterations", TrainingConfig.n_iterations) is None:
            usual["n_iterations"] = TrainingConfig.n_iterations
        changes = {**usual, **changes}
    if not changes.get("evolve", True):
        changes = {**WITHOUT_EVOLUTION, **changes}
    of_model = options_of_model(changes.get("model", before.get("model", TrainingConfig.model)))
    check_known(changes, {*OPTIONS, *of_model}, "a configuration")
    mutation = OPTIONS["mutation"].check(changes.get("mutation", before.get("mutation", TrainingConfig.mutation)))
    of_mutation = options_of(MUTATIONS[mutation])
    # if the model or the mutation changes, drop earlier options that the new model or mutation does not have
    if "model" in changes:
        before = {name: value for name, value in before.items() if name in _OF_RUN or name in of_model}
    if "mutation" in changes:
        before = {name: value for name, value in before.items() if name in of_mutation or name not in _OF_MUTATIONS}
    values = {**before, **changes}
    # Files contain defaults for the options of all mutations. Drop the defaults of other mutations' options; the
    # constructor rejects other values of these options.
    idle = {name for name in _OF_MUTATIONS.keys() - of_mutation.keys() if values.get(name) == _UNUSED[name]}
    return TrainingConfig(
        **{name: value for name, value in values.items() if name in _FIELDS},
        model_options={name: value for name, value in values.items() if name not in _OF_RUN},
        mutation_options={name: values[name] for name in _OF_MUTATIONS if name in values and name not in idle},
    )


def register_preset(name: str, base: str | None = None, **options: Any) -> None:
    """Register a preset of your own for `train`, `changed` and, with --import, the command line.

    Each option is checked now. Whether the options contradict each other is checked when the preset is used, because
    this check loads torch.

    Args:
        name: the name of the new preset.
        base: a preset with options that the new preset inherits. None inherits nothing.
        options: options by name, as for `changed`, which replace the options of the base.

    Raises:
        ValueError: the name of a preset of this package, an unknown base or option, or an invalid value.
    """
    inherited = {} if base is None else PRESETS.find(base)
    known = {**options_of_model({**inherited, **options}.get("model", TrainingConfig.model)), **OPTIONS}
    check_known(options, known, f"the preset {name}")
    checked = {option: known[option].check(value) for option, value in options.items()}
    PRESETS.register(name, ReadOnly({**inherited, **checked}))
