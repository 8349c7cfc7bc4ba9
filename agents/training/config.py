"""What a training run is: one frozen dataclass, and the presets."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast, get_args, get_type_hints

from ..evaluation.level_sets import FAMILIES
from ..learned.arguments import TASK_OF_TILES
from ..policy import TASKS, Policy
from ..weights import MODELS, model_class, shapes_of
from .draws import torch_draws
from .losses import LOSSES
from .schedules import SCHEDULES

TILES_OF_TASK = {task: n_tiles for n_tiles, task in TASK_OF_TILES.items()}
PRECISIONS = ("float32", "bfloat16")
LEAST_SIZE = 4
"""Smaller levels of some families do not exist, hence no sets that are held out."""
OPTIONS = (
    "kernel_size",
    "cut_corners",
    "shared_weights",
    "max_pool",
    "skip_connections",
    "traversable_edges_only",
    "edge_features",
    "n_nodes",
)
"""Fields that are passed on to the model's constructor where they are not None."""


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides the weights which a training run ends with."""

    task: str = "shortest-path"
    """shortest-path or diameter."""

    model: str = "NCA"
    """NCA, GCN, GAT or MLP."""
    n_channels: int = 32
    """Channels of the state; the first is the predicted path."""
    n_layers: int | None = 32
    """Iterations of an episode; the last has no ReLU. None for NCAs whose episodes have no last iteration."""
    kernel_size: int | None = None
    """NCA: side of the kernel, odd. This and the following options are the model's own defaults where None."""
    cut_corners: bool | None = None
    """NCA: drop the taps further than kernel_size // 2 moves away."""
    shared_weights: bool | None = None
    """NCA, GCN, GAT: the same weights at every iteration."""
    max_pool: bool | None = None
    """NCA: one channel becomes its maximum over the map, another the maximum over channels."""
    skip_connections: bool | None = None
    """NCA: feed the maze in at every iteration, not only at the first."""
    traversable_edges_only: bool | None = None
    """GCN: messages between free tiles only, or over the full grid."""
    edge_features: bool | None = None
    """GAT: attention also reads the direction of each edge."""
    n_nodes: int | None = None
    """MLP: width of its hidden layer."""

    families: tuple[str, ...] = ("random",)
    """Families of levels, of those that policies are tested on; every batch has equal parts of each."""
    sizes: tuple[int, ...] = (16,)
    """Inner sizes of the levels. With several, one is drawn for each update, and they join one after the other:
    of k sizes, the i-th after (i - 1) / k of the updates."""
    n_levels: int | None = None
    """Levels of a fixed training set; None for fresh ones at every update."""
    long_fraction: float = 0.0
    """Part of every batch that are long levels: each has the longest solution of `long_of` candidates."""
    long_of: int = 4
    """See `long_fraction`."""
    batch_size: int = 64
    """Levels of an update."""

    n_updates: int = 8_000
    """Updates of the weights."""
    loss: str = "mse"
    """mse or cross-entropy, of the path channel, averaged over tiles and levels."""
    loss_at: tuple[float, ...] = (1.0,)
    """After which parts of the iterations the losses are taken and summed: ascending, in (0, 1], the last is 1."""
    learning_rate: float = 1e-3
    """The peak."""
    schedule: str = "constant"
    """constant or one-cycle (cosine: up over the first 10 %, down to almost nothing)."""
    normalise_gradients: bool = True
    """Divide the gradient of every parameter by its norm (paper, section "Experimental setup")."""
    ema_decay: float = 0.0
    """Of the moving average of the weights that is validated and kept as the model, at most; 0 for none."""

    pool_size: int = 0
    """Levels (of each size) that keep their states from update to update; 0 starts every rollout from zeros."""
    pool_fresh: float = 0.25
    """Part of every batch that are fresh levels, which replace others in the pool."""
    pool_steps: tuple[int, int] = (12, 24)
    """Fewest and most iterations of an update with a pool; the number is drawn."""
    state_noise: float = 0.0
    """With a pool: standard deviation of what is added to the states before a rollout."""

    precision: str = "float32"
    """float32, or bfloat16 (autocast): faster on GPUs and CPUs that have it in hardware, much slower elsewhere."""
    compile: bool = False
    """Run iterations through torch.compile: for GPUs; half a minute to compile, no gain on a CPU."""
    seed: int = 0
    """Of all that is drawn: initial weights, levels, pool."""

    def __post_init__(self) -> None:
        _check_types(self)
        _check_choices(self)
        _check_ranges(self)
        for family in self.families:
            _check(family in FAMILIES, f"unknown family of levels {family!r}; known: {', '.join(FAMILIES)}")
        one_layer = self.model_options | ({} if self.n_layers is None else {"n_layers": 1})
        shapes_of(model_class(self.model), one_layer)  # raises ValueError where the model refuses an option

    @property
    def n_fresh(self) -> int:
        """Levels that are drawn for an update: all of its batch, or with a pool the newcomers alone."""
        return round(self.pool_fresh * self.batch_size) if self.pool_size else self.batch_size

    @property
    def model_options(self) -> dict[str, Any]:
        """Keyword arguments of the model's constructor.

        Raises:
            ValueError: an option that is not the model's.
        """
        known = inspect.signature(model_class(self.model)).parameters
        options = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) is not None}
        for name in options:
            if name not in known:
                allowed = ", ".join(option for option in OPTIONS if option in known)
                raise ValueError(f"a model of class {self.model} has no option {name}; its options: {allowed}")
        options |= {"n_tiles": TILES_OF_TASK[self.task], "n_channels": self.n_channels, "n_layers": self.n_layers}
        return options | ({"size": self.sizes[0]} if "size" in known else {})

    def make_model(self) -> Policy:
        """The model with its initial weights."""
        generator = torch_draws(self.seed, "weights")
        return cast(Policy, cast(Any, model_class(self.model))(**self.model_options, generator=generator))

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable; `from_json` reads it back."""
        return cast(dict[str, Any], json.loads(json.dumps(asdict(self))))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """The configuration of what `to_json` gave.

        Raises:
            ValueError: an unknown or missing field, or a bad value.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping):
            raise ValueError(f"a configuration must be an object with a value for every field, got {values!r}")
        unknown, missing = sorted(set(values) - names), sorted(names - set(values))
        _check(not unknown, f"a configuration has no field {', '.join(unknown)}")
        _check(not missing, f"the configuration lacks {', '.join(missing)}")
        fixed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**fixed)


def _check_types(config: TrainingConfig) -> None:
    hints = get_type_hints(TrainingConfig)
    for field in fields(config):
        value = getattr(config, field.name)
        _check(_is_of(value, hints[field.name]), f"{field.name} must be of type {field.type}, got {value!r}")


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of a simple type, a union or a tuple of them; an integer is a float, a bool no number."""
    arguments = get_args(hint)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if not arguments:
        return isinstance(value, hint)
    if getattr(hint, "__origin__", None) is tuple:
        if not isinstance(value, tuple):
            return False
        items = arguments[:1] * len(value) if Ellipsis in arguments else arguments
        return len(items) == len(value) and all(map(_is_of, value, items))
    return any(_is_of(value, argument) for argument in arguments)


def _check_choices(config: TrainingConfig) -> None:
    choices: dict[str, Any] = {
        "task": TASKS,
        "model": MODELS,
        "loss": LOSSES,
        "schedule": SCHEDULES,
        "precision": PRECISIONS,
    }
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            raise ValueError(f"unknown {name} {getattr(config, name)!r}; known: {', '.join(allowed)}")


def _check_ranges(config: TrainingConfig) -> None:
    ranges: dict[str, tuple[float, float]] = {
        "n_channels": (1, 2**16),
        "long_fraction": (0, 1),
        "long_of": (1, 1024),
        "batch_size": (1, 2**20),
        "n_updates": (1, 10**9),
        "ema_decay": (0, 0.999999),
        "pool_size": (0, 2**20),
        "pool_fresh": (0, 1),
        "state_noise": (0, 10),
        "learning_rate": (1e-8, 10),
        "seed": (0, 2**63 - 1),
    }
    for name, (least, most) in ranges.items():
        if not least <= getattr(config, name) <= most:
            raise ValueError(f"{name} must be from {least:,} to {most:,}, got {getattr(config, name):,}")
    _check(
        config.n_levels is None or 1 <= config.n_levels <= 2**24,
        f"n_levels must be None or from 1 to {2**24:,}, got {config.n_levels}",
    )
    _check(bool(config.families), f"families must name at least one of {', '.join(FAMILIES)}")
    _check(
        bool(config.sizes) and all(LEAST_SIZE <= size <= 1024 for size in config.sizes),
        f"sizes must be from {LEAST_SIZE} to 1,024, at least one, got {config.sizes}",
    )
    at = config.loss_at
    _check(
        bool(at) and at[-1] == 1 and at[0] > 0 and all(a < b for a, b in itertools.pairwise(at)),
        f"loss_at must ascend within (0, 1] and end with 1, got {at}",
    )
    _check_lengths(config)
    _check_pool(config)
    _check(
        config.n_fresh >= len(config.families) or bool(config.pool_size and not config.pool_fresh),
        f"an update needs a fresh level of each of {len(config.families)} families, it has {config.n_fresh}: "
        f"raise batch_size{' or pool_fresh' if config.pool_size else ''}",
    )


def _check_lengths(config: TrainingConfig) -> None:
    if config.n_layers is None:
        _check(config.model == "NCA", f"n_layers must be a number for a model of class {config.model}")
        _check(config.pool_size > 0, "n_layers must be a number unless there is a pool, which draws the iterations")
    else:
        _check(1 <= config.n_layers <= 4096, f"n_layers must be from 1 to 4,096, got {config.n_layers}")
    fixed_size = config.model == "MLP"
    _check(not fixed_size or len(config.sizes) == 1, f"an MLP is built for one size, got sizes {config.sizes}")
    _check(
        config.n_levels is None or len(config.sizes) == 1,
        f"a fixed training set has levels of one size, got sizes {config.sizes}",
    )


def _check_pool(config: TrainingConfig) -> None:
    if not config.pool_size:
        _check(config.state_noise == 0, "state_noise needs a pool: set pool_size")
        return
    _check(
        config.pool_size >= config.batch_size,
        f"pool_size must be 0 or at least batch_size {config.batch_size}, got {config.pool_size}",
    )
    _check(config.n_levels is None, "a pool takes fresh levels: leave n_levels at None")
    _check(
        config.model == "NCA" and config.shared_weights is not False and config.skip_connections is not False,
        "a pool needs an NCA with shared weights and skip connections: other models depend on the step",
    )
    least, most = config.pool_steps
    _check(1 <= least <= most <= 4096, f"pool_steps must be two numbers from 1 to 4,096, ascending, got {least, most}")


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


_PAPER = TrainingConfig(
    n_channels=128,
    n_layers=64,
    cut_corners=True,
    n_levels=10_000,
    n_updates=50_000,
    loss_at=(1.0,),
    learning_rate=1e-3,
    schedule="constant",
)

PRESETS: dict[str, TrainingConfig] = {
    "paper-shortest-path": _PAPER,
    "paper-diameter": replace(_PAPER, task="diameter", cut_corners=False, max_pool=True),
    "fast": TrainingConfig(
        n_channels=32,
        n_layers=40,
        cut_corners=True,
        long_fraction=0.5,
        n_updates=12_000,
        loss_at=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        learning_rate=4e-3,
        schedule="one-cycle",
        ema_decay=0.998,
    ),
    "extrapolate": TrainingConfig(
        n_channels=64,
        n_layers=None,
        cut_corners=True,
        families=("random", "sparse", "perfect", "loops"),
        sizes=(16, 24, 32),
        n_updates=20_000,
        loss_at=(0.5, 1.0),
        learning_rate=2e-3,
        schedule="one-cycle",
        ema_decay=0.999,
        pool_size=256,
        state_noise=0.02,
    ),
}
"""Name -> configuration. `paper-...` are the paper's best on a fixed training set, `fast` is ours for one size and
`extrapolate` for every size and family."""


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """A configuration with other values; with another model it loses the options that this model does not have.

    Raises:
        ValueError: bad values, or unknown fields.
    """
    unknown = sorted(set(changes) - {field.name for field in fields(config)})
    _check(not unknown, f"a configuration has no field {', '.join(unknown)}")
    if changes.get("model", config.model) in MODELS:
        known = inspect.signature(model_class(changes.get("model", config.model))).parameters
        changes = {name: None for name in OPTIONS if name not in known} | changes
    return replace(config, **changes)


def preset(name: str) -> TrainingConfig:
    """A preset by name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
