"""The parts of a training run's configuration, each of which checks its own options.

Nothing here loads torch: the tables of which an option names a row are looked up when a part is made. An option has one
name, wherever it is given: here, in `changed`, on the command line and in files.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_args, get_origin, get_type_hints

from maze_nca_gym.families import FAMILIES
from maze_nca_gym.names import unknown_name
from maze_nca_gym.tasks import find_task

from .editing import EDITS

LEAST_SIZE = 4
"""Smaller levels of some families do not exist, hence no sets that are held out."""
INITIALISATIONS = ("usual", "paper")
GIVEN = ("n_tiles", "task", "n_channels", "n_iterations", "size", "generator")
"""Arguments of a model's constructor that a run gives, which are no options."""


@dataclass(frozen=True)
class RunOptions:
    """The task, and how long to train."""

    task: str = "shortest-path"
    """Task to learn: shortest-path, diameter, or one of your own."""
    n_updates: int = 8_000
    """Number of updates of the weights."""
    batch_size: int = 64
    """Number of levels in an update."""
    precision: str = "float32"
    """Number format: float32; tf32, which rounds the factors of products on a GPU and is float32 on a CPU; or bfloat16
    (autocast). The last two are faster on hardware for them, such as CPUs with AVX512_BF16. Elsewhere bfloat16 is
    slower."""
    compile: bool = False
    """Run the iterations that PyTorch runs through torch.compile: for GPUs; takes half a minute to compile, brings no
    gain on a CPU."""
    seed: int = 0
    """Seed of all randomness, at least 0: initial weights, levels and pool."""
    evolve: bool = False
    """Train on a population of levels that evolves against the model (paper, section "Adversarial data generation")."""
    evolve_absolute: bool = False
    """Compare evolve_below with the mean regret itself, a squared error over all tiles, not relative to that of empty
    paths. The paper's code does, with a threshold of 0.01 in 2022."""


@dataclass(frozen=True)
class ModelConfig:
    """The model, and the network from which its weights start.

    Raises:
        ValueError: a value out of range, or an option that the model's constructor does not take.
    """

    model: str = "NCA"
    """Class of the model: NCA, GCN, GAT or MLP."""
    n_channels: int = 32
    """Number of channels of the state; the first is the predicted path."""
    n_iterations: int | None = 32
    """Iterations of an episode, 1 to 4,096; the last has no ReLU, unless last_relu. None, with a pool only: every
    iteration has one."""
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
    last_relu: bool | None = None
    """End the last iteration with a ReLU too, as the paper and its code of 2022 do. Paths that start at zero everywhere
    then stay there for good. None means False."""
    pool_adds: bool | None = None
    """NCA: let max_pool add its maxima before the ReLU, as the paper's code does, instead of replacing two channels
    after it. None means False."""
    symmetric: bool | None = None
    """NCA with cut_corners and a kernel of side 3: give the four neighbours of a tile the same weights. It is an option
    of the paper's code that none of its tables uses. None means False."""
    normalise_edges: bool | None = None
    """GCN: weigh neighbours by the numbers of theirs. The paper's code does not. None means True."""
    initialisation: str = "usual"
    """Distribution of the initial weights: usual, or paper, that of the paper's code."""
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
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Further keyword arguments of the model's constructor, for a model of your own."""

    def __post_init__(self) -> None:
        from ..weights import MODELS, model_class

        check_types(self)
        check_choice(self, "model", MODELS)
        check_choice(self, "initialisation", INITIALISATIONS)
        check_range(self, "n_channels", 1, 2**16)
        number = self.n_iterations
        check(number is None or 1 <= number <= 4096, f"n_iterations must be from 1 to 4,096, got {number}")
        check(
            self.initialisation == "usual" or hasattr(model_class(self.model), "draw_as_published"),
            f"a model of class {self.model} has no initialisation {self.initialisation}: the paper has no such model",
        )
        known = constructor_options(self.model)
        for name in self.given_options:
            allowed = ", ".join(known) or "none"
            check(name in known, f"a model of class {self.model} has no option {name}; its options: {allowed}")

    @property
    def given_options(self) -> dict[str, Any]:
        """The constructor's keyword arguments that are not as by default."""
        named = {name: getattr(self, name) for name in MODEL_OPTIONS if getattr(self, name) is not None}
        return named | dict(self.options)

    def arguments(self, task: str, size: int) -> dict[str, Any]:
        """Return all keyword arguments of the constructor but for the generator, for levels of an inner size."""
        from ..learned.arguments import task_argument
        from ..weights import model_class

        n_tiles = find_task(task).n_tiles
        given = {
            "n_tiles": n_tiles,
            **task_argument(task, n_tiles),
            "n_channels": self.n_channels,
            "n_iterations": self.n_iterations,
        }
        takes_size = "size" in inspect.signature(model_class(self.model)).parameters
        return self.given_options | given | ({"size": size} if takes_size else {})


MODEL_OPTIONS = tuple(
    f.name for f in fields(ModelConfig) if f.name not in (*GIVEN, "model", "initialisation", "start_from", "options")
)
"""Fields that are passed to the model's constructor unless they are None."""


def constructor_options(model: str) -> list[str]:
    """Return the names of the options of a model's constructor.

    Raises:
        ValueError: unknown model.
    """
    from ..weights import model_class

    return [name for name in inspect.signature(model_class(model)).parameters if name not in GIVEN]


@dataclass(frozen=True)
class LevelsConfig:
    """The levels to train on.

    Raises:
        ValueError: an unknown family, or a value out of range.
    """

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
    borderless: float = 0.0
    """Fraction of every batch that has no border of walls, 0 to 1. Such levels have two rows and two columns of inner
    tiles more, so that all levels of a batch have one size. Policies trained without them fail where the border is
    missing."""
    level_set: str | None = None
    """Levels to train on in place of those that families give: the name or file of a level set, of the size in --sizes.
    Newcomers are drawn from it at random. Families, long_fraction and borderless then mean nothing."""
    dihedral: bool = False
    """Turn and mirror each level of the level_set at random whenever it is drawn."""
    validation_set: str | None = None
    """Levels to validate on: the name or file of a level set of a size in --sizes, whose first 1,024 count. None means
    levels of the paper's kind, of the first size."""

    def __post_init__(self) -> None:
        check_types(self)
        check_range(self, "long_fraction", 0, 1)
        check_range(self, "borderless", 0, 1)
        check_range(self, "long_of", 1, 1024)
        check(
            self.n_levels is None or 1 <= self.n_levels <= 2**24,
            f"n_levels must be None or from 1 to {2**24:,}, got {self.n_levels}",
        )
        check(bool(self.families), f"families must name at least one of {', '.join(FAMILIES)}")
        for family in self.families:
            check(family in FAMILIES, unknown_name("family of levels", family, FAMILIES))
        check(
            bool(self.sizes) and all(LEAST_SIZE <= size <= 1024 for size in self.sizes),
            f"sizes must be from {LEAST_SIZE} to 1,024, at least one, got {self.sizes}",
        )
        check(
            self.n_levels is None or len(self.sizes) == 1,
            f"a fixed training set has levels of one size, got sizes {self.sizes}",
        )
        if self.level_set is None:
            check(not self.dihedral, "dihedral turns the levels of a level_set, and there is none")
        else:
            check(self.n_levels is None, "a level_set has a number of levels: leave n_levels at None")
            check(len(self.sizes) == 1, f"a level_set has levels of one size, got sizes {self.sizes}")


@dataclass(frozen=True)
class LossConfig:
    """What training minimises.

    Raises:
        ValueError: an unknown loss, or a value out of range.
    """

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

    def __post_init__(self) -> None:
        from .losses import LOSSES

        check_types(self)
        check_choice(self, "loss", LOSSES)
        check_range(self, "loss_after", 0, 1024)
        check_range(self, "leniency", 0, 1)
        check_range(self, "guidance", 0, 1024)
        at = self.loss_at
        check(
            bool(at) and at[-1] == 1 and at[0] > 0 and all(a < b for a, b in itertools.pairwise(at)),
            f"loss_at must ascend within (0, 1] and end with 1, got {at}",
        )


@dataclass(frozen=True)
class OptimiserConfig:
    """What changes the weights.

    Raises:
        ValueError: an unknown optimiser or schedule, or a value out of range.
    """

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

    def __post_init__(self) -> None:
        from .optimisers import OPTIMISERS, SCHEDULES

        check_types(self)
        check_choice(self, "optimiser", OPTIMISERS)
        check_choice(self, "schedule", SCHEDULES)
        check_range(self, "learning_rate", 1e-8, 10)
        check_range(self, "ema_decay", 0, 0.999999)
        check(
            self.gradient_growth is None or 0 <= self.gradient_growth <= 1024,
            f"gradient_growth must be None or from 0 to 1,024, got {self.gradient_growth}",
        )


@dataclass(frozen=True)
class PoolConfig:
    """Levels that keep their states from update to update.

    Raises:
        ValueError: a value out of range, or one that means nothing without a pool.
    """

    pool_size: int = 0
    """Number of levels of each size that keep their states from update to update, for models whose iterations are all
    the same. 0 starts every rollout from zeros; what a preset says of its pool then means nothing."""
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

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, "pool_edits", EDITS)
        check_range(self, "pool_size", 0, 2**20)
        check_range(self, "pool_fresh", 0, 1)
        check_range(self, "pool_edited", 0, 1)
        check_range(self, "state_noise", 0, 10)
        is_idle = self.pool_edits != "few" and not self.pool_edited
        check(not is_idle, "pool_edits needs levels that are edited: set pool_edited")
        if not self.pool_size:
            idle = [name for name in ("state_noise", "pool_edited") if getattr(self, name)]
            idle += [] if self.pool_retry is None else ["pool_retry"]
            check(not idle, f"{', '.join(idle)} needs a pool: set pool_size")
            return
        check(
            self.pool_fresh + self.pool_edited <= 1,
            f"pool_fresh and pool_edited are parts of a batch, at most 1 together, got {self.pool_fresh:g} and "
            f"{self.pool_edited:g}",
        )
        check(
            self.pool_retry is None or 0 <= self.pool_retry <= 1024,
            f"pool_retry must be None or from 0 to 1,024, got {self.pool_retry}",
        )
        least, most = self.pool_steps
        check(
            1 <= least <= most <= 4096,
            f"pool_steps must be two numbers from 1 to 4,096, ascending, got {least, most}",
        )


def check(condition: bool, message: str) -> None:
    """Raise ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def check_choice(part: Any, name: str, known: Collection[str]) -> None:
    """Check that a field names a row of a table.

    Raises:
        ValueError: it does not; the message lists the rows.
    """
    value = getattr(part, name)
    check(value in known, unknown_name(name, value, known))


def check_range(part: Any, name: str, least: float, most: float) -> None:
    """Check a number.

    Raises:
        ValueError: it is out of range.
    """
    value = getattr(part, name)
    check(least <= value <= most, f"{name} must be from {least:,} to {most:,}, got {value:,}")


def check_types(part: Any) -> None:
    """Check that every field of a dataclass holds a value of its type.

    Raises:
        ValueError: one does not.
    """
    hints = get_type_hints(type(part))
    for f in fields(part):
        value = getattr(part, f.name)
        check(_is_of(value, hints[f.name]), f"{f.name} must be of type {f.type}, got {value!r}")


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of a simple type, a union or a tuple of them; integers are floats, bools no numbers."""
    arguments, origin = get_args(hint), get_origin(hint)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if not arguments or origin is Mapping:
        return isinstance(value, origin or hint)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = arguments[:1] * len(value) if Ellipsis in arguments else arguments
        return len(items) == len(value) and all(map(_is_of, value, items))
    return any(_is_of(value, argument) for argument in arguments)
