"""Where the levels of an environment come from: what is refused at once, and what a user's array may do."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from tables import for_each

from maze_nca_gym.levels import Tile, as_tiles, one_hot, parse


def test_what_no_level_can_be_made_of_is_refused_when_the_environment_is_made() -> None:
    with pytest.raises(ValueError, match="no two connected free tiles"):
        gym.make("MazeShortestPath-v0", generator="perfect", size=2)


@for_each("id", ["MazeShortestPath-v0", "MazeDiameter-v0"])
def test_the_task_decides_about_endpoints(id: str) -> None:
    with pytest.raises(ValueError, match="endpoints is no option here"):
        gym.make(id, endpoints=True)


def test_a_changed_array_changes_no_level() -> None:
    tiles = parse("S..\n..T")
    env = gym.make("MazeShortestPath-v0", levels=tiles)
    tiles[:] = parse("T..\n..S")
    observation, _ = env.reset(seed=0)
    assert observation["maze"][2, 0, 0] == 1


def test_seeds_of_the_generators_are_those_of_single_environments() -> None:
    vector = gym.make_vec("MazeShortestPath-v0", 3, size=4)
    single = SyncVectorEnv([lambda: gym.make("MazeShortestPath-v0", size=4)] * 3)
    for seed in (7, [3, None, 5]):
        vector.reset(seed=seed)
        single.reset(seed=seed)
        expected = list(single.np_random_seed)
        got = list(vector.np_random_seed)
        assert [got[0], got[2]] == [expected[0], expected[2]]
    vector.reset(options={"reset_mask": np.array([True, False, False])})
    assert list(vector.np_random_seed) == got


@pytest.mark.parametrize("make", [gym.make, lambda id, **options: gym.make_vec(id, 2, **options)], ids=["one", "many"])
def test_levels_are_chosen_by_a_function(make) -> None:
    tiles = parse("S#.\n..T")
    env = make("MazeShortestPath-v0", size=(2, 3))
    chosen = as_tiles(np.pad(tiles, 1, constant_values=Tile.WALL))
    env.unwrapped.choose_levels_with(lambda rows, draw: np.stack([chosen] * len(rows)))
    observation, _ = env.reset(seed=0)
    assert (observation["maze"] == one_hot(chosen)).all()
    env.unwrapped.choose_levels_with(lambda rows, draw: draw(rows))
    observation, _ = env.reset(seed=0)
    assert not (observation["maze"] == one_hot(chosen)).all()
