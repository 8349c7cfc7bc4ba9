"""Automata with any rules become networks with exact weights, which agree with literal programs."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum, IntEnum
from functools import cache, reduce
from itertools import chain, islice, product, repeat
from operator import attrgetter, or_
from pathlib import Path

import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import Policy, compile_automaton, iterate, load, rollout
from maze_nca_gym.agents.automata import AUTOMATA, Automaton, NotCovered, register_automaton, threshold
from maze_nca_gym.agents.automata.automaton import NEIGHBOURHOODS
from maze_nca_gym.agents.automata.kernel.coq import printed_joins
from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.networks.exact import compile_weights
from maze_nca_gym.agents.automata.networks.helpers import helped
from maze_nca_gym.agents.automata.networks.linear import separated
from maze_nca_gym.agents.automata.run import _is_correct, learn_automaton
from maze_nca_gym.agents.automata.shipped.any_state import ANY_STATE
from maze_nca_gym.agents.automata.shipped.both import BOTH
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.gallery import DEAD_ENDS, FIRST_PASSAGE, LIFE, REACHABLE, WALL_FOLLOWER
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.agents.policies.guarantees import StepBound
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.runs import read_metrics
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.facts import at_least
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, one_hot
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import DIAMETER as DIAMETER_TASK
from maze_nca_gym.mazes.tasks import SHORTEST_PATH as SHORTEST_PATH_TASK
from maze_nca_gym.mazes.tasks import find_task

N_STEPS = 40
FAST = {
    "sizes": (4,),
    "n_levels": 4,
    "n_recombined": 4_000,
    "batch_size": 256,
    "n_updates": 300,
    "n_updates_again": 200,
}
compiled = cache(compile_automaton)


def mazes(automaton: Automaton, family: str = "random", border: bool = True, n: int = 6) -> np.ndarray:
    tiles = generate(np.random.default_rng(5), n, 7, family, border=border)
    return find_task(automaton.task).prepare(tiles)


def drawn(model: Policy, tiles: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the path that a network draws after some iterations, (N, H, W) bool."""
    with torch.no_grad():
        return rollout(model, torch.from_numpy(one_hot(tiles, n_tiles=model.n_tiles)), n_steps)[:, 0].numpy() > 0.5


def paths(automaton: Automaton, tiles: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the path that the compiled network draws after some iterations, (N, H, W) bool."""
    return drawn(compiled(automaton)[0], tiles, n_steps)


@pytest.mark.parametrize(
    "automaton",
    [
        pytest.param(automaton, id=name, marks=[pytest.mark.slow] if automaton in (BOTH, DIAMETER, ANY_STATE) else [])
        for name, automaton in AUTOMATA.items()
    ],
)
def test_networks_have_whole_weights_and_follow_the_automaton(automaton):
    split = separated(automaton)
    model, certificate = compile_weights(split)
    assert certificate.holds
    assert (certificate.error, certificate.tolerance) == (0, 0)
    assert all((2 * parameter % 1 == 0).all() for parameter in model.parameters())
    assert certify(model, automaton=automaton) == certificate
    rows = split.rows(model.channel_names).values()
    for border in (True, False):
        tiles = mazes(automaton, border=border)
        maze = torch.from_numpy(one_hot(tiles, n_tiles=find_task(automaton.task).n_tiles))
        states = zip(iterate(model, maze), split.trace(tiles), automaton.trace(tiles), range(N_STEPS), strict=False)
        with torch.no_grad():
            for state, parts, signals, t in states:
                values = [state[:, of[0]] - (state[:, of[1]] if len(of) > 1 else 0) for of in rows]
                np.testing.assert_array_equal(torch.stack(values, dim=1), parts)
                assert (parts[:, 0] == signals[:, 0]).all(), f"after {t} iterations"
    model.biases[0].data[1] += 1
    assert not certify(model, automaton=automaton).holds


def test_the_automaton_of_both_tasks_follows_the_maze():
    # all mazes of up to 3 x 4 tiles agree too, but take minutes
    levels = np.array(list(product(range(2), repeat=6)), np.uint8).reshape(-1, 2, 3)
    for tiles in (levels, clear_endpoints(mazes(BOTH))):
        for one, other, _ in zip(BOTH.trace(tiles), DIAMETER.trace(tiles), range(300), strict=False):
            np.testing.assert_array_equal(one, other)
    shared = list(SHORTEST_PATH.signals)
    same = [DIAMETER.signals[signal.name] for signal in shared]
    for tiles in (mazes(BOTH), mazes(BOTH, "caves", border=False)):
        _, _, *paths = SHORTEST_PATH.trace(tiles)
        for one, other in zip(islice(BOTH.trace(tiles), 4, None), chain(paths, repeat(paths[-1])), strict=False):
            np.testing.assert_array_equal(one[:, same], other[:, shared])


@pytest.mark.slow  # the proof, two certificates and the comparison of all channels take seconds each
def test_one_network_answers_both_questions(tmp_path: Path):
    model, _ = compiled(BOTH)
    file = save_model(model, tmp_path / "both")
    for name, task in ((str(file), SHORTEST_PATH_TASK), (f"diameter:{file}", DIAMETER_TASK)):
        policy = load(name)
        assert (policy.task, policy.n_tiles, policy.guarantees.exact) == (task.name, 4, True)
        assert len(policy.program().inputs) == 4, "exports have a name for each input"
        observation, _ = policy.make_env(num_envs=2, size=4).reset(seed=1)
        maze = torch.from_numpy(observation["maze"])
        assert maze.shape[1] == task.n_tiles
        np.testing.assert_array_equal(
            policy.predict(observation)[0], policy(maze, torch.zeros(2, policy.n_channels, 6, 6)).detach()
        )
        with torch.no_grad():
            paths = rollout(policy, maze, policy.guarantees.enough_steps(6, 6, 8))[:, 0] > 0.5
        np.testing.assert_array_equal(paths, task.solve(maze.argmax(dim=1).numpy().astype(np.uint8)))
    assert certify(policy).holds, "the one that asks for the diameter"
    assert torch.equal(load(f"diameter:{file}").weights[0], model.weights[0])
    assert not load(f"diameter-DLRU:{file}").guarantees.exact


def test_a_network_needs_enough_kinds_for_its_task(tmp_path: Path):
    file = save_model(NCA(n_channels=4, n_iterations=2, n_tiles=4, task="shortest-path"), tmp_path / "one")
    policy = load(f"diameter:{file}")
    assert (policy.task, policy.n_tiles, policy.guarantees.exact) == ("diameter", 4, False)
    observation, _ = policy.make_env(num_envs=2, size=4).reset(seed=1)
    assert observation["maze"].shape[1] == DIAMETER_TASK.n_tiles
    assert policy.predict(observation)[0].shape == (2, policy.n_channels, 6, 6)
    refused("shortest-path have 4 kinds of tile, and the policy reads 2", load, "shortest-path:nca-diameter-hinted")
    refused("unknown policy 'bth'", load, "diameter:bth")
    refused(r"unknown task 'diametr'.*Did you mean 'diameter'", load, f"diametr:{file}")


def test_without_dead_ends_the_path_is_left_of_a_perfect_maze():
    tiles = mazes(DEAD_ENDS, "perfect")
    np.testing.assert_array_equal(paths(DEAD_ENDS, tiles, 60), shortest_path(tiles))


class Signal(IntEnum):
    PATH = 0
    BIT = 1


RULES = dict.fromkeys(Signal, lambda see: see(Signal.BIT))


def of(rule, path=RULES[Signal.PATH], **options) -> Automaton:
    return Automaton("tried", "diameter", Signal, {Signal.PATH: path, Signal.BIT: rule}, **options)


def parity(see):
    walls = [see.tile(Tile.WALL, towards) for towards in "ULDR"]
    return (at_least(1, walls) & ~at_least(2, walls)) | (at_least(3, walls) & ~at_least(4, walls))


def test_a_rule_that_is_not_a_threshold_is_split():
    automaton = of(parity)
    split = separated(automaton)
    assert [signal.name for signal in split.signals] == ["PATH", "BIT_1", "BIT_2", "BIT_3", "BIT_4"]
    assert separated(SHORTEST_PATH) is SHORTEST_PATH
    tiles = mazes(automaton)
    walls = np.pad(tiles == Tile.WALL, [(0, 0), (1, 1), (1, 1)]).astype(int)
    odd = (walls[:, :-2, 1:-1] + walls[:, 2:, 1:-1] + walls[:, 1:-1, :-2] + walls[:, 1:-1, 2:]) % 2 == 1
    np.testing.assert_array_equal(paths(automaton, tiles, 2), odd)


def test_a_part_has_a_name_of_its_own():
    signals = IntEnum("Odd", ["PATH", "BIT", "BIT_1"], start=0)
    rules = {"PATH": lambda see: see(signals.BIT), "BIT": parity, "BIT_1": lambda see: see.tile(Tile.WALL)}
    automaton = Automaton("odd", "diameter", signals, rules)
    split = separated(automaton)
    assert [signal.name for signal in split.signals] == ["PATH", *(f"BIT__{i}" for i in range(1, 5)), "BIT_1"]
    assert printed_joins(automaton, split)["its_joins"] == "[[0]; [1; 2; 3; 4]; [5]]"
    tiles = mazes(automaton)
    np.testing.assert_array_equal(paths(automaton, tiles, 2), paths(of(parity), tiles, 2))


def test_parts_that_combine_sums_get_signals():
    def mixed(see):
        walls, empty = ([see.tile(kind, tap) for tap in "ULDR"] for kind in (Tile.WALL, Tile.EMPTY))
        several = threshold([(2, walls[0]), (1, walls[1]), (1, walls[2])], 2)
        return threshold([(1, walls[0] & empty[1]), (1, ~(several | empty[0])), (-1, empty[2])], 1) | (
            walls[3] & ~several
        )

    automaton = of(mixed, path=mixed)
    assert helped(automaton).pace > 1
    tiles = mazes(automaton)
    np.testing.assert_array_equal(paths(automaton, tiles, 12), [*automaton.trace(tiles)][-1][:, 0])


def test_learning_splits_rules_too(tmp_path: Path):
    model, certificate = learn_automaton(of(parity, learning=FAST), out=tmp_path)
    assert certificate.holds
    assert model.channel_names[:3] == ("path", "bit_1_low", "bit_1_high")


SLOW = [pytest.param(automaton, marks=pytest.mark.slow) for automaton in (LIFE, WALL_FOLLOWER)]
SLOW_TOO = [pytest.param(automaton, marks=pytest.mark.slow) for automaton in (REACHABLE, DEAD_ENDS)]


@pytest.mark.parametrize("automaton", [FIRST_PASSAGE, *SLOW_TOO, *SLOW], ids=attrgetter("name"))
def test_the_gallery_is_learned_and_proven(automaton, tmp_path: Path):
    model, certificate = learn_automaton(automaton, out=tmp_path, **FAST)
    assert certificate.holds
    assert (certificate.error, certificate.tolerance) == (0, 0)
    assert certify(model) == certificate
    assert all((weight % 1 == 0).all() for weight in model.weights)


@pytest.mark.parametrize("automaton", [SHORTEST_PATH, REACHABLE, DEAD_ENDS, *SLOW], ids=attrgetter("name"))
def test_one_maze_and_questions_are_enough_for_a_proof(automaton, tmp_path: Path):
    def learned(n_questions: int):
        options = {"sizes": (4,), "n_mazes": 1, "n_questions": n_questions, "overwrite": True}
        model, certificate = learn_automaton(automaton, out=tmp_path, **options)
        return model, certificate, read_metrics(tmp_path / "metrics.jsonl")

    model, certificate, lines = learned(200)
    assert certificate.holds
    assert certify(model) == certificate
    needed = lines[-1]["questions"]
    assert [line["questions"] for line in lines] == sorted({line["questions"] for line in lines})
    _, certificate, lines = learned(needed // 2)
    assert not certificate.holds
    assert lines[-1]["questions"] == needed // 2


def test_one_signal_becomes_one_channel(tmp_path: Path):
    signals = IntEnum("Only", ["PATH"], start=0)
    automaton = Automaton("free", "diameter", signals, {signals(0): lambda see: ~see.tile(Tile.WALL)})
    tiles = mazes(automaton)
    for model, certificate in (compile_automaton(automaton), learn_automaton(automaton, out=tmp_path, **FAST)):
        assert certificate.holds
        assert model.channel_names == ("path",)
        np.testing.assert_array_equal(drawn(model, tiles, 1), tiles == Tile.EMPTY)


def alternatives(see):
    above, below = see.tile(Tile.WALL, "U") & see(Signal.BIT, "D"), see.tile(Tile.WALL, "D") & see(Signal.BIT, "L")
    return above | below | (see.tile(Tile.EMPTY, "R") & ~see(Signal.BIT, "U") & see.tile(Tile.WALL))


def many(see):
    return reduce(or_, (see.tile(Tile.WALL, tap) & see(Signal.BIT, tap) for tap in NEIGHBOURHOODS[9])) | see.tile(
        Tile.WALL
    )


def either(see):
    return alternatives(see) ^ (see(Signal.BIT, "R") & see.tile(Tile.EMPTY, "U"))


@pytest.mark.parametrize(
    ("automaton", "pace"),
    [
        (of(parity, path=parity), 2),
        (of(alternatives, settles=False), 2),
        pytest.param(of(many, neighbourhood=9), 2, marks=pytest.mark.slow),
        pytest.param(of(either, settles=False), 4, marks=pytest.mark.slow),
    ],
)
def test_parts_of_a_rule_get_signals_and_cost_iterations(automaton, pace):
    slow = helped(automaton)
    assert (slow.pace, slow.slows) == (pace, automaton)
    model, certificate = compile_weights(separated(slow))
    assert certificate.holds
    assert certify(model, automaton=automaton) == certificate, "helpers are found again"
    assert [words.partition(" = ")[0] for words in certificate.helpers] == [*slow.helpers]
    tiles = mazes(automaton)
    expected, state = (next(rules.trace(tiles)) for rules in (automaton, slow))
    for t in range(8 * pace):
        expected = automaton.step(tiles, expected) if t and t % pace == 0 else expected
        np.testing.assert_array_equal(state[:, : len(automaton.signals)], expected)
        state = slow.step(tiles, state)
    np.testing.assert_array_equal(drawn(model, tiles, 7 * pace), expected[:, 0])


def blinks(see):
    return ~see(Signal.BIT) & ~see.tile(Tile.WALL)


def walks(see):
    start = see.tile(Tile.EMPTY) & ~see.tile(Tile.EMPTY, "L") & ~see.tile(Tile.WALL, "L")
    return start | see(Signal.BIT, "L")


def test_rules_beyond_networks_are_refused():
    with pytest.raises(NotCovered, match="PATH in tried is not a weighted sum"):
        helped(of(parity, path=parity, heals=True))


def test_an_automaton_may_not_read_kinds_that_a_task_lacks():
    assert not _is_correct(SHORTEST_PATH, "diameter", StepBound(per_tile=9))


def named_like_a_helper():
    signals = IntEnum("Named", ["PATH", "BIT_PART_1"], start=0)
    rules = [lambda see: see.tile(Tile.WALL, "U") ^ see.tile(Tile.WALL, "D"), lambda see: see.tile(Tile.WALL)]
    return Automaton("tried", "diameter", signals, dict(zip(signals, rules, strict=True)))


@for_each(
    "make, message",
    [
        (named_like_a_helper, "BIT_PART_1 of tried has the name of an auxiliary signal"),
        (
            lambda: of(parity, path=parity, heals=True),
            "the rule of PATH in tried is not a weighted sum of what",
        ),
        (
            lambda: of(many, neighbourhood=9, heals=True),
            "in tried is not a threshold of a sum, and distinguishes 1,562,500 patches; at most",
        ),
        (lambda: of(alternatives, heals=True), "BIT in tried is not an alternating sum of at most 12 thresholds"),
        (
            lambda: of(lambda see: see(Tile.WALL)),
            "the rule of BIT in tried reads <Tile.WALL: 1>, which is not one of its signals; use see.tile to",
        ),
        (
            lambda: of(lambda see: see.tile(Signal.BIT)),
            "the rule of BIT in tried must join .* the number of a kind of tile, .* got <Signal.BIT",
        ),
        (lambda: of(lambda see: see(Signal.BYTE)), "the rule of BIT in tried fails: AttributeError: .*BYTE"),
        (lambda: of(blinks, parts=((Signal.BIT,),)), "each signal once in all, unlike PATH"),
        (lambda: replace(of(blinks), signals=Enum("Signal", "PATH BIT")), "of tried must be an IntEnum"),
        (lambda: replace(of(blinks), rules={**RULES, "BITE": blinks}), "tried has a rule for 'BITE', which is not"),
        (
            lambda: replace(SHORTEST_PATH, also={"shortest-path-DLRU": 3}),
            "the bound of shortest-path for the task shortest-path-DLRU must be a StepBound, got 3",
        ),
        (lambda: of(blinks, also={"shortest-path": StepBound(1)}), "task shortest-path has other kinds of tile or ans"),
        (lambda: of(blinks, neighbourhood=7), "the neighbourhood of tried must be 5 or 9 tiles, got 7"),
        (lambda: of(lambda see: see.tile(Tile.WALL, "UL")), "reads 'UL', but may read U, L, C, R, D only"),
        (lambda: of(lambda see: at_least(3, [see(Signal.BIT)])), "a number from 1 to the number of bits, 1, got 3"),
        (lambda: replace(SHORTEST_PATH, any_state=True), "may begin in any state, so it cannot have an invariant"),
        (lambda: "lief", r"unknown automaton 'lief'. Did you .* Known: shortest-path, .* or module:NAME"),
    ],
)
def test_wrong_rules_are_named(make, message):
    refused(message, lambda: compile_automaton(make()))


def test_automata_that_never_settle_are_named(tmp_path: Path):
    # two alternating states would count as periodic; a cycle of three states does not
    class Three(IntEnum):
        PATH, A, B, C = range(4)

    rules = {Three.PATH: lambda see: see(Three.A), Three.A: lambda see: ~see(Three.A) & ~see(Three.B) & ~see(Three.C)}
    rules |= {Three.B: lambda see: see(Three.A), Three.C: lambda see: see(Three.B)}
    automaton = Automaton("three", "diameter", Three, rules)
    with pytest.raises(ValueError, match=r"A.* of three still change after .* give it settles=False if they may"):
        learn_automaton(automaton, out=tmp_path / "run", n_updates=1)


def test_the_command_compiles_and_the_file_is_a_policy(tmp_path, monkeypatch, capsys, forgotten):
    monkeypatch.chdir(tmp_path)
    assert main(["compile-automaton", "shortest-path", "--out", "mine"]) == 0
    assert "proven to do what the automaton does" in " ".join(capsys.readouterr().out.replace("│", " ").split())
    described = json.loads(Path("mine/config.json").read_text())
    assert described["command"] == "maze-nca-gym compile-automaton shortest-path"
    assert described["certificate"]["holds"]
    policy = load("mine/model.safetensors")
    assert policy.guarantees.exact
    tiles = mazes(SHORTEST_PATH, "caves")
    np.testing.assert_array_equal(drawn(policy, tiles, 2 * 49 + 2), shortest_path(tiles))
    assert main(["compile-automaton", "life", "--out", "mine"]) == 2
    assert "mine" in capsys.readouterr().err
    register_automaton(replace(SHORTEST_PATH, name="hasty", bound=StepBound(constant=1)))
    assert main(["compile-automaton", "hasty", "--out", "hasty"]) == 1
    assert "hasty is refuted" in capsys.readouterr().err
