# %% [markdown]
# # Exercise: a flood by hand
#
# You write a cellular automaton that finds shortest paths: a flood from the target, and a walk back along it. Each tile
# reads itself and its four neighbours, and nothing else. There are three gaps, `...`, to fill in. You need the
# [package](../install.md) and Jupyter; it takes about 45 minutes.
#
# On the site, the page of this sheet ends with two notebooks, one with the gaps and one with the solutions. There, each
# solution can be unfolded below its gap, and so can what cells show. Do so when you have an answer of your own.

# %%
from enum import IntEnum

import numpy as np
from PIL import Image

from maze_nca_gym.agents import Automaton, compile_automaton
from maze_nca_gym.agents.automata import around
from maze_nca_gym.mazes import Tile, generate, parse, shortest_path, solvers
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level

MAZE = parse("""
    S...#....
    .##.#.##.
    .#..#..#.
    .#.###.#.
    ...#.....
    ##.#.###.
    .......#T
""")


def film(automaton, signal, tiles=MAZE, times=(1, 3, 6, 12, 18, 40)):
    """Draw a signal, in blue, after some numbers of iterations; the last state stays."""
    states = [state[0, signal] for state in automaton.trace(tiles[None])]
    frames = [draw_level(tiles, states[min(t, len(states) - 1)], cell=20) for t in times]
    captions = [captioned(frame, f"after {t}") for frame, t in zip(frames, times, strict=True)]
    return Image.fromarray(contact_sheet(captions, columns=3))


Image.fromarray(draw_level(MAZE, cell=28))

# %% [markdown]
# S is the source, T the target.
#
# ## 1. The flood
#
# Each tile holds some *signals*, which are on or off. At first all are off. Then all tiles apply the same rule at once,
# again and again. WET shall mean that the flood has come here: the target is wet, and so is each tile that was wet
# before or has a wet neighbour, unless it is a wall.
#
# **Before you write it**: how many tiles are wet after 1, 2 and 3 iterations? After how many are all of them?
#
# A rule sees the tile itself with `see(Signal.WET)`, its upper neighbour with `see(Signal.WET, "U")`, and so on for
# `"L"`, `"D"` and `"R"`; `around(see, Signal.WET)` is whether any of the four is wet. `see.tile(Tile.WALL)` is whether
# the tile is a wall. Join them with `&`, `|` and `~`: and, or, not.

# %%
Signal = IntEnum("Signal", "PATH WET", start=0)


# %% [gap]
def wet(see):
    """Return whether the tile is wet after the next iteration."""
    return ...


# %% [solution]
def wet(see):
    """Return whether the tile is wet after the next iteration."""
    arrives = see.tile(Tile.TARGET) | see(Signal.WET) | around(see, Signal.WET)
    return arrives & ~see.tile(Tile.WALL)


# %% [markdown]
# PATH is what an automaton answers; for now, it shows what was wet an iteration ago.

# %%
flood = Automaton("flood", "shortest-path", Signal, {Signal.PATH: lambda see: see(Signal.WET), Signal.WET: wet})
film(flood, Signal.WET)

# %% [markdown]
# The number of moves from the target, found by a search, tells what must be wet after t iterations.

# %%
moves = solvers.distances(MAZE, tuple(np.argwhere(MAZE == Tile.TARGET)[0]))
for t, state in enumerate(flood.trace(MAZE[None])):
    correct = (moves >= 0) & (moves < t)
    assert (state[0, Signal.WET] == correct).all(), f"after {t} iterations the flood is not where it should be"
    print(f"after {t:2} iterations {correct.sum():2} tiles are wet")

# %% [markdown]
# **Question A**: could a rule read a shortest path off the last state of the flood? If not, what has been lost?
#
# ## 2. Remember where it came from
#
# In the end every tile that can be reached is wet. So each tile remembers who was first: NEAR_U says that the upper
# neighbour was wet when this tile was not, hence is nearer to the target. It stays on once it is on; walls have none.

# %%
DIRECTIONS = "ULDR"
Signal = IntEnum("Signal", "PATH WET NEAR_U NEAR_L NEAR_D NEAR_R ENTER_U ENTER_L ENTER_D ENTER_R ON", start=0)
NEAR = {d: Signal[f"NEAR_{d}"] for d in DIRECTIONS}
ENTER = {d: Signal[f"ENTER_{d}"] for d in DIRECTIONS}


# %% [gap]
def near(see, d):
    """Return whether the neighbour in direction d is nearer to the target."""
    return ...


# %% [solution]
def near(see, d):
    """Return whether the neighbour in direction d is nearer to the target."""
    return (see(NEAR[d]) | (see(Signal.WET, d) & ~see(Signal.WET))) & ~see.tile(Tile.WALL)


# %% [markdown]
# ## 3. Walk back
#
# The path begins at the source and always goes on to a nearer tile. A tile cannot push, it can only look: ENTER_D is on
# where the path comes in by a move down, that is, where the tile above is on the path and its NEAR_D is on. So a rule
# for a move in direction d looks at the tile behind, `BEHIND[d]`.
#
# A rule that joins all four directions would be no sum with a threshold, which is all that one iteration of a network
# can be. So there are four signals.

# %%
BEHIND = {"U": "D", "L": "R", "D": "U", "R": "L"}


def on_path(see, tap="C"):
    """Return whether a tile is on the path: it is the source, or entered from somewhere."""
    entered = see(ENTER["U"], tap) | see(ENTER["L"], tap) | see(ENTER["D"], tap) | see(ENTER["R"], tap)
    return see.tile(Tile.SOURCE, tap) | entered


def enters_any(see, d):
    """Return whether the path comes in by a move in direction d."""
    return on_path(see, BEHIND[d]) & see(NEAR[d], BEHIND[d])


def automaton(enters):
    """Return the automaton with a rule for moves."""
    rules = {Signal.PATH: lambda see: see(Signal.ON), Signal.ON: on_path, Signal.WET: wet}
    for d in DIRECTIONS:
        rules[NEAR[d]] = lambda see, d=d: near(see, d)
        rules[ENTER[d]] = lambda see, d=d: enters(see, d)
    return Automaton("by-hand", "shortest-path", Signal, rules)


film(automaton(enters_any), Signal.PATH, times=(6, 18, 20, 24, 30, 40))

# %% [markdown]
# It waits at the source until the flood comes, and then walks. In this maze it is correct. In an open room it is not:

# %%
ROOM = parse("......\n.S....\n...#..\n......\n....T.")
film(automaton(enters_any), Signal.PATH, ROOM, (8, 10, 12, 14, 16, 40))

# %% [markdown]
# ## 4. Ties
#
# **Question B**: which tiles are blue in the end, and why?
#
# Where several neighbours are nearer, the path shall take the first of up, left, down, right. So a move in direction d
# counts only if the tile behind has none of the earlier ones: `DIRECTIONS[: DIRECTIONS.index(d)]` are their letters.


# %% [gap]
def enters(see, d):
    """Return whether the path comes in by a move in direction d, the first that is possible."""
    move = enters_any(see, d)
    for earlier in DIRECTIONS[: DIRECTIONS.index(d)]:
        move = ...
    return move


# %% [solution]
def enters(see, d):
    """Return whether the path comes in by a move in direction d, the first that is possible."""
    move = enters_any(see, d)
    for earlier in DIRECTIONS[: DIRECTIONS.index(d)]:
        move = move & ~see(NEAR[earlier], BEHIND[d])
    return move


# %%
film(automaton(enters), Signal.PATH, ROOM, (8, 10, 12, 14, 16, 40))

# %% [markdown]
# Is it correct on other mazes? The solver's path breaks ties in the same way.

# %%
mazes = generate(np.random.default_rng(0), n=300, size=10, generator="random", wall_probability=0.3)
for rule in (enters_any, enters):
    *_, last = automaton(rule).trace(mazes)
    correct = (last[:, Signal.PATH] == shortest_path(mazes)).all(axis=(1, 2))
    print(f"{rule.__name__:10} is correct on {correct.sum()} of {len(mazes)} mazes")
assert correct.all(), "some path is not the canonical one: does a later direction win somewhere?"

# %% [markdown]
# Your rules are a network, too. The compiler finds weights with which each iteration is a sum and a ReLU, and proves
# that they follow the rules on every maze.

# %%
network, certificate = compile_automaton(automaton(enters))
print(f"{network.n_weights:,} weights, proven to follow the rules: {certificate.holds}")
assert certificate.holds

# %% [markdown]
# **Further questions**
#
# - **C**: how many iterations does it take until a path of L moves is drawn? Count on a few corridors, `S...T`.
# - **D**: the package's automaton (`maze-nca-gym compile-automaton shortest-path`) has no NEAR_R. How can a tile know
#   without it that its right neighbour is nearer?
# - **E**: a wall is opened after the flood has passed. Which signals are wrong now, and what could a tile notice?
#
# <details markdown><summary>Answers</summary>
#
# - **A**: no. All tiles that can be reached are wet, whichever the path is. What is lost is when each became wet.
# - **B**: all tiles of *all* shortest paths: where two neighbours are nearer, the path is entered by both.
# - **C**: 2 L + 3. The flood is at the source after L + 1, the walk takes L more, and ON and PATH follow an iteration
#   later each. The package's automaton has no ON, and takes 2 L + 2.
# - **D**: a wet tile other than the target was flooded from somewhere. If it was not from above, the left or below, it
#   was from the right.
# - **E**: NEAR, wherever the opening is a short cut, and with it the path: WET and NEAR never go off. A tile can notice
#   that a free neighbour of a wet tile is not wet, as the tile of the wall is just then. The automaton
#   `shortest-path-healing` looks for such signs, and starts again.
#
# </details>
#
# Next: [train a network and break it](train_and_break.py).
