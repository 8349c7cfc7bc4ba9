# %% [markdown]
# # Your own world in an hour
#
# A question that nobody has asked yet, from an empty file to a network that is proven to answer it on every map: *a
# fire breaks out; which tiles burn?* Fire spreads to the four neighbours, and stops at walls and at water.
#
# ## The question
#
# A task has kinds of tile, each with a letter and a colour. The first two are always empty and wall. Here fires and
# water follow, and neither a source nor a target. `mark` puts them on the levels of any generator. `solve` is the exact
# answer: a `fixpoint` of rules that switch something on, round by round. A tile burns if it is a fire, or if it is
# empty and a neighbour burns. So nobody writes a search, and a proof knows what to show: the rule is the specification
# too. A `solve` in plain Python needs a `specification` beside it.
#
# The world is a file of its own, `wildfire.py`, so that commands and other programs can import it. This cell writes its
# beginning.

# %% [file wildfire.py]
import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.agents.automata import around, fixpoint
from maze_nca_gym.mazes import KINDS, Kind, Task, Tile, register_task

FIRE, WATER = 2, 3


def mark(rng, tiles):
    """Make every sixth empty tile water, and one to three other tiles fires."""
    tiles = np.where((tiles == Tile.EMPTY) & (rng.random(tiles.shape) < 1 / 6), np.uint8(WATER), tiles)
    for level in tiles:
        free = np.argwhere(level != Tile.WALL)
        for place in rng.permutation(free)[: rng.integers(1, 4)]:
            level[tuple(place)] = FIRE
    return tiles


def burns(see):
    """Return whether a tile burns after a round."""
    return see.tile(FIRE) | (around(see, "burns") & see.tile(Tile.EMPTY))


TASK = register_task(
    Task(
        name="wildfire",
        kinds=(*KINDS[:2], Kind("fire", "f", "#d55e00"), Kind("water", "w", "#56b4e9")),
        mark=mark,
        n_channels=8,
        solve=fixpoint(burns=burns),
        usual_length=128,
        default_steps=48,
        may_be_empty=True,  # no fire, nothing burns
    )
)
register_environment("MazeWildfire-v0", "wildfire", max_episode_steps=256)  # solve and specification were compared

# %% [markdown]
# ## The rule
#
# An automaton has signals, on or off at every tile and all off at first, and a rule for each that reads the tile and
# its four neighbours. `see(signal, tap)` is a signal of the neighbour in a direction, and `see.tile(kind, tap)`
# whether that tile is of a kind, by its number among the kinds of the task. Rules are made with `&`, `|` and `~`. The
# first signal, PATH, shows the answer. This is the rest of the file:

# %% [file wildfire.py]
from enum import IntEnum

from maze_nca_gym.agents.automata import Automaton, StepBound


class Signal(IntEnum):
    PATH = 0
    BURNS = 1


WILDFIRE = Automaton(
    name="wildfire",
    task="wildfire",
    signals=Signal,
    rules={
        Signal.PATH: lambda see: see(Signal.BURNS),
        Signal.BURNS: lambda see: (
            see.tile(FIRE) | ((see(Signal.BURNS) | around(see, Signal.BURNS)) & ~see.tile(Tile.WALL) & ~see.tile(WATER))
        ),
    },
    bound=StepBound(constant=1, per_tile=1),
)

# %% [markdown]
# From here on the cells import what they use. Here is a level with its answer:

# %%
import numpy as np

# notebook: from wildfire import FIRE, TASK, WILDFIRE, Signal

(level,) = TASK.generate(np.random.default_rng(1), 1, 8, wall_probability=0.3)
print(TASK.to_text(level, TASK.solve(level[None])[0]))

# %% [markdown]
# A rule that reads a kind of tile that the task does not have is refused, with those that there are:

# %%
from dataclasses import replace

try:
    replace(WILDFIRE, invariant=lambda see: ~see.tile(4))
except ValueError as error:
    print(error)

# %% [markdown]
# ## The network
#
# `compile_automaton` writes the weights of a neural cellular automaton that does what the rules do. For each signal a
# linear program finds the sum that tells apart where its rule switches it on. The certificate then bounds every sum
# over everything that a tile and its neighbours can hold, at any iteration, with the rounding errors of float32. It
# holds for maps of any size.

# %%
from maze_nca_gym.agents import compile_automaton

network, certificate = compile_automaton(WILDFIRE)
print(f"{network.n_weights} weights; the same as the rules on every map: {certificate.holds}")

# %% [markdown]
# It should burn what the search burns, on maps of any size, at once:

# %%
from maze_nca_gym.agents import evaluate

for size in (6, 12, 24):
    (row,) = evaluate({"compiled": network}, families="random", sizes=size, n=500)
    print(f"{size} x {size}: {row.metrics.complete.value:.1%} of 500 maps complete")

# %% [markdown]
# ## The proof
#
# The network does what the rules do. What the rules do on every map is another question, and `prove` answers it. It
# runs the automaton on small maps, guesses what each signal means after t iterations, in terms of the *ghosts* of the
# specification: facts about a map that no tile stores, here the round in which each tile burns. Then it proves by the
# solver z3 that it is so on every map: for one tile that stands for all, and one iteration that stands for all.
# It needs the extra `proof` of [the package](../install.md).

# %%
from maze_nca_gym.agents.automata import around, prove
from maze_nca_gym.mazes import Tile

proof = prove(WILDFIRE)
print(proof.words)
for signal, meaning in proof.theorem.means.items():
    print(f"  {signal.name} is on: {meaning}")

# %% [markdown]
# *Correct* means: within the `bound`, PATH shows what the task's specification says. No round reaches the number of
# tiles, so as many iterations are enough, and one for PATH. A rule that forgets the water is refuted:


# %%
def careless(see):
    """Burn water too."""
    return see.tile(FIRE) | ((see(Signal.BURNS) | around(see, Signal.BURNS)) & ~see.tile(Tile.WALL))


refuted = prove(replace(WILDFIRE, rules={**WILDFIRE.rules, Signal.BURNS: careless}))
print(refuted.words)
print(refuted.counterexample)

# %% [markdown]
# ## A page to play with
#
# `export` writes a page on which anybody can draw walls, fires and water while the network runs, without installing
# anything. `maze-nca-gym play runs/wildfire/model.safetensors --import wildfire` opens a window with the same.

# %%
from maze_nca_gym.agents import animate, export

network, certificate = compile_automaton(WILDFIRE, out="runs/wildfire", overwrite=True)
page = export(network, "runs/wildfire/wildfire.html")
print(f"{page}: {page.stat().st_size // 1024} KiB")

# %%
animate(network, level, 24)

# %% [markdown]
# On the command line, in the folder of `wildfire.py`, all of this is
#
# ```sh
# maze-nca-gym compile-automaton wildfire:WILDFIRE --out runs/wildfire
# maze-nca-gym evaluate runs/wildfire/model.safetensors --import wildfire
# maze-nca-gym export runs/wildfire/model.safetensors --import wildfire --out wildfire.html
# ```
#
# [What proven means](../proven.md) says what is still trusted. [Automata: reference](../automata.md) has more: signals
# that spread by delays, answers of several channels, rules that no single sum decides, and theorems that are written
# instead of guessed. Three examples do the same for [the nearest of several
# targets](../../examples/16_nearest_of_several_targets.py), [weighted
# terrain](../../examples/17_weighted_terrain.py) and [a key and a door](../../examples/19_key_and_door.py).
