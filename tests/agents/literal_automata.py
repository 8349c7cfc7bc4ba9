"""The paper's automata as printed: each class has one mistake of the appendix in an otherwise correct automaton."""

from __future__ import annotations

import torch
from torch import Tensor

from maze_nca_gym.agents.policies.guarantees import StepBound
from maze_nca_gym.agents.policies.handcoded import base
from maze_nca_gym.agents.policies.handcoded.base import HandcodedNCA
from maze_nca_gym.agents.policies.handcoded.depth_first import DepthFirstChannel as Search
from maze_nca_gym.agents.policies.handcoded.depth_first import search_weights
from maze_nca_gym.agents.policies.handcoded.dijkstra import BIDIRECTIONAL_TABLE
from maze_nca_gym.agents.policies.handcoded.dijkstra import TwoFloodChannel as Path
from maze_nca_gym.agents.policies.handcoded.weight_table import Weight, WeightTable
from maze_nca_gym.mazes.levels import Tile

FREE = (Tile.EMPTY, Tile.SOURCE, Tile.TARGET)


def printed_step(x: Tensor) -> Tensor:
    """Appendix "Dijkstra map generation": 1 for x >= 0."""
    return (x >= 0).to(x.dtype)


def printed_sawtooth(x: Tensor, peak: float) -> Tensor:
    """Appendix "Path Extraction", its four cases in the printed order."""
    falling = torch.where(x <= peak + 1, -x + peak + 1, torch.ones_like(x))
    rising = torch.where(x <= peak, x + peak - 1, falling)
    return torch.where(x < peak - 1, torch.zeros_like(x), rising)


class Automaton(HandcodedNCA):
    """An automaton with 4 kinds of tile that counts without limits."""

    def __init__(self, table: WeightTable) -> None:
        super().__init__("shortest-path", len(Tile), table, StepBound(per_tile=8))

    def largest_count(self, height: int, width: int) -> int:
        return 0

    def step(self, x: Tensor) -> Tensor:
        return base.step(x)

    def sawtooth(self, x: Tensor, peak: float) -> Tensor:
        return base.sawtooth(x, peak)


class PathFinder(Automaton):
    """Dijkstra map generation and path extraction with every mistake corrected."""

    peak = -1

    def __init__(self) -> None:
        super().__init__(BIDIRECTIONAL_TABLE)

    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:
        path, floods, age, towards = torch.split(convolved, [1, 2, 1, 4], dim=1)
        met = base.global_max((state[:, [Path.FLOOD_S]] + state[:, [Path.FLOOD_T]] - 1).relu())
        floods = self.freeze_floods(met, state[:, [Path.FLOOD_S, Path.FLOOD_T]], self.step(floods))
        age = self.freeze_age(met, state[:, [Path.AGE]], age.relu())
        towards = self.sawtooth(towards, self.peak)
        path = self.join(path, towards.sum(dim=1, keepdim=True))
        return torch.cat([path, floods, age, towards], dim=1)

    def freeze_floods(self, met: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return torch.where(met > 0, before, after)

    def freeze_age(self, met: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return torch.where(met > 0, before, after)

    def join(self, path: Tensor, arriving: Tensor) -> Tensor:
        return self.step(self.step(path) + arriving)


class PathStepOfZero(PathFinder):
    """step(0) = 1."""

    def step(self, x: Tensor) -> Tensor:
        return printed_step(x)


class PathSawtooth(PathFinder):
    """The sawtooth that rises by x + a - 1 and ends at 1."""

    def sawtooth(self, x: Tensor, peak: float) -> Tensor:
        return printed_sawtooth(x, peak)


class PathWithoutSeed(PathFinder):
    """path = step(sum of path_i,j), which drops the convolution's own term."""

    def join(self, path: Tensor, arriving: Tensor) -> Tensor:
        return self.step(arriving)


class PathNeverFreezes(PathFinder):
    """The concatenated networks as they stand: floods and ages go on after the floods have met."""

    def freeze_floods(self, met: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return after

    def freeze_age(self, met: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return after


class PathAgesNeverFreeze(PathFinder):
    """Only the floods stop when they have met."""

    def freeze_age(self, met: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return after


class PathTowardsGreaterAge(PathFinder):
    """The path flows "exactly when this neighbor's age is greater than the current cell's by 1": 1 + 2."""

    peak = 3


class DepthFirst(Automaton):
    """The depth-first search with every mistake corrected: the appendix's forward pass, line by line."""

    unit = 5

    def __init__(self) -> None:
        weights = search_weights(Search, Search.PATH, Tile.SOURCE, Tile.WALL, FREE)
        super().__init__(WeightTable(Tile, Search, self.change(weights)))

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        return weights

    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:
        route, flow, _, stack, direction, rank = torch.split(convolved, [1, 4, 1, 1, 1, 1], dim=1)
        flow = self.flow(flow)
        route = self.step(route + self.step(flow.sum(dim=1, keepdim=True)))
        stack, direction, rank = stack.relu(), direction.relu(), rank.relu()
        twice = self.sawtooth(stack, 2)
        direction = direction - state[:, [Search.STACK_DIRECTION]] * twice
        stack, rank = self.overwrite(stack, rank, state, twice)
        pebble = route - state[:, [Search.PATH]]
        total = rank + direction
        total = total + self.zero_mask(total) * 16 * total.shape[2] * total.shape[3]
        popped = self.sawtooth(total - base.global_min(total), 0) * self.stuck(pebble)
        remaining = 1 - popped
        return torch.cat([route, flow, pebble, stack * remaining, direction * remaining, rank * remaining], dim=1)

    def flow(self, flow: Tensor) -> Tensor:
        return self.step(flow)

    def overwrite(self, stack: Tensor, rank: Tensor, state: Tensor, twice: Tensor) -> tuple[Tensor, Tensor]:
        stack = stack - state[:, [Search.STACK]] * twice
        return stack, rank - (state[:, [Search.STACK_RANK]] + self.unit) * twice

    def stuck(self, pebble: Tensor) -> Tensor:
        return 1 - self.step(base.global_max(pebble))

    def zero_mask(self, total: Tensor) -> Tensor:
        return self.sawtooth(total, 0)


class SearchStepOfZero(DepthFirst):
    """step(0) = 1."""

    def step(self, x: Tensor) -> Tensor:
        return printed_step(x)


class SearchSawtooth(DepthFirst):
    """The sawtooth that rises by x + a - 1 and ends at 1."""

    def sawtooth(self, x: Tensor, peak: float) -> Tensor:
        return printed_sawtooth(x, peak)


class SearchDisplayedPriorities(DepthFirst):
    """W_p as displayed, where left and right are exchanged compared with the text."""

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        exchanged = {"L": "R", "R": "L"}
        return tuple(
            weight._replace(kernel=exchanged.get(weight.kernel, weight.kernel))
            if (weight.out, weight.source) == (Search.STACK_DIRECTION, Search.PEBBLE)
            else weight
            for weight in weights
        )


class SearchTableRank(DepthFirst):
    """The two rows of the table that feed the rank: the pebble's own tile, and the direction instead of the rank."""

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        rank = Search.STACK_RANK
        slips = {
            (rank, Search.PEBBLE): Weight(rank, Search.PEBBLE, "C", self.unit),
            (rank, rank): Weight(rank, Search.STACK_DIRECTION, "C"),
        }
        return tuple(slips.get((weight.out, weight.source), weight) for weight in weights)


class SearchThreeByThree(DepthFirst):
    """W_DFS of 3x3 tiles: the taps two tiles away are missing."""

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        return tuple(weight for weight in weights if weight.kernel not in ("DD", "RR"))


class SearchAboveForBelow(DepthFirst):
    """W_p,(3,2) as described, "neighbour above us": the route flows in from above where it should from below."""

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        below = (Search.ROUTE_D, Search.PATH, "D")
        return tuple(
            weight._replace(kernel="U") if (weight.out, weight.source, weight.kernel) == below else weight
            for weight in weights
        )


class SearchAnyRival(DepthFirst):
    """The text: the route flows in if "any of the higher priority neighbors" is free, where none may be free."""

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        """Let a route next to the tile count 3, so that 3 minus the number of free rivals shows both."""
        flows = (Search.ROUTE_U, Search.ROUTE_L, Search.ROUTE_D, Search.ROUTE_R)
        return tuple(
            weight._replace(value=3)
            if weight.out in flows and weight.source == Search.PATH and weight.kernel in "ULDR"
            else weight
            for weight in weights
        )

    def flow(self, flow: Tensor) -> Tensor:
        return self.step(flow) * (1 - self.step(flow - 2))


class SearchDirectionCounts(DepthFirst):
    """The text's second paragraph: stack_direction counts up at each iteration instead of stack_rank."""

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        counted = (Search.STACK_RANK, Search.STACK)
        return tuple(
            weight._replace(out=Search.STACK_DIRECTION) if (weight.out, weight.source) == counted else weight
            for weight in weights
        )


class SearchOverwritesStackTwice(DepthFirst):
    """The formula that subtracts (stack + 1) from the stack and nothing from the rank."""

    def overwrite(self, stack: Tensor, rank: Tensor, state: Tensor, twice: Tensor) -> tuple[Tensor, Tensor]:
        before = state[:, [Search.STACK]]
        return stack - before * twice - (before + 1) * twice, rank


class SearchStuckInverted(DepthFirst):
    """is_stuck = step(sum of pebble): stuck where there is a pebble."""

    def stuck(self, pebble: Tensor) -> Tensor:
        return self.step(pebble.sum(dim=(2, 3), keepdim=True))


class SearchStepMask(DepthFirst):
    """The text's step_0(total_rank) instead of sawtooth_0: it lifts the tiles that wait, not the others."""

    def zero_mask(self, total: Tensor) -> Tensor:
        return self.step(total)


class SearchInFifths(DepthFirst):
    """Priorities of 0.2 to 0.8 under a sawtooth of slope 1: a tile of nearly the least rank is popped in part."""

    unit = 1

    def change(self, weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
        ranks = (Search.STACK_DIRECTION, Search.STACK_RANK)
        stacked = {(rank, rank) for rank in ranks}
        return tuple(
            weight._replace(value=weight.value / 5)
            if weight.out in ranks and (weight.out, weight.source) not in stacked
            else weight
            for weight in weights
        )


class SearchInFifthsSteep(SearchInFifths):
    """Priorities of 0.2 to 0.8 with slope 5: exact on paper, but float32 rounding pops a little of another rank."""

    def sawtooth(self, x: Tensor, peak: float) -> Tensor:
        return (1 - 5 * (x - peak).abs()).relu()
