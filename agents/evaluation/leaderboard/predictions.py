"""Predictions of any solver, read from a file with a row of tokens for each maze of a set."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets import BenchmarkSet
from maze_nca_gym.mazes.benchmark_sets.tokens import PATH, WALL
from maze_nca_gym.support.files import mapped_array, read_text, user_path, validated_read
from maze_nca_gym.support.options import check

SUFFIXES = (".csv", ".npy")
"""Suffixes that mark a file of predictions."""
TOKEN_BYTES = 16
"""Largest number of bytes per token in a .csv file: a digit, a comma, and room for spaces."""
_TOKENS = frozenset(str(token) for token in range(WALL, PATH + 1))


def read_predictions(path: str | Path, benchmark: BenchmarkSet) -> NDArray[np.uint8]:
    """Return the tokens of all mazes of a set, (N, H * W) uint8 from 1 to 5.

    A `.csv` file has a line for each maze, of numbers separated by commas and no header. A `.npy` file contains an
    array of integers, (N, H * W) or (N, H, W).

    Args:
        path: the file.
        benchmark: the set that is predicted, in its order.

    Raises:
        ValueError: the file is of another kind, has a wrong number of mazes or tokens, or contains a number that is not
            a token; the message names the file, the line and the rule.
        OSError: the file is missing or cannot be read.
    """
    if benchmark.stream > 1 or benchmark.every_tile:
        why = "goes on from its state" if benchmark.stream > 1 else "is asked from every tile"
        raise ValueError(f"{path}: {benchmark.name} needs a policy that {why}, not predictions")
    path = user_path(path)
    read = _read_csv if path.suffix.lower() == ".csv" else _read_npy
    with validated_read(path, f"has no predictions for {benchmark.name}"):
        return read(path, benchmark.n, benchmark.side**2)


def _read_csv(path: Path, n: int, n_tokens: int) -> NDArray[np.uint8]:
    n_bytes, most = path.stat().st_size, n * n_tokens * TOKEN_BYTES
    check(n_bytes <= most, f"it has {n_bytes:,} bytes, and {n:,} mazes of {n_tokens:,} tokens have at most {most:,}")
    lines = read_text(path).splitlines()
    tokens = np.empty((n, n_tokens), np.uint8)
    check(len(lines) == n, f"it must have {n:,} lines, one for each maze, and has {len(lines):,}")
    for number, line in enumerate(lines, 1):
        words = line.split(",")
        check(len(words) == n_tokens, f"line {number}: a maze has {n_tokens:,} tokens, got {len(words):,}")
        wrong = next((word for word in words if word.strip() not in _TOKENS), None)
        check(wrong is None, f"line {number}: a token is a number from {WALL} to {PATH}, got {wrong!r}")
        tokens[number - 1] = [int(word) for word in words]
    return tokens


def _read_npy(path: Path, n: int, n_tokens: int) -> NDArray[np.uint8]:
    array = mapped_array(path)
    is_table, shape = array.dtype.kind in "iu" and array.ndim in (2, 3), array.shape
    check(is_table, f"it must contain integers (N, {n_tokens:,}), got {array.dtype} of shape {shape}")
    wanted = f"it must have {n:,} mazes of {n_tokens:,} tokens"
    check((len(array), prod(shape[1:])) == (n, n_tokens), f"{wanted}, got shape {shape}")
    tokens = array.reshape(n, n_tokens)
    wrong = (tokens < WALL) | (tokens > PATH)
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        raise ValueError(f"maze {row}: a token is a number from {WALL} to {PATH}, got {tokens[row, place]}")
    return tokens.astype(np.uint8)
