"""The dtypes in which exact networks run, and their convolutions."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from maze_samples import sample
from simulated_gpu import GPU, tf32_allowed
from simulated_gpu import gpu as gpu
from tables import for_each, refused
from torch.nn import functional as F

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.policies.guarantees import Guarantees, StepBound
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.agents.policies.precision import tf32
from maze_nca_gym.mazes.levels import clear_endpoints, one_hot


def mazes(n_tiles, n=3, height=6, width=7):
    tiles = sample(np.random.default_rng(0), "loops", n, height, width)
    return torch.from_numpy(one_hot(tiles if n_tiles == 4 else clear_endpoints(tiles), n_tiles))


HINTED = ("nca-shortest-path-hinted", "nca-shortest-path-healing-hinted", "nca-diameter-hinted")
"""Networks whose exactness is proven in float32."""


@pytest.fixture(params=HINTED)
def proven(request):
    """An exact policy with weights that are not whole numbers."""
    policy = load(request.param)
    assert policy.guarantees.exact
    return policy


@for_each("dtype", [torch.bfloat16, torch.float16])
def test_proven_networks_refuse_low_precision(proven, dtype):
    maze = mazes(proven.n_tiles).to(dtype)
    state = torch.zeros(len(maze), proven.n_channels, *maze.shape[2:], dtype=dtype)
    refused(rf"exact in float32, and {dtype} .* give it float32 weights, mazes and", proven, maze, state)
    refused(f"{dtype}", rollout, proven, maze, [2])
    with pytest.raises(ValueError, match=f"{dtype}"):
        copy.deepcopy(proven).to(dtype)(maze.float(), state.float())
    with torch.autocast("cpu", dtype):
        refused(f"{dtype}.*outside of autocast", rollout, proven, maze.float(), 2)
        assert rollout(proven, maze.double(), 2).dtype == torch.float64, "autocast leaves float64 alone"


def test_proven_networks_run_in_float32_and_float64(proven):
    maze = mazes(proven.n_tiles)
    states = rollout(proven, maze, 9), rollout(proven, maze.double(), 9).float()
    torch.testing.assert_close(*states, rtol=1e-4, atol=1e-4)


def test_networks_of_integers_may_be_less_precise():
    path, diameter = (load(f"nca-{name}-exact-weights") for name in ("shortest-path", "diameter"))
    assert path.guarantees.exact
    assert diameter.guarantees.exact
    maze = mazes(4)
    expected = rollout(path, maze, 20)
    assert torch.equal(rollout(path, maze.bfloat16(), 20).float(), expected)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            assert torch.equal(rollout(path, maze, 20), expected)
    path.guarantees = replace(path.guarantees, largest_count=None)
    refused("bfloat16", rollout, path, maze.bfloat16(), 1)
    rollout(diameter, torch.zeros(1, 2, 16, 16, dtype=torch.bfloat16), 1)
    with pytest.raises(ValueError, match="bfloat16 rounds too much on mazes of 16 x 17 tiles"):
        rollout(diameter, torch.zeros(1, 2, 16, 17, dtype=torch.bfloat16), 1)
    with torch.autocast("cpu", torch.float16):  # float16 has three more bits than bfloat16
        rollout(diameter, torch.zeros(1, 2, 16, 17), 1)


@pytest.fixture
def convolved(monkeypatch):
    """Return a list that receives the dtypes of all further convolutions."""
    dtypes, convolve = [], F.conv2d

    def recording(values, *arguments, **options):
        dtypes.append(values.dtype)
        return convolve(values, *arguments, **options)

    monkeypatch.setattr(F, "conv2d", recording)
    return dtypes


@for_each("exact", [True, False])
def test_exact_networks_convolve_in_float64_if_float32_may_round(exact, convolved):
    """The device stands for any device other than the CPU, such as a GPU."""
    convolved.clear()
    policy = NCA(4, 5).to("meta")
    policy.guarantees = Guarantees(exact, StepBound(constant=1), basis="proven")
    state = policy(torch.zeros(1, 4, 3, 3, device="meta"), torch.zeros(1, 5, 3, 3, device="meta"))
    assert state.dtype == torch.float32
    assert convolved == [torch.float64 if exact else torch.float32] * 2


@pytest.mark.parametrize("exact", [True, False])
def test_a_setting_that_rounds_on_the_cpu_leaves_exact_networks_alone(exact, convolved, monkeypatch):
    policy, maze = NCA(4, 5), mazes(4)
    state = torch.rand(3, 5, *maze.shape[2:])
    policy.guarantees = Guarantees(exact, StepBound(constant=1), basis="proven")
    expected = policy(maze, state)
    assert set(convolved) == {torch.float32}
    convolved.clear()
    monkeypatch.setattr(torch.backends.mkldnn, "conv", SimpleNamespace(fp32_precision="bf16"), raising=False)
    torch.testing.assert_close(policy(maze, state), expected)
    assert set(convolved) == {torch.float64 if exact else torch.float32}


class Probe(Policy):
    """A policy that records whether TF32 is allowed while it runs."""

    def __init__(self, exact: bool) -> None:
        super().__init__("shortest-path", 4, ["path", "other"])
        self.guarantees, self.seen = Guarantees(exact, StepBound(constant=1), basis="proven"), set()

    def update(self, maze, state, step):
        self.seen |= tf32_allowed()
        return state + 0.5


@pytest.mark.parametrize("exact", [True, False])
def test_exact_policies_run_without_tf32_on_a_gpu(exact, gpu):
    policy, maze = Probe(exact), mazes(4)
    with tf32(True, GPU):
        rollout(policy, maze.to(GPU), 2)
        policy(maze.to(GPU), torch.zeros(len(maze), 3, *maze.shape[2:], device=GPU))
        assert policy.seen == {not exact}
        policy.seen.clear()
        rollout(policy, maze, 2)
        assert policy.seen == {True}, "a CPU has none"


@for_each("allowed", [True, False])
def test_settings_of_tf32_hold_within_a_block_alone(allowed):
    before = tf32_allowed()
    with tf32(allowed, GPU):
        assert tf32_allowed() == {allowed}
        with tf32(not allowed, GPU):
            assert tf32_allowed() == {not allowed}
        assert tf32_allowed() == {allowed}
        with pytest.raises(ValueError, match="invalid literal"), tf32(not allowed, GPU):
            int("x")
        assert tf32_allowed() == {allowed}
    assert tf32_allowed() == before


def test_settings_of_tf32_are_the_strictest_of_all_threads():
    before, begin, end = tf32_allowed(), threading.Event(), threading.Event()

    def allow() -> None:
        with tf32(True, GPU):
            begin.set()
            end.wait(60)

    other = threading.Thread(target=allow)
    with tf32(False, torch.device("cpu")):
        assert tf32_allowed() == before, "a CPU has none"
    with tf32(False, GPU):
        other.start()
        begin.wait(60)
        assert tf32_allowed() == {False}
    assert tf32_allowed() == {True}
    end.set()
    other.join()
    assert tf32_allowed() == before


SETTINGS = [
    "",
    "torch.backends.cudnn.allow_tf32 = False",
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.set_float32_matmul_precision('medium')",
]
SETTINGS += [
    "torch.backends.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'ieee'",
    "torch.backends.fp32_precision = 'tf32'; torch.backends.cudnn.fp32_precision = 'ieee'",
    "torch.backends.cudnn.fp32_precision = 'tf32'",
    "torch.backends.cudnn.conv.fp32_precision = 'ieee'; torch.backends.cudnn.rnn.fp32_precision = 'tf32'",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
] * hasattr(torch.backends, "fp32_precision")
"""Settings that a user may have changed."""
RUN_WITH_SETTINGS = """
import json, os, sys, tempfile, warnings
import torch
from maze_nca_gym.agents.policies.precision import tf32

warnings.simplefilter("ignore")
backends = torch.backends
PARTS = {"cudnn": backends.cudnn, "matmul": backends.cuda.matmul}
if hasattr(backends, "fp32_precision"):
    PARTS |= {"all": backends, "conv": backends.cudnn.conv, "rnn": backends.cudnn.rnn, "cpu": backends.mkldnn.matmul}

def shown():
    reads = [lambda p=p, n=n: getattr(p, n, None) for p in PARTS.values() for n in ("fp32_precision", "allow_tf32")]
    for read in (*reads, torch.get_float32_matmul_precision):
        try:
            yield read()
        except RuntimeError as error:
            yield str(error)

def blocks():
    gpu = torch.device("cuda")
    with tf32(True, gpu), tf32(False, gpu), tf32(True, torch.device("cpu")):
        pass

def training():
    from maze_nca_gym.agents import train
    options = {"n_channels": 5, "n_iterations": 3, "sizes": [5], "batch_size": 4, "n_updates": 1}
    with tempfile.TemporaryDirectory() as out:
        train("fast", device="cpu", out=out, precision="tf32", **options)

for setting in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        exec(setting)
        before = list(shown())
        globals()[sys.argv[2]]()
        print("\\n" + json.dumps([setting, before, list(shown())]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("work", ["blocks", pytest.param("training", marks=pytest.mark.slow)])
def test_settings_of_precision_are_restored(work):
    """Each case has its own process, because a process cannot return to PyTorch's initial settings."""
    command = [sys.executable, "-c", RUN_WITH_SETTINGS, json.dumps(SETTINGS), work]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [setting for setting, _, _ in rows] == SETTINGS, done.stderr
    assert {setting: before for setting, before, _ in rows} == {setting: after for setting, _, after in rows}
    assert len({str(before) for _, before, _ in rows}) == len(SETTINGS), "each setting shows"


@pytest.mark.gpu
def test_proven_networks_ignore_tf32_on_a_gpu(proven, monkeypatch):
    """With TF32 on, states differ from the CPU's states only by the rounding of float32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    maze = mazes(proven.n_tiles)
    with torch.no_grad():
        expected = rollout(proven, maze, 40)
        proven.cuda()
        states = rollout(proven, maze.cuda(), 40).cpu()
    torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-4)
