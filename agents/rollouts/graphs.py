"""Policies on graphs: at each node they read the nodes behind its four doors instead of a tile's four neighbours."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.mazes.graphs import Graph
from maze_nca_gym.mazes.neighbours import DIRECTIONS, offsets
from maze_nca_gym.support.options import check

from ..policies.guarantees import DRAWINGS
from ..policies.handcoded.base import HandcodedNCA
from ..policies.identity import speaks_for
from ..policies.policy import Policy, is_precise, program_of, stationary_from
from ..policies.program import RELU, rectified
from ..policies.registry import load


class OnGraph(Policy):
    """A policy that runs on a graph. Its mazes assign a kind of tile to each node, as arrays with the shape of
    `Graph.tiles`.

    `rollout`, `iterate`, `solve` and `evaluate` accept it, with `graph.tiles`, or other kinds of the same nodes, as
    levels; optimal means optimal on the graph. Guarantees for mazes do not hold on graphs, so the policy is not exact,
    and its bound is only stated. `prove(automaton, on="graphs")` proves the automaton of a network with a certificate
    on all graphs.

    >>> torus = Graph.of(tiles, edges="torus")
    >>> solve(OnGraph(load("nca-shortest-path-hinted"), torus), levels=torus.tiles[None])

    Args:
        policy: the policy, which is not copied; or its name for `load`.
        graph: the graph.

    Raises:
        ValueError: a policy with iterations that are not a convolution that reads a tile and its four neighbours with
            the same weights at every iteration; a policy with an output that is not one path; or a task without an
            exact solver on graphs.
    """

    _places: Tensor

    def __init__(self, policy: str | Policy, graph: Graph) -> None:
        policy = load(policy) if isinstance(policy, str) else policy
        name, program = type(policy).__name__, program_of(policy)
        kernel: Tensor
        bias: Tensor
        if isinstance(policy, HandcodedNCA) and speaks_for(policy, "activate"):
            kernel, bias = policy.weight, policy.bias
        elif program is not None and program.activation == RELU:
            kernel, bias = program.kernel, program.bias
        else:
            raise ValueError(f"on a graph run networks with a program of ReLUs and hand-coded ones, not the {name}")
        middle = kernel.shape[-1] // 2
        places = [(middle + down, middle + right) for tap in ("C", *DIRECTIONS) for down, right in offsets(tap)]
        elsewhere = (kernel != 0).flatten(0, 1).any(dim=0)
        elsewhere[tuple(zip(*places, strict=True))] = False
        if elsewhere.any():
            corner = [index - middle for index in elsewhere.nonzero()[0].tolist()]
            raise ValueError(
                f"the {name} reads the tile at (row, column) {tuple(corner)} from each, but a graph has four doors: "
                "only a kernel that is a cross runs there"
            )
        drawing = f"its output, {policy.output}, can only be judged on grids"
        check(policy.output not in DRAWINGS, f"the {name} cannot run on a graph: {drawing}")
        super().__init__(graph.ask(policy.problem), policy.n_tiles, policy.channel_names)
        self.policy, self.graph, self._program, self._bias = policy, graph, program, bias.detach()
        self._taps = torch.cat([kernel[:, :, row, col] for row, col in places], dim=1).detach()
        doors = torch.from_numpy(graph.doors)
        self.register_buffer("_places", torch.where(doors < 0, graph.tiles.size, doors), persistent=False)
        bound = policy.guarantees.bound
        self.guarantees = replace(
            policy.guarantees, exact=False, verdict=None, also={}, basis="" if bound is None else "stated", about=None
        )
        self.stationary_from, self.highlight, self.output = stationary_from(policy), policy.highlight, policy.output

    def encode_maze(self, maze: Tensor) -> Tensor:
        """Return the static channels of a (B, T, H, W) maze, (B, S, H, W) floats.

        Raises:
            ValueError: the maze has another shape than the graph.
        """
        if maze.shape[2:] != self.graph.tiles.shape:
            raise ValueError(f"mazes must be kinds of {self.graph.tiles.shape} places, got {tuple(maze.shape[2:])}")
        return self.policy.encode_maze(maze) if isinstance(self.policy, HandcodedNCA) else maze

    def update(self, encoded: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the next state, (B, C, H, W) floats."""
        policy, program = self.policy, self._program
        if not isinstance(policy, HandcodedNCA):
            assert program is not None
            seen, encoded = state.clamp(min=0), encoded * float(program.sees_inputs or not step)
            return rectified(
                self._convolve(encoded, seen),
                below=step != program.unbounded,
                state_limit=program.state_limit,
                n_maxima=program.n_maxima,
                pool_before_activation=program.pool_before_activation,
            )
        return policy.activate(self._convolve(encoded, state), state, encoded)

    def _convolve(self, static: Tensor, state: Tensor) -> Tensor:
        # the sums of exact policies are float64, which rounds nothing, whatever the device and autocast
        dtype = torch.float64 if is_precise(self.policy) else state.dtype
        held = torch.cat([static, state], dim=1).flatten(2).to(dtype)
        known = F.pad(held, (0, 1))  # the last place is behind doors that lead nowhere
        read = torch.cat([held, *(known[:, :, behind] for behind in self._places)], dim=1)
        return (self._taps.to(held) @ read + self._bias.to(held)[:, None]).to(state.dtype).view_as(state)
