"""Refutations of facts in small steps that Coq can repeat: clauses, each of which follows from a few earlier clauses.

The search is conflict-driven clause learning (Marques-Silva and Sakallah, 1999) on the nodes of the facts' expressions,
in which equal nodes are one node. If only arithmetic contradicts some facts, z3 finds linear facts with an absurd sum.
For example, the sum of x <= 1 and 2 <= x is 2 <= 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from maze_nca_gym.mazes.facts import walk

from ..proving.symbols import Z3
from .facts import Atom, Below, Claim, Either, Fact, No, Refutation, parts_of

MOST_CONFLICTS = 20_000
"""Largest number of contradictions before the search gives up."""
LARGEST_FACTOR = 64
"""Largest factor with which a linear fact enters an absurd sum."""
TRUE = 1
"""The literal that is always true."""


class NotProven(ValueError):
    """Raised if no proof of a claim is found; the claim may still be true."""


@dataclass(eq=False)
class _Clause:
    """Literals, at least one of which is true.

    Attributes:
        literals: the literals.
        number: the number of a clause that the facts give, from 1; otherwise 0.
        claim: the sum of linear facts that proves the clause; otherwise empty.
        uses: the clauses from which the clause follows; otherwise empty.
    """

    literals: list[int]
    number: int = 0
    claim: Claim = ()
    uses: Sequence[_Clause] = field(default=(), repr=False)


class _Search:
    def __init__(self, z3: Z3, facts: Sequence[Fact]) -> None:
        self._z3, self._atoms, self._nodes = z3, dict[Atom | Below, int](), dict[tuple[int, int], int]()
        literals = self._numbered([*walk(facts, parts_of)])
        self._roots = [literals[id(fact)] for fact in facts]
        self._parts = {n: parts for parts, n in self._nodes.items()}
        inputs = [[TRUE]]
        for (a, b), n in self._nodes.items():
            inputs += [[-n, a], [-n, b], [n, -a, -b]]
        inputs += [[root] for root in self._roots]
        clauses = [_Clause(literals, number) for number, literals in enumerate(inputs, 1)]
        self._lines = [(n, line) for line, n in self._atoms.items() if isinstance(line, Below)]
        self._arithmetic, numbers = z3.Solver(), dict[Atom, Any]()
        self._arithmetic.set("core.minimize", True)
        of_sum = defaultdict[tuple[tuple[int, Atom], ...], list[tuple[int, int]]](list)
        for n, line in self._lines:
            terms = [c * numbers.setdefault(v, z3.Int(f"number {v.code}")) for c, v in line.terms]
            self._arithmetic.add(z3.Bool(f"{n}") == (line.constant + z3.Sum(terms) <= 0))
            of_sum[line.terms].append((-line.constant, n))
        for same in of_sum.values():  # a lower bound of the same sum implies a higher bound
            clauses += [_Clause([-n, m], claim=((1, n), (1, -m))) for (_, n), (_, m) in combinations(sorted(same), 2)]
        self._watches, self._trail, self._done = defaultdict[int, list[_Clause]](list), list[int](), 0
        self._starts, self._reasons, self._levels = list[int](), dict[int, _Clause | None](), dict[int, int]()
        self._activity, self._bump = defaultdict[int, float](float), 1.0
        self._wrong = next((clause for clause in clauses if self._add(clause)), None)

    # facts as nodes

    def _numbered(self, parts: Sequence[Fact]) -> dict[int, int]:
        """Number the atoms and nodes of facts, all of whose parts are given. Return the literal of each, by its id."""
        for part in parts:
            if isinstance(part, Below) and part.terms:
                self._atoms.setdefault(part if part.terms[0][0] > 0 else part.over, len(self._atoms) + 2)
            elif isinstance(part, Atom):
                self._atoms.setdefault(part, len(self._atoms) + 2)
        literals = dict[int, int]()
        for part in parts:
            if isinstance(part, Below) and part.terms:
                literal = self._atoms[part] if part.terms[0][0] > 0 else -self._atoms[part.over]
            elif isinstance(part, (bool, Below)):
                literal = TRUE if part is True or (isinstance(part, Below) and part.constant <= 0) else -TRUE
            elif isinstance(part, Atom):
                literal = self._atoms[part]
            elif isinstance(part, No):
                literal = -literals[id(part.fact)]
            else:
                sign = -1 if isinstance(part, Either) else 1
                a, b = sign * literals[id(part.one)], sign * literals[id(part.other)]
                literal = sign * self._nodes.setdefault((a, b), len(self._atoms) + 2 + len(self._nodes))
            literals[id(part)] = literal
        return literals

    # the search

    def _set(self, literal: int, reason: _Clause | None) -> None:
        self._trail.append(literal)
        self._reasons[literal], self._levels[literal] = reason, len(self._starts)

    def _undo(self, level: int) -> None:
        if level < len(self._starts):
            for literal in self._trail[self._starts[level] :]:
                del self._reasons[literal], self._levels[literal]
            del self._trail[self._starts[level] :], self._starts[level:]
            self._done = len(self._trail)

    def _add(self, clause: _Clause) -> bool:
        """Add a clause, set the literal that it forces, if any, and return whether the clause is false."""
        literals, levels = clause.literals, self._levels
        literals.sort(key=lambda literal: -levels.get(-literal, len(self._starts) + 1))
        for literal in literals[:2]:
            self._watches[literal].append(clause)
        if not literals or -literals[0] in levels:
            return True
        if (len(literals) == 1 or -literals[1] in levels) and literals[0] not in levels:
            self._set(literals[0], clause)
        return False

    def _propagate(self) -> _Clause | None:
        """Set the literals that clauses force, until a clause is false. Return this clause, or None."""
        levels = self._levels
        while self._done < len(self._trail):
            false = -self._trail[self._done]
            self._done += 1
            watching, remaining = self._watches[false], list[_Clause]()
            self._watches[false] = remaining
            for i, clause in enumerate(watching):
                literals = clause.literals
                if len(literals) > 1 and literals[0] == false:
                    literals[0], literals[1] = literals[1], false
                if literals[0] in levels:
                    remaining.append(clause)
                    continue
                for j in range(2, len(literals)):
                    if -literals[j] not in levels:
                        literals[1], literals[j] = literals[j], false
                        self._watches[literals[1]].append(clause)
                        break
                else:
                    remaining.append(clause)
                    if -literals[0] in levels:
                        remaining += watching[i + 1 :]
                        return clause
                    self._set(literals[0], clause)
        return None

    def _learn(self, conflict: _Clause) -> _Clause:
        """Return the clause that follows from a false clause and the reasons of its literals. Its first literal is the
        literal that was set last."""
        levels, against = self._levels, {-literal for literal in conflict.literals}
        level = max((levels[literal] for literal in against), default=0)
        here = sum(levels[literal] == level for literal in against)
        literals, uses = [], [conflict]
        for literal in reversed(self._trail):
            if literal not in against:
                continue
            of, reason = levels[literal], self._reasons[literal]
            self._activity[abs(literal)] += self._bump
            if reason is None or (of > 0 and (of < level or here == 1)):
                literals.append(-literal)
                continue
            uses.append(reason)
            for other in reason.literals:
                if other != literal and -other not in against:
                    against.add(-other)
                    here += levels[-other] == level
            here -= of == level
        self._bump *= 1.05
        return _Clause(literals, uses=uses[::-1])

    def _decide(self) -> bool:
        """Choose a node that must be false but is not false yet, and set a literal that makes it false. Return whether
        there is such a node."""
        levels, nodes = self._levels, (self._parts[-n] for n in self._trail if -n in self._parts)
        opened = [-part for parts in nodes if not any(-part in levels for part in parts) for part in parts]
        if opened:
            self._starts.append(len(self._trail))
            self._set(max(opened, key=lambda literal: self._activity[abs(literal)]), None)
        return bool(opened)

    def _absurd(self) -> _Clause:
        """Return a clause that arithmetic proves and that is false under the literals that are set.

        Raises:
            NotProven: no such clause was found.
        """
        z3 = self._z3
        set_ = [(n if n in self._levels else -n) for n, _ in self._lines if n in self._levels or -n in self._levels]
        literal = {z3.Bool(f"{n}") if n > 0 else z3.Not(z3.Bool(f"{-n}")): n for n in set_}
        if self._arithmetic.check([*literal]) != z3.unsat:
            raise NotProven("it needs more than linear arithmetic")
        core, lines = [literal[label] for label in self._arithmetic.unsat_core()], dict(self._lines)
        factors, sums = {n: z3.Int(f"factor {n}") for n in core}, z3.Solver()
        of = {n: lines[n] if n > 0 else lines[-n].over for n in core}
        sums.add([z3.And(factor >= 0, factor <= LARGEST_FACTOR) for factor in factors.values()])
        sums.add(z3.Sum([factors[n] * line.constant for n, line in of.items()]) > 0)
        for var in dict.fromkeys(v for line in of.values() for _, v in line.terms):
            sums.add(z3.Sum([factors[n] * c for n, line in of.items() for c, v in line.terms if v == var]) == 0)
        if sums.check() != z3.sat:
            raise NotProven("it needs more than sums of linear facts")
        model = sums.model()
        claim = tuple((model.eval(factor, model_completion=True).as_long(), n) for n, factor in factors.items())
        return _Clause([-n for n in core], claim=claim)

    def refuted(self) -> _Clause:
        """Return the empty clause.

        Raises:
            NotProven: it was not found.
        """
        conflict = self._wrong
        for _ in range(MOST_CONFLICTS):
            while conflict is None and (conflict := self._propagate()) is None and self._decide():
                pass
            if conflict is None:
                conflict = self._absurd()
                self._undo(max(self._levels[-literal] for literal in conflict.literals))
                self._add(conflict)
            learnt, conflict = self._learn(conflict), None
            if not learnt.literals:
                return learnt
            self._undo(max((self._levels[-literal] for literal in learnt.literals[1:]), default=0))
            self._add(learnt)
        raise NotProven(f"the search did not end after {MOST_CONFLICTS:,} contradictions")

    def named(self, empty: _Clause) -> Refutation:
        """Return the clauses that lead to the empty clause, without all others."""
        order = [*walk([empty], lambda clause: clause.uses[::-1])]
        claims, cuts = [c for c in order if c.claim], [c for c in order if c.uses]
        n_given = 1 + 3 * len(self._nodes) + len(self._roots)
        numbers = {id(clause): n_given + number for number, clause in enumerate([*claims, *cuts], 1)}
        return Refutation(
            [*self._atoms],
            [*self._nodes],
            self._roots,
            [clause.claim for clause in claims],
            [(cut.literals, [numbers.get(id(use), use.number) for use in cut.uses]) for cut in cuts],
        )


def refutation(z3: Z3, facts: Sequence[Fact]) -> Refutation:
    """Return a refutation of facts that cannot all be true.

    Raises:
        NotProven: no contradiction was found; the facts may all be true.
    """
    search = _Search(z3, facts)
    return search.named(search.refuted())
