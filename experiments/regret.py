"""Compare estimates of regret with the true regret: `python -m experiments.regret --help`.

First, PPO trains an automaton on random and perfect mazes. Estimates from unsupervised environment design are computed
from two episodes on each fresh level. The true regret is 1 minus the mean return of eight other episodes, because an
optimal answer has the return 1.

Second, agents train with half of their episodes on the quarter of fresh levels that an estimate ranks highest.

Third, levels are ranked by the paths of three networks that learned from solutions.

Each run stores its result in a file, `<out>/<chosen by>-<seed>.json`. The command prints the tables of REGRET.md, and
draws the true regret over the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor, nn

from maze_nca_gym.agents import load
from maze_nca_gym.agents.evaluation.drawing import COLOURS, count_axis, curve, figure, panels
from maze_nca_gym.agents.evaluation.statistics import spearman, student
from maze_nca_gym.agents.reinforcement import NCAActorCriticPolicy, make_path_vec
from maze_nca_gym.agents.rollouts.iterating import rollout
from maze_nca_gym.agents.rollouts.scores import encode
from maze_nca_gym.agents.rollouts.symmetrised import ORIENTATIONS, turn, turn_back
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.envs.dynamics import initial, transition
from maze_nca_gym.envs.wrappers.path_action import paths_of
from maze_nca_gym.mazes import SHORTEST_PATH, Tiles, generate, validation_levels
from maze_nca_gym.mazes.mutation import mutate
from maze_nca_gym.mazes.population.members import measure_levels
from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import rng_for
from maze_nca_gym.support.tables import Table

from .cache import Record, all_cached

Floats = NDArray[np.float64]
GAMMA, LAMBDA = 0.9, 0.95
"""Discount and lambda of the advantages, in PPO and in the estimates."""
N_STEPS, N_ENVS, SIZE = 8, 128, 8
CHUNK = 4 * N_STEPS * N_ENVS
"""Number of steps between two choices of levels."""
FAMILIES = ("random", "perfect")
NETWORKS = ("nca-shortest-path-baseline", "nca-shortest-path-small", "nca-shortest-path-aligned")
"""Networks that learned from solutions and still make errors. Levels are ranked by their paths."""


class Play(NamedTuple):
    """K episodes on each of N levels.

    Attributes:
        rewards: (T, K, N), the accuracy that each step gains; 0 after the end of an episode.
        values: (T + 1, K, N), the critic's value before each step and after the last step; 0 after an optimal path.
        counts: (T, K, N) bool, whether the episode had not ended before the step.
        optimal: (K, N) bool, whether the episode ended with an optimal path.
        surprises: for each predictor (T, K, N), the error of its prediction of the state after each step.
    """

    rewards: Floats
    values: Floats
    counts: NDArray[np.bool_]
    optimal: NDArray[np.bool_]
    surprises: tuple[Floats, ...] = ()

    @property
    def returns(self) -> Floats:
        """The returns of the episodes, (K, N); 1 for an optimal answer."""
        return self.rewards.sum(axis=0)

    def mean(self, of_steps: Floats) -> Floats:
        """Return the mean of (T, K, N) numbers over the steps of all episodes on each level, (N,)."""
        return (of_steps * self.counts).sum(axis=(0, 1)) / self.counts.sum(axis=(0, 1))

    @property
    def errors(self) -> Floats:
        """The temporal-difference errors, (T, K, N): reward plus discounted next value, minus the value before."""
        return self.rewards + GAMMA * self.values[1:] - self.values[:-1]

    def advantages(self) -> Floats:
        """Return generalised advantage estimates, the discounted sums of the errors from each step on, (T, K, N)."""
        sums = self.errors
        for t in range(len(sums) - 2, -1, -1):
            sums[t] += GAMMA * LAMBDA * sums[t + 1]
        return sums

    def shortfalls(self) -> Floats:
        """Return the shortfall of each step below its value, (T, K, N), at least 0.

        The shortfall is the negative of the generalised advantage estimate, a mean of sums over 1, 2, ... steps. The
        difference is that a sum above 0 is set to 0 before the next step is added.
        """
        errors, sums = self.errors, np.zeros_like(self.rewards)
        for t in range(len(errors)):
            running = np.zeros_like(errors[t])
            for i, error in enumerate(errors[t:]):
                running = np.minimum(running + GAMMA**i * error, 0)
                sums[t] -= LAMBDA**i * (1 if t + i == len(errors) - 1 else 1 - LAMBDA) * running
        return sums


class Predictor(BaseCallback):
    """A small network that learns to predict the state after a step, from all episodes of an agent's training.

    Args:
        seed: seed of the initial weights.
        sees_action: whether the network reads the action too.
    """

    def __init__(self, seed: int, sees_action: bool) -> None:
        super().__init__()
        self._sees_action, n_channels = sees_action, SHORTEST_PATH.n_tiles + 1 + sees_action
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = nn.Sequential(nn.Conv2d(n_channels, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))
        self._optimizer = torch.optim.Adam(self._network.parameters(), 3e-3)

    def surprise(self, maze: Tensor, state: Tensor, action: Tensor, after: Tensor) -> Tensor:
        """Return the mean absolute error over the tiles, (B,), for (B, C, H, W) parts of a step."""
        inputs = torch.cat([maze, state, action] if self._sees_action else [maze, state], dim=1)
        return cast(Tensor, self._network(inputs) - after).abs().mean(dim=(1, 2, 3))

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        buffer = cast(PPO, self.model).rollout_buffer
        maze, state = (torch.as_tensor(cast(dict[str, Floats], buffer.observations)[of]) for of in ("maze", "state"))
        actions, starts = torch.as_tensor(buffer.actions).reshape(state.shape), buffer.episode_starts.astype(np.bool_)
        for t in range(N_STEPS - 1):
            goes_on = ~starts[t + 1]
            if goes_on.any():
                self._optimizer.zero_grad()
                self.surprise(*(of[goes_on] for of in (maze[t], state[t], actions[t], state[t + 1]))).mean().backward()
                self._optimizer.step()


@torch.no_grad()
def play(
    agent: PPO, tiles: Tiles, n: int, seed: int, deterministic: bool = False, predictors: Sequence[Predictor] = ()
) -> Play:
    """Play n episodes on each of N levels.

    Args:
        agent: the agent.
        tiles: (N, H, W) uint8.
        n: number of episodes on each level.
        seed: seed of the agent's noise.
        deterministic: whether the agent acts without noise.
        predictors: predictors whose errors are measured.
    """
    levels = np.tile(tiles, (n, 1, 1))
    state = initial(levels, SHORTEST_PATH.solve_all(levels), SHORTEST_PATH.n_tiles, 1)
    alive, steps, values, errors = np.ones(len(levels), np.bool_), [], [], []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for step in range(N_STEPS + 1):
            observation = {"maze": torch.from_numpy(state.maze), "state": torch.from_numpy(state.channels)}
            actions, value, _ = agent.policy(observation, deterministic)
            values.append(np.where(alive, value[:, 0].numpy(), 0.0))
            if step < N_STEPS:
                next_state = transition(state, paths_of(actions.numpy()), SHORTEST_PATH.judge)
                steps.append((np.where(alive, next_state.scores.accuracy - state.scores.accuracy, 0.0), alive))
                parts = (observation["maze"], observation["state"], actions, torch.from_numpy(next_state.channels))
                errors.append([predictor.surprise(*parts).numpy() for predictor in predictors])
                state, alive = next_state, alive & ~next_state.scores.optimal
    rewards, counts = (np.stack(arrays).reshape(N_STEPS, n, -1) for arrays in zip(*steps, strict=True))
    surprises = tuple(np.stack(arrays).reshape(N_STEPS, n, -1) for arrays in zip(*errors, strict=True))
    return Play(rewards, np.stack(values).reshape(N_STEPS + 1, n, -1), counts, ~alive.reshape(n, -1), surprises)


ESTIMATES: Mapping[str, Callable[[Play, Play, Tiles], Floats]] = {
    "true regret": lambda agent, antagonist, tiles: 1 - agent.returns.mean(axis=0),
    "MaxMC": lambda agent, antagonist, tiles: agent.mean(agent.returns.max(axis=0) - agent.values[:-1]),
    "MaxMC of the rest": lambda agent, antagonist, tiles: agent.mean(
        agent.returns.max(axis=0) - agent.rewards.cumsum(axis=0) + agent.rewards - agent.values[:-1]
    ),
    "positive value loss": lambda agent, antagonist, tiles: agent.mean(np.maximum(agent.advantages(), 0)),
    "L1 value loss": lambda agent, antagonist, tiles: agent.mean(np.abs(agent.advantages())),
    "MNA": lambda agent, antagonist, tiles: agent.mean(agent.shortfalls()),
    "MNA if solved": lambda agent, antagonist, tiles: agent.mean(agent.shortfalls()) * agent.optimal.any(axis=0),
    "TRACED": lambda agent, antagonist, tiles: agent.mean(np.maximum(agent.advantages(), 0) + agent.surprises[0]),
    "transition error": lambda agent, antagonist, tiles: agent.mean(agent.surprises[0]),
    "the same without the action": lambda agent, antagonist, tiles: agent.mean(agent.surprises[1]),
    "PAIRED": lambda agent, antagonist, tiles: antagonist.returns.max(axis=0) - agent.returns.mean(axis=0),
    "1 - first value": lambda agent, antagonist, tiles: 1 - agent.values[0].mean(axis=0),
    "solution length": lambda agent, antagonist, tiles: SHORTEST_PATH.solve_all(tiles).sum(axis=(1, 2)),
}
"""Name -> function that computes the (N,) scores of levels from two episodes of the agent and two episodes of its
antagonist.

`MaxMC of the rest` subtracts the rewards gained so far from the best return, because rewards come at every step here
and values estimate only future rewards. TRACED's co-learnability is left out because it is the same for all levels that
are scored at the same time.
"""
CHOSEN_BY = {**ESTIMATES, "ACCEL": ESTIMATES["positive value loss"]}
"""Scores by which levels are chosen. ACCEL ranks levels as PLR does, but half of its candidates are edits of the levels
that it chose last."""
ARMS = ("chance", "true regret", "positive value loss", "MaxMC of the rest", "L1 value loss", "PAIRED", "MNA")


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    chosen_by: tuple[str, ...] = ARMS
    """Estimates that choose levels, ACCEL, or chance."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds. Each way of choosing levels has a run for each seed."""
    n_chunks: int = 8
    """Length of a run, in chunks of 4,096 steps; a multiple of 8."""
    size: int = SIZE
    """Inner size of the levels."""
    jobs: int = 1
    """Number of runs at the same time, each on one thread."""
    out: Path = Path("runs/regret")
    """Folder of all runs."""


def draw(rng: np.random.Generator, n: int, size: int = SIZE) -> Tiles:
    """Return n fresh levels, (n, H, W) uint8, random and perfect mazes in turn."""
    parts = [generate(rng, n // len(FAMILIES), size, family) for family in FAMILIES]
    return np.stack(parts, axis=1).reshape(n, *parts[0].shape[1:])


def make_run(chosen_by: str, seed: int, n_chunks: int, size: int) -> Record:
    """Train an agent, and an antagonist if the estimate needs one.

    Args:
        chosen_by: one of `CHOSEN_BY`, or "chance" for random levels.
        seed: seed of the run.
        n_chunks: number of chunks, a multiple of 8.
        size: inner size of the levels.

    Returns:
        `correlations` (only for "chance") and `curve` after 1/8, 1/4, 1/2 and all of the training, see `correlate` and
        `validate`; `regret`: for each chunk and at the end the number of steps, and the true regret without noise on
        unseen levels and on the chosen levels.
    """
    rng, pool = rng_for(seed, "levels"), [draw(rng_for(seed, "first"), 256, size)]

    def choose(rows: NDArray[np.intp], _: object) -> Tiles:
        replayed = pool[0][rng.integers(len(pool[0]), size=len(rows))]
        fresh = draw(rng, len(rows) + len(rows) % 2, size)[: len(rows)]
        return np.where((rng.random(len(rows)) < 0.5)[:, None, None], fresh, replayed)

    agents = [make_agent(seed + 1000 * i, choose, size) for i in range(1 + (chosen_by in ("chance", "PAIRED")))]
    predictors = [Predictor(seed, sees_action) for sees_action in (True, False)]
    correlations, curves, regrets, unseen = [], [], [], draw(rng_for(seed, "unseen"), 512, size)

    def regret_on(tiles: Tiles) -> float:
        return 1 - float(play(agents[0], tiles, 1, 0, deterministic=True).returns.mean())

    for chunk in range(n_chunks):
        candidates = draw(rng_for(seed, "candidates", chunk), 256, size)
        if chosen_by == "ACCEL" and chunk:
            parents = np.resize(pool[0], candidates[:128].shape)
            candidates[:128] = mutate(rng_for(seed, "edits", chunk), parents, "edits")
        pool[0] = candidates
        if chosen_by != "chance" and chunk:
            plays = (play(agents[i], pool[0], 2, chunk, predictors=predictors) for i in (0, -1))
            scores = CHOSEN_BY[chosen_by](*plays, pool[0])
            pool[0] = pool[0][np.argsort(-scores)[: len(scores) // 4]]
        regrets.append((chunk * CHUNK, regret_on(unseen), regret_on(pool[0])))
        for agent in agents:
            agent.lr_schedule = lambda _, remaining=1 - chunk / n_chunks: 3e-3 * remaining
            agent.learn(CHUNK, [*predictors] if agent is agents[0] else None, reset_num_timesteps=False)
        if n_chunks / (chunk + 1) in (1, 2, 4, 8):
            n = (chunk + 1) * CHUNK
            if chosen_by == "chance":
                fresh = draw(rng_for(seed, "fresh", chunk), 512, size)
                correlations.append({"steps": n, **correlate(agents, predictors, fresh, chunk)})
            curves.append({"steps": n, **validate(agents[0], size)})
    regrets.append((n_chunks * CHUNK, regret_on(unseen), regret_on(pool[0])))
    return {"chosen_by": chosen_by, "seed": seed, "correlations": correlations, "curve": curves, "regret": regrets}


def make_agent(seed: int, choose: Callable[..., Tiles], size: int = SIZE) -> PPO:
    """Return an untrained agent. Its episodes begin on the levels that `choose` returns."""
    env = make_path_vec("MazeShortestPath-v0", N_ENVS, size=size, max_episode_steps=N_STEPS)
    env.unwrapped.env.unwrapped.choose_levels_with(choose)
    steps = {"n_steps": N_STEPS, "batch_size": 256, "n_epochs": 1, "gamma": GAMMA, "gae_lambda": LAMBDA}
    return PPO(NCAActorCriticPolicy, env, clip_range=0.5, max_grad_norm=0.05, vf_coef=0.1, seed=seed, **steps)


def correlate(agents: Sequence[PPO], predictors: Sequence[Predictor], tiles: Tiles, seed: int) -> Record:
    """Return rank correlations of each estimate, and its mean.

    Args:
        agents: the agent, and as the last item its antagonist.
        predictors: predictors for the estimates that need them.
        tiles: (N, H, W) uint8, random and perfect levels in turn.
        seed: seed of the noise.

    Returns:
        "all" and each family -> estimate -> its correlation with the true regret of the agent on these levels; "length"
        -> estimate -> its correlation with the length of the solution; "mean" -> estimate -> its mean.
    """
    agent, antagonist = (play(agents[i], tiles, 2, seed, predictors=predictors) for i in (0, -1))
    true = 1 - play(agents[0], tiles, 8, seed + 500).returns.mean(axis=0)
    scores = {name: estimate(agent, antagonist, tiles) for name, estimate in ESTIMATES.items()}
    length, families = scores["solution length"], np.arange(len(tiles)) % len(FAMILIES)
    parts = {"all": length > 0, **{family: families == i for i, family in enumerate(FAMILIES)}}
    correlations = {
        part: {name: spearman(values[at], true[at]) for name, values in scores.items()} for part, at in parts.items()
    }
    correlations["length"] = {name: spearman(values, length) for name, values in scores.items()}
    return {**correlations, "mean": {name: float(values.mean()) for name, values in scores.items()}}


def validate(agent: PPO, size: int) -> Record:
    """Return for each validation set the agent's mean return without noise, and the fraction of optimal paths."""
    sets = {family: validation_levels(family, size, SHORTEST_PATH.name, 512).tiles for family in FAMILIES}
    plays = {family: play(agent, tiles, 1, 0, deterministic=True) for family, tiles in sets.items()}
    return {name: (float(result.returns.mean()), float(result.optimal.mean())) for name, result in plays.items()}


@torch.no_grad()
def supervised(name: str, tiles: Tiles) -> Mapping[str, tuple[float | None, float]]:
    """Return how well estimates from a network's paths rank levels.

    Args:
        name: name of the network.
        tiles: (N, H, W) uint8, levels from `draw`.

    Returns:
        Estimate -> its rank correlation with the true regret, and the probability that it ranks a level that the
        network fails above a level of the same family that the network solves.
    """
    policy, target = load(name), SHORTEST_PATH.solve_all(tiles)
    maze, n = encode(policy, tiles), policy.default_steps
    late, path = (x[:, 0].clip(0, 1) for x in rollout(policy, maze, (3 * n // 4, n), n_returned=1))
    turned = [turn_back(rollout(policy, turn(maze, i), n, n_returned=1), i)[:, 0] for i in range(len(ORIENTATIONS))]
    maps = {"p (1 - p)": path * (1 - path), "change since 3/4": (path - late) ** 2}
    maps["disagreement of orientations"] = torch.stack(turned).clip(0, 1).var(dim=0)
    true, loss = (
        measure_levels(score, tiles, path.numpy(), target, SHORTEST_PATH.judge) for score in ("regret", "loss")
    )
    failed, families = true.complete == 0, np.arange(len(tiles)) % len(FAMILIES)
    same = families[failed][:, None] == families[~failed]
    scores = {"loss against the canonical path": loss.regret, "solution length": target.sum(axis=(1, 2))}
    scores |= {label: heat.mean(dim=(1, 2)).numpy() for label, heat in maps.items()}
    return {
        label: (spearman(values, true.regret), float((values[failed][:, None] > values[~failed])[same].mean()))
        for label, values in scores.items()
    }


def table(first: str, of_rows: Mapping[str, Mapping[str, Sequence[float | None]]]) -> str:
    """Return a table in Markdown of means, with intervals if there are several values.

    Args:
        first: heading of the first column.
        of_rows: name of a row -> column -> values.
    """
    columns = [first, *next(iter(of_rows.values()))]
    rows = [[name, *(_cell(*cell) for cell in cells.items())] for name, cells in of_rows.items()]
    return Table(columns, rows).markdown() + "\n"


def fisher(correlations: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of some correlations by Student's t of Fisher's z, within -1 and 1.

    None for fewer than three correlations, or if a correlation is -1 or 1, because its z is infinite.
    """
    if max(map(abs, correlations), default=1.0) >= 1 or (ends := student(np.arctanh(correlations))) is None:
        return None
    return math.tanh(ends[0]), math.tanh(ends[1])


def _cell(column: str, results: Sequence[float | None]) -> str:
    """Return a mean with its interval, by Fisher's z for correlations and by Student's t for returns and fractions."""
    values = [value for value in results if value is not None]
    if len(values) < len(results):
        return "-"  # an estimate was the same for all levels, so it has no correlation
    if not column.startswith(("return", "optimal")):
        ends = fisher(values)
    elif (ends := student(values)) is not None:
        ends = max(ends[0], 0.0 if column.startswith("optimal") else -np.inf), min(ends[1], 1.0)
    return f"{np.mean(values):.2f}" + ("" if ends is None else f" ({ends[0]:.2f} to {ends[1]:.2f})")


def draw_regret(runs: Sequence[Record], path: Path) -> None:
    """Draw the true regret over the training, on unseen and on chosen levels: means and ranges over seeds."""
    with figure(path, 11, 4.5, "True regret, of an agent without noise") as fig:
        axes = panels(fig, 2, 2)
        for colour, name in zip(COLOURS, dict.fromkeys(run["chosen_by"] for run in runs), strict=False):
            regrets = np.array([run["regret"] for run in runs if run["chosen_by"] == name])
            for i, panel in enumerate(axes, 1):
                ends = regrets[..., i].min(axis=0), regrets[..., i].max(axis=0)
                curve(panel, regrets[0, :, 0], regrets[..., i].mean(axis=0), *ends, color=colour, label=name)
        for panel, title in zip(axes, ("unseen levels", "the levels that were chosen"), strict=True):
            panel.set(title=f"on {title}", xlabel="steps", ylabel="true regret")
            panel.set_ylim(bottom=0)
            count_axis(panel.xaxis, 4)
        axes[0].legend()


def main() -> None:
    arguments = run_script(Arguments, __doc__)
    check(arguments.n_chunks % 8 == 0, f"n_chunks must be a multiple of 8, got {arguments.n_chunks}")
    calls = {
        arguments.out / f"{chosen_by.replace(' ', '-')}-{seed}.json": (
            chosen_by,
            seed,
            arguments.n_chunks,
            arguments.size,
        )
        for seed, chosen_by in product(arguments.seeds, arguments.chosen_by)
    }
    runs = all_cached("runs", make_run, calls, arguments.jobs)
    draw_regret(runs, arguments.out / "true-regret.png")
    correlations = [run["correlations"] for run in runs if run["correlations"]]
    places = [*(("all", i) for i in range(4)), ("random", 3), ("perfect", 3)]
    first = {
        name: {
            f"{part}, {correlations[0][i]['steps']:,}": [run[i][part][name] for run in correlations]
            for part, i in places
            if correlations
        }
        for name in ESTIMATES
    }
    ends = {name: [run["curve"][-1] for run in runs if run["chosen_by"] == name] for name in arguments.chosen_by}
    measures = list(product(enumerate(("return", "optimal")), FAMILIES))
    second = {
        name: {f"{measure}, {family}": [end[family][i] for end in final_results] for (i, measure), family in measures}
        for name, final_results in ends.items()
    }
    fresh = draw(rng_for(0, "supervised"), 256, 16)
    of_networks = [supervised(name, fresh) for name in NETWORKS]
    names = [f"{network}, {measure}" for network in NETWORKS for measure in ("rank correlation", "failed above solved")]
    third = {
        label: dict(zip(names, ([value] for estimates in of_networks for value in estimates[label]), strict=True))
        for label in of_networks[0]
    }
    print("\n".join([table("estimate", first), table("levels chosen by", second), table("estimate", third)]))


if __name__ == "__main__":
    main()
