"""Docstrings in plain English: they make sense alone, and functions say what they do."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("agents", "maze_nca_gym")
    for path in (ROOT / folder).rglob("*.py")
    if folder == "agents" or "agents" not in path.relative_to(ROOT).parts
)

FRAGMENTS = """
And As At But By For From In It Not Of On Or That Then Those Where Which Who Whom Whose With
"""
"""First words of texts that need another one to be understood."""

VERBS = """
Accept Activate Add Advance Allow Announce Answer Append Apply Ask Assign Attach Average Begin Bind Blend Bound Bring
Build Call Cancel Carve Change Check Choose Clear Clip Close Collect Colour Compare Compile Complain Compute Connect
Continue Convert Copy Corrupt Count Create Cut Decide Decode Define Delete Derive Describe Detect Discard Divide Do
Draw Drop Edit Encode End Enter Estimate Evaluate Evolve Expand Explore Export Extract Fill Filter Find Finish Fit
Flip Fold Follow Format Freeze Gather Generate Get Give Group Grow Guess Handle Hash Hide Hold Ignore Import Index
Initialise Insert Interpolate Invert Iterate Join Keep Launch Lay Learn Leave Let Limit Link List Load Look Lower Make
Map Mark Match Measure Merge Minimise Mix Move Mutate Name Normalise Note Number Open Order Outline Pack Pad Paint
Parse Pass Pause Permute Pick Place Plan Play Plot Post Predict Prepare Print Prune Pull Push Put Quote Raise Rank
Read Recombine Record Redraw Reduce Refuse Register Reject Release Remember Remove Render Reorder Repeat Replace
Report Request Require Reset Reshape Resize Resolve Restart Restore Resume Return Reverse Roll Rotate Round Run Sample
Save Scale Score Search Seed Select Send Serve Set Share Shift Shorten Show Shrink Shuffle Simulate Skip Sleep Smooth
Solve Sort Split Spread Stack Start Step Stop Store Sum Summarise Swap Switch Take Test Thin Toggle Track Train
Transform Translate Trim Turn Undo Unpack Update Use Validate Verify Visit Wait Walk Warn Watch Weigh Wrap Write Yield
"""
"""Verbs with which functions begin. Add one if it is an imperative."""

OUT_OF_USE = ("anew", "for ever", "is told", "so many")
"""Words for which there are plainer ones: again, forever, receives, that many."""

EXCEPTIONS: frozenset[str] = frozenset()
"""Names as `file:name` that break a rule. It may only shrink."""


class Text(NamedTuple):
    """A public docstring, and what has it."""

    name: str
    is_function: bool
    text: str


def texts(file: str) -> Iterator[Text]:
    tree = ast.parse((ROOT / file).read_text())
    if text := ast.get_docstring(tree):
        yield Text(f"{file}:module", False, text)
    yield from _inside(tree.body, f"{file}:")


def _inside(body: list[ast.stmt], prefix: str) -> Iterator[Text]:
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if _is_public(node.name) and (text := ast.get_docstring(node)):
                yield Text(prefix + node.name, _is_called(node), text)
            if isinstance(node, ast.ClassDef) and _is_public(node.name):
                yield from _inside(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str) and _is_public(name):
                yield Text(prefix + name, False, inspect.cleandoc(after.value.value))


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name.startswith("__")


def _is_called(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return not isinstance(node, ast.ClassDef) and not any("property" in ast.unparse(d) for d in node.decorator_list)


def faults(text: Text) -> list[str]:
    """Say what is wrong with a text."""
    first = re.match(r"\W*(\w*)", text.text)[1]
    found = []
    if first in FRAGMENTS.split():
        found.append(f"begins with {first}: it should make sense alone")
    elif text.is_function and first not in VERBS.split():
        found.append(f"begins with {first!r}: a function says what it does, in the imperative (see VERBS)")
    words = re.sub(r"\s+", " ", text.text)
    found += [f"has {word!r}: say it plainer" for word in OUT_OF_USE if re.search(rf"\b{word}\b", words)]
    return found


@pytest.mark.parametrize("file", FILES)
def test_texts_make_sense_alone(file):
    wrong = {text.name: found for text in texts(file) if (found := faults(text)) and text.name not in EXCEPTIONS}
    assert not wrong


def test_exceptions_are_needed():
    faulty = {text.name for file in FILES for text in texts(file) if faults(text)}
    assert faulty >= EXCEPTIONS


@pytest.mark.parametrize(
    ("is_function", "text", "n_faults"),
    [
        (True, "Return the path.", 0),
        (True, "The path.", 1),
        (True, "(N,) lengths.", 1),
        (True, "Of the path.", 1),
        (False, "Length of the path.", 0),
        (False, "Of the path.", 1),
        (False, "Number of levels that are drawn\nanew.", 1),
    ],
)
def test_faults_are_found(is_function, text, n_faults):
    assert len(faults(Text("name", is_function, text))) == n_faults
