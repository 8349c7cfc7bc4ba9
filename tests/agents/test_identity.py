"""A verdict is about a question, rules and weights. When one of these changes, the verdict is gone, with a reason."""

from __future__ import annotations

import copy
import json
import pickle
import re
import types
import warnings
from dataclasses import fields, replace
from enum import IntEnum
from functools import wraps

import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import compile_automaton, evaluate, export, load, rollout, solve
from maze_nca_gym.agents.automata import AUTOMATA, Automaton, Count, prove
from maze_nca_gym.agents.automata.growing import grown
from maze_nca_gym.agents.automata.networks.certificate import certify, followed
from maze_nca_gym.agents.automata.networks.states import find_worlds
from maze_nca_gym.agents.automata.proving.prover import Lemma
from maze_nca_gym.agents.automata.registry import find_automaton, register_automaton
from maze_nca_gym.agents.automata.run import earned
from maze_nca_gym.agents.automata.shipped.any_state import ANY_STATE
from maze_nca_gym.agents.automata.shipped.gallery import LIFE, REACHABLE
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.agents.policies.guarantees import Guarantees, StepBound
from maze_nca_gym.agents.policies.handcoded import DiameterNCA, ShortestPathNCA
from maze_nca_gym.agents.policies.identity import altered
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import for_task, program_of, stationary_from, subject_of
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.policies.weights import load_model, register_model, save_model
from maze_nca_gym.agents.rollouts.graphs import OnGraph
from maze_nca_gym.agents.rollouts.symmetrised import Symmetrised
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.graphs import Graph
from maze_nca_gym.mazes.levels import KINDS, Kind, Tile, one_hot
from maze_nca_gym.mazes.relations import Fixpoint, canonical_path, fixpoint, reached
from maze_nca_gym.mazes.rules import around
from maze_nca_gym.mazes.tasks import SHORTEST_PATH as TASK
from maze_nca_gym.mazes.tasks import register_task

HINTED = "nca-shortest-path-hinted"


def flood(start, *directions, name="wet", walls=True):
    """Return the exact solver of the tiles that a flood from tiles of a kind reaches, in some directions."""

    def rule(see):
        come = [see(name, towards) for towards in directions or "ULDR"]
        on = come[0]
        for formula in come[1:]:
            on = on | formula
        return see.tile(start) | (on & ~see.tile(Tile.WALL) if walls else on)

    return fixpoint(**{name: rule})


def question(name, solver, **changes):
    """Register a task on mazes of the shortest path with another solver."""
    fields = {"guidance": None, "guided": (), "rank": None, "specification": None, "is_optimal": None, **changes}
    return register_task(replace(TASK, name=name, solve=solver, **fields))


def network_of(task):
    model, certificate = compile_automaton(task)
    assert certificate.holds
    return model


def void(policy, word):
    guarantees = policy.guarantees
    assert (guarantees.exact, guarantees.verdict, guarantees.bound, guarantees.also) == (False, None, None, {})
    assert re.search(word, guarantees.lost), guarantees.lost


class TestQuestions:
    @pytest.mark.usefixtures("forgotten")
    def test_a_task_that_is_registered_again_with_other_rules_takes_the_verdict_along(self, tmp_path):
        question("soaked", flood(Tile.SOURCE))
        model, proof = network_of("soaked"), prove("soaked")
        automaton, file = grown("soaked"), save_model(model, tmp_path / "soaked")
        assert model.guarantees.verdict == load(file).guarantees.verdict == proof.verdict == "correct"
        question("soaked", flood(Tile.SOURCE, name="called_otherwise", walls=False))
        for policy in (
            model,
            load(file),
            copy.deepcopy(model),
            load(f"symmetrised:{HINTED}").policy and load_model(file),
        ):
            void(policy, "the rules or kinds of tile of the task soaked have changed")
        assert (proof.verdict, proof.holds) == (None, False)
        assert "the task soaked is not the one of the proof any more" in proof.words
        assert prove(automaton).verdict == "refuted", "the question is the one that is registered now"
        recompiled, _ = compile_automaton(automaton)
        assert (recompiled.guarantees.verdict, recompiled.guarantees.exact) == ("refuted", False)
        question("soaked", flood(Tile.SOURCE))
        assert model.guarantees.verdict == load(file).guarantees.verdict == proof.verdict == "correct", "as it was"
        register_task(replace(TASK, name="soaked", kinds=(*KINDS, Kind("mud", "m", "#aa8855"))))
        void(model, "the rules or kinds of tile of the task soaked have changed")
        refused("the task soaked was registered again with other kinds of tile", prove, automaton)

    @pytest.mark.usefixtures("forgotten")
    def test_a_task_with_a_solver_in_python_is_known_by_its_answers(self):
        def solver(tiles):
            return TASK.solve(tiles)

        def lazy(tiles):  # correct on all mazes of up to 16 x 16 tiles
            return TASK.solve(tiles) & (tiles.shape[1] < 20)

        changes = {"specification": lambda: canonical_path(), "is_optimal": TASK.is_optimal}
        first = question("mine", solver, **changes)
        model, certificate = compile_automaton(replace(SHORTEST_PATH, name="mine", task="mine", also={}))
        assert certificate.holds
        assert (model.guarantees.verdict, model.guarantees.exact) == ("correct", True)
        assert question("mine", lambda tiles: TASK.solve(tiles), **changes).digest == first.digest
        assert model.guarantees.exact, "another function with the same answers"
        question("mine", lazy, **changes)
        void(model, "the task mine")

    @for_each(
        ("one", "other"),
        [
            ({"solve": flood(2)}, {"solve": flood(3)}),
            ({"solve": flood(2)}, {"solve": flood(2, "U")}),
            ({"kinds": KINDS}, {"kinds": (*KINDS, Kind("mud", "m", "#aa8855"))}),
            ({"may_be_empty": True}, {"may_be_empty": False}),
            ({"specification": lambda: canonical_path()}, {"specification": lambda: canonical_path("DLRU")}),
            ({"specification": lambda: canonical_path()}, {"specification": lambda: canonical_path(weights={0: 2})}),
            ({"specification": lambda: reached(Tile.SOURCE)}, {"specification": lambda: reached(Tile.TARGET)}),
            ({"specification": lambda: canonical_path()}, {"specification": None}),
            ({"solve": TASK.solve}, {"solve": TASK.ordered("DLRU").solve}),
        ],
    )
    def test_the_digest_of_a_task_is_that_of_its_rules(self, one, other):
        usual = {"guidance": None, "guided": (), "rank": None, "is_optimal": None, **one}
        task = replace(TASK, **usual)
        assert task.digest == replace(task, name="otherwise", default_steps=3, found="yes").digest
        assert task.digest == replace(TASK, **usual).digest
        assert task.digest != replace(task, **other).digest

    def test_a_function_with_the_name_of_another_is_another(self):
        @wraps(TASK.solve)
        def turned(tiles):
            return TASK.solve(tiles[:, ::-1])[:, ::-1]

        @wraps(canonical_path)
        def all_reached():
            return reached(Tile.SOURCE)

        class Empty(Fixpoint):
            def __call__(self, tiles, look=None):
                return super().__call__(tiles, look) & False

        wet = flood(Tile.SOURCE)
        empty = Empty(**{field.name: getattr(wet, field.name) for field in fields(wet)})
        plain = replace(TASK, guidance=None, guided=(), rank=None, is_optimal=None)
        for change in ({"solve": turned}, {"specification": all_reached}):
            assert replace(plain, **change).digest != plain.digest
        tasks = [replace(plain, solve=solve, specification=wet.specification) for solve in (wet, empty)]
        assert tasks[0].digest != tasks[1].digest

    @pytest.mark.usefixtures("forgotten")
    def test_a_network_has_no_verdict_about_other_questions(self, tmp_path):
        question("wet", flood(Tile.SOURCE))
        model, file = load(HINTED), save_model(load(HINTED), tmp_path / "one")
        for other in (for_task(model, "wet"), load(f"wet:{file}"), for_task(for_task(model, "wet"), "shortest-path")):
            void(other, "nothing is proven for the task wet")
        assert model.guarantees.verdict == for_task(model, "shortest-path").guarantees.verdict == "correct"
        network, automaton = NCA(4, 2, n_iterations=None), replace(REACHABLE, also={"wet": StepBound(per_tile=2)})
        assert automaton.tasks == ("shortest-path", "wet")
        about = subject_of(network, "", TASK, question("wet", flood(Tile.SOURCE)))
        network.guarantees = Guarantees(
            True, StepBound(1), also={"wet": StepBound(2)}, basis="proven", verdict="correct", about=about
        )
        assert for_task(network, "wet").guarantees.exact
        question("wet", flood(Tile.TARGET))
        void(for_task(network, "wet"), "the rules or kinds of tile of the task wet have changed")
        assert network.guarantees.exact

    @pytest.mark.usefixtures("forgotten")
    def test_a_name_with_two_meanings_is_refused_with_both(self, tmp_path):
        assert find_automaton("life") is LIFE
        question("reachable", flood(Tile.TARGET))
        question("life", lambda tiles: TASK.solve(tiles))
        for call in (prove, compile_automaton, find_automaton):
            refused(
                r"'reachable' has two meanings: the automaton reachable of this package, for the task shortest-path, .*"
                r"AUTOMATA\['reachable'\]; and the task reachable, grown\('reachable'\)",
                call,
                "reachable",
            )
            refused("'life' has two meanings.* and the task life, which has no automaton of its own", call, "life")
        assert prove(REACHABLE).automaton is REACHABLE
        assert compile_automaton(grown("reachable"))[0].task == "reachable"
        register_automaton(replace(REACHABLE, name="drowned"))
        question("drowned", flood(Tile.TARGET))
        refused("'drowned' has two meanings: the automaton drowned that you registered", prove, "drowned")
        register_automaton(replace(REACHABLE, name="drowned", task="drowned", bound=None))
        assert find_automaton("drowned").bound is None, "both would be about the same question"


def zeroed(policy):
    for parameter in policy.parameters():
        parameter.data.zero_()
    return policy


def trained(policy):
    optimiser = torch.optim.SGD(policy.parameters(), 0.1)
    maze = torch.from_numpy(one_hot(generate(np.random.default_rng(0), 2, 6)))
    policy(maze, torch.ones(2, policy.n_channels, 8, 8)).sum().backward()
    optimiser.step()
    return policy


def nudged(policy):
    next(policy.parameters()).detach().numpy()[0, 0] += 1
    return policy


def loaded(policy):
    policy.load_state_dict({name: tensor + 1 for name, tensor in policy.state_dict().items()})
    return policy


class TestWeights:
    @for_each("change", [zeroed, trained, nudged, loaded, lambda p: p.bfloat16(), lambda p: p.half()])
    @for_each("make", [lambda: load(HINTED), lambda: load("nca-diameter-exact-weights"), ShortestPathNCA])
    def test_other_weights_have_no_verdict(self, change, make):
        policy = make()
        if change is trained and policy.task == "diameter":
            return
        assert policy.guarantees.exact
        policy = change(policy)
        void(policy, "the weights")
        for other in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            void(other, "the weights")

    def test_changes_that_keep_all_numbers_keep_the_verdict(self):
        model = load(HINTED)
        for same in (model.double(), copy.deepcopy(model), model.half().float(), model.requires_grad_(False).train()):
            assert same.guarantees.verdict == "correct", "its weights are whole"

    @for_each(
        "change",
        [
            lambda p: setattr(p, "state_limit", 1.0),
            lambda p: setattr(p, "kernel_size", 5),
            lambda p: setattr(p, "input_injection", False),
        ],
    )
    def test_options_belong_to_the_weights(self, change):
        model = load(HINTED)
        change(model)
        void(model, "the weights, or their class or options")

    def test_weights_at_other_taps_have_no_verdict(self):
        model = load(HINTED)
        (taps,) = model.buffers()
        before = taps.clone()
        taps.copy_(taps.flip(0))
        void(model, "the weights")
        assert program_of(model) is None, "it describes the original network"
        refused("a network whose iterations are all the same and given by a program", certify, model)
        taps.copy_(before)
        assert model.guarantees.verdict == "correct"

    def test_a_verdict_needs_its_subject(self):
        model = zeroed(load(HINTED))
        unsaid = replace(load(HINTED).guarantees, about=None)
        refused("`about` must record: only a proof earns one", setattr, model, "guarantees", unsaid)
        model.guarantees = replace(unsaid, verdict=None)
        assert model.guarantees.exact, "an author may state this about weights of their own"
        proven, symmetrised = load(HINTED), load(f"symmetrised:{HINTED}")
        sooner = replace(proven.guarantees, bound=StepBound(3))
        refused(r"correct was proven with the bound 2 L \+ 2, and not with 3", setattr, proven, "guarantees", sooner)
        refused("change that policy", setattr, symmetrised, "guarantees", sooner)

    def test_files_and_pages_state_only_guarantees(self, tmp_path, capsys):
        model = zeroed(load(HINTED))
        saved = load(save_model(model, tmp_path / "zero"))
        void(saved, "the weights")
        for policy in (model, saved):
            page = export(policy, tmp_path / "page.html").read_text(encoding="utf-8")
            assert '"exact": false' in page
            assert '"exact": true' not in page
        content = Guarantees.from_json(json.loads(json.dumps(load(HINTED).guarantees.to_json())))
        assert content == load(HINTED).guarantees
        silent = {**content.to_json(), "about": None}
        assert (
            Guarantees.from_json(silent).lost
            == "its file does not record for which task, rules and weights it was proven"
        )
        assert Guarantees.from_json(silent).verdict is None
        refused(
            "a subject must be a table of rules, tasks, weights", Guarantees.from_json, {**silent, "about": {"x": 1}}
        )

    def test_included_models_have_the_guarantees_of_their_cards(self):
        earned = {name: card["guarantees"] for name, card in cards().items() if card["guarantees"]["exact"]}
        assert len(earned) == 5
        for name, guarantees in earned.items():
            model = load(name)
            assert (model.guarantees.to_json(), model.guarantees.lost) == (guarantees, "")
            if "hinted" in name:
                assert followed(model) is AUTOMATA[name.removeprefix("nca-").removesuffix("-hinted")]


class Wet(IntEnum):
    PATH, WET = range(2)


def reach(start, bound=None):
    rules = {
        Wet.PATH: lambda see: see(Wet.WET),
        Wet.WET: lambda see: (see.tile(start) | around(see, Wet.WET)) & ~see.tile(Tile.WALL) | see(Wet.WET),
    }
    return Automaton("reach", "shortest-path", Wet, rules, bound=bound)


def ageing(most):
    age = Count("AGE", most)
    signals = IntEnum("Signal", ["PATH", *age.signals], start=0)
    rules = age.rules(lambda see, n: see.tile(Tile.SOURCE) | (age.at_least(see, n - 1, "U") if n > 1 else see.tile(0)))
    return Automaton("ageing", "shortest-path", signals, {"PATH": lambda see: see(age.signals[-1]), **rules})


class TestRules:
    @for_each("make", [lambda: reach(Tile.SOURCE), lambda: reach(Tile.TARGET), lambda: ageing(3), lambda: ageing(5)])
    def test_a_network_names_the_automaton_for_which_it_was_made(self, make):
        model, certificate = compile_automaton(make())
        assert certificate.holds
        assert certify(model) == certificate
        assert certify(copy.deepcopy(model)) == certificate

    def test_files_name_their_automaton(self, tmp_path, monkeypatch):
        _, certificate = compile_automaton(reach(Tile.TARGET), out=tmp_path / "run")
        described = json.loads((tmp_path / "run/config.json").read_text(encoding="utf-8"))
        assert described["proof"]["about"]["rules"] == reach(Tile.TARGET).digest != reach(Tile.SOURCE).digest
        policy = load(tmp_path / "run/model.safetensors")
        assert certify(policy) == certificate
        assert not certify(policy, automaton=reach(Tile.SOURCE)).holds
        monkeypatch.setattr("maze_nca_gym.agents.automata.registry._MADE", {})
        refused("no known automaton of the task shortest-path has these rules: give `certify` the", certify, policy)
        register_automaton(reach(Tile.SOURCE))
        refused("no known automaton", certify, policy)
        register_automaton(reach(Tile.TARGET))
        try:
            assert certify(policy) == certificate
        finally:
            AUTOMATA.remove("reach")

    def test_the_digest_covers_everything_that_a_network_follows(self):
        plain = reach(Tile.SOURCE)
        assert plain.digest == replace(plain, name="b", bound=StepBound(3), settles=False).digest
        for change in (
            {"heals": True},
            {"any_state": True},
            {"neighbourhood": 9},
            {"invariant": lambda s: ~s(Wet.WET)},
        ):
            assert plain.digest != replace(plain, **change).digest
        digests = [automaton.digest for name in AUTOMATA for automaton in (AUTOMATA[name],)]
        assert len({*digests}) == len(digests)
        assert SHORTEST_PATH.ordered("DLRU").digest != SHORTEST_PATH.digest

    def test_a_signal_that_is_not_the_same_everywhere_is_refused_from_any_state_too(self):
        for any_state in (True, False):
            wrong = replace(reach(Tile.SOURCE), parts=((Wet.PATH,),), everywhere=(Wet.WET,), any_state=any_state)
            refused("reach declares WET to be the same everywhere, but they can differ", compile_automaton, wrong)
        assert len(find_worlds(ANY_STATE).worlds) > 1

    def test_a_network_follows_no_rules_whose_lemma_is_refused(self):
        model, certificate = compile_automaton(REACHABLE)
        proof = prove(REACHABLE)
        assert earned(REACHABLE, model, certificate, proof).verdict == "characterised"
        refusing = replace(proof, lemmas=(*proof.lemmas, Lemma("WET is the same everywhere", "everywhere", False, 0.0)))
        assert earned(REACHABLE, model, certificate, refusing).verdict is None

    def test_a_bound_may_not_be_a_subclass(self):
        with pytest.raises(TypeError, match="StepBound cannot have subclasses such as Late"):

            class Late(StepBound):
                def __call__(self, n_tiles, n_moves):
                    return 10**6


class Blank(ShortestPathNCA):
    """A network that draws nothing, by one of several changes."""

    def forward(self, maze, state, step=0):
        return super().forward(maze, state, step) * 0


class BlankChoice(Symmetrised):
    def forward(self, maze, state, step=0):
        return super().forward(maze, state, step) * 0


class Idle(ShortestPathNCA):
    def activate(self, convolved, state, static):
        return super().activate(convolved, state, static) * 0


class Stops(ShortestPathNCA):
    def forward(self, maze, state, step=0):
        return super().forward(maze, state, step) * (step < 15)


class BlankNCA(NCA):
    def forward(self, maze, state, step=0):
        return super().forward(maze, state, step) * 0


class StopsNCA(NCA):
    def update(self, encoded, state, step):
        return super().update(encoded, state, step) * (step < 15)


class Kernel(NCA):
    def kernel(self, step=0):
        return super().kernel(step) * 0


class Mixed:
    def forward(self, maze, state, step=0):
        return super().forward(maze, state, step) * 0


class MixedNCA(Mixed, NCA):
    pass


def remade(kind):
    model = load(HINTED)
    model_again = kind(**model.arguments)
    model_again.load_state_dict(model.state_dict())
    model_again.guarantees = model.guarantees
    return model_again.eval()


def patched(name, made=None):
    policy = made or load(HINTED)
    method = getattr(policy, name)
    setattr(policy, name, lambda *arguments: method(*arguments) * 0)
    return policy


def bound_patch():
    policy = ShortestPathNCA()
    policy.forward = types.MethodType(lambda self, maze, state, step=0: state * 0, policy)
    return policy


def hooked(policy):
    policy.register_forward_hook(lambda module, inputs, output: output * 0)
    return policy


CHANGED = {
    "subclass": Blank,
    "activations": Idle,
    "later": Stops,
    "subclass of a network": lambda: remade(BlankNCA),
    "network later": lambda: remade(StopsNCA),
    "kernel": lambda: remade(Kernel),
    "mixed in": lambda: remade(MixedNCA),
    "method of a network": lambda: patched("update"),
    "method": lambda: patched("forward", ShortestPathNCA()),
    "private method": lambda: patched("_convolve"),
    "bound method": bound_patch,
    "hook": lambda: hooked(ShortestPathNCA()),
    "hook of a network": lambda: hooked(load(HINTED)),
}


class TestChangedNetworks:
    @for_each("change", CHANGED)
    def test_changed_networks_run_without_guarantees(self, change, tmp_path):
        policy = CHANGED[change]()
        assert not policy.guarantees.exact
        assert policy.guarantees.verdict is None
        assert re.search(
            "the network has been changed|the class [A-Z].* changes|the weights, or their class", policy.guarantees.lost
        )
        assert altered(policy)
        assert program_of(policy) is None
        assert stationary_from(policy) is None
        tiles = generate(np.random.default_rng(1), 8, 8)
        if "later" not in change:  # an episode ends when its path is drawn, so later errors do not count
            assert solve(policy, levels=tiles).metrics["solved"] == 0
        (row,) = evaluate({"changed": policy}, families="random", sizes=8, n=8)
        assert row.metrics.complete.value == 0
        with torch.no_grad():
            assert not rollout(policy, torch.from_numpy(one_hot(tiles)), 40)[:, 0].any()
        refused("is not; (torchscript|no other)", export, policy, tmp_path / "page.html")
        refused("a certificate needs", certify, policy, automaton=SHORTEST_PATH)
        if change != "activations":  # on graphs the network uses its activations
            refused("on a graph run", OnGraph, policy, Graph.of(tiles[0]))
        with torch.no_grad():
            assert not rollout(Symmetrised(policy), torch.from_numpy(one_hot(tiles)), 40)[:, 0].any()

    def test_scripts_of_changed_networks_compute_the_same(self, tmp_path):
        class Same(BlankNCA):
            stationary_from = 0

        policy, maze = remade(Same), torch.from_numpy(one_hot(generate(np.random.default_rng(1), 2, 5)))
        assert stationary_from(policy) == 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            script = torch.jit.load(export(policy, tmp_path / "one.pt"))
        assert not script(maze, torch.ones(2, policy.n_channels, 7, 7)).any()

    def test_a_method_that_is_replaced_in_a_class_is_seen(self, monkeypatch):
        policy = ShortestPathNCA()
        activate = ShortestPathNCA.activate
        monkeypatch.setattr(ShortestPathNCA, "activate", lambda self, *arguments: activate(self, *arguments) * 0)
        void(policy, "the network has been changed since the proof: activate")
        assert not ShortestPathNCA().guarantees.exact
        monkeypatch.undo()
        assert policy.guarantees.exact
        for name in ("update", "forward"):
            with monkeypatch.context() as patch:
                patch.setattr(NCA, name, lambda self, *arguments: arguments[1] * 0, raising=False)
                void(load(HINTED), f"network has been changed since the proof: {name}")
                assert program_of(load(HINTED)) is None
        assert load(HINTED).guarantees.exact

    @for_each(
        ("make", "name", "value"),
        [
            (DiameterNCA, "table", replace(DiameterNCA().table, weights=DiameterNCA().table.weights[:-4])),
            (ShortestPathNCA, "form", ShortestPathNCA("all").form),
            (ShortestPathNCA, "output", "visited tiles"),
            (ShortestPathNCA, "max_steps", 3),
            (lambda: load(HINTED), "output", "visited tiles"),
            (lambda: load(HINTED), "max_steps", 3),
        ],
    )
    def test_attributes_that_decide_an_answer_are_seen(self, make, name, value):
        policy = make()
        before = getattr(policy, name)
        setattr(policy, name, value)
        for other in (policy, copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            void(other, f"the network has been changed since the proof: {name}")
        setattr(policy, name, before)
        for other in (policy, copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            assert other.guarantees.exact

    @for_each(
        ("change", "word"),
        [
            (hooked, "hooks"),
            (lambda policy: patched("join", policy), "join"),
            (lambda policy: setattr(policy, "_rank", lambda tiles, paths: paths.sum(axis=(1, 2))) or policy, "rank"),
            (lambda policy: BlankChoice(policy.policy), "forward"),
        ],
    )
    def test_a_changed_choice_among_orientations_loses_the_guarantees(self, change, word):
        policy = load(f"symmetrised:{HINTED}")
        assert policy.guarantees.verdict == "correct"
        policy = change(policy)
        void(policy, f"the network has been changed since the proof: {word}")
        with torch.no_grad():
            paths = rollout(policy, torch.from_numpy(one_hot(generate(np.random.default_rng(1), 4, 8))), 40)[:, 0]
        assert bool(paths.any()) == (word == "rank")
        assert policy.policy.guarantees.verdict == "correct"

    @pytest.mark.usefixtures("forgotten")
    def test_the_choice_among_orientations_has_only_verdicts_about_answers(self):
        inner = load("nca-diameter-hinted")
        policy = Symmetrised(inner)
        assert inner.guarantees.verdict == "equivalent"
        assert (policy.guarantees.verdict, policy.guarantees.exact) == (None, True), "it shows other paths on the way"
        question("column", flood(Tile.SOURCE, "D"), rank=lambda tiles, paths: paths.sum(axis=(1, 2)))
        model = network_of("column")
        assert model.guarantees.verdict == "correct"
        void(Symmetrised(model), "nothing is proven about the `rank` of the task column")

    def test_an_overridden_finished_loses_the_guarantees(self):
        class Hasty(ShortestPathNCA):
            def finished(self, maze, state, step=0):
                return torch.ones(len(state), dtype=torch.bool)

        assert not Hasty().guarantees.exact
        with pytest.raises(ValueError, match="Stated must set its guarantees in the constructor"):

            class Stated(NCA):
                guarantees = Guarantees(True, StepBound(1), basis="proven")

    def test_changes_outside_of_iterations_keep_the_verdict(self):
        class Named(ShortestPathNCA):
            """With a name."""

            def __init__(self, name="x"):
                super().__init__()
                self.name = name

            def says(self):
                return self.name

            def extra_repr(self):
                return self.name

        for policy in (Named(), ShortestPathNCA(ties="all"), DiameterNCA(), load(HINTED)):
            assert policy.guarantees.exact
            assert not altered(policy)
        model = load(HINTED)
        model.compile(backend="eager")
        assert (model.guarantees.verdict, program_of(model) is None) == ("correct", False)

    @pytest.mark.usefixtures("forgotten")
    def test_a_file_of_a_changed_class_states_nothing(self, tmp_path):
        register_model(StopsNCA)
        policy = load(save_model(remade(StopsNCA), tmp_path / "one"))
        void(policy, "the weights, or their class")
