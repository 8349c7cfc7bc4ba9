"""Learning one sum for each signal: a threshold, whose weights then become whole numbers.

If the sums of a pair differ by 1 everywhere, its difference is exactly 1 where the first sum is at least 1, and exactly
0 where that is at most 0. So what is left to learn is one sum a signal, which tells the two apart. It reads other
signals as differences, which are zeros and ones. Gradient descent lowers the squares of what sums lack.

The learned sums are multiplied by 1, 2, 4 and so on, until they still tell the cases apart when their weights are
rounded to whole numbers. Then float32 makes no errors, and the certificate is exact. Where it fails, the patches on
which it does become examples too, and learning goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.random_streams import torch_rng_for

from ..automata import Automaton
from ..learned.nca import NCA
from .bounds import Doubles
from .certificate import certify, counterexamples
from .config import HintConfig
from .exact import network_of
from .learning import LOG_EVERY, Examples, Log, Pool, patches_to_learn, schedule
from .linear import Sum
from .patches import distinct

SCALES = tuple(2**power for power in range(9))
"""Numbers by which sums are multiplied before their weights are rounded."""


def learn_sums(config: HintConfig, log: Log, automaton: Automaton) -> NCA:
    """Return a network that learned an automaton's rules as sums with whole weights.

    Args:
        config: the options of the run.
        log: receives `update`, `loss` (of the last batch) and `learning_rate` at regular intervals, and `update`,
            `round` and the fields of the certificate after each round.
        automaton: one that `linear.separated` returned.
    """
    generator, patches = torch_rng_for(config.seed, "updates"), patches_to_learn(automaton, config)
    wrong, n_done, part = patches[:0], 0, config
    examples = Examples.of(automaton, patches)
    rows = torch.zeros(len(automaton.signals), _read(examples).shape[1])
    for number in range(1, 2 + config.n_rounds):
        hard = [Examples.of(automaton, wrong)] if len(wrong) else []
        # patches on which signals are switched on are rare, and those that the certificate names are rarer
        pools = [Pool(examples), Pool(examples, evenly=True), *map(Pool, hard)]
        rows = _fit(automaton, rows, pools, part, generator, n_done, log)
        model = _whole(automaton, rows, Examples.join([examples, *hard]))
        n_done, part = n_done + part.n_updates, config.again(dense=True)
        certificate = certify(model, automaton=automaton)
        log({"update": n_done, "round": number, **asdict(certificate)})
        if certificate.holds:
            break
        found = counterexamples(automaton, model, certificate.largest, config.n_worst, tolerance=0.0)
        wrong = distinct(automaton, [wrong, found])
    return model


def _read(examples: Examples) -> Tensor:
    """Return what sums read, (P, F) floats: kinds and signals but the path at all taps, and a 1 for the bias."""
    read = torch.cat([examples.kinds, examples.signals[:, 1:]], dim=1).flatten(1)
    return torch.cat([read, read.new_ones(len(read), 1)], dim=1)


def _fit(
    automaton: Automaton,
    rows: Tensor,
    pools: Sequence[Pool],
    config: HintConfig,
    generator: torch.Generator,
    n_done: int,
    log: Log,
) -> Tensor:
    """Return (S, F) sums that started from some, and learned from the examples."""
    rows = rows.clone().requires_grad_()
    is_pair = torch.tensor([signal in automaton.paired for signal in automaton.signals])
    optimiser = torch.optim.Adam([rows], betas=(0.9, 0.99))
    for update, (rate, _) in enumerate(schedule(config), start=1):
        optimiser.param_groups[0]["lr"] = rate
        batch = Examples.join([pool.draw(config.batch_size // len(pools), generator) for pool in pools])
        sums, on = _read(batch) @ rows.T, batch.labels
        lacks = 1 + config.margin - sums
        # without a pair there is one channel, which must be 1 where the signal is on
        lacks = torch.where(is_pair, lacks.relu(), sums - 1)
        loss = (on * lacks**2 + (1 - on) * (sums + config.margin).relu() ** 2).sum(dim=1).mean()
        cost = config.sparsity * rate / config.learning_rate * rows[:, :-1].abs().sum()
        optimiser.zero_grad()
        (loss + cost).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if update % LOG_EVERY == 0 or update == config.n_updates:
            log({"update": n_done + update, "loss": loss.item(), "learning_rate": rate})
    return rows.detach()


def _whole(automaton: Automaton, rows: Tensor, examples: Examples) -> NCA:
    """Return the network of (S, F) sums, whose weights become whole where that does no harm on the examples."""
    seen = (*automaton.kinds, *tuple(automaton.signals)[1:])
    leaves = tuple((each, tap) for each in seen for tap in automaton.taps)
    read, labels = _read(examples)[:, :-1].double().numpy(), examples.labels.bool().numpy()
    sums = {}
    for signal, row in zip(automaton.signals, rows.double().numpy(), strict=True):
        weights, bias = _rounded(row, read, labels[:, signal], is_pair=signal in automaton.paired)
        sums[signal] = Sum(leaves, weights, bias, float((read @ weights).max()) + bias)
    return network_of(automaton, sums)


def _rounded(row: Doubles, read: Doubles, on: NDArray[np.bool_], is_pair: bool) -> tuple[Doubles, float]:
    """Return whole weights and a bias from those of a sum, (F,); as they are if there are none that tell cases apart.

    Args:
        row: (F,) weights, of which the last is the bias.
        read: (P, F - 1) what is read in each case.
        on: (P,) whether the rule is on.
        is_pair: whether sums may be larger than 1 where it is on.
    """
    for scale in SCALES if is_pair else SCALES[:1]:
        weights = np.round(scale * row[:-1])
        values = read @ weights
        # the bias must lift values to 1 or more where the rule is on, and to no more than 0 elsewhere
        least, most = 1 - values[on].min(initial=np.inf), -values[~on].max(initial=-np.inf)
        if not is_pair:
            most = min(most, 1 - values[on].max(initial=-np.inf))
        if least <= most:
            return weights, float(np.clip(np.round(scale * row[-1]), least, most))
    return row[:-1], float(row[-1])
