"""No wrong automaton and no wrong network of hundreds gets a verdict that claims more than is true."""

from collections import Counter

import numpy as np
import pytest

from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.proving.proof import prove
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.mazes.arrays import MazePicture
from maze_nca_gym.mazes.facts import CENTRE
from maze_nca_gym.mazes.tasks import find_task
from tests.agents import adversary

FAMILIES = [*adversary.families()]
SLOW = (
    "wrong late",
    "hides a kind",
    "no answer",
    "all that is flooded",
    "a bound too small",
    "rules of another order",
    "said to be everywhere",
)
"""Families that only the slow test tries. Other families or `test_verdicts` have similar cases."""
LATER = 1_100
"""Number of iterations after which all counters of the adversary are full."""


def verdict_of(automaton):
    """Return the verdict about an automaton, or None if an error refuses it. Check that the theorem of a verdict holds
    in runs, and that a refuted automaton is wrong on the drawn maze."""
    try:
        proof = prove(automaton)
    except ValueError:
        return None
    if proof.verdict == "characterised" and not proof.stated:
        for maze in adversary.mazes(find_task(automaton.task))[::2]:
            picture = MazePicture(maze[None], proof.theorem.ghosts(maze[None]))
            for t, state in enumerate(adversary.states(automaton, maze, 40)):
                for signal, formula in proof.theorem.signals(picture, CENTRE, np.int64(t)).items():
                    assert (np.broadcast_to(formula, (1, *maze.shape))[0] == state[signal]).all(), (signal, t)
    wrong = [trial.wrong for trial in proof.trials if trial.wrong is not None]
    assert not any(adversary.is_correct(automaton, 60, [maze]) for maze in wrong)
    return proof.verdict


def check(rows):
    """Check that no wrong automaton is proven correct; return the number of automata and their verdicts by family."""
    verdicts = Counter()
    for family, automaton in rows:
        correct = adversary.is_correct(automaton, LATER if family == "wrong late" else 12)
        verdict = verdict_of(automaton)
        verdicts[family, "correct" if correct else "wrong", verdict] += 1
        assert correct or verdict != "correct", (family, automaton)
    return verdicts


def test_the_evaluator_finds_the_shortest_path_correct():
    assert adversary.is_correct(SHORTEST_PATH, 12)
    assert not adversary.is_correct(adversary.late(4), 12)


def test_some_wrong_automata_get_no_false_verdict():
    # the first automaton of each family
    samples = {family: automaton for family, automaton in FAMILIES[::-1] if family not in SLOW}
    verdicts = check(samples.items())
    assert sum(n for (_, truth, _), n in verdicts.items() if truth == "wrong") == len(samples)


@pytest.mark.slow
def test_no_wrong_automaton_gets_a_false_verdict():
    verdicts = check(FAMILIES)
    for (family, truth, verdict), n in sorted(verdicts.items(), key=str):
        print(f"{family:24} {truth:6} {verdict or 'none':10} {n}")
    assert sum(n for (_, truth, _), n in verdicts.items() if truth == "wrong") >= 110


@pytest.mark.parametrize("every", [59, pytest.param(1, marks=pytest.mark.slow)])
def test_no_false_invariant_is_proven(every):
    broken = [automaton for automaton in [*adversary.false_invariants()][::every] if adversary.breaks(automaton)]
    assert len(broken) >= 60 // every
    for automaton in broken:
        assert not prove(automaton).invariant


@pytest.mark.parametrize("n", [3, pytest.param(80, marks=pytest.mark.slow)])
def test_no_wrong_network_is_certified(n):
    n_others = 0
    for model in adversary.networks(n):
        holds = certify(model, automaton=SHORTEST_PATH).holds
        same = adversary.follows(model, SHORTEST_PATH)
        assert same or not holds
        n_others += not same
    assert n_others >= n // 4
