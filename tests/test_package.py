"""The installed package: its list of folders, its data, and the modules that its import loads."""

from __future__ import annotations

import ast
import compileall
import importlib.util
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import typing
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tables import for_each

import maze_nca_gym
from tools import write_keywords

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PAGE, THEORY = ROOT / "docs" / "play", ROOT / "proofs"
ELSEWHERE = {"maze_nca_gym.agents.page": PAGE, "maze_nca_gym.agents.theory": THEORY}
"""Package without code -> its folder."""
TREES = {"maze_nca_gym": ROOT / "maze_nca_gym", "maze_nca_gym.agents": ROOT / "agents"}
"""Package -> the folder on disk whose subfolders are its subpackages."""
LINK = "maze_nca_gym/agents"
"""The link that makes a clone importable without installation."""
SOURCES = sorted(path for tree in TREES.values() for path in tree.rglob("*.py"))
DOORS = (
    "maze_nca_gym.mazes",
    "maze_nca_gym.envs.wrappers",
    "maze_nca_gym.rendering",
    "maze_nca_gym.agents",
    "maze_nca_gym.agents.automata",
    "maze_nca_gym.agents.reinforcement",
)
"""The packages whose names are public."""
HEAVY = {"torch", "numba", "llvmlite", "pygame", "PIL", "networkx", "rich", "stable_baselines3"}
HEAVY |= {"matplotlib", "tensorboard"}
"""Modules that the import of the core must not load."""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project_table() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))["project"]


def setuptools_table() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))["tool"]["setuptools"]


def tracked_files() -> list[str]:
    """The files of the repository; none outside a clone."""
    git = ["git", "ls-files", "-z"]
    try:
        listed = subprocess.run(git, capture_output=True, text=True, cwd=ROOT, check=False).stdout
    except FileNotFoundError:  # git is not installed
        return []
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def folder_of(package: str) -> Path:
    """Return the folder of a package of the list."""
    if package in ELSEWHERE:
        return ELSEWHERE[package]
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
    mapped = {package: ROOT / path for package, path in setuptools_table()["package-dir"].items()}
    assert sorted(setuptools_table()["packages"]) == sorted([*on_disk, *ELSEWHERE])
    assert mapped == {**ELSEWHERE, "maze_nca_gym.agents": ROOT / "agents"}


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
        for folder in (*(tree.rglob("*") for tree in TREES.values()), PAGE.iterdir(), THEORY.glob("*.v"))
        for path in folder
        if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc")
    }
    assert on_disk == listed
    assert {"py.typed", "prefabs.txt"} <= {path.name for path in listed}


def test_dir_of_the_package_shows_only_public_names() -> None:
    doors = {name.split(".")[1] for name in DOORS}
    assert dir(maze_nca_gym) == sorted({*maze_nca_gym.__all__, *doors})
    assert all(hasattr(maze_nca_gym, name) for name in maze_nca_gym.__all__)
    assert run_python("-c", "import maze_nca_gym; print(*dir(maze_nca_gym))").split() == dir(maze_nca_gym)


def test_version_is_the_same_everywhere() -> None:
    version = project_table()["version"]
    assert maze_nca_gym.__version__ == version
    assert re.findall(r"^version: (.*)$", read("CITATION.cff"), re.MULTILINE) == [version]
    assert re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0] == version
    assert run_python("-m", "maze_nca_gym", "--version") == f"maze-nca-gym {version}\n"


def test_module_and_command_are_one_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "maze_nca_gym", "polcies"], capture_output=True, text=True, cwd=ROOT.parent, check=False
    )
    assert result.returncode == 2
    assert "Did you mean 'policies'?" in result.stderr


def test_urls_agree_with_the_texts() -> None:
    urls = project_table()["urls"]
    assert all(url in read("README.md") and url in read("CITATION.cff") for url in urls.values())


def test_citation_agrees_with_the_readme() -> None:
    citation, readme = read("CITATION.cff"), read("README.md")
    title, authors = (re.search(rf" {key} += {{(.*)}},", readme)[1] for key in ("title", "author"))
    assert f"\n  title: {title}\n" in citation
    families, first_names = (re.findall(rf"{key}-names: (.*)", citation) for key in ("family", "given"))
    assert " and ".join(map(", ".join, zip(families, first_names, strict=True))) == authors


def test_hosted_tests_run_on_every_supported_python() -> None:
    workflow = read(".github/workflows/ci.yml")
    versions = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1])
    classifiers = "\n".join(project_table()["classifiers"])
    assert versions == re.findall(r"Python :: (3\.\d+)", classifiers)
    assert f">={versions[0]}" == project_table()["requires-python"]
    assert "bash .ci/run" in workflow


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all tracked files, as in a fresh clone."""
    folder, tracked = tmp_path_factory.mktemp("copy"), tracked_files()
    if not tracked:
        pytest.skip("no repository")
    for name in tracked:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def build(copy: Path, call: str) -> Path:
    """Build in a copy with setuptools, and return the built file."""
    (copy / "dist").mkdir(exist_ok=True)
    code = f"from setuptools.build_meta import *; open('dist/name', 'w').write({call})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=copy, check=False)
    assert result.returncode == 0, result.stderr
    return copy / "dist" / (copy / "dist" / "name").read_text()


def test_source_distribution_has_every_file(copy: Path) -> None:
    with tarfile.open(build(copy, "build_sdist('dist')")) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
        (info,) = (name for name in archive.getnames() if re.fullmatch(r"[^/]*/PKG-INFO", name))
        description = archive.extractfile(info).read().decode().partition("\n\n")[2]
    assert description.strip() == read("README.md").strip()
    assert set(tracked_files()) - packed == {LINK}
    assert {name for name in packed if name.startswith(LINK)} == set()


def test_wheel_has_the_page_without_its_policies(copy: Path) -> None:
    with zipfile.ZipFile(build(copy, "build_wheel('dist')")) as archive:
        packed = {name for name in archive.namelist() if "/agents/page/" in name}
    assert packed == {f"maze_nca_gym/agents/page/{path.name}" for path in PAGE.iterdir() if path.is_file()}


@for_each(
    ("address", "site"),
    [("", ""), ("https://example.org/owner/name", ""), ("https://example.org/owner/name", "https://example.org/name")],
)
def test_long_description_links_into_the_repository_and_to_the_site(
    monkeypatch: pytest.MonkeyPatch, address: str, site: str
) -> None:
    namespace: dict[str, str] = {}
    monkeypatch.setattr("setuptools.setup", lambda **options: namespace.update(options))
    monkeypatch.setenv("REPOSITORY_URL", address)
    monkeypatch.setenv("SITE_URL", f"{site}/")
    runpy.run_path(str(ROOT / "setup.py"))
    description = namespace["long_description"]
    targets = re.findall(r"\]\(([^)\s#]+)", description)
    assert len(targets) >= 8
    if address:
        assert [target for target in targets if not target.startswith("https://")] == []
        assert f"{address}/raw/HEAD/docs/pictures/hero.gif" in targets
        assert f"{address}/blob/HEAD/docs/policies.md" in targets
        assert f"{site or f'{address}/blob/HEAD/docs'}/play/index.html" in targets
    else:
        assert description == read("README.md")


@pytest.mark.parametrize("linked", [True, False])
def test_an_editable_install_is_a_hook_or_a_path_to_the_package(copy: Path, linked: bool) -> None:
    if not linked:  # Git on Windows replaces a link by such a file
        (copy / LINK).unlink()
        (copy / LINK).write_text("../agents")
    with zipfile.ZipFile(build(copy, "build_editable('dist')")) as archive:
        assert any(name.endswith("_finder.py") for name in archive.namelist()) != linked
        (pth,) = (name for name in archive.namelist() if name.endswith(".pth"))
        path = archive.read(pth).decode().strip()
    if linked:
        assert os.listdir(path) == ["maze_nca_gym"]
        assert Path(path, LINK).samefile(copy / "agents")
        assert Path(path, "maze_nca_gym", "py.typed").samefile(copy / "maze_nca_gym" / "py.typed")


OPTIONS = {
    "train('fast', {})": ("n_updates=3, sizes=[6, 8], kernel_size=5, out='a'", "n_update=3", "n_updates='3'"),
    "evaluate('a', {})": ("find_iterations=True", "find_iteration=True", "n='3'"),
    "solve({})": ("generator='caves', smoothing=3", "smooting=3", "smoothing='3'"),
    "evolve('a', {})": ("rounds=3, mutation='edits', n_edits=3", "n_edit=3", "n_edits='3'"),
    "generate('a', {})": ("generator='loops', loop_fraction=0.5", "loop_fractions=0.5", "loop_fraction='0.5'"),
    "sweep('a.toml', {})": ("launcher='slurm', workers=3", "worker=3", "workers='3'"),
    "learn_automaton('a', {})": ("n_mazes=1, sizes=8", "n_maze=1", "n_mazes='1'"),
}
"""Call -> accepted options, and two options that a type checker must refuse: a misspelt name, and text for a number."""


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_type_checkers_find_every_public_name_and_every_option(tmp_path: Path, checker: str) -> None:
    """Type checkers run in another folder. They do not run Python, so the package must be on a path."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if (program := shutil.which(checker, path=beside)) is None:
        pytest.skip(f"{checker} is not installed")
    names = [f"{door}.{name}" for door in DOORS for name in importlib.import_module(door).__all__]
    lines = ["# pyright: reportUnnecessaryTypeIgnoreComment=true", *(f"import {door}" for door in DOORS)]
    lines += [f"reveal_type({name})" for name in names]
    lines += [f"{door}.misspelt  # type: ignore" for door in DOORS]  # checkers warn of unused ignores
    for call, (correct, *wrong) in OPTIONS.items():
        lines += [f"maze_nca_gym.agents.{call.format(correct)}"]
        lines += [f"maze_nca_gym.agents.{call.format(wrong_options)}  # type: ignore" for wrong_options in wrong]
    (tmp_path / "doors.py").write_text("\n".join(lines))
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip")  # checking torch takes longest
    options = {"pyright": ["--pythonpath"], "mypy": ["--warn-unused-ignores", "--python-executable"]}[checker]
    command = [program, *options, sys.executable, "doors.py"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout
    types = re.findall(r'(?:Type of .* is|Revealed type is) "(.*)"', result.stdout)
    assert len(types) == len(names)
    assert {"Any", "Unknown"}.isdisjoint(types)


@pytest.mark.parametrize("door", DOORS)
def test_packages_list_their_names_and_types_can_be_evaluated(door: str) -> None:
    module = importlib.import_module(door)
    names = {name for name in dir(module) if not name.startswith("_")}
    assert names >= set(module.__all__)
    assert names == set(module.__all__) or "__dir__" not in vars(module)
    for value in (getattr(module, name) for name in module.__all__):
        for function in [*vars(value).values()] if isinstance(value, type) else [value]:
            if inspect.isfunction(function) and function.__module__.startswith("maze_nca_gym."):
                typing.get_type_hints(function)


def test_type_checkers_know_all_options() -> None:
    assert write_keywords.PATH.read_text() == write_keywords.content(), "run python -m tools.write_keywords"


def test_a_name_has_one_meaning_in_all_packages() -> None:
    meanings: dict[str, list[Any]] = {}
    for module in map(importlib.import_module, DOORS):
        for name in module.__all__:
            meanings.setdefault(name, []).append(getattr(module, name))
    several = {name for name, objects in meanings.items() if any(item is not objects[0] for item in objects)}
    # `agents.generate` is the command, which writes a file; `mazes.generate` returns levels
    assert several == {"generate"}


def test_evaluated_types_agree_with_annotations_and_load_nothing() -> None:
    code = "import sys; from maze_nca_gym.agents import evaluate; print('torch' in sys.modules)"
    assert run_python("-c", code) == "False\n"
    policies = str(typing.get_type_hints(maze_nca_gym.agents.evaluate)["policies"])
    assert policies.count("maze_nca_gym.agents.policies.policy.Policy") == 2


def test_packages_work_without_sources(tmp_path: Path) -> None:
    imports = "from typing import TYPE_CHECKING\nfrom maze_nca_gym.support.doors import lazily\n"
    names = "if TYPE_CHECKING:\n    from .room import thing as it\n__all__ = ['it']\n"
    (tmp_path / "door").mkdir()
    (tmp_path / "door" / "__init__.py").write_text(f"{imports}{names}__getattr__, __dir__ = lazily(__name__)\n")
    (tmp_path / "door" / "room.py").write_text("thing = 7\n")
    assert compileall.compile_dir(tmp_path, quiet=1, legacy=True)
    for source in tmp_path.rglob("*.py"):
        source.unlink()
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import door; print(dir(door), door.it, door.__file__[-4:])"
    assert run_python("-c", code) == "['it'] 7 .pyc\n"


LOADED = "print(*{name.partition('.')[0] for name in sys.modules})"


def test_import_is_light_and_fast() -> None:
    code = "import sys, time; start = time.process_time(); import maze_nca_gym; print(time.process_time() - start)"
    seconds, loaded = run_python("-c", f"{code}; {LOADED}").splitlines()
    assert float(seconds) < 1.5
    assert HEAVY.isdisjoint(loaded.split())


def test_modules_of_the_core_load_no_heavy_library_and_imports_are_silent() -> None:
    modules = ("mazes.generation", "mazes.solvers", "mazes.scoring", "mazes.mutation", "mazes.population")
    core = [*modules, "envs.dynamics", "envs.vector", "envs.wrappers"]
    imports = ", ".join(f"maze_nca_gym.{module}" for module in core)
    code = f"import sys, importlib, {imports}; importlib.reload(maze_nca_gym); {LOADED}"
    assert HEAVY.isdisjoint(run_python("-W", "error", "-c", code).split())


def test_updates_by_adam_load_no_compiler() -> None:
    code = (
        "import sys, torch; from maze_nca_gym.agents.training.optimisers import make_adam\n"
        "x = torch.ones(3).requires_grad_(); adam = make_adam([x], 0.1); x.sum().backward()\n"
        "adam.step(); adam.zero_grad(); adam.load_state_dict(adam.state_dict())\n"
        "print(x.detach().mean().item() < 0.95, x.grad, 'torch._dynamo' in sys.modules)"
    )
    assert run_python("-c", code).split() == ["True", "None", "False"]


def test_agents_folder_refuses_to_be_a_top_level_package() -> None:
    spec = importlib.util.spec_from_file_location("agents", ROOT / "agents" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"import maze_nca_gym\.agents, not agents"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_core_of_one_copy_refuses_the_agents_of_another(tmp_path: Path) -> None:
    """Without links, an editable install is a hook, which finds the agents of its own checkout."""
    copied = shutil.copy(ROOT / "agents" / "__init__.py", tmp_path)
    spec = importlib.util.spec_from_file_location("maze_nca_gym.agents", copied)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=rf"maze_nca_gym is imported from .*, but .*\.agents from {tmp_path}, a sec"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_nothing_is_pickled() -> None:
    picklers = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert picklers.isdisjoint(alias.name.partition(".")[0] for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module.partition(".")[0] not in picklers, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
                options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                is_of_arrays = ast.unparse(node.func) in ("np.load", "numpy.load", "torch.load")
                assert not is_of_arrays or options.get("allow_pickle") == "False", f"{path}: {ast.unparse(node)}"
