"""What a training run is: one frozen dataclass, and the presets."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

import torch

from maze_nca_gym.names import unknown_name
from maze_nca_gym.population import PopulationConfig

from ..learned.arguments import TASK_OF_TILES
from ..learned.nca import NCA
from ..policy import PATH, Policy
from ..promises import Promises
from ..weights import MODELS, model_class, without_memory
from .checks import check, check_values
from .draws import torch_draws
from .guidance import STEPS
from .losses import GUIDED
from .start import begin_with

TILES_OF_TASK = {task: n_tiles for n_tiles, task in TASK_OF_TILES.items()}
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
"""Fields that are passed on to the model's constructor where they are not None."""
FIRST_BIAS = 0.3
"""Of what NCAs show that end each iteration with a ReLU: a path of zeros everywhere would have no gradient."""


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
    ceiling: float | None = None
    """NCA: the largest number in a state, so that none can grow for ever; None for no bound."""
    traversable_edges_only: bool | None = None
    """GCN: messages between free tiles only, or over the full grid."""
    edge_features: bool | None = None
    """GAT: attention also reads the direction of each edge."""
    n_nodes: int | None = None
    """MLP: width of its hidden layer."""

    start_from: str | None = None
    """NCA: name of a network that ships, or a model file (*.safetensors), with whose weights the first channels begin;
    the others (none with max-pooling) begin with random ones and do not reach these yet. None: random weights alone."""

    families: tuple[str, ...] = ("random",)
    """Families of levels, of those that policies are tested on; every batch has equal parts of each."""
    sizes: tuple[int, ...] = (16,)
    """Inner sizes of the levels. With several, one is drawn for each update, and they join one after the other:
    of k sizes, the i-th after (i - 1) / k of the updates."""
    n_levels: int | None = None
    """Levels of a fixed training set; None for fresh ones at every update. With `evolve`: of the first population,
    None for a full one."""
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
    loss_after: float = 0.0
    """A level counts in a loss once it has had so many iterations for each tile of its solution: with 1, once anything
    could have crossed it. 0 counts all levels."""
    leniency: float = 0.0
    """Of several optimal solutions, which is asked for. 0: the canonical one. 1: the one that is nearest to the path at
    the end of the rollout. Between: the nearest too, but tiles of the canonical one count for 1 - `leniency` more."""
    guidance: float = 0.0
    """Shortest path: weight of a second loss, of the four channels after the path: where the solution from each tile
    begins, up, left, down or right, as if it were the source; with 1 many times fewer updates are needed. A tile counts
    once it has had as many iterations as it is moves from the target. 0: solutions alone."""
    optimiser: str = "adam"
    """adam, or soap: Adam in coordinates in which a layer's gradients hardly correlate, which needs fewer updates."""
    learning_rate: float = 1e-3
    """The peak."""
    schedule: str = "constant"
    """constant or one-cycle (cosine: up over the first 10 %, down to almost nothing)."""
    normalise_gradients: bool = True
    """Divide the gradient of every parameter by its norm, as the paper's code does; its text does not mention it."""
    gradient_growth: float | None = None
    """By what factor the gradient of a level's state may be longer than that of its next state. With 1 none explodes on
    its way back through a hundred iterations, and what was learned before is not lost to it. None for any."""
    ema_decay: float = 0.0
    """Of the moving average of the weights that is validated and kept as the model, at most; 0 for none."""

    pool_size: int = 0
    """Levels (of each size) that keep their states from update to update; 0 starts every rollout from zeros."""
    pool_fresh: float = 0.25
    """Part of every batch that are fresh levels, which replace others in the pool."""
    pool_edited: float = 0.0
    """Part of every batch whose levels are edited while their states stay."""
    pool_edits: str = "few"
    """How. few: they get two new walls, gaps, sources or targets. all-kinds: of ten, three become other levels, four
    get a gap, and the others 2 to 40 new walls, gaps, sources or targets; and all that is due then is due 8 iterations
    later, so that there is time to begin again."""
    pool_steps: tuple[int, int] = (12, 24)
    """Fewest and most iterations of an update with a pool; the number is drawn."""
    pool_retry: float | None = None
    """With a pool: a level is due after so many iterations for each tile of its solution, and one update more. If it is
    wrong then, it starts anew from an empty state; if it is right, it is replaced, or edited, before others. So hard
    levels stay and are tried again and again; that helps with guidance, and short runs without (LOG.md). None: states
    last, and fresh levels replace any."""
    state_noise: float = 0.0
    """With a pool: standard deviation of what is added to the states before a rollout."""

    evolve: bool = False
    """Train on a population of levels that evolves against the model (paper, section "Adversarial data generation").
    Regret is the loss: the mean squared error of the path, clipped to [0, 1]."""
    population_size: int = 10_000
    """Most levels of the population."""
    population_fresh: float = 0.0
    """Part of every batch that are fresh levels, which may enter the population; the others are replayed from it."""
    evolve_every: int = 200
    """Updates from one chance of a round of offspring to the next."""
    evolve_below: float = 0.5
    """The chance is taken if the mean regret of the batches since the last one, over that of empty paths, is below. The
    paper speaks of a certain threshold and gives no number; its code has 0.5, and 200 updates between two rounds."""
    n_offspring: int = 64
    """Mutated levels of a round, which enter in the place of members of lower score."""
    parents: str = "random"
    """Who gets offspring: random (as the paper says), fittest (those of highest score, as its code does) or replay
    (drawn as for a batch)."""
    mutation: str = "flip"
    """flip (the paper's noise, at the rates of its code) or edits (ACCEL's)."""
    tile_rate: float = 0.1
    """flip: probability that an inner tile turns from wall to empty or back."""
    source_rate: float = 0.05
    """flip: probability that the source moves."""
    n_edits: int = 5
    """edits: how many."""
    prioritisation: str = "uniform"
    """How scores become replay weights: uniform (the paper's), rank, proportional or top-k."""
    temperature: float = 0.3
    """rank, proportional: the lower, the more of the replay goes to the highest scores."""
    top_k: int = 64
    """top-k: how many levels are replayed."""
    staleness_weight: float = 0.0
    """Part of the replay that goes by how long ago levels were seen."""
    eviction: str = "fitness"
    """Whom a fitter level replaces: the one of lowest score (fitness), or of lowest replay probability
    ("replay weight")."""
    score: str = "regret"
    """regret, or learnability: p (1 - p) with the probability p that the model completes the level."""

    precision: str = "float32"
    """float32, or bfloat16 (autocast): faster on GPUs and CPUs that have it in hardware, much slower elsewhere."""
    compile: bool = False
    """Run iterations through torch.compile: for GPUs; half a minute to compile, no gain on a CPU."""
    seed: int = 0
    """Of all that is drawn: initial weights, levels, pool."""

    def __post_init__(self) -> None:
        check_values(self)
        self.population_config  # noqa: B018 - raises ValueError where it refuses an option
        one_layer = self.model_options | ({} if self.n_layers is None else {"n_layers": 1})
        model = without_memory(model_class(self.model), one_layer)  # raises ValueError where it refuses an option
        if self.start_from is not None:
            begin_with(model, self.start_from)  # raises ValueError where the network does not fit

    @property
    def n_fresh(self) -> int:
        """Levels that are drawn for an update: all of its batch, or with a pool or population the newcomers alone."""
        if self.evolve:
            return round(self.population_fresh * self.batch_size)
        return round(self.pool_fresh * self.batch_size) if self.pool_size else self.batch_size

    @property
    def n_shown(self) -> int:
        """Channels that losses look at, the first ones: the path, and with guidance the steps."""
        return GUIDED.stop if self.guidance else PATH + 1

    @property
    def population_config(self) -> PopulationConfig:
        """How the population of a run that evolves chooses levels.

        Raises:
            ValueError: unknown names, or a bad value.
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
        """The model with its initial weights.

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
"""Name -> configuration. `paper-...-evolved` are the paper's networks with shared weights that are best on 16x16 test
mazes after training on levels that evolve (99.75 and 75.79 % complete). `paper-...` are the same networks on its fixed
training set, where others of its networks are better (98.32 % with max-pooling; 71.82 % with cut corners). `fast` and
`fast-diameter` are ours for one size, `extrapolate`, `extrapolate-diameter`, `guided` and `healing` for several sizes
and families."""


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """A configuration with other values; with another model it loses the options that this model does not have.

    Raises:
        ValueError: bad values, or unknown fields.
    """
    unknown = sorted(set(changes) - {field.name for field in fields(config)})
    check(not unknown, f"a configuration has no field {', '.join(unknown)}")
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
        raise ValueError(unknown_name("preset", name, PRESETS))
    return PRESETS[name]
