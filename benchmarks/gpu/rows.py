"""The rows: what is run in which ways, and how much work that is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from maze_nca_gym.agents import load
from maze_nca_gym.agents.policy import PATH
from maze_nca_gym.agents.rollouts import engines, iterate
from maze_nca_gym.agents.rollouts.pytorch import Request
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import one_hot
from maze_nca_gym.solvers import shortest_path

from ..training import Setting, counted_iterations, loss, problem
from .measuring import PRECISIONS, Effort, Peaks, computing, launches_of, seconds_of, wait

WAYS: dict[str, engines.Engine] = {
    "eager": engines.PYTORCH,
    "CUDA graph": engines.RECORDED,
    "torch.compile": engines.PYTORCH,
}
"""Ways to run a rollout, those first that need no compiler of half a minute."""
STEPS_OF_ENVIRONMENTS = 20
PATH_FROM = 0.5
"""Where a tile belongs to the path."""
GUIDED = "nca-shortest-path"
"""The network that was trained with guidance."""
EVERY = 256
"""Iterations after which it is asked whether it has finished."""


@dataclass(frozen=True)
class Line:
    """What was measured of one job in one way.

    Attributes:
        row: the group, such as "D1".
        name: what is done.
        way: how.
        seconds: time of one; None where it was not run.
        rate: environment steps in a second, if these are counted.
        of_peak: share of the matrix peak in this precision, if it multiplies matrices.
        of_bandwidth: share of the bandwidth, if every state were read and written once a step.
        launches: how often the GPU was given work; None without a GPU.
        note: why it was not run, or what came of it.
    """

    row: str
    name: str
    way: str
    seconds: float | None = None
    rate: float | None = None
    of_peak: float | None = None
    of_bandwidth: float | None = None
    launches: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Scale:
    """How large the jobs are.

    Attributes:
        n_envs: numbers of environments.
        n_mazes: mazes of an update.
        size: of these mazes.
        share: of the channels and steps of a network.
        side: of the perfect maze.
    """

    n_envs: tuple[int, ...]
    n_mazes: int
    size: int
    share: float
    side: int


FULL = Scale((1024, 4096, 16384, 65536), 64, 16, 1.0, 512)
QUICK = Scale((2, 4), 2, 3, 0.04, 6)


@dataclass(frozen=True)
class Bench:
    """Where and how much to measure.

    Attributes:
        device: the device.
        scale: how large the jobs are.
        effort: how often each runs.
        peaks: what the device does at most.
        ways: names in `WAYS`.
    """

    device: torch.device
    scale: Scale
    effort: Effort
    peaks: Peaks
    ways: tuple[str, ...] = field(default=tuple(WAYS))


Job = Callable[[Bench], Line]


def jobs(bench: Bench) -> Iterator[tuple[Line, Job]]:
    """Yield every job, with the line for when there is no time for it."""
    for n_envs in bench.scale.n_envs:
        line = Line("C3", f"a step of {n_envs:,} environments", "on the device")
        yield line, _bound(_environments, line, n_envs)
    slow = "torch.compile"
    for way in sorted(bench.ways, key=lambda way: way == slow):
        for line, setting, learns in _networks(bench.scale):
            for precision in PRECISIONS if way != slow else ("tf32",):
                own = Line(line.row, line.name, f"{way}, {precision}")
                yield own, _bound(_rollout, own, setting, learns, way, precision)
        if way == bench.ways[0]:
            side = bench.scale.side
            line = Line("E", f"a perfect maze of {side}x{side} by {GUIDED}", "as rollout chooses")
            yield line, _bound(_guided, line)


def _bound(job: Callable[..., Line], line: Line, *rest: Any) -> Job:
    return lambda bench: job(bench, line, *rest)


def _networks(scale: Scale) -> list[tuple[Line, Setting, bool]]:
    """Return rows with their network, and whether it learns."""
    n_small, n_large = (max(3, round(n * scale.share)) for n in (32, 96))
    few, many = (max(2, round(n * scale.share)) for n in (32, 64))
    small = {"n_channels": n_small, "cut_corners": True, "n_iterations": few}
    large = {"n_channels": n_large, "n_iterations": None}
    n, size = scale.n_mazes, scale.size
    of_small = f"5 taps, {n_small} channels, {few} steps, {n} mazes of {size}x{size}"
    of_large = f"9 taps, {n_large} channels, {many} steps, {n} mazes of {size}x{size}"
    separate = {**small, "shared_weights": False}
    return [
        (Line("D1", f"an update, {of_small}", ""), Setting(small, few, n, size), True),
        (Line("D2", f"an update, {of_large}", ""), Setting(large, many, n, size), True),
        (Line("D3", f"a rollout, {of_large}", ""), Setting(large, many, n, size), False),
        (Line("D4", f"an update, weights for each step, {of_small}", ""), Setting(separate, few, n, size), True),
    ]


def _environments(bench: Bench, line: Line, n_envs: int) -> Line:
    """Steps with states that solve no maze, so that no episode ends before its time."""
    envs = gym.make_vec("MazeShortestPath-v0", n_envs, device=str(bench.device), output="torch")
    envs.reset(seed=0)
    shape = envs.action_space.shape
    action = torch.rand(shape, generator=torch.Generator(bench.device).manual_seed(0), device=bench.device)

    def run() -> None:
        for _ in range(STEPS_OF_ENVIRONMENTS):
            envs.step(action)

    seconds = seconds_of(run, bench.device, bench.effort) / STEPS_OF_ENVIRONMENTS
    moved = 2 * action.numel() * action.element_size() / seconds
    launches = launches_of(lambda: envs.step(action), bench.device)
    envs.close()
    numbers = {"rate": n_envs / seconds, "of_bandwidth": moved / bench.peaks.bandwidth, "launches": launches}
    return Line(line.row, line.name, line.way, seconds, **numbers)


def _rollout(bench: Bench, line: Line, setting: Setting, learns: bool, way: str, precision: str) -> Line:
    nca, maze, target = (part.to(bench.device) for part in problem(setting))
    keep = tuple(counted_iterations(setting.n_steps)) if learns else (setting.n_steps,)
    request = Request(tuple(sorted({step for step in keep if step})), n_returned=1)
    if way == "torch.compile":
        nca.compile()

    def run() -> None:
        nca.zero_grad()
        with torch.set_grad_enabled(learns), computing(precision, bench.device):
            states = WAYS[way](nca, maze, None, request)
            loss_of = loss(states, target) if learns else None
        if loss_of is not None:
            loss_of.backward()

    run()  # the first rollout of a kind is not recorded yet, the second one records
    seconds = seconds_of(run, bench.device, bench.effort)
    n_numbers = maze.shape[2] * maze.shape[3] * len(maze) * nca.n_channels * setting.n_steps
    products = 2 * n_numbers * nca.n_channels * nca.weights[0].shape[2] * (3 if learns else 1)  # the way back has two
    moved = 2 * 4 * n_numbers * (2 if learns else 1)
    return Line(
        line.row,
        line.name,
        line.way,
        seconds,
        of_peak=products / seconds / bench.peaks.products[precision],
        of_bandwidth=moved / seconds / bench.peaks.bandwidth,
        launches=launches_of(run, bench.device),
    )


def _guided(bench: Bench, line: Line) -> Line:
    """The whole solution, once: as often as it takes would be too long."""
    policy = load(GUIDED).to(bench.device)
    tiles = generate(np.random.default_rng(0), 1, bench.scale.side, "perfect")
    maze = torch.from_numpy(one_hot(tiles)).to(bench.device)
    solution = shortest_path(tiles)
    moments = range(EVERY, 4 * int(solution.sum()) + EVERY, EVERY)
    with torch.no_grad():
        deque(iterate(policy, maze, [1]), maxlen=0)
        wait(bench.device)
        start = perf_counter()
        step, state = deque(
            zip(moments, iterate(policy, maze, moments, until_finished=True), strict=False), maxlen=1
        ).pop()
        wait(bench.device)
        seconds = perf_counter() - start
    drawn = state[:, PATH].cpu().numpy() > PATH_FROM
    ending = "complete" if (drawn == solution).all() else "not complete"
    note = f"{step:,} iterations for a path of {int(solution.sum()):,} tiles, {ending}"
    return Line(line.row, line.name, line.way, seconds, note=note)
