"""The window of `play`: a user watches a policy, draws walls, moves the ends, damages the state and goes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from maze_nca_gym.mazes.generation import GENERATORS
from maze_nca_gym.rendering import Action, Request, Window

from ..policies.guarantees import DRAWINGS
from ..policies.policy import Policy
from .pytorch import threads
from .session import Session

_ASK_EVERY = 8
"""Number of steps between two checks whether a policy has finished; each costs one or two iterations."""


@threads(1)
def open_window(
    policy: Policy,
    *,
    name: str | None = None,
    fps: float = 10.0,
    seed: int = 0,
    policies: Mapping[str, Callable[[], Policy]] | None = None,
    **options: Any,
) -> None:
    """Show a policy in a window until the user closes it; a solved level stays until another is asked for.

    Args:
        policy: a policy on the CPU.
        name: the policy's name in the title, by default that of its class.
        fps: the largest number of iterations per second, which the user can change.
        seed: the seed of the levels.
        policies: further policies that the user can choose, by name.
        options: which levels to show: `levels`, `size`, `generator` and so on, as for the environments.

    Raises:
        ValueError: a bad option, or levels on which the policy cannot run.
        NoScreenError: there is no screen.
    """
    name = name or type(policy).__name__
    session = Session(policy, name, seed, **options)
    if policies and name not in policies:
        policies = {name: lambda: policy, **policies}
    menus = {Action.POLICY: tuple(policies or ()), Action.LEVEL: tuple(GENERATORS)}
    window = Window(fps, "maze_nca_gym", menus, restarts=True)
    try:
        _Player(session, window, policies or {}).run()
    finally:
        window.close()


class _Player:
    """Carries out the user's requests, and prints how each level ends."""

    def __init__(self, session: Session, window: Window, policies: Mapping[str, Callable[[], Policy]]) -> None:
        self._session, self._window, self._policies = session, window, policies
        self._ended = False

    def run(self) -> None:
        """Play until the user quits."""
        notice = ""
        while (request := self._window.show(self._session.snapshot, notice, self._session.names)) is not Request.QUIT:
            notice = self._fulfil(request)
            self._report_end()

    def _fulfil(self, request: Request) -> str:
        """Carry out a request; return why that was impossible, or an empty string."""
        session = self._session
        if request is Request.EDIT:
            return session.edit(self._window.edit)
        if request is Request.BACK:
            return session.back()
        if request in (Request.CONTINUE, Request.STEP):
            return session.step()
        unfinished = not self._ended and session.snapshot.step > 0
        left = self._line("left")
        try:
            self._session = self._begun(request)
        except (ValueError, OSError) as error:
            return f"not changed: {error}"
        if unfinished:
            print(left, flush=True)
        self._ended = False
        return ""

    def _begun(self, request: Request) -> Session:
        """Return a session at the beginning of the requested episode.

        Raises:
            ValueError: the policy cannot run on its level.
            OSError: the policy's file cannot be read.
        """
        if request is Request.CHOOSE:
            action, name = self._window.choice
            if action is Action.LEVEL:
                return self._session.with_generator(name)
            return self._session.with_policy(self._policies[name](), name)
        if request is Request.RESTART:
            self._session.restart()
        else:
            self._session.new_level()
        return self._session

    def _report_end(self) -> None:
        """Print how the level ended, once."""
        if self._ended:
            return
        session = self._session
        step = session.snapshot.step
        if session.snapshot.solved:
            words = session.snapshot.verdict if session.policy.output in DRAWINGS else "optimal"
        elif step and step >= session.limit:
            words = "stopped at the limit"
        elif step and step % _ASK_EVERY == 0 and session.finished():
            words = "finished"
        else:
            return
        print(self._line(words), flush=True)
        self._ended = True

    def _line(self, words: str) -> str:
        """Return the line about the level's end."""
        now = self._session.snapshot
        score = "" if now.solved else f", accuracy {now.accuracy:.3f}"
        return f"level {self._session.level}: {words} after {now.step} steps{score}"
