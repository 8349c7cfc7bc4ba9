"""What a process has set for itself: public calls neither depend on it nor change it, nor that of other threads."""

from __future__ import annotations

import decimal
import gc
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
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib as mpl
import numpy as np
import pytest
import torch

from maze_nca_gym.agents import (
    animate,
    bench,
    compile_automaton,
    evaluate,
    evolve,
    export,
    generate,
    learn_automaton,
    list_policies,
    load,
    play,
    rollout,
    solve,
    train,
)
from maze_nca_gym.agents.automata.gallery import REACHABLE, SMALL
from maze_nca_gym.agents.automata.proof import prove
from maze_nca_gym.agents.policies.handcoded import DiameterNCA, ShortestPathNCA
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts import engines, threads
from maze_nca_gym.mazes.levels import one_hot


def step() -> list[Any]:
    env = gym.make("maze_nca_gym:MazeShortestPath-v0", size=5, render_mode="rgb_array")
    first, _ = env.reset(seed=1)
    then, reward, *_ = env.step(np.full(env.action_space.shape, 0.5, np.float32))
    return [*first.values(), *then.values(), np.array(reward), env.render()]


def networks() -> list[Any]:
    """States of every policy that ships, and of a new one of each class."""
    tiles = {task: generate(f"{task}.npz", n=2, size=6, task=task).tiles for task in ("shortest-path", "diameter")}
    with torch.device("cpu"):  # a policy that a user makes is on the user's device
        policies = [*map(load, list_policies(all=True)), ShortestPathNCA(), DiameterNCA(), NCA(4, 5)]
    mazes = [torch.from_numpy(one_hot(tiles[policy.task], policy.n_tiles)) for policy in policies]
    return [state for policy, maze in zip(policies, mazes, strict=True) for state in rollout(policy.eval(), maze, [3])]


def trained(**options: Any) -> list[Any]:
    small = {"n_channels": 6, "n_iterations": 4, "sizes": (5,), "n_updates": 3, "batch_size": 8}
    policy = train(out="run", device="cpu", threads=1, **small, **options)
    return [*policy.parameters(), *load("run/model.safetensors").state_dict().values()]


def learned() -> list[Any]:
    model, _ = learn_automaton("reachable", out="run", threads=2, **{**SMALL, "n_updates": 40, "n_rounds": 0})
    return [*model.parameters(), Path("run/model.safetensors").read_bytes()]


CALLS: dict[str, Callable[[], list[Any]]] = {
    "generate": lambda: [generate("levels.npz", n=3, size=5).tiles],
    "solve": lambda: [solve("shortest-path-bfs", size=5, n=2, out="solved").records()],
    "load": networks,
    "play": lambda: [play("shortest-path-bfs", size=4)],
    "animate": lambda: [animate("shortest-path-bfs", "FourRooms").gif],
    "train": partial(trained, preset="guided", pool_size=8, families=("random",), state_noise=0.1),
    "train on what evolves": partial(trained, preset="fast", evolve=True, n_levels=8),
    "evaluate": lambda: [evaluate("nca-shortest-path", families="random", sizes=5, n=4, out="evaluated")[0].metrics],
    "evolve": lambda: [evolve("nca-shortest-path", n=4, rounds=1, n_offspring=2, size=6, out="evolved").tiles],
    "bench": lambda: [bench("anca-prim-21", policies="shortest-path-bfs", n=2, out="benched", plot=True)[0].scores],
    "compile": lambda: [*compile_automaton("reachable", out="compiled")[0].parameters()],
    "learn": learned,
    "export": lambda: [export("nca-shortest-path", "policy.json").read_bytes()],
    "prove": lambda: [str(prove(REACHABLE).holds)],
    "step": step,
}


def state() -> dict[str, Any]:
    """What belongs to the process, and so to others."""
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
        "streams": [id(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook, sys.gettrace(), sys.getrecursionlimit()),
        "warnings": ([*warnings.filters], warnings.showwarning),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "matplotlib": (dict(mpl.rcParams), mpl.get_backend()),
        "logging": (logging.root.level, [*logging.root.handlers], logging.root.manager.disable),
        "rest": (gc.isenabled(), socket.getdefaulttimeout(), multiprocessing.get_start_method(allow_none=True)),
    }


def in_a_thread(function: Callable[[], Any]) -> Any:
    """What a function returns in a thread that begins now."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@contextmanager
def strange_process() -> Iterator[None]:
    """A process whose owner has changed all that is his to change."""
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
    """A value as something that can be compared."""
    value = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_the_same_in_every_process_and_leave_it_as_it_was(name, tmp_path, monkeypatch, plays):
    plays(1)
    found = []
    for folder in ("usual", "strange"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        if folder == "usual":
            found.append([*map(plain, CALLS[name]())])
        else:
            with strange_process():
                before = state()
                found.append([*map(plain, CALLS[name]())])
                after = state()
    assert {key: after[key] for key in after if after[key] != before[key]} == {}
    assert found[0] == found[1]


def test_blocks_are_those_of_their_thread_alone():
    maze, policy = torch.zeros(1, 4, 3, 3), NCA(4, 5)
    usual = torch.get_num_threads()
    with engines.preferring(engines.STEPPING), threads(usual + 2):
        assert engines.engine_for(policy, maze) is engines.STEPPING
        assert in_a_thread(lambda: engines.engine_for(policy, maze)) is engines.MACHINE_CODE
        assert (torch.get_num_threads(), in_a_thread(torch.get_num_threads)) == (usual + 2, usual)
        with threads(usual + 1):
            assert (torch.get_num_threads(), in_a_thread(torch.get_num_threads)) == (usual + 1, usual)
    assert (torch.get_num_threads(), in_a_thread(torch.get_num_threads)) == (usual, usual)
