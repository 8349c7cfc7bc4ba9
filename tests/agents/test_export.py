"""Policies as files for other programs: the content of the files, and errors."""

import json
import shutil
import sys
import warnings

import numpy as np
import pytest
import torch
from fresh_models import fresh_mlp
from gymnasium.error import DependencyNotInstalled
from tables import for_each, refused
from torch import nn
from torch.nn import functional as F

from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.policies.handcoded import ShortestPathNCA
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.rollouts.exporting import KIND, export
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import one_hot

OTHERS = ("gat-shortest-path-baseline", "gcn-shortest-path-baseline", "nca-shortest-path-rewards")
HELD = [name for name in list_policies(all=True) if name not in OTHERS]


class Gated(Policy):
    """An architecture other than a convolution followed by an activation."""

    stationary_from = 0

    def __init__(self):
        super().__init__("shortest-path", 4, ["path", "other"])
        self.act = nn.Conv2d(6, 4, 3, padding=1)

    def update(self, maze, state, step):
        new, gate = self.act(torch.cat([maze, state], dim=1)).chunk(2, dim=1)
        return torch.lerp(state, torch.relu(new), torch.sigmoid(gate))


class Unsaid(Gated):
    """An architecture that does not state that its iterations are equal."""

    stationary_from = None


class Choosing(Gated):
    """An architecture whose operations depend on the numbers."""

    def update(self, maze, state, step):
        return state if float(state.sum()) > 1 else super().update(maze, state, step)


def gated():
    torch.manual_seed(0)
    return Gated()


def read(path):
    return json.loads(path.read_text())


def kernel_of(content):
    """Return the (C, S + C, k, k) kernel and (C,) bias that a file describes."""
    taps, weights = np.array(content["taps"]), np.array(content["weights"], np.float32)
    reach = np.abs(taps).max()
    kernel = np.zeros((*weights.shape[:2], 2 * reach + 1, 2 * reach + 1), np.float32)
    kernel[:, :, taps[:, 0] + reach, taps[:, 1] + reach] = weights
    return torch.from_numpy(kernel), torch.tensor(content["bias"])


@for_each("name", ["../../up", "/tmp/up", "a/b", "..", ".", "", "a\\b", "\x1b[2Jx", "a\0", "\udcff"])
def test_a_name_may_not_be_a_path(name, tmp_path, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    with pytest.raises(ValueError, match=r"name must be the name of a file in the current folder if out is not given"):
        export("shortest-path-bfs", name=name)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    shutil.rmtree(tmp_path / "a")


def test_with_a_file_any_name_is_a_label(tmp_path):
    assert read(export("shortest-path-bfs", tmp_path / "it.json", name="../../up"))["name"] == "../../up"


class TestJson:
    @for_each("name", HELD)
    def test_weights_read_back_to_the_bit(self, name, tmp_path):
        policy = load(name)
        content = read(export(policy, tmp_path / "policy", name=name))
        kernel, bias = kernel_of(content)
        program = policy.program()
        assert torch.equal(kernel, program.kernel)
        assert torch.equal(bias, program.bias)
        assert (content["format"], content["name"], content["task"]) == (KIND, name, policy.task)
        assert content["channels"] == list(policy.channel_names)
        assert len(content["inputs"]) + len(content["channels"]) == program.kernel.shape[1]

    def test_json_describes_the_iteration(self, tmp_path):
        policy = load("nca-shortest-path")
        content = read(export(policy, tmp_path / "policy"))
        kernel, bias = kernel_of(content)
        maze = torch.from_numpy(one_hot(generate(np.random.default_rng(0), 3, (6, 9))))
        state = ours = torch.zeros(3, policy.n_channels, *maze.shape[2:])
        for step in range(30):
            state = policy(maze, state, step)
            ours = F.conv2d(torch.cat([maze, ours], dim=1), kernel, bias, padding="same")
            ours = ours.clamp(0, content["state_limit"])
        torch.testing.assert_close(ours, state, atol=1e-4, rtol=0)

    def test_the_last_iteration_of_an_episode_has_its_relu(self, tmp_path):
        policy = load("nca-shortest-path-small")
        assert policy.n_iterations is not None
        assert read(export(policy, tmp_path / "policy"))["rule"] == "relu"


def sample(policy, rng):
    """Return mazes and states that occur, of a size that no export was made with."""
    tiles = generate(rng, 3, (6, 11), "caves", endpoints=policy.n_tiles == 4)
    maze = torch.from_numpy(one_hot(tiles)[:, : policy.n_tiles])
    state = torch.zeros(3, policy.n_channels, *maze.shape[2:])
    for step in range(12):
        state = policy(maze, state, step)
    return maze, state.detach()


def iterated(policy, maze, state):
    with torch.no_grad():
        return policy(maze, state, policy.stationary_from)


class TestTorchScript:
    @for_each("name", HELD)
    def test_it_does_the_same_on_every_size(self, name, tmp_path):
        policy = load(name)
        path = export(policy, tmp_path / "policy", "torchscript")
        assert path.suffix == ".pt"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated, but C++ still loads it
            module = torch.jit.load(path)
        maze, state = sample(policy, np.random.default_rng(1))
        torch.testing.assert_close(module(maze, state), iterated(policy, maze, state), atol=1e-5, rtol=0)

    def test_torchscript_holds_more_than_json(self, tmp_path):
        assert export(ShortestPathNCA(form="bounded"), tmp_path / "policy", "torchscript").exists()


class TestOnnx:
    @pytest.mark.parametrize(
        "name",
        [
            *("depth-first", f"{__name__}:gated"),
            *(
                pytest.param(n, marks=pytest.mark.slow)
                for n in ("diameter", "nca-shortest-path", "nca-diameter-hinted")
            ),
        ],
    )
    def test_onnxruntime_does_the_same_on_every_size(self, name, tmp_path):
        pytest.importorskip("onnxscript")
        onnxruntime = pytest.importorskip("onnxruntime")
        policy = load(name)
        path = export(policy, tmp_path / "policy", "onnx")
        maze, state = sample(policy, np.random.default_rng(1))
        session = onnxruntime.InferenceSession(path)
        (output,) = session.run(None, {"maze": maze.numpy(), "state": state.numpy()})
        torch.testing.assert_close(torch.from_numpy(output), iterated(policy, maze, state), atol=1e-4, rtol=0)

    def test_policies_without_a_graph_are_named(self, tmp_path):
        pytest.importorskip("onnxscript")
        refused("PyTorch makes no ONNX graph of Choosing: ", export, Choosing(), tmp_path / "policy", "onnx")
        assert not list(tmp_path.iterdir())

    def test_missing_packages_are_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnxscript", None)
        with pytest.raises(DependencyNotInstalled, match=r"\[onnx\]"):
            export(load("depth-first"), tmp_path / "policy", "onnx")


class TestFiles:
    @for_each(
        ("policy", "kinds", "message"),
        [
            (load("gcn-shortest-path-baseline"), ["json"], "json"),
            (fresh_mlp(), ["json"], "json"),
            (NCA(4, 3, shared_weights=False, n_iterations=2), ["json"], "json"),
            (NCA(4, 3, input_injection=False), ["json"], "json"),
            (ShortestPathNCA(form="bounded"), ["json"], "json is for .*; torchscript or onnx can store it"),
            (load("gat-shortest-path-baseline"), ["json", "onnx", "torchscript"], "no other format"),
            (Unsaid(), ["json", "torchscript"], "no other format can store it. If all .*: stationary_from = 0$"),
        ],
    )
    def test_unsupported_content_is_refused_with_a_format_that_supports_it(self, policy, kinds, message, tmp_path):
        for kind in kinds:
            refused(message, export, policy, tmp_path / "policy", kind)
        assert not list(tmp_path.iterdir())

    @for_each(("name", "start"), [("a.json", b"{"), ("a", b"{"), ("a-0.5", b"{"), ("a.pt", b"PK"), ("b.PT", b"PK")])
    def test_the_suffix_says_which_format(self, name, start, tmp_path):
        path = export(load("depth-first"), tmp_path / name)
        assert path.suffix.lower() == (".pt" if start == b"PK" else ".json")
        assert path.read_bytes().startswith(start)

    def test_the_command_names_files_by_policies_and_models(self, tmp_path, command_line, capsys):
        assert main(["export", "depth-first"]) == 0
        assert read(tmp_path / "depth-first.json")["name"] == "depth-first"
        assert "depth-first.json" in capsys.readouterr().out
        save_model(load("nca-shortest-path-exact-weights"), "mine")
        assert main(["export", "mine.safetensors", "--out", "there"]) == 0
        assert read(tmp_path / "there.json")["name"] == "mine"
