"""Metrics, intervals and agreement, on policies with known behaviour."""

from dataclasses import asdict

import networkx as nx
import numpy as np
import pytest
import torch
from oracles import canonical_diameter, canonical_shortest_path, grid_graph, optimal_shortest_paths, place_of
from scripted_policies import Counts, Dies, Flips, Oracle
from tables import for_each, refused

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.evaluation.metrics import KINDS, measure, path_kinds
from maze_nca_gym.agents.evaluation.named_metrics import score_named
from maze_nca_gym.agents.evaluation.statistics import Estimate, mean, proportion
from maze_nca_gym.agents.policies.guarantees import Guarantees, StepBound
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts.levels import first_levels
from maze_nca_gym.agents.rollouts.solving import check_steps, curve_steps, default_steps
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.levels import LevelSet, Tile, clear_endpoints, one_hot, parse
from maze_nca_gym.mazes.scoring import paper_accuracy, score
from maze_nca_gym.mazes.solvers import diameter, shortest_path
from maze_nca_gym.mazes.tasks import DIAMETER, SHORTEST_PATH

SMALL = test_levels("random", 8, "shortest-path", 60)
TWO_WAYS = parse("S..\n.#.\n..T")
"""Two shortest paths of five tiles."""


def drawn(text):
    return np.array([[glyph == "*" for glyph in line] for line in text.split()])


class TestIntervals:
    @for_each(
        ("n_true", "n", "low", "high"),
        [  # Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ],
    )
    def test_wilson(self, n_true, n, low, high):
        estimate = proportion(np.arange(n) < n_true)
        assert estimate.value == n_true / n
        assert (estimate.low, estimate.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))

    def test_the_value_is_always_inside(self):
        for n in (1, 2, 3, 7, 8192):
            for n_true in {0, 1, n // 2, n - 1, n}:
                estimate = proportion(np.arange(n) < n_true)
                assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1

    def test_nan_does_not_count_as_success(self):
        refused("successes must be bool, or 0 and 1, got nan", proportion, np.array([1, np.nan]))

    def test_nineteen_of_twenty_intervals_hold_the_truth(self):
        rng = np.random.default_rng(0)
        for truth in (0.5, 0.02, 0.98):
            intervals = [proportion(rng.random(400) < truth) for _ in range(1000)]
            assert 0.925 < np.mean([i.low <= truth <= i.high for i in intervals]) < 0.975
        intervals = [mean(rng.exponential(size=400)) for _ in range(1000)]
        assert 0.925 < np.mean([i.low <= 1 <= i.high for i in intervals]) < 0.975

    def test_groups_with_equal_values_count_once(self):
        rng = np.random.default_rng(1)
        group_values = [rng.random(60) < 0.8 for _ in range(1000)]  # 60 groups, each all correct or all wrong
        intervals = [proportion(np.repeat(groups, 33), 60) for groups in group_values]
        assert 0.925 < np.mean([i.low <= 0.8 <= i.high for i in intervals]) < 0.975
        assert intervals[0] == proportion(group_values[0])

    def test_no_interval_exceeds_the_range_of_the_value(self):
        assert mean(np.array([1.0, 1, 0.7]), most=1) == Estimate(pytest.approx(0.9), pytest.approx(0.704, abs=1e-5), 1)

    def test_means(self):
        assert mean(np.array([1.0, 2, 3, 4])) == Estimate(2.5, pytest.approx(1.2348488), pytest.approx(3.7651512))
        assert mean(np.array([0.7])) == Estimate(0.7, 0.7, 0.7)

    @for_each("estimate", [mean, proportion])
    def test_an_empty_sample_has_no_interval(self, estimate):
        refused("at least one level, got 0", estimate, np.empty(0))


class TestIterations:
    def test_curve_steps(self):
        assert curve_steps(1) == [1]
        assert curve_steps(20) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 20]
        assert set(curve_steps(64)) < {*curve_steps(1000), 64}

    @for_each(
        ("size", "longest", "expected"),
        [(16, 9, 64), (16, 48, 64), (16, 96, 128), (32, 9, 128), (32, 480, 640), (8, 20, 64), (20, 10, 80)],
    )
    def test_in_proportion_to_size_or_longest_solution(self, size, longest, expected):
        targets = np.zeros((2, 18, size + 2), bool)  # the longer side counts
        targets[1].reshape(-1)[:longest] = True
        assert default_steps(NCA(4, 4, n_iterations=64), targets) == expected
        assert default_steps(NCA(4, 4, shared_weights=False, n_iterations=5), targets) == 5

    def test_bounds_precede_numbers_and_numbers_precede_two_iterations_per_tile(self):
        targets, policy = np.ones((1, 18, 18), bool), Oracle()
        assert default_steps(NCA(4, 4, n_iterations=None), targets) == default_steps(policy, targets) == 2 * 324
        policy.guarantees = Guarantees(n_iterations=24)
        assert default_steps(policy, targets[:, :, :3]) == 27
        policy.guarantees = Guarantees(n_iterations=24, bound=StepBound(constant=5, per_move=2))
        assert default_steps(policy, targets[:, :, :3]) == 5 + 2 * 53

    def test_a_handcoded_automaton_gets_enough(self):
        targets = np.ones((1, 10, 12), bool)
        for name in ("shortest-path-bfs", "depth-first", "diameter"):
            assert default_steps(load(name), targets) == load(name).guarantees.enough_steps(10, 12)

    def test_unshared_weights_set_the_number_of_iterations(self):
        policy = NCA(4, 4, shared_weights=False, n_iterations=5)
        check_steps(policy, 5)
        refused(r"has weights for 5 iterations, .* it cannot run for 6", measure, policy, SMALL, 6)


class TestEvaluate:
    def test_iterations_of_exact_policies(self):
        evaluation = measure(load("shortest-path-bfs"), SMALL)
        assert evaluation.n_levels == 60
        assert evaluation.final.accuracy == Estimate(1, 1, 1)
        assert evaluation.final.complete == evaluation.final.optimal == proportion(np.ones(60, bool))
        assert evaluation.agreement == {kind: float(kind == "canonical") for kind in KINDS}
        needed = 2 * max(canonical_shortest_path(level).sum() for level in SMALL.tiles)
        assert evaluation.curve[-1].step == evaluation.n_steps == needed

    def test_the_diameter(self):
        levels = test_levels("rooms", 6, "diameter", 20)
        assert measure(load("diameter"), levels).final.complete.value == 1

    def test_every_point_of_the_curve_is_a_rollout_of_that_length(self):
        policy = NCA(4, 6, n_iterations=7, generator=torch.Generator().manual_seed(3))
        evaluation = measure(policy, SMALL, 12, batch=7)
        assert [point.step for point in evaluation.curve] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12]
        maze, targets = torch.from_numpy(one_hot(SMALL.tiles)), shortest_path(SMALL.tiles)
        for point in evaluation.curve:
            with torch.no_grad():
                path = rollout(policy, maze, point.step)[:, 0].numpy()
            expected = score(SMALL.tiles, path, targets)
            assert asdict(point.metrics.accuracy) == pytest.approx(asdict(mean(expected.accuracy)), rel=1e-4)
            assert point.metrics.paper_accuracy.value == pytest.approx(paper_accuracy(path, targets), rel=1e-4)
            assert point.metrics.complete == proportion(expected.complete)

    @for_each("batch", [1, 17, None])
    def test_batches_do_not_matter(self, batch):
        policy = load("nca-shortest-path-hinted")
        assert measure(policy, SMALL, 20, batch=batch).agreement == measure(policy, SMALL, 20).agreement

    def test_requested_steps(self):
        evaluation = measure(Counts(), SMALL, 30, steps=[5, 9])
        assert [point.step for point in evaluation.curve] == [5, 9, 30]

    def test_a_rollout_ends_at_a_fixed_point(self):
        assert [point.step for point in measure(Oracle(), SMALL, 1000).curve] == [1, 2, 3]
        assert measure(Counts(), SMALL, 100).curve[-1].step == 100

    def test_a_curve_may_fall(self):
        curve = {point.step: point.metrics.complete.value for point in measure(Dies(), SMALL, 40, steps=[20, 21]).curve}
        assert curve == {20: 1, 21: 0, 40: 0} or curve == {20: 1, 21: 0}
        assert measure(Flips(), SMALL, 8).agreement["nothing"] == 1  # the state is periodic but its path changes
        assert measure(Flips(), SMALL, 9).agreement["canonical"] == 1

    def test_progress_adds_up(self):
        for policy, n_steps in ((Oracle(), 50), (Counts(), 50), (Flips(), 9)):
            progress = []
            measure(policy, SMALL, n_steps, batch=13, report=progress.append)
            assert sum(progress) == 60 * n_steps

    @for_each("name", ["all-shortest-paths", "depth-first"])
    def test_other_outputs_are_compared_with_their_target(self, name):
        evaluation = measure(load(name), SMALL)
        assert evaluation.final.complete.value == evaluation.final.optimal.value == evaluation.final.accuracy.value == 1
        assert evaluation.agreement == {}

    @for_each(
        ("policy", "levels", "options", "message"),
        [
            (
                "diameter",
                SMALL,
                {},
                "for the task 'diameter', whose levels have no source and target; level 0 has a so",
            ),
            ("depth-first", clear_endpoints(SMALL.tiles), {}, "'shortest-path', whose levels have a source and target"),
            ("depth-first", SMALL, {"n_steps": 0}, "at least 1 iteration, got 0"),
            ("depth-first", SMALL, {"batch": 0}, "batch must be at least 1, got 0"),
            ("depth-first", SMALL, {"n_steps": 5, "steps": [6]}, r"steps must be from 1 to n_steps, 5, got \[6\]"),
            ("depth-first", parse("S#T")[None], {}, "level 0 of 1 is unsolvable"),
            ("depth-first", SMALL.tiles[:0], {}, "at least one level, got 0"),
        ],
    )
    def test_wrong_use_is_explained(self, policy, levels, options, message):
        refused(message, measure, load(policy), levels, **options)


class TestAgreement:
    @for_each(
        ("drawing", "kind"),
        [
            ("*.. *.. ***", "canonical"),
            ("*** ..* ..*", "other optimum"),
            ("*** *.* ***", "extra tiles"),
            ("*.. *.. **.", "broken path"),
            ("... ... .**", "broken path"),
            ("*.. .*. ..*", "through walls"),
            ("... ... ...", "nothing"),
        ],
    )
    def test_kinds_of_shortest_paths(self, drawing, kind):
        assert self.kind(SHORTEST_PATH, TWO_WAYS, drawn(drawing)) == kind

    def test_a_detour(self):
        level = parse("S..\n.#.\nT..")
        assert self.kind(SHORTEST_PATH, level, drawn("*** *.* ***")) == "extra tiles"
        assert self.kind(SHORTEST_PATH, level, drawn("*** ..* ***")) == "longer path"

    @for_each(
        ("drawing", "kind"),
        [("***** ..*..", "extra tiles"), ("***** .....", "canonical"), (".**** .....", "broken path")],
    )
    def test_kinds_of_diameters(self, drawing, kind):
        assert self.kind(DIAMETER, parse("-----\n##-##".replace("-", ".")), drawn(drawing)) == kind

    @staticmethod
    def kind(task, level, path):
        target = task.solve(level[None])
        optimal = score(level[None], path[None], target).optimal
        return list(KINDS)[path_kinds(task, level[None], path[None], target, optimal)[0]]

    def test_random_sets_of_tiles_against_networkx(self):
        tiles = test_levels("sparse", 5, "shortest-path", 300).tiles
        targets = shortest_path(tiles)
        rng = np.random.default_rng(1)
        paths = targets ^ (rng.random(tiles.shape) < 0.02)
        paths[100:] = shortest_path(
            np.where((tiles == Tile.EMPTY) & (rng.random(tiles.shape) < 0.2), Tile.WALL, tiles)
        )[100:]
        computed = path_kinds(SHORTEST_PATH, tiles, paths, targets, score(tiles, paths, targets).optimal)
        kinds = [kind_by_networkx(*level) for level in zip(tiles, paths, targets, strict=True)]
        assert [list(KINDS)[kind] for kind in computed] == kinds
        assert set(kinds) == set(KINDS)

    def test_canonical_diameters(self):
        tiles = test_levels("sparse", 5, "diameter", 20).tiles
        paths = np.stack([canonical_diameter(level) for level in tiles])
        kinds = path_kinds(DIAMETER, tiles, paths, diameter(tiles), np.ones(20, bool))
        assert set(kinds) == {list(KINDS).index("canonical")}


def kind_by_networkx(level, path, target):
    places = {tuple(place) for place in np.argwhere(path).tolist()}
    if (path == target).all():
        return "canonical"
    if frozenset(places) in optimal_shortest_paths(level):
        return "other optimum"
    if not places:
        return "nothing"
    if any(level[place] == Tile.WALL for place in places):
        return "through walls"
    graph = grid_graph(level).subgraph(places)
    ends = place_of(level, Tile.SOURCE), place_of(level, Tile.TARGET)
    if not set(ends) <= places or not nx.has_path(graph, *ends):
        return "broken path"
    return "extra tiles" if nx.shortest_path_length(graph, *ends) + 1 == target.sum() else "longer path"


def test_levels_may_be_a_set_or_tiles():
    assert measure(Oracle(), SMALL.tiles, 3) == measure(Oracle(), LevelSet(SMALL.tiles), 3)


def test_a_named_set_is_described_by_the_levels_that_are_taken():
    assert first_levels("perfect-9", 3).config["n"] == 3
    assert first_levels("perfect-9", None).config["n"] == len(first_levels("perfect-9", None))


def test_f1_and_iou_agree_with_sets_of_tiles():
    rng = np.random.default_rng(0)
    for shape in ((20, 4, 5), (20, 2, 4, 5)):
        paths, targets = rng.random((2, *shape)) < rng.random((20,) + (1,) * (len(shape) - 1))
        paths[:2], targets[0] = False, False
        scores = score_named(("f1", "iou"), np.zeros((20, 4, 5), np.uint8), paths, targets)
        for i in range(20):
            a, b = ({*zip(*np.nonzero(maps[i]), strict=True)} for maps in (paths, targets))
            iou = len(a & b) / len(a | b) if a | b else 1.0
            assert (scores["iou"][i], scores["f1"][i]) == pytest.approx((iou, 2 * iou / (1 + iou)))
