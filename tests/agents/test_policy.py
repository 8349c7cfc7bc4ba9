from __future__ import annotations

import numpy as np
import torch
from tables import for_each, refused
from torch import nn

from maze_nca_gym.agents import Policy, iterate, rollout


class Counting(Policy):
    """A policy that adds the step's number, a weight and the walls to every channel."""

    def __init__(self) -> None:
        super().__init__("diameter", 2, ["path", "hidden"])
        self.weight = nn.Parameter(torch.tensor([[0.5]]))
        self.bias = nn.Parameter(torch.zeros(3))

    def update(self, maze, state, step):
        assert state.shape[1] == 2
        return state + step + self.weight + maze[:, 1:]


class Doubling(Policy):
    def __init__(self) -> None:
        super().__init__("shortest-path", 4, ["path"])

    def update(self, maze, state, step):
        return 2 * state


def observation(n: int | None = None, channels: int = 2) -> dict[str, np.ndarray]:
    batch = () if n is None else (n,)
    rng = np.random.default_rng(0)
    return {
        "maze": rng.integers(0, 2, (*batch, 2, 3, 4)).astype(np.float32),
        "state": rng.random((*batch, channels, 3, 4), dtype=np.float32),
    }


def test_a_policy_describes_itself():
    policy = Counting()
    assert (policy.n_channels, policy.n_tiles, policy.task) == (2, 2, "diameter")
    assert policy.channel_names == ("path", "hidden")
    assert policy.n_weights == 1, "biases are not counted"
    assert policy.device == torch.device("cpu")
    assert Doubling().device == torch.device("cpu")


@for_each("n", [None, 1, 3])
def test_predict_returns_the_next_state_and_counts(n):
    observations = observation(n)
    action, counters = Counting().predict(observations)
    assert action.dtype == np.float32
    np.testing.assert_array_equal(action, observations["state"] + np.float32(0.5) + observations["maze"][..., 1:, :, :])
    assert isinstance(counters, tuple)
    np.testing.assert_array_equal(counters[0], np.ones(n or 1))
    assert counters[0].dtype == np.int64


def test_predict_runs_each_environment_at_its_own_step():
    observations = observation(4)
    observations["state"][2] = 0  # the state of a new episode
    policy = Counting()
    before = (np.array([7, 3, 7, 0]),)
    action, after = policy.predict(observations, before, np.array([False, False, True, False]))
    np.testing.assert_array_equal(before[0], [7, 3, 7, 0], err_msg="predict changed its argument")
    np.testing.assert_array_equal(after[0], [8, 4, 1, 1])
    for env, step in enumerate([7, 3, 0, 0]):
        alone = policy(*(torch.from_numpy(observations[key][env : env + 1]) for key in ("maze", "state")), step)
        np.testing.assert_array_equal(action[env], alone[0].detach().numpy())
    _, after = policy.predict(observations, before, np.ones(4, bool))
    np.testing.assert_array_equal(after[0], [0, 0, 1, 0], err_msg="autoreset ignores an action on an old state")


def test_predict_runs_one_batch_where_steps_do_not_matter():
    batches = []

    class Timeless(Doubling):
        stationary_from = 0

        def update(self, maze, state, step):
            batches.append(len(state))
            return super().update(maze, state, step)

    observations = {"maze": np.zeros((3, 4, 2, 2), np.float32), "state": np.ones((3, 1, 2, 2), np.float32)}
    action, counters = Timeless().predict(observations, (np.array([4, 0, 9]),))
    assert batches == [3]
    np.testing.assert_array_equal(counters[0], [5, 1, 10])
    np.testing.assert_array_equal(action, 2 * observations["state"])


def test_predict_accepts_read_only_and_strided_arrays():
    observations = observation(2)
    plain, _ = Counting().predict(observations)
    for array in observations.values():
        array.setflags(write=False)
    strided = {key: array[:, :, ::-1][:, :, ::-1] for key, array in observations.items()}
    np.testing.assert_array_equal(Counting().predict(strided)[0], plain)


@for_each(
    ("value", "got"),
    [
        ((observation(None), {"target": None}), "got tuple"),  # the value of env.reset()
        ((observation(2), 0.0, False, False, {}), "got tuple"),
        (observation(None)["maze"], "got ndarray"),
        (torch.zeros(4, 3, 3), "got Tensor"),
        ({"maze": observation(None)["maze"]}, "got dict of maze"),
        (None, "got NoneType"),
    ],
)
def test_predict_names_the_missing_argument(value, got):
    message = r"^predict takes an observation, the dict with maze and state that env.reset\(\) returns first, .*" + got
    refused(message + "$", Counting().predict, value)


def test_rollout_iterates_under_the_dynamics():
    maze = torch.zeros(1, 4, 2, 2)
    state = torch.tensor([[[[1.0, -1.0], [0.0, 3.0]]]])
    states = list(iterate(Doubling(), maze, 30, state))
    assert len(states) == 31
    assert torch.equal(states[0], state)
    assert torch.equal(states[2], 4 * state)
    limit = 2.0**24
    assert states[-1].flatten().tolist() == [limit, -limit, 0.0, limit]
    assert torch.equal(rollout(Doubling(), maze, 30, state), states[-1])


def test_gradients_flow_through_a_rollout():
    policy = Counting()
    rollout(policy, torch.zeros(1, 2, 2, 2), 3).sum().backward()
    assert policy.weight.grad == 3 * 8


ZEROS, COUNTING = torch.zeros(1, 2, 3, 3), Counting()
WIDE = torch.zeros(1, 2, 3, 4)


@for_each(
    ("call", "arguments", "message"),
    [
        (Policy, ["sudoku", 4, ["path"]], "unknown task 'sudoku'; known: shortest-path, diameter"),
        (Policy, ["shortest-path", 2, ["path"]], "n_tiles must be at least 4 for the task shortest-path, got 2"),
        (Policy, ["diameter", 2, ["age", "path"]], "first channel must be called 'path'"),
        (Policy, ["diameter", 2, []], "first channel must be called 'path'"),
        (Policy, ["diameter", 2, ["path", "age", "age"]], "two channels have the same name"),
        (COUNTING, [ZEROS, ZEROS[:, :1]], "needs 2 state channels, got 1"),
        (COUNTING, [torch.zeros(1, 4, 3, 3), ZEROS], "reads 2 maze channels, got 4"),
        (COUNTING, [ZEROS, WIDE], "agree in batch, height and width"),
        (COUNTING, [torch.zeros(2, 2, 3, 3), ZEROS], "agree in batch, height and width"),
        (COUNTING, [torch.zeros(2, 3, 3), torch.zeros(2, 3, 3)], "must have shapes"),
        (COUNTING, [ZEROS.double(), ZEROS], "share a floating dtype"),
        (COUNTING, [ZEROS.int(), ZEROS.int()], "share a floating dtype"),
        (COUNTING.predict, [observation(None), {"target": None}], "state must be the counts that the last call of pre"),
        (COUNTING.predict, [observation(2), (np.zeros(3, int),)], r"state .* one value for each of 2 .*, got \(3,\)"),
        (COUNTING.predict, [observation(2), None, np.zeros(1, bool)], "episode_start must hold one value for each of"),
        (rollout, [COUNTING, ZEROS, -1], "steps must be at least 0, got -1"),
        (rollout, [COUNTING, torch.zeros(2, 2, 2), 1], r"\(B, T, H, W\), got \(2, 2, 2\)"),
        (rollout, [COUNTING, ZEROS, 1, ZEROS[:, :1]], "needs 2 state channels, got 1"),
        (rollout, [COUNTING, torch.zeros(1, 2, 0, 5), 2], r"a maze needs at least one tile, got shape \(1, 2, 0, 5\)"),
        (rollout, [COUNTING, torch.zeros(1, 2, 5, 0), 2], r"a maze needs at least one tile, got shape \(1, 2, 5, 0\)"),
    ],
)
def test_what_is_refused(call, arguments, message):
    refused(message, call, *arguments)
