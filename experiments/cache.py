"""Store results as files, so that an interrupted study continues and finished measurements are not repeated."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import torch

from maze_nca_gym.agents.runs.folder import write_json
from maze_nca_gym.agents.runs.progress import ProgressBar

Record = dict[str, Any]


def cached(path: Path, make: Callable[..., Record], *arguments: Any) -> Record:
    """Return the result of `make(*arguments)`, from a file if the file has the result for the same arguments.

    Args:
        path: the file. It is written if it does not have the result.
        make: function whose result is a mapping of JSON values.
        arguments: arguments of the function, JSON values too.

    Raises:
        ValueError: the file is not a file of this function.
    """
    called_with = json.loads(json.dumps(arguments))
    if path.exists():
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            stored_arguments, result = content["arguments"], content["result"]
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path} is not a result of this study ({error!r})") from error
        if stored_arguments == called_with:
            return dict(result)
    result = make(*arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"arguments": called_with, "result": result})
    return result


def _as_worker() -> None:
    """Use one thread, and end this process when its parent ends, even if a signal ends the parent."""
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    torch.set_num_threads(1)
    threading.Thread(target=end_with_parent, daemon=True).start()


def all_cached(
    label: str, make: Callable[..., Record], calls: Mapping[Path, tuple[Any, ...]], n_at_once: int
) -> list[Record]:
    """Call `cached` for several files in processes of one thread each; return the results in the order of the files.

    Args:
        label: label of the progress bar.
        make: a function of a module, which processes can import.
        calls: file -> arguments of the function.
        n_at_once: number of processes.

    Raises:
        Exception: the first error of a call. The other calls finish before.
    """
    # Spawned, since a copy of this process would lack its threads. If a call fails, the others still finish.
    with (
        ProcessPoolExecutor(n_at_once, get_context("spawn"), _as_worker) as pool,
        ProgressBar(label, len(calls)) as bar,
    ):
        pending = [pool.submit(cached, path, make, *arguments) for path, arguments in calls.items()]
        for call in as_completed(pending):
            call.result()  # raises the error of the call
            bar.advance(1)
    return [call.result() for call in pending]
