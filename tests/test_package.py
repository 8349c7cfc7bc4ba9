"""The package as it is installed: its list of folders, its data, what importing it loads, what it never does."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import maze_nca_gym

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
TREES = {"maze_nca_gym": ROOT / "maze_nca_gym", "maze_nca_gym.agents": ROOT / "agents"}
"""Package -> the folder on disk whose subfolders are its subpackages."""
SOURCES = sorted(path for tree in TREES.values() for path in tree.rglob("*.py"))
HEAVY = {"torch", "numba", "llvmlite", "pygame", "PIL", "imageio", "networkx", "tyro", "rich", "stable_baselines3"}
HEAVY |= {"matplotlib", "tensorboard"}
"""What importing the core must not load."""


def setuptools_table() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def folder_of(package: str) -> Path:
    """The folder of a package of the list."""
    root = max((name for name in TREES if f"{package}.".startswith(f"{name}.")), key=len)
    return TREES[root].joinpath(*package.removeprefix(root).split("."))


def run_python(*arguments: str) -> str:
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT.parent, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_listed_packages_are_the_folders_on_disk() -> None:
    on_disk = {
        ".".join([package, *init.parent.relative_to(tree).parts])
        for package, tree in TREES.items()
        for init in tree.rglob("__init__.py")
    }
    assert sorted(setuptools_table()["packages"]) == sorted(on_disk)
    assert setuptools_table()["package-dir"] == {"maze_nca_gym.agents": "agents"}


def test_every_folder_of_modules_is_a_package() -> None:
    assert [path for path in SOURCES if not (path.parent / "__init__.py").is_file()] == []


def test_package_data_is_listed_and_there() -> None:
    listed = {
        path
        for package, patterns in setuptools_table()["package-data"].items()
        for pattern in patterns
        for path in folder_of(package).glob(pattern)
    }
    on_disk = {
        path
        for tree in TREES.values()
        for path in tree.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc")
    }
    assert on_disk == listed
    assert {"py.typed", "prefabs.txt"} <= {path.name for path in listed}


def test_version_is_the_distributions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert maze_nca_gym.__version__ == project["version"]


def test_import_is_light_and_fast() -> None:
    code = "import sys, time; start = time.perf_counter(); import maze_nca_gym; print(time.perf_counter() - start)"
    seconds = min(float(run_python("-c", code)) for _ in range(3))
    print(f"import maze_nca_gym: {seconds:.2f} s")
    assert seconds < 1.5
    loaded = run_python("-c", "import sys, maze_nca_gym; print(*{name.partition('.')[0] for name in sys.modules})")
    assert HEAVY.isdisjoint(loaded.split())


@pytest.mark.parametrize(
    "module", ["levels", "generation", "solvers", "scoring", "dynamics", "envs.maze", "envs.vector"]
)
def test_modules_of_the_core_load_no_heavy_library(module: str) -> None:
    code = f"import sys, maze_nca_gym.{module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    assert HEAVY.isdisjoint(run_python("-c", code).split())


def test_import_is_silent() -> None:
    assert run_python("-W", "error", "-c", "import maze_nca_gym") == ""


def test_importing_again_is_silent() -> None:
    code = "import importlib, maze_nca_gym; importlib.reload(maze_nca_gym)"
    assert run_python("-W", "error", "-c", code) == ""


def test_agents_folder_refuses_to_be_a_top_level_package() -> None:
    spec = importlib.util.spec_from_file_location("agents", ROOT / "agents" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"import maze_nca_gym\.agents, not agents"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def imported_modules(path: Path) -> set[str]:
    """Absolute names of what a source file imports, at its top or within functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_pickled(path: Path) -> None:
    picklers = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    assert picklers.isdisjoint(name.partition(".")[0] for name in imported_modules(path))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load", "torch.load"):
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert options.get("allow_pickle") == "False", ast.unparse(node)
