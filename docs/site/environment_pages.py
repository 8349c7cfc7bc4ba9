"""Make a page for each registered environment: spaces, reward, info, options, and an episode as an animation.

The texts are the docstrings of the classes. The tables come from an environment that is made, reset and stepped.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pictures
from writing import table

from maze_nca_gym import ENVIRONMENTS, EVOLVING_ENVIRONMENTS, LEARNING_ENVIRONMENTS
from maze_nca_gym.agents import load
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.envs.path_arrays import PathMazeEnv
from maze_nca_gym.envs.wrappers import AdversarialEvolution
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig

POLICIES = {"shortest-path": "shortest-path-bfs", "diameter": "diameter"}
"""Task -> the policy that acts in the animation of its environment."""
ENVIRONMENTS_OF = {task: id for id, (task, _) in ENVIRONMENTS.items()}
"""Task -> the environment whose actions are next states of automata."""
ALL = {**ENVIRONMENTS, **LEARNING_ENVIRONMENTS, **EVOLVING_ENVIRONMENTS}


def paths() -> list[str]:
    """Return the paths of the pages, the overview first."""
    return ["environments/index.md", *(f"environments/{id}.md" for id in ALL)]


def pages() -> dict[str, str | bytes]:
    """Return the content of each page and animation by its path."""
    contents: dict[str, str | bytes] = {"environments/index.md": _overview()}
    for id in ALL:
        contents[f"environments/{id}.md"] = _page(id)
        contents[f"environments/{id}.gif"] = _animation(id)
    return contents


def _overview() -> str:
    rows = [(f"[`{id}`]({id}.md)", task, _kind(id)) for id, (task, _) in ALL.items()]
    return f"""# Environments

Each step is one iteration of a cellular automaton: the action is the automaton's next state, and channel 0 of the state
is the predicted path. In the environments for reinforcement learning, an action is the path alone, and an observation
one array ([which to take](../reinforcement.md)).

{table(("id", "task", "meant for"), rows)}

`gymnasium.make(id, ...)` makes one environment, `gymnasium.make_vec(id, num_envs, ...)` a batch that steps in one call.
`policy.make_env(...)` makes the one that fits a policy. A [task of your own](../tutorials/write_a_task.md) registers an
environment of its own.

![levels of the six generators](../pictures/levels.png)
"""


def _kind(id: str) -> str:
    if id in LEARNING_ENVIRONMENTS:
        return "reinforcement learning"
    return "automata, and levels that evolve against them" if id in EVOLVING_ENVIRONMENTS else "automata"


def _page(id: str) -> str:
    task, n_steps = ALL[id]
    about, _ = _parts(PathMazeEnv if id in LEARNING_ENVIRONMENTS else MazeEnv)
    introduction = _parts(AdversarialEvolution)[0] + "\n\n" if id in EVOLVING_ENVIRONMENTS else ""
    if id in LEARNING_ENVIRONMENTS:
        base = ENVIRONMENTS_OF[task]
        introduction = (
            "An environment for reinforcement learning. [Reinforcement learning](../reinforcement.md) has the first "
            f"agents, and [`{base}`]({base}.md) the rewards and infos.\n\n"
        )
    learning_options = f"{_options(PathMazeEnv.__init__)}\nOptions of every environment:\n\n" * (
        id in LEARNING_ENVIRONMENTS
    )
    return f"""---
search:
  boost: 4
---

# {id}

![{_shown_there(id)}]({id}.gif)

{_shown_there(id)}.

```python
import gymnasium as gym
import maze_nca_gym

env = gym.make("{id}")
```

Task: **{task}**. An episode is truncated after {n_steps:,} steps, unless `max_episode_steps` is another number.

{introduction}## Each step

{about}

## Spaces and info

In an environment with the default options:

{_values(id)}
## Options

{learning_options}{_options(MazeEnv.__init__)}
{_evolution_options() if id in EVOLVING_ENVIRONMENTS else ""}"""


def _evolution_options() -> str:
    return f"""## Options of the evolution

{_options(BreedingSchedule)}
Options of a new population:

{_options(PopulationConfig)}"""


def _shown_there(id: str) -> str:
    if id in LEARNING_ENVIRONMENTS:
        return "The environment's pictures while each action draws more tiles of the solution"
    policy = f"`{POLICIES[ALL[id][0]]}`"
    if id in EVOLVING_ENVIRONMENTS:
        return f"Levels that the environment chooses one after another, solved by {policy}"
    return f"The environment's pictures while {policy} acts"


def _options(documented: Any) -> str:
    """Return a table of the arguments of a function, or of the fields of a dataclass."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(documented).parameters.items()}
    meanings = _fields(documented) if inspect.isclass(documented) else _parts(documented)[1]
    rows = [
        (f"`{name}`", "" if defaults[name] is inspect.Parameter.empty else _shown(defaults[name]), meaning)
        for name, meaning in meanings.items()
        if name != "task"
    ]
    return table(("option", "default", "meaning"), rows)


def _fields(documented: type) -> dict[str, str]:
    """Return the text below each field of a dataclass, by the field's name."""
    (definition,) = ast.parse(inspect.getsource(documented)).body
    statements = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        field.target.id: re.sub(r"\s+", " ", str(text.value.value))
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _shown(default: Any) -> str:
    return f"`{default!r}`" if isinstance(default, str | int | float | tuple | None) else ""


def _parts(documented: Any) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring before its sections, and its arguments by name."""
    text = inspect.getdoc(documented) or ""
    about, *rest = re.split(r"^(\w+):\n(?=    )", text, flags=re.MULTILINE)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    arguments = re.findall(r"^    (\w+): ((?:.|\n        )*)", sections.get("Args", ""), re.MULTILINE)
    return about.strip(), {name: re.sub(r"\s+", " ", meaning).strip() for name, meaning in arguments}


def _values(id: str) -> str:
    """Return a table of an environment's observations, actions and infos, with shapes, dtypes and ranges."""
    env = gym.make(id)
    env.reset(seed=0)
    space: Any = env.observation_space
    _, start = env.reset(seed=0)
    *_, end = env.step(np.zeros(env.action_space.shape or (), np.float32))
    env.close()
    parts = {f"observation `{name}`": box for name, box in space.items()} if id not in LEARNING_ENVIRONMENTS else {}
    spaces = {**(parts or {"observation": space}), "action": env.action_space}
    rows = [(name, str(box.shape), str(box.dtype), _range(box)) for name, box in spaces.items()]
    rows += [*_info("reset", start), *_info("step", end)]
    return table(("value", "shape", "dtype", "range"), rows)


def _range(box: gym.spaces.Box) -> str:
    return f"{box.low.min():,.0f} to {box.high.max():,.0f}"


def _info(moment: str, info: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for name, value in info.items():
        is_array = isinstance(value, np.ndarray)
        rows.append((f"info `{name}` of `{moment}`", str(value.shape) if is_array else "", _type(value), ""))
    return rows


def _type(value: Any) -> str:
    return str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__


def _animation(id: str) -> bytes:
    """Return a GIF of the environment's pictures while a hand-coded policy acts or actions draw the solution."""
    if id in LEARNING_ENVIRONMENTS:
        return pictures.of_solution(gym.make(id, size=pictures.SIZE, generator="loops", render_mode="rgb_array"))
    policy = load(POLICIES[ALL[id][0]])
    options = {"size": pictures.SIZE, "generator": "loops", "render_mode": "rgb_array", "n_channels": policy.n_channels}
    env = gym.make(id, channel_names=list(policy.channel_names), highlight=policy.highlight, **options)
    gif = (pictures.of_levels if id in EVOLVING_ENVIRONMENTS else pictures.of_environment)(env, policy)
    env.close()
    return gif
