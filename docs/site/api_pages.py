"""The reference: which modules have a page, and what is on it. mkdocstrings writes it from the docstrings."""

from __future__ import annotations

from collections.abc import Mapping

PAGES: Mapping[str, tuple[str, ...]] = {
    "Environments": ("envs.maze", "envs.vector", "dynamics", "wrappers.path_action"),
    "Levels": ("levels", "loading", "generation", "families", "benchmark_sets", "moving_ai", "exchange"),
    "Solutions and scores": ("solvers", "scoring", "tasks"),
    "Evolving levels": (
        *("mutation", "population.population", "population.config", "wrappers.adversarial_evolution"),
        "wrappers.evolution",
    ),
    "Pictures": ("rendering.frame", "rendering.files", "notebooks"),
    "Policies": (
        "agents.registry",
        "agents.policy",
        "agents.guarantees",
        "agents.animation",
        "agents.weights",
        "agents.exporting",
    ),
    "Rollouts": (
        "agents.rollouts.iterating",
        "agents.rollouts.symmetrised",
        "agents.rollouts.solving",
        "agents.solving",
        "agents.levels",
        "agents.rollouts.solved",
    ),
    "Hand-coded automata": (
        *("agents.handcoded.shortest_path", "agents.handcoded.depth_first", "agents.handcoded.diameter"),
        *("agents.handcoded.weight_table", "agents.exact_weights.shortest_path_weights"),
        "agents.exact_weights.diameter_weights",
    ),
    "Boolean automata": (
        *("agents.automata.automaton", "agents.automata.rules", "agents.automata.canonical_path"),
        "agents.automata.gallery",
    ),
    "Architectures": ("agents.learned.nca", "agents.learned.gcn", "agents.learned.gat", "agents.learned.mlp"),
    "Training": (
        *("agents.training.run", "agents.training.config", "agents.training.losses"),
        *("agents.hinting.run", "agents.hinting.certificate"),
    ),
    "Evaluation": (
        *("agents.evaluation.run", "agents.evaluation.metrics", "agents.evaluation.stability"),
        *("agents.evaluation.results", "agents.evolution.run"),
        *("agents.leaderboard.run", "agents.leaderboard.board", "agents.leaderboard.rows"),
        *("agents.sweeps.run", "agents.sweeps.specification", "agents.sweeps.measures", "agents.sweeps.results"),
        *("agents.runs.listing", "agents.reproduction.run", "tables"),
    ),
}
"""Title -> modules, without the name of the package."""


def paths() -> list[str]:
    """Return the paths of the pages, the overview first."""
    return ["reference/index.md", *(_path(title) for title in PAGES)]


def pages() -> dict[str, str | bytes]:
    """Return all pages by their paths."""
    rows = "\n".join(f"- [{title}]({_path(title).split('/')[1]}): {_names(PAGES[title])}" for title in PAGES)
    overview = f"# API\n\nWhat `maze_nca_gym` and `maze_nca_gym.agents` have, by topic.\n\n{rows}\n\n{_entries()}"
    return {"reference/index.md": overview, **{_path(title): _page(title) for title in PAGES}}


def _path(title: str) -> str:
    return f"reference/{title.lower().replace(' ', '_').replace('-', '_')}.md"


def _names(modules: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in modules)


def _entries() -> str:
    """Return the functions that most programs need."""
    options = "    options:\n      show_root_heading: true\n      members: [register_environment, environment_id]\n"
    return f"::: maze_nca_gym\n{options}"


def _page(title: str) -> str:
    return f"# {title}\n\n" + "\n\n".join(f"::: maze_nca_gym.{module}" for module in PAGES[title]) + "\n"
