"""A certified network on one huge maze in bits draws the same as its rollout in floats, in any processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from enum import IntEnum
from functools import partial
from queue import Queue
from signal import SIGKILL
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from maze_samples import sample
from safetensors.numpy import save
from tables import for_each, refused

from experiments.scaling.huge import shortest_path as searched
from maze_nca_gym.agents import load, rollout, solve_large
from maze_nca_gym.agents.automata import AUTOMATA, Automaton, around, exactly, fixpoint, grown, threshold
from maze_nca_gym.agents.automata.networks import bits, certificate, large
from maze_nca_gym.agents.automata.run import compile_automaton
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.runs import alone_in
from maze_nca_gym.mazes import Tile, one_hot, solvers
from maze_nca_gym.mazes.levels import KINDS, Kind, clear_endpoints
from maze_nca_gym.mazes.tasks import Task, register_task

POLICY = "nca-shortest-path-hinted"
SHORTEST_PATH = AUTOMATA["shortest-path"]


class Threads(large.Alone):
    """A process that is a thread of this process; `boxes` contain the messages between processes."""

    def __init__(self, rank, size, boxes, barrier, table):
        self.rank, self.size, self.boxes, self.barrier, self.table = rank, size, boxes, barrier, table

    def gather(self, numbers):
        self.table[self.rank] = list(numbers)
        self.barrier.wait()
        table = np.array(self.table, np.int64)
        self.barrier.wait()
        return table

    def exchange(self, sent, received):
        for other, array in sent.items():
            self.boxes[self.rank, other].put(array.copy())
        for other, array in received.items():
            array[...] = self.boxes[other, self.rank].get()


def shared(automaton, tiles, folder, size, steps=None):
    """Solve a maze in several threads, and return their results."""
    boxes, barrier = {(i, j): Queue() for i in range(size) for j in range(size)}, threading.Barrier(size)
    table, results = [None] * size, [None] * size
    folder.mkdir(exist_ok=True)

    def work(rank):
        mine = Threads(rank, size, boxes, barrier, table)
        results[rank] = large.run_in_bits(automaton, tiles, folder, mine, steps, 1e9)

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    return results[0]


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def drawn(solved, width):
    (file,) = solved.answers
    return np.unpackbits(np.load(file), axis=1, count=width, bitorder="little").astype(bool)


def maze(family, height, width):
    return sample(np.random.default_rng(0), family, 1, height, width)[0]


ALONE = large.Alone(), None, 1e9


def rewritten(content, extra=None, **facts):
    """Return a state file with other facts in its description, or with another tensor; its checksum is correct."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    facts_of_file = json.loads(header["__metadata__"][large.FORMAT]) | facts
    signals = np.frombuffer(content[end:], np.uint64).reshape(header["signals"]["shape"])
    tensors = {"signals": signals} if extra is None else extra(signals)
    del facts_of_file[large.CHECKSUM]
    digest = large._begun(facts_of_file)
    for tensor in tensors.values():
        digest.update(tensor.tobytes())
    return save(tensors, {large.FORMAT: json.dumps(facts_of_file | {large.CHECKSUM: digest.hexdigest()})})


def flipped(at):
    return lambda content: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


WRONG_STATES = {
    "text": (lambda content: b"no state", "it is not a safetensors file, or it is damaged"),
    "cut off": (lambda content: content[:-8], "it is not a safetensors file, or it is damaged"),
    "flipped bit": (flipped(-9), "its checksum is wrong: it was damaged after it was written"),
    "negative count": (partial(rewritten, drawn=-1), "its iterations must be 0 <= drawn <= still, got -1 and 52"),
    "count that is no integer": (partial(rewritten, still=52.5), "its iterations must be"),
    "larger count": (partial(rewritten, drawn=53), "its iterations must be 0 <= drawn <= still, got 53 and 52"),
    "other dtype": (
        partial(rewritten, extra=lambda signals: {"signals": signals.view(np.float64)}),
        r"signals must be U64 of shape \[3, 3, 9\], got F64 of \[3, 3, 9\]",
    ),
    "other shape": (partial(rewritten, extra=lambda signals: {"signals": signals[:, :2]}), r"signals must be U64"),
    "no tensor": (partial(rewritten, extra=lambda signals: {}), "it must have one tensor, 'signals', got none"),
    "another tensor": (
        partial(rewritten, extra=lambda signals: {"signals": signals, "more": signals}),
        "it must have one tensor, 'signals', got more, signals",
    ),
    "other description": (lambda content: save({"signals": np.zeros(2)}, {"format": "np"}), "it has no '.*bits.2'"),
    "description without a checksum": (lambda content: content.replace(b"sha256", b"sha512"), "it has no 'sha256'"),
}


class TestInBits:
    @pytest.mark.parametrize("family", ["random 0.3", "perfect"])
    def test_the_path_agrees_with_the_solver_and_the_rollout_in_floats(self, tmp_path, family):
        tiles, policy = maze(family, 61, 83), load(POLICY)
        assert certificate.followed(policy) is SHORTEST_PATH
        path = solvers.shortest_path(tiles)
        solved = shared(SHORTEST_PATH, tiles, tmp_path / "out", 1)
        assert np.array_equal(drawn(solved, 83), path)
        # moves: tiles of the path minus 1; two iterations per move and two more
        assert solved.drawn == 2 * path.sum() <= solved.still
        when = [solved.drawn // 2 + 5, solved.drawn - 1, solved.drawn]
        for steps, states in zip(when, rollout(policy, torch.from_numpy(one_hot(tiles[None])), when), strict=True):
            partly = shared(SHORTEST_PATH, tiles, tmp_path / str(steps), 1, steps)
            assert np.array_equal(drawn(partly, 83), states[0, 0] > 0.5), steps
            assert partly.still == steps
        assert searched(tiles)[1] == path.sum() - 1
        assert np.array_equal(searched(tiles)[0], np.load(solved.answers[0]))

    @for_each("name", ["shortest-path", "reachable", "dead-ends", "life", "first-passage", "wall-follower"])
    def test_every_signal_agrees_with_the_rules_at_every_iteration(self, name):
        automaton, tiles = AUTOMATA[name], maze("random 0.3", 21, 30)
        tiles = tiles if automaton.problem.has_endpoints else clear_endpoints(tiles[None])[0]
        strip = bits.Strip(automaton, tiles, 0, 3)
        for states in automaton.trace(tiles[None]):
            for signal in automaton.signals:
                blocks = np.concatenate([bits.as_tiles(row) for row in strip.signals[2:-2, :, signal]])[:21]
                assert np.array_equal(np.unpackbits(blocks, axis=1, count=30, bitorder="little"), states[0, signal])
            strip.advance(1)

    @pytest.mark.parametrize(
        ("name", "family"), [("shortest-path", "perfect"), ("shortest-path", "random 0.3"), ("life", "random 0.3")]
    )
    def test_the_files_are_the_same_for_any_number_of_processes_and_after_a_stop(self, tmp_path, name, family):
        automaton, tiles = AUTOMATA[name], maze(family, 150, 90)
        if not automaton.problem.has_endpoints:
            tiles = clear_endpoints(tiles[None])[0]
        end = None if automaton.settles else 150
        alone = shared(automaton, tiles, tmp_path / "1", 1, end)
        for size in (2, 4, 9):
            shared(automaton, tiles, tmp_path / str(size), size, end)
            assert contents(tmp_path / str(size)) == contents(tmp_path / "1"), size
        for steps, size in ((3, 1), (67, 4), (end, 2), (end, 1)):  # continued by another number of processes
            solved = shared(automaton, tiles, tmp_path / "stopped", size, steps)
        assert contents(tmp_path / "stopped") == contents(tmp_path / "1")
        assert solved[1:3] == alone[1:3]

    def test_a_maze_of_another_task_or_another_state_is_refused(self, tmp_path):
        tiles, other = maze("random 0.3", 20, 20), maze("perfect", 20, 20)

        def solve(tiles, automaton=SHORTEST_PATH, steps=None, processes=None):
            return large.run_in_bits(automaton, tiles, tmp_path, processes or large.Alone(), steps, 1e9)

        solve(tiles)
        for level, message in (
            (other, "state.safetensors is not a state from which to continue: it has the state of another maze"),
            (np.where(tiles == 1, 7, tiles).astype(np.uint8), "tiles of the task 'shortest-path' are 0 to 3, got 7"),
            (clear_endpoints(tiles[None])[0], "the maze must have one source and one target, got 0 and 0"),
        ):
            refused(message, solve, level)
        refused(
            "is not a state from which to continue: its state is after 52 iter",
            solve,
            tiles,
            steps=9,
        )
        refused("it has the state of other rules", solve, tiles, AUTOMATA["reachable"])
        refused(
            "2 processes need 16 rows of tiles each, got 20 in all", solve, tiles, processes=Threads(0, 2, *[None] * 3)
        )

    @pytest.mark.usefixtures("forgotten")
    def test_the_maze_has_the_numbers_of_tiles_that_its_task_declares(self, tmp_path):
        fire = 4
        kinds, counts = (*KINDS, Kind("fire", "f", "#d55e00")), {"fire": "at least one", "source": "at most one"}
        burns = fixpoint(BURNS=lambda see: see.tile(fire) | (around(see, "BURNS") & see.tile(Tile.EMPTY)))

        def mark(rng, tiles):
            for level in tiles:
                level[tuple(rng.permutation(np.argwhere(level == Tile.EMPTY))[0])] = fire
            return tiles

        register_task(Task(name="fires", kinds=kinds, counts=counts, solve=burns, mark=mark))
        automaton, open_maze = grown("fires"), np.zeros((16, 16), np.uint8)

        def solve(*placed):
            tiles = open_maze.copy()
            for number, kind in enumerate(placed):
                tiles[number, number] = kind
            folder = tmp_path / f"maze{len(placed)}"
            folder.mkdir(exist_ok=True)
            large.run_in_bits(automaton, tiles, folder, large.Alone(), None, 1e9)
            return np.load(folder / "path.npy")

        for placed, got in (((), "0 and 0"), ((2, 2, 4), "2 and 1")):
            refused(f"the maze must have at most one source and at least one fire, got {got}", solve, *placed)
        for placed in ((4,), (2, 4, 3, 3, 4)):
            assert solve(*placed).any()

    def test_a_state_of_rules_that_have_changed_is_refused(self, tmp_path):
        automaton, tiles = AUTOMATA["reachable"], maze("random 0.3", 20, 20)
        solved = shared(automaton, tiles, tmp_path, 1)
        path, wet = automaton.signals
        other = replace(automaton, rules={**automaton.rules, path: lambda see: see(wet) & ~see.tile(2)})
        refused("it has the state of other rules: use another", large.run_in_bits, other, tiles, tmp_path, *ALONE)
        same = replace(automaton, name="another-name")
        assert large.run_in_bits(same, tiles, tmp_path, *ALONE)[:3] == solved[:3]

    def test_a_damaged_or_invalid_state_is_refused(self, tmp_path):
        tiles = maze("random 0.3", 20, 20)
        shared(SHORTEST_PATH, tiles, tmp_path / "correct", 1)
        correct = (tmp_path / "correct" / large.STATE).read_bytes()
        for i, (change, message) in enumerate(WRONG_STATES.values()):
            folder, content = tmp_path / str(i), change(correct)
            folder.mkdir()
            (folder / large.STATE).write_bytes(content)
            message = f"{large.STATE} is not a state from which to continue: {message}"
            refused(message, large.run_in_bits, SHORTEST_PATH, tiles, folder, *ALONE)
            assert contents(folder) == {large.STATE: content}


class TestSolveLarge:
    def test_a_network_is_run_if_its_certificate_holds(self, tmp_path):
        (model, _), tiles = compile_automaton(AUTOMATA["reachable"]), maze("random 0.3", 30, 40)
        np.save(tmp_path / "maze.npy", tiles)
        solved = solve_large(model, maze=tmp_path / "maze.npy", out=tmp_path / "out")
        assert np.array_equal(drawn(solved, 40), solvers.distances(tiles) >= 0)
        with torch.no_grad():
            model.biases[0][0] += 1
        refused("has no certificate", solve_large, model, maze=tmp_path / "maze.npy", out=tmp_path / "out")

    def test_bad_input_is_refused_before_anything_is_written(self, tmp_path, monkeypatch):
        file, out = tmp_path / "maze.npy", tmp_path / "out"
        for content in (np.zeros((2, 3, 4), np.uint8), np.zeros((3, 4)), np.zeros((0, 4), np.uint8)):
            np.save(file, content)
            refused("maze.npy is not a maze: it must be one array", solve_large, maze=file, out=out)
        file.write_bytes(b"no array")
        refused("maze.npy is not a maze", solve_large, maze=file, out=out)
        np.save(file, maze("random 0.3", 20, 20))
        refused("was not made for an automaton", solve_large, "nca-shortest-path", maze=file, out=out)
        monkeypatch.setattr(certificate, "certify", lambda network: SimpleNamespace(holds=True))
        refused("pools a signal", solve_large, "nca-shortest-path-healing-hinted", maze=file, out=out)
        monkeypatch.setenv("WORLD_SIZE", "2")
        refused("several processes have to be started by torchrun", solve_large, maze=file, out=out)
        assert not out.exists()

    def test_the_folder_is_checked_before_the_work(self, tmp_path, monkeypatch):
        np.save(tmp_path / "maze.npy", maze("random 0.3", 20, 20))
        monkeypatch.setattr(certificate, "certify", lambda network: pytest.fail("the work has begun"))
        refused("--out must be a folder", solve_large, maze=tmp_path / "maze.npy", out=tmp_path / "maze.npy")

    def test_a_second_command_in_a_folder_is_refused_and_a_killed_one_leaves_no_lock(self, tmp_path):
        np.save(tmp_path / "maze.npy", maze("random 0.3", 20, 20))
        (tmp_path / ".lock").write_text("process 1")  # left by a killed process
        with alone_in(tmp_path), pytest.raises(BlockingIOError, match="is in use by process"):
            solve_large(maze=tmp_path / "maze.npy", out=tmp_path)
        assert {*contents(tmp_path)} == {"maze.npy"}
        solve_large(maze=tmp_path / "maze.npy", out=tmp_path)
        assert {*contents(tmp_path)} == {"maze.npy", "path.npy", large.STATE}

    def test_all_processes_end_after_a_damaged_state(self, tmp_path):
        tiles = maze("random 0.3", 40, 20)
        shared(SHORTEST_PATH, tiles, tmp_path, 2)
        (tmp_path / large.STATE).write_bytes(flipped(-9)((tmp_path / large.STATE).read_bytes()))
        barrier, table, errors = threading.Barrier(2), [None] * 2, []

        def work(rank):
            with pytest.raises(ValueError, match="its checksum is wrong") as error:
                large.run_in_bits(SHORTEST_PATH, tiles, tmp_path, Threads(rank, 2, {}, barrier, table), None, 1e9)
            errors.append(error)

        threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(errors) == 2

    @pytest.mark.slow
    def test_processes_of_torchrun_that_are_killed_go_on_to_the_same_files(self, tmp_path):
        (model, _), tiles = compile_automaton(AUTOMATA["reachable"]), maze("perfect", 1001, 1001)
        save_model(model, tmp_path / "model.safetensors")
        np.save(tmp_path / "maze.npy", tiles)
        shared(AUTOMATA["reachable"], tiles, tmp_path / "1", 1)

        def start(n, out):
            run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n), "-m", "maze_nca_gym"]
            options = ["--maze", "maze.npy", "--out", out, "--save-every", "0.1"]
            command = [sys.executable, *run, "solve-large", "model.safetensors", *options]
            return subprocess.Popen(command, cwd=tmp_path)

        assert start(2, "2").wait(600) == 0
        assert contents(tmp_path / "2") == contents(tmp_path / "1")
        killed = start(4, "killed")
        while not (tmp_path / "killed" / large.STATE).exists():
            assert killed.poll() is None
            time.sleep(0.01)
        killed.kill()
        killed.wait()
        # its processes continue: the folder is in use until the first of them ends
        assert start(2, "killed").wait(600) == 1
        os.kill(int((tmp_path / "killed" / ".lock").read_text().split()[1]), SIGKILL)
        assert not (tmp_path / "killed" / "path.npy").exists()
        assert start(2, "killed").wait(600) == 0
        assert contents(tmp_path / "killed") == contents(tmp_path / "1")


def test_rules_that_add_weights_are_computed_in_bits(tmp_path):
    signal = IntEnum("Signal", ["PATH", "ON"], start=0)

    def spreads(see):
        sides = threshold([(2, see("ON", "L")), (1, see("ON", "U")), (1, see("ON", "D")), (-1, see("ON", "R"))], 1)
        return see.tile(Tile.SOURCE) | (sides | exactly(2, [see("ON", tap) for tap in "CLR"])) & ~see.tile(Tile.WALL)

    rules = {signal.PATH: lambda see: see("ON"), signal.ON: spreads}
    automaton = Automaton("weighing", "shortest-path", signal, rules, parts=((signal.PATH,), (signal.ON,)))
    tiles = maze("random 0.3", 21, 37)
    state = np.zeros((1, 2, *tiles.shape), np.bool_)
    for _ in range(40):
        state = automaton.step(tiles[None], state)
    solved = shared(automaton, tiles, tmp_path, 1, steps=40)
    assert 20 < state[0, 0].sum() < tiles.size - 20
    np.testing.assert_array_equal(drawn(solved, 37), state[0, 0])
