"""Checks of a configuration."""

from __future__ import annotations

import itertools
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from maze_nca_gym.families import FAMILIES
from maze_nca_gym.names import unknown_name
from maze_nca_gym.population.population import PARENTS
from maze_nca_gym.tasks import TASKS, find_task

from ..weights import MODELS
from .editing import EDITS
from .losses import GUIDED, LOSSES
from .optimisers import OPTIMISERS, SCHEDULES

if TYPE_CHECKING:
    from .config import TrainingConfig

PRECISIONS = ("float32", "bfloat16")
LEAST_SIZE = 4
"""Smaller levels of some families do not exist, hence no sets that are held out."""
EVOLUTION = (
    "population_size",
    "population_fresh",
    "evolve_every",
    "evolve_below",
    "n_offspring",
    "parents",
    "mutation",
    "tile_rate",
    "source_rate",
    "n_edits",
    "prioritisation",
    "temperature",
    "top_k",
    "staleness_weight",
    "eviction",
    "score",
)
"""Fields that mean nothing without `evolve`."""


def check(condition: bool, message: str) -> None:
    """Raise ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def check_values(config: TrainingConfig) -> None:
    """Check every field, and those that go together.

    Raises:
        ValueError: what is wrong and what is allowed.
    """
    _check_types(config)
    _check_choices(config)
    _check_ranges(config)
    for family in config.families:
        check(family in FAMILIES, unknown_name("family of levels", family, FAMILIES))


def _check_types(config: TrainingConfig) -> None:
    hints = get_type_hints(type(config))
    for field in fields(config):
        value = getattr(config, field.name)
        check(_is_of(value, hints[field.name]), f"{field.name} must be of type {field.type}, got {value!r}")


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of a simple type, a union or a tuple of them; an integer is a float, a bool no
    number."""
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
        "optimiser": OPTIMISERS,
        "schedule": SCHEDULES,
        "precision": PRECISIONS,
        "parents": PARENTS,
        "pool_edits": EDITS,
    }
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            raise ValueError(unknown_name(name, getattr(config, name), allowed))


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
        "pool_edited": (0, 1),
        "loss_after": (0, 1024),
        "leniency": (0, 1),
        "guidance": (0, 1024),
        "state_noise": (0, 10),
        "population_size": (1, 2**20),
        "population_fresh": (0, 1),
        "evolve_every": (1, 10**9),
        "evolve_below": (0, 100),
        "n_offspring": (1, 2**20),
        "tile_rate": (0, 1),
        "source_rate": (0, 1),
        "n_edits": (1, 1024),
        "temperature": (1e-3, 1000),
        "top_k": (1, 2**20),
        "staleness_weight": (0, 1),
        "learning_rate": (1e-8, 10),
        "seed": (0, 2**63 - 1),
    }
    for name, (least, most) in ranges.items():
        if not least <= getattr(config, name) <= most:
            raise ValueError(f"{name} must be from {least:,} to {most:,}, got {getattr(config, name):,}")
    check(
        config.n_levels is None or 1 <= config.n_levels <= 2**24,
        f"n_levels must be None or from 1 to {2**24:,}, got {config.n_levels}",
    )
    check(bool(config.families), f"families must name at least one of {', '.join(FAMILIES)}")
    check(
        bool(config.sizes) and all(LEAST_SIZE <= size <= 1024 for size in config.sizes),
        f"sizes must be from {LEAST_SIZE} to 1,024, at least one, got {config.sizes}",
    )
    at = config.loss_at
    check(
        bool(at) and at[-1] == 1 and at[0] > 0 and all(a < b for a, b in itertools.pairwise(at)),
        f"loss_at must ascend within (0, 1] and end with 1, got {at}",
    )
    check(
        config.gradient_growth is None or 0 <= config.gradient_growth <= 1024,
        f"gradient_growth must be None or from 0 to 1,024, got {config.gradient_growth}",
    )
    _check_guidance(config)
    if config.leniency:
        check(find_task(config.task).judge is None, f"leniency is for the tasks of this package, not {config.task}")
    _check_lengths(config)
    _check_pool(config)
    _check_evolution(config)
    _check_newcomers(config)


def _check_newcomers(config: TrainingConfig) -> None:
    """Check that every update has either no fresh levels or some of every family."""
    option = "pool_fresh" if config.pool_size else "population_fresh" if config.evolve else None
    none_wanted = option is not None and not getattr(config, option)
    check(
        config.n_fresh >= len(config.families) or none_wanted,
        f"an update needs a fresh level of each of {len(config.families)} families, it has {config.n_fresh}: "
        f"raise batch_size{f' or {option}' if option else ''}",
    )


def _check_lengths(config: TrainingConfig) -> None:
    if config.n_layers is None:
        check(config.model == "NCA", f"n_layers must be a number for a model of class {config.model}")
        check(config.pool_size > 0, "n_layers must be a number unless there is a pool, which draws the iterations")
    else:
        check(1 <= config.n_layers <= 4096, f"n_layers must be from 1 to 4,096, got {config.n_layers}")
    fixed_size = config.model == "MLP"
    check(not fixed_size or len(config.sizes) == 1, f"an MLP is built for one size, got sizes {config.sizes}")
    check(
        config.n_levels is None or len(config.sizes) == 1,
        f"a fixed training set has levels of one size, got sizes {config.sizes}",
    )


def _check_guidance(config: TrainingConfig) -> None:
    if config.guidance:
        check(config.task == "shortest-path", f"guidance is for the task shortest-path, not {config.task}")
        least = GUIDED.stop + 2 * bool(config.max_pool)
        check(config.n_channels >= least, f"guidance needs at least {least} channels, got {config.n_channels}")


def _check_pool(config: TrainingConfig) -> None:
    is_idle = config.pool_edits != "few" and not config.pool_edited
    check(not is_idle, "pool_edits needs levels that are edited: set pool_edited")
    if not config.pool_size:
        idle = [name for name in ("state_noise", "pool_edited") if getattr(config, name)]
        idle += [] if config.pool_retry is None else ["pool_retry"]
        check(not idle, f"{', '.join(idle)} needs a pool: set pool_size")
        return
    check(
        config.pool_size >= config.batch_size,
        f"pool_size must be 0 or at least batch_size {config.batch_size}, got {config.pool_size}",
    )
    check(config.n_levels is None, "a pool takes fresh levels: leave n_levels at None")
    check(
        config.model == "NCA" and config.shared_weights is not False and config.skip_connections is not False,
        "a pool needs an NCA with shared weights and skip connections: other models depend on the step",
    )
    check(
        config.pool_fresh + config.pool_edited <= 1,
        f"pool_fresh and pool_edited are parts of a batch, at most 1 together, got {config.pool_fresh:g} and "
        f"{config.pool_edited:g}",
    )
    check(
        config.pool_retry is None or 0 <= config.pool_retry <= 1024,
        f"pool_retry must be None or from 0 to 1,024, got {config.pool_retry}",
    )
    least, most = config.pool_steps
    check(1 <= least <= most <= 4096, f"pool_steps must be two numbers from 1 to 4,096, ascending, got {least, most}")


def _check_evolution(config: TrainingConfig) -> None:
    if not config.evolve:
        idle = [f.name for f in fields(config) if f.name in EVOLUTION and getattr(config, f.name) != f.default]
        check(not idle, f"without levels that evolve there is no {', '.join(idle)}: set evolve")
        return
    check(not config.pool_size, "levels that evolve have no states that last: set pool_size to 0, or leave evolve out")
    check(not config.leniency, "leniency is not for levels that evolve: regret needs one solution")
    check(len(config.sizes) == 1, f"levels that evolve are of one size, got sizes {config.sizes}")
    check(
        config.n_levels is None or config.n_levels <= config.population_size,
        f"n_levels must be at most population_size {config.population_size:,}, got {config.n_levels}",
    )
