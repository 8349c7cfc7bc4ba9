"""Learning an automaton from a few mazes and from questions about single patches.

The first examples are the states of the automaton on a few mazes at all iterations. For each signal, linear programming
finds a sum with small weights that separates the examples in which the signal switches on from the others. The
certificate then finds patches on which this network may be wrong on other mazes. Each patch is a question: what is the
next state of its centre? The rules give the answer, the answer becomes an example, and the sums are computed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np

from maze_nca_gym.mazes.levels import Tiles

from ...policies.learned.nca import NCA
from ..automaton import Automaton
from .certificate import Certificate, certificate_of, counterexamples
from .config import HintConfig
from .exact import network_of
from .learning import Log, examples_of, leaves_of
from .linear import Cases, Sum, no_sum, separate
from .patches import distinct, patches_seen


def ask(config: HintConfig, log: Log, automaton: Automaton, mazes: Iterable[Tiles]) -> tuple[NCA, Certificate]:
    """Learn an automaton from a few mazes and from questions; return an equivalent network and its certificate.

    Args:
        config: the options of the run.
        log: receives a line after each round: `update` and `round` (the same number), the number of `questions` so far,
            and the fields of the certificate.
        automaton: an automaton that `linear.separated` returned.
        mazes: batches of mazes, each (N, H, W) uint8.

    Raises:
        ValueError: no weighted sum decides a signal that has a single channel.
    """
    patches, n_asked, leaves = patches_seen(automaton, mazes), 0, leaves_of(automaton)
    for number in range(1, 2 + config.n_rounds):
        read, after = (values.double().numpy() for values in examples_of(automaton, patches))
        read, places = np.unique(read[:, :-1], axis=0, return_index=True)  # sums do not read all signals
        sums = dict[IntEnum, Sum]()
        for signal in automaton.signals:
            most = np.inf if signal in automaton.paired else 1.0
            total = separate(Cases(leaves, read, after[places, signal] == 1), most)
            if total is None:
                raise no_sum(automaton, signal)
            sums[signal] = total
        model = network_of(automaton, sums, automaton.answers)
        certificate = certificate_of(automaton, model)
        log({"update": number, "round": number, "questions": n_asked, **certificate.numbers})
        if certificate.holds:
            break
        questions = counterexamples(automaton, model, 1)[: config.n_questions - n_asked]
        if not len(questions):
            break
        patches, n_asked = distinct(automaton, [patches, questions]), n_asked + len(questions)
    return model, certificate
