"""Options that commands share, and how all are read: numbers, texts of the help, the levels to use."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import numpy as np
import tyro
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, OmitSubcommandPrefixes, arg
from tyro.constructors import PrimitiveConstructorSpec

from maze_nca_gym import __version__
from maze_nca_gym.agents.environments import level_options
from maze_nca_gym.agents.promises import USUAL_FAMILY, USUAL_SIZE
from maze_nca_gym.agents.registry import import_own
from maze_nca_gym.agents.runs import check_at_least, flag
from maze_nca_gym.generation import GENERATORS, check_size, find_generator, generate, options_of
from maze_nca_gym.levels import LevelSet
from maze_nca_gym.loading import load_levels

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy


def read_options(kind: Any, arguments: Sequence[str], prog: str, description: str, **default: Any) -> Any:
    """Return the command of a kind that the arguments ask for.

    Args:
        kind: a dataclass of options, or a union of such commands.
        arguments: the words of the command line.
        prog: the words before them, as the help shows them.
        description: what the command does.
        **default: the command without arguments, as `default`; a dataclass has its own.

    Raises:
        SystemExit: 0 after printing the requested help, 2 after reporting wrong usage.
    """
    for options in _dataclasses(kind):
        _unwrap_texts(options)
    style = (OmitArgPrefixes, OmitSubcommandPrefixes, FlagCreatePairsOff)
    return tyro.cli(kind, prog=prog, description=description, args=arguments, config=style, **default)


def _dataclasses(annotation: Any) -> Iterator[type]:
    """Yield the dataclasses in an annotation, and those in the annotations of their fields."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        yield annotation
        for field in get_type_hints(annotation).values():
            yield from _dataclasses(field)
    for part in get_args(annotation):
        yield from _dataclasses(part)


def _unwrap_texts(options: type) -> None:
    """Store the text of each field in its metadata, in one line.

    tyro would otherwise read the source, and keep every line break before an indented line: all those of a text.
    """
    texts: dict[str, str] = {}
    for base in reversed(options.__mro__):
        texts |= _texts(base.__module__).get(base.__name__, {})
    for field in fields(options):
        if field.name in texts:
            field.metadata = MappingProxyType({**field.metadata, "help": texts[field.name]})


@cache
def _texts(module: str) -> dict[str, dict[str, str]]:
    """Return the texts below the fields of each class of a module; none without its source, as in an executable."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (OSError, TypeError):  # TypeError: built in
        return {}
    return {
        node.name: {
            field.target.id: " ".join(text.value.value.split())
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def _reader(convert: Callable[[str], Any], what: str, metavar: str) -> PrimitiveConstructorSpec[Any]:
    """Return a tyro constructor that converts a word, or reports what it expected."""

    def read(words: list[str]) -> Any:
        try:
            return convert(words[0])
        except ValueError as error:
            raise ValueError(f"{what} is expected, got {words[0]!r}") from error

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, int | float),
        str_from_instance=lambda value: [str(value)],
    )


INTEGER = _reader(int, "an integer", "INT")
"""Annotation of an `int`, or of an `int | None` that is None by default."""
NUMBER = _reader(float, "a number", "NUMBER")
"""Annotation of a `float`, or of a `float | None` that is None by default."""


def _own(option: str, metavar: str) -> Any:
    """Describe, for the help, an option that only some generators take."""
    defaults = {name: options_of(name)[option] for name in GENERATORS if option in options_of(name)}
    hint = ", ".join(f"{default} for {name}" for name, default in defaults.items())
    return arg(metavar=metavar, help_behavior_hint=f"(default: {hint})")


_GENERATOR = arg(metavar="{" + ",".join(GENERATORS) + "}")
_SIZE = arg(metavar="SIZE|ROWSxCOLS")
_LEVELS = arg(metavar="FILE|NAME", help_behavior_hint="(default: fresh ones)")


def _policys(metavar: str, otherwise: str) -> Any:
    """Describe, for the help, an option that a policy decides where it is not given."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: what the policy is meant for, or else {otherwise})")


@dataclass(frozen=True, kw_only=True)
class ImportOption:
    """A module of one's own, for commands that take policies."""

    module: Annotated[str | None, arg(name="import", metavar="MODULE", help_behavior_hint="(default: none)")] = None
    """Python module to import first, for the models and tasks that it registers."""

    def import_module(self) -> None:
        """Import the module, if there is one.

        Raises:
            ValueError: there is no such module, or it fails.
        """
        if self.module is None:
            return
        import_own(self.module, "--import")


@dataclass(frozen=True)
class GeneratorOptions:
    """Fresh levels: their generator, its options and their size."""

    generator: Annotated[str, _GENERATOR] = "random"
    """Generator of the levels; `levels list --details` describes each."""
    size: Annotated[str, _SIZE] = "16"
    """Inner size of the levels in tiles, without the border of one wall tile."""
    wall_probability: Annotated[float | None, NUMBER, _own("wall_probability", "FRACTION")] = None
    """Probability that an inner tile is a wall, 0 to 1."""
    loop_fraction: Annotated[float | None, NUMBER, _own("loop_fraction", "FRACTION")] = None
    """Probability that a wall between two cells of a perfect maze is removed, 0 to 1."""
    largest_room: Annotated[int | None, INTEGER, _own("largest_room", "TILES")] = None
    """Longest side of a room in tiles."""
    smoothing: Annotated[int | None, INTEGER, _own("smoothing", "INT")] = None
    """Number of iterations that turn noise into caves."""

    def inner_size(self) -> tuple[int, int]:
        """Return the inner size as (rows, cols).

        Raises:
            ValueError: `size` is not written as a size, or is too large.
        """
        match = re.fullmatch(r"(\d+)(?:x(\d+))?", self.size)
        if match is None:
            raise ValueError(f"--size must be a number such as 16, or ROWSxCOLS such as 12x20, got {self.size!r}")
        rows, cols = int(match[1]), int(match[2] or match[1])
        return check_size((rows, cols))

    def generator_options(self) -> dict[str, Any]:
        """Return the generator's own options that were given.

        Raises:
            ValueError: an unknown generator, or an option that it does not take.
        """
        find_generator(self.generator, {})
        given = {name: value for name in _OWN_OPTIONS if (value := getattr(self, name)) is not None}
        takes = options_of(self.generator)
        foreign = [name for name in given if name not in takes]
        if foreign:
            known = ", ".join(map(flag, takes)) or "no options of its own"
            raise ValueError(f"{flag(foreign[0])} is not for the generator {self.generator!r}, which takes {known}")
        return given

    def generate(self, n: int, seed: int, endpoints: bool) -> LevelSet:
        """Generate `n` levels, and record all that is needed to generate them again.

        Raises:
            ValueError: a bad option.
        """
        check_at_least("--n", n, 1)
        check_at_least("--seed", seed, 0)
        options, size = self.generator_options(), self.inner_size()
        tiles = generate(np.random.default_rng(seed), n, size, self.generator, endpoints=endpoints, **options)
        config = {"generator": self.generator, "size": list(size), "n": n, "seed": seed, "endpoints": endpoints}
        return LevelSet(tiles, {**config, **options_of(self.generator), **options, "version": __version__})


_OWN_OPTIONS = [field.name for field in fields(GeneratorOptions) if field.name not in ("generator", "size")]


@dataclass(frozen=True)
class LevelOptions(GeneratorOptions):
    """Levels to use: fresh ones, or those of --levels."""

    generator: Annotated[str | None, _policys(_GENERATOR.metavar, USUAL_FAMILY)] = None  # type: ignore[assignment]
    """Generator of the levels; `levels list --details` describes each."""
    size: Annotated[str | None, _policys(_SIZE.metavar, str(USUAL_SIZE))] = None  # type: ignore[assignment]
    """Inner size of the levels in tiles, without the border of one wall tile."""
    levels: Annotated[str | None, _LEVELS] = None
    """File written by `generate` or `evolve`, or a name from `levels list`."""

    def fitting(self, policy: Policy) -> LevelOptions:
        """Return these options where the policy has decided what was not given, checked.

        Raises:
            ValueError: a bad option, or one that contradicts --levels.
        """
        given = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        if self.levels is not None:
            for name in (name for name in given if name != "levels"):
                raise ValueError(f"{flag(name)} is for fresh levels: leave it out with --levels")
        chosen = {"generator": GeneratorOptions.generator, "size": USUAL_SIZE, **level_options(policy, given)}
        if "size" not in given:
            rows, cols = check_size(chosen["size"])
            given["size"] = f"{rows}x{cols}"
        fitting = replace(self, **{**chosen, **given})
        fitting.inner_size()
        fitting.generator_options()
        return fitting

    def load_or_generate(self, n: int | None, default_n: int, seed: int, endpoints: bool) -> LevelSet:
        """Return the first `n` of --levels, or all; without --levels, `n` or `default_n` fresh levels.

        Raises:
            ValueError: a bad option or file, or fewer levels than asked for.
        """
        if self.levels is None:
            return self.generate(default_n if n is None else n, seed, endpoints)
        found = load_levels(self.levels)
        if n is None:
            return found
        if n > len(found):
            raise ValueError(f"--n must be at most {len(found)}, the number of levels in {self.levels}, got {n}")
        return LevelSet(found.tiles[:n], found.config)

    def describe(self, levels: LevelSet) -> str:
        """Describe in a few words the levels that these options gave."""
        rows, cols = levels.tiles.shape[1:]
        if self.levels is not None:
            return f"{self.levels}, {rows} x {cols} tiles"
        options = [f"{name.replace('_', ' ')} {value}" for name, value in self.generator_options().items()]
        return ", ".join([f"{self.generator} {rows - 2} x {cols - 2}", *options])
