"""Messages about misspelt names, wherever users enter names."""

import numpy as np
import pytest
from tables import for_each, refused

from maze_nca_gym.support.names import check_count, check_names, did_you_mean, find, unknown_name

FRUIT = ("apple", "Orange")


@for_each(
    ("name", "hint"),
    [("aple", ". Did you mean 'apple'?"), ("ORANGES", ". Did you mean 'Orange'?"), ("x", ""), ("", ""), (7, "")],
)
def test_the_nearest_name_is_suggested_if_it_is_similar(name, hint):
    assert did_you_mean(name, FRUIT) == hint


def test_the_message_has_the_nearest_name_and_all_names():
    assert unknown_name("fruit", "aple", FRUIT) == ("unknown fruit 'aple'. Did you mean 'apple'? Known: apple, Orange")
    assert unknown_name("fruit", 7, iter(FRUIT), ", or a seed") == "unknown fruit 7; known: apple, Orange, or a seed"


def test_tables_and_options_have_get_by_name():
    assert find("fruit", "apple", {"apple": 1}) == 1
    refused(r"unknown fruit 'aple'\. Did you mean 'apple'\? Known: apple", find, "fruit", "aple", {"apple": 1})
    check_names("a salad", ["apple"], FRUIT)
    with pytest.raises(ValueError, match=r"a salad has no option leak, salt; it takes apple, Orange$"):
        check_names("a salad", ["salt", "apple", "leak"], FRUIT)


@for_each("value", [1, 2**40, np.int64(3), np.uint8(1)])
def test_counts_become_integers_of_python(value):
    assert type(check_count("n", value)) is int


@for_each("value", [0, -1, True, 1.0, "1", None, np.float64(2)])
def test_invalid_counts_are_refused(value):
    refused("n must be an integer >= 1, got", check_count, "n", value)
