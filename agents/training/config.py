"""The configuration of a training run, and the presets.

Importing this does not load torch; making a configuration does, which checks the model's options against its class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from maze_nca_gym.files import OTHER_VERSION
from maze_nca_gym.levels import has_border
from maze_nca_gym.loading import load_levels
from maze_nca_gym.mutation import MUTATIONS, find_mutation
from maze_nca_gym.names import unknown_name
from maze_nca_gym.options import (
    Between,
    OneOf,
    Option,
    check,
    check_known,
    check_options,
    flat,
    options_of,
    to_json,
    unflattened,
)
from maze_nca_gym.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.population.config import PAPER_BREEDING, PAPER_POPULATION
from maze_nca_gym.tasks import TASKS, find_task

from ..guarantees import USUAL_FAMILY, USUAL_SIZE, Guarantees
from .options import (
    MODEL_OPTIONS,
    LevelsConfig,
    LossConfig,
    ModelConfig,
    OptimiserConfig,
    PoolConfig,
    constructor_options,
)

if TYPE_CHECKING:
    from ..policy import Policy

PRECISIONS = ("float32", "tf32", "bfloat16")
MUTATION_OPTIONS = {**PAPER_POPULATION.mutation_options, "n_edits": 5}
"""Options of mutations, with their defaults, which are those of the paper's code."""


@dataclass(frozen=True)
class TrainingConfig:
    """All options that determine the weights at the end of a training run.

    Raises:
        ValueError: a bad value, or options that contradict each other.
    """

    task: Annotated[str, OneOf(TASKS)] = "shortest-path"
    """Task to learn: shortest-path, diameter, or one of your own."""
    n_updates: Annotated[int, Between(1, 10**9)] = 8_000
    """Number of updates of the weights."""
    batch_size: Annotated[int, Between(1, 2**20)] = 64
    """Number of levels in an update."""
    precision: Annotated[str, OneOf(PRECISIONS)] = "float32"
    """Number format: float32; tf32, which rounds the factors of products on a GPU and is float32 on a CPU; or bfloat16
    (autocast). The last two are faster on hardware for them, such as CPUs with AVX512_BF16. Elsewhere bfloat16 is
    slower."""
    compile: bool = False
    """Run the iterations that PyTorch runs through torch.compile: for GPUs; takes half a minute to compile, brings no
    gain on a CPU."""
    seed: Annotated[int, Between(0, 2**63 - 1)] = 0
    """Seed of all randomness, at least 0: initial weights, levels and pool."""
    evolve: bool = False
    """Train on a population of levels that evolves against the model (paper, section "Adversarial data generation")."""
    evolve_absolute: bool = False
    """Compare evolve_below with the mean regret itself, a squared error over all tiles, not relative to that of empty
    paths. The paper's code does, with a threshold of 0.01 in 2022."""
    model: ModelConfig = field(default_factory=ModelConfig)
    levels: LevelsConfig = field(default_factory=LevelsConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    population: PopulationConfig = PAPER_POPULATION
    """Its task is always that of the run."""
    breeding: BreedingSchedule = PAPER_BREEDING

    def __new__(cls, *_: Any, **options: Any) -> TrainingConfig:
        """Refuse the options of parts, and say how to give them."""
        flat = [f"{name}={value!r}" for name, value in options.items() if name not in cls.__dataclass_fields__]
        check(not flat, f"options of its parts are given by changed(TrainingConfig(), {', '.join(flat)})")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "population", replace(self.population, task=self.task))
        self._check_pool(self._check_model())
        self._check_evolution()
        option, fresh = None, 1.0
        if self.pool.pool_size:
            option, fresh = "pool_fresh", self.pool.pool_fresh
        elif self.evolve:
            option, fresh = "replay_probability", 1 - self.breeding.replay_probability
        n_families = len(self.levels.families) if self.levels.level_set is None else 1
        check(
            self.n_fresh >= n_families or not fresh,
            f"an update needs a fresh level of each of {n_families} families, it has {self.n_fresh}: "
            f"raise batch_size{f', or change {option}' if option else ''}",
        )

    def _check_model(self) -> Policy:
        """Return the model with the shapes of one iteration, and nothing in them."""
        from .model import begin_with, shapes_of

        sizes, model = self.levels.sizes, self.model
        if self.loss.nearest_solution:
            check(
                find_task(self.task).judge is None,
                f"nearest_solution is for the tasks of this package, not {self.task}",
            )
        if self.loss.guidance:
            check(self.task == "shortest-path", f"guidance is for the task shortest-path, not {self.task}")
            least = self.n_shown + 2 * bool(model.max_pool)
            check(model.n_channels >= least, f"guidance needs at least {least} channels, got {model.n_channels}")
        one_iteration = self.model_arguments | ({} if model.n_iterations is None else {"n_iterations": 1})
        shapes = shapes_of(model, one_iteration)  # raises ValueError where it refuses an option
        if model.start_from is not None:
            begin_with(shapes, model.start_from)  # raises ValueError where the network does not fit
        one_size = f"a model of class {model.model} is built for one size, got sizes {sizes}"
        check(shapes.size is None or len(sizes) == 1, one_size)
        return shapes

    def _check_pool(self, shapes: Policy) -> None:
        n = self.pool.pool_size
        if not n:
            check(
                self.model.n_iterations is not None,
                "n_iterations must be a number unless there is a pool, which draws the iterations",
            )
            return
        check(n >= self.batch_size, f"pool_size must be 0 or at least batch_size {self.batch_size}, got {n}")
        check(self.levels.n_levels is None, "a pool takes fresh levels: leave n_levels at None")
        check(
            self._repeats_itself(shapes),
            f"a pool needs a model whose iterations are all the same; those of {self.model.model} depend on the step "
            f"(`stationary_from`), with n_iterations {self.model.n_iterations}",
        )

    def _repeats_itself(self, shapes: Policy) -> bool:
        """Return whether a model, of which these are the shapes, states that every iteration of it is the same.

        The last of `n_iterations` may be another: the rollouts of a pool end anywhere.
        """
        from .model import shapes_of

        if shapes.stationary_from is None or self.model.n_iterations is None:
            return shapes.stationary_from == 0
        return (
            shapes.stationary_from == 0
            or shapes_of(self.model, self.model_arguments | {"n_iterations": None}).stationary_from == 0
        )

    def _check_evolution(self) -> None:
        sizes, n_levels, capacity = self.levels.sizes, self.levels.n_levels, self.population.capacity
        if not self.evolve:
            values = self.flat()
            idle = [name for name in EVOLUTION if values[name] != DEFAULTS[name]]
            check(not idle, f"without levels that evolve there is no {', '.join(idle)}: set evolve")
            return
        check(capacity <= 2**20, f"capacity must be from 1 to {2**20:,}, got {capacity:,}")
        check(self.breeding.evolve_every >= 1, f"evolve_every must be at least 1, got {self.breeding.evolve_every}")
        check(
            not self.pool.pool_size,
            "levels that evolve have no states that last: set pool_size to 0, or leave evolve out",
        )
        check(
            not self.loss.nearest_solution, "nearest_solution is not for levels that evolve: regret needs one solution"
        )
        check(self.levels.level_set is None, "levels that evolve begin with drawn ones: leave level_set at None")
        check(len(sizes) == 1, f"levels that evolve are of one size, got sizes {sizes}")
        check(
            n_levels is None or n_levels <= capacity,
            f"n_levels must be at most the capacity of {capacity:,}, got {n_levels}",
        )

    @property
    def n_fresh(self) -> int:
        """Number of levels drawn for an update: its whole batch, or with a pool or population only the newcomers."""
        if self.evolve:
            return round(round(1 - self.breeding.replay_probability, 9) * self.batch_size)  # 0.1, not 1 - 0.9
        return round(self.pool.pool_fresh * self.batch_size) if self.pool.pool_size else self.batch_size

    @property
    def n_shown(self) -> int:
        """Number of channels in the loss, the first ones: the path, and with guidance the first steps."""
        from .losses import n_channels_shown

        return n_channels_shown(guided=self.loss.guidance > 0)

    @property
    def model_arguments(self) -> dict[str, Any]:
        """Keyword arguments of the model's constructor."""
        return self.model.arguments(self.task, self.levels.sizes[0])

    def make_model(self) -> Policy:
        """Make the model with its initial weights.

        Raises:
            ValueError: the network to start from is unknown or does not fit, or the level set is unknown.
        """
        from .model import make_model

        levels, of_all = self.levels, self.levels.families
        if levels.level_set is None:
            needs_border = levels.borderless == 0
            family = None if USUAL_FAMILY in of_all else of_all[0]
        else:
            needs_border, family = bool(has_border(load_levels(levels.level_set).tiles).all()), None
        size = min(max(USUAL_SIZE, min(levels.sizes)), max(levels.sizes))
        guarantees = Guarantees(needs_border=needs_border, family=family, size=None if size == USUAL_SIZE else size)
        return make_model(self.model, self.model_arguments, self.n_shown, self.seed, guarantees)

    def flat(self) -> dict[str, Any]:
        """Return all options by name, as `changed` takes them."""
        return MUTATION_OPTIONS | flat(self)

    def to_json(self) -> dict[str, Any]:
        """Return the options by name as a JSON-serialisable dict, which `from_json` reads back."""
        return cast(dict[str, Any], to_json(self.flat()))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Make a configuration from the values that `to_json` returned.

        An option that is missing has its default, so that an option can be added without rewriting every file.

        Raises:
            ValueError: an unknown option, or a bad value.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"a configuration must be an object with a value for every field, got {values!r}")
        model = values.get("model", DEFAULTS["model"])
        check_known(values, {*DEFAULTS, *_of_model(model)}, "a configuration", OTHER_VERSION)
        return unflattened(cls, DEFAULTS | dict(values))


OPTIONS = {**options_of(TrainingConfig), **{k: v for kind in MUTATIONS.values() for k, v in options_of(kind).items()}}
"""Name of an option -> what it is: all but those of a model of one's own."""
DEFAULTS = {
    **{name: option.default for name, option in OPTIONS.items()},
    **vars(PAPER_BREEDING),
    **{name: value for name, value in flat(PAPER_POPULATION).items() if name != "task"},
    **MUTATION_OPTIONS,
}
"""Name of an option -> its default."""
EVOLUTION = tuple(
    name
    for name, option in OPTIONS.items()
    if option.group in (BreedingSchedule, PopulationConfig, *MUTATIONS.values()) or name == "evolve_absolute"
)
"""Options that mean nothing without `evolve`."""
SWITCHES: dict[str, tuple[str, ...]] = {
    "pool_size": tuple(name for name in options_of(PoolConfig) if name != "pool_size"),
    "evolve": EVOLUTION,
}
"""Option -> those that mean nothing while it is off: 0 or False."""


def _of_model(model: Any) -> Mapping[str, Option]:
    """The options of a model's constructor; none of an unknown model, which is refused later."""
    from ..weights import MODELS

    return constructor_options(model) if isinstance(model, str) and model in MODELS else {}


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """Return a configuration with other values; a new model keeps only the options that it has.

    What `pool_size=0` or `evolve=False` makes meaningless gets its default, unless it is given too. So does an
    `n_iterations` of None, which needs a pool.

    Args:
        config: to change.
        changes: options by name, those of a model of your own among them.

    Raises:
        ValueError: bad values, or unknown options.
    """
    model = changes.get("model", config.model.model)
    of_model = _of_model(model)
    known = {*DEFAULTS, *of_model}
    check_known(changes, known, "a configuration")
    before = {name: value for name, value in config.flat().items() if name in known}
    before |= {name: None for name in MODEL_OPTIONS if name not in of_model}
    for switch in SWITCHES.keys() & changes.keys():
        if not changes[switch]:
            before |= {name: DEFAULTS[name] for name in SWITCHES[switch]}
    if before["n_iterations"] is None and not changes.get("pool_size", before["pool_size"]):
        before["n_iterations"] = DEFAULTS["n_iterations"]
    mutation = changes.get("mutation", before["mutation"])
    idle = {name: changes[name] for name in MUTATION_OPTIONS if changes.get(name, DEFAULTS[name]) != DEFAULTS[name]}
    if idle:
        find_mutation(mutation, idle)
    return unflattened(TrainingConfig, before | changes)


_PUBLISHED: dict[str, dict[str, Any]] = {
    "NCA": {"learning_rate": 5e-5, "pool_before_activation": True},
    "GCN": {"learning_rate": 1e-4, "normalise_edges": False},
}
"""Class of a model -> its options that are peculiar to the paper's code."""


def published_recipe(model: str) -> dict[str, Any]:
    """Return the options by which the paper's code trains a class of model; docs/reproduction.md has the sources.

    What a row of the paper's tables names is left out: channels, iterations, taps, sharing, max-pooling, evolution.
    """
    return {
        "last_relu": True,
        "initialisation": "paper",
        "n_levels": 10_000,
        "n_updates": 50_000,
        "batch_size": 64,
        "loss": "mse",
        "loss_steps": (1.0,),
        "optimiser": "adam",
        "learning_rate": 1e-4,
        "schedule": "constant",
        "normalise_gradients": True,
        **_PUBLISHED.get(model, {}),
    }


_PAPER: dict[str, Any] = {**published_recipe("NCA"), "n_channels": 128, "n_iterations": 64, "cut_corners": True}
_PAPER_DIAMETER: dict[str, Any] = dict(_PAPER, task="diameter", cut_corners=False, max_pool=True)

_PAPER_EVOLUTION: dict[str, Any] = {
    "evolve": True,
    "evolve_absolute": True,
    "evolve_every": 10,
    "evolve_below": 0.01,
}

_FAST: dict[str, Any] = {
    "n_channels": 32,
    "n_iterations": 40,
    "cut_corners": True,
    "long_fraction": 0.5,
    "n_updates": 14_000,
    "loss_steps": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "learning_rate": 4e-3,
    "schedule": "one-cycle",
    "ema_decay": 0.998,
}

_EXTRAPOLATE: dict[str, Any] = {
    "n_channels": 48,
    "n_iterations": None,
    "cut_corners": True,
    "state_limit": 3.0,
    "families": ("random", "sparse", "perfect", "loops"),
    "sizes": (12, 24),
    "long_fraction": 0.5,
    "n_updates": 16_000,
    "loss_steps": (0.25, 0.5, 0.75, 1.0),
    "loss_after": 1.0,
    "optimiser": "soap",
    "learning_rate": 4e-3,
    "schedule": "one-cycle",
    "ema_decay": 0.999,
    "pool_size": 2_048,
    "pool_fresh": 0.15,
    "pool_edited": 0.03,
    "pool_steps": (12, 24),
    "state_noise": 0.02,
}

_GUIDED: dict[str, Any] = dict(
    _EXTRAPOLATE,
    n_channels=32,
    borderless=0.5,
    n_updates=5_000,
    loss_after=2.0,
    guidance=1.0,
    learning_rate=6e-3,
    pool_edited=0.0,
    pool_retry=2.5,
    state_noise=0.0,
)

_PRESETS: dict[str, dict[str, Any]] = {
    "paper-shortest-path": _PAPER,
    "paper-diameter": _PAPER_DIAMETER,
    "paper-shortest-path-evolved": {**_PAPER, **_PAPER_EVOLUTION},
    "paper-diameter-evolved": {**_PAPER_DIAMETER, **_PAPER_EVOLUTION},
    "fast": _FAST,
    "fast-diameter": dict(
        _FAST,
        task="diameter",
        n_channels=48,
        n_iterations=48,
        max_pool=True,
        state_limit=3.0,
        sizes=(10, 16),
        n_updates=8_500,
        optimiser="soap",
        learning_rate=2e-3,
    ),
    "extrapolate": _EXTRAPOLATE,
    "extrapolate-diameter": dict(
        _EXTRAPOLATE,
        task="diameter",
        n_channels=64,
        max_pool=True,
        families=("random", "perfect"),
        sizes=(10, 16, 24),
        n_updates=12_000,
        loss_steps=(0.5, 0.75, 1.0),
        loss_after=0.0,
        nearest_solution=0.75,
        pool_fresh=0.2,
        pool_edited=0.0,
        pool_steps=(16, 32),
        pool_retry=2.5,
        state_noise=0.0,
    ),
    "guided": _GUIDED,
    "healing": dict(_GUIDED, n_channels=48, n_updates=14_000, pool_edited=0.25, pool_edits="all-kinds"),
}


class _Presets(Mapping[str, TrainingConfig]):
    """The configurations by name, each made when it is asked for."""

    def __contains__(self, name: object) -> bool:
        return name in _PRESETS

    def __getitem__(self, name: str) -> TrainingConfig:
        return _make_preset(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_PRESETS)

    def __len__(self) -> int:
        return len(_PRESETS)


@cache
def _make_preset(name: str) -> TrainingConfig:
    return changed(TrainingConfig(), **_PRESETS[name])


SHIPPED_PRESETS = frozenset(_PRESETS)
"""Names of the presets of this package."""
PRESETS = _Presets()
"""Configurations by name.

`paper-...-evolved` are the paper's networks with shared weights that are best on 16x16 test mazes after training on
levels that evolve (99.75 and 75.79 % complete). `paper-...` are the same networks on its fixed training set, where
others of its networks are better (98.32 % with max-pooling; 71.82 % with cut corners). All four follow the recipe of
the paper and its code (`published_recipe`). `fast` and `fast-diameter` are
our own for one size. `extrapolate`, `extrapolate-diameter`, `guided` and `healing` are our own for several sizes and
families.
"""


def register_preset(name: str, base: str | None = None, **options: Any) -> None:
    """Let a preset of your own be named wherever one is: in `train`, `preset` and, after --import, on the command line.

    Its options are checked when it is first asked for.

    Args:
        name: its name.
        base: a preset whose options it has too, by default none.
        options: by name, as `changed` takes them; they replace those of the base.

    Raises:
        ValueError: the name of a preset of this package, one that is no word of a command line, or an unknown base.
    """
    check(name not in SHIPPED_PRESETS, f"this package has a preset {name} of its own: choose another name")
    check(re.fullmatch(r"\w[\w.-]*", name) is not None, f"a preset needs a name such as wide or wide-2, got {name!r}")
    check(base is None or base in _PRESETS, unknown_name("preset", base, _PRESETS))
    _PRESETS[name] = {**({} if base is None else _PRESETS[base]), **options}
    _make_preset.cache_clear()


def preset_values(name: str) -> dict[str, Any]:
    """Return all options of a preset by name, without making it.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    if name not in _PRESETS:
        raise ValueError(unknown_name("preset", name, _PRESETS))
    return {**DEFAULTS, **_PRESETS[name]}


def preset(name: str) -> TrainingConfig:
    """Return a preset by name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    preset_values(name)
    return _make_preset(name)
