"""Questions about mazes: the two tasks of the package, and those that users add."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym import solvers
from maze_nca_gym.guidance import STEPS, Guidance, first_steps
from maze_nca_gym.levels import Tile, Tiles, clear_endpoints, read_tiles, to_text
from maze_nca_gym.names import check_count
from maze_nca_gym.orders import USUAL_ORDER, OrderedRegistry, split_order, with_order
from maze_nca_gym.scoring import IsOptimal

Rank: TypeAlias = Callable[[Tiles, NDArray[np.bool_]], NDArray[np.int64]]
"""(N, H, W) tiles and bool paths -> (N,) int64, 0 for what is no valid path, and more for a better one."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A question about mazes whose answer is a set of tiles, called the path.

    Attributes:
        name: what environments, policies and level sets call it. In an order of directions that is not the usual one,
            it ends with the order.
        n_tiles: T, kinds of tile: the channels of the one-hot maze. 4, or 2 for mazes without source and target.
        has_endpoints: whether its levels have a source and a target.
        n_channels: default number of state channels of its environments, enough for the hand-coded automaton.
        solve: (N, H, W) tiles -> (N, H, W) bool canonical solutions, empty where there is none. It may take an `order`
            of directions.
        is_optimal: (N, H, W) tiles and bool paths -> (N,) bool, whether each path is some optimal solution.
        usual_length: approximate number of tiles on the longest solutions of the paper's mazes at size 16.
        default_steps: iterations at size 16 for a model that states no number itself.
        found: what the window says when the answer is right.
        may_be_empty: whether an empty answer is valid, such as for dead ends in a maze without any. If False, a level
            whose answer is empty is unsolvable, and refused. `scoring` says how an empty answer is measured.
        guidance: (N, H, W) tiles -> `Guidance`, or its (N, G, H, W) bool channels alone, which count from the start:
            what a solver can say of every tile besides, from which networks learn far faster. None if the task brings
            none. It may take an `order` of directions.
        guided: names of the G channels of the guidance.
        rank: (N, H, W) tiles and bool paths -> (N,) int64 by which the best of several paths is chosen without the
            solution: 0 for what is no valid path, and more for a better one. None if there is no such choice.
        order: order of directions of its canonical solutions, see `solvers`.
    """

    name: str
    n_tiles: int
    has_endpoints: bool
    n_channels: int
    solve: Callable[[Tiles], NDArray[np.bool_]]
    is_optimal: IsOptimal
    usual_length: int
    default_steps: int
    found: str = "solved"
    may_be_empty: bool = False
    guidance: Callable[[Tiles], Guidance | NDArray[np.bool_]] | None = None
    guided: tuple[str, ...] = ()
    rank: Rank | None = None
    order: str = USUAL_ORDER

    def __post_init__(self) -> None:
        """Check values whose errors would be hard to explain later.

        Raises:
            ValueError: no name, or one that ends with another order; a number below 1, another number of kinds of tile
                than the levels have, or guidance without names of its channels.
        """
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"the name of a task must be text that is not empty, got {self.name!r}")
        if with_order(self.name, self.order) != self.name:
            raise ValueError(f"the name of a task ends with its order only, which is {self.order}, got {self.name!r}")
        for name in ("n_channels", "usual_length", "default_steps"):
            check_count(name, getattr(self, name))
        if (self.guidance is None) != (not self.guided):
            raise ValueError(f"guidance needs names of its channels, guided, and they need it, got {self.guided}")
        wanted = _kinds_of_tile(self.has_endpoints)
        if self.n_tiles != wanted:
            raise ValueError(
                f"n_tiles must be {wanted} where has_endpoints is {self.has_endpoints}, got {self.n_tiles!r}"
            )

    @property
    def question(self) -> str:
        """The name without the order of directions, which is the same in all orders."""
        return split_order(self.name)[0]

    def ordered(self, order: str) -> Task:
        """Return this task with canonical solutions in another order of directions.

        >>> SHORTEST_PATH.ordered("DLRU").name
        'shortest-path-DLRU'

        Raises:
            ValueError: no order, or the task's `solve` takes none.
        """
        name = with_order(self.name, order)
        if order == self.order:
            return self
        if not _takes_order(self.solve):
            raise ValueError(f"the task {self.name!r} has one order of directions only: its solve takes no `order`")
        given: dict[str, Any] = {"solve": self.solve, "guidance": self.guidance}
        ordered: dict[str, Any] = {
            part: update_wrapper(partial(function, order=order), function)
            for part, function in given.items()
            if function is not None and _takes_order(function)
        }
        return replace(self, name=name, order=order, **ordered)

    def guide(self, tiles: Tiles) -> Guidance:
        """Return the guidance of (N, H, W) levels.

        Raises:
            ValueError: the task brings none.
        """
        if self.guidance is None:
            raise ValueError(f"the task {self.name!r} brings no guidance")
        shown = self.guidance(tiles)
        return shown if isinstance(shown, Guidance) else Guidance(shown, np.zeros(tiles.shape, np.int32))

    @property
    def judge(self) -> IsOptimal | None:
        """`is_optimal` as `scoring.score` takes it: None if the compiled kernels decide it themselves."""
        return None if self.is_optimal is solvers.is_optimal and not self.may_be_empty else self.is_optimal

    def prepare(self, tiles: Tiles) -> Tiles:
        """Return (N, H, W) levels as this task has them: without source and target if it has no endpoints."""
        return tiles if self.has_endpoints else clear_endpoints(tiles)

    def solve_all(self, tiles: Tiles) -> NDArray[np.bool_]:
        """Return the canonical solutions of levels that must all be solvable, (N, H, W) bool.

        Raises:
            ValueError: a level is unsolvable or malformed.
        """
        targets = self.solve(tiles)
        solvable = self.is_answer(targets)
        if not solvable.all():
            i = int(np.argmin(solvable))
            raise ValueError(f"level {i} of {len(tiles)} is unsolvable: {self.why_unsolvable(tiles[i])}")
        return targets

    def is_answer(self, targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of the (N, H, W) bool results of `solve` are answers, (N,) bool; an empty one is only if
        `may_be_empty`."""
        return np.asarray(targets.any(axis=(1, 2)) | self.may_be_empty)

    def why_unsolvable(self, level: Tiles) -> str:
        """Return in a few words why an (H, W) level with an empty answer is unsolvable."""
        if not (level != Tile.WALL).any():
            return "it has no free tile"
        ends = [np.argwhere(level == end) for end in (Tile.SOURCE, Tile.TARGET)]
        if all(len(places) == 1 for places in ends) and solvers.distances(level)[tuple(ends[1][0])] < 0:
            return "no path joins source and target"
        return f"the answer of the task {self.name!r} is empty, and its may_be_empty is False"


def _takes_order(function: Callable[..., Any]) -> bool:
    return "order" in inspect.signature(function).parameters


def _kinds_of_tile(has_endpoints: bool) -> int:
    return len(Tile) if has_endpoints else 2


def _shorter_is_better(tiles: Tiles, paths: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return ranks of lines from source to target, (N,): the fewer tiles, the higher."""
    return np.where(solvers.is_valid(tiles, paths), 1 + (~paths).sum(axis=(1, 2)), 0)


def _longer_is_better(tiles: Tiles, paths: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return ranks of paths that are shortest between their own ends, (N,): the more tiles, the higher."""
    return np.where(solvers.is_valid(tiles, paths), paths.sum(axis=(1, 2)), 0)


SHORTEST_PATH = Task(
    name="shortest-path",
    n_tiles=len(Tile),
    has_endpoints=True,
    n_channels=11,
    solve=solvers.shortest_path,
    is_optimal=solvers.is_optimal,
    usual_length=48,
    found="shortest path found",
    guidance=first_steps,
    guided=tuple(STEPS),
    rank=_shorter_is_better,
    default_steps=96,  # two for each tile of the longest solution: a flood there and a path back
)
"""The shortest path from source to target (paper, "Computing the shortest path")."""
DIAMETER = Task(
    name="diameter",
    n_tiles=2,
    has_endpoints=False,
    n_channels=31,
    solve=solvers.diameter,
    is_optimal=solvers.is_optimal,
    usual_length=60,
    found="longest shortest path found",
    rank=_longer_is_better,
    default_steps=240,  # four for each tile: there and back, twice
)
"""The longest of the shortest paths between any two tiles (paper, "Computing the diameter")."""

_TINY = ["#####\n#S..#\n#.#.#\n#..T#\n#####", "#####\n#S.##\n##..#\n#..T#\n#####"]
"""Levels on which `register_task` tries out a task."""


def register_task(task: Task) -> Task:
    """Register a task of your own, whose name then works everywhere: environments, models, training, evaluation,
    evolution.

    New processes, such as those of asynchronous environments, must register it again.

    Its functions are tried on two tiny levels.

    Raises:
        ValueError: the name of a task of this package, or functions that return something else than they should.
    """
    if not isinstance(task, Task):
        raise ValueError(f"a Task is expected, got {task!r}")
    return TASKS.register(task.name, task)


def _try_out(name: str, task: Task) -> None:
    """Check what a task's functions return for two tiny levels."""
    tiles = task.prepare(read_tiles(_TINY))
    targets = _called(task, "solve", tiles)
    _check_result(task, "solve", targets, tiles.shape)
    judged = _called(task, "is_optimal", tiles, targets)
    _check_result(task, "is_optimal", judged, tiles.shape[:1])
    wrong = np.flatnonzero(task.is_answer(targets) & ~judged)
    if len(wrong):
        rows = to_text(tiles[wrong[0]], targets[wrong[0]]).replace("\n", "/")
        raise ValueError(f"is_optimal of the task {task.name!r} must accept what solve returns (*), but not in {rows}")
    if task.guidance is not None:
        shown = _called(task, "guide", tiles)
        _check_result(task, "guidance", shown.channels, (len(tiles), len(task.guided), *tiles.shape[1:]))
        _check_result(task, "guidance", shown.after, tiles.shape, np.int32)
    if task.rank is not None:
        ranks = _called(task, "rank", tiles, targets)
        _check_result(task, "rank", ranks, tiles.shape[:1], np.int64)


def _called(task: Task, name: str, *arguments: NDArray[Any]) -> Any:
    try:
        return getattr(task, name)(*(array.copy() for array in arguments))
    except Exception as error:
        raise ValueError(
            f"{name} of the task {task.name!r} fails on two levels of 5 x 5 tiles: {type(error).__name__}: {error}"
        ) from error


def _check_result(task: Task, name: str, result: Any, shape: tuple[int, ...], dtype: type[Any] = np.bool_) -> None:
    if not isinstance(result, np.ndarray) or result.shape != shape or result.dtype != dtype:
        got = f"{result.dtype} of {result.shape}" if isinstance(result, np.ndarray) else repr(result)
        raise ValueError(
            f"{name} of the task {task.name!r} must return a {np.dtype(dtype)} array of shape {shape} for two "
            f"levels of 5 x 5 tiles, got {got}"
        )


TASKS = OrderedRegistry("task", {task.name: task for task in (SHORTEST_PATH, DIAMETER)}, _try_out)
"""All tasks by name; `register_task` adds to them."""


def find_task(name: str, order: str | None = None) -> Task:
    """Return the task of that name, in another order of directions if one is given.

    Raises:
        ValueError: unknown name, or no order of that task.
    """
    task = TASKS.find(name)
    return task if order is None else task.ordered(order)


def usual_task(n_tiles: int) -> Task:
    """Return the first task whose mazes have this many kinds of tile; the package's own tasks come first.

    Raises:
        ValueError: no task has that many.
    """
    for task in TASKS.values():
        if task.n_tiles == n_tiles:
            return task
    known = ", ".join(f"{task.n_tiles} ({task.name})" for task in TASKS.values())
    raise ValueError(f"n_tiles must be one of {known}, got {n_tiles}")


def task_of_levels(tiles: Tiles) -> Task:
    """Return the usual task of (N, H, W) levels: shortest path if any has a source or a target, else diameter."""
    return usual_task(_kinds_of_tile(bool((tiles >= Tile.SOURCE).any())))
