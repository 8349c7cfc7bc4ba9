"""The options of a training run, in one frozen dataclass, and the presets."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

import torch

from maze_nca_gym.names import unknown_name
from maze_nca_gym.population import PopulationConfig
from maze_nca_gym.random_streams import torch_draws
from maze_nca_gym.tasks import find_task

from ..learned.arguments import task_argument
from ..learned.nca import NCA
from ..policy import PATH, Policy
from ..promises import Promises
from ..weights import MODELS, model_class, without_memory
from .checks import check, check_values
from .losses import GUIDED, STEPS
from .model import begin_with

OPTIONS = (
    "kernel_size",
    "cut_corners",
    "shared_weights",
    "max_pool",
    "skip_connections",
    "ceiling",
    "traversable_edges_only",
    "edge_features",
    "n_nodes",
)
"""Fields that are passed to the model's constructor unless they are None."""
FIRST_BIAS = 0.3
"""Initial bias of the channels in the loss, for NCAs that end each iteration with a ReLU.

A path of zeros everywhere would have no gradient.
"""


@dataclass(frozen=True)
class TrainingConfig:
    """All options that determine the weights at the end of a training run."""

    task: str = "shortest-path"
    """Task to learn: shortest-path, diameter, or one of your own."""

    model: str = "NCA"
    """Class of the model: NCA, GCN, GAT or MLP."""
    n_channels: int = 32
    """Number of channels of the state; the first is the predicted path."""
    n_layers: int | None = 32
    """Iterations of an episode, 1 to 4,096; the last has no ReLU. None, for NCAs with a pool only: every iteration has
    one."""
    kernel_size: int | None = None
    """NCA: side of the kernel, odd. None means 3."""
    cut_corners: bool | None = None
    """NCA: drop the kernel's taps that are more than kernel_size // 2 moves away. None means False."""
    shared_weights: bool | None = None
    """NCA, GCN, GAT: use the same weights at every iteration. None means True."""
    max_pool: bool | None = None
    """NCA: replace one channel by its maximum over the map and another by the maximum over channels. None means
    False."""
    skip_connections: bool | None = None
    """NCA: feed the maze in at every iteration instead of only at the first. None means True."""
    ceiling: float | None = None
    """NCA: upper bound of the values of a state, so that none grows forever. None means no bound."""
    traversable_edges_only: bool | None = None
    """GCN: send messages between free tiles only instead of over the full grid. None means True."""
    edge_features: bool | None = None
    """GAT: let the attention also read the direction of each edge. None means False."""
    n_nodes: int | None = None
    """MLP: width of the hidden layer. None means 256."""

    start_from: str | None = None
    """NCA: network from which training starts: a name from `policies list` or a model file (*.safetensors). It gives
    the first channels their weights. All other channels start with random weights, and do not reach these at first;
    with max-pooling there are none. None means random weights only."""

    families: tuple[str, ...] = ("random",)
    """Families of levels, the same as those of the test sets; every batch has equal parts of each."""
    sizes: tuple[int, ...] = (16,)
    """Inner sizes of the levels, 4 to 1,024. With several, each update draws one of those in use. Of k sizes, the i-th
    comes into use after (i - 1) / k of the updates."""
    n_levels: int | None = None
    """Number of levels of a fixed training set. None means fresh levels at every update. With --evolve: number of
    levels of the first population; None means a full one."""
    long_fraction: float = 0.0
    """Fraction of every batch that has long solutions, 0 to 1: each of these levels is the longest of several
    (--long-of)."""
    long_of: int = 4
    """Number of candidates among which the one with the longest solution is taken; see --long-fraction."""
    batch_size: int = 64
    """Number of levels in an update."""

    n_updates: int = 8_000
    """Number of updates of the weights."""
    loss: str = "mse"
    """Loss of the path channel, averaged over tiles and levels: mse or cross-entropy."""
    loss_at: tuple[float, ...] = (1.0,)
    """Fractions of the iterations after which losses are taken and summed: ascending, in (0, 1], the last is 1."""
    loss_after: float = 0.0
    """Iterations for each tile of its solution before a level counts in a loss. With 1, a signal could have crossed the
    solution by then; 0 counts all levels."""
    leniency: float = 0.0
    """Choice among several optimal solutions, 0 to 1. 0 asks for the canonical one. 1 asks for the one nearest to the
    path at the end of the rollout. In between, tiles of the canonical one count for 1 - leniency more."""
    guidance: float = 0.0
    """Shortest path only: weight of a second loss, of the four channels after the path; 0 means none. They predict the
    first step of the solution from each tile: up, left, down or right. A tile counts once it had as many iterations as
    it has moves to the target. With 1, training needs many times fewer updates."""
    optimiser: str = "adam"
    """Optimiser: adam, or soap, which needs fewer updates. Soap is Adam in coordinates in which a layer's gradients
    hardly correlate."""
    learning_rate: float = 1e-3
    """Highest learning rate of the schedule."""
    schedule: str = "constant"
    """Schedule of the learning rate: constant, or one-cycle (cosine: up during the first 10 %, then down to almost
    0)."""
    normalise_gradients: bool = True
    """Divide the gradient of every parameter by its norm. The paper's code does; its text does not mention it."""
    gradient_growth: float | None = None
    """Largest growth of a level's state gradient per step back, as a factor; 1 stops explosions, None means no
    limit."""
    ema_decay: float = 0.0
    """Highest decay of the moving average of the weights, which is validated and saved as the model; 0 means no
    average."""

    pool_size: int = 0
    """Number of levels of each size that keep their states from update to update; 0 starts every rollout from zeros."""
    pool_fresh: float = 0.25
    """Fraction of every batch that is fresh levels, which replace others in the pool."""
    pool_edited: float = 0.0
    """Fraction of every batch whose levels are edited while their states stay."""
    pool_edits: str = "few"
    """Kind of edits. few: two new walls, gaps, sources or targets. all-kinds: of ten levels, three are exchanged, four
    get a gap and three get 2 to 40 edits. With all-kinds, solutions are due 8 iterations later."""
    pool_steps: tuple[int, int] = (12, 24)
    """Fewest and most iterations of an update with a pool; each update draws the number."""
    pool_retry: float | None = None
    """Iterations for each tile of its solution after which a level of the pool is due, and one update more. Levels that
    are due and wrong restart from an empty state; those that are right are replaced or edited first. So hard levels
    stay and are tried again, which helps runs with guidance, and short runs without (LOG.md). None: states last, and
    fresh levels replace any."""
    state_noise: float = 0.0
    """Standard deviation of the noise added to the states of a pool before a rollout."""

    evolve: bool = False
    """Train on a population of levels that evolves against the model (paper, section "Adversarial data generation").
    Regret is the loss: the mean squared error of the path, clipped to [0, 1]."""
    population_size: int = 10_000
    """Largest number of levels in the population."""
    population_fresh: float = 0.0
    """Fraction of every batch that is fresh levels, which may enter the population; the others are replayed from it."""
    evolve_every: int = 200
    """Number of updates between two chances of a round of offspring."""
    evolve_below: float = 0.5
    """Threshold of the regret since the last chance, relative to that of empty paths: a round takes place below it. The
    paper gives no number; its code has 0.5, and 200 updates between two chances."""
    n_offspring: int = 64
    """Number of mutated levels in a round, which may replace members of lower score."""
    parents: str = "random"
    """How parents are chosen: at random (as in the paper), fittest (highest score, as in its code) or replay (drawn as
    for a batch)."""
    mutation: str = "flip"
    """How offspring are made: flip (the paper's noise, at the rates of its code) or edits (ACCEL's)."""
    tile_rate: float = 0.1
    """flip: probability that an inner tile turns from wall to empty or back."""
    source_rate: float = 0.05
    """flip: probability that the source moves."""
    n_edits: int = 5
    """edits: number of edits of a level."""
    prioritisation: str = "uniform"
    """How scores become replay weights: uniform (as in the paper), rank, proportional or top-k."""
    temperature: float = 0.3
    """rank, proportional: temperature; the lower, the larger the replay weights of the highest scores."""
    top_k: int = 64
    """top-k: number of levels that are replayed."""
    staleness_weight: float = 0.0
    """Fraction of the replay weights that depends on how long ago levels were last replayed."""
    eviction: str = "fitness"
    """Member that a fitter level replaces: the one of lowest score (fitness), or of lowest replay weight ("replay
    weight")."""
    score: str = "regret"
    """Score of a level: regret, or learnability: p (1 - p) where p is the probability that the model completes it."""

    precision: str = "float32"
    """Number format: float32, or bfloat16 (autocast), which is faster on GPUs and CPUs with hardware for it, and much
    slower elsewhere."""
    compile: bool = False
    """Run iterations through torch.compile: for GPUs; takes half a minute to compile, brings no gain on a CPU."""
    seed: int = 0
    """Seed of all randomness, at least 0: initial weights, levels and pool."""

    def __post_init__(self) -> None:
        check_values(self)
        self.population_config  # noqa: B018 - raises ValueError where it refuses an option
        one_layer = self.model_options | ({} if self.n_layers is None else {"n_layers": 1})
        model = without_memory(model_class(self.model), one_layer)  # raises ValueError where it refuses an option
        if self.start_from is not None:
            begin_with(model, self.start_from)  # raises ValueError where the network does not fit

    @property
    def n_fresh(self) -> int:
        """Number of levels drawn for an update: its whole batch, or with a pool or population only the newcomers."""
        if self.evolve:
            return round(self.population_fresh * self.batch_size)
        return round(self.pool_fresh * self.batch_size) if self.pool_size else self.batch_size

    @property
    def n_shown(self) -> int:
        """Number of channels in the loss, the first ones: the path, and with guidance the first steps."""
        return GUIDED.stop if self.guidance else PATH + 1

    @property
    def population_config(self) -> PopulationConfig:
        """Configuration of the population of levels, for a run with `evolve`.

        Raises:
            ValueError: an unknown name or a bad value.
        """
        flip = {"tile_rate": self.tile_rate, "source_rate": self.source_rate}
        return PopulationConfig(
            task=self.task,
            capacity=self.population_size,
            prioritisation=self.prioritisation,
            temperature=self.temperature,
            top_k=self.top_k,
            staleness_weight=self.staleness_weight,
            eviction=self.eviction,
            score=self.score,
            mutation=self.mutation,
            mutation_options=flip if self.mutation == "flip" else {"n_edits": self.n_edits},
        )

    @property
    def model_options(self) -> dict[str, Any]:
        """Keyword arguments for the model's constructor.

        Raises:
            ValueError: an option that the model does not have.
        """
        known = inspect.signature(model_class(self.model)).parameters
        options = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) is not None}
        for name in options:
            if name not in known:
                allowed = ", ".join(option for option in OPTIONS if option in known)
                raise ValueError(f"a model of class {self.model} has no option {name}; its options: {allowed}")
        n_tiles = find_task(self.task).n_tiles
        options |= {"n_tiles": n_tiles, **task_argument(self.task, n_tiles)}
        options |= {"n_channels": self.n_channels, "n_layers": self.n_layers}
        return options | ({"size": self.sizes[0]} if "size" in known else {})

    def make_model(self) -> Policy:
        """Make the model with its initial weights.

        Raises:
            ValueError: the network to start from is unknown or does not fit.
        """
        generator = torch_draws(self.seed, "weights")
        model = cast(Policy, cast(Any, model_class(self.model))(**self.model_options, generator=generator))
        model.promises = Promises(needs_border=True)  # all levels to train on have one
        if self.guidance:
            model.channel_names = (model.channel_names[PATH], *STEPS, *model.channel_names[self.n_shown :])
        if self.start_from is not None:
            begin_with(model, self.start_from)
        elif isinstance(model, NCA) and model.n_layers is None:
            with torch.no_grad():
                model.biases[0][: self.n_shown] = FIRST_BIAS
        return model

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON-serialisable dict, which `from_json` reads back."""
        return cast(dict[str, Any], json.loads(json.dumps(asdict(self))))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Make a configuration from the values that `to_json` returned.

        Raises:
            ValueError: an unknown or missing field, or a bad value.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping):
            raise ValueError(f"a configuration must be an object with a value for every field, got {values!r}")
        unknown, missing = sorted(set(values) - names), sorted(names - set(values))
        check(not unknown, f"a configuration has no field {', '.join(unknown)}")
        check(not missing, f"the configuration lacks {', '.join(missing)}")
        fixed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**fixed)


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

_PAPER_DIAMETER = replace(_PAPER, task="diameter", cut_corners=False, max_pool=True)

_FAST = TrainingConfig(
    n_channels=32,
    n_layers=40,
    cut_corners=True,
    long_fraction=0.5,
    n_updates=14_000,
    loss_at=(0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    learning_rate=4e-3,
    schedule="one-cycle",
    ema_decay=0.998,
)

_EXTRAPOLATE = TrainingConfig(
    n_channels=48,
    n_layers=None,
    cut_corners=True,
    ceiling=3.0,
    families=("random", "sparse", "perfect", "loops"),
    sizes=(12, 24),
    long_fraction=0.5,
    n_updates=16_000,
    loss_at=(0.25, 0.5, 0.75, 1.0),
    loss_after=1.0,
    optimiser="soap",
    learning_rate=4e-3,
    schedule="one-cycle",
    ema_decay=0.999,
    pool_size=2_048,
    pool_fresh=0.15,
    pool_edited=0.03,
    pool_steps=(12, 24),
    state_noise=0.02,
)

_GUIDED = replace(
    _EXTRAPOLATE,
    n_channels=32,
    n_updates=5_000,
    loss_after=2.0,
    guidance=1.0,
    learning_rate=6e-3,
    pool_edited=0.0,
    pool_retry=2.5,
    state_noise=0.0,
)

PRESETS: dict[str, TrainingConfig] = {
    "paper-shortest-path": _PAPER,
    "paper-diameter": _PAPER_DIAMETER,
    "paper-shortest-path-evolved": replace(_PAPER, evolve=True),
    "paper-diameter-evolved": replace(_PAPER_DIAMETER, evolve=True),
    "fast": _FAST,
    "fast-diameter": replace(
        _FAST,
        task="diameter",
        n_channels=48,
        n_layers=48,
        max_pool=True,
        ceiling=3.0,
        sizes=(10, 16),
        n_updates=8_500,
        optimiser="soap",
        learning_rate=2e-3,
    ),
    "extrapolate": _EXTRAPOLATE,
    "extrapolate-diameter": replace(
        _EXTRAPOLATE,
        task="diameter",
        n_channels=64,
        max_pool=True,
        families=("random", "perfect"),
        sizes=(10, 16, 24),
        n_updates=12_000,
        loss_at=(0.5, 0.75, 1.0),
        loss_after=0.0,
        leniency=0.75,
        pool_fresh=0.2,
        pool_edited=0.0,
        pool_steps=(16, 32),
        pool_retry=2.5,
        state_noise=0.0,
    ),
    "guided": _GUIDED,
    "healing": replace(_GUIDED, n_channels=48, n_updates=14_000, pool_edited=0.25, pool_edits="all-kinds"),
}
"""Configurations by name.

`paper-...-evolved` are the paper's networks with shared weights that are best on 16x16 test mazes after training on
levels that evolve (99.75 and 75.79 % complete). `paper-...` are the same networks on its fixed training set, where
others of its networks are better (98.32 % with max-pooling; 71.82 % with cut corners). `fast` and `fast-diameter` are
our own for one size. `extrapolate`, `extrapolate-diameter`, `guided` and `healing` are our own for several sizes and
families.
"""


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """Return a copy with other values; a copy with another model loses the options that this model does not have.

    Raises:
        ValueError: an unknown field or a bad value.
    """
    unknown = sorted(set(changes) - {field.name for field in fields(config)})
    check(not unknown, f"a configuration has no field {', '.join(unknown)}")
    if changes.get("model", config.model) in MODELS:
        known = inspect.signature(model_class(changes.get("model", config.model))).parameters
        changes = {name: None for name in OPTIONS if name not in known} | changes
    return replace(config, **changes)


def preset(name: str) -> TrainingConfig:
    """Return a preset by name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    if name not in PRESETS:
        raise ValueError(unknown_name("preset", name, PRESETS))
    return PRESETS[name]
