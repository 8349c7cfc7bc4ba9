from __future__ import annotations

import json
import re
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from training_runs import ACCEL, ALONE, CPU, EVOLVING, POOL, content, make_updates, started, tiny

import maze_nca_gym
from maze_nca_gym.agents import policy
from maze_nca_gym.agents.tensor_files import _digest
from maze_nca_gym.agents.training import CHECKPOINT, MODEL, Intervals, NullReport, TrainingState, run_updates
from maze_nca_gym.agents.training.state import KIND
from maze_nca_gym.agents.weights import load_model, save_model

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
@pytest.mark.parametrize("half", [0, 1, 6])
def test_a_loaded_run_goes_on_as_if_nothing_had_been(options, half, tmp_path):
    whole, first = started(**options), started(**options)
    make_updates(whole, 12)
    make_updates(first, half)
    first.seconds = 1.5
    first.save(tmp_path / CHECKPOINT)
    second = TrainingState.load(tmp_path / CHECKPOINT, CPU)
    assert second.config == first.config
    assert (second.update, second.seconds) == (half, 1.5)
    second.seconds = 0.0
    make_updates(second, 12 - half)
    assert content(second, tmp_path) == content(whole, tmp_path)


def test_a_checkpoint_is_complete(tmp_path):
    """Not by chance: a run without its moments, its average or its pool ends elsewhere."""
    whole, second = (started(**POOL, ema_decay=0.9, optimiser="soap") for _ in range(2))
    make_updates(whole, 10)
    make_updates(second, 9)
    moments, bases = ("left_moments", "right_moments"), ("left_basis", "right_basis")
    for forget in ("exp_avg", "exp_avg_sq", *moments, *bases, "average", "pools"):
        second.save(tmp_path / CHECKPOINT)
        third = TrainingState.load(tmp_path / CHECKPOINT, CPU)
        for kept in third.optimiser.state.values():
            kept.get(forget, torch.zeros(1)).zero_()
        third.pools = {} if forget == "pools" else third.pools
        if forget == "average":
            third.average.load_state_dict(third.model.state_dict())
        make_updates(third, 1)
        assert content(third, tmp_path) != content(whole, tmp_path)


def test_loading_owns_its_memory(tmp_path):
    state = started(**POOL)
    make_updates(state, 2)
    saved = content(state, tmp_path)
    loaded = TrainingState.load(tmp_path / "content.safetensors", CPU)
    make_updates(loaded, 2)
    assert (tmp_path / "content.safetensors").read_bytes() == saved


def test_training_through_the_loop_is_training_by_hand(tmp_path):
    by_hand = started(**POOL, ema_decay=0.9)
    make_updates(by_hand, 12)
    state = started(**POOL, ema_decay=0.9)
    run_updates(state, tmp_path, ALONE, NullReport(), Intervals(log=5, validate=10))
    loaded = TrainingState.load(tmp_path / CHECKPOINT, CPU)
    assert loaded.seconds == state.seconds > 0
    loaded.seconds = 0.0
    assert content(loaded, tmp_path) == content(by_hand, tmp_path)
    model, average = load_model(tmp_path / MODEL).state_dict(), by_hand.average.state_dict()
    assert all(torch.equal(model[key], tensor) for key, tensor in average.items())
    assert {path.name for path in tmp_path.iterdir()} == {CHECKPOINT, MODEL, "content.safetensors"}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    state = started(**POOL, ema_decay=0.5)
    make_updates(state, 12)
    state.save(tmp_path / CHECKPOINT)
    return tmp_path / CHECKPOINT


def read(path: Path) -> tuple[dict, dict[str, torch.Tensor]]:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()[KIND]), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def forge(path: Path, header: dict, tensors: dict[str, torch.Tensor], *, signed: bool = True) -> None:
    """Write what was changed, with a checksum that fits."""
    if signed:
        description = {key: value for key, value in header.items() if key != "sha256"}
        header = {**description, "sha256": _digest(description, tensors)}
    save_file(tensors, path, {KIND: json.dumps(header, sort_keys=True)})


def refuse(path: Path, message: str = "is not a readable") -> None:
    with pytest.raises(ValueError, match=message) as caught:
        TrainingState.load(path, CPU)
    assert str(caught.value).startswith(f"{path} is not a readable checkpoint: ")


def test_a_forgery_would_be_read(saved):
    """So that what the following tests change is what is refused."""
    before = saved.read_bytes()
    forge(saved, *read(saved))
    TrainingState.load(saved, CPU).save(saved)
    assert saved.read_bytes() == before


def test_every_damaged_byte_is_noticed(saved):
    good = saved.read_bytes()
    for place in [*range(0, 64), *range(64, len(good), 1999), len(good) - 1]:
        damaged = bytearray(good)
        damaged[place] ^= 0x10
        saved.write_bytes(damaged)
        refuse(saved)


@pytest.mark.parametrize("part", [0, 1, 7, 8, 9, 100, 0.1, 0.5, 0.9, -8, -1])
def test_truncated_files(saved, part):
    good = saved.read_bytes()
    length = part if isinstance(part, int) and part >= 0 else len(good) + part if part < 0 else int(part * len(good))
    saved.write_bytes(good[:length])
    refuse(saved)
    saved.write_bytes(good + b"\0")
    refuse(saved)


def test_other_files(tmp_path):
    path = tmp_path / CHECKPOINT
    with pytest.raises(FileNotFoundError):
        TrainingState.load(path, CPU)
    torch.save({"model": torch.zeros(1)}, path)
    refuse(path)
    save_file({"model": torch.zeros(1)}, path)
    refuse(path, "its header has no 'maze_nca_gym checkpoint 2'")
    save_model(started().model, path)
    refuse(path, "its header has no 'maze_nca_gym checkpoint 2'")
    path.write_text('{"config": {}}')
    refuse(path)
    path.write_bytes((2**62).to_bytes(8, "little") + b"{}")
    refuse(path)


def test_a_checkpoint_is_no_model(saved):
    with pytest.raises(ValueError, match="is not a readable model file: its header has no 'maze_nca_gym model 1'"):
        load_model(saved)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{}", '{"config":' + "[" * 100_000])
def test_descriptions_that_are_none(saved, text):
    save_file(read(saved)[1], saved, {KIND: text})
    refuse(saved)


def test_what_was_changed_after_it_was_written_is_noticed_by_the_digest(saved):
    header, tensors = read(saved)
    forge(saved, header, {**tensors, "model.biases.0": torch.ones(5)}, signed=False)
    refuse(saved, "its checksum is wrong: it was damaged after it was written")
    forge(saved, {**header, "update": 3}, tensors, signed=False)
    refuse(saved, "its checksum is wrong: it was damaged after it was written")


def test_of_a_pool_only_numbers_that_are_not_zero_are_kept(tmp_path):
    """A level that no update has drawn yet takes its tiles and a bit for each number of its state."""
    state = started(**{**POOL, "pool_size": 400, "n_channels": 32})
    make_updates(state, 1)
    state.save(tmp_path / CHECKPOINT)
    (pool,) = state.pools.values()
    assert (pool.states != 0).any()
    assert (tmp_path / CHECKPOINT).stat().st_size < pool.states.nbytes / 6
    (again,) = TrainingState.load(tmp_path / CHECKPOINT, CPU).pools.values()
    assert torch.equal(again.states.view(torch.int32), pool.states.view(torch.int32))


@contextmanager
def files_end_at(n_bytes: int):
    """A disk that is full: the kernel refuses to make files longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_leaves_the_checkpoint_before(saved):
    good, state = saved.read_bytes(), TrainingState.load(saved, CPU)
    state.update -= 1
    for length in (0, 1000, len(good) - 1):
        with files_end_at(length), pytest.raises(OSError, match="File too large"):
            state.save(saved)
        assert saved.read_bytes() == good
        assert list(saved.parent.iterdir()) == [saved], "a partial file was left"
    state.save(saved)
    assert saved.read_bytes() != good


def test_training_on_a_full_disk_ends_with_the_reason(tmp_path):
    state = started()
    with files_end_at(2000), pytest.raises(OSError, match="File too large"):
        run_updates(state, tmp_path, ALONE, NullReport(), Intervals())
    with pytest.raises(FileNotFoundError):
        run_updates(started(), tmp_path / "nowhere", ALONE, NullReport(), Intervals())
    assert not list(tmp_path.iterdir())


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    state = started()
    with torch.no_grad():
        state.model.weights[0][0, 0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"tensor 'model.weights.0' must hold finite float32 numbers"):
        state.save(tmp_path / CHECKPOINT)
    assert not list(tmp_path.iterdir())


UNPICKLES = re.compile(
    r"\bpickle\b|\bjoblib\b|\bdill\b|\bshelve\b|\bmarshal\b|torch\.(hub|jit\.)?load\(|allow_pickle=(?!False)"
    r"|np\.load\((?!.*allow_pickle=False)"
)


def test_nothing_is_unpickled():
    folders = [Path(maze_nca_gym.__file__).parent, Path(policy.__file__).parent]
    sources = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(sources) > 100
    found = [f"{path}: {line}" for path in sources for line in path.read_text().splitlines() if UNPICKLES.search(line)]
    assert not found
    for text in ("import pickle", "torch.load(path)", "np.load(p)", "np.load(p, allow_pickle=True)"):
        assert UNPICKLES.search(text)


def test_the_intervals_are_checked():
    for values in ({"log": 0}, {"log": 10, "validate": 25}, {"validate": 0}):
        with pytest.raises(ValueError, match="validate must be a multiple of log, both at least 1, got"):
            Intervals(**values)
    for save in (-1, float("nan")):
        with pytest.raises(ValueError, match="save must be at least 0 seconds, got"):
            Intervals(save=save)
    assert tiny().n_updates == 12
