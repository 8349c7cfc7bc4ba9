"""The list of engines is open to a user's engines, and to policies that provide data for engines."""

from __future__ import annotations

import torch
from rollout_samples import assert_near, gradients, mazes, network, noise
from tables import for_each
from torch import Tensor

from maze_nca_gym.agents.policies.policy import EngineHints, Policy
from maze_nca_gym.agents.policies.program import Program
from maze_nca_gym.agents.rollouts import engines
from maze_nca_gym.agents.rollouts.iterating import rollout
from maze_nca_gym.agents.rollouts.pytorch import RolloutRequest, threads


class Halves(Policy):
    """A user's policy that is a convolution, which only its data states."""

    def __init__(self) -> None:
        super().__init__("shortest-path", 4, ("path", "other"))
        self.stationary_from = 0
        self.weight = torch.nn.Parameter(0.2 * noise(2, 6, 9))
        self.bias = torch.nn.Parameter(0.1 * noise(2))

    def program(self) -> Program:
        return Program("relu", ("empty", "wall", "source", "target"), self.weight, self.bias, 3, tuple(range(9)))

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        program = self.program()
        inputs = torch.cat([maze, state.clamp(min=0)], dim=1)
        return torch.nn.functional.conv2d(inputs, program.kernel, program.bias, padding=1).relu()


def test_a_custom_policy_uses_the_same_list():
    policy, maze = Halves(), mazes(3, 5, 6)
    assert engines.engine_for(policy, maze) is engines.MACHINE_CODE
    states = rollout(policy, maze, [2, 5])
    with engines.preferring(engines.STEPPING):
        expected = rollout(policy, maze, [2, 5])
    assert_near(states, expected, 1e-5)
    assert_near(gradients(policy, states), gradients(policy, expected), 1e-4)


@for_each("gains", [True, False])
def test_only_iterations_that_gain_from_threads_run_on_several(gains):
    class Watched(Halves):
        engine_hints = EngineHints(gains_from_threads=gains)

        def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
            numbers_of_threads.append(torch.get_num_threads())
            return super().update(maze, state, step)

    numbers_of_threads: list[int] = []
    with engines.preferring(engines.STEPPING), threads(3), torch.no_grad():
        rollout(Watched(), mazes(1, 3, 3), 2)
    assert numbers_of_threads == [3 if gains else 1] * 2


def test_a_custom_engine_joins_the_list():
    class Nothing:
        def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
            return policy.n_channels == 2

        def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: RolloutRequest) -> list[Tensor]:
            return [torch.full((len(maze), 2, *maze.shape[2:]), float(n_steps)) for n_steps in request.keep]

    maze = mazes(1, 3, 3)
    with engines.preferring(Nothing()):
        assert [float(state.amax()) for state in rollout(Halves(), maze, [2, 5])] == [2, 5]
        assert engines.engine_for(network(4), maze) is engines.MACHINE_CODE
    assert engines.engine_for(Halves(), maze) is engines.MACHINE_CODE
