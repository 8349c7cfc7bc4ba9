"""Compare common algorithms of reinforcement learning on mazes: `python -m experiments.baselines --help`.

Files in `experiments/hyperparameters` contain the hyperparameters. Each run stores its result as
`<out>/<algorithm>-<family>-<size>-<seed>.json`, and a run whose file exists is not repeated. During training, a folder
next to that file receives the curve and, if the agent is an automaton, a model file with a description. Curves are
measured on validation levels. The agents play the test set once, at the end. The command prints a table, writes the
results of all runs to `<out>/curves.json`, and draws the curves in this file. Needs the extra `rl`.

    python -m experiments.baselines --redraw docs/pictures/baselines.json
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import cycle, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import ArrayLike
from scipy.stats import trim_mean
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnvWrapper

from maze_nca_gym.agents import evaluate, save_model
from maze_nca_gym.agents.evaluation.drawing import COLOURS, count_axis, curve, figure, panels
from maze_nca_gym.agents.evaluation.statistics import Estimate
from maze_nca_gym.agents.reinforcement import LearningCurve, NCAActorCriticPolicy, make_path_vec
from maze_nca_gym.agents.runs import DESCRIPTION, versions, write_json
from maze_nca_gym.agents.training.optimisers import OPTIMISERS
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import validation_levels
from maze_nca_gym.support.names import unknown_name
from maze_nca_gym.support.options import check
from maze_nca_gym.support.tables import Table

from .cache import Record, all_cached

ID = "MazeShortestPathRL-v0"
ALGORITHMS = {
    "ppo-nca": "stable_baselines3:PPO",
    "ppo": "stable_baselines3:PPO",
    "a2c": "stable_baselines3:A2C",
    "sac": "stable_baselines3:SAC",
    "td3": "stable_baselines3:TD3",
    "recurrent-ppo": "sb3_contrib:RecurrentPPO",
}
"""Name of a file of hyperparameters -> module and class of the algorithm."""
interquartile_mean = partial(trim_mean, proportiontocut=0.25, axis=-1)  # Agarwal et al., 2021, arXiv:2108.13264
REFERENCES = {"supervised": "nca-shortest-path-small", "exact": "shortest-path-bfs"}
"""Origin of a policy in the table -> its name."""
N_TEST = 512
"""Number of levels: of the validation set for each point of a curve, and of the test set at the end."""


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    algorithms: tuple[str, ...] = tuple(ALGORITHMS)
    """Algorithms, by the names of the files of hyperparameters."""
    sizes: tuple[int, ...] = (8, 16)
    """Inner sizes of the levels."""
    families: tuple[str, ...] = ("random", "perfect")
    """Generators of levels."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds. Each algorithm, size and family has a run for each seed."""
    n_steps: int | None = None
    """Steps of a run; by default `n_timesteps` of the hyperparameters."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Number format of an automaton's iterations; by default that of the hyperparameters. On most CPUs, bfloat16
    is slower than float32."""
    jobs: int = 1
    """Number of runs at the same time, each on one thread."""
    out: Path = Path("runs/baselines")
    """Folder of all runs."""
    redraw: Path | None = None
    """A file such as `<out>/curves.json`. Its curves are drawn, and nothing is trained."""


def hyperparameters(file: Path) -> dict[str, Any]:
    """Return the hyperparameters for the environment from a file in the format of RL Baselines3 Zoo.

    Raises:
        ValueError: the file does not exist, has another format, or has no hyperparameters for the environment.
    """
    try:
        entry = yaml.safe_load(file.read_text(encoding="utf-8"))[ID]
        options = {"policy": "MlpPolicy", "n_envs": 1, **entry}
        options["n_timesteps"] = int(options["n_timesteps"])
    except (OSError, yaml.YAMLError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{file} must be YAML with an entry {ID}, whose n_timesteps is a number: {error!r}") from error
    return options


def scheduled(value: Any) -> Any:
    """Return a value unchanged, except "lin_" and a number: that stands for a schedule that falls linearly to 0."""
    if not isinstance(value, str) or not value.startswith("lin_"):
        return value
    first = float(value.removeprefix("lin_"))
    return lambda remaining: first * remaining


class Ended(VecEnvWrapper):
    """Mazes whose time limit counts as the end of the episode.

    With gamma 0 the value of the state after the time limit does not count. Stable-Baselines3 would compute this value
    one maze at a time, which would take an eighth of the training time.
    """

    def reset(self) -> Any:
        """Return the first observations."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Return the results of the step, with infos that do not mention the time limit."""
        *stepped, infos = self.venv.step_wait()
        for info in infos:
            info["TimeLimit.truncated"] = False
        return *stepped, infos


class SavedCurve(LearningCurve):
    """A learning curve that is written to a file at each point, with the automaton, so that a crash loses little."""

    def __init__(self, *arguments: Any, folder: Path) -> None:
        super().__init__(*arguments)
        self.folder = folder

    def _add_point(self) -> None:
        super()._add_point()
        so_far = [{"n_steps": n, "seconds": seconds, **held_out} for n, seconds, held_out, _ in self.points]
        write_json(self.folder / "curve.json", so_far)
        if isinstance(self.model.policy, NCAActorCriticPolicy):
            save_model(self.model.policy.as_policy(), self.folder / "model")


def unseen(family: str, size: int, n_envs: int) -> Any:
    """Return environments that play each level of a test set once."""
    return make_path_vec(ID, n_envs, levels=f"{family}-{size}", in_order=True)


def make_run(algorithm: str, options: dict[str, Any], family: str, size: int, seed: int, folder: str) -> Record:
    """Train an agent, and measure it.

    Args:
        algorithm: one of `ALGORITHMS`.
        options: the hyperparameters, see `hyperparameters`.
        family: generator of the levels.
        size: inner size of the levels.
        seed: seed of the training.
        folder: folder that receives the description, the curve and the model.

    Returns:
        `curve`: (steps, seconds, mean return on validation levels) of each point; `test`: mean return on the test set;
        `wall_seconds`: duration of the training.
    """
    command = f"python -m experiments.baselines --algorithms {algorithm} --sizes {size} --families {family}"
    precision = options.get("policy_kwargs", {}).get("precision")
    about = {
        "command": f"{command} --seeds {seed} --n-steps {options['n_timesteps']}"
        + (f" --precision {precision}" if precision else ""),
        "data": f"fresh {family} levels at {size}x{size}, by the rewards of {ID} alone",
        "supervision": "rewards",
        "hyperparameters": options,
        "device": "cpu",
        "processes": 1,
        "threads": 1,
        "versions": versions(),
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_json(Path(folder, DESCRIPTION), about)
    module, name = ALGORITHMS[algorithm].split(":")
    copied = deepcopy(options)  # an algorithm may change the keywords of its policy
    arguments = {
        key: scheduled(value) for key, value in copied.items() if key not in ("policy", "n_envs", "n_timesteps")
    }
    if "optimizer_class" in arguments.get("policy_kwargs", {}):
        optimiser = OPTIMISERS[arguments["policy_kwargs"]["optimizer_class"]].make
        arguments["policy_kwargs"] = arguments["policy_kwargs"] | {"optimizer_class": optimiser}
    policy = NCAActorCriticPolicy if options["policy"] == "NCAActorCriticPolicy" else options["policy"]
    env: Any = make_path_vec(ID, options["n_envs"], size=size, generator=family)
    env = Ended(env) if options.get("gamma") == 0 else env
    model = getattr(import_module(module), name)(policy, env, seed=seed, device="cpu", **arguments)
    held_out = make_path_vec(ID, 128, levels=validation_levels(family, size, "shortest-path", N_TEST), in_order=True)
    every = max(options["n_timesteps"] // 10, 1)
    points = SavedCurve({family: held_out}, 0, every, N_TEST, folder=Path(folder))
    began = time.monotonic()
    model.learn(options["n_timesteps"], callback=points)
    wall_seconds = time.monotonic() - began
    write_json(Path(folder, DESCRIPTION), {**about, "seconds": wall_seconds})
    test, _ = evaluate_policy(model.policy, unseen(family, size, 128), N_TEST)
    curve_ = [(point.n_steps, point.seconds, point.held_out[family]) for point in points.points]
    return {"curve": curve_, "test": float(np.mean(test)), "wall_seconds": wall_seconds}


def by_chance(family: str, size: int) -> float:
    """Return the mean return of random actions on the test set."""
    env, returns = unseen(family, size, N_TEST), []
    env.seed(0)
    env.reset()
    env.action_space.seed(0)
    while len(returns) < N_TEST:  # the time limit ends all episodes at the same step
        *_, infos = env.step(np.stack([env.action_space.sample() for _ in range(N_TEST)]))
        returns += [info["episode"]["r"] for info in infos if "episode" in info]
    return float(np.mean(returns))


def bootstrap(values: ArrayLike) -> Estimate:
    """Return the interquartile mean of (N,) values with the 95 % percentile interval of 2,000 samples drawn with
    replacement.

    Raises:
        ValueError: N is 0.
    """
    sample = np.asarray(values, np.float64)
    check(len(sample) > 0, "an interval needs at least one value, got 0")
    samples = sample[np.random.default_rng(0).integers(len(sample), size=(2000, len(sample)))]
    return Estimate(
        float(interquartile_mean(sample)), *np.quantile(interquartile_mean(samples), (0.025, 0.975)).tolist()
    )


def row(label: str, runs: list[Record]) -> list[str]:
    """Return a row of the table: the mean return on the test set, with its interval over seeds, and the times."""
    ends = np.array([run["curve"][-1] for run in runs])
    reached = bootstrap([run["test"] for run in runs])
    mean_return = reached.text(3, 1) if len(runs) > 1 else f"{reached.value:.3f}"
    wall = np.mean([run["wall_seconds"] for run in runs])
    return [label, mean_return, f"{ends[0, 0]:,.0f}", str(len(runs)), f"{ends[:, 1].mean():,.0f}", f"{wall:,.0f}"]


def curves_of(runs: dict[tuple[str, str, int], list[Record]], seeds: Sequence[int]) -> Record:
    """Return the content of curves.json.

    Args:
        runs: (algorithm, family, size) -> the results of `make_run`, one for each seed.
        seeds: the seeds.

    Returns:
        For each algorithm, family and size: the curve and the result on the test set of each seed.
    """
    curves = []
    for (algorithm, family, size), of_seeds in runs.items():
        results = [
            {"seed": seed, "curve": [[n_steps, value] for n_steps, _, value in run["curve"]], "test": run["test"]}
            for seed, run in zip(seeds, of_seeds, strict=True)
        ]
        curves.append({"algorithm": algorithm, "family": family, "size": size, "runs": results})
    return {"curves": curves}


def draw(file: Path) -> Path:
    """Draw the curves in a file of `curves_of`, with a panel for each family and size, and return the picture's path.

    The picture is a PNG file next to the file.
    """
    curves, path = json.loads(file.read_text(encoding="utf-8"))["curves"], file.with_suffix(".png")
    kinds = list(dict.fromkeys((entry["family"], entry["size"]) for entry in curves))
    colours = dict(zip(dict.fromkeys(entry["algorithm"] for entry in curves), cycle(COLOURS), strict=False))
    with figure(path, 1 + 5 * len(kinds), 4.5, "Agents that act, on mazes they have not seen") as fig:
        for axes, kind in zip(panels(fig, len(kinds), len(kinds)), kinds, strict=True):
            worst = 1.0
            for entry in (entry for entry in curves if (entry["family"], entry["size"]) == kind):
                values = np.array([[value for _, value in run["curve"]] for run in entry["runs"]])
                bands = [bootstrap(at) for at in values.T]
                middle, low, high = np.transpose([[band.value, band.low, band.high] for band in bands])
                steps, n = [n_steps for n_steps, _ in entry["runs"][0]["curve"]], len(entry["runs"])
                label = f"{entry['algorithm']}, {n} seed{'s' * (n > 1)}"
                curve(axes, steps, middle, low, high, color=colours[entry["algorithm"]], label=label)
                worst = min(worst, low.min())
            axes.set(title=f"{kind[0]}, {kind[1]} x {kind[1]}", xlabel="steps", ylabel="mean return")
            # an empty path has the return 0, and agents that act at random are far below
            axes.set_ylim(max(-0.6, worst - 0.02), 1.03 if worst < 0 else 1.0)
            count_axis(axes.xaxis, 4)
            axes.legend(loc="best")
    return path


def main() -> None:
    arguments = run_script(Arguments, __doc__)
    if arguments.redraw is not None:
        print(draw(arguments.redraw))
        return
    calls, keys = {}, []
    for algorithm, size, family, seed in product(
        arguments.algorithms, arguments.sizes, arguments.families, arguments.seeds
    ):
        if algorithm not in ALGORITHMS:
            raise SystemExit(unknown_name("algorithm", algorithm, ALGORITHMS))
        options = hyperparameters(Path(__file__).parent / "hyperparameters" / f"{algorithm}.yml")
        if arguments.n_steps is not None:
            options["n_timesteps"] = arguments.n_steps
        if arguments.precision is not None and options["policy"] == "NCAActorCriticPolicy":
            options["policy_kwargs"] |= {"precision": arguments.precision}
        file = arguments.out / f"{algorithm}-{family}-{size}-{seed}.json"
        calls[file] = (algorithm, options, family, size, seed, str(file.with_suffix("")))
        keys.append((algorithm, family, size))
    runs: dict[tuple[str, str, int], list[Record]] = {}
    for key, run in zip(keys, all_cached("runs", make_run, calls, arguments.jobs), strict=True):
        runs.setdefault(key, []).append(run)
    write_json(arguments.out / "curves.json", curves_of(runs, arguments.seeds))
    draw(arguments.out / "curves.json")
    for size, family in product(arguments.sizes, arguments.families):
        head = [f"{family}, {size} x {size}", "mean return", "steps", "seeds", "seconds of processor", "seconds in all"]
        rows = [row(algorithm, records) for (algorithm, *levels), records in runs.items() if levels == [family, size]]
        rows.append(["random actions", f"{by_chance(family, size):.3f}", "", "", "", ""])
        for origin, name in REFERENCES.items():
            accuracy = evaluate(name, families=family, sizes=size, n=N_TEST)[0].metrics.accuracy.value
            rows.append([f"{origin}, `{name}`", f"{accuracy:.3f}", "", "", "", ""])
        print(Table(head, rows).markdown() + "\n")


if __name__ == "__main__":
    main()
