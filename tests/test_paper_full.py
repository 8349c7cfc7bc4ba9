"""The experiment at the paper's scale, with small numbers for machines without a GPU."""

import json
import re

import pytest

from experiments.paper_full import main


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 0}, "rows times trials is 1 to 7"),
        ({"trials": 4}, "rows times trials is 1 to 7"),
        ({"minutes": 0.0}, "minutes more than 0"),
        ({"rows": ("7.1",)}, "row 7.1 pools several networks"),
        ({"rows": ("12",)}, "12"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path, wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        main(tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_trials_that_fail_are_named_and_recorded(tmp_path):
    with pytest.raises(ValueError, match=r"11\.20-0"):
        main(tmp_path, rows=("11.20",), trials=1, device="cuda:99")
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["11.20-0"]["exit code"] != 0
