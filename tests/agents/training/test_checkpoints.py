from __future__ import annotations

import resource
import signal
from contextlib import contextmanager

import pytest
import torch
from training_runs import ACCEL, ALONE, EVOLVING, POOL, content, loaded, make_updates, opened, started, train_in

from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.runs import CHECKPOINT, DESCRIPTION
from maze_nca_gym.agents.training import MODEL, run_updates

RUNS = {
    "fresh levels": {},
    "average": {"ema_decay": 0.9},
    "fixed levels": {"n_levels": 20},
    "pools of two sizes": {**POOL, "ema_decay": 0.9},
    "levels tried again": {**POOL, "pool_retry": 0.5},
    "long levels of two sizes": {"sizes": (6, 7), "long_fraction": 0.5, "families": ("random", "perfect")},
    "one cycle": {"schedule": "one-cycle"},
    "evolving levels": EVOLVING,
    "evolving as in ACCEL": {**ACCEL, "ema_decay": 0.9, "task": "diameter"},
    "GAT": {"model": "GAT"},
    "SOAP": {**POOL, "optimiser": "soap"},
    "unshared, SOAP": {"shared_weights": False, "optimiser": "soap"},
    "unshared": {"shared_weights": False, "max_pool": True, "task": "diameter"},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_a_loaded_run_continues_identically(options, tmp_path):
    uninterrupted, first = started(**options), started(**options)
    make_updates(uninterrupted, 8)
    for n in (0, 1, 3):
        make_updates(first, n)
        first.seconds = 1.5
        first.save(opened(tmp_path, first.config))
        second = loaded(tmp_path, first.config)
        assert (second.update, second.seconds) == (first.update, 1.5)
        second.seconds = 0.0
        make_updates(second, 8 - second.update)
        assert content(second, tmp_path) == content(uninterrupted, tmp_path)


def test_a_checkpoint_is_complete(tmp_path):
    """A run that resumes without its moments, its average or its pool ends with other weights."""
    uninterrupted, second = (started(**POOL, ema_decay=0.9, optimiser="soap") for _ in range(2))
    make_updates(uninterrupted, 10)
    make_updates(second, 9)
    moments, bases = ("left_moments", "right_moments"), ("left_basis", "right_basis")
    for forget in ("exp_avg", "exp_avg_sq", *moments, *bases, "average", "pools"):
        second.save(opened(tmp_path, second.config))
        third = loaded(tmp_path, second.config)
        for stored in third.optimiser.state.values():
            stored.get(forget, torch.zeros(1)).zero_()
        third.pools = {} if forget == "pools" else third.pools
        if forget == "average":
            third.average.load_state_dict(third.model.state_dict())
        make_updates(third, 1)
        assert content(third, tmp_path) != content(uninterrupted, tmp_path)


def test_loading_owns_its_memory(tmp_path):
    state = started(**POOL)
    make_updates(state, 2)
    saved = content(state, tmp_path)
    again = loaded(tmp_path / "content", state.config)
    make_updates(again, 2)
    assert (tmp_path / "content" / CHECKPOINT).read_bytes() == saved


def test_training_through_the_loop_is_training_by_hand(tmp_path):
    by_hand = started(**POOL, ema_decay=0.9)
    make_updates(by_hand, 12)
    state = started(**POOL, ema_decay=0.9)
    train_in(tmp_path / "run", state, log_every=5, validate_every=10)
    again = loaded(tmp_path / "run", state.config)
    assert again.seconds == state.seconds > 0
    again.seconds = 0.0
    assert content(again, tmp_path) == content(by_hand, tmp_path)
    model, average = load_model(tmp_path / "run" / MODEL).state_dict(), by_hand.average.state_dict()
    assert all(torch.equal(model[key], tensor) for key, tensor in average.items())
    assert {path.name for path in (tmp_path / "run").iterdir()} == {DESCRIPTION, CHECKPOINT, MODEL}


def test_checkpoints_store_pools_sparsely(tmp_path):
    """A level that no update has drawn yet takes its tiles and a bit for each number of its state."""
    state = started(**{**POOL, "pool_size": 400, "n_channels": 32})
    make_updates(state, 1)
    state.save(opened(tmp_path, state.config))
    (pool,) = state.pools.values()
    assert (pool.states != 0).any()
    assert (tmp_path / CHECKPOINT).stat().st_size < pool.states.nbytes / 6
    (again,) = loaded(tmp_path, state.config).pools.values()
    assert torch.equal(again.states.view(torch.int32), pool.states.view(torch.int32))


@contextmanager
def files_end_at(n_bytes: int):
    """A full disk: the kernel refuses to make files longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path):
    state = started(**POOL, ema_decay=0.5)
    run, path = opened(tmp_path, state.config), tmp_path / CHECKPOINT
    state.save(run)
    good = path.read_bytes()
    make_updates(state, 1)
    for length in (0, len(good) - 1):
        with files_end_at(length), pytest.raises(OSError, match="File too large"):
            state.save(run)
        assert path.read_bytes() == good
        assert {one.name for one in tmp_path.iterdir()} == {DESCRIPTION, CHECKPOINT}, "a partial file was left"
    state.save(run)
    assert path.read_bytes() != good


def test_training_on_a_full_disk_ends_with_the_reason(tmp_path):
    state = started()
    run = opened(tmp_path, state.config)
    with files_end_at(2000), pytest.raises(OSError, match="File too large"):
        run_updates(state, run, ALONE)
    assert [path.name for path in tmp_path.iterdir()] == [DESCRIPTION]


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    state = started()
    with torch.no_grad():
        state.model.weights[0][0, 0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"tensor 'model.weights.0' must hold finite float32 or float64 numbers"):
        state.save(opened(tmp_path, state.config))
    assert not (tmp_path / CHECKPOINT).exists()
