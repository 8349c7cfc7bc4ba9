"""`maze-nca-gym play`: its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from maze_nca_gym.cli.options import ImportOption, LevelOptions
from maze_nca_gym.options import Above, Between, Shown, check_options


@dataclass(frozen=True)
class Play(ImportOption):
    """Play with a policy in a window: draw walls, move the ends, damage states, step back; press ? for all keys.

    A solved level stays until another is asked for. The window changes policy, generator and speed, and saves pictures.
    """

    policy: Annotated[str, Shown("POLICY", positional=True)] = "shortest-path-bfs"
    """Name from `policies list`, or a model file (*.safetensors)."""
    fps: Annotated[float, Above(0)] = 10.0
    """Largest number of iterations per second."""
    episodes: Annotated[int | None, Between(1), Shown(default="until q is pressed")] = None
    """Number of levels after which the window closes by itself."""
    seed: Annotated[int, Between(0)] = 0
    """Seed of the levels, at least 0; the same seed gives the same levels."""
    source: LevelOptions = field(default_factory=LevelOptions)

    def __post_init__(self) -> None:
        check_options(self)

    def run(self) -> int:
        """Open the window, play and return the exit code.

        Raises:
            ValueError: a bad option or file, or there is no screen.
        """
        self.import_module()
        from maze_nca_gym.agents import list_policies, load
        from maze_nca_gym.agents.rollouts.window import play
        from maze_nca_gym.rendering import NoScreenError

        policy = load(self.policy)
        source = self.source.fitting(policy)
        try:
            play(
                policy,
                name=self.policy,
                fps=self.fps,
                episodes=self.episodes,
                seed=self.seed,
                policies={name: partial(load, name) for name in list_policies()},
                size=source.inner_size() if source.levels is None else None,
                generator=source.generator,
                levels=source.levels,
                **source.generator_options(),
            )
        except NoScreenError as error:
            raise ValueError(f"{error}; `solve` writes an animation to a file instead") from error
        return 0
