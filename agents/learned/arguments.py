"""The arguments that the learned models have in common, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.tasks import find_task, usual_task

MOST = 2**16
"""The most channels or iterations: a bound for files that ask for absurd sizes."""


def check_shape(
    n_tiles: Any, n_channels: Any, shared_weights: Any, n_iterations: Any, *, least_channels: int = 1
) -> None:
    """Check the arguments that every model has.

    Raises:
        ValueError: tiles of no task, a number of channels or iterations out of range, or unshared weights without a
            number of iterations.
    """
    check_count("n_tiles", n_tiles, 2)
    check_count("n_channels", n_channels, least_channels)
    check_flags(shared_weights=shared_weights)
    usual_task(n_tiles)
    if n_iterations is None and not shared_weights:
        raise ValueError("n_iterations must be a number if weights are not shared: each iteration has its own")
    if n_iterations is not None:
        check_count("n_iterations", n_iterations, 1)


def unbounded_step(n_iterations: int | None, last_relu: bool) -> int | None:
    """Return the step of a model after which there is no ReLU, that of its last iteration; None if there is none.

    Raises:
        ValueError: `last_relu` is not True or False.
    """
    check_flags(last_relu=last_relu)
    return None if n_iterations is None or last_relu else n_iterations - 1


def relu_argument(last_relu: bool) -> dict[str, bool]:
    """Return a model's argument `last_relu` as files hold it: left out where it is as by default."""
    return {"last_relu": True} if last_relu else {}


def task_name(task: str | None, n_tiles: int) -> str:
    """Return the name of a model's task, by default the package's own with that number of kinds of tile.

    Raises:
        ValueError: unknown name, or a task with another number.
    """
    found = usual_task(n_tiles) if task is None else find_task(task)
    if found.n_tiles != n_tiles:
        raise ValueError(f"the task {found.name} has n_tiles={found.n_tiles}, got {n_tiles}")
    return found.name


def task_argument(task: str, n_tiles: int) -> dict[str, str]:
    """Return a model's argument `task` as files hold it: left out where the number of kinds of tile implies it."""
    return {} if usual_task(n_tiles).name == task else {"task": task}


def check_count(name: str, value: Any, least: int, most: int = MOST) -> None:
    """Check that a value is an integer from `least` to `most`.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, got {value!r}")


def check_state_limit(value: Any) -> float:
    """Return a bound of states as a float.

    Raises:
        ValueError: it is not a number, or leaves no room for a path, whose tiles are above 1/2.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.5 < value <= STATE_LIMIT:
        raise ValueError(f"state_limit must be a number above 0.5, at most {STATE_LIMIT:,.0f}, or None, got {value!r}")
    return float(value)


def check_flags(**flags: Any) -> None:
    """Check that all are True or False.

    Raises:
        ValueError: one is not.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")


def names_of_channels(names: Sequence[str] | None, n_channels: int, pooled: Sequence[str] = ()) -> list[str]:
    """Return the given names, checked, or else path, hidden_1, hidden_2, ..., and the pooled ones.

    Raises:
        ValueError: another number of names than channels, or a name that occurs twice.
    """
    if names is None:
        return ["path", *(f"hidden_{i}" for i in range(1, n_channels - len(pooled))), *pooled]
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"channel_names must be a sequence of strings, got {names!r}")
    if len(names) != n_channels or len(set(names)) != n_channels:
        raise ValueError(f"channel_names must be {n_channels} different names, got {list(names)}")
    return list(names)
