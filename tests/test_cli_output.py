"""Checks before commands begin to work, and the way in which they write."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from tables import for_each, refused

from maze_nca_gym.agents.runs import check_folder, write_json
from maze_nca_gym.cli import levels, main
from maze_nca_gym.cli.output import complaining


@for_each("name", ["", "new", "new/and/deeper"])
def test_checking_a_folder_does_not_change_it(name: str, tmp_path: Path) -> None:
    check_folder("--out", tmp_path / name)
    assert os.listdir(tmp_path) == []


@for_each("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EPERM])
@for_each("name", ["", "new"])
def test_unwritable_folders_are_named(name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test does not set permissions, because they do not stop root."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(ValueError, match=r"--out must be a folder to write in, but writing in .* fails: ") as caught:
        check_folder("--out", tmp_path / name)
    assert str(caught.value).endswith(f"{tmp_path} fails: {os.strerror(number)}")


@for_each(
    ("name", "message"),
    [
        *[(name, f"a folder, but .*{name[:4]} is a file") for name in ("file", "link", "file/deeper", "link/deeper")],
        (f"fine/{300 * 'a'}", "a folder to write in"),
        ("/proc/runs/solve", "a folder to write in, but writing in /proc fails"),
    ],
)
def test_files_are_not_folders(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").unlink(missing_ok=True)
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    if not name.startswith("/proc") or Path("/proc/self").exists():
        refused(f"--out must be {message}", check_folder, "--out", tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@pytest.mark.filterwarnings("default")
def test_warnings_of_others_are_shown_as_python_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught, complaining():
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        warnings.warn("no border", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["overflow"]
    assert capsys.readouterr().err == "maze-nca-gym: no border\n"


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*results\.json'"):
        write_json(tmp_path / "results.json", {})
    assert os.listdir(tmp_path) == []


def test_late_errors_are_not_reported_as_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(text: str) -> None:
        raise ValueError("the last words")

    monkeypatch.setattr(levels, "tell", fail)
    file = tmp_path / "levels.npz"
    assert main(["generate", str(file), "--n", "2", "--size", "4"]) == 1
    assert capsys.readouterr().err == f"maze-nca-gym: error: the last words; written before: {file}\n"
    assert main(["generate", str(file), "--n", "2", "--size", "4"]) == 2, "it exists: nothing is written"
