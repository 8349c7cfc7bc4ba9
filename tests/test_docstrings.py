"""Docstrings of public functions of arrays state shapes, and dtypes if the types leave them open."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "maze_nca_gym"

ARRAYS = {"ArrayLike", "Frame", "NDArray", "Tensor", "Tiles"}
"""Names of types of arrays. `NDArray[np.bool_]`, `Frame` and `Tiles` also state the dtype."""
SHAPE = re.compile(r"\((\.\.\.|[A-Z\d][\w +*-]*|[hkmnw])(, [\w .+*-]+)*,?\)")
DTYPE = re.compile(
    r"\b(bool|dtypes?|u?int(eger)?s?\d*|floats?|float\d+|ind(ex|ices)|records?|tiles|true)\b", re.IGNORECASE
)


def types(annotation: ast.expr | None) -> Iterator[ast.expr]:
    """Yield the types of arrays in an annotation, except arrays in mappings and in callables."""
    if isinstance(annotation, ast.BinOp):
        yield from types(annotation.left)
        yield from types(annotation.right)
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in {"tuple", "Sequence", "Iterable"}:
        for part in annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]:
            yield from types(part)
    elif annotation is not None and re.match(r"[\w.]*", ast.unparse(annotation))[0].split(".")[-1] in ARRAYS:
        yield annotation


def array_functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name, docstring, and whether the types leave the dtype open, for each public function of arrays."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from array_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            types_of_arguments = [
                ast.unparse(t) for a in [*(a.annotation for a in arguments), node.returns] for t in types(a)
            ]
            if types_of_arguments:
                is_open = any(re.search(r"ArrayLike|Tensor|Any", name) for name in types_of_arguments)
                yield prefix + node.name, ast.get_docstring(node) or "", is_open


def test_functions_of_arrays_state_shapes_and_dtypes():
    missing = [
        (name, text, is_open)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, text, is_open in array_functions(ast.parse(path.read_text()).body, f"{path.relative_to(PACKAGE)}:")
    ]
    assert len(missing) > 100
    assert [name for name, text, _ in missing if not SHAPE.search(text)] == []
    assert [name for name, text, is_open in missing if is_open and not DTYPE.search(text)] == []
