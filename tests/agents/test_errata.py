"""Each formula of the paper that is printed wrong, alone in an otherwise correct automaton, fails on a tiny maze."""

from __future__ import annotations

from pathlib import Path

import literal_automata as literal
import numpy as np
import torch
from maze_samples import Tiles
from oracles import all_shortest_paths, depth_first_order
from tables import for_each

from maze_nca_gym.agents import Policy, iterate
from maze_nca_gym.agents.policies.handcoded.depth_first import DepthFirstChannel
from maze_nca_gym.mazes.levels import Tile, one_hot, parse

PATH_SLIPS = {
    literal.PathStepOfZero: "TS#",
    literal.PathSawtooth: "TS#",
    literal.PathWithoutSeed: "TS#",
    literal.PathNeverFreezes: """
        ..S
        .T.
    """,
    literal.PathAgesNeverFreeze: "S.T",
    literal.PathTowardsGreaterAge: "S.T",
}
SEARCH_SLIPS = {
    literal.SearchStepOfZero: "S.T",
    literal.SearchSawtooth: """
        ..T
        S.#
    """,
    literal.SearchDisplayedPriorities: """
        ..#
        TS.
    """,
    literal.SearchTableRank: """
        ..#
        ST.
    """,
    literal.SearchThreeByThree: "TS.",
    literal.SearchAboveForBelow: """
        T
        S
        .
    """,
    literal.SearchAnyRival: "ST.",
    literal.SearchOverwritesStackTwice: """
        S..
        .T.
    """,
    literal.SearchStuckInverted: "TS.",
    literal.SearchStepMask: "TS.",
    literal.SearchInFifths: """
        ..#
        TS.
    """,
    literal.SearchInFifthsSteep: """
        ..S
        ..T
    """,
}


def states(policy: Policy, tiles: Tiles) -> list[np.ndarray]:
    """Return channel 0 after every step, for many more steps than a correct automaton needs."""
    maze = torch.from_numpy(one_hot(tiles))[None]
    with torch.no_grad():
        return [state[0, 0].numpy() for state in iterate(policy, maze, 6 * tiles.size)]


def finds_all_paths(policy: Policy, tiles: Tiles) -> bool:
    """Return whether the path is correct when it first joins source and target."""
    ends = tiles >= Tile.SOURCE
    joined = [path for path in states(policy, tiles) if (path[ends] >= 1).all()]
    return bool(joined) and np.array_equal(joined[0], all_shortest_paths(tiles)[0])


def visits_in_order(policy: Policy, tiles: Tiles) -> bool:
    """Return whether exactly the correct tiles are visited, one at a time, in the order of a sequential search."""
    visited = np.stack(states(policy, tiles)) > 0
    row, col = np.argwhere(tiles == Tile.SOURCE)[0]
    order = depth_first_order(tiles, (int(row), int(col)))
    arrival = np.where(visited[-1], visited.argmax(axis=0), -1)
    in_order = arrival.ravel()[np.argsort(order, axis=None)][(order < 0).sum() :]
    return np.array_equal(arrival >= 0, order >= 0) and bool((np.diff(in_order) > 0).all())


@for_each("slip", PATH_SLIPS)
def test_errors_in_the_printed_shortest_path(slip):
    tiles = parse(PATH_SLIPS[slip])
    assert finds_all_paths(literal.PathFinder(), tiles), "correct but for the slip"
    assert not finds_all_paths(slip(), tiles)


@for_each("slip", SEARCH_SLIPS)
def test_errors_in_the_printed_depth_first_search(slip):
    tiles = parse(SEARCH_SLIPS[slip])
    assert visits_in_order(literal.DepthFirst(), tiles), "correct but for the slip"
    assert not visits_in_order(slip(), tiles)


def test_each_erratum_of_the_page_has_a_test_except_two_that_are_named():
    """One of the two errata changes nothing, because only the sum of rank and direction is read. The other concerns a
    channel that no automaton of this package has.
    """
    page = (Path(__file__).parents[2] / "docs" / "paper-errata.md").read_text(encoding="utf-8")
    rows = page.split("| printed | must be |")[1].split("\n\n")[0].splitlines()[2:]
    about_both = {literal.SearchStepOfZero, literal.SearchSawtooth}  # rows about both automata
    steep = {literal.SearchInFifthsSteep}  # a second reading of one row
    freezing = {literal.PathAgesNeverFreeze}  # one row is about floods and ages
    assert len(rows) - 2 == len({*PATH_SLIPS, *SEARCH_SLIPS} - about_both - steep - freezing)
    assert not any("SINCE" in channel.name for channel in DepthFirstChannel)
    for slip in SEARCH_SLIPS.values():
        assert visits_in_order(literal.SearchDirectionCounts(), parse(slip))


def test_the_printed_step_and_sawtooth_give_wrong_values():
    x = torch.tensor([-2.0, 0.0, 2.0])
    assert literal.printed_step(x).tolist() == [0, 1, 1]
    assert literal.printed_sawtooth(x, 0).tolist() == [0, -1, 1]
