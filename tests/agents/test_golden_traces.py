from __future__ import annotations

import numpy as np
import pytest
from golden_traces import FOLDER, MAZES, POLICIES, traced


@pytest.mark.parametrize("maze", MAZES)
@pytest.mark.parametrize("name", POLICIES)
def test_every_channel_after_every_step_is_as_recorded(name, maze):
    policy = POLICIES[name]
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as traces:
        recorded = traces[maze]
    now = traced(policy, MAZES[maze])
    assert now.shape == recorded.shape
    for step, (before, after) in enumerate(zip(recorded, now, strict=True)):
        for channel, values in zip(policy.channel_names, after, strict=True):
            np.testing.assert_array_equal(
                values, before[policy.channel_names.index(channel)], err_msg=f"{channel} after step {step}"
            )


def test_every_recording_belongs_to_an_automaton():
    assert {path.stem for path in FOLDER.iterdir()} == set(POLICIES)
