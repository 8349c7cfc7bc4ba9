"""The source of an environment's levels: a generator or a set, and the functions that choose a level for each
episode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.generation import GENERATORS, Size, check_size, generator_defaults
from maze_nca_gym.mazes.levels import LevelSet, Tiles, has_border, read_tiles
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import check_flag, check_keywords
from maze_nca_gym.support.options import check

DrawOwn = Callable[[NDArray[np.intp]], Tiles]
"""A function of (n,) indices of sub-environments that returns (n, H, W) levels from an environment's own source."""
Choose = Callable[[NDArray[np.intp], DrawOwn], Tiles]
"""A function that returns the (n, H, W) levels of the episodes that begin now.

Its arguments are the (n,) indices of their sub-environments, and a `DrawOwn`.
"""


def as_drawn(rows: NDArray[np.intp], draw: DrawOwn) -> Tiles:
    """Return the (n, H, W) levels that `draw` returns for (n,) indices of sub-environments.

    This is the default `Choose`: until `choose_levels_with` is called, levels come from the environment's own source.
    """
    return draw(rows)


SIZE = 16
"""Default inner size of generated levels."""


def check_generator_options(environment: type, generator: str, levels: object, options: Iterable[str]) -> None:
    """Check the additional keywords of an environment.

    They must be options of its generator or, if `levels` are given, options of any generator.

    Raises:
        ValueError: an unknown generator.
        UnexpectedKeyword: another keyword; the message lists the keywords that the environment takes.
    """
    parameters = inspect.signature(environment).parameters.values()
    own = [parameter.name for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD]
    GENERATORS.find(generator)
    generators = [generator] if levels is None else GENERATORS
    further = dict.fromkeys(name for generator_name in generators for name in generator_defaults(generator_name))
    keywords = (name for name in options if name != "endpoints")  # which `Task.generate` refuses
    check_keywords(environment.__name__, keywords, [*own, *further, "border"])


def shape_and_border(
    size: Size | None = None,
    levels: LevelSet | str | Path | ArrayLike | None = None,
    border: bool = True,
    **others: Any,
) -> tuple[tuple[int, int], bool]:
    """Return the shape of an environment's levels and whether they have a border, without making the environment.

    Args:
        size: inner size of generated levels, `SIZE` by default.
        levels: levels to play instead of generated ones: a set, a file, a name, or (H, W) or (N, H, W) uint8 tiles.
        border: whether generated levels have a border.
        **others: other arguments of the environment, which have no effect here.

    Returns:
        (H, W) of every level, borders included, and whether a wall surrounds every level.

    Raises:
        ValueError: a bad size, file or name.
    """
    if levels is not None:
        tiles = load_levels(levels).tiles
        return tiles.shape[1:], bool(has_border(tiles).all())
    check_flag("border", border)
    rows, cols = check_size(SIZE if size is None else size)
    return ((rows + 2, cols + 2) if border else (rows, cols)), bool(border)


class LevelSource:
    """The source of one environment's levels: a generator, or a set from which levels are drawn with replacement.

    Attributes:
        task: the task of the levels.
        shape: (H, W) of every level, borders included.
        has_border: whether a wall surrounds every level.
    """

    def __init__(
        self,
        task: Task,
        size: Size | None,
        generator: str,
        levels: LevelSet | str | Path | ArrayLike | None,
        options: dict[str, Any],
        in_order: bool = False,
    ) -> None:
        """Check all arguments now, so that no `reset` fails later, except for the names of the generator and of its
        options.

        Args:
            task: the task of the levels.
            size: inner size of generated levels, `SIZE` by default.
            generator: a name in `generation.GENERATORS`.
            levels: levels to play instead of generated ones: a set, a file, a name, or tiles.
            options: options of the generator.
            in_order: whether to play the levels of a set in their order.

        Raises:
            ValueError: the option `endpoints` of all generators, an unknown file or name, a bad value, a level that is
                unsolvable, levels of another size than `size`, or `in_order` without `levels`.
        """
        check_flag("in_order", in_order)
        self.task = task
        self._set = None if levels is None else task.prepare(load_levels(levels, task).tiles)
        self._in_order = in_order
        if self._set is None:
            check(not in_order, "in_order plays a set of levels in its order: give levels= too")
            self._generator = GENERATORS[generator]
            self._size = SIZE if size is None else size
            self._options = {**options, "endpoints": task.has_endpoints}
            # Draw one level now to find errors in the options; its throw-away generator leaves the environment's
            # untouched.
            self.shape = task.generate(np.random.default_rng(0), 1, self._size, generator, **options).shape[1:]
            self.has_border = bool(options.get("border", True))
        else:
            check(not options, f"with levels=, leave out the generator options {', '.join(sorted(options))}")
            self.shape = self._set.shape[1:]
            (height, width), (rows, cols) = self.shape, (0, 0) if size is None else check_size(size)
            if size is not None and self.shape not in {(rows, cols), (rows + 2, cols + 2)}:
                raise ValueError(
                    f"levels= has levels of {height} x {width} tiles, and size={size!r} asks for {rows + 2} x "
                    f"{cols + 2} (border included): leave size out"
                )
            task.solve_all(self._set)
            self.has_border = bool(has_border(self._set).all())

    def draw(self, rng: np.random.Generator, turn: int = 0) -> Tiles:
        """Return one (H, W) level.

        Args:
            rng: source of all randomness.
            turn: the index of the level, modulo the number of levels, if a set is played in order; otherwise without
                effect.
        """
        if self._set is None:
            return self.task.marked(rng, self._generator(rng, 1, self._size, **self._options))[0]
        return self._set[turn % len(self._set) if self._in_order else rng.integers(len(self._set))]

    def requested(self, options: Mapping[str, Any], n: int = 1) -> Tiles | None:
        """Return the (N, H, W) levels chosen by the options of a reset, or None if they choose none.

        Args:
            options: with `level`, the text or tiles of one level for all episodes, or of N levels; or with `index`, one
                or N indices of levels in the environment's set, from 0.
            n: N, the number of levels that are needed.

        Raises:
            ValueError: a level that is malformed, unsolvable, or not of this environment's shape; an index that the set
                does not have, or without a set; or both options.
        """
        level, index = options.get("level"), options.get("index")
        if index is not None:
            if level is not None or self._set is None:
                other = "give index or level, not both" if level is not None else "this environment has no levels="
                raise ValueError(f"index chooses from the environment's levels: {other}")
            indices, last = as_array(index, "index"), len(self._set) - 1
            one_each = indices.dtype.kind in "iu" and indices.shape in {(), (n,)}
            if not one_each or indices.min() < 0 or indices.max() > last:
                several = "" if n == 1 else f", or {n} of them"
                raise ValueError(f"index must be an integer from 0 to {last}{several}, got {index!r}")
            return self._set[np.broadcast_to(indices, n)]
        if level is None:
            return None
        tiles = read_tiles(level, self.task.letters)
        if tiles.shape not in {self.shape, (n, *self.shape)}:
            (height, width), own = tiles.shape[-2:], self.shape
            advice = f"give 1 level{'' if n == 1 else f' or {n}'}, not {len(tiles)}"
            if (height, width) != own:
                bordered = bool(has_border(tiles.reshape(-1, height, width)).all())
                size = f"size={(height - 2, width - 2)} or " if bordered and min(height, width) > 2 else ""
                reason = "it has no border, and size is the inner size, to which a border is added: "
                advice = f"make an environment for it with {size}levels=, which takes levels of any shape"
                advice = advice if bordered else reason + advice
            raise ValueError(
                f"this environment's levels are {own[0]} x {own[1]} tiles (border included), the one given has shape "
                f"{tiles.shape}; {advice}"
            )
        levels = self.task.prepare(np.broadcast_to(tiles, (n, *self.shape)).copy())
        self.task.solve_all(levels)
        return levels
