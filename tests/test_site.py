"""The site is built without warnings, has a page for everything, and loads nothing from other hosts."""

import importlib
import inspect
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from functools import partial
from io import StringIO
from itertools import chain
from pathlib import Path

import pytest
from tables import for_each, some_and_all
from test_play import needs_chromium, serve

import maze_nca_gym.agents
from maze_nca_gym import ENVIRONMENTS, EVOLVING_ENVIRONMENTS, LEARNING_ENVIRONMENTS
from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.training.config import OPTIONS
from tools import make_notebooks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "site"
TUTORIALS = sorted(
    f"{folder}/{path.stem}" for folder in ("tutorials", "exercises") for path in (ROOT / "docs" / folder).glob("*.py")
)
GIF = b"GIF89a"
KINDS = ("[gap]", "[solution]")
EXERCISES = [name for name in TUTORIALS if name.startswith("exercises")]


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


def build(way, folder):
    """Build the site without running tutorials; animations, the reference and the search are left out too."""
    if way == "whole":
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder / "site")]
        environment = {**os.environ, "EXECUTE_TUTORIALS": "false", "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mkdocs.commands import build as of_mkdocs
        from mkdocs.config import load_config
        from mkdocs.exceptions import Abort

        patch.syspath_prepend(FOLDER)
        patch.setenv("EXECUTE_TUTORIALS", "false")
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        pictures, messages = importlib.import_module("pictures"), StringIO()
        patch.setattr(pictures, "of_policy", lambda policy: (GIF, 1))
        for name in ("of_environment", "of_levels"):
            patch.setattr(pictures, name, lambda env, policy: GIF)
        patch.setattr(pictures, "of_solution", lambda env: GIF)
        patch.setattr(logging.getLogger("mkdocs"), "handlers", [logging.StreamHandler(messages)])
        plugins = [{"mkdocstrings": {"enabled": False, "handlers": {"python": {}}}}]
        config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder / "site"), plugins=plugins)
        try:
            of_mkdocs.build(config)
        except Abort:
            raise AssertionError(messages.getvalue()) from None


@pytest.fixture(scope="module", params=["quick", pytest.param("whole", marks=pytest.mark.slow)])
def site(request, once):
    """The folder of the site without animations, reference and search."""
    return once(f"site-{request.param}", partial(build, request.param)) / "site"


@pytest.fixture(scope="module")
def complete_site(once):
    """The folder of the complete site."""
    return once("site-whole", partial(build, "whole")) / "site"


def text_of(page):
    return page.read_text(encoding="utf-8")


class TestTheBuiltSite:
    @for_each("id", [*ENVIRONMENTS, *EVOLVING_ENVIRONMENTS, *LEARNING_ENVIRONMENTS])
    def test_every_environment_has_a_page(self, site, id):
        page = text_of(site / "environments" / f"{id}.html")
        assert (site / "environments" / f"{id}.gif").read_bytes().startswith(b"GIF8")
        shape = "(11, 18, 18)" if "ShortestPath" in id else "(31, 18, 18)"
        for words in ("(324,)" if id in LEARNING_ENVIRONMENTS else shape, "solution_length", "levels", "render_mode"):
            assert words in page, words
        assert ("Reward" in page) == (id not in LEARNING_ENVIRONMENTS)
        assert ("<code>flat</code>" in page) == (id in LEARNING_ENVIRONMENTS)
        assert ("n_offspring" in page) == (id in EVOLVING_ENVIRONMENTS)

    @for_each("name", list_policies(all=True))
    def test_every_policy_has_a_page(self, site, name):
        page = text_of(site / "policies" / f"{name}.html")
        assert (site / "policies" / f"{name}.gif").read_bytes().startswith(b"GIF8")
        assert f"{load(name).n_weights:,}" in page
        for figure in list_policies(all=True)[name].scores.values():
            assert f"{100 * figure:.2f}" in page
        assert f'href="policies/{name}.html"' in text_of(site / "policies.html")

    @for_each("name", TUTORIALS)
    def test_every_tutorial_has_a_page_and_a_notebook(self, site, name):
        assert f'href="{Path(name).name}.ipynb"' in text_of(site / f"{name}.html")
        assert '"cells"' in text_of(site / f"{name}.ipynb")

    @for_each("name", EXERCISES)
    def test_exercises_hide_solutions_and_have_a_notebook_without_them(self, site, name):
        page = text_of(site / f"{name}.html")
        assert f'href="{Path(name).name}_gaps.ipynb"' in page
        cells = importlib.import_module("tutorial_pages").read(text_of(ROOT / "docs" / f"{name}.py")).cells
        gaps, solutions = ([cell.source for cell in cells if kind in cell.metadata.get("tags", [])] for kind in KINDS)
        assert len(gaps) == len(solutions) == page.count("<summary>Solution</summary>") >= 3
        assert all("..." in gap for gap in gaps)
        with_gaps, solved = (json.loads(text_of(site / f"{name}{end}.ipynb"))["cells"] for end in ("_gaps", ""))
        assert {"".join(cell["source"]) for cell in with_gaps} & {*gaps, *solutions} == {*gaps}
        assert {"".join(cell["source"]) for cell in solved} & {*gaps, *solutions} == {*solutions}

    def test_modules_of_public_functions_are_in_the_reference(self):
        listed = {f"maze_nca_gym.{name}" for name in chain(*importlib.import_module("api_pages").PAGES.values())}
        assert {getattr(maze_nca_gym.agents, name).__module__ for name in maze_nca_gym.agents.__all__} <= listed

    @pytest.mark.slow
    def test_public_functions_are_in_the_reference(self, complete_site):
        pages = "".join(map(text_of, (complete_site / "reference").glob("*.html")))
        for name in maze_nca_gym.agents.__all__:
            value = getattr(maze_nca_gym.agents, name)
            assert f'id="{value.__module__}.{name}"' in pages, name

    def test_pages_load_only_existing_files_of_this_host(self, site):
        links = r'<link\b[^>]*\brel="(?:stylesheet|icon|preconnect)"[^>]*\bhref="(.*?)"'
        for page in site.rglob("*.html"):
            loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(.*?)"', text_of(page))
            assert [url for url in loaded + re.findall(links, text_of(page)) if re.match(r"(https?:)?//", url)] == []
            if page.name != "404.html":  # a server shows it at any depth, so its links begin at the root
                assert [url for url in loaded if ":" not in url and not (page.parent / url).exists()] == [], page

    @pytest.mark.slow
    def test_docstrings_are_rendered_correctly(self, complete_site):
        page = text_of(complete_site / "reference" / "training.html")
        code = re.findall(r'class="doc-signature highlight">.*?</div>', page, re.DOTALL)
        lines = [line for block in code for line in re.sub(r"<[^>]*>", "", block).split("\n")]
        assert 0 < max(map(len, lines)) < 120, "long signatures are broken into lines"
        assert "&gt;&gt;&gt; " in re.sub(r"<[^>]*>", "", page), "examples are code"
        for page in (complete_site / "reference").glob("*.html"):
            assert "<blockquote>" not in text_of(page), page

    def test_all_options_are_on_a_page(self, site):
        page = re.sub(r"<[^>]*>", "", text_of(site / "options.html"))
        for option in OPTIONS:
            assert re.search(rf"--{option.replace('_', '-')}\b", page), option
        for command in importlib.import_module("option_pages").COMMANDS:
            assert f"usage: maze-nca-gym {command}" in page, command
            assert f"<details id={json.dumps(command.replace(' ', '-'))}>" in text_of(site / "options.html")

    def test_the_home_page_has_links(self, site):
        page = text_of(site / "index.html")
        assert all(f'href="{name}.html"' in page for name in ("reinforcement", "benchmarks", "automata", "options"))

    @pytest.mark.slow
    def test_the_search_finds_names_within_code(self, complete_site):
        index = json.loads(text_of(complete_site / "search" / "search_index.json"))
        pages = [
            re.split(index["config"]["separator"], row["text"]) for row in index["docs"] if "make_vec" in row["text"]
        ]
        assert len(pages) >= 8
        assert [words for words in pages if not any(word.startswith("make_vec") for word in words)] == []

    @pytest.mark.slow
    def test_the_search_prefers_the_pages_of_environments(self, complete_site):
        pages = json.loads(text_of(complete_site / "search" / "search_index.json"))["docs"]
        best = {page["location"] for page in pages if page.get("boost", 1) > 1 and "#" not in page["location"]}
        ids = {**ENVIRONMENTS, **EVOLVING_ENVIRONMENTS, **LEARNING_ENVIRONMENTS}
        assert best == {f"environments/{id}.html" for id in ids}

    @needs_chromium
    @pytest.mark.slow
    def test_the_search_works_from_a_disk(self, complete_site, tmp_path):
        page = complete_site / "asked.html"
        shutil.copy(complete_site / "index.html", page)
        script = """
            const input = find(".md-search__input");
            await until(() => input.offsetParent !== null);
            input.focus();
            input.value = "make_vec";
            input.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
            await until(() => all(".md-search-result__item").length > 5);
            return true;
        """
        try:
            assert serve.ask_page(page, script, tmp_path)
        finally:
            page.unlink()

    def test_tables_of_texts_can_be_shown_as_lists(self, site):
        page = text_of(site / "policies.html")
        assert '<td data-name="origin">hand-coded, the paper' in page
        assert page.count("<table>") >= 1, "the figures are numbers"

    @pytest.mark.parametrize("folder", ["play", "article"])
    def test_the_play_page_and_the_article_are_complete(self, site, folder):
        files = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs" / folder).rglob("*") if path.is_file()}
        assert [path for path in files if not (site / path).is_file()] == []
        assert list(site.rglob("*.py")) == [], "no source is published"
        links = re.findall(r'<a href="([^#:"]+)"', text_of(site / folder / "index.html"))
        assert [link for link in links if not link.endswith(".html") or not (site / folder / link).is_file()] == []
        assert 'href="article/index.html"' in text_of(site / "index.html")


@for_each(
    ("text", "page", "pages", "repository", "expected"),
    [
        (
            "[a](../docs/a.md#b) ![p](x.png) [w](https://e.org/a) [h](#h)",
            "agents/LOG.md",
            {"docs/a.md": "a.md", "LOG.md": "research/log.md"},
            "",
            "[a](../a.md#b) p [w](https://e.org/a) [h](#h)",
        ),
        (
            "[![p](x.png)](../agents/x.py)",
            "docs/a.md",
            {},
            "https://e.org/r",
            "[![p](https://e.org/r/raw/HEAD/docs/x.png)](https://e.org/r/blob/HEAD/agents/x.py)",
        ),
    ],
)
def test_links_follow_files_that_have_moved_or_lead_to_the_repository(text, page, pages, repository, expected):
    links = importlib.import_module("links")
    target = "research/log.md" if pages else "a.md"
    assert links.moved(text, page, links.on_site(target, pages, repository)) == expected


@for_each(
    ("site", "repository", "expected"),
    [
        (
            "https://s.org/m",
            "https://e.org/r",
            "[a](https://s.org/m/a.html#b) [c](https://e.org/r/blob/HEAD/docs/c.py)",
        ),
        ("https://s.org/m", "", "[a](https://s.org/m/a.html#b) c"),
        ("", "", "a c"),
    ],
)
def test_links_of_notebooks_lead_to_the_site_from_anywhere_or_are_text(site, repository, expected):
    links = importlib.import_module("links")
    target = links.anywhere({"docs/a.md": "a.md"}, site, repository)
    assert links.moved("[a](../a.md#b) [c](../c.py)", "docs/tutorials/x.py", target) == expected


class TestTutorials:
    def test_all_tutorials_are_on_the_site(self):
        listed = importlib.import_module("tutorial_pages").paths().values()
        assert sorted(path.removesuffix(".md") for paths in listed for path in paths) == TUTORIALS

    def test_cells_and_their_output_become_a_page(self):
        pages = importlib.import_module("tutorial_pages")
        notebook = pages.read("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nprint('a < b')\n")
        assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code"]
        assert notebook.cells[0].source == "# Title\n\nText."
        output = {"output_type": "stream", "name": "stdout", "text": "a < b\n"}
        notebook.cells[1].outputs = [pages.nbformat.from_dict(output)]
        page = pages.page(notebook, "name")
        assert "```python\nprint('a < b')\n```" in page
        assert "<pre><code>a &lt; b</code></pre>" in page

    def test_where_the_repository_is_public_notebooks_install_it_and_open_in_colab(self):
        pages = importlib.import_module("tutorial_pages")
        contents = pages.pages(False, lambda path, is_picture: None, "https://github.com/a/b")
        start = "[in Colab](https://colab.research.google.com/github/a/b/blob/notebooks"
        for name in TUTORIALS:
            end = "_gaps" * (name in EXERCISES)
            assert contents[f"{name}.md"].endswith(f"{start}/{name}{end}.ipynb)")
            cells = json.loads(contents[f"{name}{end}.ipynb"])["cells"]
            assert [cell["cell_type"] for cell in cells[:2]] == ["markdown", "code"]
            assert "".join(cells[1]["source"]).endswith('git+https://github.com/a/b"')
        assert "Colab" not in "".join(map(str, pages.pages(False, lambda path, is_picture: None).values()))

    def test_an_exercise_folds_output_after_its_first_question(self):
        pages = importlib.import_module("tutorial_pages")
        script = "# %% [markdown]\n# **Which?**\n\n# %%\nsecond\n\n# %% [gap]\n...\n\n# %% [solution]\nthird\n"
        notebook = pages.read(f"# %%\nfirst\n\n{script}")
        for cell in notebook.cells:
            if cell.cell_type == "code" and cell.source != "...":
                output = {"output_type": "stream", "name": "stdout", "text": f"{cell.source} shown"}
                cell.outputs = [pages.nbformat.from_dict(output)]
        folded = re.split("<summary>.*</summary>", pages.page(notebook, "name"))
        outputs = [re.findall(r"\w+ shown", part) for part in folded]
        assert outputs == [["first shown"], ["second shown"], [], ["third shown"]]

    def test_lines_only_for_notebooks_are_comments_in_the_script(self):
        pages = importlib.import_module("tutorial_pages")
        notebook = pages.read("# %%\nimport x\n\n# notebook: from a import y\n\ny\n")
        assert notebook.cells[0].source == "import x\nfrom a import y\n\ny"

    def test_cells_of_a_file_are_written_to_it_and_named_after_it(self):
        pages = importlib.import_module("tutorial_pages")
        notebook = pages.read("# %% [file a.py]\nx = 1\n\n# %% [file a.py]\ny = 2\n")
        assert [cell.source for cell in notebook.cells] == ["%%writefile a.py\nx = 1", "%%writefile -a a.py\ny = 2"]
        assert '```python title="a.py"\ny = 2\n```' in pages.page(notebook, "name")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", TUTORIALS)
    def test_tutorials_run_as_shown(self, name):
        pages = importlib.import_module("tutorial_pages")
        notebook = pages.read((pages.FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        pages.execute(notebook)
        assert "data:image" in pages.page(notebook, name)
        assert any("stdout" in str(cell.get("outputs")) for cell in notebook.cells)

    @some_and_all("names", EXERCISES[:1], EXERCISES)
    def test_solutions_of_exercises_are_correct_in_the_script_too(self, names, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in names:
            script = text_of(ROOT / "docs" / f"{name}.py").replace('"n_updates": 600', '"n_updates": 4')
            exec(script, {})  # the sheet raises an error if an answer is wrong

    @for_each("name", TUTORIALS)
    def test_a_script_imports_only_dependencies_of_the_package(self, name):
        listed = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["dependencies"]
        brought = {re.match(r"[\w-]+", requirement)[0].replace("-", "_") for requirement in listed} | {
            "maze_nca_gym",
            "PIL",
        }
        imports = re.findall(r"^\s*(?:import|from) (\w+)", text_of(ROOT / "docs" / f"{name}.py"), re.MULTILINE)
        assert {*imports} <= brought | sys.stdlib_module_names

    @pytest.mark.slow
    @pytest.mark.parametrize("name", [name for name in TUTORIALS if name not in EXERCISES])
    def test_tutorials_run_as_scripts(self, name, tmp_path):
        subprocess.run([sys.executable, ROOT / "docs" / f"{name}.py"], cwd=tmp_path, check=True)

    def test_notebooks_are_written_without_running_them(self, tmp_path):
        paths = make_notebooks.write(folder=tmp_path)
        names = [Path(name).name for name in TUTORIALS] + [f"{Path(name).name}_gaps" for name in EXERCISES]
        assert sorted(path.name for path in paths) == sorted(f"{name}.ipynb" for name in names)
        for path in paths:
            cells = [cell for cell in json.loads(text_of(path))["cells"] if cell["cell_type"] == "code"]
            assert cells
            assert all(not cell["outputs"] for cell in cells)
        (imported,) = re.findall(r"from wildfire import (.*?)\\n", text_of(tmp_path / "your_own_world.ipynb"))
        assert imported == "FIRE, TASK, WILDFIRE, Signal"


def test_the_workflow_publishes_what_is_built():
    workflow = text_of(ROOT / ".github" / "workflows" / "site.yml")
    (folder,) = re.findall(r"^site_dir: (.*)$", text_of(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert re.findall(r"path: (.*)", workflow) == [folder]
    assert "mkdocs build --strict" in workflow
    assert "SITE_URL:" in workflow, "the pages of a project are in a folder, from which 404.html takes its style"


def test_the_home_page_is_short_and_begins_like_the_readme():
    home, readme = (text_of(ROOT / path).split("\n\n") for path in ("docs/index.md", "README.md"))
    assert home[:3] == readme[:3]
    assert len(text_of(ROOT / "docs/index.md").split()) < 350


def test_the_page_of_all_options_has_no_cut_lines():
    pages = importlib.import_module("option_pages")
    for command in ("solve", "sweep", "levels show"):
        assert max(map(len, pages.help_of(command).splitlines())) <= pages.WIDTH, command


def test_legends_are_of_policies_and_have_a_text():
    pages = importlib.import_module("policy_pages")
    assert set(pages.LEGENDS) <= set(list_policies(all=True))
    for name, documented in pages.LEGENDS.items():
        assert len((inspect.getdoc(documented) or "").split("\n\n")) > 1, name


def anchors_of(page):
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading)).lower() for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def test_links_lead_to_files_and_headings_of_a_clone():
    """Many readers read the pages in a clone or on GitHub, so links must lead to files. The hooks turn them into links
    to pages, and a strict build of the site fails on other links and on missing anchors.
    """
    folders = ("docs", "agents", "experiments", "benchmarks", "proofs")
    for page in [*ROOT.glob("*.md"), *chain(*((ROOT / folder).rglob("*.md") for folder in folders))]:
        text = re.sub(r"```.*?```|`[^`]*`", "", text_of(page), flags=re.DOTALL)
        for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)", text):
            target = Path(os.path.normpath(page.parent / link)) if link else page
            assert target.exists(), f"{page}: {link}"
            if anchor and target.suffix == ".md":
                assert anchor in anchors_of(target), f"{page}: {link}#{anchor}"


def test_links_to_folders_lead_to_pages_that_the_site_makes():
    hooks = importlib.import_module("hooks")
    pages = {"options.md", "examples.md"}
    assert set(hooks.SHOWN.values()) == pages
    assert all((ROOT / folder).is_dir() for folder in hooks.SHOWN)
