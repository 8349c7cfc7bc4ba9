"""Learning an automaton by gradient descent: one sum for each signal, whose weights are then rounded to whole numbers.

A signal s, 0 or 1, is a pair of channels: low = relu(a), high = relu(b), and s = low - high. If a = b + 1 everywhere,
the difference is exactly 1 where a is at least 1, and exactly 0 where a is at most 0. So one sum for each signal
remains to be learned, and it must separate the two cases. The sum reads other signals as differences, which are zeros
and ones. Gradient descent lowers the squared amounts by which sums miss their targets. Neither hand-written weights nor
solutions of mazes are used.

The learned sums are multiplied by 1, 2, 4 and so on, until they still separate the cases when their weights are rounded
to whole numbers. Float32 then makes no errors, and the certificate is exact. If the certificate fails, its
counterexamples become further examples, and learning continues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.mazes.terms import TileKind
from maze_nca_gym.support.random_streams import rng_for, torch_rng_for

from ...policies.learned.nca import NCA
from ..automaton import Automaton
from .certificate import Certificate, certificate_of, counterexamples
from .config import HintConfig
from .exact import network_of
from .linear import Leaf, Sum
from .patches import Codes, distinct, kinds_of, labels, levels_to_watch, patches_seen, recombine, signals_of

SCALES = tuple(2**power for power in range(9))
"""Factors by which sums are multiplied before their weights are rounded."""
LOG_EVERY = 100
"""Number of updates between two lines of metrics."""
Log = Callable[[Mapping[str, float]], None]
"""A function that receives a line of metrics: numbers by name."""
Examples: TypeAlias = tuple[Tensor, Tensor]
"""Patches as float32: (P, F) inputs of the sums, which are the kinds and signals (without answers) at all taps and a 1
for the bias, and (P, S) next signals of the centre."""


def examples_of(automaton: Automaton, patches: Codes) -> Examples:
    """Return (P, taps) patches as training examples: the inputs of the rules for each patch, and the next signals."""
    kinds, signals = kinds_of(automaton, patches), signals_of(automaton, patches)[..., len(automaton.answers) :]
    seen = np.concatenate([kinds, signals], axis=-1).swapaxes(1, 2).reshape(len(patches), -1)
    read = torch.from_numpy(np.pad(seen, [(0, 0), (0, 1)], constant_values=True)).float()
    return read, torch.from_numpy(labels(automaton, patches)).float()


def leaves_of(automaton: Automaton) -> tuple[Leaf, ...]:
    """Return the inputs of sums, in the order of the examples' columns: kinds of tile and signals, each at a tap."""
    signals = tuple(automaton.signals)[len(automaton.answers) :]
    inputs: tuple[IntEnum | TileKind, ...] = (*map(TileKind, automaton.kinds), *signals)
    return tuple((seen, tap) for seen in inputs for tap in automaton.taps)


def learn(config: HintConfig, log: Log, automaton: Automaton) -> tuple[NCA, Certificate]:
    """Return a network that learned an automaton's iteration, and its certificate.

    Args:
        config: the options of the run.
        log: receives `update`, `loss` (of the last batch) and `learning_rate` at regular intervals; and after each
            round `update`, `round` and the fields of the certificate.
        automaton: an automaton that `linear.separated` returned.
    """
    rng, generator = rng_for(config.seed, "levels"), torch_rng_for(config.seed, "updates")
    seen = patches_seen(automaton, levels_to_watch(rng, automaton, config))
    # each once: those seen, and new ones that combine their tiles
    patches = distinct(automaton, [seen, recombine(rng, automaton, seen, config.n_recombined)])
    rejected, n_done, part = patches[:0], 0, config
    pools = [examples_of(automaton, patches)]
    rows = torch.zeros(len(automaton.signals), pools[0][0].shape[1], dtype=torch.float32)
    for number in range(1, 2 + config.n_rounds):
        rows = _fit(automaton, rows, pools, part, generator, n_done, log)
        model = network_of(automaton, _whole(automaton, rows, pools), automaton.answers)
        n_done += part.n_updates
        part = replace(config, n_updates=config.n_updates_again, learning_rate=config.learning_rate / 2)
        certificate = certificate_of(automaton, model)
        log({"update": n_done, "round": number, **certificate.numbers})
        if certificate.holds or number > config.n_rounds:
            break
        rejected = distinct(automaton, [rejected, counterexamples(automaton, model, config.n_worst)])
        # they are rare among all patches, so they are a pool of their own, drawn as often as the others
        if len(rejected):
            pools = [pools[0], examples_of(automaton, rejected)]
    return model, certificate


def _fit(
    automaton: Automaton,
    rows: Tensor,
    pools: Sequence[Examples],
    config: HintConfig,
    generator: torch.Generator,
    n_done: int,
    log: Log,
) -> Tensor:
    """Return (S, F) sums that were trained from given sums on examples, with equally many examples from each pool."""
    rows = rows.clone().requires_grad_()
    is_pair = torch.tensor([signal in automaton.paired for signal in automaton.signals])
    optimiser, n = torch.optim.Adam([rows], betas=(0.9, 0.99)), config.batch_size // len(pools)
    for update in range(1, config.n_updates + 1):
        # the cost falls with the rate; otherwise the final weights would compromise between the examples and the cost
        left = (1 + math.cos(math.pi * (update - 1) / config.n_updates)) / 2
        optimiser.param_groups[0]["lr"] = rate = left * config.learning_rate
        places = [torch.randint(len(pool[0]), (n,), generator=generator) for pool in pools]
        read, on = (torch.cat([pool[i][at] for pool, at in zip(pools, places, strict=True)]) for i in (0, 1))
        sums = read @ rows.T
        lacks = 1 + config.margin - sums
        # without a pair there is one channel, which must be 1 where the signal is on
        lacks = torch.where(is_pair, lacks.relu(), sums - 1)
        loss = (on * lacks**2 + (1 - on) * (sums + config.margin).relu() ** 2).sum(dim=1).mean()
        optimiser.zero_grad()
        (loss + left * config.sparsity * rows[:, :-1].abs().sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if update % LOG_EVERY == 0 or update == config.n_updates:
            log({"update": n_done + update, "loss": loss.item(), "learning_rate": rate})
    return rows.detach()


def _whole(automaton: Automaton, rows: Tensor, pools: Sequence[Examples]) -> dict[IntEnum, Sum]:
    """Return the sum of each signal from (S, F) rows, with whole weights and biases if such weights separate all
    examples."""
    leaves = leaves_of(automaton)
    read = torch.cat([pool[0] for pool in pools])[:, :-1].double().numpy()
    labelled = torch.cat([pool[1] for pool in pools]).bool().numpy()
    sums = dict[IntEnum, Sum]()
    for signal, row in zip(automaton.signals, rows.double().numpy(), strict=True):
        on, is_pair = labelled[:, signal], signal in automaton.paired
        sums[signal] = Sum(leaves, row[:-1], float(row[-1]))
        for scale in SCALES if is_pair else SCALES[:1]:  # only sums of pairs may be larger than 1 where the rule is on
            weights = np.round(scale * row[:-1])
            values = read @ weights
            # the bias must lift values to 1 or more where the rule is on, and to no more than 0 elsewhere
            least, most = 1 - values[on].min(initial=np.inf), -values[~on].max(initial=-np.inf)
            if not is_pair:
                most = min(most, 1 - values[on].max(initial=-np.inf))
            if least <= most:
                sums[signal] = Sum(leaves, weights, float(np.clip(np.round(scale * row[-1]), least, most)))
                break
    return sums
