"""Kernels give equal bits compiled and interpreted. Each is compiled at its first use, and then cached."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from tables import for_each

from maze_nca_gym.envs import dynamics
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes._kernels import compiling
from maze_nca_gym.mazes._kernels.compiling import Kernels, kernels
from maze_nca_gym.mazes._kernels.registry import REGISTRY
from maze_nca_gym.mazes.generation import GENERATORS, generate
from maze_nca_gym.mazes.levels import clear_endpoints, parse
from maze_nca_gym.mazes.mutation import MUTATIONS, mutate
from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.support.streams import say

Arrays = tuple[NDArray[Any], ...]


def mazes_of_all_kinds(rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Return solutions of batches of many shapes, with and without a border, connected or not."""
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
    """Return the optimality of paths: the canonical and the mirrored path, and both with two tiles exchanged."""
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
    """Return two steps of each task, with noisy optima of both kinds and with noise."""
    results: list[NDArray[Any]] = []
    for size in (3, 6, (5, 7)):
        tiles = generate(rng, 40, size, wall_probability=0.2)
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


def offspring_of(rng: np.random.Generator, kind: str) -> Arrays:
    """Return offspring by mild mutations, by mutations that move every source, and by mutations that wall it in."""
    wild: list[dict[str, Any]] = [{"tile_rate": 0.5, "source_rate": 1.0}, {"tile_rate": 1.0}]
    options: list[dict[str, Any]] = [{}, *(wild if kind == "flip" else [{f"n_{kind}": 60}])]
    batches = [
        generate(rng, 8, (5, 7), border=border, endpoints=end) for border in (True, False) for end in (True, False)
    ]
    return tuple(mutate(rng, batch, kind, **choice) for batch in batches for choice in options)


CASES: Mapping[str, Callable[[np.random.Generator], Arrays]] = {
    **{
        f"generate {name}": lambda rng, name=name: tuple(  # type: ignore[misc]
            generate(rng, 2, size, name, border=border) for size in (5, 8, (5, 9)) for border in (True, False)
        )
        for name in GENERATORS
    },
    **{f"mutate {kind}": lambda rng, kind=kind: offspring_of(rng, kind) for kind in MUTATIONS},  # type: ignore[misc]
    "solutions": solutions,
    "optimality": optimality,
    "episodes": episodes,
}


def interpret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all kernels without machine code from now on."""
    for function, _ in REGISTRY:
        monkeypatch.setattr(kernels, function.__name__, function)


@pytest.mark.parametrize("case", CASES)
def test_interpreted_and_compiled_kernels_agree_bit_for_bit(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = CASES[case](np.random.default_rng(0))
    interpret(monkeypatch)
    interpreted = CASES[case](np.random.default_rng(0))
    for i, (a, b) in enumerate(zip(compiled, interpreted, strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes(), f"array {i}: {a} != {b}"


def test_interpreted_and_compiled_kernels_refuse_the_same_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = generate(np.random.default_rng(0), 3, 4)
    state = dynamics.initial(tiles, solvers.shortest_path(tiles), 4, 2)
    for _ in range(2):
        for value in (np.nan, np.inf):
            action = np.zeros(state.channels.shape, np.float32)
            action[1, 1, 2, 3] = value
            with pytest.raises(ValueError, match="in episode 1 of 3"):
                dynamics.transition(state, action)
        interpret(monkeypatch)


@pytest.mark.parametrize(("id", "text"), [("MazeShortestPath-v0", "S.\n.T"), ("MazeDiameter-v0", "..\n..")])
def test_steps_give_plain_python_values_interpreted_too(id: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases are the canonical path, another path of its length, and no path."""
    steps: list[Any] = []
    for _ in range(2):
        for path in ([[1, 0], [1, 1]], [[1, 1], [0, 1]], [[0, 1], [0, 1]]):
            env = gym.make(id, levels=parse(text), n_channels=1)
            env.reset(seed=0)
            _, reward, terminated, _, info = env.step(np.array([path], np.float32))
            steps.append((reward, terminated, *info.values()))
            assert [type(value) for value in steps[-1]] == [float, bool, float, float, bool, bool]
        interpret(monkeypatch)
    assert steps[:3] == steps[3:]


def test_a_misspelt_kernel_is_refused() -> None:
    with pytest.raises(AttributeError, match="no kernel 'shortest'"):
        kernels.shortest  # noqa: B018


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return kernel -> its mode of compilation, and compile nothing."""
    compiled: dict[str, str] = {}

    def jit_within(namespace: Any, modules: Any, function: Any, signature: str, compile_it: Any) -> Any:
        time.sleep(0.005)
        assert function.__name__ not in compiled
        compiled[function.__name__] = compile_it.__name__
        return SimpleNamespace(stats=SimpleNamespace(cache_hits={}))

    monkeypatch.setattr(compiling, "jit_within", jit_within)
    return compiled


def test_only_called_kernels_are_compiled_and_by_one_thread(compiled: dict[str, str]) -> None:
    fresh = Kernels()
    users = [threading.Thread(target=lambda: fresh.solve_shortest_path) for _ in range(8)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    expected = (
        "find_endpoints has_border lay_out_bordered lay_out in_level in_map offset search walk solve_shortest_path"
    )
    assert sorted(compiled) == sorted(expected.split())


def test_entries_load_every_kernel_once(compiled: dict[str, str]) -> None:
    fresh = Kernels()
    for name in compiling.entries():
        getattr(fresh, name)
    assert compiled.keys() == {function.__name__ for function, _ in REGISTRY}


def test_the_first_labelled_levels_wait_for_few_kernels(compiled: dict[str, str]) -> None:
    """Random levels with both solutions use three kernels, into which small kernels are copied."""
    names = ["accept_random", "shortest_paths", "diameters"]
    fresh = Kernels()
    for name in names:
        getattr(fresh, name)
    assert [name for name, way in compiled.items() if way == "jit"] == names
    assert sum(way == "_called" for way in compiled.values()) <= 9


def test_a_failing_compiler_gives_the_reason_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(compiling, "jit_within", fail)
    fresh = Kernels()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no compiler"):
            fresh.lay_out  # noqa: B018


def test_a_terminal_shows_one_message_about_compiling(
    compiled: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    compiling._announce.cache_clear()
    fresh = Kernels()
    assert fresh.search is not fresh.in_map
    assert capsys.readouterr().err.count("compiling, once per installation") == 1


@for_each("stderr", [None, SimpleNamespace(write=print, flush=print), StringIO()])
def test_messages_do_not_need_a_terminal(
    stderr: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs without a console have no stderr, and others replace it by an object with two methods."""
    monkeypatch.setattr(sys, "stderr", stderr)
    compiling._announce.cache_clear()
    compiling._announce()
    assert capsys.readouterr().out == ""
    say("a message")
    assert ("a message" in capsys.readouterr().out) == isinstance(stderr, SimpleNamespace)


def test_it_compiles_without_a_folder_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert Kernels().pick(0.5, 8) == 4


def run_script(tmp_path: Path, script: str, environment: Mapping[str, str]) -> str:
    """Run a script in its own process, in which nothing is compiled."""
    path = tmp_path / "script.py"
    path.write_text(script)
    command, environment = [sys.executable, str(path)], {**os.environ, **environment}
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


COUNTED_MODULES = """
import numpy as np
from numba.core import codegen
from maze_nca_gym.mazes import generation, solvers

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


@pytest.mark.slow
def test_the_first_labelled_levels_need_little_compiling(tmp_path: Path) -> None:
    """A module of the compiler takes about 50 ms; NumPy's functions are modules too, and `reshape` is three."""
    assert int(run_script(tmp_path, COUNTED_MODULES, {"NUMBA_CACHE_DIR": str(tmp_path / "cache")})) <= 28


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
def test_kernels_of_a_fresh_installation(tmp_path: Path) -> None:
    """With an empty cache the first reset takes some seconds, but the next process loads the machine code."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, again = (float(run_script(tmp_path, FIRST_EPISODE, cache)) for _ in range(2))
    assert first < 4
    assert again < 0.5
