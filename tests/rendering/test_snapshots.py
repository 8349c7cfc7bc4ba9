from __future__ import annotations

from dataclasses import replace

from maze_nca_gym.rendering import Snapshot
from maze_nca_gym.rendering.snapshots import History


def filled(snapshot: Snapshot, n: int, **options: int) -> History:
    history = History(**options)
    for step in range(n):
        history.append(replace(snapshot, step=step))
    return history


def test_history_drops_the_oldest_beyond_its_limit(snapshot: Snapshot) -> None:
    history = filled(snapshot, 10, max_bytes=snapshot.n_bytes * 3)
    assert len(history) == 3
    assert history.move(-2)
    assert history.viewed.step == 7
    assert not history.move(-1)
    assert history.move(2)
    assert not history.move(1)
    assert history.viewed.step == 9


def test_history_keeps_at_least_the_newest(snapshot: Snapshot) -> None:
    history = filled(snapshot, 2, max_bytes=1)
    assert len(history) == 1
    assert history.viewed.step == 1


def test_the_newest_is_replaced_and_dropped(snapshot: Snapshot) -> None:
    history = filled(snapshot, 3)
    history.replace_newest(replace(snapshot, step=7))
    assert (len(history), history.viewed.step) == (3, 7)
    assert history.drop_newest()
    assert history.viewed.step == 1
    assert history.drop_newest()
    assert not history.drop_newest()
    assert history.viewed.step == 0


def test_dropped_snapshots_free_their_memory(snapshot: Snapshot) -> None:
    history = filled(snapshot, 3, max_bytes=snapshot.n_bytes * 3)
    history.drop_newest()
    history.append(snapshot)
    assert len(history) == 3
    history.clear()
    assert len(history) == 0
    for _ in range(3):
        history.append(snapshot)
    assert len(history) == 3


def test_copies_have_their_own_arrays(snapshot: Snapshot) -> None:
    copied = snapshot.copy()
    assert copied.n_bytes == snapshot.tiles.nbytes + snapshot.channels.nbytes + snapshot.target.nbytes
    snapshot.channels[:] = 5
    assert not (copied.channels == 5).any()
