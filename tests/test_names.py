"""What users read when they misspell a name, wherever names are read."""

from __future__ import annotations

import pytest

from maze_nca_gym.names import did_you_mean, unknown_name

FRUIT = ("apple", "Orange")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("aple", ". Did you mean 'apple'?"), ("ORANGES", ". Did you mean 'Orange'?"), ("x", ""), ("", ""), (7, "")],
)
def test_the_nearest_name_is_suggested_if_one_is_near(name, hint):
    assert did_you_mean(name, FRUIT) == hint


def test_the_message_lists_all_names_and_ends_with_the_nearest():
    assert unknown_name("fruit", "aple", FRUIT) == ("unknown fruit 'aple'; known: apple, Orange. Did you mean 'apple'?")
    assert unknown_name("fruit", 7, iter(FRUIT), ", or a seed") == "unknown fruit 7; known: apple, Orange, or a seed"
