"""Files that are written completely or not at all, and the errors if they cannot be written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maze_nca_gym.support.files import (
    atomic_write,
    load_arrays,
    os_error_context,
    remove_partial,
    save_arrays,
    write_all,
)


def test_a_missing_folder_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "missing" / "file.npz"):
        pass
    assert caught.value.filename == str(tmp_path / "missing" / "file.npz")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_is_reported_with_the_written_content(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file.npz"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with (
        pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: .*file\.npz'") as caught,
        atomic_write(path) as file,
    ):
        file.write(b"new")
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.npz"]


def test_an_error_without_a_number_keeps_its_message(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"encoder error -2: .*picture\.png'"), os_error_context(tmp_path / "picture.png"):
        raise OSError("encoder error -2")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_new_files_follow_the_umask_and_replaced_files_keep_their_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for mode in (0o640, 0o600):
            write_all({tmp_path / "a": b"new"})
            assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
            (tmp_path / "a").chmod(0o600)  # a replaced file keeps its mode
    finally:
        os.umask(before)


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize("nth", range(3))
def test_all_files_are_written_or_none(step: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = {"a": b"a", "c": b"c"}, {"a": b"A", "b": b"B", "c": b"C"}
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    original, calls = getattr(os, step), []

    def fail_once(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == nth + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(*arguments)

    monkeypatch.setattr(os, step, fail_once)
    with pytest.raises(OSError, match="No space left on device"):
        write_all({tmp_path / name: content for name, content in new.items()})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old
    write_all({tmp_path / name: content for name, content in new.items()})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == new


def test_only_requested_arrays_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_arrays(tmp_path / "a", {"tiles": np.zeros(3), "huge": np.zeros(1 << 20)})
    read, names = np.lib.format.read_array, []
    monkeypatch.setattr(
        np.lib.format,
        "read_array",
        lambda *arguments, **options: names.append(arguments[0].name) or read(*arguments, **options),
    )
    assert list(load_arrays(path, ["tiles", "none"], others=True)) == ["tiles"]
    with pytest.raises(ValueError, match=r"it has unknown arrays: huge"):
        load_arrays(path, ["tiles"])
    assert names == ["tiles.npy"] * 2


def test_only_leftovers_of_that_file_are_removed(tmp_path: Path) -> None:
    other_files = {
        "a.npz",
        ".a.npz",
        ".a.npz.backup",
        ".a.npz.ABCD1234",
        ".a.npz.______0z",
        ".a.npz.abcd1234.txt",
        ".b.npz.abcd1234",
        "x.a.npz.abcd1234",
    }
    for name in {*other_files, ".a.npz.abcd1234"}:
        (tmp_path / name).touch()
    (tmp_path / ".a.npz.folder__").mkdir()
    remove_partial(tmp_path / "a.npz")
    assert set(os.listdir(tmp_path)) == other_files | {".a.npz.folder__"}


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    for _ in range(20):  # for different random names
        with atomic_write(tmp_path / "a[1].npz"):
            (left,) = tmp_path.glob(".*")
            os.link(left, tmp_path / "copy")
            name = left.name
        (tmp_path / "copy").rename(tmp_path / name)
        remove_partial(tmp_path / "a[1].npz")
        assert os.listdir(tmp_path) == ["a[1].npz"]
