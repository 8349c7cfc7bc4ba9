"""Reading an automaton off the weights of a network."""

from __future__ import annotations

from enum import IntEnum
from functools import partial

import torch

from maze_nca_gym.mazes.facts import Ghosts
from maze_nca_gym.mazes.rules import any_on, threshold
from maze_nca_gym.mazes.terms import Bits, Rule, TileView

from ...policies.guarantees import StepBound
from ...policies.policy import Policy, program_of
from ...policies.program import RELU
from ...policies.registry import load
from ..automaton import NEIGHBOURHOODS, Automaton


def automaton_of(
    network: str | Policy, *, name: str = "from-network", bound: StepBound | None = None, theorem: Ghosts | None = None
) -> Automaton:
    """Return the automaton that is equivalent to a network with integer weights, so that `prove` can be applied to it.

    If all weights are integers and states are clipped to [0, 1], every state is 0 or 1, and float32 makes no rounding
    errors. Each channel therefore becomes a signal, C_0, C_1, and so on, which is on where its sum was 1 or more. PATH,
    or each of the answers, is a copy of its channel one iteration later, because no rule may read an answer.

    Args:
        network: an `NCA(..., state_limit=1.0, n_iterations=None)` with a kernel of side 3, or any policy with such a
            program; or its name for `load`.
        name: the name of the automaton.
        bound: the iterations within which it solves every maze, which `prove` proves or refutes.
        theorem: its theorem, or ghosts from which `prove` guesses a theorem, see `Automaton`.

    Raises:
        ValueError: the network cannot be read as an automaton; the message gives the reason.
    """
    network = load(network) if isinstance(network, str) else network
    program = program_of(network)
    if program is None or program.activation != RELU or program.kernel_size != 3 or not program.sees_inputs:
        raise ValueError(
            f"{network!r} cannot be read as an automaton: each iteration must be a convolution of 3 x 3 taps and a ReLU"
        )
    if program.state_limit != 1 or program.max_pool or program.unbounded is not None:
        raise ValueError(
            "a network is an automaton if its states are cut off at 0 and 1: state_limit=1.0, n_iterations=None and no "
            f"max_pool are needed, got state_limit {program.state_limit} and max_pool {program.max_pool}"
        )
    kernel, biases = program.kernel.detach().double().flatten(2), program.bias.detach().double()
    broken = sum(int((part != part.round()).sum()) for part in (kernel, biases))
    if broken or not kernel.abs().sum() + biases.abs().sum() < 2**24:
        raise ValueError(
            f"a network is an automaton if its weights are whole numbers, together below 2**24: {broken:,} of "
            f"{kernel.numel() + biases.numel():,} are not whole"
        )
    answers = [answer.upper() for answer in network.problem.answers] if len(network.problem.answers) > 1 else ["PATH"]
    channels = [f"C_{i}" for i in range(len(biases))]
    signals: type[IntEnum] = IntEnum("Channels", [*answers, *channels], start=0)  # type: ignore[misc]
    corners = bool(torch.any(kernel[:, :, [0, 2, 6, 8]] != 0))

    def rule(channel: int, see: TileView) -> Bits:
        terms = [(0, see(signals[channels[channel]]))]
        for i, place in kernel[channel].nonzero().tolist():
            tap, at = NEIGHBOURHOODS[9][place], i - len(program.inputs)
            seen = see.tile(i, tap) if at < 0 else see(signals[channels[at]], tap)
            terms.append((int(kernel[channel, i, place]), seen))
        return threshold(terms, 1 - int(biases[channel]))

    rules: dict[IntEnum, Rule] = {
        signals[answer]: partial(any_on, signals=[signals[of]]) for answer, of in zip(answers, channels, strict=False)
    }
    rules |= {signals[of]: partial(rule, number) for number, of in enumerate(channels)}
    size = 9 if corners else 5
    return Automaton(name, network.task, signals, rules, size, bound, theorem=theorem, settles=False)
