"""The kernels give the same bits compiled and interpreted; each is compiled on its first use, and then cached."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from maze_nca_gym import _kernels, dynamics, solvers
from maze_nca_gym._kernels.compiling import kernels
from maze_nca_gym.generation import GENERATORS, generate
from maze_nca_gym.levels import clear_endpoints, parse
from maze_nca_gym.scoring import score

Arrays = tuple[NDArray[Any], ...]


def mazes_of_all_kinds(rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Batches with and without border, connected or not, of many shapes."""
    shapes = [(1, 1), (1, 7), (6, 1), (4, 4), (5, 9), (8, 3)]
    bare = [(rng.random((6, *shape)) < rng.uniform(0.1, 0.6)).astype(np.uint8) for shape in shapes]
    return bare + [np.pad(batch, ((0, 0), (1, 1), (1, 1)), constant_values=1) for batch in bare]


def solutions(rng: np.random.Generator) -> Arrays:
    levels = [generate(rng, 5, size, border=border) for size in (2, 5, (4, 7)) for border in (True, False)]
    of_levels = [solve(batch) for batch in levels for solve in (solvers.shortest_path, solvers.distances)]
    of_mazes = [
        solve(batch) for batch in mazes_of_all_kinds(rng) for solve in (solvers.diameter, solvers.eccentricities)
    ]
    single = [solvers.shortest_path(batch[0]) for batch in levels] + [solvers.diameter(parse("..#.\n....\n.#.#"))]
    return (*of_levels, *of_mazes, *single)


def optimality(rng: np.random.Generator) -> Arrays:
    """Of true optima, the canonical and the mirrored one, and of those with two tiles exchanged."""
    results = []
    for size in (3, 5, (4, 6)):
        tiles = generate(rng, 20, size, wall_probability=0.2)
        for levels in (tiles, clear_endpoints(tiles)):
            solve = solvers.shortest_path if levels is tiles else solvers.diameter
            for path in (solve(levels), solve(levels[:, ::-1, ::-1])[:, ::-1, ::-1]):
                swapped = path.copy()
                swapped[:, 1, 1], swapped[:, 1, 2] = path[:, 1, 2], path[:, 1, 1]
                results += [solvers.is_optimal(levels, path), solvers.is_optimal(levels, swapped)]
    return tuple(np.asarray(result) for result in results)


def episodes(rng: np.random.Generator) -> Arrays:
    """Two steps of either task: noisy optima of both kinds and noise."""
    results: list[NDArray[Any]] = []
    for size in (3, 6, (5, 7)):
        tiles = generate(rng, 30, size, wall_probability=0.2)
        for levels in (tiles, clear_endpoints(tiles)):
            solve = solvers.shortest_path if levels is tiles else solvers.diameter
            state = dynamics.initial(levels, solve(levels), 4, 2)
            action = rng.normal(0, 1, state.channels.shape).astype(np.float32)
            mirrored = solve(levels[:, ::-1, ::-1])[:, ::-1, ::-1]
            action[:20, 0] = mirrored[:20] + rng.uniform(-0.3, 0.3, mirrored[:20].shape)
            action[10] *= 1e20
            after = dynamics.transition(state, action)
            results += [after.channels, after.scores.table, score(levels, action[:, 0], state.target).table]
    return tuple(results)


CASES: Mapping[str, Callable[[np.random.Generator], Arrays]] = {
    **{
        f"generate {name}": lambda rng, name=name: tuple(  # type: ignore[misc]
            generate(rng, 5, size, name, border=border) for size in (5, 8, (5, 12)) for border in (True, False)
        )
        for name in GENERATORS
    },
    "solutions": solutions,
    "optimality": optimality,
    "episodes": episodes,
}


def interpret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all kernels without machine code from here on."""
    for function, _ in _kernels.REGISTRY:
        monkeypatch.setattr(kernels, function.__name__, function)


@pytest.mark.parametrize("case", CASES)
def test_interpreted_and_compiled_agree_bit_for_bit(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = CASES[case](np.random.default_rng(0))
    interpret(monkeypatch)
    interpreted = CASES[case](np.random.default_rng(0))
    for i, (a, b) in enumerate(zip(compiled, interpreted, strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes(), f"array {i}: {a} != {b}"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_interpreted_and_compiled_refuse_the_same_actions(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = generate(np.random.default_rng(0), 3, 4)
    state = dynamics.initial(tiles, solvers.shortest_path(tiles), 4, 2)
    action = np.zeros(state.channels.shape, np.float32)
    action[1, 1, 2, 3] = value
    for _ in range(2):
        with pytest.raises(ValueError, match="in episode 1 of 3"):
            dynamics.transition(state, action)
        interpret(monkeypatch)


@pytest.mark.parametrize(("id", "text"), [("MazeShortestPath-v0", "S.\n.T"), ("MazeDiameter-v0", "..\n..")])
@pytest.mark.parametrize("path", [[[1, 0], [1, 1]], [[1, 1], [0, 1]], [[0, 1], [0, 1]]])
def test_steps_give_plain_python_values_interpreted_too(
    id: str, text: str, path: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the canonical path, another of its length, and none."""
    steps = []
    for is_compiled in (True, False):
        if not is_compiled:
            interpret(monkeypatch)
        env = gym.make(id, levels=parse(text), n_channels=1)
        env.reset(seed=0)
        steps.append(env.step(np.array([path], np.float32))[1:])
        reward, terminated, _, info = steps[-1]
        assert [type(value) for value in (reward, terminated, *info.values())] == [
            float,
            bool,
            float,
            float,
            bool,
            bool,
        ]
    assert steps[0] == steps[1]


def test_every_kernel_is_compiled_for_its_one_signature() -> None:
    for function, _ in _kernels.REGISTRY:
        assert len(getattr(kernels, function.__name__).signatures) == 1


def test_an_unknown_kernel() -> None:
    with pytest.raises(AttributeError, match="no kernel 'shortest'"):
        kernels.shortest  # noqa: B018


def run_script(tmp_path: Path, *parts: str, environment: Mapping[str, str] | None = None, timeout: float = 60) -> str:
    """Run a script in a process of its own, in which nothing is compiled."""
    script = tmp_path / "script.py"
    script.write_text("\n".join(parts))
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


COUNTED_COMPILER = """
import threading, time
from types import SimpleNamespace
from maze_nca_gym._kernels import compiling
from maze_nca_gym._kernels.compiling import kernels

compiled = {}
def jit_within(namespace, modules, function, signature, compile_it):
    time.sleep(0.02)
    assert function.__name__ not in compiled
    compiled[function.__name__] = compile_it.__name__
    return SimpleNamespace(stats=SimpleNamespace(cache_hits={}))
compiling.jit_within = jit_within
"""


def test_only_what_is_asked_for_is_compiled(tmp_path: Path) -> None:
    use = "kernels.solve_shortest_path; print(*compiled)"
    expected = "find_endpoints has_border lay_out_bordered lay_out in_map search walk solve_shortest_path"
    assert sorted(run_script(tmp_path, COUNTED_COMPILER, use).split()) == sorted(expected.split())


def test_threads_compile_a_kernel_once(tmp_path: Path) -> None:
    use = """
users = [threading.Thread(target=lambda: kernels.solve_shortest_path) for _ in range(8)]
for user in users:
    user.start()
for user in users:
    user.join()
print(len(compiled) > 0)
"""
    assert run_script(tmp_path, COUNTED_COMPILER, use) == "True\n"


def test_the_first_labelled_levels_wait_for_few_kernels(tmp_path: Path) -> None:
    """Random levels with both solutions: three kernels are called from Python, and small ones are copied into them."""
    use = """
kernels.accept_random, kernels.shortest_paths, kernels.diameters
print(*(name for name, way in compiled.items() if way == "jit"))
print(sum(way == "_called" for way in compiled.values()))
"""
    called_from_python, called_from_these = run_script(tmp_path, COUNTED_COMPILER, use).splitlines()
    assert called_from_python == "accept_random shortest_paths diameters"
    assert int(called_from_these) <= 9


COUNTED_MODULES = """
import numpy as np
from numba.core import codegen
from maze_nca_gym import generation, solvers

n_modules = 0
add = codegen.CPUCodeLibrary.add_ir_module
def count(library, module):
    global n_modules
    n_modules += 1
    add(library, module)
codegen.CPUCodeLibrary.add_ir_module = count

levels = generation.generate(np.random.default_rng(0), 2, 5)
solvers.shortest_path(levels)
solvers.diameter(levels)
print(n_modules)
"""


def test_the_first_labelled_levels_need_little_compiling(tmp_path: Path) -> None:
    """A module of the compiler's takes some 50 ms; NumPy's functions are modules too, and `reshape` is three."""
    assert int(run_script(tmp_path, COUNTED_MODULES, environment={"NUMBA_CACHE_DIR": str(tmp_path / "cache")})) <= 28


def test_a_compiler_that_fails_says_why(tmp_path: Path) -> None:
    use = """
def fail(*arguments, **options): raise RuntimeError("no compiler")
compiling.jit_within = fail
for _ in range(2):
    try:
        kernels.has_border
    except RuntimeError as error:
        print(error)
"""
    assert run_script(tmp_path, COUNTED_COMPILER, use) == "no compiler\nno compiler\n"


def test_a_terminal_is_told_once_what_takes_so_long(tmp_path: Path) -> None:
    use = """
import sys
sys.stderr.isatty = lambda: True
sys.stderr.write = sys.stdout.write
kernels.search; kernels.in_map
"""
    told = "maze_nca_gym: compiling, once per installation; this takes some seconds ...\n"
    assert run_script(tmp_path, COUNTED_COMPILER, use) == told


def test_without_a_place_for_the_cache_it_compiles_all_the_same(tmp_path: Path) -> None:
    script = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
from maze_nca_gym._kernels.compiling import kernels
import numpy as np
print(kernels.has_border(np.ones((2, 3), np.uint8)), len(kernels.has_border.signatures))
"""
    assert run_script(tmp_path, script) == "True 1\n"


FIRST_EPISODE = """
import time, gymnasium as gym, maze_nca_gym
from gymnasium.vector import AsyncVectorEnv

def make():
    return gym.make("MazeShortestPath-v0", size=5)

if __name__ == "__main__":
    env = make()
    start = time.process_time()
    observation, _ = env.reset(seed=0)
    print(time.process_time() - start)
    env.step(observation["state"])
    envs = AsyncVectorEnv([make, make], context="fork")
    observations, _ = envs.reset(seed=0)
    envs.step(observations["state"])
    envs.close()
"""


@pytest.mark.slow
def test_fresh_installation(tmp_path: Path) -> None:
    """With nothing in the cache the first reset takes some seconds; the next process finds the machine code."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, again = (float(run_script(tmp_path, FIRST_EPISODE, environment=cache, timeout=300)) for _ in range(2))
    assert first < 4
    assert again < 0.5
