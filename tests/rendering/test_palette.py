from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from tables import for_each

from maze_nca_gym.rendering import palette

PAGE = Path(__file__).parents[2] / "docs" / "play"
FREE = np.zeros((1, 1), dtype=bool)


def heat(value: float, wall: bool = False, largest: float = 15) -> tuple[int, ...]:
    """Return the colour of a value in a map with a certain largest magnitude."""
    values = np.array([[value, largest]], np.float32)
    return tuple(palette.heat_colours(values, FREE | wall)[0, 0].tolist())


def lightness(colour: tuple[int, ...]) -> float:
    """Return the lightness of a colour (CIE L*, 0 to 100), by the definition of sRGB."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (b / 255 for b in colour)]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return 116 * np.cbrt(luminance) - 16


def test_zero_is_white_and_small_integers_differ() -> None:
    assert heat(0) == (255, 255, 255)
    counts = [heat(value) for value in range(-15, 16)]
    assert len(set(counts)) == len(counts)


@for_each("sign", [1, -1])
def test_larger_magnitudes_are_darker_in_even_steps(sign: int) -> None:
    steps = -np.diff([lightness(heat(sign * value, largest=8)) for value in range(9)])
    assert steps.min() > 0.6 * steps.mean()
    assert steps.max() < 1.6 * steps.mean()


def test_infinities_have_the_end_colours_and_nan_its_own() -> None:
    assert heat(np.inf) == heat(15)
    assert heat(-np.inf) == heat(-15)
    assert heat(np.nan) == palette.NOT_A_NUMBER


def test_walls_are_grey_at_zero_and_dimmed_elsewhere() -> None:
    grey = heat(0, wall=True)
    assert len(set(grey)) == 1
    assert grey[0] < 220
    assert grey != heat(1, wall=True) != heat(1)


@for_each("factor", [1e-30, 1e-3, 40, 1e30])
def test_every_map_has_its_own_scale(factor: float) -> None:
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)
    colours = palette.heat_colours(np.concatenate([values, values * np.float32(factor)]), np.zeros((3, 4), bool))
    assert np.abs(colours[0].astype(int) - colours[1]).max() <= 2
    assert len(np.unique(colours[0].reshape(-1, 3), axis=0)) == 12


def test_a_map_of_zeros_is_white() -> None:
    assert (palette.heat_colours(np.zeros((2, 2), np.float32), np.zeros((2, 2), bool)) == 255).all()


def colours_of_the_page(theme: str) -> dict[str, palette.RGB]:
    """Return the colours of the page docs/play in a theme; the dark theme inherits from the light theme."""
    sheet = (PAGE / "colours.css").read_text(encoding="utf-8")
    rules = re.findall(r"^:root(.*?) \{(.*?)\}", sheet, re.DOTALL | re.MULTILINE)
    text = "".join(rule for selector, rule in rules if not selector or theme in selector)
    return {name: palette.rgb(colour) for name, colour in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text)}


def test_the_page_in_the_browser_has_the_same_colours() -> None:
    light, dark = colours_of_the_page("light"), colours_of_the_page("dark")
    same = {"source": palette.SOURCE, "target": palette.TARGET}
    ground = {"floor": palette.EMPTY, "wall": palette.WALL, "path": palette.PATH, "tint": palette.HIGHLIGHT}
    assert {name: light[name] for name in (*same, *ground)} == same | ground
    # Dark blue is hard to see on dark tiles, so the path has its colour on walls.
    assert {name: dark[name] for name in (*same, "path")} == {**same, "path": palette.PATH_ON_WALL}
    (further,) = re.findall(r"FURTHER = \[(.*?)\]", (PAGE / "picture.js").read_text(encoding="utf-8"))
    assert tuple(map(palette.rgb, re.findall(r"#[0-9a-f]{6}", further))) == palette.FURTHER
    for name, colour in (*light.items(), *dark.items()):
        assert colour != palette.EXACT_PATH, f"{name} is no exact path"
