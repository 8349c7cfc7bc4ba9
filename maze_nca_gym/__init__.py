"""Gymnasium mazes in which each step is one iteration of a neural cellular automaton.

Importing this package registers three environments for each task:

- `MazeShortestPath-v0` and `MazeDiameter-v0`;
- `MazeShortestPathEvolving-v0` and `MazeDiameterEvolving-v0`, with levels that evolve against the agent;
- `MazeShortestPathRL-v0` and `MazeDiameterRL-v0`, for agents that learn.

The import loads neither torch, numba nor pygame.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

# While the command is imported, Ctrl-C ends it without a traceback; `cli.main` handles it from then on.
_is_command = bool(sys.argv) and Path(sys.argv[0]).name in ("maze-nca-gym", "-m")
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from gymnasium import register, registry  # noqa: E402

from maze_nca_gym.mazes.orders import split_order  # noqa: E402
from maze_nca_gym.support.names import check_count  # noqa: E402

__all__ = [
    "ENVIRONMENTS",
    "EVOLVING_ENVIRONMENTS",
    "LEARNING_ENVIRONMENTS",
    "__version__",
    "environment_id",
    "register_environment",
]
__version__ = "0.1.0"

# id -> (task, steps within which its hand-coded solver finishes every maze of 16 x 16 inner tiles: 2 moves + 2 for a
# shortest path of at most 255 moves, 8 times the free tiles for a diameter)
ENVIRONMENTS = {
    "MazeShortestPath-v0": ("shortest-path", 2 * 255 + 2),
    "MazeDiameter-v0": ("diameter", 8 * 256),
}
"""Registered ids -> (task, max_episode_steps)."""
EVOLVING_ENVIRONMENTS = {
    "MazeShortestPathEvolving-v0": ENVIRONMENTS["MazeShortestPath-v0"],
    "MazeDiameterEvolving-v0": ENVIRONMENTS["MazeDiameter-v0"],
}
"""Registered ids of the same environments with evolving levels -> (task, time_limit)."""
LEARNING_ENVIRONMENTS = {"MazeShortestPathRL-v0": ("shortest-path", 8), "MazeDiameterRL-v0": ("diameter", 8)}
"""Registered ids of environments for learning -> (task, max_episode_steps). An action is the path alone, and an
observation is one array."""


def register_environment(id: str, task: str, max_episode_steps: int) -> None:
    """Register the environment of a task, which `tasks.register_task` may have added.

    >>> register_environment("MazeReachable-v0", "reachable", max_episode_steps=512)

    Args:
        id: the name for `gymnasium.make` and `gymnasium.make_vec`.
        task: a name in `tasks.TASKS`.
        max_episode_steps: steps after which an episode is truncated, at least 1.

    Raises:
        ValueError: an unknown task, or a number below 1.
    """
    from maze_nca_gym.mazes.tasks import find_task  # here, so that importing the package stays fast

    find_task(task)
    _register(id, task, check_count("max_episode_steps", max_episode_steps), "maze:MazeEnv", "vector:MazeVectorEnv")
    ENVIRONMENTS[id] = (task, max_episode_steps)


def _register(id: str, task: str, max_episode_steps: int, single: str, vector: str) -> None:
    registry.pop(id, None)  # registering an id twice warns
    register(
        id,
        entry_point=f"maze_nca_gym.envs.{single}",
        vector_entry_point=f"maze_nca_gym.envs.{vector}",
        max_episode_steps=max_episode_steps,
        kwargs={"task": task},
    )


def environment_id(task: str) -> str:
    """Return the registered id of the environment with a task, whatever the task's order of directions is.

    Raises:
        ValueError: the task has no environment.
    """
    for name in (task, split_order(task)[0]):
        for id, (its_task, _) in ENVIRONMENTS.items():
            if its_task == name:
                return id
    call = f"register_environment({f'{task.title()}-v0'!r}, {task!r}, max_episode_steps=512)"
    raise ValueError(f"no environment has the task {task!r}: give it one by maze_nca_gym.{call}")


for _id, (_task, _max_episode_steps) in ENVIRONMENTS.items():
    _register(_id, _task, _max_episode_steps, "maze:MazeEnv", "vector:MazeVectorEnv")

for _id, (_task, _max_episode_steps) in LEARNING_ENVIRONMENTS.items():
    _register(_id, _task, _max_episode_steps, "path_arrays:PathMazeEnv", "path_arrays:PathMazeVectorEnv")

for _id, (_task, _time_limit) in EVOLVING_ENVIRONMENTS.items():
    registry.pop(_id, None)
    register(
        _id,
        entry_point="maze_nca_gym.envs.wrappers.adversarial_evolution:make",
        vector_entry_point="maze_nca_gym.envs.wrappers.adversarial_evolution:make_vec",
        kwargs={"task": _task, "time_limit": _time_limit},  # Gymnasium's own limit would lie outside the evolution
    )


def __dir__() -> list[str]:
    return sorted([*__all__, "agents", "envs", "mazes", "rendering"])
