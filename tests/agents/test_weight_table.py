from enum import IntEnum

import torch
from tables import for_each, refused
from torch import relu
from torch.nn import functional as F

from maze_nca_gym.agents.policies.handcoded.base import sawtooth, step
from maze_nca_gym.agents.policies.handcoded.weight_table import Weight, WeightTable, convolve, taps
from maze_nca_gym.mazes.neighbours import offsets


class Input(IntEnum):
    WALL = 0
    SEED = 1


class Channel(IntEnum):
    PATH = 0
    AGE = 1


TABLE = WeightTable(
    inputs=Input,
    channels=Channel,
    weights=(
        Weight(Channel.PATH, Input.SEED, "C"),
        Weight(Channel.PATH, Channel.AGE, "U", 2),
        Weight(Channel.AGE, Channel.PATH, "N4", -3),
        Weight(Channel.AGE, Channel.PATH, "RR", 5),
    ),
    biases={Channel.AGE: -1},
)


@for_each(
    ("kernel", "expected"),
    [
        ("C", {(0, 0)}),
        ("L", {(0, -1)}),
        ("DD", {(2, 0)}),
        ("UR", {(-1, 1)}),
        ("N4", {(-1, 0), (0, -1), (1, 0), (0, 1)}),
        ("N5", {(-1, 0), (0, -1), (1, 0), (0, 1), (0, 0)}),
        ("3x3", {(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1)}),
    ],
)
def test_named_kernels(kernel, expected):
    assert set(offsets(kernel)) == expected


@for_each("kernel", ["", "X", "N8"])
def test_unknown_kernels(kernel):
    refused("unknown kernel", offsets, kernel)


def test_a_table_builds_one_convolution():
    torch.set_default_dtype(torch.float64)
    try:
        weight, bias = TABLE.convolution()
    finally:
        torch.set_default_dtype(torch.float32)
    assert weight.dtype == bias.dtype == torch.float32
    assert weight.shape == (2, 4, 5, 5)
    assert bias.tolist() == [0, -1]
    assert weight.count_nonzero() == 1 + 1 + 4 + 1
    assert weight[Channel.PATH, Input.SEED, 2, 2] == 1
    assert weight[Channel.PATH, 2 + Channel.AGE, 1, 2] == 2
    assert weight[Channel.AGE, 2 + Channel.PATH, 2, 1] == -3
    assert weight[Channel.AGE, 2 + Channel.PATH, 2, 4] == 5


def test_rows_for_printing():
    rows = TABLE.printed().rows
    assert rows[0] == ("path", "seed", "C", "1", "0")
    assert rows[3] == ("age", "path", "RR", "5", "-1")


@for_each("size", [(1, 1), (1, 7), (6, 1), (9, 5)])
def test_taps_have_the_same_bits_as_a_dense_convolution(size):
    weight, bias = TABLE.convolution()
    generator = torch.Generator().manual_seed(0)
    inputs, state = (torch.randint(-50, 50, (3, 2, *size), generator=generator).float() for _ in range(2))
    dense = F.conv2d(torch.cat([inputs, state], dim=1), weight, bias, padding=2)
    assert torch.equal(convolve(inputs, state, taps(weight, bias)), dense)
    strided = (tensor.transpose(2, 3).contiguous().transpose(2, 3) for tensor in (inputs, state))
    assert torch.equal(convolve(*strided, taps(weight, bias)), dense)


def test_activations_are_made_of_relus():
    x = torch.arange(-12, 13) / 4
    assert torch.equal(step(x), relu(x) - relu(x - 1))
    assert step(torch.tensor([-1.0, 0, 1, 2])).tolist() == [0, 0, 1, 1]
    for peak in (-1, 0, 2):
        assert torch.equal(sawtooth(x, peak), relu(1 - relu(x - peak) - relu(peak - x)))
        hat = torch.tensor([peak - 2.0, peak - 1, peak - 0.5, peak, peak + 0.5, peak + 1, peak + 2])
        assert sawtooth(hat, peak).tolist() == [0, 0, 0.5, 1, 0.5, 0, 0]
