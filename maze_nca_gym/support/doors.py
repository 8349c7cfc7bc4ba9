"""Packages that import a module only when one of its names is first used, and imports of optional dependencies."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import resolve_name
from typing import Annotated, Any, ForwardRef

from gymnasium.error import DependencyNotInstalled

LATER = "imported when its type hint is evaluated"
"""Metadata of the `Annotated` forward references to types that a module imports for type checkers only."""


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package that imports its names under `if TYPE_CHECKING:`.

    Therefore people, type checkers and Python read the same list of names. `typing.get_type_hints` works on these
    objects, although their modules import some types for type checkers alone.

    >>> __getattr__, __dir__ = lazily(__name__)

    Args:
        package: the package's name.
    """

    def find(name: str) -> Any:
        if name not in imports(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, its_name = imports(package)[name]
        value = getattr(import_module(home), its_name)
        # an alias such as `Callable[...]` has a module of Python's own, in which nothing is missing
        if callable(value) and value.__module__.partition(".")[0] == package.partition(".")[0]:
            known = vars(sys.modules[value.__module__])
            for missing in imports(value.__module__).keys() - known.keys():
                home, its_name = imports(value.__module__)[missing]
                reference = ForwardRef(f"__import__({home!r}, fromlist=[{its_name!r}]).{its_name}")
                known[missing] = Annotated[reference, LATER]
        return value

    return find, lambda: sorted(sys.modules[package].__all__)


@contextmanager
def needing(advice: str, kind: type[Exception] = DependencyNotInstalled) -> Iterator[None]:
    """Turn an ImportError in the block, which imports an optional dependency, into an error with advice.

    Args:
        advice: the message: what needs the dependency, and how to install it.
        kind: the class of the error.
    """
    try:
        yield
    except ImportError as error:
        raise kind(advice) from error


@cache
def imports(module: str) -> Mapping[str, tuple[str, str]]:
    """Return the origins of the names that the top of a module imports: name -> (module, name in that module).

    Imports under `TYPE_CHECKING` are included. The names are read from the compiled code, so the function works without
    source files too.
    """
    spec, origins = sys.modules[module].__spec__, {}
    assert spec is not None  # the package's own modules are imported, not run
    # other programs import modules by loaders of their own, such as pytest's, which need not have `get_code`
    loader: Any = spec.loader if hasattr(spec.loader, "get_code") else SourceFileLoader(module, str(spec.origin))
    code = loader.get_code(module)
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for number, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":  # after its level and the names
            home = resolve_name("." * steps[number - 2].argval + step.argval, spec.parent)
        elif step.opname == "IMPORT_FROM":  # before what keeps it by the name that it has here
            origins[steps[number + 1].argval] = (home, step.argval)
    return origins
