"""Training on patches: gradient descent for the weights from which each channel's next value is the ReLU of a sum.

A signal s, 0 or 1, is a pair of channels: low = relu(a), high = relu(b), and s = low - high. Where s is off, both sums
must be below 0; where it is on, both must be above 0, and a - b = 1. Their size does not matter, so the network learns
from pairs of any size. Errors then do not accumulate: an error that both channels of a pair share has no effect, and an
error of a difference does not grow, because as long as sums keep their signs the weights set the next difference anew.
No hand-written weight and no solution of a maze is used.

The problem is convex but ill-conditioned, because most signals are rarely on, and then several together. So Adam runs
in whitened coordinates, in which the inputs have the same second moment in all directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.random_streams import rng_for, torch_rng_for

from ..automata import Automaton
from ..learned.nca import NCA
from .certificate import certify, counterexamples, demands, new_network
from .config import HintConfig, find_automaton
from .cuts import Cuts
from .patches import Codes, distinct, kinds_of, labels, levels_to_watch, patches_seen, recombine, signals_of

WHITENED = 80_000
"""Approximate number of patches from which second moments are estimated."""
LOG_EVERY = 100
"""Number of updates between two lines of metrics."""
Log = Callable[[Mapping[str, float]], None]


class Examples(NamedTuple):
    """Patches as tensors, float32.

    Attributes:
        kinds: (P, T, taps) one-hot tiles.
        signals: (P, S, taps) zeros and ones.
        labels: (P, S) the centre's next signals.
    """

    kinds: Tensor
    signals: Tensor
    labels: Tensor

    @classmethod
    def of(cls, automaton: Automaton, patches: Codes) -> Examples:
        """Make the examples of (P, taps) patches."""
        kinds, signals = (torch.from_numpy(read(automaton, patches)).float().mT for read in (kinds_of, signals_of))
        return cls(kinds.contiguous(), signals.contiguous(), torch.from_numpy(labels(automaton, patches)).float())

    @classmethod
    def join(cls, parts: Sequence[Examples]) -> Examples:
        """Join examples into one."""
        return cls(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))


class Pool:
    """Examples to draw from.

    Args:
        examples: all of them.
        evenly: draw them so that all signals are switched on equally often; otherwise all are equally probable.
    """

    def __init__(self, examples: Examples, evenly: bool = False) -> None:
        self._examples = examples
        self._edges: Tensor | None = None
        if evenly:
            # a signal's weight of 1 is shared by all examples that switch it on; an example has the sum of its shares
            on = examples.labels.double()
            self._edges = (on / on.sum(dim=0).clamp(min=1)).sum(dim=1).cumsum(dim=0)

    def draw(self, n: int, generator: torch.Generator) -> Examples:
        """Draw `n` examples."""
        n_examples = len(self._examples.labels)
        if self._edges is None:
            places = torch.randint(n_examples, (n,), generator=generator)
        else:
            drawn = torch.rand(n, generator=generator, dtype=torch.float64) * self._edges[-1]
            places = torch.searchsorted(self._edges, drawn).clamp(max=n_examples - 1)
        return Examples(*(tensor[places] for tensor in self._examples))

    def sample(self, n: int, generator: torch.Generator) -> Examples:
        """Return about `n` examples that represent all of them."""
        if self._edges is not None:
            return self.draw(n, generator)
        return Examples(*(tensor[:: 1 + len(tensor) // n] for tensor in self._examples))


def learn(config: HintConfig, log: Log, automaton: Automaton | None = None) -> NCA:
    """Train a network to do in each iteration what the automaton does.

    Patches on which the certificate fails are labelled by the automaton's rules, and training continues with these.

    Args:
        config: the options of the run.
        log: receives `update`, `loss` (of the last batch) and `learning_rate` at regular intervals, and `update`,
            `round` and the fields of the certificate before each round of `Cuts`.
        automaton: the automaton to learn; by default that of the configuration.
    """
    automaton = find_automaton(config.automaton) if automaton is None else automaton
    model = new_network(automaton, torch_rng_for(config.seed, "weights"))
    examples = Examples.of(automaton, patches_to_learn(automaton, config))
    generator = torch_rng_for(config.seed, "updates")  # its own, so that other levels change no other draw
    pools = [Pool(examples), Pool(examples, evenly=True)] if config.balanced else [Pool(examples)]
    fit(automaton, model, pools, config, generator, log)
    if config.sparsity:
        _refine(automaton, model, pools, config, generator, log)
    return model


def _refine(
    automaton: Automaton, model: NCA, pools: Sequence[Pool], config: HintConfig, generator: torch.Generator, log: Log
) -> None:
    """Learn from patches on which the certificate fails: with all weights, then only with those that matter."""
    wrong = np.empty((0, len(automaton.taps)), np.int64)

    def pools_with_wrong() -> list[Pool]:
        nonlocal wrong
        found = counterexamples(automaton, model, config.largest, config.n_worst, config.margin / 2)
        wrong = distinct(automaton, [wrong, found])
        return [*pools, Pool(Examples.of(automaton, wrong))] if len(wrong) else [*pools]

    # patches that the certificate rejects are rare among all, so they are a pool of their own, drawn as often as others
    for n_rounds in range(config.n_dense):
        dense = config.again(dense=True)
        fit(automaton, model, pools_with_wrong(), dense, generator, _after(config, n_rounds, log))
    kept, again = prune(automaton, model, config.least_weight), config.again(dense=False)
    fit(automaton, model, pools_with_wrong(), again, generator, _after(config, config.n_dense, log), kept)
    # gradient descent comes close to meeting the certificate's demands but never meets all, so `Cuts` solves for them
    cuts = Cuts(automaton, kept)
    for number in range(1, config.n_rounds + 1):
        certificate = certify(model, config.largest, automaton=automaton)
        log({"update": config.n_updates_in_all, "round": number, **asdict(certificate)})
        if certificate.holds:
            return
        cuts.add(demands(automaton, model, config.largest, config.n_worst, config.margin / 2))
        cuts.meet(model)


def _after(config: HintConfig, n_rounds: int, log: Log) -> Log:
    """Return a log that counts updates on from those before."""
    n_before = config.n_updates + n_rounds * config.n_updates_again
    return lambda line: log({**line, "update": n_before + line["update"]})


@torch.no_grad()
def prune(automaton: Automaton, model: NCA, least: float) -> Tensor:
    """Set a network's small weights to 0.

    The two channels of a pair keep the same weights, both as outputs and as inputs.

    Returns:
        (C, F) float32: 1 for weights that remain, otherwise 0. The last column, the biases, is all 1.
    """
    (weight,) = model.weights
    large = weight.abs() >= least
    # with a weight for only one channel of a pair, a sum would depend on the pair's size, not on its difference
    for of_channels in (large, large[:, len(automaton.kinds) :].transpose(0, 1)):
        low, high = of_channels[automaton.low], of_channels[automaton.high]
        low |= high
        high |= low
    weight *= large
    kept = large.flatten(1).float()
    return torch.cat([kept, kept.new_ones(len(kept), 1)], dim=1)


def patches_to_learn(automaton: Automaton, config: HintConfig) -> Codes:
    """Return the patches of a run, (P, taps) int64, each once: those seen, and new ones that combine their tiles."""
    rng = rng_for(config.seed, "levels")
    seen = patches_seen(automaton, levels_to_watch(rng, automaton, config))
    return distinct(automaton, [seen, recombine(rng, automaton, seen, config.n_recombined)])


def fit(
    automaton: Automaton,
    model: NCA,
    pools: Sequence[Pool],
    config: HintConfig,
    generator: torch.Generator,
    log: Log,
    kept: Tensor | None = None,
) -> None:
    """Change the weights of a network with the automaton's channels until it agrees with the examples.

    Args:
        automaton: what the network learns.
        model: a network with any weights.
        pools: the examples; each batch has equally many of each pool.
        config: the options of the run.
        generator: draws the examples, and the sizes of signals.
        log: receives `update`, `loss` and `learning_rate`.
        kept: (C, F) from `prune`: 1 for weights that may change; by default all may.
    """
    (weight,), (bias,) = model.weights, model.biases
    is_sparse = config.sparsity > 0 or kept is not None
    kept = torch.ones(1) if kept is None else kept

    def read(examples: Sequence[Examples], jitter: float) -> Tensor:
        return inputs(automaton, Examples.join(examples), config.largest, jitter, generator, config.extremes)

    # Adam changes `turned`; the weights are turned @ whiten, so that a step has the same effect in all directions
    some = [read([pool.sample(WHITENED // len(pools), generator)], config.jitter) for pool in pools]
    whiten, colour = _whitening(some, config.ridge)
    turned = (torch.cat([weight.flatten(1), bias[:, None]], dim=1).detach() @ colour).requires_grad_()
    optimiser = torch.optim.Adam([turned], betas=(0.9, 0.99))
    for update, (rate, left) in enumerate(schedule(config), start=1):
        optimiser.param_groups[0]["lr"] = rate
        batch = [pool.draw(config.batch_size // len(pools), generator) for pool in pools]
        labels = torch.cat([examples.labels for examples in batch])
        patches, weights = read(batch, config.jitter * left), turned @ whiten * kept
        # both give the same sums up to rounding; without sparsity, this order keeps the bits of published models
        sums = patches @ weights.T if is_sparse else patches @ whiten @ turned.T
        loss = losses(automaton, sums, labels, config.margin, config.largest).mean()
        optimiser.zero_grad()
        # the cost falls with the rate; otherwise the final weights would compromise between the examples and the cost
        cost = config.sparsity * rate / config.learning_rate
        (loss + cost * weights[:, :-1].abs().sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if update % LOG_EVERY == 0 or update == config.n_updates:
            log({"update": update, "loss": loss.item(), "learning_rate": rate})
    with torch.no_grad():
        learned = turned @ whiten * kept
        weight.copy_(learned[:, :-1].view_as(weight))
        bias.copy_(learned[:, -1])


def schedule(config: HintConfig) -> Iterator[tuple[float, float]]:
    """Yield for each update the learning rate, and the fraction of the jitter that is left: none in the last fifth."""
    for update in range(config.n_updates):
        progress = update / config.n_updates
        rate = config.learning_rate * (1 + math.cos(math.pi * progress)) / 2
        yield rate, max(0.0, 1 - 1.25 * progress)


def inputs(
    automaton: Automaton,
    examples: Examples,
    largest: float,
    jitter: float,
    generator: torch.Generator,
    extremes: bool = False,
) -> Tensor:
    """Draw inputs of a network for some patches, (P, F) floats: kinds and channels at all taps, and a 1 for the bias.

    Where a signal is on, its second channel is drawn from 0 to `largest`, and the first is larger by 1 +- jitter; the
    path is drawn from 1/2 to 3/2, and the pooled channel is 1 +- jitter. Where a signal is off, its channels are 0. The
    maximum over all channels is drawn from its whole range. With `extremes`, second channels are 0 in a quarter of all
    cases, and `largest` in another quarter.
    """
    n_pairs = len(automaton.paired)
    path, signals = examples.signals[:, :1], examples.signals[:, 1 : 1 + n_pairs]
    # no rule reads the path, so its value is random, and the weights learn to ignore it
    path = path * (0.5 + torch.rand(path.shape, generator=generator))
    part = torch.rand(signals.shape, generator=generator)
    # certificates fail at the extremes, which uniform numbers almost never reach
    high = signals * largest * ((2 * part - 0.5).clamp(0, 1) if extremes else part)
    low = high + signals * (1 + jitter * (2 * torch.rand(signals.shape, generator=generator) - 1))
    read = [examples.kinds, path, torch.stack([low, high], dim=2).flatten(1, 2)]
    if automaton.pooled is not None:
        pooled, inside = examples.signals[:, -1:], examples.kinds.sum(dim=1, keepdim=True)
        read.append(pooled * (1 + jitter * (2 * torch.rand(pooled.shape, generator=generator) - 1)))
        read.append(inside * (1 + jitter + largest) * torch.rand(inside.shape, generator=generator))
    patches = torch.cat(read, dim=1).flatten(1)
    return torch.cat([patches, patches.new_ones(len(patches), 1)], dim=1)


def losses(automaton: Automaton, sums: Tensor, labels: Tensor, margin: float, largest: float) -> Tensor:
    """Return the losses, (P,) floats, of (P, C) sums before the ReLU, for (P, S) signals.

    A loss is the sum of these errors, squared:

    - where a signal is off, by how much the sums of its channels exceed -margin;
    - where it is on, the difference of the path's or the pooled channel's sum from 1;
    - where it is on, the difference of a pair's difference from 1;
    - where it is on, by how much a pair's second sum is below the margin, or above `largest` - margin;
    - by how much the sum of the channel that becomes the maximum over all channels exceeds -margin.
    """
    low, high = sums[:, automaton.low], sums[:, automaton.high]
    on = labels[:, 1 : 1 + len(automaton.paired)]
    silent = (low + margin).relu() ** 2 + (high + margin).relu() ** 2
    right = (low - high - 1) ** 2 + (margin - high).relu() ** 2 + (high - largest + margin).relu() ** 2
    loss = _single(sums[:, 0], labels[:, 0], margin) + (on * right + (1 - on) * silent).sum(dim=1)
    if automaton.pooled is not None:
        loss = loss + _single(sums[:, -2], labels[:, -1], margin) + (sums[:, -1] + margin).relu() ** 2
    return loss


def _single(sums: Tensor, on: Tensor, margin: float) -> Tensor:
    """Return the losses of a signal that is one channel."""
    return on * (sums - 1) ** 2 + (1 - on) * (sums + margin).relu() ** 2


def _whitening(pools: Sequence[Tensor], ridge: float) -> tuple[Tensor, Tensor]:
    """Return the symmetric matrix that whitens (P, F) inputs, and its inverse; each pool counts the same."""
    # without the ridge, directions in which inputs hardly vary would be scaled up without bound
    moments = torch.stack([(read.double().T @ read.double()) / len(read) for read in pools]).mean(dim=0)
    values, directions = torch.linalg.eigh(moments)
    scales = (values.clamp(min=0) + ridge).sqrt()
    return ((directions / scales) @ directions.T).float(), ((directions * scales) @ directions.T).float()
