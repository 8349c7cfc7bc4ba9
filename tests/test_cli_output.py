"""What commands check before they begin to work, and how they write."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tables import for_each

from maze_nca_gym.agents.runs import check_folder, write_json


@for_each("name", ["", "new", "new/and/deeper"])
def test_a_folder_to_write_in_is_left_as_it_was(name: str, tmp_path: Path) -> None:
    check_folder("--out", tmp_path / name)
    assert os.listdir(tmp_path) == []


@for_each("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EPERM])
@for_each("name", ["", "new"])
def test_what_the_system_refuses(name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks: permissions do not stop root."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(ValueError, match=r"--out must be a folder to write in, but writing in .* fails: ") as caught:
        check_folder("--out", tmp_path / name)
    assert str(caught.value).endswith(f"{tmp_path} fails: {os.strerror(number)}")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such file system")
def test_a_file_system_without_files() -> None:
    with pytest.raises(ValueError, match="--out must be a folder to write in, but writing in /proc fails"):
        check_folder("--out", Path("/proc/runs/solve"))


def test_names_that_are_too_long(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--out must be a folder to write in"):
        check_folder("--out", tmp_path / "fine" / ("a" * 300))
    assert os.listdir(tmp_path) == []


def test_files_and_links_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name in ("file", "link"):
        for path in (tmp_path / name, tmp_path / name / "deeper"):
            with pytest.raises(ValueError, match=f"--out must be a folder, but {tmp_path / name} is a file"):
                check_folder("--out", path)


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*results\.json'"):
        write_json(tmp_path / "results.json", {})
    assert os.listdir(tmp_path) == []
