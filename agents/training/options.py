"""The options of a training run, in groups, each of which has the rules between its own options.

`TrainingConfig` has the fields of all groups. A group is a heading of the help, and no record of its own. Importing
this loads no torch: registries of models, losses and optimisers are imported when a configuration is made. An option
has the same name everywhere: here, in `changed`, on the command line and in files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Annotated, Any, Literal, Optional, cast

from maze_nca_gym.mazes.families import FAMILIES, LEAST_SIZE
from maze_nca_gym.mazes.tasks import TASKS
from maze_nca_gym.support.names import did_you_mean, with_known
from maze_nca_gym.support.options import (
    REQUIRED,
    Between,
    OneOf,
    Option,
    ReadOnly,
    Shown,
    check,
    options_of,
    options_of_call,
    options_of_each,
)

from ..policies.architectures import ARCHITECTURES
from .editing import EDITS

INITIALISATIONS = ("usual", "paper")
PRECISIONS = ("float32", "tf32", "bfloat16")
GIVEN = ("n_tiles", "task", "n_channels", "n_iterations", "size", "generator")
"""Arguments of a model's constructor that the run sets, so they are no options of the model."""


def _registry(module: str, name: str) -> Callable[[], Collection[str]]:
    """Return a function that returns a registry, and imports its module only then, since that loads torch."""
    return lambda: cast(Collection[str], getattr(import_module(module, __package__), name))


def options_of_model(model: Any) -> Mapping[str, Option]:
    """Return the options of a model's constructor by name; none for an unknown model, which is rejected elsewhere.

    None stands for the default of each option that has one, unless the constructor takes None for something else. Only
    a user's own model loads torch.
    """
    if model in tuple(ARCHITECTURES):
        return _or_none(options_of(ARCHITECTURES[model]))
    from ..policies.weights import MODELS, model_class

    if model not in tuple(MODELS):
        return {}
    kind: Any = model_class(model)
    return _or_none(options_of_call(kind, leave_out=GIVEN))


def _or_none(options: Mapping[str, Option]) -> dict[str, Option]:
    by_name = dict(options)
    for name, option in options.items():
        if option.default is None or not (option.default is REQUIRED or option.optional):
            words = option.style.default or str(option.default)
            # not `|`, which refuses what is no type, as a user's annotation may be
            kind = Optional[option.type]  # type: ignore[name-defined] # noqa: UP045
            by_name[name] = replace(option, type=kind, default=None, style=Shown(default=words))
    return by_name


MODEL_OPTIONS = _or_none(options_of_each({name: options_of(kind) for name, kind in ARCHITECTURES.items()}))
"""Options of the models of this package by name."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of the run as a whole, such as its task and its number of updates."""

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
    bfloat16 (autocast). On GPUs the last two are faster. On a CPU, bfloat16 is faster on an AMD EPYC with AVX512_BF16,
    and slower on an Intel Xeon and on CPUs without AVX512_BF16."""
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


@dataclass(frozen=True)
class ModelOptions:
    """Options of the model: its architecture, and the network from which its weights start."""

    model: Annotated[str, OneOf(_registry("..policies.weights", "MODELS"))] = "NCA"
    """Class of the model: NCA, GCN, GAT or MLP."""
    n_channels: Annotated[int, Between(1, 2**16)] = 32
    """Number of channels of the state; the first is the predicted path."""
    n_iterations: Annotated[int | None, Between(1, 4096)] = 32
    """Iterations of an episode, 1 to 4,096; the last has no ReLU, unless last_relu. None, with a pool only: every
    iteration has one."""
    initialisation: Annotated[str, OneOf(INITIALISATIONS)] = "usual"
    """Distribution of the initial weights: usual, or paper for the distribution in the paper's code."""
    start_from: str | None = None
    """NCA: network from which training starts: a name from `policies list` or a model file (*.safetensors). Its weights
    become those of the first channels. All other channels start with random weights and do not feed into the first
    ones; with max-pooling there must be no others. None means random weights only."""
    model_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Further keyword arguments of the model's constructor by name; an argument that is not here has its default."""

    def _check_model_options(self) -> None:
        """Check the further arguments of the model's constructor, and store them in their plain form.

        Raises:
            ValueError: an option that the constructor does not take, a value out of range, or a missing one.
        """
        own = options_of_model(self.model)
        known, values = {**MODEL_OPTIONS, **own}, {}
        for name, value in self.model_options.items():
            wrong, allowed = f"a model of class {self.model} has no option {name}", ", ".join(own) or "none"
            message = with_known(wrong, did_you_mean(name, own), f"its options: {allowed}")
            check(name in known, message)
            checked = known[name].check(value)
            if checked is not None or known[name].default is not None:
                check(name in own, message)
                values[name] = checked
        object.__setattr__(self, "model_options", ReadOnly(values))
        lacking = [name for name, option in own.items() if option.default is REQUIRED and name not in values]
        check(not lacking, f"a model of class {self.model} needs {', '.join(lacking)}")
        if self.initialisation != "usual":
            from ..policies.weights import model_class

            lacking_it = f"a model of class {self.model} has no initialisation {self.initialisation}"
            is_published = hasattr(model_class(self.model), "draw_as_published")
            check(is_published, f"{lacking_it}: the paper has no such model")


@dataclass(frozen=True)
class LevelsOptions:
    """The levels to train on."""

    families: Annotated[tuple[str, ...], OneOf(FAMILIES, "family of levels")] = ("random",)
    """Families of levels, the same as for test sets; every batch has equal parts of each."""
    sizes: Annotated[tuple[int, ...], Between(LEAST_SIZE, 1024)] = (16,)
    """Inner sizes of the levels, 4 to 1,024. With several, each update draws one of the sizes that are in use: of k
    sizes, the i-th comes into use after (i - 1) / k of the updates."""
    n_levels: Annotated[int | None, Between(1, 2**24)] = None
    """Number of levels of a fixed training set. None means fresh levels at every update. With --evolve: number of
    levels of the first population; None means a full one."""
    long_fraction: Annotated[float, Between(0, 1)] = 0.0
    """Fraction of every batch that has long solutions, 0 to 1: each of these levels has the longest solution of several
    candidates (--long-of)."""
    long_of: Annotated[int, Between(1, 1024)] = 4
    """Number of candidates for each level of --long-fraction; the one with the longest solution is taken."""
    borderless: Annotated[float, Between(0, 1)] = 0.0
    """Fraction of every batch that has no border of walls, 0 to 1. Such levels have two more rows and columns of inner
    tiles, so that all levels of a batch have one shape. Policies trained without them fail where the border is
    missing."""
    level_set: str | None = None
    """Levels to train on instead of generated ones: the name or file of a level set, of the size in --sizes. Levels are
    drawn from it at random. Families, long_fraction and borderless then have no effect."""
    dihedral: bool = False
    """Rotate and mirror each level of the level_set at random whenever it is drawn."""
    validation_set: str | None = None
    """Levels to validate on: the name or file of a level set of a size in --sizes, of which the first 1,024 are used.
    None means levels of the paper's kind, of the first size."""

    def _check_levels(self) -> None:
        """Raise ValueError where options of the levels contradict each other."""
        check(bool(self.families), f"families must name at least one of {', '.join(FAMILIES)}")
        check(bool(self.sizes), "sizes must hold at least one number")
        one_size = f"a fixed training set has levels of one size, got sizes {self.sizes}"
        check(self.n_levels is None or len(self.sizes) == 1, one_size)
        if self.level_set is None:
            check(not self.dihedral, "dihedral turns the levels of a level_set, and there is none")
        else:
            check(self.n_levels is None, "a level_set has a number of levels: leave n_levels at None")
            check(len(self.sizes) == 1, f"a level_set has levels of one size, got sizes {self.sizes}")


@dataclass(frozen=True)
class LossOptions:
    """The loss that training minimises."""

    loss: Annotated[str, OneOf(_registry(".losses", "LOSSES"))] = "mse"
    """Loss of the path channel, averaged over tiles and levels: mse or cross-entropy."""
    loss_steps: tuple[float, ...] = (1.0,)
    """Fractions of the iterations after which the loss is taken; the losses are summed. Ascending, in (0, 1], the last
    is 1."""
    loss_after: Annotated[float, Between(0, 1024)] = 0.0
    """Iterations per tile of its solution before a level counts in a loss. With 1, a signal could have crossed the
    solution by then; 0 counts all levels."""
    nearest_solution: Annotated[float, Between(0, 1)] = 0.0
    """Which of several optimal solutions is the target, 0 to 1. 0 means the canonical one. 1 means the one nearest to
    the path at the end of the rollout. In between, 1 - nearest_solution is added to each tile of the canonical one."""
    guidance: Annotated[float, Between(0, 1024)] = 0.0
    """Weight of a second loss on the channels after the path, for tasks that bring guidance; 0 means none. The shortest
    path's channels predict the first step of the solution from each tile: up, left, down or right. A tile counts after
    as many iterations as it has moves to the target. With 1, training needs many times fewer updates. The diameter's
    channels predict the ways to the centre and into the deepest branch; they help on perfect mazes, and harm where
    there are loops."""

    def _check_loss(self) -> None:
        """Raise ValueError unless the moments of the loss ascend to the end of a rollout."""
        at = self.loss_steps
        ascend = all(before < after for before, after in itertools.pairwise((0, *at)))
        check(ascend and at[-1:] == (1,), f"loss_steps must ascend within (0, 1] and end with 1, got {at}")


@dataclass(frozen=True)
class OptimiserOptions:
    """The optimiser, its learning rate and its schedule."""

    optimiser: Annotated[str, OneOf(_registry(".optimisers", "OPTIMISERS"))] = "adam"
    """Optimiser: adam, or soap, which needs fewer updates. Soap is Adam in a basis in which the entries of a layer's
    gradient hardly correlate."""
    learning_rate: Annotated[float, Between(1e-8, 10)] = 1e-3
    """Highest learning rate of the schedule."""
    schedule: Annotated[str, OneOf(_registry(".optimisers", "SCHEDULES"))] = "constant"
    """Schedule of the learning rate: constant, or one-cycle (cosine: up during the first 10 %, then down to almost
    0)."""
    weight_decay: Annotated[float, Between(0, 10)] = 0.0
    """Weight decay, decoupled from the gradients as in AdamW: every update shrinks the weights by this times the
    learning rate. Biases do not decay."""
    normalise_gradients: bool = True
    """Divide the gradient of every parameter by its norm. The paper's code does; its text does not mention it."""
    gradient_growth: Annotated[float | None, Between(0, 1024)] = None
    """Largest growth of a level's state gradient per step back, as a factor; 1 stops explosions, None means no
    limit."""
    ema_decay: Annotated[float, Between(0, 0.999999)] = 0.0
    """Highest decay of the moving average of the weights, which is validated and saved as the model; 0 means no
    average."""


@dataclass(frozen=True)
class PoolOptions:
    """Levels that keep their states from update to update."""

    pool_size: Annotated[int, Between(0, 2**20)] = 0
    """Number of levels of each size that keep their states from update to update, for models whose iterations are all
    the same. 0 starts every rollout from zeros; the other options of a preset's pool then have no effect."""
    pool_fresh: Annotated[float, Between(0, 1)] = 0.25
    """Fraction of every batch that is fresh: levels that replace others in the pool."""
    pool_edited: Annotated[float, Between(0, 1)] = 0.0
    """Fraction of every batch whose levels are edited while their states stay."""
    pool_edits: Annotated[str, OneOf(EDITS)] = "few"
    """Kind of edits. few: two new walls, gaps, sources or targets. all-kinds: of twenty levels, six are exchanged,
    eight get a gap, three a wall on their solution, after which there may be none, and three get 2 to 40 edits. With
    all-kinds, solutions are due 8 iterations later."""
    pool_steps: Annotated[tuple[int, int], Between(1, 4096)] = (12, 24)
    """Smallest and largest number of iterations of an update with a pool; each update draws the number."""
    pool_retry: Annotated[float | None, Between(0, 1024)] = None
    """Iterations per tile of its solution after which, plus one update, a level of the pool is due. Levels that are due
    and wrong restart from an empty state; those that are correct are replaced or edited first. So hard levels stay and
    are tried again, which helps runs with guidance, and short runs without (LOG.md). None means that states are kept
    and fresh levels replace random ones."""
    state_noise: Annotated[float, Between(0, 10)] = 0.0
    """Standard deviation of the noise added to the states of a pool before a rollout."""

    def _check_pool(self) -> None:
        """Raise ValueError where options of the pool contradict each other, or have no effect without a pool."""
        is_idle = self.pool_edits != "few" and not self.pool_edited
        check(not is_idle, "pool_edits needs levels that are edited: set pool_edited")
        if not self.pool_size:
            of_pool = ("state_noise", "pool_edited", "pool_retry")
            idle = [name for name in of_pool if getattr(self, name) != getattr(PoolOptions, name)]
            check(not idle, f"{', '.join(idle)} needs a pool: set pool_size")
            return
        fractions = f"at most 1 together, got {self.pool_fresh:g} and {self.pool_edited:g}"
        is_part = self.pool_fresh + self.pool_edited <= 1
        check(is_part, f"pool_fresh and pool_edited are fractions of a batch, {fractions}")
        check(self.pool_steps[0] <= self.pool_steps[1], f"pool_steps must ascend, got {self.pool_steps}")
