"""An environment for any policy in one line, and the messages if a policy does not fit."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from fresh_models import FRESH_MLP
from gymnasium.envs.registration import EnvSpec
from tables import for_each, refused

from maze_nca_gym.agents import Policy, find_policy, list_policies, load, make_env
from maze_nca_gym.agents.policies.guarantees import DRAWINGS, Guarantees, StepBound
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import facts
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.training.config import changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.mazes.levels import parse

TWO_ROWS = "S..\n..T"
"""A level without a border."""
PLAIN = parse("####\n#ST#\n#..#\n####")


class Still(Policy):
    """A policy that draws nothing, with any guarantees."""

    def __init__(self, task="shortest-path", guarantees=None):
        super().__init__(task, 4 if task == "shortest-path" else 2, ("path",))
        self.guarantees = guarantees or Guarantees()

    def update(self, maze, state, step):
        return state


def run(policy, env, n_steps):
    observation, _ = env.reset(seed=0)
    counters = None
    for _ in range(n_steps):
        action, counters = policy.predict(observation, counters)
        observation, _, terminated, truncated, info = env.step(action)
    return info, terminated, truncated


def test_options_are_forwarded_and_replace_choices_of_the_policy():
    policy = load("shortest-path-bfs")
    env = policy.make_env(size=(4, 7), generator="perfect", n_channels=20, channel_names=["path"], render_mode="ansi")
    assert env.action_space.shape == (20, 6, 9)
    assert env.render_mode == "ansi"
    assert policy.make_env(levels=TWO_ROWS).action_space.shape == (11, 2, 3)
    assert load(FRESH_MLP).make_env(levels="FourRooms").action_space.shape[1:] == (15, 15)
    refused("unknown generator", policy.make_env, generator="none")
    refused(r"Did you mean 'diameter'\?", make_env, "diametre")


@for_each("name", ["shortest-path-bfs", FRESH_MLP])
def test_a_spec_makes_the_same_environment(name):
    env = make_env(name, size=6, max_episode_steps=9) if name == "shortest-path-bfs" else make_env(name)
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        again = gym.make(spec)
        assert again.spec.max_episode_steps == env.spec.max_episode_steps
        assert again.observation_space == env.observation_space
        assert again.unwrapped._view._names == load(name).channel_names
        assert again.spec.kwargs["highlight"] == load(name).highlight


class TestEpisodeSteps:
    BOUNDED = Still(guarantees=Guarantees(bound=StepBound(constant=2, per_move=2)))

    @for_each(
        ("policy", "options", "steps"),
        [
            (BOUNDED, {}, 512),
            (BOUNDED, {"size": 32}, 2 * (32 * 32 - 1) + 2),
            (BOUNDED, {"size": 32, "max_episode_steps": 7}, 7),
            (BOUNDED, {"levels": "ST\n.."}, 512),
            # a level without inner tiles may need as many moves as it has tiles
            (BOUNDED, {"levels": f"S{1998 * '.'}T"}, 2 * 1999 + 2),
            (Still(), {"size": 32}, 512),
        ],
    )
    def test_long_enough_for_the_policy(self, policy, options, steps):
        assert policy.make_env(**options).spec.max_episode_steps == steps
        assert policy.make_env(num_envs=3, **options).unwrapped._max_episode_steps == steps

    def test_not_longer_than_there_are_weights(self):
        policy = load("gat-shortest-path-baseline")
        assert policy.max_steps == 16
        env = policy.make_env()
        _, terminated, truncated = run(policy, env, 16)
        assert terminated or truncated
        assert env.spec.max_episode_steps == 16


@for_each(
    ("needs_border", "options", "warned"),
    [
        (True, {"levels": TWO_ROWS}, True),
        # one level without a border is enough
        (True, {"levels": np.stack([PLAIN, np.where(np.arange(4) == 0, 0, PLAIN)])}, True),
        (True, {"border": False}, True),
        (True, {"border": False, "num_envs": 2}, True),
        (True, {}, False),
        (True, {"levels": "FourRooms"}, False),
        (True, {"border": True}, False),
        (False, {"levels": TWO_ROWS}, False),
    ],
)
def test_levels_without_a_border_are_warned_of_where_it_is_needed(needs_border, options, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Still(guarantees=Guarantees(needs_border=needs_border)).make_env(**options)
    assert len(caught) == warned
    assert all("the policy Still needs a wall around every level" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_iterations_are_counted_from_the_first_state_of_an_episode(mode):
    policy = NCA(4, 6, n_iterations=3, shared_weights=False, generator=torch.Generator().manual_seed(0))
    env = policy.make_env(2, size=5, autoreset_mode=mode)
    observation, _ = env.reset(seed=1)
    counters, starts, n_episodes = None, np.ones(2, bool), 0
    for _ in range(12):
        action, counters = policy.predict(observation, counters, starts)
        before, (observation, _, terminated, truncated, _) = observation, env.step(action)
        for i in np.flatnonzero(~before["state"].any(axis=(1, 2, 3))):
            n_episodes += 1
            maze, zeros = (torch.from_numpy(before[key][[i]]) for key in ("maze", "state"))
            np.testing.assert_allclose(action[i], policy(maze, zeros, 0)[0].detach(), atol=1e-5)
            assert counters[0][i] == 1
        starts = terminated | truncated
    assert n_episodes >= 6
    env.close()


class TestMessages:
    def test_the_wrong_task(self):
        observation, _ = gym.make("MazeShortestPath-v0", size=4).reset(seed=0)
        with pytest.raises(ValueError, match=r"reads 2 maze channels, got 4: .* task diameter; .* policy.make_env\(\)"):
            load("diameter").predict(observation)

    def test_too_few_channels_and_the_call_that_helps(self):
        policy = load("diameter")
        observation, _ = gym.make("MazeDiameter-v0", size=4, n_channels=3).reset(seed=0)
        with pytest.raises(ValueError, match="needs 31 state channels, got 3: ") as error:
            policy.predict(observation)
        call = str(error.value).split(" or ")[1]
        assert call == "gym.make('MazeDiameter-v0', n_channels=31)"
        policy.predict(eval(call).reset(seed=0)[0])


class TestLevelsThatThePolicyIsMeantFor:
    """The model file states the family and the size, unless an option replaces them."""

    MEANT = Guarantees(family="loops", size=9)

    @for_each(
        ("options", "levels"),
        [
            ({}, {"generator": "loops", "loop_fraction": 0.1, "size": 9}),
            ({"size": 5}, {"generator": "loops", "loop_fraction": 0.1, "size": 5}),
            ({"loop_fraction": 0.3}, {"generator": "loops", "loop_fraction": 0.3, "size": 9}),
            ({"generator": "perfect"}, {"generator": "perfect", "size": 9}),
            ({"levels": TWO_ROWS}, {"levels": TWO_ROWS}),
        ],
    )
    @for_each("num_envs", [None, 2])
    def test_options_of_the_environment(self, num_envs, options, levels):
        spec = Still(guarantees=self.MEANT).make_env(num_envs, **options).spec
        names = ("generator", "size", "levels", "loop_fraction", "wall_probability")
        assert {name: value for name, value in spec.kwargs.items() if name in names} == levels

    def test_model_files_store_the_levels_for_every_environment(self, tmp_path):
        model = NCA(4, 5)
        model.guarantees = self.MEANT
        path = str(save_model(model, tmp_path / "model"))
        observation, _ = make_env(path).reset(seed=3)
        assert observation["maze"].shape == (4, 11, 11)
        assert observation["maze"].tobytes() == load(path).make_env().reset(seed=3)[0]["maze"].tobytes()
        assert find_policy(path).family == "loops"
        assert facts(load(path))["levels"] == "loops 9 x 9"

    def test_an_unknown_family(self):
        with pytest.raises(ValueError, match=r"unknown family of levels 'lops'.* Did you mean 'loops'"):
            Still(guarantees=Guarantees(family="lops")).make_env()

    def test_training_stores_them(self):
        for options, family, size in (
            ({}, None, None),
            ({"families": ("perfect",), "sizes": (8,)}, "perfect", 8),
            ({"families": ("loops", "random"), "sizes": (24,)}, None, 24),
            ({"families": ("perfect", "loops"), "sizes": (12, 24)}, "perfect", None),
        ):
            guarantees = LevelStream(changed("fast", **options)).guarantees
            assert (guarantees.family, guarantees.size) == (family, size)


def finals(policy, n, **options):
    """Return the figures at the end of the first episode of n environments, by the README's ten lines, (n,) each."""
    env = policy.make_env(num_envs=n, **options)
    observation, info = env.reset(seed=list(range(n)))
    state, ended = None, np.zeros(n, bool)
    optimal, accuracy = np.zeros(n, bool), np.zeros(n)
    while not ended.all():
        action, state = policy.predict(observation, state)
        observation, _, terminated, truncated, info = env.step(action)
        new = ~ended & (terminated | truncated)
        optimal[new], accuracy[new] = info["optimal"][new], info["accuracy"][new]
        ended |= new
    return optimal, accuracy


@for_each("name", list_policies(all=True))
def test_the_readme_example_solves_as_many_levels_as_listed_with_every_policy(name):
    policy, info = load(name), find_policy(name)
    if policy.output in DRAWINGS:  # environments score a single path, but these policies draw something else
        assert facts(policy)["drawing"].startswith("draws ")
        assert policy.make_env(size=4).reset(seed=0)
        return
    size = {} if policy.size is not None else {"size": 5 if info.exact else 9}
    optimal, accuracy = finals(policy, 2 if info.exact else 8, **size)
    if info.exact:
        assert optimal.all()
        assert accuracy.min() > 0.99
        return
    share = info.scores[f"complete, {info.family or 'random'}-16"]
    assert optimal.mean() >= round(8 * share - 1.5) / 8  # eight levels, each solved at any iteration
    assert accuracy.mean() > share / 2
