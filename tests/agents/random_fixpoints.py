"""Random fixpoints, whose automata are correct by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import numpy as np

from maze_nca_gym.agents.automata import anywhere, at_least, fixpoint, inflationary
from maze_nca_gym.mazes import KINDS, Kind, Task

OWN = Kind("mud", "m", "#8c564b")
TAPS = ("C", "U", "L", "D", "R", "UL", "DR")


def random_task(seed: int) -> Task:
    """Return a task whose solver is a random least or inflationary fixpoint of one to four relations."""
    rng = np.random.default_rng(seed)
    names = [f"R{i}" for i in range(rng.integers(1, 5))]
    least = bool(rng.random() < 0.7)
    rules = {name: _rule(rng, names, () if least else names) for name in names}
    pooled = [name for name in names[1:] if rng.random() < 0.15]
    rules |= {name: anywhere(rules[name]) for name in pooled}
    solve = (fixpoint if least else inflationary)(names[0], **rules)
    kinds = (*KINDS, OWN) if rng.random() < 0.5 else KINDS
    return Task(name=f"random-{seed}", kinds=kinds, solve=solve, may_be_empty=True)


def random_layers(seed: int) -> Task:
    """Return a task whose solver is a random least fixpoint of two or three strata. Rules of a stratum may negate
    relations of earlier strata, and a relation of the last stratum is the answer."""
    rng = np.random.default_rng([seed, 1])
    names, rules = list[str](), dict[str, Callable[[Any], Any]]()
    for layer in range(rng.integers(2, 4)):
        before, names_of_layer = list(names), [f"R{layer}{i}" for i in range(rng.integers(1, 3))]
        names += names_of_layer
        for name in names_of_layer:
            rule = _rule(rng, names, before)
            negated = str(rng.choice(before)) if before and name == names_of_layer[0] else ""
            rules[name] = (lambda see, r=rule, n=negated: r(see) & ~see(n)) if negated else rule
        if layer == 0 and rng.random() < 0.2:
            rules[names_of_layer[-1]] = anywhere(rules[names_of_layer[-1]])
    return Task(name=f"layers-{seed}", solve=fixpoint(names_of_layer[0], **rules), may_be_empty=True)


def _rule(rng: np.random.Generator, names: list[str], may_negate: Sequence[str]) -> Callable[[Any], Any]:
    """Return a random rule: a kind of tile, or a tree of kinds and relations, of which only some may be negated."""
    tree, start = _tree(rng, names, may_negate, depth=3), int(rng.integers(2, 4))
    return lambda see: see.tile(start) | tree(see) if start == 2 else tree(see)


def _tree(rng: np.random.Generator, names: list[str], may_negate: Sequence[str], depth: int) -> Callable[[Any], Any]:
    if depth == 0 or rng.random() < 0.15:
        tap, name = str(rng.choice(TAPS)), str(rng.choice(names))
        kind, of_tile = int(rng.integers(0, 4)), bool(rng.random() < 0.4)
        negated = bool(rng.random() < 0.4) and (of_tile or name in may_negate)
        return lambda see: _read(see, kind if of_tile else name, tap, negated)
    parts = [_tree(rng, names, may_negate, depth - 1) for _ in range(rng.integers(2, 4))]
    join = [and_, or_, or_, None][rng.integers(0, 4)]
    if join is None:
        n = int(rng.integers(1, len(parts) + 1))
        return lambda see: at_least(n, [part(see) for part in parts])
    if rng.random() < 0.1:  # only these parts may be compared, because they read only kinds of tile
        one, other = (int(kind) for kind in rng.integers(0, 4, 2))
        return lambda see: xor(see.tile(one, "U"), see.tile(other, "L"))
    return lambda see: reduce(join, (part(see) for part in parts))


def _read(see: Any, atom: int | str, tap: str, negated: bool) -> Any:
    value = see(atom, tap) if isinstance(atom, str) else see.tile(atom, tap)
    return ~value if negated else value
