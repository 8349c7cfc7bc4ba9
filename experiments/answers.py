"""Answers alone on mazes of 30x30, in one pass: `python -m experiments.answers train --help`, and `measure`.

Trains a network further, which learned from solutions alone, on levels of 30x30 that have long solutions, half of them
with a border. A level stays in the pool for 1.5 to 4 times as many iterations as its solution has tiles, so that most
of what is computed counts in a loss. The target is the optimal path nearest to what the network draws. Ties go to the
canonical one; or, with all eight orientations of each level at once, to what the others draw, so that they teach each
other. `measure` says how many mazes of a set are right in one pass, and in eight.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.agents import Policy, load
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.rollouts import rollout
from maze_nca_gym.agents.rollouts.iterating import finished
from maze_nca_gym.agents.rollouts.symmetrised import turn, turn_back
from maze_nca_gym.agents.training.data import is_held_out
from maze_nca_gym.agents.training.losses import counted_iterations, had_time, path_losses
from maze_nca_gym.agents.training.optimisers import SCHEDULES, SOAP
from maze_nca_gym.agents.training.updates import normalise
from maze_nca_gym.mazes import (
    Tile,
    Tiles,
    best_path,
    distances,
    generate,
    is_optimal,
    load_levels,
    one_hot,
    shortest_path,
)

SIDE = 30
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "random": (64, {}),
    "perfect": (4, {}),
    "loops": (16, {"loop_fraction": 0.1}),
}
"""Generator -> number of candidates for each level, of which the one with the longest solution is taken, and options.
Half of the levels are of the first kind, a quarter of each other."""
LEAST_LIFE, MOST_LIFE = 1.5, 4.0
N_STEPS = (12, 24)
LOSS_STEPS = (0.25, 0.5, 0.75, 1.0)
VALIDATION = ("maze-unique-train-30", "maze-hard-train-30-redrawn")


def draw(rng: np.random.Generator) -> tuple[Tiles, str]:
    """Return a level, (30, 30) uint8, that is in no test or validation set, and its kind."""
    while True:
        kind, border = str(rng.choice([*KINDS, "random"])), bool(rng.integers(2))
        n, options = KINDS[kind]
        if kind == "random":
            options = {"wall_probability": rng.uniform(0.3, 0.45)}
        tiles = generate(rng, n, SIDE - 2 * border, kind, border=border, **options)
        if kind == "random":  # from the tile farthest from the source to the one farthest from that
            ends = [np.argwhere(tiles == Tile.SOURCE)[:, 1:]]
            tiles[tiles >= Tile.SOURCE] = Tile.EMPTY
            for _ in range(2):
                far = distances(tiles, ends[-1]).reshape(n, -1).argmax(axis=1)
                ends.append(np.stack(np.divmod(far, SIDE), axis=1))
            for end, kind_of_tile in zip(ends[1:], rng.permutation([Tile.SOURCE, Tile.TARGET]), strict=True):
                tiles[np.arange(n), end[:, 0], end[:, 1]] = kind_of_tile
        longest = tiles[shortest_path(tiles).sum(axis=(1, 2)).argmax()]
        if not is_held_out(longest[None], "shortest-path")[0]:
            return longest, f"{kind}{'' if border else ', no border'}"


def in_orientations(maps: Tensor, orientations: Sequence[int]) -> Tensor:
    """Return (n, ..., S, S) maps turned, (n, k, ..., S, S)."""
    return torch.stack([turn(maps, i) for i in orientations], dim=1)


def train(
    out: Path,
    start: str = "nca-shortest-path-solutions",
    n_updates: int = 7_000,
    rate: float = 3e-3,
    seed: int = 0,
    batch: int = 32,
    pool: int = 512,
    orientations: int = 1,
    tie: float = 0.25,
    retries: int = 0,
    noise: float = 0.02,
    ema_decay: float = 0.999,
    bfloat16: bool = True,
    mean_of: tuple[str, ...] = (),
) -> None:
    """Train a network further, and write the moving average of its weights to a file, every 250 updates.

    Args:
        out: the file, which ends in .safetensors.
        start: a policy by name or file.
        n_updates: number of updates.
        rate: peak of the learning rate, one cycle of SOAP.
        seed: seed of levels, pool and noise.
        batch: number of mazes in an update; turned ones count each.
        pool: number of mazes that keep their states; likewise.
        orientations: 1, or 8 for each level in all orientations at the same time.
        tie: weight beside the network's own path of the canonical one, or of the mean path of all orientations.
        retries: number of times that a level that is wrong at the end of its life starts anew.
        noise: standard deviation of the noise on states.
        ema_decay: highest decay of the moving average.
        bfloat16: whether to multiply in bfloat16.
        mean_of: files of networks whose weights are averaged to begin with, in place of `start`.
    """
    rng, turns = np.random.default_rng(seed), range(orientations)
    model = load(mean_of[0] if mean_of else start).requires_grad_().train()
    if mean_of:
        model.load_state_dict(mean_weights([load(name) for name in mean_of]))
    model.guarantees = replace(model.guarantees, needs_border=False)
    average = load(start) if not mean_of else load(mean_of[0])
    average.load_state_dict(model.state_dict())
    average.guarantees = model.guarantees
    optimiser, generator = SOAP(model.parameters(), lr=rate), torch.Generator().manual_seed(seed)
    size, n = pool // orientations, batch // orientations
    levels = [draw(rng) for _ in range(size)]
    tiles, kinds = np.stack([level for level, _ in levels]), [kind for _, kind in levels]
    target = shortest_path(tiles)
    states = torch.zeros(size, orientations, model.n_channels, SIDE, SIDE)
    ages, tries = np.zeros(size, np.int64), np.zeros(size, np.int64)
    lives = target.sum(axis=(1, 2)) * rng.uniform(LEAST_LIFE, MOST_LIFE, size)
    ended, solved, losses, began = Counter[str](), Counter[str](), [], time.perf_counter()
    for update in range(n_updates):
        lr = rate * SCHEDULES["one-cycle"](update / n_updates)
        for group in optimiser.param_groups:
            group["lr"] = lr
        places, n_steps = rng.permutation(size)[:n], int(rng.integers(N_STEPS[0], N_STEPS[1] + 1))
        maze = in_orientations(torch.from_numpy(one_hot(tiles[places], model.n_tiles)), turns).flatten(0, 1)
        first = states[places].flatten(0, 1)
        marks = counted_iterations(LOSS_STEPS, n_steps)
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            reached = rollout(model, maze, marks, first + noise * torch.randn(first.shape, generator=generator))
            path = reached[-1][:, 0].detach().float().clamp(0, 1).nan_to_num().unflatten(0, (n, orientations))
            own = torch.stack([turn_back(path[:, i], i) for i in turns], dim=1).numpy()
            other = target[places][:, None] if orientations == 1 else own.mean(axis=1, keepdims=True)
            values, repeated = own + tie * other, np.repeat(tiles[places], orientations, axis=0)
            wanted = best_path(repeated, values.reshape(repeated.shape)).reshape(own.shape)
            turned = torch.stack([turn(torch.from_numpy(wanted[:, i]), i) for i in turns], dim=1).flatten(0, 1)
            lengths = torch.from_numpy(target[places].sum(axis=(1, 2)).repeat(orientations))
            had = torch.stack([torch.from_numpy(ages[places].repeat(orientations) + mark) for mark in marks])
            loss = path_losses("mse", reached, turned.float(), had_time(lengths, had, 1.0), damped=True).sum()
        optimiser.zero_grad()
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        normalise(gradients, torch._foreach_norm(gradients))
        optimiser.step()
        decay = min(ema_decay, (update + 1) / (update + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
        losses.append(float(loss.detach()))
        states[places] = reached[-1].detach().float().unflatten(0, (n, orientations))
        ages[places] += n_steps
        right = is_optimal(repeated, own.reshape(repeated.shape) > 0.5).reshape(own.shape[:2])
        exploded = ~(states[places].abs().flatten(1).amax(dim=1) <= 100).numpy()
        for place, each, gone in zip(places, right, exploded, strict=True):
            if ages[place] < lives[place] and not gone:
                continue
            ended[kinds[place]] += orientations
            solved[kinds[place]] += int(each.sum())
            ages[place], states[place] = 0, 0
            if not gone and not each.all() and tries[place] < retries:
                tries[place] += 1
                continue
            level, kinds[place] = draw(rng)
            tiles[place], target[place], tries[place] = level, shortest_path(level), 0
            lives[place] = target[place].sum() * rng.uniform(LEAST_LIFE, MOST_LIFE)
        if (update + 1) % 250 == 0 or update + 1 == n_updates:
            save_model(average, out)
            rates = "; ".join(f"{kind} {solved[kind] / ended[kind]:.1%} of {ended[kind]}" for kind in sorted(ended))
            seconds = time.perf_counter() - began
            print(f"{update + 1} {seconds:.0f} s lr {lr:.1e} loss {np.mean(losses):.4f} {rates}", flush=True)
            ended, solved, losses = Counter(), Counter(), []


def mean_weights(policies: Sequence[Policy]) -> dict[str, Tensor]:
    """Return the means of the weights of networks of one shape, by name."""
    weights = [policy.state_dict() for policy in policies]
    return {name: torch.stack([each[name] for each in weights]).mean(dim=0) for name in weights[0]}


@torch.no_grad()
def right_in(policy: Policy, tiles: Tiles, n_steps: int, orientations: int) -> NDArray[np.int64]:
    """Return the first orientation in which a policy draws an optimal path after some iterations, (N,); 8 if in none.

    What `Symmetrised` shows is right where any orientation is. A maze whose state has come to rest is run no further.
    """
    first = np.full(len(tiles), 8)
    for orientation in range(orientations):
        left = np.flatnonzero(first == 8)
        for rows in np.split(left, range(32, len(left), 32)) if len(left) else []:
            maze = turn(torch.from_numpy(one_hot(tiles[rows], policy.n_tiles)), orientation)
            state, done = maze.new_zeros(len(rows), policy.n_channels, SIDE, SIDE), np.zeros(len(rows), np.bool_)
            for step in range(0, n_steps, 50):
                moving = np.flatnonzero(~done)
                if not len(moving):
                    break
                state[moving] = rollout(policy, maze[moving], 50, state[moving], start_step=step)
                done[moving] = finished(policy, maze[moving], state[moving], step + 50).numpy()
            path = turn_back(state[:, 0], orientation).numpy() > 0.5
            first[rows[is_optimal(tiles[rows], path)]] = orientation
    return first


def measure(
    policies: tuple[str, ...],
    sets: tuple[str, ...] = VALIDATION,
    n: int = 128,
    n_steps: int = 600,
    orientations: int = 1,
    average: bool = False,
) -> None:
    """Print how many mazes of the sets are valid and optimal, in one pass and in eight orientations.

    Args:
        policies: names or files.
        sets: names of level sets.
        n: the number of mazes of each, the first ones.
        n_steps: the number of iterations, a multiple of 50.
        orientations: 1 or 8.
        average: whether to measure the mean of the weights instead of each.
    """
    loaded = {name: load(name) for name in policies}
    if average:
        mean = load(policies[0])
        mean.load_state_dict(mean_weights([*loaded.values()]))
        loaded = {"mean": mean}
    for name, policy in loaded.items():
        for levels in sets:
            first = right_in(policy, load_levels(levels).tiles[:n], n_steps, orientations)
            counts = f"{np.mean(first == 0):.1%} in one pass"
            counts += f", {np.mean(first < 8):.1%} in {orientations}" if orientations > 1 else ""
            print(f"{name}: {levels} {counts} of {len(first)}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    tyro.extras.subcommand_cli_from_dict({"train": train, "measure": measure}, description=__doc__)
