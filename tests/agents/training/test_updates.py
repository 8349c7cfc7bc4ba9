from __future__ import annotations

import copy
import math
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tables import for_each, refused
from torch.nn import functional as F
from training_runs import ALONE, CPU, POOL, content, device_batch, loaded, make_updates, pool_of, started, tiny

from maze_nca_gym.agents import evaluate, evolve, rollout, solve, train
from maze_nca_gym.agents.training import Diverged, TrainingConfig, TrainingState, find_workers, updates
from maze_nca_gym.agents.training import pool as pool_module
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.losses import LOSSES, counted_iterations, path_losses
from maze_nca_gym.agents.training.optimisers import RISE, SCHEDULES
from maze_nca_gym.agents.training.pool import Patience
from maze_nca_gym.agents.training.updates import update
from maze_nca_gym.mazes.levels import one_hot
from maze_nca_gym.mazes.tasks import SHORTEST_PATH


def test_losses_against_numpy():
    rng = np.random.default_rng(0)
    path, target = rng.normal(0.5, 1, (3, 5, 6)), rng.random((3, 5, 6)) < 0.3
    probability = 1 / (1 + np.exp(-8 * (path - 0.5)))
    expected = {
        "mse": ((path - target) ** 2).mean(),
        "cross-entropy": -np.log(np.where(target, probability, 1 - probability)).mean(),
    }
    assert expected.keys() == LOSSES.keys()
    states = torch.from_numpy(rng.normal(size=(3, 4, 5, 6)))
    states[:, 0] = torch.from_numpy(path)
    for name, value in expected.items():
        loss = LOSSES[name](torch.from_numpy(path), torch.from_numpy(target).double())
        assert loss.shape == (3,)
        assert float(loss.mean()) == pytest.approx(value, rel=1e-6)
        counted = torch.ones(2, 3, dtype=torch.bool)
        twice = path_losses(name, [states, states], torch.from_numpy(target).float(), counted)
        assert twice.tolist() == pytest.approx([value, value], rel=1e-5)


@for_each(
    ("loss_steps", "n_steps", "expected"),
    [
        ((1.0,), 64, [64]),
        ((0.5, 0.75, 1.0), 32, [16, 24, 32]),
        ((0.5, 0.75, 1.0), 1, [1]),
        ((0.01, 1), 10, [1, 10]),
        ((0.5, 1.0), 3, [2, 3]),
        ((0.2, 0.21, 1.0), 10, [2, 10]),
    ],
)
def test_iterations_with_a_loss(loss_steps, n_steps, expected):
    assert counted_iterations(loss_steps, n_steps) == expected


def test_the_loss_of_an_update_is_the_sum_over_plain_rollouts():
    state = started(loss_steps=(0.5, 0.75, 1.0), n_iterations=8)
    batch = LevelStream(state.config).batch(0)
    maze = torch.from_numpy(one_hot(batch.tiles))
    paths = [rollout(state.model, maze, n)[:, 0].detach().numpy() for n in (4, 6, 8)]
    expected = sum(((path - batch.target) ** 2).mean() for path in paths)
    assert make_updates(state, 1) == [pytest.approx(expected, rel=1e-5)]


def test_one_cycle_agrees_with_pytorch():
    total, peak = 200, 0.7
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    plain = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, peak, total, pct_start=RISE, div_factor=25, final_div_factor=1e5 / 25
    )
    top, last = RISE * total - 1, total - 1  # updates of the peak and the end in PyTorch, here whole numbers
    for number in range(total):
        progress = RISE * number / top if number < top else RISE + (1 - RISE) * (number - top) / (last - top)
        assert peak * SCHEDULES["one-cycle"](progress) == pytest.approx(plain.get_last_lr()[0], rel=1e-9)
        optimiser.step()
        if number < last:
            plain.step()


def test_the_learning_rate_follows_the_schedule():
    for schedule, expected in (("constant", [0.1] * 10), ("one-cycle", [0.004, 0.1])):
        state = started(schedule=schedule, learning_rate=0.1, n_updates=10)
        rates = []
        for _ in range(10):
            make_updates(state, 1)
            rates.append(state.optimiser.param_groups[0]["lr"])
        np.testing.assert_allclose(rates[: len(expected)], expected, rtol=1e-9)
        assert rates[1:] == sorted(rates[1:], reverse=True)
        assert schedule == "constant" or rates[-1] < 0.01


@pytest.mark.parametrize(("normalised", "decay"), [(True, 0.0), (False, 0.0), (True, 3.0)])
def test_updates_agree_with_plain_pytorch(normalised, decay):
    state = started(normalise_gradients=normalised, weight_decay=decay, loss_steps=(0.5, 1.0))
    plain = copy.deepcopy(state.model)
    groups = [{"params": [p], "weight_decay": decay if p.ndim > 1 else 0.0} for p in plain.parameters()]
    optimiser = torch.optim.AdamW(groups, lr=0.01)
    for number in range(4):
        batch = state.stream.batch(number)
        maze, target = torch.from_numpy(one_hot(batch.tiles)), torch.from_numpy(batch.target).float()
        optimiser.zero_grad()
        sum(F.mse_loss(rollout(plain, maze, n)[:, 0], target) for n in (3, 6)).backward()
        for parameter in plain.parameters():
            parameter.grad /= parameter.grad.norm() if normalised else 1
        optimiser.step()
    make_updates(state, 4)
    for mine, other in zip(state.model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_the_average_follows_the_weights():
    state = started(ema_decay=0.6)
    mean = [parameter.detach().numpy().astype(float) for parameter in state.model.parameters()]
    for number in range(1, 10):
        make_updates(state, 1)
        decay = min(0.6, number / (number + 9))
        weights = [parameter.detach().numpy() for parameter in state.model.parameters()]
        mean = [decay * one + (1 - decay) * weight for one, weight in zip(mean, weights, strict=True)]
        for one, parameter in zip(mean, state.average.parameters(), strict=True):
            np.testing.assert_allclose(parameter.detach().numpy(), one, rtol=1e-4, atol=1e-6)
    assert state.best_model is state.average
    assert started().average is None
    assert not torch.equal(state.average.weights[0], state.model.weights[0])


MODELS = {
    "NCA": {},
    "NCA unshared": {"shared_weights": False},
    "NCA without skip connections": {"input_injection": False},
    "NCA with max-pools": {"max_pool": True},
    "NCA 5x5": {"kernel_size": 5, "cut_corners": True},
    "GCN": {"model": "GCN"},
    "GCN unshared": {"model": "GCN", "shared_weights": False, "traversable_edges_only": False},
    "GAT": {"model": "GAT"},
    "GAT with edge features": {"model": "GAT", "edge_features": True},
    "MLP": {"model": "MLP", "n_nodes": 32},
}


def losses_on_one_batch(n: int, **changes: object) -> list[float]:
    state = started(n_channels=12, n_iterations=4, n_updates=1000, **changes)
    batch = state.stream.batch(0)
    return [float(update(state, batch, ALONE)) for _ in range(n)]


ASKED = [{"task": "shortest-path", "loss": "mse"}, {"task": "diameter", "loss": "cross-entropy"}]


@pytest.mark.parametrize(("options", "arguments"), [*zip(MODELS.values(), cycle(ASKED), strict=False)], ids=MODELS)
def test_every_model_learns_its_batch(options, arguments):
    losses = losses_on_one_batch(40, **arguments, **options)
    assert np.mean(losses[-5:]) < 0.9 * losses[0]


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_bfloat16_learns_too(options):
    losses = losses_on_one_batch(20, precision="bfloat16", **options)
    assert np.mean(losses[-5:]) < 0.95 * losses[0]
    exact = losses_on_one_batch(1, **options)[0]
    assert losses[0] == pytest.approx(exact, rel=0.05)
    assert losses[0] != exact, "nothing ran in bfloat16"


def test_a_pool_is_sampled_and_updated():
    levels = LevelStream(tiny(batch_size=9)).batch(0)
    pool = pool_of(levels[:6], 2)
    assert pool.states.shape == (6, 2, 8, 8)
    pool.states[:] = torch.arange(1.0, 7)[:, None, None, None]
    draw = pool.draw(np.random.default_rng(0), 4, device_batch(levels[6:8]))
    batch, states, ages = pool.take(draw)
    places = draw.numpy()
    assert len(set(places)) == 4
    assert ages.tolist() == [0, 0, 0, 0]
    assert np.array_equal(batch.tiles[:2], levels.tiles[6:8])
    assert np.array_equal(batch.target[:2], levels.target[6:8])
    assert np.array_equal(batch.tiles[2:], levels.tiles[places[2:]])
    assert states[:, 0, 0, 0].tolist() == [0, 0, *(places[2:] + 1)]
    assert torch.equal(pool.levels.tiles[draw], batch.tiles)
    pool.put(draw, torch.full((4, 2, 8, 8), 9.0), 5)
    other_places = sorted(set(range(6)) - set(places))
    assert (pool.states[places] == 9).all()
    assert pool.states[other_places, 1, 2, 3].tolist() == [place + 1 for place in other_places]
    assert pool.ages.tolist() == [0 if place in other_places else 5 for place in range(6)]
    pool.draw(np.random.default_rng(0), 4, device_batch(levels[6:7]))
    assert sorted(pool.ages.tolist()) == [0, 0, 0, 5, 5, 5], "a newcomer starts anew"
    assert np.array_equal(levels.tiles[0], LevelStream(tiny(batch_size=9)).batch(0).tiles[0]), "levels were changed"


@for_each("value", [1e3, -1e3, math.inf, math.nan])
def test_members_of_a_pool_whose_states_explode_start_anew(value):
    pool = pool_of(LevelStream(tiny()).batch(0), 2)
    states = torch.ones(3, 2, 8, 8)
    states[1, 1, 4, 5] = value
    pool.put(torch.tensor([6, 2, 4]), states, 5)
    assert pool.ages.tolist() == [0, 0, 0, 0, 5, 0, 5, 0]
    assert (pool.states[[6, 4]] == 1).all()
    assert (pool.states[[0, 1, 2, 3, 5, 7]] == 0).all()


def test_wrong_states_start_again_when_they_are_due():
    levels = LevelStream(tiny(batch_size=12)).batch(0)
    pool = pool_of(levels, 2, Patience(per_tile=1.5, more=3))
    lengths = levels.target.sum(axis=(1, 2))
    correct, step = np.arange(12) % 2 == 0, 2
    states = torch.full((12, 2, 8, 8), 0.4)
    states[:, 0] = torch.from_numpy(np.where(correct[:, None, None], levels.target, 0))
    in_hand = np.zeros(12, int)
    for _ in range(20):
        pool.put(torch.arange(12), states, step)
        in_hand += step
        in_hand[~correct & (in_hand >= 1.5 * lengths + 3)] = 0
        assert pool.ages.tolist() == in_hand.tolist()
        assert not pool.states[torch.from_numpy(in_hand == 0)].any()
        assert torch.equal(pool.states[torch.from_numpy(in_hand > 0)], states[torch.from_numpy(in_hand > 0)])
    assert (in_hand[correct] == 40).all()
    assert (in_hand[~correct] < 1.5 * lengths[~correct] + 3).all()
    endless = pool_of(levels, 2)
    endless.put(torch.arange(12), states, 10_000)
    assert endless.ages.tolist() == [10_000] * 12, "without patience what is wrong goes on"
    assert torch.equal(endless.states, states)


def test_newcomers_replace_solved_levels_first():
    levels = LevelStream(tiny(batch_size=40)).batch(0)
    pool = pool_of(levels[:30], 2, Patience(per_tile=0.0, more=5))
    solved = np.arange(30) % 3 == 0
    pool.ages[solved] = 5
    pool.ages[~solved] = 4
    for seed in range(20):
        again = copy.deepcopy(pool)
        places = again.draw(np.random.default_rng(seed), 20, device_batch(levels[30:34])).numpy()
        n_solved = solved[places].sum()
        assert 0 < n_solved < 20
        assert solved[places[:n_solved]].all()
        same = pool.draw(np.random.default_rng(seed), 20, device_batch(levels[:0])).tolist()
        assert set(places) == set(same), "the draw is the same"
        changed = (again.levels.tiles != pool.levels.tiles).flatten(1).any(1)
        assert changed.nonzero().flatten().tolist() == sorted(places[:4])


@for_each(
    ("options", "patience"),
    [
        ({}, None),
        ({"pool_retry": 0.5}, Patience(0.5, 5)),
        ({"pool_retry": 1.0, "nearest_solution": 0.1}, Patience(1.0, 5, any_optimum=True)),
    ],
)
def test_patience_agrees_with_the_configuration(options, patience):
    state = started(**POOL, **options)
    make_updates(state, 4)
    assert {pool.patience for pool in state.pools.values()} == {patience}


@pytest.mark.parametrize(("name", "n_shown"), [("extrapolate", 1), ("guided", 5), ("healing", 5)])
@pytest.mark.parametrize("seed", [0, 9])
def test_initial_outputs_with_a_final_relu_are_not_all_zero(name, n_shown, seed):
    """A channel of zeros would stay zero, because it has no gradient."""
    config = changed(name, seed=seed, batch_size=8, pool_fresh=1.0, pool_edited=0.0, pool_edits="few")
    maze = torch.from_numpy(one_hot(LevelStream(config).batch(0).tiles))
    with torch.no_grad():
        alive = (rollout(config.make_model(), maze, 24)[:, :n_shown] > 0).float().mean(dim=(0, 2, 3))
    assert alive.min() > 0.5


def test_damping_reduces_losses_above_that_of_an_empty_path():
    target, counted = torch.zeros(4, 8, 8), torch.ones(1, 4, dtype=torch.bool)
    state = torch.tensor([0.0, 0.5, 1.0, 1e6])[:, None, None, None].repeat(1, 1, 8, 8).requires_grad_()
    expected = [0, 0.25, 1, 1 + 2 * math.log(1e6)]
    plain, damped = (path_losses("mse", [state], target, counted, damped=damped) for damped in (False, True))
    assert plain.tolist() == [pytest.approx((0 + 0.25 + 1 + 1e12) / 4)]
    assert damped.tolist() == [pytest.approx(sum(expected) / 4)]
    damped.sum().backward()
    slopes = state.grad.sum(dim=(1, 2, 3))
    assert slopes[[0, 1, 3]].tolist() == [0, pytest.approx(2 * 0.5 / 4), pytest.approx(2 / 1e6 / 4)]
    assert state.grad.isfinite().all()


def test_edits_never_produce_levels_of_test_sets(monkeypatch):
    levels = LevelStream(tiny(batch_size=8)).batch(0)
    pool = pool_of(levels, 2)
    monkeypatch.setattr(pool_module, "is_held_out", lambda tiles, task: np.arange(len(tiles)) % 2 == 0)
    pool.edit(np.random.default_rng(0), torch.arange(8), SHORTEST_PATH, "few")
    assert (pool.levels.tiles.numpy() != levels.tiles).any(axis=(1, 2)).tolist() == [False, True] * 4


def test_levels_longer_than_the_rollout_do_not_count():
    state = started(loss_after=1.0, n_iterations=6, batch_size=16)
    batch = LevelStream(state.config).batch(0)
    path = rollout(state.model, torch.from_numpy(one_hot(batch.tiles)), 6)[:, 0].detach().numpy()
    counted = batch.target.sum(axis=(1, 2)) <= 6
    assert 2 < counted.sum() < 14
    expected = ((path - batch.target)[counted] ** 2).sum() / batch.target.size
    assert make_updates(state, 1) == [pytest.approx(expected, rel=1e-4)]


def test_uncounted_levels_have_no_gradient():
    state = started(n_iterations=3, loss_after=1000.0)
    before = [parameter.detach().clone() for parameter in state.model.parameters()]
    assert update(state, LevelStream(state.config).batch(0), ALONE) == 0
    assert all(map(torch.equal, before, state.model.parameters()))


def test_updates_start_from_the_states_in_the_pool():
    state = started(n_iterations=None, pool_size=12, pool_steps=(3, 6), pool_fresh=0.25)
    make_updates(state, 3)
    pool, model = state.pools[6], copy.deepcopy(state.model)
    tiles, states = pool.levels.tiles.clone(), pool.states.clone()
    newcomers = LevelStream(state.config).batch(state.update)
    make_updates(state, 1)
    replaced = (pool.levels.tiles != tiles).flatten(1).any(1)
    moved = (pool.states != states).flatten(1).any(1)
    assert replaced.sum() == len(newcomers) == 2
    assert moved.sum() == 8
    present = pool.levels.tiles.numpy()
    assert {one.tobytes() for one in present[replaced.numpy()]} == {one.tobytes() for one in newcomers.tiles}
    states[replaced] = 0
    maze = torch.from_numpy(one_hot(present))[moved]
    after = [rollout(model, maze, n, states[moved]).detach() for n in range(3, 7)]
    assert sum(torch.allclose(pool.states[moved], one, atol=1e-5) for one in after) == 1


def test_noise_has_the_configured_strength_and_changes_every_update(monkeypatch):
    starts, plain = [], updates.compute_gradients

    def noted(state, batch, start, *rest):
        starts.append(start)
        return plain(state, batch, start, *rest)

    monkeypatch.setattr(updates, "compute_gradients", noted)
    make_updates(started(n_iterations=None, pool_size=8, pool_steps=(3, 6), pool_fresh=1.0, state_noise=0.05), 2)
    for start in starts:
        assert float(start.std()) == pytest.approx(0.05, rel=0.1)
        assert abs(float(start.mean())) < 0.005
    assert abs(float((starts[0] * starts[1]).mean())) < 0.1 * 0.05**2


def test_every_size_has_its_own_pool():
    state = started(**POOL)
    make_updates(state, 12)
    shapes = {size: tuple(pool.levels.tiles.shape) for size, pool in state.pools.items()}
    assert shapes == {6: (10, 8, 8), 7: (10, 9, 9)}


@pytest.mark.parametrize(
    "options",
    [
        {"ema_decay": 0.5},
        {"n_channels": 6, "guidance": 1.0, "gradient_growth": 1.0},
        {"task": "diameter", "pool_retry": 2.0, "nearest_solution": 0.75, "optimiser": "soap"},
    ],
    ids=["average", "guidance", "nearest solution"],
)
def test_runs_are_equal_only_for_equal_seeds(tmp_path, options):
    contents = []
    for seed in (3, 3, 4):
        state = started(**POOL, **options, seed=seed)
        make_updates(state, 5)
        contents.append(content(state, tmp_path))
    assert contents[0] == contents[1] != contents[2]


def test_neither_threads_nor_their_number_change_fused_runs(tmp_path):
    contents = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        state = started(batch_size=64)
        make_updates(state, 5)
        contents.append(content(state, tmp_path))
    assert contents[0] == contents[1]


@pytest.mark.parametrize("bad", [math.nan, 1e9])
def test_an_update_that_diverges_changes_no_weight(bad, tmp_path):
    state = started(ema_decay=0.5)
    make_updates(state, 2)
    with torch.no_grad():
        state.model.biases[0][0] = bad
    before = [parameter.clone() for module in (state.model, state.average) for parameter in module.parameters()]
    with pytest.raises(Diverged, match=r"before update 3 the loss was (nan|2\.81e\+14), the norm of its gradient "):
        make_updates(state, 1)
    after = [parameter for module in (state.model, state.average) for parameter in module.parameters()]
    assert state.update == 2
    assert all(torch.equal(one, other) or bad != bad for one, other in zip(before, after, strict=True))


def test_a_gradient_that_is_not_finite_is_noticed_before_it_does_harm(monkeypatch):
    def infinite(state: TrainingState, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
        for parameter in state.model.parameters():
            parameter.grad = torch.full_like(parameter, math.inf)
        return torch.tensor(0.5), torch.zeros(8, 1, 8, 8)

    monkeypatch.setattr(updates, "compute_gradients", infinite)
    state = started()
    with pytest.raises(Diverged, match=r"the loss was 0\.5, the norm of its gradient inf"):
        make_updates(state, 1)
    assert all(parameter.isfinite().all() for parameter in state.model.parameters())


@for_each(
    ("device", "message"),
    [
        ("gpu", "unknown device 'gpu'; known: cpu, cuda, cuda:0 …, mps, xpu"),
        ("", "unknown device ''"),
        ("meta", "device 'meta' is not supported; known: cpu, cuda, cuda:0 …, mps, xpu"),
        ("cuda:99", "device='cuda:99', but torch finds [0-9]+ CUDA devices here"),
        ("mps:7", "device='mps:7', but torch finds [01] MPS devices here"),
        ("xpu:99", "device='xpu:99', but torch finds [0-9]+ XPU devices here"),
    ],
)
def test_unknown_devices_are_refused(device, message):
    refused(message, find_workers, device)


@pytest.mark.parametrize("name", ["mps", "xpu"])
def test_untested_devices_must_be_named(name, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda device: SimpleNamespace(has_fp64=False))
    with pytest.warns(UserWarning, match=f"this package has never been run on a device '{name}'"):
        assert find_workers(name).device.type == name
    assert find_workers("auto").device.type != name
    for call in (
        lambda: train("guided", out=tmp_path / "run", device=name),
        lambda: solve("nca-shortest-path-hinted", device=name),
        lambda: evaluate("shortest-path-bfs", device=name),
        lambda: evolve("shortest-path-bfs", out=tmp_path / "levels", device=name),
        lambda: gym.make_vec("MazeShortestPath-v0", 2, device=name, output="torch"),
    ):
        refused(f"device '{name}' has no float64, in which .* computes; use cpu or cuda", call)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu():
    assert find_workers("auto").device == CPU


@for_each(
    ("variable", "n", "message"),
    [
        ("WORLD_SIZE", "2", "WORLD_SIZE is 2, but this process was not started by torchrun"),
        ("SLURM_STEP_NUM_TASKS", "4", "srun started 4 processes that do not know of each other"),
        ("WORLD_SIZE", "two", "the environment variable WORLD_SIZE must be a number, got 'two'; unset it"),
        ("LOCAL_WORLD_SIZE", "-1", "the environment variable LOCAL_WORLD_SIZE must be a number, got '-1'"),
    ],
)
def test_several_processes_need_torchrun(variable, n, message):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LOCAL_WORLD_SIZE", raising=False)
        patch.setenv(variable, n)
        refused(message, find_workers, "cpu")
        for alone in ("1", ""):
            patch.setenv(variable, alone)
            assert find_workers("cpu").size == 1


@for_each(
    ("device", "message"),
    [
        ("cuda:1", "torchrun gives each process its own GPU: use --device cuda, not cuda:1"),
        ("cuda", "torchrun started 3 processes, but torch finds 2 GPUs here: use --nproc-per-node 2"),
    ],
)
def test_each_process_of_torchrun_needs_a_gpu(device, message):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "device_count", lambda: 2)
        for variable in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            patch.setenv(variable, "3")
        refused(message, find_workers, device)


FAMILIES = st.lists(st.sampled_from(("random", "perfect", "sparse", "caves")), min_size=1, max_size=3).map(tuple)
OPTIONS = {
    "model": st.sampled_from(("NCA", "NCA", "NCA", "GCN", "GAT", "MLP")),
    "task": st.sampled_from(("shortest-path", "diameter")),
    "n_channels": st.sampled_from((1, 3, 17)),
    "n_iterations": st.sampled_from((None, 1, 2, 5)),
    "kernel_size": st.sampled_from((None, 1, 5)),
    "cut_corners": st.sampled_from((None, True)),
    "shared_weights": st.sampled_from((None, True, False)),
    "max_pool": st.sampled_from((None, True)),
    "input_injection": st.sampled_from((None, True, False)),
    "state_limit": st.sampled_from((None, 0.7, 2)),
    "traversable_edges_only": st.sampled_from((None, False)),
    "edge_features": st.sampled_from((None, True)),
    "n_nodes": st.sampled_from((None, 3)),
    "families": FAMILIES,
    "sizes": st.sampled_from(((9,), (9, 10))),
    "n_levels": st.sampled_from((None, None, 1, 5)),
    "long_fraction": st.sampled_from((0.0, 0.3, 1.0)),
    "long_of": st.sampled_from((1, 3)),
    "borderless": st.sampled_from((0.0, 0.5)),
    "batch_size": st.sampled_from((1, 3, 8)),
    "n_updates": st.sampled_from((1, 4)),
    "loss": st.sampled_from(tuple(LOSSES)),
    "loss_steps": st.sampled_from(((1.0,), (0.01, 1.0), (0.5, 0.75, 1.0))),
    "schedule": st.sampled_from(tuple(SCHEDULES)),
    "weight_decay": st.sampled_from((0.0, 0.1)),
    "normalise_gradients": st.booleans(),
    "ema_decay": st.sampled_from((0.0, 0.9)),
    "pool_size": st.sampled_from((0, 0, 8, 9)),
    "pool_fresh": st.sampled_from((0.0, 0.4, 1.0)),
    "pool_steps": st.sampled_from(((1, 1), (2, 7))),
    "state_noise": st.sampled_from((0.0, 0.1)),
    "precision": st.sampled_from(("float32", "bfloat16")),
}
EVOLUTION = {
    "evolve": st.just(True),
    "pool_size": st.just(0),
    "n_iterations": st.sampled_from((1, 5)),
    "sizes": st.just((9,)),
    "state_noise": st.just(0.0),
    "n_levels": st.sampled_from((None, 5)),
    "capacity": st.sampled_from((5, 9)),
    "replay_probability": st.sampled_from((0.0, 0.5, 1.0)),
    "evolve_every": st.sampled_from((1, 3)),
    "evolve_below": st.sampled_from((0.0, 100.0)),
    "n_offspring": st.sampled_from((1, 7)),
    "parents": st.sampled_from(("random", "fittest", "replay")),
    "mutation": st.sampled_from(("flip", "edits")),
    "prioritisation": st.sampled_from(("uniform", "rank", "proportional", "top-k")),
    "top_k": st.sampled_from((1, 99)),
    "staleness_weight": st.sampled_from((0.0, 1.0)),
    "eviction": st.sampled_from(("fitness", "replay-weight")),
    "score": st.sampled_from(("regret", "loss", "accuracy", "learnability")),
}
POOLED = {"pool_size": st.sampled_from((8, 9)), "model": st.just("NCA"), "n_levels": st.none()}
OPTIONS_OF = {
    "NCA": ("kernel_size", "cut_corners", "shared_weights", "max_pool", "input_injection", "state_limit"),
    "GCN": ("shared_weights", "traversable_edges_only"),
    "GAT": ("shared_weights", "edge_features"),
    "MLP": ("n_nodes",),
}


def config_of(values: dict[str, object]) -> TrainingConfig | None:
    """Return a configuration with these values, without options that the model lacks; None if it is refused."""
    names = {name for names in OPTIONS_OF.values() for name in names} - set(OPTIONS_OF[str(values["model"])])
    try:
        return changed(TrainingConfig(), **{**values, **dict.fromkeys(names)})
    except ValueError:
        return None


KINDS = [OPTIONS, {**OPTIONS, **POOLED}, {**OPTIONS, **EVOLUTION}]
CONFIGS = st.one_of(*map(st.fixed_dictionaries, KINDS)).map(config_of)


def check_that_it_trains(config: TrainingConfig, folder: Path) -> None:
    """The run makes all its updates, and its last checkpoint can be read."""
    state = TrainingState.start(config, CPU)
    assert all(map(math.isfinite, make_updates(state, config.n_updates)))
    saved = content(state, folder)
    assert content(loaded(folder / "content", config), folder) == saved


@pytest.mark.parametrize("n", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_accepted_configurations_can_train(tmp_path_factory, n):
    @settings(max_examples=n)
    @given(CONFIGS)
    def check(config: TrainingConfig | None) -> None:
        assume(config is not None)
        check_that_it_trains(config, tmp_path_factory.mktemp("run"))

    check()
