"""Make the pages of the reference. mkdocstrings fills them with the docstrings of the modules listed here."""

from __future__ import annotations

from collections.abc import Mapping

PAGES: Mapping[str, tuple[str, ...]] = {
    "Environments": ("envs.maze", "envs.vector", "envs.dynamics", "envs.wrappers.path_action"),
    "Levels": (
        "mazes",
        "mazes.levels",
        "mazes.loading",
        "mazes.generation",
        "mazes.families",
        "mazes.benchmark_sets",
        "mazes.moving_ai",
        "mazes.exchange",
        "mazes.graphs",
    ),
    "Solutions and scores": ("mazes.solvers", "mazes.scoring", "mazes.tasks"),
    "Evolving levels": (
        "mazes.mutation",
        "mazes.population.population",
        "mazes.population.config",
        "envs.wrappers.adversarial_evolution",
        "envs.wrappers.evolution",
    ),
    "Pictures": ("rendering.frame", "rendering.files", "support.notebooks"),
    "Policies": (
        "agents.policies.registry",
        "agents.policies.policy",
        "agents.policies.guarantees",
        "agents.rollouts.animation",
        "agents.policies.weights",
        "agents.rollouts.exporting",
    ),
    "Rollouts": (
        "agents.rollouts.iterating",
        "agents.rollouts.graphs",
        "agents.rollouts.symmetrised",
        "agents.rollouts.solving",
        "agents.rollouts.run",
        "agents.rollouts.levels",
        "agents.rollouts.solved",
    ),
    "Hand-coded automata": (
        "agents.policies.handcoded.shortest_path",
        "agents.policies.handcoded.depth_first",
        "agents.policies.handcoded.diameter",
        "agents.policies.handcoded.weight_table",
    ),
    "Boolean automata": (
        "agents.automata",
        "agents.automata.automaton",
        "agents.automata.registry",
        "mazes.rules",
        "agents.automata.shipped.canonical",
        "agents.automata.shipped.gallery",
        "agents.automata.networks.large",
    ),
    "Architectures": (
        "agents.policies.learned.nca",
        "agents.policies.learned.gcn",
        "agents.policies.learned.gat",
        "agents.policies.learned.mlp",
    ),
    "Training": (
        "agents.training.run",
        "agents.training.config",
        "agents.training.options",
        "agents.training.losses",
        "agents.automata.run",
        "agents.automata.networks.certificate",
        "agents.automata.kernel.theorems",
        "agents.automata.checking",
        "agents.automata.kernel.refutations",
    ),
    "Evaluation": (
        "agents.evaluation.run",
        "agents.evaluation.metrics",
        "agents.evaluation.named_metrics",
        "agents.evaluation.stability",
        "agents.evaluation.results",
        "agents.evaluation.records",
        "agents.evolution.run",
        "agents.evaluation.leaderboard.run",
        "agents.doubting.run",
        "agents.evaluation.leaderboard.board",
        "agents.evaluation.leaderboard.rows",
        "agents.sweeps.run",
        "agents.sweeps.specification",
        "agents.sweeps.measures",
        "agents.runs.listing",
        "agents.sweeps.reproduction.run",
        "support.tables",
    ),
}
"""Title -> modules, without the name of the package."""


def paths() -> list[str]:
    """Return the paths of the pages, the overview first."""
    return ["reference/index.md", *(_path(title) for title in PAGES)]


def pages() -> dict[str, str | bytes]:
    """Return the content of each page by the page's path."""
    contents: dict[str, str | bytes] = {}
    overview = "# API\n\nThe modules of `maze_nca_gym` and `maze_nca_gym.agents`, by topic.\n\n"
    for title, modules in PAGES.items():
        contents[_path(title)] = (
            f"# {title}\n\n" + "\n\n".join(f"::: maze_nca_gym.{module}" for module in modules) + "\n"
        )
        names = ", ".join(f"`{module}`" for module in modules)
        overview += f"- [{title}]({_path(title).removeprefix('reference/')}): {names}\n"
    # the functions that most programs need
    options = "    options:\n      show_root_heading: true\n      members: [register_environment, environment_id]\n"
    return {"reference/index.md": f"{overview}\n::: maze_nca_gym\n{options}", **contents}


def _path(title: str) -> str:
    return f"reference/{title.lower().replace(' ', '_').replace('-', '_')}.md"
