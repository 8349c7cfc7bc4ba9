"""The steps of one maze and the answers to questions are enough to learn an automaton."""

import pytest

from experiments.few_mazes import from_steps


@pytest.mark.slow
def test_steps_of_one_maze_and_answers_to_questions_are_enough():
    before, after = from_steps(1, 0, 0), from_steps(1, 0, 100)
    assert before["correct"] < 50
    assert not before["proven"]
    assert after["correct"] == 100
    assert after["proven"]
    assert after["questions"] <= 60
