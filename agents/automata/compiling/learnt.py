"""Why facts cannot all be true, in small steps that Coq repeats: clauses, each of which follows from a few facts and
clauses before.

This is conflict-driven clause learning (Marques-Silva and Sakallah, 1999). Where facts are true but for arithmetic, z3
finds linear facts that contradict each other, and the factors with which their sum is absurd.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from maze_nca_gym.mazes.neighbours import Offset

MOST_CONFLICTS = 20_000
"""Largest number of contradictions before the search gives up."""
LARGEST_FACTOR = 64
"""Largest factor of a sum in a linear fact."""
Variable: TypeAlias = tuple[int, Offset]
"""Which boolean or number, and where."""


class Linear(NamedTuple):
    """A sum that is at most 0."""

    constant: int
    terms: tuple[tuple[int, Variable], ...]

    @property
    def over(self) -> Linear:
        """Its contrary."""
        return Linear(1 - self.constant, tuple((-c, v) for c, v in self.terms))


class Given(NamedTuple):
    """Origin of a clause: a fact, by its number."""

    number: int


class Absurd(NamedTuple):
    """Origin of a clause: linear facts that are never all true, as (factor, whether it is true, fact)."""

    claim: tuple[tuple[int, bool, Linear], ...]


@dataclass(eq=False)
class Clause:
    """Literals, of which one is true; n is an atom or a part of a fact, -n its contrary. `uses` says from which it
    follows."""

    literals: list[int]
    origin: Given | Absurd | None = None
    uses: list[Clause] = field(default_factory=list)


class Refutation(NamedTuple):
    """Why facts cannot all be true.

    Attributes:
        atoms: what literals are about, from 1.
        claims: linear facts.
        cuts: clauses, the last of which is empty, each with what it follows from: the numbers of facts, then of claims,
            then of clauses, from 1.
    """

    atoms: list[Any]
    claims: list[tuple[tuple[int, bool, Linear], ...]]
    cuts: list[tuple[list[int], list[int]]]


class TooHard(ValueError):
    """No refutation was found."""


class _Search:
    def __init__(self, z3: Any, facts: Sequence[Any]) -> None:
        self._z3, self._atoms = z3, dict[Any, int]()
        forms = [self._form(fact, True) for fact in facts]
        self._n_atoms = self._n = len(self._atoms)
        self._forms = [form for form in forms if form is not True]
        self._watches = defaultdict[int, list[Clause]](list)
        self._trail, self._done, self._starts = list[int](), 0, list[int]()
        self._reasons, self._levels = dict[int, Clause | None](), dict[int, int]()
        self._activity, self._bump = defaultdict[int, float](float), 1.0
        self._clauses = list[Clause]()
        for number, form in enumerate(forms):
            self._assert(form, Given(number))
        self._lines = [(n, line) for line, n in self._atoms.items() if isinstance(line, Linear)]
        self._arithmetic = z3.Solver()
        self._arithmetic.set("core.minimize", True)
        numbers = dict[Variable, Any]()
        for n, line in self._lines:
            terms = [c * numbers.setdefault(v, z3.Int(f"number {v}")) for c, v in line.terms]
            self._arithmetic.add(z3.Bool(f"{n}") == (line.constant + z3.Sum(terms) <= 0))
        # two bounds of one sum
        of_sum = defaultdict[Any, list[tuple[int, Linear]]](list)
        for n, line in self._lines:
            of_sum[line.terms].append((n, line))
        for same in of_sum.values():
            for (n, less), (m, more) in combinations(sorted(same, key=lambda each: -each[1].constant), 2):
                self._clauses.append(Clause([-n, m], Absurd(((1, True, less), (1, False, more)))))

    # facts as clauses

    def _form(self, f: Any, sign: bool) -> Any:
        """Return a fact as a literal, a constant, or ("Both" or "Either", parts)."""
        if isinstance(f, bool):
            return f is sign
        if isinstance(f, Linear) and not f.terms:
            return (f.constant <= 0) is sign
        if isinstance(f, Linear) and f.terms[0][0] < 0:
            f, sign = f.over, not sign
        if isinstance(f, Linear) or isinstance(f[0], int):
            n = self._atoms.setdefault(f, len(self._atoms) + 1)
            return n if sign else -n
        if f[0] == "No":
            return self._form(f[1], not sign)
        stops, word = (f[0] == "Either") is sign, "Either" if (f[0] == "Either") is sign else "Both"
        parts = [part for part in (self._form(part, sign) for part in f[1:]) if part is not (not stops)]
        if stops in (part for part in parts if isinstance(part, bool)) or not parts:
            return stops if parts else not stops
        return (word, parts) if len(parts) > 1 else parts[0]

    def _assert(self, form: Any, origin: Given) -> None:
        if isinstance(form, bool):
            if not form:
                self._clauses.append(Clause([], origin))
        elif isinstance(form, int):
            self._clauses.append(Clause([form], origin))
        elif form[0] == "Both":
            for part in form[1]:
                self._assert(part, origin)
        else:
            self._clauses.append(Clause([self._literal(part, origin) for part in form[1]], origin))

    def _literal(self, form: Any, origin: Given) -> int:
        """Return a literal that implies a form (Plaisted and Greenbaum, 1986)."""
        if isinstance(form, int):
            return form
        parts = [self._literal(part, origin) for part in form[1]]
        self._n += 1
        new = self._n
        found = [[-new, part] for part in parts] if form[0] == "Both" else [[-new, *parts]]
        self._clauses += [Clause(literals, origin) for literals in found]
        return new

    # the search

    def _set(self, literal: int, reason: Clause | None) -> None:
        self._trail.append(literal)
        self._reasons[literal], self._levels[literal] = reason, len(self._starts)

    def _undo(self, level: int) -> None:
        if level < len(self._starts):
            for literal in self._trail[self._starts[level] :]:
                del self._reasons[literal], self._levels[literal]
            del self._trail[self._starts[level] :], self._starts[level:]
            self._done = len(self._trail)

    def _add(self, clause: Clause) -> Clause | None:
        """Watch a clause, and return it if it is false."""
        literals, levels = clause.literals, self._levels
        literals.sort(key=lambda each: -levels.get(-each, len(self._starts) + 1))
        for literal in literals[:2]:
            self._watches[literal].append(clause)
        if not literals or -literals[0] in levels:
            return clause
        if (len(literals) == 1 or -literals[1] in levels) and literals[0] not in levels:
            self._set(literals[0], clause)
        return None

    def _propagate(self) -> Clause | None:
        """Set what clauses force; return one that is false."""
        levels = self._levels
        while self._done < len(self._trail):
            false = -self._trail[self._done]
            self._done += 1
            watching, kept = self._watches[false], list[Clause]()
            self._watches[false] = kept
            for i, clause in enumerate(watching):
                literals = clause.literals
                if len(literals) > 1 and literals[0] == false:
                    literals[0], literals[1] = literals[1], false
                if literals[0] in levels:
                    kept.append(clause)
                    continue
                for j in range(2, len(literals)):
                    if -literals[j] not in levels:
                        literals[1], literals[j] = literals[j], false
                        self._watches[literals[1]].append(clause)
                        break
                else:
                    kept.append(clause)
                    if -literals[0] in levels:
                        kept += watching[i + 1 :]
                        return clause
                    self._set(literals[0], clause)
        return None

    def _learn(self, conflict: Clause) -> Clause:
        """Return what follows from a clause that is false and from what set its literals: a clause of atoms, the one
        set last first."""
        levels, against = self._levels, {-literal for literal in conflict.literals}
        level = max((levels[literal] for literal in against), default=0)
        here = sum(levels[literal] == level for literal in against)
        kept, uses = [], [conflict]
        for literal in reversed(self._trail):
            if literal not in against:
                continue
            of, reason = levels[literal], self._reasons[literal]
            self._activity[abs(literal)] += self._bump
            if reason is None or (0 < of and abs(literal) <= self._n_atoms and (of < level or here == 1)):
                kept.append(-literal)
                continue
            uses.append(reason)
            for other in reason.literals:
                if other != literal and -other not in against:
                    against.add(-other)
                    here += levels[-other] == level
            here -= of == level
        self._bump *= 1.05
        return Clause(kept, None, uses[::-1])

    def _open(self, form: Any) -> list[int] | None:
        """Return the literals of a form that are not set; None if it is true."""
        if isinstance(form, int):
            return None if form in self._levels else [] if -form in self._levels else [form]
        of_parts = [self._open(part) for part in form[1]]
        if None in of_parts if form[0] == "Either" else of_parts.count(None) == len(of_parts):
            return None
        return [literal for part in of_parts if part is not None for literal in part]

    def _absurd(self) -> Clause:
        """Return a clause that is false by arithmetic.

        Raises:
            TooHard: there is none.
        """
        z3, levels = self._z3, self._levels
        literals = {
            (f"{n}" if n in levels else f"-{n}"): (n, line, n in levels)
            for n, line in self._lines
            if n in levels or -n in levels
        }
        given = [z3.Bool(f"{n}") if true else z3.Not(z3.Bool(f"{n}")) for n, _, true in literals.values()]
        if self._arithmetic.check(given) != z3.unsat:
            raise TooHard("it needs more than linear arithmetic")
        core = [literals[f"-{each.arg(0)}" if z3.is_not(each) else str(each)] for each in self._arithmetic.unsat_core()]
        lines = [line if true else line.over for _, line, true in core]
        factors, sums = [z3.Int(f"factor {i}") for i in range(len(core))], z3.Solver()
        sums.add([z3.And(factor >= 0, factor <= LARGEST_FACTOR) for factor in factors])
        sums.add(z3.Sum([f * line.constant for f, line in zip(factors, lines, strict=True)]) > 0)
        for var in {v for line in lines for _, v in line.terms}:
            of_var = [f * c for f, line in zip(factors, lines, strict=True) for c, v in line.terms if v == var]
            sums.add(z3.Sum(of_var) == 0)
        if sums.check() != z3.sat:
            raise TooHard("it needs more than sums of linear facts")
        model = sums.model()
        values = [model.eval(factor, model_completion=True).as_long() for factor in factors]
        claim = tuple((value, true, line) for value, (_, line, true) in zip(values, core, strict=True))
        return Clause([-n if true else n for n, _, true in core], Absurd(claim))

    def refuted(self) -> Clause:
        """Return the empty clause.

        Raises:
            TooHard: there is none, or it was not found.
        """
        for clause in self._clauses:
            if (wrong := self._add(clause)) is not None:
                return self._learn(wrong)
        for _ in range(MOST_CONFLICTS):
            while (wrong := self._propagate()) is None:
                opened = next((found for form in self._forms if (found := self._open(form)) is not None), None)
                if opened is None:
                    wrong = self._absurd()
                    self._undo(max(self._levels[-literal] for literal in wrong.literals))
                    self._add(wrong)
                    break
                self._starts.append(len(self._trail))
                self._set(max(opened, key=lambda literal: self._activity[abs(literal)]), None)
            learnt = self._learn(wrong)
            if not learnt.literals:
                return learnt
            self._undo(max((self._levels[-literal] for literal in learnt.literals[1:]), default=0))
            self._add(learnt)
        raise TooHard(f"the search had no end after {MOST_CONFLICTS:,} contradictions")

    def named(self, empty: Clause, n_facts: int) -> Refutation:
        """Return what leads to the empty clause, and nothing else."""
        order, seen = list[Clause](), set[int]()
        stack = [(empty, False)]
        while stack:
            clause, left = stack.pop()
            if left:
                order.append(clause)
            elif id(clause) not in seen:
                seen.add(id(clause))
                stack.append((clause, True))
                stack += [(use, False) for use in clause.uses]
        claims = list(dict.fromkeys(c.origin.claim for c in order if isinstance(c.origin, Absurd)))
        cuts = [clause for clause in order if clause.origin is None]
        numbers = {id(cut): n_facts + len(claims) + i for i, cut in enumerate(cuts, 1)}
        for clause in order:
            if isinstance(clause.origin, Given):
                numbers[id(clause)] = clause.origin.number + 1
            elif clause.origin is not None:
                numbers[id(clause)] = n_facts + 1 + claims.index(clause.origin.claim)
        atoms = {abs(literal): None for cut in cuts for literal in cut.literals}
        places, all_atoms = {n: place for place, n in enumerate(atoms, 1)}, list(self._atoms)
        return Refutation(
            [all_atoms[n - 1] for n in atoms],
            claims,
            [
                (
                    [places[abs(literal)] * (1 if literal > 0 else -1) for literal in cut.literals],
                    list(dict.fromkeys(numbers[id(use)] for use in cut.uses)),
                )
                for cut in cuts
            ],
        )


def refutation(z3: Any, facts: Sequence[Any]) -> Refutation:
    """Return why facts cannot all be true: each True, False, a `Linear`, a `Variable`, or ("No", fact),
    ("Both", fact, fact) or ("Either", fact, fact).

    Raises:
        TooHard: no reason was found; they may all be true.
    """
    search = _Search(z3, facts)
    return search.named(search.refuted(), len(facts))
