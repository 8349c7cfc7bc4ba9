"""Hashes of results that must not change with the code: levels, answers, states, updates, populations.

    python -m tools.digests write digests.json            # on the commit before a change
    python -m tools.digests check digests.json            # on the commit after it
    python -m tools.digests check digests.json --parts levels states

Hashes of floating-point results (states, updates, populations) are comparable only on the same machine. Hashes of
levels and answers are the same everywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from maze_nca_gym.agents import evolve, iterate, list_policies, load, train
from maze_nca_gym.agents.rollouts.engines import STEPPING, preferring
from maze_nca_gym.mazes import (
    FAMILIES,
    GENERATORS,
    find_benchmark_set,
    find_task,
    generate,
    list_benchmark_sets,
    one_hot,
    shortest_path,
    test_levels,
    validation_levels,
)

N_UPDATES = 20
PRESETS = {
    "fast": {},
    "fast-diameter": {},
    "extrapolate": {"n_channels": 16},
    "extrapolate-diameter": {"n_channels": 16},
    "guided": {},
    "healing": {"n_channels": 16},
    "paper-shortest-path": {"n_channels": 16, "n_levels": 500},
    "paper-diameter": {"n_channels": 16, "n_levels": 500},
    "paper-shortest-path-evolved": {"n_channels": 16, "n_levels": 500},
    "paper-diameter-evolved": {"n_channels": 16, "n_levels": 500},
}
"""Preset -> options that make its updates cheap, but leave out no part of an update."""


def digest(*arrays: Any) -> str:
    """Return a hash of the shapes, dtypes and contents of arrays."""
    sha = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        sha.update(f"{array.shape} {array.dtype}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()[:16]


def of_levels() -> Iterator[tuple[str, str]]:
    """Yield the hashes of levels and answers: of every generator, test set, validation set and benchmark set."""
    for name in GENERATORS:
        for size in (8, 16, (9, 21)):
            tiles = generate(np.random.default_rng(7), 32, size, name)
            yield f"generator {name} {size}", digest(tiles, shortest_path(tiles))
    for family in FAMILIES:
        for task in ("shortest-path", "diameter"):
            for draw in (test_levels, validation_levels):
                levels = draw(family, 16, task, 32)
                answers = find_task(task).solve(levels.tiles)
                yield f"{draw.__name__} {family} {task}", digest(levels.tiles, answers)
    for name in list_benchmark_sets():
        benchmark = find_benchmark_set(name)
        tiles = benchmark.levels(2).tiles
        yield f"benchmark {name}", digest(tiles, benchmark.label(tiles))


@torch.no_grad()
def of_states() -> Iterator[tuple[str, str]]:
    """Yield for each policy the hash of its weights, and the hash of its states in 40 iterations on 64 levels."""
    for name in (name for name, info in list_policies(all=True).items() if info.role in ("main", "variant")):
        policy = load(name)
        tiles = test_levels("random", 10, policy.task, 64).tiles
        maze = torch.from_numpy(one_hot(tiles, policy.n_tiles))
        with preferring(STEPPING):
            states = [state.numpy() for state in iterate(policy, maze, 40)][1:]
        weights = [value.numpy() for _, value in sorted(policy.state_dict().items())]
        yield f"weights {name}", digest(*weights)
        yield f"states {name}", digest(*states)


def of_updates() -> Iterator[tuple[str, str]]:
    """Yield the hash of each preset's weights after its first updates."""
    for name, options in PRESETS.items():
        with tempfile.TemporaryDirectory() as folder:
            train(
                name,
                out=folder,
                device="cpu",
                n_updates=N_UPDATES,
                batch_size=32,
                log_every=N_UPDATES,
                validate_every=N_UPDATES,
                **options,
            )
            weights = load_file(Path(folder) / "model.safetensors")
        yield f"updates {name}", digest(*(weights[key] for key in sorted(weights)))


def of_populations() -> Iterator[tuple[str, str]]:
    """Yield for two policies the hash of the levels that evolved against the policy for five rounds."""
    for policy in ("nca-shortest-path-small", "diameter"):
        with tempfile.TemporaryDirectory() as folder:
            population = evolve(policy, n=48, rounds=5, size=10, out=folder, picture_every=100)
            yield f"population {policy}", digest(population.tiles)


PARTS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "levels": of_levels,
    "states": of_states,
    "updates": of_updates,
    "populations": of_populations,
}


def main() -> int:
    """Write or check the hashes, and return the exit code: 1 if a hash differs or is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("write", "check"), help="write hashes to the file, or compare with the file")
    parser.add_argument("file", type=Path, help="JSON file with the hashes")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="results to hash")
    options = parser.parse_args()
    expected = {} if options.verb == "write" else json.loads(options.file.read_text(encoding="utf-8"))
    hashes: dict[str, str] = {}
    n_differing = 0
    for part in options.parts:
        for name, value in PARTS[part]():
            hashes[name] = value
            if options.verb == "check" and expected.get(name) != value:
                n_differing += 1
                print(f"{name}: was {expected.get(name)}, is {value}", flush=True)
    if options.verb == "write":
        options.file.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
    print(f"{len(hashes)} hashes, {n_differing} differ", file=sys.stderr)
    return int(n_differing > 0)


if __name__ == "__main__":
    sys.exit(main())
