"""Options that commands share, and how all are read: numbers, texts of the help, the levels to use."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from maze_nca_gym import __version__
from maze_nca_gym.agents.environments import level_options
from maze_nca_gym.agents.guarantees import USUAL_FAMILY, USUAL_SIZE
from maze_nca_gym.agents.registry import import_own
from maze_nca_gym.generation import GENERATORS, check_size, find_generator, generate, options_of
from maze_nca_gym.levels import LevelSet
from maze_nca_gym.loading import load_levels
from maze_nca_gym.options import OneOf, Shown, flag

USUAL_STEPS = "the policy's usual number, in proportion to size and longest solution"
USUAL_BATCH = "256, fewer of large levels"

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy


def _own(option: str, metavar: str) -> Shown:
    """Describe, for the help, an option that only some generators take."""
    defaults = {name: options_of(name)[option] for name in GENERATORS if option in options_of(name)}
    return Shown(metavar, ", ".join(f"{default} for {name}" for name, default in defaults.items()))


def _policys(otherwise: str, metavar: str | None = None) -> Shown:
    """Describe, for the help, an option that a policy decides where it is not given."""
    return Shown(metavar, f"what the policy is meant for, or else {otherwise}")


@dataclass(frozen=True, kw_only=True)
class ImportOption:
    """A module of one's own, for commands that take policies."""

    module: Annotated[str | None, Shown("MODULE", "none", name="import")] = None
    """Python module to import first, or several with commas, for the models and tasks that they register."""

    def import_module(self) -> None:
        """Import the module, if there is one.

        Raises:
            ValueError: there is no such module, or it fails.
        """
        for name in [] if self.module is None else self.module.split(","):
            import_own(name, "--import")


@dataclass(frozen=True)
class GeneratorOptions:
    """Fresh levels: their generator, its options and their size."""

    generator: Annotated[str, OneOf(GENERATORS)] = "random"
    """Generator of the levels; `levels list --details` describes each."""
    size: Annotated[str, Shown("SIZE|ROWSxCOLS")] = "16"
    """Inner size of the levels in tiles, without the border of one wall tile."""
    wall_probability: Annotated[float | None, _own("wall_probability", "FRACTION")] = None
    """Probability that an inner tile is a wall, 0 to 1."""
    loop_fraction: Annotated[float | None, _own("loop_fraction", "FRACTION")] = None
    """Probability that a wall between two cells of a perfect maze is removed, 0 to 1."""
    largest_room: Annotated[int | None, _own("largest_room", "TILES")] = None
    """Longest side of a room in tiles."""
    smoothing: Annotated[int | None, _own("smoothing", "INT")] = None
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
        options, size = self.generator_options(), self.inner_size()
        tiles = generate(np.random.default_rng(seed), n, size, self.generator, endpoints=endpoints, **options)
        config = {"generator": self.generator, "size": list(size), "n": n, "seed": seed, "endpoints": endpoints}
        return LevelSet(tiles, {**config, **options_of(self.generator), **options, "version": __version__})


_OWN_OPTIONS = [field.name for field in fields(GeneratorOptions) if field.name not in ("generator", "size")]


@dataclass(frozen=True)
class LevelOptions(GeneratorOptions):
    """Levels to use: fresh ones, or those of --levels."""

    generator: Annotated[str | None, OneOf(GENERATORS), _policys(USUAL_FAMILY)] = None  # type: ignore[assignment]
    """Generator of the levels; `levels list --details` describes each."""
    size: Annotated[str | None, _policys(str(USUAL_SIZE), "SIZE|ROWSxCOLS")] = None  # type: ignore[assignment]
    """Inner size of the levels in tiles, without the border of one wall tile."""
    levels: Annotated[str | None, Shown("FILE|NAME", "fresh ones")] = None
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
