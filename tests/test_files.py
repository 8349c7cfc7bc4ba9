"""Files that are written as a whole, and what is said where they cannot be."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from maze_nca_gym.support.files import atomic_write, os_error_context, remove_partial


def test_a_missing_folder_is_told_by_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "missing" / "file.npz"):
        pass
    assert caught.value.filename == str(tmp_path / "missing" / "file.npz")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_is_told_with_what_was_being_written(
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


def test_an_error_without_a_number_keeps_its_words(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"encoder error -2: .*picture\.png'"), os_error_context(tmp_path / "picture.png"):
        raise OSError("encoder error -2")


def test_only_leftovers_of_that_file_are_removed(tmp_path: Path) -> None:
    kept = {
        "a.npz",
        ".a.npz",
        ".a.npz.backup",
        ".a.npz.ABCD1234",
        ".a.npz.abcd1234.txt",
        ".b.npz.abcd1234",
        "x.a.npz.abcd1234",
    }
    for name in {*kept, ".a.npz.abcd1234", ".a.npz.______0z"}:
        (tmp_path / name).touch()
    (tmp_path / ".a.npz.folder__").mkdir()
    remove_partial(tmp_path / "a.npz")
    assert set(os.listdir(tmp_path)) == kept | {".a.npz.folder__"}


def test_what_a_killed_process_leaves_is_removed(tmp_path: Path) -> None:
    for _ in range(20):  # whatever the name that is made up
        with atomic_write(tmp_path / "a[1].npz"):
            (left,) = tmp_path.glob(".*")
            os.link(left, tmp_path / "copy")
            name = left.name
        (tmp_path / "copy").rename(tmp_path / name)
        remove_partial(tmp_path / "a[1].npz")
        assert os.listdir(tmp_path) == ["a[1].npz"]
