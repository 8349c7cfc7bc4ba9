"""The guarantees of policies (bounds, exactness, drawings) are true."""

import json
from importlib import import_module

import numpy as np
import pytest
import torch
from oracles import optimal_shortest_paths
from scripted_policies import Counts, Dies, Flips, Freezes, Oracle, Trembles
from tables import for_each, refused

from maze_nca_gym.agents import find_policy, load, rollout
from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.policies.guarantees import Guarantees, StepBound, all_shortest_paths, reachable
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.pretrained import cards, load_pretrained
from maze_nca_gym.agents.rollouts.iterating import finished, iterate
from maze_nca_gym.agents.training.config import TrainingConfig
from maze_nca_gym.mazes import solvers
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.levels import one_hot, parse

SHIPPED = {name: card for name, card in cards().items() if "unshipped" not in card}


class TestStepBound:
    def test_terms_of_a_guarantee(self):
        bound = StepBound(constant=3, per_move=2, per_tile=0.5, per_move_and_tile=1)
        assert bound(n_tiles=7, n_moves=4) == 3 + 8 + 3.5 + 28 + 0.5
        assert str(bound) == "L A + 2 L + 0.5 A + 3"

    def test_without_a_length_the_longest_possible_is_used(self):
        policy = load("nca-shortest-path-exact-weights")
        assert policy.guarantees.enough_steps(5, 6) == 2 * 29 + 2
        assert policy.guarantees.enough_steps(5, 6, n_moves=10) == 22
        assert load("nca-shortest-path").guarantees.enough_steps(5, 6) is None


class TestGuarantees:
    @for_each("name", SHIPPED)
    def test_cards_agree_with_the_files(self, name):
        card, model = SHIPPED[name], load_pretrained(name)
        assert Guarantees.from_json(card["guarantees"]) == model.guarantees
        info = find_policy(name)
        expected = card["task"], card["description"], card["guarantees"]["exact"], card["metrics"], card["role"]
        assert (info.task, info.description, info.exact, info.scores, info.role) == expected
        assert info.when == card.get("when", "")
        assert {"made_by", "data", "measured"} <= set(card)
        assert all(isinstance(value, float) for value in card["metrics"].values())
        assert json.loads(json.dumps(card)) == card

    @pytest.mark.usefixtures("forgotten")
    @for_each("name", [name for name, card in cards().items() if "configuration" in card])
    def test_the_present_code_reads_the_configuration_of_a_card(self, name):
        values = cards()[name]["configuration"]
        if "automaton" in values:
            assert values.items() <= HintConfig(**values).to_json().items()
            return
        for module in cards()[name].get("modules", ()):
            import_module(module)
        config = TrainingConfig.from_json(values)
        assert values.items() <= config.to_json().items()
        if name not in SHIPPED:
            return
        model = load(name)
        assert (config.task, config.n_channels) == (model.task, model.n_channels)
        assert config.make_model().n_weights == model.n_weights


class TestFinished:
    maze = torch.from_numpy(one_hot(test_levels("random", 8, "shortest-path", 3).tiles))

    def finished_after(self, policy, n_steps):
        (answer,) = set(finished(policy, self.maze, rollout(policy, self.maze, n_steps), n_steps).tolist())
        return answer

    @for_each(
        ("policy", "n_steps", "has"),
        [
            (Oracle(), 1, True),
            (Freezes(), 1, True),
            (Counts(), 40, False),  # a state that keeps changing
            (Flips(), 40, False),  # a path that alternates
            (Dies(), 10, False),
            (Dies(), 22, True),
        ],
    )
    def test_guarantee_of_a_fixed_point(self, policy, n_steps, has):
        assert self.finished_after(policy, n_steps) == has

    def test_an_episode_with_a_last_iteration_may_rest_after_it(self):
        model = NCA(4, 3, n_iterations=5)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        assert not self.finished_after(model, 3)
        assert self.finished_after(model, 5)
        assert len([*iterate(model, self.maze, 20, until_finished=True)]) == 1 + 5 + 2

    def test_proven_networks_finish_despite_rounding(self):
        policy = Trembles()
        assert not self.finished_after(policy, 9)
        policy.guarantees = Guarantees(exact=True, bound=StepBound(constant=1), basis="proven")
        assert self.finished_after(policy, 9)


class TestDrawings:
    def test_all_shortest_paths(self):
        tiles = test_levels("sparse", 8, "shortest-path", 40).tiles
        for level, all_paths in zip(tiles, all_shortest_paths(tiles), strict=True):
            places = {place for path in optimal_shortest_paths(level) for place in path}
            assert {tuple(place) for place in np.argwhere(all_paths).tolist()} == places

    def test_reachable(self):
        tiles = parse("S.#.\n.T#.")[None]
        assert reachable(tiles).astype(int).tolist() == [[[1, 1, 0, 0], [1, 1, 0, 0]]]
        assert (solvers.shortest_path(tiles) <= reachable(tiles)).all()


NESTED = {"also": {"diameter": 3}}
NO_JSON = ([], {"nice": True}, {"bound": 3}, {"largest_count": 0}, {"bound": {"per_year": 1}}, {"also": 3}, NESTED)
NO_BOUNDS = {
    "constant must be at least 0": {"constant": -1},
    "per_move must be at least 0": {"per_move": float("nan")},
    "per_tile must be of type": {"per_tile": "8"},
    "a bound must not be 0": {},
}


@for_each(
    ("make", "arguments", "message"),
    [
        *((StepBound, bound, message) for message, bound in NO_BOUNDS.items()),
        (Guarantees, {"exact": 1}, "exact must be of type bool"),
        (Guarantees, {"exact": True}, "must state a bound"),
        (Guarantees, {"n_iterations": 0}, "n_iterations must be from 1"),
        (Guarantees, {"n_iterations": True}, "n_iterations must be of type int"),
        (Guarantees, {"needs_border": "yes"}, "needs_border must be of type bool"),
        *((Guarantees.from_json, {"content": values}, "must be a table of") for values in NO_JSON),
    ],
)
def test_what_is_refused(make, arguments, message):
    refused(message, make, **arguments)
