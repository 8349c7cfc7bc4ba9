"""Weights for patches: each channel's next value is a weighted sum of a patch and a ReLU, found by gradient descent.

A signal s, 0 or 1, is a pair of channels: low = relu(a), high = relu(b), and s = low - high. Where s is off, both sums
must be below 0; where it is on, both above, and a - b = 1. How large they are does not matter, so the network learns
from pairs of any size. Then an error in what is common to a pair has no effect, and one in the difference does not
pass: as long as the sums keep their signs, the next difference is again what the biases make it, not what the states
do. No hand-written weight enters, nor does any solution of a maze.

The problem is convex but ill-conditioned, for most signals are rarely on, and together. Adam runs in coordinates in
which the inputs' second moments are the same in all directions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.levels import Tile

from ..learned.nca import NCA
from ..training.draws import draws, torch_draws
from .automaton import Signal
from .config import HintConfig
from .patches import Codes, distinct_patches, kinds_of, labels, levels_to_watch, recombine, signals_of, tiles_of

PAIRED = tuple(signal for signal in Signal if signal != Signal.PATH)
CHANNELS = ("path", *(f"{signal.name.lower()}_{part}" for signal in PAIRED for part in ("low", "high")))
"""The path is shown and not read, so it needs no pair."""
LOG_EVERY = 100
"""Updates from one line of metrics to the next."""
Log = Callable[[Mapping[str, float]], None]


class Examples(NamedTuple):
    """Patches as tensors, float32.

    Attributes:
        kinds: (P, 4, 5) one-hot tiles.
        signals: (P, 9, 5) zeros and ones.
        labels: (P, 9) the centre's next signals.
    """

    kinds: Tensor
    signals: Tensor
    labels: Tensor

    @classmethod
    def of(cls, patches: Codes) -> Examples:
        """Those of (P,) patches."""
        tiles = tiles_of(patches)
        kinds, signals = (torch.from_numpy(values(tiles)).float().mT for values in (kinds_of, signals_of))
        return cls(kinds.contiguous(), signals.contiguous(), torch.from_numpy(labels(patches)).float())

    def draw(self, n: int, generator: torch.Generator) -> Examples:
        """Any `n` of them."""
        places = torch.randint(len(self.labels), (n,), generator=generator)
        return Examples(*(tensor[places] for tensor in self))


def learn(config: HintConfig, log: Log) -> NCA:
    """A network that does in each iteration what the automaton does.

    Args:
        config: of the run.
        log: is told `update`, `seconds`, `loss` (of the last batch) and `learning_rate` now and then.
    """
    model = NCA(
        n_tiles=len(Tile),
        n_channels=len(CHANNELS),
        cut_corners=True,
        n_layers=None,
        channel_names=CHANNELS,
        generator=torch_draws(config.seed, "weights"),
    )
    fit(model, Examples.of(patches_to_learn(config)), config, log)
    return model


def patches_to_learn(config: HintConfig) -> Codes:
    """(P,) the patches of a run, each once: those that are seen, and those put together from their tiles."""
    rng = draws(config.seed, "levels")
    seen = distinct_patches(levels_to_watch(rng, config))
    return np.union1d(seen, recombine(rng, seen, config.n_recombined))


def fit(model: NCA, examples: Examples, config: HintConfig, log: Log) -> None:
    """Change the weights of a network with `CHANNELS` until it agrees with the examples."""
    generator, began = torch_draws(config.seed, "updates"), time.monotonic()
    (weight,), (bias,) = model.weights, model.biases
    whiten, colour = _whitening(inputs(examples, config.largest, config.jitter, generator), config.ridge)
    turned = (torch.cat([weight.flatten(1), bias[:, None]], dim=1).detach() @ colour).requires_grad_()
    optimiser = torch.optim.Adam([turned], betas=(0.9, 0.99))
    for update, (rate, jitter) in enumerate(_schedule(config), start=1):
        optimiser.param_groups[0]["lr"] = rate
        batch = examples.draw(config.batch_size, generator)
        sums = inputs(batch, config.largest, jitter, generator) @ whiten @ turned.T
        loss = losses(sums, batch.labels, config.margin, config.largest).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if update % LOG_EVERY == 0 or update == config.n_updates:
            seconds = time.monotonic() - began
            log({"update": update, "seconds": seconds, "loss": loss.item(), "learning_rate": rate})
    with torch.no_grad():
        learned = turned @ whiten
        weight.copy_(learned[:, :-1].view_as(weight))
        bias.copy_(learned[:, -1])


def _schedule(config: HintConfig) -> Iterator[tuple[float, float]]:
    """Learning rate and jitter of each update; there is no jitter in the last fifth."""
    for update in range(config.n_updates):
        progress = update / config.n_updates
        rate = config.learning_rate * (1 + math.cos(math.pi * progress)) / 2
        yield rate, config.jitter * max(0.0, 1 - 1.25 * progress)


def inputs(examples: Examples, largest: float, jitter: float, generator: torch.Generator) -> Tensor:
    """(P, 106) what a network could read there: 4 + 17 channels of 5 taps, and a 1 for the bias.

    Where a signal is on, its second channel is anything from 0 to `largest`, and the first larger by 1 +- jitter; the
    path is anything from 1/2 to 3/2. Where it is off, they are 0.
    """
    path, signals = examples.signals[:, :1], examples.signals[:, 1:]
    path = path * (0.5 + torch.rand(path.shape, generator=generator))
    high = signals * largest * torch.rand(signals.shape, generator=generator)
    low = high + signals * (1 + jitter * (2 * torch.rand(signals.shape, generator=generator) - 1))
    pairs = torch.stack([low, high], dim=2).flatten(1, 2)
    patches = torch.cat([examples.kinds, path, pairs], dim=1).flatten(1)
    return torch.cat([patches, patches.new_ones(len(patches), 1)], dim=1)


def losses(sums: Tensor, labels: Tensor, margin: float, largest: float) -> Tensor:
    """(P,) how wrong the (P, 17) sums are, of which the ReLU makes the channels, for the (P, 9) signals.

    Squares of: what a channel that must be silent is above -margin; what the path is off 1; what a pair's difference is
    off 1, and its second channel below the margin or closer than that to `largest`.
    """
    path, low, high = sums[:, 0], sums[:, 1::2], sums[:, 2::2]
    on_path, on = labels[:, 0], labels[:, 1:]
    silent = (low + margin).relu() ** 2 + (high + margin).relu() ** 2
    right = (low - high - 1) ** 2 + (margin - high).relu() ** 2 + (high - largest + margin).relu() ** 2
    of_path = on_path * (path - 1) ** 2 + (1 - on_path) * (path + margin).relu() ** 2
    return of_path + (on * right + (1 - on) * silent).sum(dim=1)


def _whitening(read: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The symmetric matrix that makes the second moments of (P, F) inputs alike in all directions, and its inverse."""
    moments = (read.double().T @ read.double()) / len(read)
    values, directions = torch.linalg.eigh(moments)
    scales = (values.clamp(min=0) + ridge).sqrt()
    return ((directions / scales) @ directions.T).float(), ((directions * scales) @ directions.T).float()
