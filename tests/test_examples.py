import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from maze_nca_gym import agents
from maze_nca_gym.agents.reinforcement import learning_curve

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))

PROVEN = r"learned: \d+\.\d% of 500 test levels optimal\ncompiled: 100\.0% of 500 test levels optimal\n"
EXPECTED = {
    "01_random_policy": r"path has \d+ tiles\nreturn (-\d+\.\d{3}), which is the final accuracy \1; optimal: False",
    "02_handcoded_solver": r"[#.ST*\n]+accuracy 1\.000, optimal: True\n\d+ steps for a path of \d+ tiles",
    "03_thousand_environments": r"\d+ mazes solved in 50 steps of 1024 environments\n[\d,]+ steps per second",
    "04_record_video": r"runs/video/four-rooms-episode-0\.mp4: \d+ KiB",
    "05_evaluate_with_sb3": r"mean return over 20 episodes: 1\.000 .*\nsteps: \d+ to \d+",
    "06_your_own_level": r"S\.\.\.#\.\.\.\.\n\*[#.ST*\n]+optimal: True\npicture of the exact solution: runs/own-level",
    "07_your_own_policy": r"256 of 256 perfect mazes solved\nin the environment: optimal True after \d+ steps",
    "08_accuracy_curve": r"loops-15 after +\d+ steps: 1\.000 complete, 0\.98\d to 1\.000 .*\nfigure: runs/accuracy",
    "09_train_your_own": r"5,760 weights: \d+\.\d% of 1,024 levels complete, not more than .* 41\.1%\n",
    "10_new_architecture": r"8,064 weights: accuracy -?\d\.\d{3}, complete \d+\.\d%",
    "11_ppo": r"(?s)fresh levels:\n.* on mazes of 8 x 8 tiles, .*evolving levels:\n.*\npicture: runs/ppo\.png",
    "12_adversarial_evolution": r"4,0\d\d episodes: solutions of 1[6-9]\.\d tiles, .*\npicture .*: runs/evolution\.png",
    "13_automata_on_graphs": r"(?s)\A([\w ]+: 10 of 10 graphs .*){6}10 mazes as one batch .* of the grid: True\n\Z",
    "14_automata_gallery": r"(?s)\A(\S+: [\d,]+ weights, proven .*: True\n){6}picture: runs/automata\.png",
    "15_your_own_tracker": r"2 losses, from 0\.\d{3} to 0\.\d{3}: runs/tracked\.sqlite",
    "16_nearest_of_several_targets": rf"(?s){PROVEN}1,105 weights follow the automaton, proven: True",
    "17_weighted_terrain": rf"(?s){PROVEN}3,600 weights follow the automaton, proven: True",
    "18_ppo_goes_on": r"(?s) 512 steps, .*\nnca-shortest-path-small: \d+\.\d% .*\nruns/ppo\.safetensors: \d+\.\d% of",
    "19_key_and_door": rf"(?s){PROVEN}5,400 weights follow the automaton, proven: True",
    "20_ppo_in_one_file": r" 2,048 steps: mean return +-?\d\.\d{3}\n\Z",
    "21_torchrl": r" 2,048 steps: mean return +-?\d\.\d{3}\n\Z",
    "22_worlds": r"\Afire: 4 lines, 2 signals, 0 helpers, [\d,]+ weights: correct, \d+ s\n\Z",
    "23_optuna": r"\n2 trials, \d pruned; best accuracy -?\d\.\d{3}: \{'learning_rate': 0\.\d+, 'n_ch",
    "24_worlds_that_say_not": r"\Aloops: 5 lines, 9 signals, 0 helpers, [\d,]+ weights: correct, \d+ s\n\Z",
}
"""Example -> its output, as a regular expression."""
ARGUMENTS = {
    "09_train_your_own": ["10"],
    "10_new_architecture": ["3"],
    "11_ppo": ["1024", "4"],
    "13_automata_on_graphs": ["10"],
    "15_your_own_tracker": ["2"],
    "16_nearest_of_several_targets": ["4"],
    "17_weighted_terrain": ["4"],
    "18_ppo_goes_on": ["512", "6"],
    "19_key_and_door": ["4"],
    "20_ppo_in_one_file": ["2048", "3"],
    "21_torchrl": ["2048", "2"],
    "22_worlds": ["fire"],
    "23_optuna": ["2", "2"],
    "24_worlds_that_say_not": ["loops"],
}
"""Arguments of examples that would otherwise take minutes."""
SLOW = ("14_automata_gallery", "17_weighted_terrain", "19_key_and_door")
"""Slow examples. Example 16 is of the same kind and always runs, and other tests prove their automata."""
LINES = {
    "13_automata_on_graphs": 240,
    "14_automata_gallery": 75,
    "16_nearest_of_several_targets": 75,
    "17_weighted_terrain": 160,
    "19_key_and_door": 140,
    "20_ppo_in_one_file": 80,
    "21_torchrl": 70,
    "22_worlds": 330,
    "24_worlds_that_say_not": 210,
}
"""Example -> limit of its lines, if more than 60."""
NEEDS = {"21_torchrl": "torchrl.collectors", "23_optuna": "optuna"}
"""Example -> a module that it needs and the tests do not install."""
FILES_OF_A_RUN = ["config.json", "metrics.jsonl", "model.safetensors", "rollouts.png"]
OF_SEVERAL_LINES = [*FILES_OF_A_RUN, "curves.png"]
WRITTEN = {
    "04_record_video": ["runs/video/four-rooms-episode-0.mp4"],
    "06_your_own_level": ["runs/own-level.png"],
    "08_accuracy_curve": [f"runs/accuracy-curve/{name}" for name in ("iterations.png", "results.csv", "results.json")],
    "09_train_your_own": [f"runs/own-10/{name}" for name in FILES_OF_A_RUN],
    "10_new_architecture": [f"runs/gated-3/{name}" for name in FILES_OF_A_RUN],
    "11_ppo": ["runs/ppo.png"],
    "12_adversarial_evolution": ["runs/evolution.png"],
    "14_automata_gallery": ["runs/automata.png"],
    "18_ppo_goes_on": ["runs/ppo.safetensors"],
    "23_optuna": [f"runs/optuna/{i}/{name}" for i in range(2) for name in OF_SEVERAL_LINES],
    "15_your_own_tracker": ["runs/tracked.sqlite", *(f"runs/tracked/{name}" for name in OF_SEVERAL_LINES)],
    "16_nearest_of_several_targets": [f"runs/nearest-target/{name}" for name in FILES_OF_A_RUN],
    "17_weighted_terrain": [f"runs/weighted-terrain/{name}" for name in FILES_OF_A_RUN],
    "19_key_and_door": [f"runs/key-and-door/{name}" for name in FILES_OF_A_RUN],
}
"""Example -> the files that it writes."""


def test_every_example_has_an_expectation():
    assert [path.stem for path in EXAMPLES] == list(EXPECTED)


WITH_SLOW = [pytest.param(path, marks=pytest.mark.slow) if path.stem in SLOW else path for path in EXAMPLES]


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.slow)], ids=["few levels", "all levels"])
def _few_levels(request, monkeypatch):
    """Examples and their trainings measure on few levels."""
    if not request.param:
        return
    evaluate, of_policy = agents.evaluate, learning_curve.evaluate_policy
    monkeypatch.setattr(
        agents, "evaluate", lambda *arguments, n, **options: evaluate(*arguments, n=min(n, 200), **options)
    )
    monkeypatch.setattr(learning_curve, "evaluate_policy", lambda policy, env, n: of_policy(policy, env, min(n, 32)))
    request.getfixturevalue("few_levels")


@pytest.mark.usefixtures("forgotten", "_few_levels")
@pytest.mark.parametrize("path", WITH_SLOW, ids=lambda path: path.stem)
def test_examples_run_without_a_warning(path, tmp_path, monkeypatch, capsys):
    if path.stem in NEEDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some packages warn when they are imported
            pytest.importorskip(NEEDS[path.stem], reason=f"install {NEEDS[path.stem]}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [path.name, *ARGUMENTS.get(path.stem, [])])
    namespace = runpy.run_path(str(path), run_name="__main__")
    assert namespace["__doc__"]
    assert len(path.read_text(encoding="utf-8").splitlines()) < LINES.get(path.stem, 60)
    out, err = capsys.readouterr()
    assert not re.sub(
        r"^(\[I .*|.* of [\d,]+(, .* left| levels optimal)?)\n", "", err, flags=re.MULTILINE
    )  # progress of Optuna and of `evaluate`
    assert re.search(EXPECTED[path.stem], out), out
    files = sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file())
    assert files == sorted(WRITTEN.get(path.stem, []))
    assert all((tmp_path / file).stat().st_size > 100 for file in files)
