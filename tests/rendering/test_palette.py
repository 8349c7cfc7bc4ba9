from __future__ import annotations

import numpy as np
import pytest

from maze_nca_gym.rendering import palette

FREE = np.zeros((1, 1), dtype=bool)


def heat(value: float, wall: bool = False) -> tuple[int, ...]:
    values = np.full((1, 1), value, np.float32)
    return tuple(palette.heat_colours(values, FREE | wall)[0, 0].tolist())


def lightness(colour: tuple[int, ...]) -> float:
    """Of the CIE, from 0 to 100, by the definition of sRGB."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (b / 255 for b in colour)]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return 116 * np.cbrt(luminance) - 16


@pytest.mark.parametrize(
    ("value", "position"), [(0, 0), (0.5, 0.25), (1, 0.5), (10, 0.625), (100, 0.75), (10_000, 1), (2**24, 1)]
)
def test_scale_is_linear_to_one_then_logarithmic(value: float, position: float) -> None:
    values = np.array([value, -value], np.float32)
    assert palette.heat_position(values).tolist() == pytest.approx([position, -position], abs=1e-6)


def test_value_of_a_position_inverts_the_scale() -> None:
    position = np.linspace(-1, 1, 201, dtype=np.float32)
    assert np.allclose(palette.heat_position(palette.heat_value(position)), position, atol=1e-5)


def test_zero_is_white_and_small_integers_differ() -> None:
    assert heat(0) == (255, 255, 255)
    counts = [heat(value) for value in range(-15, 16)]
    assert len(set(counts)) == len(counts)


@pytest.mark.parametrize("sign", [1, -1])
def test_larger_magnitudes_are_darker_in_even_steps(sign: int) -> None:
    values = palette.heat_value(np.linspace(0, 1, 9, dtype=np.float32)) * sign
    steps = -np.diff([lightness(heat(value)) for value in values])
    assert steps.min() > 0.6 * steps.mean()
    assert steps.max() < 1.6 * steps.mean()


def test_infinities_are_the_ends_and_not_a_number_stands_out() -> None:
    assert heat(np.inf) == heat(palette.HEAT_LIMIT)
    assert heat(-np.inf) == heat(-palette.HEAT_LIMIT)
    assert heat(np.nan) == palette.NOT_A_NUMBER


def test_walls_are_grey_at_zero_and_dimmed_elsewhere() -> None:
    grey = heat(0, wall=True)
    assert len(set(grey)) == 1
    assert grey[0] < 220
    assert grey != heat(1, wall=True) != heat(1)


def test_channels_keep_their_shape() -> None:
    assert palette.heat_colours(np.zeros((3, 2, 4), np.float32), np.zeros((2, 4), bool)).shape == (3, 2, 4, 3)
