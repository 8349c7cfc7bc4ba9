"""The command `solve_large`: a certified network on one huge maze (a billion tiles), computed in bits by several
processes."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.tasks import COUNTS
from maze_nca_gym.mazes.text import digest, printed
from maze_nca_gym.support.files import atomic_write, mapped_array, remove_partial, user_path, validated_read
from maze_nca_gym.support.options import Above, Between, Shown, Stored, check, checked
from maze_nca_gym.support.streams import say

from ...policies.registry import named_policy
from ...runs import alone_in, check_folder, number_in_environment
from ...runs.stopping import asked_to_stop

if TYPE_CHECKING:
    from maze_nca_gym.mazes.tasks import Task

    from ...policies.policy import Policy
    from ..automaton import Automaton
    from .bits import Strip

STATE = "state.safetensors"
FORMAT = "maze_nca_gym.bits.2"
"""Key of the description in that file's header: the rules, the maze, the iterations so far, and a checksum."""
TENSOR, CHECKSUM = "signals", "sha256"
BLANK = "0" * 64
"""The checksum in the header until the file is complete."""


class SolvedLarge(NamedTuple):
    """The result of `solve_large`.

    Attributes:
        answers: a file for each of the task's answers, (H, ceil(W / 8)) uint8, with eight tiles in a byte, beginning
            with its lowest bit: `np.unpackbits(np.load(file), axis=1, count=W, bitorder="little")`.
        drawn: the iteration in which an answer last changed.
        still: the iteration in which any signal last changed.
        computed: the number of blocks of 8 x 8 tiles that this call computed, over all iterations and processes.
    """

    answers: tuple[Path, ...]
    drawn: int
    still: int
    computed: int


class Alone:
    """A group that consists of a single process, with the methods of `Gloo`."""

    rank, size = 0, 1

    def gather(self, numbers: Iterable[int]) -> NDArray[np.int64]:
        """Return the (n,) int64 numbers of every process, (size, n), with one row for each process."""
        return np.array([list(numbers)], np.int64)

    def exchange(self, sent: Mapping[int, NDArray[Any]], received: Mapping[int, NDArray[Any]]) -> None:
        """Send arrays to other processes by rank, and fill arrays with the data that they send; all arrays are
        contiguous."""

    def end(self) -> None:
        """Leave the group of processes."""


class Gloo(Alone):
    """The group of processes that `torchrun` started, on one machine or several."""

    def __init__(self) -> None:
        import torch.distributed

        self._torch, self._link = torch, torch.distributed
        self._link.init_process_group("gloo", timeout=timedelta(days=1))
        self.rank, self.size = self._link.get_rank(), self._link.get_world_size()

    def gather(self, numbers: Iterable[int]) -> NDArray[np.int64]:  # noqa: D102 - see `Alone`
        mine = self._torch.from_numpy(np.array(list(numbers), np.int64))
        rows = [self._torch.empty_like(mine) for _ in range(self.size)]
        self._link.all_gather(rows, mine)
        return self._torch.stack(rows).numpy()

    def exchange(self, sent: Mapping[int, NDArray[Any]], received: Mapping[int, NDArray[Any]]) -> None:  # noqa: D102
        ways = ((self._link.isend, sent), (self._link.irecv, received))
        transfers: list[Any] = [
            move(self._torch.from_numpy(array.reshape(-1).view(np.uint8)), other)
            for move, arrays in ways
            for other, array in arrays.items()
        ]
        for transfer in transfers:
            transfer.wait()

    def end(self) -> None:  # noqa: D102
        self._link.destroy_process_group()


@checked
def solve_large(
    policy: Annotated[str | Path | Policy, Stored(str), Shown("POLICY", positional=True)] = "nca-shortest-path-hinted",
    *,
    maze: Annotated[str | Path, Shown("FILE")],
    out: Annotated[str | Path, Shown("FOLDER")] = Path("runs/large"),
    steps: Annotated[int | None, Between(1)] = None,
    save_every: Annotated[float, Above(0)] = 600.0,
) -> SolvedLarge:
    """Run a certified network on one huge maze until nothing changes, computed in bits and only near changed tiles.

    The certificate is computed again first. It proves that the network's state equals the automaton's state after each
    iteration. Therefore the command computes the rules of the automaton instead of the network, on 64-bit words, each
    of which holds a signal of 8 x 8 tiles (a block). A block is computed only if it reads a tile that has just changed.

    `torchrun --nproc-per-node 2 -m maze_nca_gym solve-large ...` divides the rows of the maze among processes. With
    `--nnodes`, the processes may run on several machines that all see both files. The output files are identical to the
    byte for any number of processes. After a crash or Ctrl-C, the same command continues, also with another number of
    processes.

    >>> solved = solve_large("nca-shortest-path-hinted", maze="maze.npy", out="runs/large")

    Args:
        policy: network with a certificate: a name from `policies list`, or a model file that `learn-automaton` or
            `compile-automaton` wrote. In Python also a policy.
        maze: array of the maze (.npy), (H, W) uint8 kinds of tile, which may be larger than the memory.
        out: folder that receives path.npy, or a file for each of the task's answers, and state.safetensors with all
            signals of the last iteration.
        steps: number of iterations after which the run ends even if something still changes, or None for no limit.
        save_every: smallest number of seconds between two checkpoints.

    Returns:
        The files of the answers, and the iterations in which the answers and the signals last changed.

    Raises:
        ValueError: a bad option or file; a network without a certificate; an automaton with pooled signals; or a folder
            with a damaged state, or a state of other rules or another maze.
        KeyboardInterrupt: the run was asked to stop, for example by Ctrl-C; its state has been saved.
        OSError: a file could not be written, or another process works in the folder.
    """
    check_folder("--out", out)
    from .certificate import certify, followed

    with validated_read(maze, "is not a maze"):
        tiles: Tiles = mapped_array(maze)
        is_maze = tiles.ndim == 2 and tiles.dtype == np.uint8 and tiles.size > 0
        check(is_maze, "it must be one array of (H, W) uint8 kinds of tile")
    several = number_in_environment("WORLD_SIZE") > 1
    started = not several or number_in_environment("LOCAL_WORLD_SIZE", 0) > 0
    check(started, "several processes have to be started by torchrun")
    name, network = named_policy(policy)
    check(certify(network).holds, f"{name} has no certificate, so it may differ from its automaton")
    automaton = followed(network)
    check(not automaton.pooled, f"{automaton.name} pools a signal, which cannot be computed in bits")
    check(steps is not None or automaton.settles, f"{automaton.name} may never come to rest: give the number of steps")
    processes = Gloo() if several else Alone()
    try:
        with nullcontext() if processes.rank else alone_in(user_path(out)):
            return run_in_bits(automaton, tiles, user_path(out), processes, steps, save_every)
    finally:
        processes.end()


def run_in_bits(
    automaton: Automaton, tiles: Tiles, folder: Path, processes: Alone, steps: int | None, save_every: float
) -> SolvedLarge:
    """Run `solve_large` in one of its processes, with its `steps` and `save_every`, and return the result.

    The processes have consecutive rows of blocks, in the order of their ranks. Only one process at a time works in the
    folder, apart from the processes of the same group.
    """
    from .bits import SIDE, Strip, as_tiles

    rank, height, (n_rows, n_columns) = processes.rank, len(tiles), (-(-n // SIDE) for n in tiles.shape)
    if n_rows < 2 * processes.size and processes.size > 1:
        raise ValueError(f"{processes.size} processes need {2 * SIDE} rows of tiles each, got {height:,} in all")
    bounds = [n_rows * other // processes.size for other in range(processes.size + 1)]
    first, last = bounds[rank], bounds[rank + 1]
    maze = _identify(automaton.problem, tiles, processes, first * SIDE, last * SIDE)
    # an automaton that slows another has the other's digest, but also auxiliary signals
    rules = {signal.name: printed(automaton.rules[signal]) for signal in automaton.signals}
    about, shape = {"rules": digest([automaton.digest, rules]), "maze": maze}, [n_rows, n_columns, len(rules)]
    # this process's rows of the maze, in the first state or in the state of a checkpoint
    strip, state = Strip(automaton, tiles, first, last), folder / STATE
    if state.exists():
        _restore(strip, first, state, about, shape, processes, steps)

    def save(drawn: int, still: int) -> None:
        # only a state at rest stays the same for more than one iteration, so `still` identifies the state
        facts = {**about, "drawn": drawn, "still": still}
        metadata = {FORMAT: json.dumps({**facts, CHECKSUM: BLANK}, sort_keys=True)}
        tensor = {"dtype": "U64", "shape": shape, "data_offsets": [0, 8 * prod(shape)]}
        header = json.dumps({"__metadata__": metadata, TENSOR: tensor}).encode()
        begin = len(header).to_bytes(8, "little") + header
        _write(processes, bounds, state, begin, strip.signals[2:-2], 8 * prod(shape), _begun(facts))

    saved_at, rests = time.monotonic(), False
    with asked_to_stop() as asked:
        while not rests and strip.counts[1] != steps:
            changed = strip.advance(SIDE if steps is None else min(SIDE, steps - int(strip.counts[1])))
            late = rank == 0 and time.monotonic() - saved_at > save_every
            table = processes.gather([*changed, *strip.counts, asked(), late])
            # rows that one process copies from another are sent again if either process has changed them
            sent, received = dict[int, NDArray[Any]](), dict[int, NDArray[Any]]()
            for other in {rank - 1, rank + 1} & {*range(processes.size)}:
                halo, edge = (0, 1) if other < rank else (3, 2)
                if table[rank, edge] or table[other, 3 - halo]:
                    sent[other] = np.ascontiguousarray(strip.signals[2:4] if edge == 1 else strip.signals[-4:-2])
                if table[rank, halo] or table[other, 3 - edge]:
                    received[other] = np.empty((2, *shape[1:]), np.uint64)
            processes.exchange(sent, received)
            for other, blocks in received.items():
                strip.replace(other < rank, blocks)
            iteration, drawn, still, _, stops, saves = table[:, 5:].max(axis=0).tolist()
            rests = still < iteration
            if stops or saves:
                save(drawn, still)
                saved_at = time.monotonic()
                if rank == 0:
                    say(f"{folder}: {iteration:,} iterations, {table[:, 4].sum():,} blocks change")
            if stops:
                raise KeyboardInterrupt(f"interrupted; the same command goes on from {state}")
    # the end, and the answers
    facts = processes.gather(strip.counts[2:])
    drawn, still, _ = facts.max(axis=0).tolist()
    save(drawn, still)
    answers = list[Path]()
    for signal, answer in zip(automaton.answers, automaton.problem.answers, strict=True):
        answers.append(folder / f"{answer}.npy")
        header = BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "|u1", "fortran_order": False, "shape": (height, n_columns)}
        )
        rows = (as_tiles(row) for row in strip.signals[2:-2, :, signal])
        _write(processes, bounds, answers[-1], header.getvalue(), rows, height * n_columns)
    processes.gather([])  # all files are written
    return SolvedLarge(tuple(answers), drawn, still, int(facts[:, 2].sum()))


def _restore(
    strip: Strip,
    first: int,
    path: Path,
    about: Mapping[str, Any],
    shape: Sequence[int],
    processes: Alone,
    steps: int | None,
) -> None:
    """Load the state in a file into a strip whose first row of blocks is `first`.

    Raises:
        ValueError: the file contains no state, or a damaged one, or the state has other rules, another maze, or too
            many iterations.
    """
    with validated_read(path, "is not a state from which to continue"):
        try:
            file: Any = safe_open(path, "numpy")
            facts, names = json.loads((file.metadata() or {})[FORMAT]), [*file.keys()]
            check(names == [TENSOR], f"it must have one tensor, {TENSOR!r}, got {', '.join(names) or 'none'}")
            signals = file.get_slice(TENSOR)
        except SafetensorError as error:
            raise ValueError(f"it is not a safetensors file, or it is damaged ({error})") from error
        for part, subject, use in (("rules", "other rules", "this automaton"), ("maze", "another maze", "this maze")):
            check(facts[part] == about[part], f"it has the state of {subject}: use another folder for {use}")
        dtype, size = signals.get_dtype(), signals.get_shape()
        check((dtype, size) == ("U64", [*shape]), f"{TENSOR} must be U64 of shape {[*shape]}, got {dtype} of {size}")
        drawn, still = facts["drawn"], facts["still"]
        possible = type(drawn) is int and type(still) is int and 0 <= drawn <= still < 2**62
        check(possible, f"its iterations must be 0 <= drawn <= still, got {drawn} and {still}")
        if steps is not None and still > steps:
            raise ValueError(f"its state is after {still:,} iterations, more than {steps:,}")
        # one process reads all of the file, the others wait for it
        whole = processes.rank > 0 or _checksum(path, facts) == facts[CHECKSUM]
        check(bool(processes.gather([whole]).all()), "its checksum is wrong: it was damaged after it was written")
        strip.counts[1:4] = still, drawn, still
        rows = len(strip.signals)
        for row in range(max(first - 2, 0), min(first - 2 + rows, shape[0])):
            strip.signals[row - first + 2] = signals[row : row + 1][0]


def _begun(facts: Mapping[str, Any]) -> hashlib._Hash:
    """Return SHA-256 of a state's description, to which the bytes of the state are added."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode())


def _checksum(path: Path, facts: Mapping[str, Any]) -> str:
    checksum = _begun({name: value for name, value in facts.items() if name != CHECKSUM})
    with path.open("rb") as file:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        while chunk := file.read(2**24):
            checksum.update(chunk)
    return checksum.hexdigest()


def _identify(task: Task, tiles: Tiles, processes: Alone, begin: int, end: int) -> list[int]:
    """Return the size and a checksum of a maze; each process reads some of the rows.

    Raises:
        ValueError: tiles that the task does not have, or a number of tiles of a kind that its `counts` does not allow.
    """
    marks, counts = 0, np.zeros(256, np.int64)
    for row in range(begin, min(end, len(tiles))):
        marks += zlib.crc32(tiles[row].tobytes(), row)
        counts += np.bincount(tiles[row], minlength=256)
    marks, *n_of = processes.gather([marks, *counts]).sum(axis=0).tolist()
    most = max(kind for kind in range(256) if n_of[kind])
    check(most < task.n_tiles, f"tiles of the task {task.name!r} are 0 to {task.n_tiles - 1}, got {most}")
    limits = dict(enumerate(zip(*(limit.tolist() for limit in task.count_limits), strict=True)))
    limited = {kind: limit for kind, limit in limits.items() if limit != COUNTS["any"]}
    if any(not least <= n_of[kind] <= most for kind, (least, most) in limited.items()):
        words = {limit: word for word, limit in COUNTS.items()}
        needed = " and ".join(f"{words[limit]} {task.kinds[kind].name}" for kind, limit in limited.items())
        got = " and ".join(f"{n_of[kind]:,}" for kind in limited)
        raise ValueError(f"the maze must have {needed}, got {got}")
    return [*tiles.shape, marks]


def _write(
    processes: Alone,
    bounds: list[int],
    path: Path,
    header: bytes,
    rows: Iterable[NDArray[Any]],
    n_bytes: int,
    checksum: hashlib._Hash | None = None,
) -> None:
    """Write a file in the first process: a header, and the equally long rows of all processes. If a checksum is given,
    it also covers the rows, and it replaces `BLANK` in the header."""
    if processes.rank:
        for row in rows:
            processes.exchange({0: np.ascontiguousarray(row)}, {})
        return

    def received() -> Iterator[NDArray[Any]]:
        for row in rows:
            yield (got := np.ascontiguousarray(row))
        for other in range(1, processes.size):
            for _ in range(bounds[other + 1] - bounds[other]):
                processes.exchange({}, {other: got})
                yield got

    remove_partial(path)
    with atomic_write(path) as file:
        file.write(header)
        for row in received():
            chunk = row.tobytes()[:n_bytes]
            n_bytes -= file.write(chunk)
            if checksum is not None:
                checksum.update(chunk)
        if checksum is not None:
            file.seek(header.index(BLANK.encode()))
            file.write(checksum.hexdigest().encode())
