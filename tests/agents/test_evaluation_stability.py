"""Stability, on policies with known behaviour."""

import numpy as np
import pytest
import torch
from oracles import (
    canonical_diameter,
    canonical_shortest_path,
    distance_grid,
    optimal_diameters,
    optimal_shortest_paths,
    place_of,
)
from scripted_policies import Counts, Dies, Flips, Freezes, Oracle, Turns, Wanders
from tables import for_each

from maze_nca_gym.agents import load
from maze_nca_gym.agents.evaluation.disturbances import FRACTIONS, corrupt, edit_levels, edits_of
from maze_nca_gym.agents.evaluation.stability import (
    Habit,
    find_periods,
    measure_stability,
    repeat_periods,
    stability_effort,
)
from maze_nca_gym.agents.rollouts.solving import default_steps
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.levels import Tile, one_hot, parse
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import DIAMETER, SHORTEST_PATH

SMALL = test_levels("loops", 9, "shortest-path", 30)


def stability(policy, n_steps=10, **options):
    return measure_stability(policy, SMALL, n_steps, **options)


class TestOverIteration:
    def test_before_and_after(self):
        result = stability(Dies())
        assert (result.n_levels, result.n_steps) == (30, 10)
        assert (result.before.complete.value, result.after.complete.value) == (1, 0)
        steps = [13, 14, 15, 16, 17, 18, 20, 21, 23, 26, 29, 33, 37, 42, 48, 55, 64, 74, 86, 100]
        assert [p.step for p in result.curve] == steps
        assert [p.metrics.complete.value for p in result.curve] == [float(p.step <= 20) for p in result.curve]


class TestCycles:
    @for_each(
        ("policy", "state", "path"),
        [
            (Oracle(), Habit(1, 0, 0, {}), Habit(1, 0, 0, {})),
            (Counts(), Habit(0, 0, 1, {}), Habit(1, 0, 0, {})),
            (Flips(), Habit(0, 1, 0, {"2": 1}), Habit(0, 1, 0, {"2": 1})),
            (Turns(), Habit(0, 1, 0, {"3": 1}), Habit(0, 1, 0, {"3": 1})),
            (Wanders(), Habit(0, 0, 1, {}), Habit(0, 0, 1, {})),
        ],
    )
    def test_known_habits(self, policy, state, path):
        result = stability(policy)
        assert (result.state, result.path) == (state, path)

    def test_a_mixture(self):
        maze = torch.from_numpy(one_hot(SMALL.tiles[:3]))
        state = torch.zeros(3, 3, *maze.shape[2:])
        state[1, 2] = 0.5  # a half flips to a half, so this channel is constant
        of_state, of_path = find_periods(Flips(), maze, Flips()(maze, state), 1)
        assert of_state.tolist() == [2, 1, 2]
        assert of_path.tolist() == [2, 1, 2]

    def test_periods_of_a_history(self):
        t = np.arange(21, dtype=np.uint64)
        history = np.stack([t * 0, t % 2, t % 10, t % 11, t, (t > 19).astype(np.uint64)], axis=1)
        assert repeat_periods(history).tolist() == [1, 2, 10, 0, 0, 0]


class TestCorruption:
    def test_corrupted_entries_get_values_of_other_tiles_of_their_channel(self):
        state = torch.arange(2 * 3 * 40 * 50).view(2, 3, 40, 50).float()
        for fraction in FRACTIONS:
            corrupted = corrupt(state, fraction, 7)
            changed = (corrupted != state).flatten(1).float().mean(dim=1)
            assert changed.tolist() == pytest.approx([fraction] * 2, rel=0.01)
            assert (corrupted // 2000 == state // 2000).all()
            assert (changed > 0).all()

    def test_it_depends_only_on_the_level(self):
        state = torch.rand(4, 3, 9, 9, generator=torch.Generator().manual_seed(0))
        corrupted = corrupt(state, 0.1, 5)
        torch.testing.assert_close(torch.cat([corrupt(state[:1], 0.1, 5), corrupt(state[1:], 0.1, 6)]), corrupted)
        assert not torch.equal(corrupt(state, 0.1, 6), corrupted)

    def test_at_least_one_entry(self):
        state = torch.arange(20.0).view(1, 1, 4, 5)
        assert (corrupt(state, 0.01, 3) != state).sum() == 1

    def test_policies_that_heal_and_policies_that_do_not(self):
        assert [c.after.complete.value for c in stability(Oracle()).corruption] == [1, 1, 1, 1]
        corruption = stability(Freezes()).corruption
        frozen = [c.after.complete.value for c in corruption]
        assert frozen == sorted(frozen, reverse=True)
        assert frozen[0] > frozen[-1]
        assert [c.fraction for c in corruption] == [0.01, 0.02, 0.05, 0.1]


class TestEdits:
    def edited(self, name, task=SHORTEST_PATH, family="loops", first=0):
        levels = test_levels(family, 9, task.name, 40)
        rows, edited = edit_levels(name, task, levels.tiles, task.solve_all(levels.tiles), first)
        assert len(rows) == len(edited) > 10
        return levels.tiles[rows], edited

    def test_an_opened_wall_makes_a_shorter_way(self):
        for before, after in zip(*self.edited("wall opened"), strict=True):
            ((row, col),) = np.argwhere(before != after)
            assert (before[row, col], after[row, col]) == (Tile.WALL, Tile.EMPTY)
            assert 0 < row < before.shape[0] - 1
            assert 0 < col < before.shape[1] - 1
            assert canonical_shortest_path(after).sum() < canonical_shortest_path(before).sum()

    def test_a_closed_tile_was_on_the_path(self):
        for before, after in zip(*self.edited("wall closed"), strict=True):
            ((row, col),) = np.argwhere(before != after)
            assert (before[row, col], after[row, col]) == (Tile.EMPTY, Tile.WALL)
            assert canonical_shortest_path(before)[row, col]
            assert optimal_shortest_paths(after)

    def test_a_moved_target_is_reachable(self):
        for before, after in zip(*self.edited("target moved", family="random"), strict=True):
            assert (before != after).sum() == 2
            assert after[place_of(before, Tile.TARGET)] == Tile.EMPTY
            target = place_of(after, Tile.TARGET)
            assert before[target] == Tile.EMPTY
            assert distance_grid(before, place_of(before, Tile.SOURCE))[target] > 0

    @for_each("name", ["wall opened", "wall closed"])
    def test_the_diameter_changes(self, name):
        for before, after in zip(*self.edited(name, DIAMETER), strict=True):
            path = frozenset((int(row), int(col)) for row, col in np.argwhere(canonical_diameter(before)))
            assert path in optimal_diameters(before)
            assert path not in optimal_diameters(after)

    def test_edits_are_chosen_by_the_task(self):
        assert list(edits_of(SHORTEST_PATH)) == ["wall opened", "wall closed", "target moved"]
        assert list(edits_of(DIAMETER)) == ["wall opened", "wall closed"]

    def test_the_index_in_the_set_is_their_seed(self):
        _, first = self.edited("target moved")
        _, same = self.edited("target moved")
        _, other = self.edited("target moved", first=1)
        np.testing.assert_array_equal(first, same)
        assert (first != other).any()

    @for_each("name", ["wall opened", "wall closed", "target moved"])
    def test_levels_without_possible_edits(self, name):
        tiles = parse("####\n#ST#\n####")[None]
        rows, edited = edit_levels(name, SHORTEST_PATH, tiles, SHORTEST_PATH.solve_all(tiles), 0)
        assert rows.shape == (0,)
        assert edited.shape == (0, 3, 4)


class TestHysteresis:
    def test_a_frozen_policy_never_follows(self):
        result = stability(Freezes())
        assert [e.edit for e in result.edits] == ["wall opened", "wall closed", "target moved"]
        for edit in result.edits:
            assert 10 < edit.n_levels <= 30
            assert edit.fresh.optimal.value == edit.hysteresis.value == 1
            assert edit.continued.optimal.value == 0
        assert result.hysteresis.value == 1

    def test_a_fresh_policy_follows(self):
        result = stability(Oracle())
        assert result.after == result.before
        assert (result.path.fixed_point, result.state.fixed_point) == (1, 1)
        assert [e.continued.complete.value for e in result.edits] == [1, 1, 1]
        assert result.hysteresis.value == 0

    def test_only_levels_that_a_fresh_start_solves_count(self):
        result = stability(Dies(), n_steps=30)
        assert [e.fresh.optimal.value for e in result.edits] == [0, 0, 0]
        assert result.hysteresis.value == 0

    def test_levels_that_cannot_be_edited(self):
        result = measure_stability(Oracle(), parse("####\n#ST#\n####")[None], 3)
        assert result.edits == ()
        assert result.hysteresis is None


def test_batches_do_not_matter():
    policy = load("shortest-path-bfs")
    assert stability(policy, 60, batch=7) == stability(policy, 60)


def test_the_handcoded_diameter():
    levels = test_levels("rooms", 4, "diameter", 4)
    result = measure_stability(load("diameter"), levels, 80)
    assert result.before.complete.value == result.after.complete.value == result.path.fixed_point == 1
    assert {e.edit for e in result.edits} <= {"wall opened", "wall closed"}


def test_progress_adds_up():
    progress = []
    stability(Oracle(), 10, batch=11, report=progress.append)
    assert sum(progress) <= 30 * 10 * stability_effort(SHORTEST_PATH)
    assert sum(progress) > 0.8 * 30 * 10 * stability_effort(SHORTEST_PATH)


@for_each("family", ["random", "perfect", "loops"])
def test_exact_healing_policies_get_time_for_edited_mazes(family):
    """Edits make paths longer, and a policy that starts again must detect the edits first."""
    policy, levels = load("nca-shortest-path-healing-hinted"), test_levels(family, 10, "shortest-path", 16)
    result = measure_stability(policy, levels, default_steps(policy, shortest_path(levels.tiles)))
    assert result.hysteresis.value == 0
    assert all(edited.continued.complete.value == edited.fresh.complete.value == 1 for edited in result.edits)
    assert all(corruption.after.complete.value == 1 for corruption in result.corruption)
