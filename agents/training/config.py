"""The configuration of a training run.

Importing this does not load torch; making a configuration does, which checks the model's options against its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from maze_nca_gym.mazes.guidance import Guidance
from maze_nca_gym.mazes.levels import Tiles, has_border
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.mutation import MUTATIONS, find_mutation
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.mazes.population.config import PAPER_BREEDING, PAPER_POPULATION
from maze_nca_gym.mazes.tasks import TASKS, Task, find_task
from maze_nca_gym.support.files import OTHER_VERSION
from maze_nca_gym.support.options import (
    Between,
    OneOf,
    Option,
    ReadOnly,
    check,
    check_known,
    check_options,
    differences,
    flat,
    options_of,
    options_of_each,
    to_json,
    with_defaults,
    with_values,
)
from maze_nca_gym.support.random_streams import torch_rng_for

from ..policies.guarantees import USUAL_FAMILY, USUAL_SIZE, Guarantees
from .options import MODEL_OPTIONS, LevelsConfig, LossConfig, ModelConfig, OptimiserConfig, PoolConfig, options_of_model
from .presets import PRESETS

if TYPE_CHECKING:
    from ..policies.policy import Policy

FIRST_BIAS = 0.3
"""Usual initial bias of the channels in the loss, for NCAs that end each iteration with a ReLU.

A path of zeros everywhere would have no gradient.
"""
PRECISIONS = ("float32", "tf32", "bfloat16")
_OF_MUTATIONS = options_of_each({kind: options_of(each) for kind, each in MUTATIONS.items()})


@dataclass(frozen=True)
class TrainingConfig:
    """All options that determine the weights at the end of a training run.

    Raises:
        ValueError: a bad value, or options that contradict each other.
    """

    task: Annotated[str, OneOf(TASKS)] = "shortest-path"
    """Task to learn: shortest-path, diameter, or one of your own."""
    order: str | None = None
    """Order of directions by which the canonical solution, the target, is chosen among several optimal ones, such as
    DLRU. It becomes the end of the task's name, and so a part of the model. None means the order that the task has,
    usually ULDR: up, left, down, right."""
    n_updates: Annotated[int, Between(1, 10**9)] = 8_000
    """Number of updates of the weights."""
    batch_size: Annotated[int, Between(1, 2**20)] = 64
    """Number of levels in an update."""
    precision: Annotated[str, OneOf(PRECISIONS)] = "float32"
    """Number format: float32; tf32, which rounds the inputs of matrix products on a GPU and equals float32 on a CPU; or
    bfloat16 (autocast). The last two are faster on hardware that supports them, such as CPUs with AVX512_BF16.
    Elsewhere bfloat16 is slower."""
    compile: bool | Literal["auto", "graphs"] = False
    """How updates are made faster. True compiles the model's iterations with torch.compile, which takes half a minute.
    graphs, for one CUDA GPU, records rollouts and their backward passes as CUDA graphs, one for each size and number of
    iterations: on an H200 updates of small networks became two to five times as fast. auto times an update in each of
    these ways, says how long each takes, and chooses the fastest if it is at least 1.1 times as fast as plain PyTorch.
    Models that run in machine code, such as an NCA with shared weights on a CPU, need none of it."""
    seed: Annotated[int, Between(0, 2**63 - 1)] = 0
    """Seed of all randomness, at least 0: initial weights, levels and pool."""
    evolve: bool = False
    """Train on a population of levels that evolves against the model (paper, section "Adversarial data generation")."""
    evolve_absolute: bool = False
    """Compare evolve_below with the mean regret itself (a squared error over all tiles) instead of its ratio to the
    regret of empty paths. The paper's code of 2022 does so, with a threshold of 0.01."""
    model: ModelConfig = field(default_factory=ModelConfig)
    levels: LevelsConfig = field(default_factory=LevelsConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    population: PopulationConfig = PAPER_POPULATION
    """Options of the population. Its task is always replaced by the run's, and all options of its mutation are filled
    in."""
    breeding: BreedingSchedule = PAPER_BREEDING

    def __new__(cls, *_: Any, **options: Any) -> TrainingConfig:
        """Reject options that belong to a part, such as `model`, and say how to set them."""
        others = [f"{name}={value!r}" for name, value in options.items() if name not in cls.__dataclass_fields__]
        check(not others, f"options of its parts are given by changed(TrainingConfig(), {', '.join(others)})")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_options(self)
        # one place has the order from here on: all that solves a task takes its name
        task = find_task(self.task, self.order)
        object.__setattr__(self, "task", task.name)
        object.__setattr__(self, "order", None)
        # the population gets the task, and every option of its mutation
        of_mutation = vars(find_mutation(self.population.mutation, self.population.mutation_options))
        population = replace(self.population, task=self.task, mutation_options=of_mutation)
        object.__setattr__(self, "population", population)
        # rules between options of several parts
        levels, loss, pool, sizes = self.levels, self.loss, self.pool, self.levels.sizes
        is_own = loss.nearest_solution and task.judge is not None
        check(not is_own, f"nearest_solution is for the tasks of this package, not {self.task}")
        check(not loss.guidance or bool(task.guided), f"the task {self.task} brings no guidance: set guidance to 0")
        self._check_model()
        if not pool.pool_size:
            check(
                self.model.n_iterations is not None,
                "n_iterations must be a number unless there is a pool, which draws the iterations",
            )
        else:
            n, least = pool.pool_size, self.batch_size
            check(n >= least, f"pool_size must be 0 or at least batch_size {least}, got {n}")
            check(levels.n_levels is None, "a pool takes fresh levels: leave n_levels at None")
            check(not self.evolve, "levels that evolve cannot be in a pool: set pool_size to 0, or leave evolve out")
        if self.evolve:
            capacity, every = self.population.capacity, self.breeding.evolve_every
            check(capacity <= 2**20, f"capacity must be from 1 to {2**20:,}, got {capacity:,}")
            check(every >= 1, f"evolve_every must be at least 1, got {every}")
            several = "nearest_solution is not for levels that evolve: regret needs one solution"
            check(not loss.nearest_solution, several)
            check(levels.level_set is None, "levels that evolve start from generated ones: leave level_set at None")
            check(len(sizes) == 1, f"levels that evolve are of one size, got sizes {sizes}")
            n_most = f"n_levels must be at most the capacity of {capacity:,}, got {levels.n_levels}"
            check(levels.n_levels is None or levels.n_levels <= capacity, n_most)
            task.check_one_channel("its levels cannot evolve")
        else:
            now = {"evolve_absolute": self.evolve_absolute, **flat(self.population), **flat(self.breeding)}
            idle = [name for name in now if name != "task" and now[name] != OPTIONS[name].default]
            check(not idle, f"without levels that evolve there is no {', '.join(idle)}: set evolve")
        # every family has a fresh level in each update
        option, fresh = None, 1.0
        if pool.pool_size:
            option, fresh = "pool_fresh", pool.pool_fresh
        elif self.evolve:
            option, fresh = "replay_probability", 1 - self.breeding.replay_probability
        n_families = len(levels.families) if levels.level_set is None else 1
        check(
            self.n_fresh >= n_families or not fresh,
            f"an update needs a fresh level of each of {n_families} families, it has {self.n_fresh}: "
            f"raise batch_size{f', or change {option}' if option else ''}",
        )

    def _check_model(self) -> None:
        """Check the model's options by a model of one iteration, with shapes but no memory for its weights."""
        from ..policies.weights import made_again
        from .model import begin_with, shapes_of

        model, arguments, sizes = self.model, self.model_arguments, self.levels.sizes
        is_endless = arguments.get("n_iterations") is None
        # raises ValueError where it refuses an option
        shapes = shapes_of(model, arguments if is_endless else arguments | {"n_iterations": 1})
        other_task = f"a model of class {model.model} is for the task {shapes.task}, not {self.task}: its constructor"
        check(shapes.task == self.task, f"{other_task} must take `task` and pass it on to that of Policy")
        made_again(shapes)  # raises ValueError where what is saved could not be loaded as what was trained
        if self.loss.guidance:
            least = self.n_shown + 2 * bool(model.options.get("max_pool"))
            check(shapes.n_channels >= least, f"guidance needs at least {least} channels, got {shapes.n_channels}")
        if model.start_from is not None:
            begin_with(shapes, model.start_from)  # raises ValueError where the network does not fit
        else:
            check(not model.options.get("n_frozen"), "n_frozen channels are those of a network: set start_from")
        one_size = f"a model of class {model.model} is built for one size, got sizes {sizes}"
        check(shapes.size is None or len(sizes) == 1, one_size)
        if self.pool.pool_size:
            steady = shapes.stationary_from
            if steady and not is_endless:  # its last iteration may be an exception: rollouts of a pool end anywhere
                steady = shapes_of(model, arguments | {"n_iterations": None}).stationary_from
            check(
                steady == 0,
                f"a pool needs a model whose iterations are all the same; those of {model.model} depend on the step "
                f"(`stationary_from`), with n_iterations {model.n_iterations}",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the options alone: a run of a sweep reads them before it imports what registers the task."""
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
            return round(round(1 - self.breeding.replay_probability, 9) * self.batch_size)  # 0.1, not 1 - 0.9
        return round(self.pool.pool_fresh * self.batch_size) if self.pool.pool_size else self.batch_size

    @property
    def n_shown(self) -> int:
        """Number of leading channels that the loss reads: those of the answer, and of the guidance if that has a
        weight."""
        return len(self.problem.answers) + len(self.guided)

    @property
    def guided(self) -> tuple[str, ...]:
        """Names of the guidance channels, which follow the answer; none if the loss ignores them."""
        return self.problem.guided if self.loss.guidance else ()

    @property
    def guide(self) -> Callable[[Tiles], Guidance] | None:
        """The function that returns the guidance of (N, H, W) levels; None without guidance."""
        return self.problem.guide if self.loss.guidance else None

    @property
    def model_arguments(self) -> dict[str, Any]:
        """Keyword arguments of the model's constructor, without the generator."""
        from ..policies.weights import arguments_of, model_class

        model, taken = self.model, arguments_of(model_class(self.model.model))
        # a class for one task need not take a task: the configuration asks what it is for
        if_taken = {"task": self.task, "n_iterations": model.n_iterations, "size": self.levels.sizes[0]}
        given = {"n_tiles": self.problem.n_tiles, "n_channels": model.n_channels}
        return {**model.options, **given, **{name: value for name, value in if_taken.items() if name in taken}}

    def make_model(self) -> Policy:
        """Return the model with its initial weights.

        Raises:
            ValueError: the network to start from is unknown or does not fit, or the level set is unknown.
        """
        import torch

        from ..policies.policy import program_of
        from ..policies.weights import constructed, model_class
        from .model import begin_with

        generator, named = torch_rng_for(self.seed, "weights"), self.levels.level_set
        arguments = {**self.model_arguments, "generator": generator}
        made = cast(Any, constructed(model_class(self.model.model), arguments))
        sizes, families = self.levels.sizes, self.levels.families
        size = min(max(USUAL_SIZE, min(sizes)), max(sizes))
        bordered = self.levels.borderless == 0 if named is None else has_border(load_levels(named).tiles).all()
        made.guarantees = Guarantees(
            needs_border=bool(bordered),
            family=families[0] if named is None and USUAL_FAMILY not in families else None,
            size=None if size == USUAL_SIZE else size,
        )
        if self.model.initialisation == "paper":
            made.draw_as_published(generator)
        if self.guided:
            made.channel_names = (*made.problem.answers, *self.guided, *made.channel_names[self.n_shown :])
        is_frozen = bool(self.model.options.get("n_frozen"))
        if self.model.start_from is not None:
            begin_with(made, self.model.start_from)
            if not is_frozen:
                return cast("Policy", made)
        program = program_of(made)
        if program is not None and program.unbounded is None and self.model.initialisation == "usual":
            with torch.no_grad():
                (made.biases[0] if is_frozen else program.bias)[: self.n_shown] = FIRST_BIAS
        return cast("Policy", made)

    def flat(self) -> dict[str, Any]:
        """Return all options by name, as `changed` takes them and files have them."""
        return {**{name: OPTIONS[name].default for name in (*MODEL_OPTIONS, *_OF_MUTATIONS)}, **flat(self)}

    def to_json(self) -> dict[str, Any]:
        """Return the options by name as a JSON-serialisable dict, which `from_json` reads back."""
        return cast(dict[str, Any], to_json(self.flat()))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the configuration that has the values that `to_json` returned.

        An option that is missing has its default, so that an option can be added without rewriting every file.

        Raises:
            ValueError: an unknown option, or a bad value.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"a configuration must be an object with a value for every field, got {values!r}")
        of_model = options_of_model(values.get("model", ModelConfig.model))
        check_known(values, {*OPTIONS, *of_model}, "a configuration", OTHER_VERSION)
        return with_values(cls(), values)


WITHOUT_EVOLUTION = {"evolve_absolute": False, **flat(PAPER_POPULATION), **flat(PAPER_BREEDING)}
"""Values of the options that have no effect while no levels evolve."""
_OF_RUN = {**options_of(TrainingConfig), **_OF_MUTATIONS}
_FIRST = {name: option for name, option in _OF_RUN.items() if option.group in (TrainingConfig, ModelConfig)}
OPTIONS = with_defaults({**_FIRST, **MODEL_OPTIONS, **_OF_RUN}, WITHOUT_EVOLUTION)
"""Options by name, except those of a user's own model."""


def options_of_run(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of a run and of its model, by name, with the preset's values as defaults.

    Args:
        given: the values of `preset` and `model`, where they are given.

    Raises:
        ValueError: an unknown preset.
    """
    usual = PRESETS.find(given.get("preset", "fast"))
    own = options_of_model({**usual, **given}.get("model", ModelConfig.model))
    return with_defaults({**OPTIONS, **{name: own[name] for name in own if name not in _OF_RUN}}, usual)


def changed(start: str | TrainingConfig, **changes: Any) -> TrainingConfig:
    """Return a configuration with other values; a new model keeps only the options that it has.

    Options that `pool_size=0` or `evolve=False` makes meaningless get their defaults, unless they are given too. So
    does an `n_iterations` of None, which needs a pool.

    Args:
        start: a configuration, or the name of a preset.
        changes: options by name, including options of a model of your own.

    Raises:
        ValueError: an unknown preset, bad values, or unknown options.
    """
    config = preset(start) if isinstance(start, str) else start
    of_model = options_of_model(changes.get("model", config.model.model))
    check_known(changes, {*OPTIONS, *of_model}, "a configuration")
    usual = {name: OPTIONS[name].default for name in _OF_MUTATIONS}
    if own := differences({name: changes.get(name, usual[name]) for name in usual}, usual):
        find_mutation(changes.get("mutation", config.population.mutation), own)  # refuses those of another mutation
    left: dict[str, Any] = {name: None for name in config.model.options if name not in of_model}
    if not changes.get("pool_size", True):
        left |= flat(PoolConfig())
        if config.model.n_iterations is None:
            left["n_iterations"] = ModelConfig.n_iterations
    if not changes.get("evolve", True):
        left |= {**WITHOUT_EVOLUTION, "task": config.task}
    return with_values(config, {**left, **changes})


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
        name: its name.
        base: a preset whose options it inherits, by default none.
        options: options by name, as `changed` takes them; they replace those of the base.

    Raises:
        ValueError: the name of a preset of this package, an unknown base or option, or a bad value.
    """
    inherited = {} if base is None else PRESETS.find(base)
    known = {**options_of_model({**inherited, **options}.get("model", ModelConfig.model)), **OPTIONS}
    check_known(options, known, f"the preset {name}")
    given = {key: known[key].check(value) for key, value in options.items()}
    PRESETS.register(name, ReadOnly({**inherited, **given}))
