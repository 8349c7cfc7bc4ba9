"""Terms, the language of rules: all readers agree on random terms, and with a reading by hand."""

import json
import operator
import re
import shutil
import subprocess
from contextlib import contextmanager, nullcontext
from enum import IntEnum
from fractions import Fraction
from functools import cache, reduce
from signal import ITIMER_PROF, SIGPROF, setitimer
from signal import signal as handle

import numpy as np
import pytest
from tables import for_each, refused
from test_play import PAGE, needs_node

from maze_nca_gym.agents.automata import Automaton, NotCovered, exactly, threshold
from maze_nca_gym.agents.automata.kernel.clauses import refutation
from maze_nca_gym.agents.automata.kernel.coq import printed_list, printed_rule
from maze_nca_gym.agents.automata.kernel.definitions import _read
from maze_nca_gym.agents.automata.kernel.facts import Atom, No, printed_fact
from maze_nca_gym.agents.automata.kernel.theorems import PREFIX, THEORY
from maze_nca_gym.agents.automata.kernel.translation import Translation
from maze_nca_gym.agents.automata.networks.bits import Strip, as_blocks, as_tiles
from maze_nca_gym.agents.automata.networks.linear import sum_of
from maze_nca_gym.agents.automata.networks.patches import labels, patches_of, tile_codes
from maze_nca_gym.agents.automata.networks.states import find_worlds
from maze_nca_gym.agents.automata.proving.symbols import Z3, SymbolicPicture
from maze_nca_gym.agents.automata.search.trial import packed, unpacked
from maze_nca_gym.mazes.arrays import reader
from maze_nca_gym.mazes.facts import at_least
from maze_nca_gym.mazes.levels import KINDS
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.terms import Term, TileKind, TileView, Weighed, term_of
from maze_nca_gym.mazes.text import MOST_WORDS, printed, words
from tools.make_play import nodes_of

N_TERMS, SUMS_FROM, COQS = 2_000, 1_000, 9
"""Number of terms, index of the first term with sums, and step between the terms that Coq reads."""
TAPS = "CULDR"
KIND_NAMES = [kind.name for kind in KINDS]
Signal = IntEnum("Signal", "PATH S1 S2 S3 S4", start=0)
RNG = np.random.default_rng(11)
TILES = RNG.integers(0, 4, (1, 3, 3), np.uint8)
HELD = RNG.random((1, len(Signal), 3, 3)) < 0.5
PLACES = [*np.ndindex(3, 3)]


def random_term(rng, see, sums):
    """Return a random term of up to nine operators, with shared parts."""
    parts = [
        see.tile(int(rng.integers(4)), rng.choice([*TAPS]))
        if rng.random() < 0.4
        else see(Signal(int(rng.integers(1, 5))), rng.choice([*TAPS]))
        for _ in range(6)
    ]
    for _ in range(rng.integers(1, 10)):
        operands = [parts[i] for i in rng.integers(len(parts), size=rng.integers(2, 5))]
        kind = rng.integers(7 if sums else 5)
        if kind < 3:
            term = reduce((operator.and_, operator.or_, operator.xor)[kind], operands)
        elif kind == 3:
            term = ~operands[0]
        elif kind == 4:
            term = at_least(int(rng.integers(1, 1 + len(operands))), operands)
        elif kind == 5:
            weights = [Fraction(int(rng.integers(-3, 4)), int(rng.integers(1, 3))) for _ in operands]
            term = threshold(zip(weights, operands, strict=True), Fraction(int(rng.integers(-3, 4)), 2))
        else:
            term = exactly(int(rng.integers(1 + len(operands))), operands)
        parts.append(term)
    return parts[-1]


@cache
def terms():
    rng = np.random.default_rng(5)
    return [
        term_of(lambda see, number=number: random_term(rng, see, number >= SUMS_FROM), Signal)
        for number in range(N_TERMS)
    ]


@cache
def automata():
    """Return automata with four of the terms each, whose answer copies a signal."""
    path, parts = Term(Signal.S1, "C"), tuple((signal,) for signal in Signal)
    return [
        Automaton("random", "shortest-path", Signal, dict(zip(Signal, [path, *some], strict=True)), parts=parts)
        for some in zip(*[iter(terms())] * (len(Signal) - 1), strict=True)
    ]


def is_on(atom, tap, place, signals=HELD):
    """Return whether a signal or kind of tile is at a neighbour of a tile of `TILES`, by hand."""
    ((down, right),) = offsets(tap)
    row, col = place[0] + down, place[1] + right
    if not (0 <= row < 3 and 0 <= col < 3):
        return False
    return bool(TILES[0, row, col] == atom if isinstance(atom, TileKind) else signals[0, atom, row, col])


def by_hand(term, place, values_of_parts):
    """Return the value of a term at a tile, by an independent reading."""
    if id(term) not in values_of_parts:
        values = [by_hand(part, place, values_of_parts) for part in term.parts]
        if term.seen is not None:
            value = is_on(term.seen, term.tap, place)
        elif isinstance(term.join, Weighed):
            total = sum(weight for weight, on in zip(term.join.weights, values, strict=True) if on)
            value = term.join.least <= total and (term.join.most is None or total <= term.join.most)
        else:
            value = {"and_": all(values), "or_": any(values), "xor": sum(values) == 1, "invert": not values[0]}[
                term.join.__name__
            ]
        values_of_parts[id(term)] = value
    return values_of_parts[id(term)]


@cache
def expected():
    """Return the value of each term at each tile, (terms, 9) bool."""
    return np.array([[by_hand(term, place, {}) for place in PLACES] for term in terms()])


def cut(held):
    """Return the signals of all automata, (1, S, 3, 3) each, as the values of the terms, (terms, 9) bool."""
    return np.concatenate([signals[0, 1:].reshape(-1, 9) for signals in held])


def test_arrays_words_of_bits_patches_and_blocks_agree():
    expected_values, every = expected(), automata()
    assert 0.2 < expected_values.mean() < 0.8
    np.testing.assert_array_equal(cut(automaton.step(TILES, HELD) for automaton in every), expected_values)
    patches = patches_of(every[0], tile_codes(every[0], TILES, HELD)).reshape(-1, 5)
    np.testing.assert_array_equal(
        cut(labels(automaton, patches).T.reshape(1, -1, 3, 3) for automaton in every), expected_values
    )
    read = reader({kind: packed(kind == TILES) for kind in range(4)})(packed(HELD))
    np.testing.assert_array_equal(cut(unpacked(automaton.advance(read), 1) for automaton in every), expected_values)
    np.testing.assert_array_equal(cut(map(by_blocks, every)), expected_values)


def by_blocks(automaton):
    """Return the signals after one iteration of `Strip`, (1, S, 3, 3) bool."""
    strip = Strip(automaton, TILES[0], 0, 1)
    for signal in automaton.signals:
        strip.signals[2, :, signal] = as_blocks(HELD[0, signal])
    strip.advance(1)
    octets = [as_tiles(np.ascontiguousarray(strip.signals[2, :, signal])) for signal in automaton.signals]
    return np.unpackbits(np.array(octets), axis=-1, bitorder="little")[None, :, :3, :3].astype(bool)


def test_a_term_is_decided_by_its_parts_of_one_tile():
    for term, values in zip(terms(), expected(), strict=True):
        values_of_parts = {part: np.bool_(by_hand(part, PLACES[4], {})) for part in term.local_parts}
        assert all(len(part.taps) == 1 for part in values_of_parts)
        assert term.value(values_of_parts) == values[4]
        for leaf in {leaf for leaf, _ in term.polarity}:
            assert any(leaf is each for each in term.leaves)


def test_weighted_sums_agree():
    n_sums = 0
    for number, term in enumerate(terms()[SUMS_FROM - 8 : SUMS_FROM + 24], SUMS_FROM - 8):
        automaton, signal = automata()[number // 4], Signal(1 + number % 4)
        if len(term.leaves) > 4 or (weighed := sum_of(automaton, signal)) is None:
            continue
        state = np.zeros_like(HELD)  # weighted sums are compared only on states that occur
        for _ in range(4):
            after = automaton.step(TILES, state)
            for place, on in zip(PLACES, after[0, signal].ravel(), strict=True):
                read = [is_on(atom, tap, place, state) for atom, tap in weighed.leaves]
                total = read @ weighed.weights + weighed.bias
                assert total >= 1 - 1e-6 if on else total <= 1e-6
            state = after
        n_sums += 1
    assert n_sums >= 3


def test_text_agrees():
    for term, values in zip(terms(), expected(), strict=True):
        names = "|".join([*KIND_NAMES, *(signal.name for signal in Signal)])

        def value(leaf):
            atom = TileKind(KIND_NAMES.index(leaf[1])) if leaf[1] in KIND_NAMES else Signal[leaf[1]]
            return f"np.bool_({is_on(atom, leaf[2] or 'C', PLACES[4])})"

        text = re.sub(rf"\b({names})\b(?: at (\w))?", value, words(term, KIND_NAMES))
        assert eval(text) == values[4], text


@for_each(
    "fact, text",
    [
        (lambda picture, at: ~picture.tile(3, at) & picture.true("on", "U"), "(~kind 3 at C & on at U)"),
        (
            lambda picture, at: picture.inside(at) | (1 - picture.of_map("n") >= 0),
            "(inside at C | ((1 - number n) >= 0))",
        ),
        (
            lambda picture, at: picture.of_map("n") % 2 != -picture.number("d", "L", 4),
            "((number n % 2) != -number d at L after 4)",
        ),
        (lambda picture, at: True, "True"),
    ],
)
def test_facts_as_text(fact, text):
    assert printed(fact, "C") == text


def test_rules_as_the_text_of_digests():
    see = TileView(Signal)
    assert printed(see("S1") ^ see.tile(2, "U")) == "(S1 at C ^ kind 2 at U)"
    count = exactly(1, [see("S1", "L"), see("S2")])
    total = "((0 + (1 * S1 at L)) + (1 * S2 at C))"
    assert printed(count) == f"(({total} >= 1) & ({total} <= 1))"
    long = reduce(operator.or_, [see("S1", "L") & see("S2")] * 20)
    assert printed(long) != printed(~long)
    assert len(printed(long)) < 200, "of long parts there is a digest"


def test_z3_agrees():
    z3 = pytest.importorskip("z3")
    for term, values in zip(terms(), expected(), strict=True):
        read = {leaf: z3.BoolVal(is_on(leaf.seen, leaf.tap, PLACES[4])) for leaf in term.leaves}
        assert z3.is_true(z3.simplify(term.value(read))) == values[4]


@needs_node
def test_javascript_agrees(tmp_path):
    nodes, roots = nodes_of(terms())
    size = len(KINDS) + len(Signal)
    cells = np.zeros((5, 5, size), int)
    cells[1:4, 1:4, : len(KINDS)] = TILES[0, :, :, None] == np.arange(len(KINDS))
    cells[1:4, 1:4, len(KINDS) :] = HELD[0].transpose(1, 2, 0)
    inputs = {"policy": {"nodes": nodes, "roots": roots}, "size": size, "nStatic": len(KINDS), "C": N_TERMS}
    inputs |= {"cells": cells.ravel().tolist(), "active": [*range(9)], "cellOf": [5 * r + c + 6 for r, c in PLACES]}
    script = tmp_path / "booleans.js"
    script.write_text(
        "globalThis.MazePlay = {part: (run) => run()};\n" + (PAGE / "booleans.js").read_text(encoding="utf-8")
        + f"const given = {json.dumps(inputs)}, next = new Uint8Array(9 * {N_TERMS});\n"
        "MazePlay.compileBooleans({...given, shift: ([down, right]) => 5 * down + right, next})(0, 9);\n"
        "console.log(JSON.stringify([...next]));"
    )  # fmt: skip
    output = subprocess.run(["node", script], capture_output=True, check=True, text=True, timeout=60).stdout
    np.testing.assert_array_equal(np.array(json.loads(output)).reshape(9, N_TERMS).T, expected())


@pytest.mark.skipif(shutil.which("coqc") is None, reason="there is no Coq")
def test_coq_agrees(tmp_path):
    taps = {tap: "C" if tap == "C" else f"N {tap}" for tap in TAPS}

    def table(name, of, numbers):
        cases = [
            f"| {taps[tap]} => nth n {printed_list([str(is_on(of(n), tap, PLACES[4])).lower() for n in numbers])} false"
            for tap in TAPS
        ]
        return f"Definition {name} (t : tap) (n : nat) : bool := match t with {' '.join(cases)} | _ => false end.\n"

    (tmp_path / "Statements.v").write_bytes((THEORY / "Statements.v").read_bytes())
    printed_rules = printed_list([printed_rule(term) for term in terms()[::COQS]], ";\n")
    printed_values = printed_list([str(bool(on)).lower() for on in expected()[::COQS, 4]])
    (tmp_path / "Terms.v").write_text(
        f"From {PREFIX} Require Import Statements. Import ListNotations.\n"
        + table("held", Signal, range(5)) + table("is_kind", TileKind, range(4))
        + f"Definition terms : list expr := {printed_rules}.\n"
        f"Goal map (fun e => eval e held is_kind) terms = {printed_values}. Proof. vm_compute. reflexivity. Qed.\n"
    )  # fmt: skip
    for name in ("Statements", "Terms"):
        done = subprocess.run(
            ["coqc", "-q", "-Q", ".", PREFIX, f"{name}.v"], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_exact_numbers_of_signals_are_on():
    for number in range(4):
        bits_of_states = [np.array(bits) for bits in np.ndindex(2, 2, 2)]
        assert [bool(exactly(number, [*map(np.bool_, bits)])) for bits in bits_of_states] == [
            sum(b) == number for b in bits_of_states
        ]
    refused("exactly takes a number from 0 to the number of bits, 1, got 2", exactly, 2, [np.bool_(True)])
    refused("exactly needs at least one bit", exactly, 0, [])


@contextmanager
def within(seconds):
    """Raise an error in a block that takes more CPU time."""

    def late(*_):
        raise TimeoutError(f"more than {seconds} seconds")

    before = handle(SIGPROF, late)
    setitimer(ITIMER_PROF, seconds)
    try:
        yield
    finally:
        setitimer(ITIMER_PROF, 0)
        handle(SIGPROF, before)


def shared_60_times(see):
    wet, hot = see("S1"), see("S2", "U")
    return reduce(lambda term, _: term & (term ^ hot), range(60), wet)


def chain_of_5_000(see):
    hot, of_kind = see("S2", "U"), see.tile(2)
    return reduce(lambda term, i: (term | hot) if i % 2 else (term & of_kind), range(5_000), see("S1"))


@pytest.mark.parametrize(("rule", "is_short"), [(shared_60_times, False), (chain_of_5_000, True)])
def test_readers_take_parts_that_are_shared_or_nested_many_times(rule, is_short):
    pytest.importorskip("z3")
    z3, term = Z3(), rule(TileView(Signal))
    picture = SymbolicPicture(z3, is_grid=True)
    atoms = {"kind": Atom("tile"), "S1": Atom("relation", 0), "S2": Atom("relation", 1)}
    translation = Translation(z3, picture.symbols, atoms, {}, "random")
    path, parts = Term(Signal.S1, "C"), tuple((signal,) for signal in Signal)
    with within(2):
        automaton = Automaton("random", "shortest-path", Signal, {s: term if s else path for s in Signal}, parts=parts)
    with within(2):
        (expected_value,) = {*(s := automaton.step(TILES, HELD)[0, 1:, 1, 1].tolist())}
        assert len(s) == len(Signal) - 1
    with within(2):
        assert len(automaton.digest) == 64
        assert len(words(term, KIND_NAMES)) <= MOST_WORDS
    with within(2):
        nodes, _ = nodes_of([term])
        assert len(nodes) == len([*term.walk()])
    with within(2):
        patches = patches_of(automaton, tile_codes(automaton, TILES, HELD)).reshape(-1, 5)
        assert labels(automaton, patches)[4, 1] == expected_value
    with within(2):
        assert find_worlds(automaton).worlds
    with within(2):
        expression = term.read_by(
            lambda seen, tap: picture.tile(seen, tap) if isinstance(seen, TileKind) else picture.true(seen.name, tap)
        )
    with within(2):
        fact = translation.fact(expression)
        assert {(atom.kind, atom.number, way) for atom, way in _read(fact)} >= {("relation", 0, True)}
    with within(2):
        assert refutation(z3, [fact, No(fact)]).cuts
    for printed_text, parsed in ((printed_rule, term), (printed_fact, fact)):
        with within(2), nullcontext() if is_short else pytest.raises(NotCovered, match="where no part is shared"):
            assert printed_text(parsed).count("(") > 5_000
