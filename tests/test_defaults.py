"""The defaults of public functions, environments and configurations. One table lists them, because published results
depend on them."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.training import TrainingConfig
from maze_nca_gym.envs.maze import MazeEnv
from maze_nca_gym.envs.path_arrays import PathMazeEnv
from maze_nca_gym.envs.vector import MazeVectorEnv
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.support.options import options_of

DOORS = ("mazes", "rendering", "agents", "agents.automata")
CLASSES: tuple[Callable[..., Any], ...] = (MazeEnv, MazeVectorEnv, PathMazeEnv)
CONFIGURATIONS = (TrainingConfig, HintConfig, PopulationConfig, BreedingSchedule)
TABLE = {
    "MazeEnv": "task='shortest-path', generator='random', in_order=False",
    "MazeVectorEnv": (
        "num_envs=1, task='shortest-path', generator='random', autoreset_mode='NextStep', device='cpu', "
        "output='numpy', in_order=False"
    ),
    "PathMazeEnv": "task='shortest-path', flat=True, n_channels=1",
    "mazes.best_path": "order='ULDR'",
    "mazes.branches": "order='ULDR'",
    "mazes.diameter": "order='ULDR'",
    "mazes.first_steps": "order='ULDR'",
    "mazes.generate": "size=16, generator='random'",
    "mazes.load_levels": "task='shortest-path'",
    "mazes.mutate": "kind='flip'",
    "mazes.one_hot": "n_tiles=4",
    "mazes.paper_accuracy": "minibatch=64",
    "mazes.parse": "letters='.#ST'",
    "mazes.save_levels": "letters='.#ST'",
    "mazes.score": "canonical=False",
    "mazes.shortest_path": "order='ULDR'",
    "mazes.shortest_paths_from": "order='ULDR'",
    "mazes.to_text": "letters='.#ST'",
    "rendering.captioned": "right='', size=14, margin=0",
    "rendering.contact_sheet": "gap=16",
    "rendering.draw_level": "cell=16, overhang=0",
    "rendering.gif_bytes": "fps=10.0",
    "rendering.save_gif": "fps=10.0",
    "agents.animate": "fps=10.0",
    "agents.bench": "sets=('maze-unique-30', 'maze-hard-30-redrawn'), metrics=(), plot=False, format='png'",
    "agents.check_proofs": "out=runs/proofs",
    "agents.compile_automaton": "automaton='shortest-path', overwrite=False",
    "agents.doubt": (
        "seconds=30.0, seed=0, least=1, families=('random', 'sparse', 'loops', 'perfect'), sizes=(4, 6, 8, "
        "12, 16, 24, 32, 48, 64), n=64"
    ),
    "agents.evaluate": (
        "families=('random', 'perfect'), sizes=(16, 32), metrics=(), find_iterations=False, stability=False, "
        "format='png'"
    ),
    "agents.evolve": (
        "n=1000, rounds=200, seed=0, device='cpu', picture_every=10, save_every=60.0, overwrite=False, "
        "out=runs/evolve, generator='random', size=16"
    ),
    "agents.generate": "n=1000, seed=0, task='shortest-path', generator='random', size=16",
    "agents.iterate": "start_step=0, until_finished=False, undisturbed=False",
    "agents.learn_automaton": "automaton='shortest-path', threads=1, overwrite=False",
    "agents.list_policies": "all=False",
    "agents.list_runs": "folder=runs",
    "agents.play": "policy='shortest-path-bfs', fps=10.0, seed=0",
    "agents.reproduce": (
        "which=('all',), trials=5, scale='full', out=runs/paper, launcher='local', device='auto', submit=(), "
        "format='png', on_change=<lambda>"
    ),
    "agents.rollout": "start_step=0, growth=inf",
    "agents.solve": "policy='shortest-path-bfs', seed=0, picture='gif'",
    "agents.solve_large": "policy='nca-shortest-path-hinted', out=runs/large, save_every=600.0",
    "agents.sweep": ("launcher='local', device='auto', submit=(), tensorboard=False, format='png', on_change=<lambda>"),
    "agents.train": (
        "preset='fast', device='auto', log_every=25, validate_every=250, save_every=60.0, tensorboard=False, "
        "overwrite=False, on_update=<lambda>"
    ),
    "agents.automata.automaton_of": "name='from-network'",
    "agents.automata.broken_axioms": "n_steps=1",
    "agents.automata.canonical_path": "order='ULDR', start=2, end=3, free=is_free, several=False, name=''",
    "agents.automata.component": "taps=('U', 'L', 'D', 'R'), free=is_free",
    "agents.automata.distance": "taps=('U', 'L', 'D', 'R'), free=is_free, several=True, name=''",
    "agents.automata.peeling": "kind=0, least=2",
    "agents.automata.prove": "on='grids'",
    "agents.automata.reached": "taps=('U', 'L', 'D', 'R'), free=is_free, name=''",
    "TrainingConfig": (
        "task='shortest-path', n_updates=8000, batch_size=64, precision='float32', compile=False, seed=0, "
        "evolve=False, evolve_absolute=False, model='NCA', n_channels=32, n_iterations=32, "
        "initialisation='usual', families=('random',), sizes=(16,), long_fraction=0.0, long_of=4, "
        "borderless=0.0, dihedral=False, loss='mse', loss_steps=(1.0,), loss_after=0.0, nearest_solution=0.0,"
        " guidance=0.0, optimiser='adam', learning_rate=0.001, schedule='constant', weight_decay=0.0, "
        "normalise_gradients=True, ema_decay=0.0, pool_size=0, pool_fresh=0.25, pool_edited=0.0, "
        "pool_edits='few', pool_steps=(12, 24), state_noise=0.0, capacity=10000, prioritisation='uniform', "
        "temperature=0.3, top_k=64, staleness_weight=0.0, eviction='fitness', score='loss', mutation='flip',"
        " replay_probability=1.0, evolve_every=200, evolve_below=0.5, n_offspring=64, parents='random'"
    ),
    "HintConfig": (
        "automaton='shortest-path', families=('random', 'perfect', 'kruskal', 'loops', 'rooms', 'caves', "
        "'sparse'), sizes=(4, 6, 9, 12), n_levels=64, n_questions=1000, n_recombined=50000, n_updates=4000, "
        "batch_size=2048, learning_rate=0.02, margin=0.25, sparsity=0.0003, n_updates_again=1000, "
        "n_rounds=30, n_worst=100, seed=0"
    ),
    "PopulationConfig": (
        "task='shortest-path', capacity=4000, prioritisation='rank', temperature=0.3, top_k=4, "
        "staleness_weight=0.3, eviction='fitness', score='regret', mutation='flip'"
    ),
    "BreedingSchedule": (
        "replay_probability=0.8, evolve_every=200, evolve_below=0.5, n_offspring=64, parents='random'"
    ),
}
"""Name -> its defaults other than None."""


def shown(value: Any) -> str:
    """Return a default as code; a function by its name, an entry of an enumeration by its number."""
    value = value.value if isinstance(value, enum.Enum) else value
    return getattr(value, "__name__", None) or (repr(value) if isinstance(value, str) else str(value))


def line(defaults: dict[str, Any]) -> str:
    """Return the defaults of a call in one line."""
    options = {name: default for name, default in defaults.items() if default not in (None, inspect.Parameter.empty)}
    return ", ".join(f"{name}={shown(value)}" for name, value in options.items())


def found() -> dict[str, str]:
    """Return the table of the present code."""
    calls = {entry.__qualname__: entry for entry in CLASSES}
    for door in DOORS:
        module = importlib.import_module(f"maze_nca_gym.{door}")
        calls |= {f"{door}.{name}": getattr(module, name) for name in module.__all__}
    lines = {}
    for name, call in calls.items():
        if inspect.isfunction(call) or call in CLASSES:
            parameters = inspect.signature(call).parameters
            lines[name] = line({entry: parameters[entry].default for entry in parameters if entry != "kinds"})
    for kind in CONFIGURATIONS:
        lines[kind.__name__] = line({name: option.default for name, option in options_of(kind).items()})
    return {name: defaults for name, defaults in lines.items() if defaults}


def test_every_default_agrees_with_the_table() -> None:
    assert found() == TABLE
