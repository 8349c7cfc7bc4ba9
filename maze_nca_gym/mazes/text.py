"""Rules and facts as text, and SHA-256 digests of these texts. A verdict stores the digests of its question and its
rules.

A fact is called once, with symbols. The text of a part that is longer than `LONGEST` is replaced by its digest, so
texts of rules with many shared parts stay short.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import add, and_, eq, ge, gt, invert, le, lt, mod, mul, ne, neg, or_, sub, xor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.facts import CENTRE, SYMBOLS, Derived, Formula, Ghosts, Reading, Relation, StageAt, read_at
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.relations import Fixpoint, anywhere, has_known_axioms
from maze_nca_gym.mazes.terms import Term, TileKind, Weighed

LONGEST = 200
"""Largest number of characters in the text of a part; a longer text is replaced by its digest."""
MOST_WORDS = 10_000
"""Largest number of characters in the text of a part for people."""
PACKAGE = __name__.partition(".")[0]


def digest(content: Any) -> str:
    """Return the SHA-256 digest of JSON-serialisable content, as 64 hexadecimal digits. The order of keys has no
    effect."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


MARKS: dict[Any, str] = {and_: "&", or_: "|", xor: "^", invert: "~", add: "+", sub: "-", mul: "*", mod: "%", neg: "-"}
MARKS |= {lt: "<", le: "<=", gt: ">", ge: ">=", eq: "==", ne: "!="}
READ = {"tile": "kind ", "inside": "inside", "true": "", "number": "number ", "of_map": "number "}
"""The text before the name that is read, by the method of `Picture`."""


def _text(content: object) -> str:
    """Return a formula as text, or any other object as `str` does."""
    known = dict[Formula, str]()
    for part in content.walk(known) if isinstance(content, Formula) else ():
        does = part.does
        parts = [known[operand] if isinstance(operand, Formula) else f"{operand}" for operand in part.parts]
        if isinstance(does, Reading):
            said = f"{READ[does.what]}{'' if does.name is None else getattr(does.name, 'name', does.name)}"
            said += ("" if does.at is None else f" at {does.at}") + "".join(f" after {when}" for when in parts)
        elif len(parts) == 2:
            said = f"({parts[0]} {MARKS[does]} {parts[1]})"
        else:
            said = "t" if does is None else f"{MARKS[does]}{parts[0]}"
        known[part] = said if len(said) <= LONGEST else digest(said)
    return known[content] if isinstance(content, Formula) else str(content)


def printed(rule: Term | Callable[..., Any], *arguments: Any) -> str:
    """Return a rule or a fact as text.

    Args:
        rule: a rule as a term, or a function of a picture and further arguments.
        arguments: the arguments of the function after the picture.

    Raises:
        TypeError: the function does more than joining the values that it reads by operators.
    """
    return _text(rule.read_by(read_at(SYMBOLS, CENTRE)) if isinstance(rule, Term) else rule(SYMBOLS, *arguments))


def words(term: Term, kinds: Sequence[str]) -> str:
    """Return a rule as text for people, such as "WET at U & ~wall" or "2 * WET + -1 * wall >= 1".

    A part whose text is longer than `MOST_WORDS` appears as its number of parts, such as "<Term of 5,000 parts>".

    Args:
        term: the rule.
        kinds: the names of the kinds of tile, by number.
    """
    known = dict[Term, str]()
    for leaf in term.leaves:
        name = kinds[leaf.seen] if isinstance(leaf.seen, TileKind) else getattr(leaf.seen, "name", f"{leaf.seen}")
        known[leaf] = name if leaf.tap == CENTRE else f"{name} at {leaf.tap}"
    for part in term.walk(known):
        # parts of the same operator need no parentheses, unless it compares a sum
        plain = (None, invert) if isinstance(part.join, Weighed) else (None, invert, part.join)
        parts = [known[each] if each.join in plain else f"({known[each]})" for each in part.parts]
        if isinstance(part.join, Weighed):
            total = " + ".join(f"{weight} * {text}" for weight, text in zip(part.join.weights, parts, strict=True))
            most = "" if part.join.most is None else f"{part.join.most} >= "
            said = f"{most}{total} >= {part.join.least}"
        else:
            said = f"~{parts[0]}" if part.join is invert else f" {MARKS[part.join]} ".join(parts)
        known[part] = said if len(said) <= MOST_WORDS else repr(part)
    return known[term]


def printed_ghosts(ghosts: Ghosts) -> list[Any]:
    """Return the answers, definitions and axioms of ghosts as JSON-serialisable lists of texts.

    Ghosts of this package that have definitions are listed without their axioms, because these follow from the
    definitions.
    """
    answers = [[printed(answer.shown, CENTRE), printed(answer.n_moves)] for answer in ghosts.answers]
    defined = dict[str, list[str]]()
    for name, definition in ghosts.relations.items():
        parts: tuple[Any, ...] = definition
        if isinstance(definition, Relation):
            parts = definition.stage, definition.rule
        elif isinstance(definition, Derived):
            parts = "", definition.fact
        elif isinstance(definition, StageAt):
            parts = getattr(ghosts.relations[definition.of], "stage", definition.of), definition.kind
        defined[name] = [printed(part, CENTRE) if callable(part) else str(part) for part in parts]
    follow = defined and has_known_axioms(ghosts)
    axioms = {} if follow else ghosts.axioms(SYMBOLS, CENTRE, Formula(None))
    return [answers, defined, {str(axiom): _text(fact) for axiom, fact in axioms.items()}]


def printed_function(function: Any) -> Any:
    """Return a JSON-serialisable description that identifies a function, or None for a user's own function.

    The description of a fixpoint contains its rules, and of any other function of this package its name, if the
    function is what this package has under the name; `functools.wraps` gives a name to other functions too. For a
    `partial`, the bound arguments are added.
    """
    if isinstance(function, partial):
        inner = printed_function(function.func)
        bound = [list(function.args), function.keywords]
        plain = all(
            isinstance(argument, str | int | float | None) for argument in (*function.args, *function.keywords.values())
        )
        return [inner, bound] if inner is not None and plain else None
    owner = getattr(function, "__self__", function)
    own = function is owner or getattr(function, "__func__", None) is Fixpoint.specification
    if type(owner) is Fixpoint and own:
        rules = {name: [isinstance(owner.rules[name], anywhere), printed(term)] for name, term in owner.terms.items()}
        return [rules, list(owner.answers), owner.least]
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "<unnamed>")
    known: Any = sys.modules.get(module) if module.partition(".")[0] == PACKAGE else None
    for part in name.split("."):
        known = getattr(known, part, None)
    return f"{module}:{name}" if known is function else None


def printed_answers(solve: Callable[[Tiles], NDArray[np.bool_]], levels: Iterable[Tiles]) -> list[str]:
    """Return digests of the answers of a function on mazes.

    Args:
        solve: function of (N, H, W) tiles that returns bool answers.
        levels: batches of mazes, (N, H, W) uint8 each.

    Returns:
        For each batch, the digest, or the name of the error's type if the function fails.
    """

    def answers_of(tiles: Tiles) -> str:
        try:
            answers = np.ascontiguousarray(solve(tiles.copy()), np.bool_)
        except Exception as error:  # it is anything that its author wrote, and need not take every level
            return type(error).__name__
        return hashlib.sha256(f"{answers.shape}".encode() + np.packbits(answers).tobytes()).hexdigest()

    return [answers_of(tiles) for tiles in levels]
