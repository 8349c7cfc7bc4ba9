"""`maze-nca-gym generate`: a level set in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from maze_nca_gym.cli.options import INTEGER, GeneratorOptions
from maze_nca_gym.files import npz_path


@dataclass(frozen=True)
class Generate:
    """Write levels, and the configuration that made them, to one .npz file."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """File to write; `.npz` is added if missing."""
    n: Annotated[int, INTEGER] = 1000
    """Number of levels."""
    seed: Annotated[int, INTEGER] = 0
    """Seed of all randomness, at least 0; the same seed gives the same levels."""
    no_endpoints: bool = False
    """Leave out source and target: levels of the diameter task."""
    force: bool = False
    """Overwrite the file if it exists."""
    options: GeneratorOptions = field(default_factory=GeneratorOptions)

    def run(self) -> int:
        """Generate the levels, save them and return the exit code.

        Raises:
            ValueError: a bad option, or the file exists.
        """
        if self.file.is_dir():
            raise ValueError(f"{self.file} is a folder; name a file in it")
        path = npz_path(self.file)
        if path.exists() and not self.force:
            raise ValueError(f"{path} exists already; choose another name, or overwrite it with --force")
        levels = self.options.generate(self.n, self.seed, endpoints=not self.no_endpoints)
        path.parent.mkdir(parents=True, exist_ok=True)
        levels.save(path)
        _, height, width = levels.tiles.shape
        print(f"{path}: {len(levels):,} levels of {height} x {width} tiles, {path.stat().st_size / 1024:,.0f} KiB")
        return 0
