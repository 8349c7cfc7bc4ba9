"""The configuration of a training run.

Importing this does not load torch; making a configuration does, which checks the model's options against its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from maze_nca_gym.mazes.guidance import Guidance
from maze_nca_gym.mazes.levels import Tiles, has_border
from maze_nca_gym.mazes.loading import load_levels
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
    differences,
    options_of,
    options_of_each,
    to_json,
    with_defaults,
)
from maze_nca_gym.support.random_streams import torch_rng_for

from ..policies.guarantees import USUAL_FAMILY, USUAL_SIZE, Guarantees
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

A path of zeros everywhere would have no gradient.
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
    """All options that determine the weights at the end of a training run, each a field.

    The help shows them below the classes that declare them, the last of these first. The population and its schedule
    have the values of the paper's training here; `mutation_options` always has every option of the mutation.

    Raises:
        ValueError: a bad value, or options that contradict each other.
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
        # one place has the order from here on: all that solves a task takes its name
        task = find_task(self.task, self.order)
        object.__setattr__(self, "task", task.name)
        object.__setattr__(self, "order", None)
        of_mutation = ReadOnly(vars(find_mutation(self.mutation, self.mutation_options)))
        object.__setattr__(self, "mutation_options", of_mutation)
        # rules between options of several groups
        is_own = self.nearest_solution and task.judge is not None
        check(not is_own, f"nearest_solution is for the tasks of this package, not {self.task}")
        check(not self.guidance or bool(task.guided), f"the task {self.task} brings no guidance: set guidance to 0")
        self._check_model()
        if not self.pool_size:
            check(
                self.n_iterations is not None,
                "n_iterations must be a number unless there is a pool, which draws the iterations",
            )
        else:
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
        option, fresh = None, 1.0
        if self.pool_size:
            option, fresh = "pool_fresh", self.pool_fresh
        elif self.evolve:
            option, fresh = "replay_probability", 1 - self.replay_probability
        n_families = len(self.families) if self.level_set is None else 1
        check(
            self.n_fresh >= n_families or not fresh,
            f"an update needs a fresh level of each of {n_families} families, it has {self.n_fresh}: "
            f"raise batch_size{f', or change {option}' if option else ''}",
        )

    def _check_model(self) -> None:
        """Check the model's options by a model of one iteration, with shapes but no memory for its weights."""
        from ..policies.weights import made_again
        from .model import begin_with, shapes_of

        model, arguments, sizes = self.model, self.model_arguments, self.sizes
        taken = sorted(options_of_model(model).keys() & _OF_RUN.keys())
        check(not taken, f"a model of class {model} takes {', '.join(taken)}, as the run does: choose other names")
        is_endless = arguments.get("n_iterations") is None
        # raises ValueError where it refuses an option
        shapes = shapes_of(model, arguments if is_endless else arguments | {"n_iterations": 1})
        other_task = f"a model of class {model} is for the task {shapes.task}, not {self.task}: its constructor"
        check(shapes.task == self.task, f"{other_task} must take `task` and pass it on to that of Policy")
        made_again(shapes)  # raises ValueError where what is saved could not be loaded as what was trained
        if self.guidance:
            least = self.n_shown + 2 * bool(self.model_options.get("max_pool"))
            check(shapes.n_channels >= least, f"guidance needs at least {least} channels, got {shapes.n_channels}")
        if self.start_from is not None:
            begin_with(shapes, self.start_from)  # raises ValueError where the network does not fit
        else:
            check(not self.model_options.get("n_frozen"), "n_frozen channels are those of a network: set start_from")
        one_size = f"a model of class {model} is built for one size, got sizes {sizes}"
        check(shapes.size is None or len(sizes) == 1, one_size)
        if self.pool_size:
            steady = shapes.stationary_from
            if steady and not is_endless:  # its last iteration may be an exception: rollouts of a pool end anywhere
                steady = shapes_of(model, arguments | {"n_iterations": None}).stationary_from
            check(
                steady == 0,
                f"a pool needs a model whose iterations are all the same; those of {model} depend on the step "
                f"(`stationary_from`), with n_iterations {self.n_iterations}",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the options alone: a run of a sweep reads them before it imports the task's module."""
        return {name: value for name, value in vars(self).items() if name != "problem"}

    def __deepcopy__(self, memo: object) -> TrainingConfig:
        return self  # it never changes; another task may be registered by its name

    @cached_property
    def problem(self) -> Task:
        """The task of the run."""
        return find_task(self.task)

    @property
    def n_fresh(self) -> int:
        """Number of new levels in an update: its whole batch, or with a pool or population only the newcomers."""
        if self.evolve:
            return round(round(1 - self.replay_probability, 9) * self.batch_size)  # 0.1, not 1 - 0.9
        return round(self.pool_fresh * self.batch_size) if self.pool_size else self.batch_size

    @property
    def n_shown(self) -> int:
        """Number of leading channels that the loss reads: the channels of the answer and, if guidance has a weight, of
        the guidance."""
        return len(self.problem.answers) + len(self.guided)

    @property
    def guided(self) -> tuple[str, ...]:
        """Names of the guidance channels, which follow the answer; none if the loss ignores them."""
        return self.problem.guided if self.guidance else ()

    @property
    def guide(self) -> Callable[[Tiles], Guidance] | None:
        """The function that returns the guidance of (N, H, W) levels; None without guidance."""
        return self.problem.guide if self.guidance else None

    @property
    def model_arguments(self) -> dict[str, Any]:
        """Keyword arguments of the model's constructor, without the generator."""
        from ..policies.weights import arguments_of, model_class

        taken = arguments_of(model_class(self.model))
        # a class for one task need not take a task: the configuration asks what it is for
        if_taken = {"task": self.task, "n_iterations": self.n_iterations, "size": self.sizes[0]}
        given = {"n_tiles": self.problem.n_tiles, "n_channels": self.n_channels}
        return {**self.model_options, **given, **{name: value for name, value in if_taken.items() if name in taken}}

    def make_model(self) -> Policy:
        """Return the model with its initial weights.

        Raises:
            ValueError: the network to start from is unknown or does not fit, or the level set is unknown.
        """
        import torch

        from ..policies.policy import program_of
        from ..policies.weights import constructed, model_class
        from .model import begin_with

        generator, named = torch_rng_for(self.seed, "weights"), self.level_set
        arguments = {**self.model_arguments, "generator": generator}
        made = cast(Any, constructed(model_class(self.model), arguments))
        sizes, families = self.sizes, self.families
        size = min(max(USUAL_SIZE, min(sizes)), max(sizes))
        bordered = self.borderless == 0 if named is None else has_border(load_levels(named).tiles).all()
        made.guarantees = Guarantees(
            needs_border=bool(bordered),
            family=families[0] if named is None and USUAL_FAMILY not in families else None,
            size=None if size == USUAL_SIZE else size,
        )
        if self.initialisation == "paper":
            made.draw_as_published(generator)
        if self.guided:
            made.channel_names = (*made.problem.answers, *self.guided, *made.channel_names[self.n_shown :])
        is_frozen = bool(self.model_options.get("n_frozen"))
        if self.start_from is not None:
            begin_with(made, self.start_from)
            if not is_frozen:
                return cast("Policy", made)
        program = program_of(made)
        if program is not None and program.unbounded is None and self.initialisation == "usual":
            with torch.no_grad():
                (made.biases[0] if is_frozen else program.bias)[: self.n_shown] = FIRST_BIAS
        return cast("Policy", made)

    def to_json(self) -> dict[str, Any]:
        """Return the options by name as a JSON-serialisable dict, which `from_json` reads back."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in FURTHER}
        return cast(dict[str, Any], to_json({**_UNUSED, **own, **self.model_options, **self.mutation_options}))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the configuration that has the values that `to_json` returned.

        An option that is missing has its default, so that an option can be added without rewriting every file.

        Raises:
            ValueError: an unknown option, or a bad value.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"a configuration must be an object with a value for every field, got {values!r}")
        of_model = options_of_model(values.get("model", cls.model))
        check_known(values, {*OPTIONS, *of_model}, "a configuration", OTHER_VERSION)
        return changed(cls(), **values)


FURTHER = ("model_options", "mutation_options")
"""Fields whose items are options by their own names, in `changed`, on the command line and in files."""
_OF_MUTATIONS = options_of_each({kind: options_of(each) for kind, each in MUTATIONS.items()})
_FIELDS = {name: option for name, option in options_of(TrainingConfig).items() if name not in FURTHER}
_OF_RUN = {**_FIELDS, **_OF_MUTATIONS}
_FIRST = {name: option for name, option in _OF_RUN.items() if option.group in (TrainingOptions, ModelOptions)}
OPTIONS = with_defaults({**_FIRST, **MODEL_OPTIONS, **_OF_RUN}, {})
"""Options by name, except those of a user's own model."""
_UNUSED = {name: OPTIONS[name].default for name in (*MODEL_OPTIONS, *_OF_MUTATIONS)}
"""Values in files of the options that other models and mutations have."""
_EVOLUTION = (PopulationConfig, BreedingSchedule, *MUTATIONS.values())
WITHOUT_EVOLUTION = {name: each.default for name, each in OPTIONS.items() if each.group in _EVOLUTION} | {
    "evolve_absolute": False
}
"""Values of the options that have no effect while no levels evolve."""


def options_of_run(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of a run and of its model, by name, with the preset's values as defaults.

    Args:
        given: the values of `preset` and `model`, where they are given.

    Raises:
        ValueError: an unknown preset.
    """
    usual = PRESETS.find(given.get("preset", "fast"))
    own = options_of_model({**usual, **given}.get("model", TrainingConfig.model))
    return with_defaults({**OPTIONS, **{name: own[name] for name in own if name not in _OF_RUN}}, usual)


def changed(start: str | TrainingConfig, /, **changes: Any) -> TrainingConfig:
    """Return a configuration with other values; a new model keeps only the options that it has.

    Options that `pool_size=0` or `evolve=False` makes meaningless get their defaults, unless they are given too.
    Without a pool, an `n_iterations` of None gets its default too.

    Args:
        start: a configuration, or the name of a preset.
        changes: options by name, including options of a model of your own.

    Raises:
        ValueError: an unknown preset, bad values, or unknown options.
    """
    config = preset(start) if isinstance(start, str) else start
    given = dict(changes)
    if not changes.get("pool_size", True):
        given = {name: OPTIONS[name].default for name in options_of(PoolOptions)} | given
        if config.n_iterations is None:
            given.setdefault("n_iterations", TrainingConfig.n_iterations)
    if not changes.get("evolve", True):
        given = WITHOUT_EVOLUTION | given
    # the model and the mutation, which may be other ones, keep the options that they have
    of_model = options_of_model(given.get("model", config.model))
    check_known(given, {*OPTIONS, *of_model}, "a configuration")
    model_options = {name: value for name, value in config.model_options.items() if name in of_model}
    model_options |= {name: value for name, value in given.items() if name not in _OF_RUN}
    mutation = OPTIONS["mutation"].check(given.get("mutation", config.mutation))
    of_mutations = {name: given[name] for name in _OF_MUTATIONS if name in given}
    find_mutation(mutation, differences(of_mutations, _UNUSED))  # refuses those of another mutation
    kept, known = {**config.mutation_options, **of_mutations}, options_of(MUTATIONS[mutation])
    return replace(
        config,
        **{name: value for name, value in given.items() if name in _FIELDS},
        model_options=model_options,
        mutation_options={name: kept[name] for name in known if name in kept},
    )


def preset(name: str) -> TrainingConfig:
    """Return a preset by name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    return changed(TrainingConfig(), **PRESETS.find(name))


def register_preset(name: str, base: str | None = None, **options: Any) -> None:
    """Register a preset of your own for `train`, `preset` and, with --import, the command line.

    Each option is checked now; whether they go together is checked when the preset is used, since that loads torch.

    Args:
        name: the name of the new preset.
        base: a preset from which the new preset inherits options, by default none.
        options: options by name, as `changed` takes them; they replace options of the base.

    Raises:
        ValueError: the name of a preset of this package, an unknown base or option, or a bad value.
    """
    inherited = {} if base is None else PRESETS.find(base)
    known = {**options_of_model({**inherited, **options}.get("model", TrainingConfig.model)), **OPTIONS}
    check_known(options, known, f"the preset {name}")
    given = {key: known[key].check(value) for key, value in options.items()}
    PRESETS.register(name, ReadOnly({**inherited, **given}))
