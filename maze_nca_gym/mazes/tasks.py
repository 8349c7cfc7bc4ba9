"""Tasks: questions about mazes. The package has two, the shortest path and the diameter, and users register their
own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial, update_wrapper, wraps
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.arrays import MazePicture, broken_axioms
from maze_nca_gym.mazes.facts import CENTRE, Ghosts, answer_read_once
from maze_nca_gym.mazes.generation import Size, generate
from maze_nca_gym.mazes.guidance import STEPS, Guidance, branches, first_steps
from maze_nca_gym.mazes.levels import (
    KINDS,
    MOST_KINDS,
    Kind,
    LevelSet,
    Tile,
    Tiles,
    clear_endpoints,
    read_tiles,
    to_text,
)
from maze_nca_gym.mazes.orders import USUAL_ORDER, OrderedRegistry, split_order, with_order
from maze_nca_gym.mazes.relations import Fixpoint, canonical_path, has_known_axioms, known_axioms
from maze_nca_gym.mazes.scoring import IsOptimal, lengths_of
from maze_nca_gym.mazes.small import MOST_OF_LIBRARY, larger_mazes, mazes_to_try, small_mazes
from maze_nca_gym.mazes.text import digest, printed_answers, printed_function, printed_ghosts
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import check_count, check_flag, unknown_name
from maze_nca_gym.support.options import ReadOnly

Rank: TypeAlias = Callable[[Tiles, NDArray[np.bool_]], NDArray[np.int64]]
"""A function of (N, H, W) tiles and bool paths that returns (N,) int64: 0 for an invalid path, and a larger number for
a better path."""
MANY = np.iinfo(np.int64).max
"""The largest number of tiles of a kind whose number is not limited."""
COUNTS = {"one": (1, 1), "at least one": (1, MANY), "at most one": (0, 1), "any": (0, MANY)}
"""The least and largest number of tiles of a kind, by the words that `Task.counts` uses."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A question about mazes whose answer is a set of tiles, called the path, or several such sets, one for each
    channel.

    Attributes:
        name: its name in environments, policies and level sets. A task with another than the usual order of directions
            has the order at the end of its name.
        kinds: the T kinds of tile of its levels, at most 64. The value of a tile is its index among them, and each kind
            is a channel of the one-hot maze. The first two are always empty and wall. With source and target as the
            next two, generated levels have one of each, joined by a path. All further kinds are the task's own.
        answers: names of the K channels of an answer, which are the first channels of a state. Answers are (N, H, W)
            everywhere if K is 1, and otherwise (N, K, H, W). For example, an answer can have a channel for the way to a
            key and a channel for the way on from there.
        mark: function of a random generator and (N, H, W) generated tiles that returns the task's levels in the same
            shape, with its own kinds of tile or more targets added. The returned levels must be solvable. It is not
            called for levels that users give. None if generated levels need no changes.
        counts: how many tiles of a kind each level has, by the kind's name: "one", "at least one", "at most one" or
            "any". All levels with another number are refused, and proofs may use these numbers. The default is "one"
            for source and target if the task has both and no `mark`, and "any" for all other kinds. If the
            specification is only true of levels with at most one tile of a kind, such as the start of
            `ghosts.canonical_path`, the number is limited to one as well.
        n_channels: default number of state channels of its environments, enough for the hand-coded automaton.
        solve: function of (N, H, W) tiles that returns the canonical solutions as bool, (N, H, W) or with K channels
            (N, K, H, W). The solution of a level that has none is empty. The function must not change the tiles, and
            must always return the same solutions for them. It may take an `order` of directions.
        is_optimal: function of (N, H, W) tiles and bool paths of the answers' shape that returns (N,) bool: whether
            each path is some optimal solution. By default only the canonical solution is optimal.
        usual_length: approximate number of tiles, summed over all channels, on the longest solutions of the paper's
            mazes at size 16.
        default_steps: number of iterations at size 16 for a model that does not define its own.
        found: the text that the window shows when the answer is correct.
        may_be_empty: whether an empty answer is valid, for example the dead ends of a maze without any. If False, a
            level with an empty answer is unsolvable, and is refused. `scoring` describes how an empty answer is
            measured.
        guidance: function of (N, H, W) tiles that returns further facts about every tile, from which networks learn far
            faster. It returns a `Guidance`, or (N, G, H, W) bool channels alone, which then count from the first
            iteration. It may take an `order` of directions. None if the task has no guidance.
        guided: names of the G channels of the guidance.
        rank: function of (N, H, W) tiles and bool paths that returns (N,) int64 ranks, by which the best of several
            paths is chosen without the solution: 0 for an invalid path, and a larger number for a better path. None if
            there are no ranks, as for every task with several channels.
        order: the order of directions of its canonical solutions, see `solvers`.
        specification: function without arguments that returns the task's `Ghosts`, with an entry in `Ghosts.answers`
            for each channel. They state the answer in terms of facts about the maze (`relations`), and a proof must
            show that an automaton draws this answer. It may take an `order` of directions. The default is the
            specification of `solve` if that is a `relations.fixpoint`, and else None: then automata can be tested but
            not proven correct.
    """

    name: str
    kinds: tuple[Kind, ...] = KINDS
    answers: tuple[str, ...] = ("path",)
    mark: Callable[[np.random.Generator, Tiles], Tiles] | None = None
    counts: Mapping[str, str] = field(default_factory=dict, hash=False)
    n_channels: int = 8
    solve: Callable[[Tiles], NDArray[np.bool_]]
    is_optimal: IsOptimal = None  # type: ignore[assignment]  # `__post_init__` has the default, which needs `solve`
    usual_length: int = 64
    default_steps: int = 64
    found: str = "solved"
    may_be_empty: bool = False
    guidance: Callable[[Tiles], Guidance | NDArray[np.bool_]] | None = None
    guided: tuple[str, ...] = ()
    rank: Rank | None = None
    order: str = USUAL_ORDER
    specification: Callable[[], Ghosts] | None = None

    def __reduce__(self) -> tuple[Callable[[str], Task], tuple[str]]:
        """Pickle the task as its name, which `find_task` looks up again: a user's functions may not be picklable."""
        return find_task, (self.name,)

    def __deepcopy__(self, memo: object) -> Task:
        return self  # it never changes; another may be registered by its name

    def __repr__(self) -> str:
        kinds = ", ".join(kind.name for kind in self.kinds)
        return f"Task({self.name}: {', '.join(self.answers)} in mazes of {kinds})"

    def __post_init__(self) -> None:
        """Check values whose errors would be hard to explain later.

        Raises:
            ValueError: the message names the attribute and the allowed values. For example, a name ends with another
                order, two kinds of tile share a letter, or an answer has more channels than a state.
        """
        if self.is_optimal is None or getattr(self.is_optimal, "__func__", None) is Task._is_canonical:
            # that of another task, if `replace` made this one of it
            object.__setattr__(self, "is_optimal", self._is_canonical)
        if isinstance(self.solve, Fixpoint) and self.specification is None:
            object.__setattr__(self, "specification", self.solve.specification)
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"the name of a task must be text that is not empty, got {self.name!r}")
        if with_order(self.name, self.order) != self.name:
            raise ValueError(f"the name of a task may only end with its own order, {self.order}, got {self.name!r}")
        for name in ("n_channels", "usual_length", "default_steps"):
            check_count(name, getattr(self, name))
        check_flag("may_be_empty", self.may_be_empty)
        named = isinstance(self.answers, tuple) and all(isinstance(name, str) and name for name in self.answers)
        if not named or not self.answers or len({*self.answers, *self.guided}) < len(self.answers) + len(self.guided):
            raise ValueError(
                f"answers of the task {self.name!r} must be a tuple of one or more different names, and none of "
                f"these in guided, got {self.answers!r}"
            )
        check_count(f"n_channels of the task {self.name!r}", self.n_channels, len(self.answers))
        if len(self.answers) > 1 and self.rank is not None:
            raise ValueError(
                f"a rank is for answers of one channel, but the answers of {self.name!r} have {len(self.answers)}"
            )
        if (self.guidance is None) != (not self.guided):
            raise ValueError(f"guidance and guided, the names of its channels, need each other, got {self.guided}")
        if not all(isinstance(kind, Kind) for kind in self.kinds) or self.kinds[:2] != KINDS[:2]:
            such = '(*KINDS, Kind("water", "w", "#56b4e9"))'
            raise ValueError(f"kinds of the task {self.name!r} must be Kinds that begin with KINDS[:2], such as {such}")
        if len(self.kinds) > MOST_KINDS:
            raise ValueError(f"a task has at most {MOST_KINDS} kinds of tile, got {len(self.kinds)}")
        for attribute in ("name", "letter"):
            values = [getattr(kind, attribute) for kind in self.kinds]
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"two kinds of tile of the task {self.name!r} have the {attribute} {', '.join(twice)}")
        names = [kind.name for kind in self.kinds]
        if not isinstance(self.counts, Mapping):
            raise ValueError(f"counts of the task {self.name!r} must be words by kind of tile, got {self.counts!r}")
        for name, count in self.counts.items():
            if name not in names:
                raise ValueError(unknown_name(f"kind of tile in counts of the task {self.name!r}", name, names))
            if count not in COUNTS:
                raise ValueError(unknown_name(f"number of tiles of the kind {name} in counts", count, COUNTS))
        object.__setattr__(self, "counts", ReadOnly(self.counts))
        for number, name in sorted(self.solve.kinds) if isinstance(self.solve, Fixpoint) else ():
            self.check_kind("a rule of its fixpoint", number, name)

    def check_kind(self, who: str, number: int, name: str = "") -> None:
        """Check that the task has a kind of tile.

        Args:
            who: the beginning of the message: the reader of the kind, such as "a rule of its fixpoint".
            number: the number of the kind.
            name: the name that the kind must have, or "" for any name.

        Raises:
            ValueError: the task has no such kind.
        """
        kinds = [kind.name.lower() for kind in self.kinds]
        # Tile.SOURCE is 2, which may be another kind of the task
        if not 0 <= number < len(kinds) or name.lower() not in ("", kinds[number]):
            kind = f"{number}, {name.lower()}".rstrip(", ")
            known = ", ".join(f"{i} {kind.name}" for i, kind in enumerate(self.kinds))
            raise ValueError(
                f"{who} reads the kind of tile {kind}, but the task {self.name} has {known}; "
                "more kinds are `Task(kinds=(*KINDS, Kind(name, letter, colour)), ...)`"
            )

    def _is_canonical(self, tiles: Tiles, paths: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether each path is the canonical solution, see `is_optimal`."""
        return cast("NDArray[np.bool_]", (paths == self.solve(tiles)).all(axis=tuple(range(1, paths.ndim))))

    @property
    def n_tiles(self) -> int:
        """T, the number of kinds of tile. Each kind is a channel of the one-hot maze."""
        return len(self.kinds)

    @cached_property
    def ghosts(self) -> Ghosts | None:
        """The ghosts that `specification` returns, or None if the task has no specification. Each fact of the answers
        is called once, with symbols.

        Raises:
            ValueError: the result is no `Ghosts` with an answer for each channel, or an answer does more than joining
                the values that it reads by operators.
        """
        if self.specification is None:
            return None
        ghosts = self.specification()
        if not isinstance(ghosts, Ghosts) or len(ghosts.answers) != len(self.answers):
            got = f"{len(ghosts.answers)}" if isinstance(ghosts, Ghosts) else repr(ghosts)
            must = f"must return Ghosts with {len(self.answers)} answers"
            raise ValueError(f"the specification of the task {self.name!r} {must}, got {got}")
        return replace(ghosts, answers=tuple(map(answer_read_once, ghosts.answers)))

    @cached_property
    def count_limits(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the largest number of tiles of each kind that a level may have, two (T,) int64 arrays."""
        usual = dict.fromkeys(("source", "target"), "one") if self.has_endpoints and self.mark is None else {}
        counts = [COUNTS[{**usual, **self.counts}.get(kind.name, "any")] for kind in self.kinds]
        least, most = np.array(counts, np.int64).T.copy()
        for kind in () if self.ghosts is None else known_axioms(self.ghosts).single:
            most[kind : kind + 1] = np.minimum(most[kind : kind + 1], 1)
        return least, most

    @cached_property
    def _limited(self) -> tuple[tuple[int, int, int], ...]:
        """The kinds of tile whose number is limited, each as (kind, least, most)."""
        limits = enumerate(zip(*(limit.tolist() for limit in self.count_limits), strict=True))
        return tuple((kind, *limit) for kind, limit in limits if limit != COUNTS["any"])

    @property
    def drawn(self) -> int | slice:
        """Index of the channels of a state that draw the answer: 0, or a slice of the first K. `states[:, task.drawn]`
        is (N, H, W) or (N, K, H, W)."""
        return 0 if len(self.answers) == 1 else slice(len(self.answers))

    def check_channels(self, n_channels: int | None) -> int:
        """Return the number of channels of a state: `n_channels`, or the task's default if that is None.

        Raises:
            ValueError: a state would have fewer channels than an answer.
        """
        return check_count("n_channels", self.n_channels if n_channels is None else n_channels, len(self.answers))

    def shape_of_answers(self, n: int, height: int, width: int) -> tuple[int, ...]:
        """Return the shape of the answers of n levels with H rows and W columns, (n, H, W) or (n, K, H, W)."""
        return (n, height, width) if len(self.answers) == 1 else (n, len(self.answers), height, width)

    def to_text(self, level: Tiles, answer: NDArray[np.bool_]) -> str:
        """Return a level with its answer as text.

        Args:
            level: (H, W) uint8.
            answer: (H, W) or (K, H, W) bool. With K channels, the text has a drawing for each channel, below its name.
        """
        if answer.ndim == 2:
            return to_text(level, answer, self.letters)
        drawings = zip(self.answers, answer, strict=True)
        return "\n\n".join(f"{name}:\n{to_text(level, path, self.letters)}" for name, path in drawings)

    def in_a_line(self, level: Tiles) -> str:
        """Return the letters of an (H, W) level in one line, with slashes between rows, such as "S.#/..T"."""
        return "/".join("".join(self.kinds[kind].letter for kind in row) for row in level.tolist())

    @property
    def has_endpoints(self) -> bool:
        """Whether its levels have a source and a target."""
        return [kind.name for kind in self.kinds[2:4]] == ["source", "target"]

    @property
    def is_plain(self) -> bool:
        """Whether its levels have the kinds of tile of the package's tasks (empty and wall, perhaps with source and
        target), and the task has no `mark`."""
        return self.kinds in (KINDS, KINDS[:2]) and self.mark is None

    @property
    def letters(self) -> str:
        """The letters that may occur in the drawing of a level that a user gives: a letter for each kind of tile, and
        the letters of source and target even if `prepare` clears these."""
        return "".join(kind.letter for kind in self._given_kinds)

    @property
    def _given_kinds(self) -> tuple[Kind, ...]:
        return KINDS if self.kinds == KINDS[:2] else self.kinds

    @property
    def question(self) -> str:
        """The name without the order of directions, such as "shortest-path" for "shortest-path-DLRU"."""
        return split_order(self.name)[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the question, as 64 hexadecimal digits. It depends on the kinds of tile, their numbers, the
        answers, and the rules that determine the answers, but not on the name.

        Rules of a fixpoint and of a specification are included as text, and a function of this package by its name. A
        user's own `solve` is included by its answers on about a hundred generated levels of up to 26 x 26 tiles.
        """
        solve = printed_function(self.solve)
        if solve is None:
            rng = np.random.default_rng(0)
            large = [self.generate(rng, 4, 24, generator) for generator in ("random", "loops", "perfect")]
            levels = [*(maze[None] for maze in small_mazes(self)), *larger_mazes(self), *large]
            solve = printed_answers(self.solve, levels)
        specified: Any = None if self.specification is None else printed_function(self.specification)
        if self.specification is not None and specified is None:
            specified = printed_ghosts(self.specification())
        kinds, words = [kind.name for kind in self.kinds], {limits: word for word, limits in COUNTS.items()}
        usual = {"source": "one", "target": "one"} if self.has_endpoints else {}
        limits = zip(*(limit.tolist() for limit in self.count_limits), strict=True)
        in_words = {name: words[limit] for name, limit in zip(kinds, limits, strict=True)}
        # `mark` decides a default, so the words that are given say too little
        counts = {name: word for name, word in in_words.items() if word != usual.get(name, "any")}
        return digest([kinds, counts, list(self.answers), self.may_be_empty, solve, specified])

    def ordered(self, order: str) -> Task:
        """Return this task with canonical solutions in another order of directions.

        >>> SHORTEST_PATH.ordered("DLRU").name
        'shortest-path-DLRU'

        Raises:
            ValueError: `order` is no order of directions, or the task's `solve` has no parameter `order`.
        """
        name = with_order(self.name, order)
        if order == self.order:
            return self
        if not _takes_order(self.solve):
            raise ValueError(f"the task {self.name!r} has one order of directions only: its solve takes no `order`")
        functions: dict[str, Any] = {
            "solve": self.solve,
            "guidance": self.guidance,
            "specification": self.specification,
        }
        ordered: dict[str, Any] = {
            part: update_wrapper(partial(function, order=order), function)
            for part, function in functions.items()
            if function is not None and _takes_order(function)
        }
        if "specification" not in ordered:  # it would say what the answer is in the usual order
            ordered["specification"] = None
        return replace(self, name=name, order=order, **ordered)

    def guide(self, tiles: Tiles) -> Guidance:
        """Return the guidance of (N, H, W) levels.

        Raises:
            ValueError: the task has no guidance.
        """
        if self.guidance is None:
            raise ValueError(f"the task {self.name!r} has no guidance")
        if not len(tiles):
            return Guidance(
                np.zeros((0, len(self.guided), *tiles.shape[1:]), np.bool_), np.zeros(tiles.shape, np.int32)
            )
        shown = self.guidance(tiles)
        return shown if isinstance(shown, Guidance) else Guidance(shown, np.zeros(tiles.shape, np.int32))

    @property
    def judge(self) -> IsOptimal | None:
        """The argument `is_optimal` of `scoring.score`: the task's own function, or None if the compiled kernels decide
        the same."""
        compiled = self.is_optimal is solvers.is_optimal and self.is_plain and not self.may_be_empty
        return None if compiled and len(self.answers) == 1 else self.is_optimal

    def check_one_channel(self, otherwise: str) -> None:
        """Check that answers have one channel, for callers that cannot take several.

        Args:
            otherwise: the end of the message: the consequence of several channels, such as "its levels cannot evolve".

        Raises:
            ValueError: answers have several channels.
        """
        if len(self.answers) > 1:
            have = f"{len(self.answers)} channels, {', '.join(self.answers)}"
            raise ValueError(f"answers of the task {self.name!r} have {have}: {otherwise}")

    def prepare(self, tiles: Tiles) -> Tiles:
        """Return (N, H, W) levels that users give as levels of this task. Source and target are cleared if the task
        does not have them.

        Raises:
            ValueError: a level has a tile of another kind, or a number of tiles of a kind that `counts` does not allow.
        """
        self.check_kinds(tiles)
        self.check_counts(tiles)
        return clear_endpoints(tiles) if self.kinds == KINDS[:2] else tiles

    def check_kinds(self, tiles: Tiles) -> None:
        """Check that (N, H, W) tiles are of the task's kinds. Source and target are also allowed if `prepare` clears
        them.

        Raises:
            ValueError: a tile of another kind.
        """
        known = self._given_kinds
        if len(tiles) and tiles.max() >= len(known):
            names = ", ".join(kind.name for kind in known)
            raise ValueError(f"tiles of the task {self.name!r} are 0 to {len(known) - 1} ({names}), got {tiles.max()}")

    def check_counts(self, tiles: Tiles) -> None:
        """Check the number of tiles of each kind in an (H, W) level or in (N, H, W) levels.

        Raises:
            ValueError: a level has a number of tiles that `counts` does not allow; the message has the level's index.
        """
        levels, size, limited = tiles.reshape(-1, *tiles.shape[-2:]), tiles.shape[-2] * tiles.shape[-1], self._limited
        if len(levels) == 1 and all(least <= np.count_nonzero(levels == k) <= most for k, least, most in limited):
            return  # at each reset of an environment, so quickly
        # a sum over the tiles of each level would take several times as long
        counts = [np.bincount(np.flatnonzero(levels == k) // size, minlength=len(levels)) for k, *_ in limited]
        for (_, fewest, largest), n in zip(limited, counts, strict=True):
            wrong = (n < fewest) | (n > largest)
            if wrong.any():
                i, words = int(wrong.argmax()), {limits: word for word, limits in COUNTS.items()}
                allowed = " and ".join(f"{words[least, most]} {self.kinds[k].name}" for k, least, most in limited)
                allowed = f"exactly {allowed}" if allowed.startswith("one") else allowed
                got = " and ".join(str(of_kind[i]) for of_kind in counts)
                raise ValueError(
                    f"levels of the task {self.name!r} have {allowed}; level {i} has {got} (see `counts` of Task)"
                )

    def generate(
        self, rng: np.random.Generator, n: int, size: Size = 16, generator: str = "random", **options: Any
    ) -> Tiles:
        """Return n levels of this task, (n, H, W) uint8: levels of a generator, changed by `mark`.

        Args:
            rng: source of all randomness.
            n: number of levels.
            size: number of rows and columns, or a pair of both.
            generator: name of a generator, such as "perfect".
            options: options of the generator.

        Raises:
            ValueError: an unknown generator or option, a bad value, or `mark` returns levels that the task does not
                allow.
        """
        if "endpoints" in options:
            raise ValueError(f"endpoints is not an option here: the task {self.name!r} decides it")
        return self.marked(rng, generate(rng, n, size, generator, endpoints=self.has_endpoints, **options))

    def marked(self, rng: np.random.Generator, tiles: Tiles) -> Tiles:
        """Return (N, H, W) generated levels changed by `mark`, or unchanged if the task has no `mark`.

        Raises:
            ValueError: `mark` does not return uint8 tiles of the same shape, or the levels have a number of tiles of a
                kind that `counts` does not allow.
        """
        if self.mark is None or not len(tiles):
            self.check_counts(tiles)
            return tiles
        levels = self.mark(rng, tiles.copy())
        if not isinstance(levels, np.ndarray) or (levels.shape, levels.dtype) != (tiles.shape, tiles.dtype):
            got = f"{levels.dtype} of {levels.shape}" if isinstance(levels, np.ndarray) else repr(levels)
            raise ValueError(f"mark of the task {self.name!r} must return uint8 tiles of {tiles.shape}, got {got}")
        return self.prepare(levels)

    def solve_all(self, tiles: Tiles) -> NDArray[np.bool_]:
        """Return the canonical solutions of levels that must all be solvable, (N, H, W) or (N, K, H, W) bool.

        Raises:
            ValueError: a level is unsolvable or malformed.
        """
        self.check_counts(tiles)
        if not len(tiles):
            return np.zeros(self.shape_of_answers(*tiles.shape), np.bool_)
        targets = self.solve(tiles)
        solvable = self.is_answer(targets)
        if not solvable.all():
            i = int(np.argmin(solvable))
            raise ValueError(f"level {i} of {len(tiles)} is unsolvable: {self.why_unsolvable(tiles[i])}")
        return targets

    def is_answer(self, targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of (N, ...) bool results of `solve` are answers, (N,) bool: all of them with `may_be_empty`, and
        else the results that are not empty."""
        return np.asarray((lengths_of(targets) > 0) | self.may_be_empty)

    def why_unsolvable(self, level: Tiles) -> str:
        """Return in a few words why an (H, W) level with an empty answer is unsolvable."""
        if not (level != Tile.WALL).any():
            return "it has no free tile"
        ends = [np.argwhere(level == end) for end in (Tile.SOURCE, Tile.TARGET)]
        if all(len(places) == 1 for places in ends) and solvers.distances(level)[tuple(ends[1][0])] < 0:
            return "no path joins source and target"
        return f"the answer of the task {self.name!r} is empty, and its may_be_empty is False"


def solved(task: Task, tiles: Tiles) -> tuple[Tiles, NDArray[np.bool_]]:
    """Return the (N, H, W) levels that a task's `solve` can solve, (M, H, W) uint8, and the answers, (M, ...) bool.

    A level for which `solve` raises an error is left out, because `solve` may require kinds of tile that `mark` never
    draws.
    """
    try:
        targets = task.solve(tiles.copy())
    except Exception:  # it is anything that its author wrote
        by_level = [solved(task, level[None]) for level in tiles] if len(tiles) > 1 else []
        if not any(len(levels) for levels, _ in by_level):
            return tiles[:0], np.zeros(task.shape_of_answers(0, *tiles.shape[1:]), np.bool_)
        levels, answers = zip(*by_level, strict=True)
        return np.concatenate(levels), np.concatenate(answers)
    solvable = task.is_answer(targets)
    return tiles[solvable], targets[solvable]


def of_each(function: Callable[..., Any]) -> Callable[..., NDArray[Any]]:
    """Return a function of many levels that calls a function of one level for each, and caches its last results.

    With it, `solve` and `is_optimal` may be plain Python, such as a search with a heap.

    >>> Task(solve=of_each(solve_one), is_optimal=of_each(judge_one), ...)

    Args:
        function: takes an (H, W) level, perhaps an (H, W) or (K, H, W) bool path, as copies, and keywords such as
            `order`. It returns an array or a number, always the same for the same level, and of one shape for all
            levels of a shape.

    Returns:
        A function of (N, H, W) levels, and paths, that stacks the results, (N, ...). If there are no levels, it returns
            (0, H, W) bool, as for `solve`, or with paths (0,) bool, as for `is_optimal`.
    """

    @lru_cache(maxsize=16_384)  # more than the small mazes on which a task and its automata are tried
    def of_one(shape: tuple[int, ...], level: bytes, *paths: bytes, **options: Any) -> NDArray[Any]:
        masks = [np.frombuffer(path, np.bool_) for path in paths]
        of_level = np.frombuffer(level, np.uint8).reshape(shape)
        answers = [path.reshape(shape if path.size == of_level.size else (-1, *shape)).copy() for path in masks]
        return as_array(function(of_level.copy(), *answers, **options), "the result for a level")

    @wraps(function)
    def of_all(tiles: Tiles, *paths: NDArray[np.bool_], **options: Any) -> NDArray[Any]:
        if not len(tiles):
            return np.zeros((0,) if paths else tiles.shape, np.bool_)
        rows = zip(tiles, *(np.asarray(path, np.bool_) for path in paths), strict=True)
        return np.stack([of_one(row[0].shape, *(part.tobytes() for part in row), **options) for row in rows])

    return of_all


def _takes_order(function: Callable[..., Any]) -> bool:
    return "order" in inspect.signature(function).parameters


def _rank(tiles: Tiles, paths: NDArray[np.bool_], longer: bool) -> NDArray[np.int64]:
    """Return ranks of paths between source and target or, if `longer` is better, between their own ends, (N,)."""
    better = paths.sum(axis=(1, 2)) if longer else 1 + (~paths).sum(axis=(1, 2))
    return np.where(solvers.is_valid(tiles, paths), better, 0)


SHORTEST_PATH = Task(
    name="shortest-path",
    n_channels=11,
    solve=solvers.shortest_path,
    is_optimal=solvers.is_optimal,
    usual_length=48,
    found="shortest path found",
    guidance=first_steps,
    guided=tuple(STEPS),
    rank=partial(_rank, longer=False),
    specification=canonical_path,
    default_steps=96,  # two for each tile of the longest solution: a flood there and a path back
)
"""The shortest path from source to target (paper, "Computing the shortest path")."""
DIAMETER = Task(
    name="diameter",
    kinds=KINDS[:2],
    n_channels=31,
    solve=solvers.diameter,
    is_optimal=solvers.is_optimal,
    usual_length=60,
    found="longest shortest path found",
    guidance=branches,
    guided=tuple(f"{place}_{step}" for place in ("centre", "branch") for step in STEPS),
    rank=partial(_rank, longer=True),
    default_steps=240,  # four for each tile: there and back, twice
)
"""The longest of the shortest paths between any two tiles (paper, "Computing the diameter")."""

_TINY = ["#####\n#S..#\n#.#.#\n#..T#\n#####", "#####\n#S.##\n##..#\n#..T#\n#####"]
"""Levels on which `register_task` tries out a task."""


def register_task(task: Task) -> Task:
    """Register a task of your own. Environments, models, training, evaluation and evolution then accept its name.

    New processes, such as those of asynchronous environments, must register it again. The task's functions are tried on
    two tiny levels.

    Raises:
        ValueError: a task of this package has the name, or a function returns another type, shape or value than it
            should.
    """
    if not isinstance(task, Task):
        raise ValueError(f"a Task is expected, got {task!r}")
    return TASKS.register(task.name, task)


def _try_out(name: str, task: Task) -> None:
    """Check what a task's functions return for two tiny levels."""
    tiles = read_tiles(_TINY) if task.has_endpoints else clear_endpoints(read_tiles(_TINY))
    tiles = _called(task, "marked", np.random.default_rng(0), tiles)
    targets = _called(task, "solve", tiles)
    _check_result(task, "solve", targets, task.shape_of_answers(*tiles.shape))
    judged = _called(task, "is_optimal", tiles, targets)
    _check_result(task, "is_optimal", judged, tiles.shape[:1])
    wrong = np.flatnonzero(task.is_answer(targets) & ~judged)
    if len(wrong):
        rows = task.to_text(tiles[wrong[0]], targets[wrong[0]]).replace("\n", "/")
        raise ValueError(f"is_optimal of the task {task.name!r} must accept the answers of solve, and rejects {rows}")
    if task.guidance is not None:
        shown = _called(task, "guide", tiles)
        _check_result(task, "guidance", shown.channels, (len(tiles), len(task.guided), *tiles.shape[1:]))
        _check_result(task, "guidance", shown.after, tiles.shape, np.int32)
    if task.rank is not None:
        ranks = _called(task, "rank", tiles, targets)
        _check_result(task, "rank", ranks, tiles.shape[:1], np.int64)
    check_specification(task)


@lru_cache(maxsize=64)
def check_specification(task: Task) -> None:
    """Check on small mazes that a task's specification agrees with `solve` and that its axioms are true. A task without
    a specification passes.

    Mazes without an answer are left out, and so are mazes on which `solve` fails, unless it fails on all others.

    Raises:
        ValueError: specification and `solve` disagree, or an axiom is false, and the message draws a maze; or `solve`
            fails, and there is no maze to compare.
    """
    ghosts = task.ghosts
    if ghosts is None:
        return
    n_compared = 0
    for tiles in mazes_to_try(task):
        some = tiles[:: 1 + len(tiles) // MOST_OF_LIBRARY] if has_known_axioms(ghosts) else tiles
        broken = broken_axioms(ghosts, some)
        if broken:
            name, i = min(broken.items())
            raise ValueError(
                f"the axiom {name!r} in the specification of the task {task.name!r} is not true of the maze "
                f"{task.in_a_line(some[i])}"
            )
        levels, targets = solved(task, tiles)
        n_compared += len(levels)
        if not len(levels):
            continue
        picture = MazePicture(levels, ghosts.ghosts(levels))
        shown = np.stack([answer.shown(picture, CENTRE) for answer in ghosts.answers], axis=1)
        lengths = np.concatenate([answer.n_moves(picture) for answer in ghosts.answers], axis=1).max(axis=(1, 2))
        # a bound is proven in terms of the specification's number of moves, and measured in terms of the answer's
        too_long = lengths > np.maximum(lengths_of(targets) - 1, 0)
        wrong = np.flatnonzero(too_long | (shown != targets.reshape(shown.shape)).any(axis=(1, 2, 3)))
        if len(wrong):
            raise ValueError(
                f"the specification of the task {task.name!r} disagrees with its solve on the maze "
                f"{task.in_a_line(levels[wrong[0]])}; if no level is like this maze, exclude it by `counts` of the Task"
            )
    try:
        for tiles in () if n_compared else mazes_to_try(task):
            task.solve(tiles.copy())
    except Exception as error:  # it is anything that its author wrote
        raise ValueError(
            f"the specification of the task {task.name!r} can be compared with its solve on no small maze, because "
            f"solve fails: {type(error).__name__}: {error}"
        ) from error


def _called(task: Task, name: str, *arguments: Any) -> Any:
    copies = [copy(argument) for argument in arguments]
    try:
        result = getattr(task, name)(*copies)
    except Exception as error:
        raise ValueError(
            f"{name} of the task {task.name!r} fails on two levels of 5 x 5 tiles: {type(error).__name__}: {error}"
        ) from error
    for argument, after in zip(arguments, copies, strict=True):
        if isinstance(argument, np.ndarray) and not np.array_equal(argument, after):
            raise ValueError(
                f"{name} of the task {task.name!r} changes the levels or paths that it gets: copy them first"
            )
    return result


def _check_result(task: Task, name: str, result: Any, shape: tuple[int, ...], dtype: type[Any] = np.bool_) -> None:
    if not isinstance(result, np.ndarray) or result.shape != shape or result.dtype != dtype:
        got = f"{result.dtype} of {result.shape}" if isinstance(result, np.ndarray) else repr(result)
        raise ValueError(
            f"{name} of the task {task.name!r} must return a {np.dtype(dtype)} array of shape {shape} for two "
            f"levels of 5 x 5 tiles, got {got}"
        )


TASKS = OrderedRegistry("task", {task.name: task for task in (SHORTEST_PATH, DIAMETER)}, _try_out)
"""All tasks by name; `register_task` adds to them."""


def find_task(task: str | Task, order: str | None = None) -> Task:
    """Return a task by its name, or a `Task` itself, in another order of directions if `order` is given.

    Raises:
        ValueError: an unknown name, or an order that the task does not have.
    """
    task = task if isinstance(task, Task) else TASKS.find(task)
    return task if order is None else task.ordered(order)


def usual_task(n_tiles: int) -> Task:
    """Return the first task whose mazes have `n_tiles` kinds of tile. The package's own tasks come first.

    Raises:
        ValueError: no task has this number of kinds.
    """
    for task in TASKS.values():
        if task.n_tiles == n_tiles:
            return task
    known = ", ".join(f"{task.n_tiles} ({task.name})" for task in TASKS.values())
    raise ValueError(f"n_tiles must be one of {known}, got {n_tiles}")


def task_of_levels(levels: LevelSet) -> Task:
    """Return the task that a level set names, as sets written by `generate` do. For a set that names no task, this is
    the shortest path if any of its levels has a source or a target, and else the diameter.

    Raises:
        ValueError: the set names an unknown task.
    """
    usual = usual_task(len(KINDS) if (levels.tiles >= Tile.SOURCE).any() else 2)
    return find_task(levels.config.get("task", usual.name))
