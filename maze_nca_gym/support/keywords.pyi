"""Keyword options of public functions, for type checkers; `python -m tools.write_keywords` writes this."""

from collections.abc import Sequence
from typing import Literal, TypedDict

from typing_extensions import Unpack as Unpack

class TrainOptions(TypedDict, total=False):
    task: str
    order: str | None
    n_updates: int
    batch_size: int
    precision: str
    compile: bool | Literal["auto", "graphs"]
    seed: int
    evolve: bool
    evolve_absolute: bool
    model: str
    n_channels: int
    n_iterations: int | None
    initialisation: str
    start_from: str | None
    kernel_size: int | None
    cut_corners: bool | None
    shared_weights: bool | None
    max_pool: bool | None
    input_injection: bool | None
    state_limit: float | None
    last_relu: bool | None
    pool_before_activation: bool | None
    symmetric: bool | None
    n_frozen: int | None
    n_maxima: int | None
    traversable_edges_only: bool | None
    normalise_edges: bool | None
    edge_features: bool | None
    n_nodes: int | None
    families: str | Sequence[str]
    sizes: int | Sequence[int]
    n_levels: int | None
    long_fraction: float
    long_of: int
    borderless: float
    level_set: str | None
    dihedral: bool
    validation_set: str | None
    loss: str
    loss_steps: float | Sequence[float]
    loss_after: float
    nearest_solution: float
    guidance: float
    optimiser: str
    learning_rate: float
    schedule: str
    weight_decay: float
    normalise_gradients: bool
    gradient_growth: float | None
    ema_decay: float
    pool_size: int
    pool_fresh: float
    pool_edited: float
    pool_edits: str
    pool_steps: Sequence[int]
    pool_retry: float | None
    state_noise: float
    capacity: int
    prioritisation: str
    temperature: float
    top_k: int
    staleness_weight: float
    eviction: str
    score: str
    mutation: str
    replay_probability: float
    evolve_every: int
    evolve_below: float | None
    n_offspring: int
    parents: str
    tile_rate: float
    source_rate: float
    n_edits: int
    n_swaps: int

class HintOptions(TypedDict, total=False):
    order: str | None
    families: str | Sequence[str] | None
    sizes: int | Sequence[int] | None
    n_levels: int | None
    n_mazes: int | None
    n_questions: int | None
    n_recombined: int | None
    n_updates: int | None
    batch_size: int | None
    learning_rate: float | None
    margin: float | None
    sparsity: float | None
    n_updates_again: int | None
    n_rounds: int | None
    n_worst: int | None
    seed: int | None

class EvolveOptions(TypedDict, total=False):
    wall_probability: float | None
    loop_fraction: float | None
    largest_room: int | None
    smoothing: int | None
    n_offspring: int | None
    parents: str | None
    capacity: int | None
    prioritisation: str | None
    temperature: float | None
    top_k: int | None
    staleness_weight: float | None
    eviction: str | None
    score: str | None
    mutation: str | None
    tile_rate: float | None
    source_rate: float | None
    n_edits: int | None
    n_swaps: int | None

class GeneratorOptions(TypedDict, total=False):
    wall_probability: float | None
    loop_fraction: float | None
    largest_room: int | None
    smoothing: int | None
