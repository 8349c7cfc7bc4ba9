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

MOST_WORDS = 25
"""Number of words that a sentence may have."""
MOST_LONG_SENTENCES = {"agents": 15, "maze_nca_gym": 0}
"""Folder -> number of longer sentences in its public docstrings. It may only shrink."""

ARRAYS = {"ArrayLike", "Frame", "NDArray", "Tensor", "Tiles"}
"""Names of the types of arrays, of which `NDArray[np.bool_]`, `Frame` and `Tiles` say the dtype."""
SHAPE = re.compile(r"\((\.\.\.|[A-Z\d][\w +*-]*|[hkmnw])(, [\w .+*-]+)*,?\)")
DTYPE = re.compile(
    r"\b(bool|dtypes?|u?int(eger)?s?\d*|floats?|float\d+|ind(ex|ices)|records?|tiles|true)\b", re.IGNORECASE
)

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


def long_sentences(text: str) -> list[str]:
    """Return the sentences of a text that have too many words; code in backquotes counts as one."""
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |>>> |\w[\w, ]*: ))", re.sub(r"`[^`]*`", "code", text))
    sentences = [sentence for paragraph in paragraphs for sentence in re.split(r"(?<=[.!?])\s+", paragraph)]
    return [s for s in sentences if len([word for word in s.split() if re.search(r"\w", word)]) > MOST_WORDS]


def types(annotation: ast.expr | None) -> Iterator[ast.expr]:
    """Yield the types of arrays in an annotation, but for arrays in mappings and of callables."""
    if isinstance(annotation, ast.BinOp):
        yield from types(annotation.left)
        yield from types(annotation.right)
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in {"tuple", "Sequence", "Iterable"}:
        for part in annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]:
            yield from types(part)
    elif annotation is not None and re.match(r"[\w.]*", ast.unparse(annotation))[0].split(".")[-1] in ARRAYS:
        yield annotation


def array_functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name, docstring, and whether the types leave the dtype open, of the public functions of arrays."""
    for node in body:
        if isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield from array_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and _is_public(node.name) and not node.name.startswith("__"):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found = [ast.unparse(t) for a in [*(a.annotation for a in arguments), node.returns] for t in types(a)]
            if found:
                is_open = any(re.search(r"ArrayLike|Tensor|Any", name) for name in found)
                yield prefix + node.name, ast.get_docstring(node) or "", is_open


@pytest.mark.parametrize("folder", MOST_LONG_SENTENCES)
def test_sentences_are_short(folder):
    found = [
        f"{text.name}: {sentence}"
        for file in FILES
        if file.startswith(f"{folder}/")
        for text in texts(file)
        for sentence in long_sentences(text.text)
    ]
    assert len(found) <= MOST_LONG_SENTENCES[folder], "\n".join(found)


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("maze_nca_gym/")])
def test_functions_of_arrays_state_shapes_and_dtypes(file):
    tree = ast.parse((ROOT / file).read_text())
    wrong = [
        name
        for name, text, is_open in array_functions(tree.body, f"{file}:")
        if not SHAPE.search(text) or (is_open and not DTYPE.search(text))
    ]
    assert not wrong


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
