"""The network of booleans that evolves from answers is the automaton that is read off its weights; z3 proves it."""

from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from experiments.booleans import THEOREM, errors, main, network_of
from experiments.worlds import BOUND, WORLDS, draw_levels, draw_tiny_levels, split, turning, world_task
from experiments.worlds import main as learn_worlds
from maze_nca_gym.agents.automata import automaton_of
from maze_nca_gym.agents.automata.proving.proof import mistakes, prove
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.mazes.arrays import broken_axioms
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import one_hot, parse
from tests.tables import for_each

EVOLVED = np.zeros((2, 2, 7), np.float32)
"""The weights that seed 3 evolves: rows for kinds of tile, the two channels and the bias."""
EVOLVED[0, 0, :6], EVOLVED[0, 1, 4] = (1, -1, 3, 3, 0, -2), 1
EVOLVED[1, 0, 2:] = (-1, 0, 3, 0, 1)
PROVEN = automaton_of(network_of(EVOLVED), theorem=THEOREM)


def mazes():
    for border in (True, False):
        yield generate(np.random.default_rng(0), 8, 9, "perfect", border=border)


def test_the_network_agrees_with_the_automaton_at_every_iteration():
    network = network_of(EVOLVED)
    for tiles in mazes():
        encoded = network.encode_maze(torch.from_numpy(one_hot(tiles, 4).astype(np.float32)))
        state = torch.zeros(len(tiles), 2, *tiles.shape[1:])
        for step, signals in enumerate(PROVEN.trace(tiles)):
            np.testing.assert_array_equal(state.numpy(), signals[:, 1:])
            with torch.no_grad():
                state = network.update(encoded, state, step)


def test_the_theorem_holds_on_perfect_mazes_but_not_with_loops():
    for tiles in mazes():
        assert THEOREM.domain.holds(tiles).all()
        assert broken_axioms(THEOREM, tiles) == {}
        assert not any(list(mistakes(PROVEN, maze)) for maze in tiles)
    loop = parse("S..\n.#.\n..T")[None]
    assert broken_axioms(THEOREM, loop)
    assert not THEOREM.domain.holds(loop).any()


def one_way_streets() -> np.ndarray:
    """Return weights with a channel for each direction, on where the direction is free and leads on. Moves take two
    iterations."""
    weights = np.zeros((5, 5, 14), np.float32)
    weights[0, 0, 3], weights[0, 0, 9:13] = 1, 1  # the target, and the channels for up, left, down, right
    for way, tap in enumerate((1, 2, 4, 3)):
        weights[1 + way, tap, 8], weights[1 + way, 0, [1, *(4 + other for other in range(4) if other != way)]] = 1, -1
    return weights


def test_a_network_with_a_channel_for_each_direction_is_correct_and_proven(forgotten):
    pytest.importorskip("z3")
    task, weights = world_task("one-way"), one_way_streets()
    turned = weights.reshape(-1)[turning(weights.shape)].reshape(weights.shape)
    np.testing.assert_array_equal(turned, weights)
    without = weights.copy()
    without[1, 0, 5] = 0  # so an arrow to the left also causes a move up
    levels = draw_levels(task, np.random.default_rng(0), 64, 7)
    correct, wrong = errors(np.stack([weights, without]), levels, 99)
    assert correct == 0 < wrong
    assert errors(without[None], levels, 99, wrong / 8)[0] > wrong / 8
    assert prove(automaton_of(network_of(weights, task.name), bound=BOUND)).verdict == "correct"


def test_errors_at_any_iteration_count_on_request(forgotten):
    late, early = networks = np.zeros((2, 3, 2, 8), np.float32)
    networks[:, 0, 0, 5], networks[:, 0, 1, 5], networks[:, 1, :, 1], networks[:, 2, 0, 7] = -1, -1, 1, 1
    late[0, 0, 6], early[0, 0, 7] = 1, 1  # the answer is on after the first iteration, or from the beginning
    task, rng = world_task("core"), np.random.default_rng(0)
    for levels in (draw_levels(task, rng, 16, 5), draw_tiny_levels(task, rng, 64)):
        assert not errors(networks, levels, 40).any()
        correct, wrong = errors(networks, levels, 40, at_any_time=True)
        assert correct == 0 < wrong


@pytest.mark.parametrize(("world", "shape"), [("reachable", (3, 2, 8)), ("one-way", (5, 5, 14))])
def test_split_connections_keep_the_final_output(forgotten, world, shape):
    task, rng, flood = world_task(world), np.random.default_rng(0), np.zeros(shape, np.float32)
    flood[0, 0, [1, *range(4, task.n_tiles)]], flood[0, 0, 2:4], flood[0, 1:, task.n_tiles] = -4, 1, 1
    splits, levels = split(rng, flood[None].repeat(64, axis=0), turning(shape)), draw_levels(task, rng, 64, 5)
    assert len(np.unique(splits, axis=0)) > 8
    np.testing.assert_array_equal(splits.reshape(64, -1)[:, turning(shape)], splits.reshape(64, -1))
    assert np.ptp(errors(np.stack([flood, *splits]), levels, 40)) == 0


@pytest.mark.parametrize(
    ("world", "n_rounds"), [("reachable", 3), *(pytest.param(world, 20, marks=pytest.mark.slow) for world in WORLDS)]
)
def test_worlds_are_learned_from_answers_and_proven_correct(forgotten, monkeypatch, capsys, world, n_rounds):
    pytest.importorskip("z3")
    monkeypatch.setattr("experiments.worlds.N_ROUNDS", n_rounds)
    learn_worlds((world,), (0,))
    assert f"correct: shows the answer of the task {world}-world" in capsys.readouterr().out


def test_a_maze_with_one_tile_has_an_answer(forgotten):
    np.testing.assert_array_equal(world_task("core").solve(np.array([[[0]], [[1]]], np.uint8)), [[[True]], [[False]]])


def prove_it() -> None:
    assert prove(PROVEN).holds
    for name in (
        "empty tiles on it have two neighbours on it",
        "others have one neighbour towards it",
        "no wall has four free neighbours",
    ):
        less = replace(
            THEOREM,
            axioms=lambda *at, name=name: {key: fact for key, fact in THEOREM.axioms(*at).items() if key != name},
        )
        assert [lemma.claim for lemma in prove(replace(PROVEN, theorem=less)).refused] == [
            "DRAWN is what the theorem says"
        ]


def test_it_is_proven_and_needs_every_axiom_about_trees():
    pytest.importorskip("z3")
    # in a new process: after many other tests z3 has aborted while it printed a counterexample
    child = get_context("spawn").Process(target=prove_it)
    child.start()
    child.join()
    assert child.exitcode == 0


@pytest.mark.slow
def test_it_evolves_from_answers(tmp_path, capsys):
    pytest.importorskip("z3")
    main(out=tmp_path)
    assert "refused" not in capsys.readouterr().out
    for name, weights in load_model(tmp_path / "model.safetensors").state_dict().items():
        assert torch.equal(weights, network_of(EVOLVED).state_dict()[name])


@for_each(
    ("change", "complaint"),
    [
        ({"state_limit": None}, "its states are cut off at 0 and 1: .* got state_limit None and max_pool False"),
        ({"n_iterations": 9}, "n_iterations=None"),
        ({"kernel_size": 5}, "each iteration must be a convolution of 3 x 3 taps and a ReLU"),
        ({}, "its weights are whole numbers, .*: 26 of 46 are not whole"),
    ],
)
def test_a_network_that_is_not_an_automaton_is_refused(change, complaint):
    options = {"n_tiles": 4, "n_channels": 1, "state_limit": 1.0, "n_iterations": None, **change}
    network = NCA(**options, cut_corners=True, symmetric=not change)
    with pytest.raises(ValueError, match=complaint):
        automaton_of(network)
