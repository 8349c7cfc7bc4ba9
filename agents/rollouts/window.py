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
    name: str,
    fps: float,
    seed: int,
    steps: int | None,
    policies: Mapping[str, Callable[[], Policy]],
    **options: Any,
) -> None:
    """Show a policy in a window until the user closes it; a solved level stays until the user asks for another level.

    Args:
        policy: a policy, on any device.
        name: the policy's name in the title.
        fps: the largest number of iterations per second, which the user can change.
        seed: the seed of the levels.
        steps: the largest number of iterations on a level, or None for no limit.
        policies: further policies that the user can choose, by name, as functions that load them.
        options: the levels to show: `levels`, or `size`, `generator` and options of the generator, as for the
            environments.

    Raises:
        ValueError: a bad option, or levels that the policy cannot run on.
        NoScreenError: there is no screen.
    """
    # the session iterates; the window shows its snapshots and returns the user's requests
    session = Session(policy, name, seed, steps=steps, **options)
    policies = policies if name in policies else {name: lambda: policy, **policies}
    window = Window(
        fps, "maze_nca_gym", {Action.POLICY: tuple(policies), Action.LEVEL: tuple(GENERATORS)}, restarts=True
    )
    notice, ended = "", False

    def line(words: str) -> str:
        now = session.snapshot
        score = "" if now.solved else f", accuracy {now.accuracy:.3f}"
        return f"level {session.level}: {words} after {now.step} steps{score}"

    try:
        while (request := window.show(session.snapshot, notice, session.names)) is not Request.QUIT:
            notice, left = "", line("left") if session.snapshot.step and not ended else ""
            if request is Request.EDIT:
                notice = session.edit(window.edit)
            elif request is Request.BACK:
                notice = session.back()
            elif request in (Request.CONTINUE, Request.STEP):
                notice = session.step()
            else:  # another episode begins
                try:
                    if request is Request.RESTART:
                        session.restart()
                    elif request is Request.NEW_LEVEL:
                        session.new_level()
                    elif request is Request.EDGES:
                        session = session.with_other_edges()
                    elif window.choice[0] is Action.LEVEL:
                        session = session.with_generator(window.choice[1])
                    else:
                        session = session.with_policy(policies[window.choice[1]](), window.choice[1])
                except (ValueError, OSError) as error:
                    notice = f"not changed: {error}"
                else:
                    ended = False
                    if left:
                        print(left, flush=True)
            # an episode that has come to its end is reported once
            now = session.snapshot
            if ended or not now.step:
                continue
            if now.solved:
                words = now.verdict if session.policy.output in DRAWINGS else "optimal"
            elif now.step >= session.limit:
                words = "stopped at the limit"
            elif now.step % _ASK_EVERY == 0 and session.finished():
                words = "finished"
            else:
                continue
            print(line(words), flush=True)
            ended = True
    finally:
        window.close()
