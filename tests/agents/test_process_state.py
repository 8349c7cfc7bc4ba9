"""Settings of a process: public calls neither depend on them nor change them, and other threads keep theirs."""

from __future__ import annotations

import decimal
import gc
import inspect
import locale
import logging
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib as mpl
import numpy as np
import pytest
import torch
from test_reproduction import let_run_here

from maze_nca_gym import agents
from maze_nca_gym.agents import (
    animate,
    bench,
    check_proofs,
    check_refutations,
    compile_automaton,
    doubt,
    evaluate,
    evolve,
    export,
    find_policy,
    generate,
    iterate,
    learn_automaton,
    list_policies,
    list_runs,
    load,
    make_env,
    play,
    register_automaton,
    register_loss,
    register_metric,
    register_model,
    register_preset,
    reproduce,
    rollout,
    save_model,
    solve,
    solve_large,
    sweep,
    train,
)
from maze_nca_gym.agents.automata.kernel.refutations import SIGNATURES
from maze_nca_gym.agents.automata.kernel.theorems import CLOSED, LISTS
from maze_nca_gym.agents.automata.proving.proof import prove
from maze_nca_gym.agents.automata.shipped.gallery import REACHABLE
from maze_nca_gym.agents.policies.handcoded import DiameterNCA, ShortestPathNCA
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts import engines
from maze_nca_gym.agents.rollouts.pytorch import threads
from maze_nca_gym.mazes.levels import one_hot
from maze_nca_gym.mazes.orders import split_order

HINTS = {"families": "random", "sizes": 5, "n_levels": 2, "n_rounds": 0, "n_recombined": 100, "n_updates": 10}
SMALLEST = {"n_channels": 6, "n_iterations": 4, "sizes": (5,), "n_updates": 3, "batch_size": 8}


class Own(NCA):
    """A user's model."""


def step() -> list[Any]:
    env = gym.make("maze_nca_gym:MazeShortestPath-v0", size=5, render_mode="rgb_array")
    first, _ = env.reset(seed=1)
    then, reward, *_ = env.step(np.full(env.action_space.shape, 0.5, np.float32))
    return [*first.values(), *then.values(), np.array(reward), env.render()]


def networks() -> list[Any]:
    """Return states of every included policy, and of a new policy of each class."""
    tiles = {task: generate(f"{task}.npz", n=2, size=6, task=task).tiles for task in ("shortest-path", "diameter")}
    with torch.device("cpu"):  # a policy is made on the default device
        policies = [*map(load, list_policies(all=True)), ShortestPathNCA(), DiameterNCA(), NCA(4, 5)]
    mazes = [torch.from_numpy(one_hot(tiles[split_order(policy.task)[0]], policy.n_tiles)) for policy in policies]
    names = [*map(str, map(find_policy, list_policies())), str(make_env("shortest-path-bfs", size=4))]
    save_model(policies[-1], "mine.safetensors")
    states = [rollout(policy.eval(), maze, [3])[0] for policy, maze in zip(policies, mazes, strict=True)]
    return [*names, *states, *iterate(policies[-1], mazes[-1], [3]), Path("mine.safetensors").read_bytes()]


def trained(**options: Any) -> list[Any]:
    policy = train(out="run", device="cpu", threads=1, **SMALLEST, **options)
    return [*policy.parameters(), *load("run/model.safetensors").state_dict().values()]


def learned() -> list[Any]:
    model, _ = learn_automaton("reachable", out="run", threads=2, **HINTS)
    return [*model.parameters(), Path("run/model.safetensors").read_bytes()]


def registered() -> list[Any]:
    register_preset("own", "fast", n_channels=6)
    register_metric("own", lambda tiles, predicted, labels: (predicted & labels).any((1, 2)))
    register_loss("own", lambda path, target: (path - target).abs().mean(dim=(1, 2)))
    return [register_model(Own).__name__, register_automaton(replace(REACHABLE, name="own")).name]


def figures(results: Any) -> list[Any]:
    return [row.measures for row in results]


def swept(**options: Any) -> list[Any]:
    small = {"options": SMALLEST, "seeds": 1, "measure": {"sizes": 5, "n": 4}}
    return [*figures(sweep(small, out="sweep", device="cpu", **options)), list_runs("sweep").rows]


def solved_in_bits() -> list[Any]:
    np.save("maze.npy", generate("one.npz", n=1, size=12).tiles[0])
    solve_large(maze="maze.npy", out="large")
    return [np.load("large/path.npy")]


def checked_elsewhere() -> list[Any]:
    """Return the verdicts of external checkers, which a program with constant output replaces."""
    compile_automaton("reachable", coq="theory")
    for name in ("proof/own.cpc", *(f"proof/{name}" for name in SIGNATURES)):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    return [check_proofs("theory").flaws, check_refutations("proof", signatures="proof")]


PROGRAM = f"""#!/bin/sh
case "$0 $*" in
  *--version) echo "version 99.0";;
  *coqchk*) printf '* %s: <none>\\n' {" ".join(f"'{file}'" for file in LISTS)};;
  *Asked.v) echo "{CLOSED}"; echo "{CLOSED}";;
  *ethos*) echo correct;;
esac
"""
CALLS: dict[str, Callable[[], list[Any]]] = {
    "generate": lambda: [generate("levels.npz", n=3, size=5).tiles],
    "solve": lambda: [solve("shortest-path-bfs", size=5, n=2, out="solved").records()],
    "load list_policies find_policy make_env rollout iterate save_model": networks,
    "play": lambda: [play("shortest-path-bfs", size=4)],
    "animate": lambda: [animate("shortest-path-bfs", "FourRooms", 5).gif],
    "train": partial(trained, preset="guided", pool_size=8, families=("random",), state_noise=0.1),
    "train on what evolves": partial(trained, preset="fast", evolve=True, n_levels=8),
    "evaluate": lambda: [evaluate("nca-shortest-path", families="random", sizes=5, n=4, out="evaluated")[0].metrics],
    "evolve": lambda: [evolve("nca-shortest-path", n=4, rounds=1, n_offspring=2, size=6, out="evolved").tiles],
    "doubt": lambda: [
        doubt("nca-shortest-path-small", tiles=1, families="random", sizes=5, n=4, steps=3, seconds=600).drawing()
    ],
    "bench": lambda: [bench("anca-prim-21", policies="shortest-path-bfs", n=2, out="benched", plot=True)[0].scores],
    "compile_automaton": lambda: [*compile_automaton("reachable", out="compiled")[0].parameters()],
    "learn_automaton": learned,
    "export": lambda: [export("nca-shortest-path", "policy.json").read_bytes()],
    "prove": lambda: [str(prove(REACHABLE).holds)],
    "step": step,
    "register_preset register_metric register_loss register_model register_automaton": registered,
    "check_proofs check_refutations": checked_elsewhere,
    "solve_large": solved_in_bits,
    "sweep list_runs": swept,
    "reproduce": lambda: figures(reproduce("1.3", trials=1, scale="least", device="cpu", out="paper")),
}


def state() -> dict[str, Any]:
    """Return the settings of the process."""
    umask = os.umask(0o077)
    os.umask(umask)
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.tensor(0).device,
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "threads of new threads": in_a_thread(torch.get_num_threads),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "deterministic": (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32),
        "matmul": (torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32),
        "random states": (torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()),  # noqa: NPY002
        "errors of NumPy": (np.geterr(), np.geterrcall()),
        "prints of NumPy": np.get_printoptions(),
        "decimal": str(decimal.getcontext()),
        "locale": locale.setlocale(locale.LC_ALL),
        "environ": dict(os.environ),
        "folder": os.getcwd(),
        "umask": umask,
        "path": [*sys.path],
        "streams": [id(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook, sys.gettrace(), sys.getrecursionlimit()),
        "warnings": ([*warnings.filters], warnings.showwarning),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "matplotlib": (dict(mpl.rcParams), mpl.get_backend()),
        "logging": (logging.root.level, [*logging.root.handlers], logging.root.manager.disable),
        "rest": (gc.isenabled(), socket.getdefaulttimeout(), multiprocessing.get_start_method(allow_none=True)),
    }


def in_a_thread(function: Callable[[], Any]) -> Any:
    """Return the result of a function in a new thread."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@contextmanager
def strange_process() -> Iterator[None]:
    """A process in which the user has changed all settings."""
    handler, umask = signal.signal(signal.SIGUSR1, lambda *_: None), os.umask(0o027)
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    try:
        with (
            threads(3),
            torch.device("meta"),
            torch.inference_mode(),
            np.errstate(all="raise"),
            np.printoptions(precision=1, threshold=3, linewidth=20),
            decimal.localcontext(decimal.Context(prec=3)),
            mpl.rc_context({"lines.linewidth": 7, "font.size": 5}),
        ):
            yield
    finally:
        signal.signal(signal.SIGUSR1, handler)
        os.umask(umask)
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)


def plain(value: Any) -> Any:
    """Return a value in a form that can be compared."""
    value = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def test_every_public_call_is_tried():
    calls = {name for name in agents.__all__ if inspect.isfunction(getattr(agents, name))}
    assert calls - {word for name in CALLS for word in name.split()} == set()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "reproduce" else ()) for name in CALLS]
)
def test_calls_agree_between_processes_and_change_no_state_of_the_process(name, tmp_path, monkeypatch, plays):
    plays(1)
    let_run_here(monkeypatch)
    for program in ("coqc", "coqdep", "coqchk", "ethos"):
        (tmp_path / program).write_text(PROGRAM)
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    results = []
    for folder in ("usual", "strange"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        if folder == "usual":
            results.append([*map(plain, CALLS[name]())])
        else:
            with strange_process():
                before = state()
                results.append([*map(plain, CALLS[name]())])
                after = state()
    assert {key: after[key] for key in after if after[key] != before[key]} == {}
    assert results[0] == results[1]


def test_blocks_affect_only_their_thread():
    maze, policy = torch.zeros(1, 4, 3, 3), NCA(4, 5)
    usual = torch.get_num_threads()
    with engines.preferring(engines.STEPPING), threads(usual + 2):
        assert engines.engine_for(policy, maze) is engines.STEPPING
        assert in_a_thread(lambda: engines.engine_for(policy, maze)) is engines.MACHINE_CODE
        assert (torch.get_num_threads(), in_a_thread(torch.get_num_threads)) == (usual + 2, usual)
        with threads(usual + 1):
            assert (torch.get_num_threads(), in_a_thread(torch.get_num_threads)) == (usual + 1, usual)
    assert (torch.get_num_threads(), in_a_thread(torch.get_num_threads)) == (usual, usual)
