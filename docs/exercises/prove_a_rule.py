# %% [markdown]
# # Exercise: prove a rule wrong, and another correct
#
# Three rules of a flood look alike, and pass the same thousand tests. One of them is wrong. You find out which, why,
# and how one can be sure of the others, on every maze of any size. There are four gaps, `...`, to fill in. You need the
# [package](../install.md) with its extra `proof`, and Jupyter; it takes about 50 minutes. [A flood by
# hand](flood_by_hand.py) says how rules are written.
#
# On the site, the page of this sheet ends with two notebooks, one with the gaps and one with the solutions. There, each
# solution can be unfolded below its gap, and so can what cells show. Do so when you have an answer of your own.
#
# ## 1. Three rules
#
# WET shall mean that the source reaches the tile. After t iterations a tile shall be wet if it takes fewer than t moves
# to come there. The second rule forgets that the tile was wet. The third one is shy: a tile that is still dry stays so
# while both the tile above and the one below are wet.

# %%
import copy
from collections import Counter
from dataclasses import replace
from enum import IntEnum

import numpy as np
import torch
from PIL import Image

from maze_nca_gym.agents import Automaton, compile_automaton, rollout
from maze_nca_gym.agents.automata import (
    Theorem,
    around,
    certify,
    distance,
    flooded,
    mistakes,
    prove,
)
from maze_nca_gym.mazes import Tile, distances, generate, one_hot, parse
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level

Signal = IntEnum("Signal", "PATH WET", start=0)


def keeps(see):
    """Return whether a tile is wet next: it is, or a neighbour is."""
    return (see.tile(Tile.SOURCE) | see(Signal.WET) | around(see, Signal.WET)) & ~see.tile(Tile.WALL)


def forgets(see):
    """Return the same, without looking at what the tile itself was."""
    return (see.tile(Tile.SOURCE) | around(see, Signal.WET)) & ~see.tile(Tile.WALL)


def shy(see):
    """Return the same as `keeps`, but a dry tile between two wet ones stays dry."""
    return see(Signal.WET) | (keeps(see) & ~(see(Signal.WET, "U") & see(Signal.WET, "D")))


RULES = {}
for rule in (keeps, forgets, shy):
    rules = {Signal.PATH: lambda see: see(Signal.WET), Signal.WET: rule}
    RULES[rule.__name__] = Automaton(rule.__name__, "shortest-path", Signal, rules)

# %% [markdown]
# **Before you run it**: which of them is wrong?

# %%
mazes = generate(np.random.default_rng(0), n=1000, size=9, generator="perfect")
reached = np.stack([distances(tiles) >= 0 for tiles in mazes])
for name, automaton in RULES.items():
    *_, last = automaton.trace(mazes)
    correct = (last[:, Signal.WET] == reached).all(axis=(1, 2))
    print(f"{name:8} is correct on {correct.sum()} of {len(mazes)} mazes")

# %% [markdown]
# ## 2. Say what is to be proven
#
# A proof needs a *theorem*: the value of each signal after t iterations. It is written like a rule, but may use facts
# that no tile stores. Here these are whether a tile is reached from the source, and its distance, in moves.
# `flooded(picture, at, n)` is whether a tile is reached in fewer than n moves. PATH copies what WET was before.
#
# **Fill in n** for both, in terms of t.


# %% [gap]
def signals(picture, at, t):
    """Return what the signals of a tile are after t iterations."""
    return {Signal.PATH: flooded(picture, at, ...), Signal.WET: flooded(picture, at, ...)}


# %% [solution]
def signals(picture, at, t):
    """Return what the signals of a tile are after t iterations."""
    return {Signal.PATH: flooded(picture, at, t - 1), Signal.WET: flooded(picture, at, t)}


# %% [markdown]
# The *axioms* are what the proof may know about distances: the source is at 0, each other tile that is reached has a
# neighbour that is nearer by one, and so on. They follow from the rule that defines distances. `mistakes` tries the
# theorem on a real maze, and lists where it is false.

# %%
FLOOD = distance(Tile.SOURCE)  # the ghosts `reached` and `distance`, with their axioms and their values on real mazes
theorem = Theorem(FLOOD.axioms, FLOOD.ghosts, signals=signals)
claims = {name: replace(automaton, theorem=theorem) for name, automaton in RULES.items()}
wrong = list(mistakes(claims["keeps"], mazes[0]))
assert not wrong, f"on this maze it is false of {wrong[0][0].name} after {wrong[0][1]} iterations"
print("true on this maze")

# %% [markdown]
# ## 3. Prove, or refuse
#
# `prove` shows by induction that the theorem is true: it is after 0 iterations, and if it is after t, the rule makes it
# true after t + 1. The solver z3 does this for one tile and its neighbours, with symbols for all that they could be.
#
# **Which of the three will it prove?**

# %%
proofs = {name: prove(claim) for name, claim in claims.items()}
for name, proof in proofs.items():
    print(f"{name:8} proven: {proof.holds}")
    for lemma in proof.refused:
        print(f"\n{lemma.claim}: refused, because of\n{lemma.counterexample}")
assert [name for name, proof in proofs.items() if proof.holds] == ["keeps", "forgets"]

# %% [markdown]
# The picture shows a tile in the middle and those around it, `?` for any; below are t, and what is reached at which
# distance. It need not be a whole maze, and may have two sources or targets: it is what the rule cannot tell from one.
#
# Without a theorem, `prove` looks for one: it guesses what each signal means from runs on small mazes, and then proves
# it. **Does it say what you filled in?**

# %%
found = prove(RULES["forgets"])
print(found.holds, {signal.name: words for signal, words in found.theorem.means.items()})
assert found.holds

# %% [markdown]
# **Question A**: why is `forgets` correct? What does the distance of a tile's neighbours have to do with it?
#
# **Draw a maze** on which `shy` is wrong. It takes few tiles. In what are all thousand mazes of the test alike, and
# yours is not?

# %% [gap]
counterexample = ...  # parse(""" rows of a maze """)

# %% [solution]
counterexample = parse("""
    .....
    .###.
    S###T
    .###.
    .....
""")

# %%
*_, last = RULES["shy"].trace(counterexample[None])
missing = (distances(counterexample) >= 0) & ~last[0, Signal.WET]
assert missing.any(), "the rule is correct on this maze: where does the flood meet itself, from above and from below?"
times = (2, 4, 6, 8, 30)
states = [state[0, Signal.WET] for state in RULES["shy"].trace(counterexample[None])]
frames = [draw_level(counterexample, states[min(t, len(states) - 1)], cell=20) for t in times]
captions = [captioned(frame, f"after {t}") for frame, t in zip(frames, times, strict=True)]
Image.fromarray(contact_sheet(captions, columns=5))

# %% [markdown]
# ## 4. Certify weights
#
# A proven rule is not yet a proven network. `compile_automaton` finds weights, and `certify` tries to prove that a
# network does what a rule says, on every maze and for any number of iterations, rounding errors included.

# %%
for name, automaton in RULES.items():
    network, certificate = compile_automaton(automaton)
    print(f"{name:8} {network.n_weights} weights, certificate holds: {certificate.holds}")

# %% [markdown]
# **Question B**: the certificate holds for `shy`, too. Is it worth anything?
#
# Now change each weight of a network by 0.03, one at a time. These networks still pass a test on small mazes. **Ask for
# the certificate of each**: `certify(broken, automaton=...).holds`.

# %%
network, _ = compile_automaton(RULES["keeps"])


def passes(network, size, n):
    """Return whether a network is correct on some mazes of a size."""
    tests = generate(np.random.default_rng(1), n=n, size=size, generator="perfect")
    reached = np.stack([distances(tiles) for tiles in tests])
    with torch.no_grad():
        path = rollout(network, torch.from_numpy(one_hot(tests)), int(reached.max()) + 2)[:, 0].numpy() > 0.5
    return bool((path == (reached >= 0)).all())


# %% [gap]
def certified(broken):
    """Return whether a network is proven to do what the rule `keeps` says."""
    return ...


# %% [solution]
def certified(broken):
    """Return whether a network is proven to do what the rule `keeps` says."""
    return certify(broken, automaton=RULES["keeps"]).holds


# %%
seen = Counter()
for place in network.weights[0].nonzero().tolist():
    broken = copy.deepcopy(network)
    with torch.no_grad():
        broken.weights[0][tuple(place)] += 0.03
    seen[certified(broken), passes(broken, size=7, n=10), passes(broken, size=31, n=10)] += 1
for (holds, small, large), number in sorted(seen.items(), reverse=True):
    print(f"{number:3} networks: certified {holds!s:5}, correct on 7 x 7 {small!s:5}, on 31 x 31 {large!s:5}")
assert any(holds is True for holds, *_ in seen), "some of these networks can be certified: was it asked for?"
assert all(small and large for holds, small, large in seen if holds), "a certified network is wrong"

# %% [markdown]
# **Question C**: some networks pass the test on small mazes, and fail on large ones. What grows on the way?
#
# **Question D**: is a network without a certificate wrong?
#
# **Further**: make a fourth rule of your own, one of which you are not sure. Let your neighbour guess, then test it,
# and then prove it.
#
# <details markdown><summary>Answers</summary>
#
# - **A**: a tile at distance d is wet from iteration d + 1 on. It stays wet because a neighbour at distance d - 1 does,
#   and that because of one at d - 2, and so on to the source, which is always wet. No tile needs to remember.
# - **The thousand mazes** have no loops, so the flood comes to each tile from one side. In a loop it comes from two,
#   and may come from above and below at once.
# - **B**: yes: the network does what `shy` says, exactly. It is wrong because `shy` is. A certificate ties weights to
#   rules, and a proof ties rules to what they are for. One without the other says little.
# - **C**: a wet tile has a value a little above or below that of others, and passes the error on. After enough tiles it
#   is large enough to be rounded to the wrong side. So a test has to be as long as the longest way, and there is none.
# - **D**: it may be correct. The certificate bounds errors from above, for mazes that nobody draws, too. It is a
#   promise where it holds, and no verdict where it does not.
#
# </details>
#
# [Prove a rule correct](../prove-a-rule.md) has more of this, and [How the prover works](../how-the-prover-works.md)
# lists theorems about paths, about mazes that change, and more.
