"""The solvers on a device against those on the CPU, which networkx vouches for, and against networkx itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from numpy.typing import NDArray
from oracles import canonical_diameter, canonical_shortest_path, levels_with_endpoints, mazes
from torch.utils._python_dispatch import TorchDispatchMode

from maze_nca_gym import solvers, solvers_torch
from maze_nca_gym.generation import GENERATORS, generate
from maze_nca_gym.levels import Tile, clear_endpoints, list_prefabs, parse, prefab

TASKS = ("shortest_path", "diameter")
FUNCTIONS = (*TASKS, "distances", "eccentricities")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


def noise(rng: np.random.Generator, n: int, height: int, width: int, density: float) -> NDArray[np.uint8]:
    """Levels of independent walls, source and target on any two tiles, joined or not."""
    levels = (rng.random((n, height * width)) < density).astype(np.uint8)
    places = rng.random((n, height * width)).argsort(axis=1)
    np.put_along_axis(levels, places[:, :1], Tile.SOURCE, axis=1)
    np.put_along_axis(levels, places[:, 1:2], Tile.TARGET, axis=1)
    return levels.reshape(n, height, width)


def serpentine(n_corridors: int, length: int) -> NDArray[np.uint8]:
    """One corridor that fills the level row after row, its ends the source and the target."""
    tiles = np.zeros((2 * n_corridors - 1, length), np.uint8)
    tiles[1::2] = Tile.WALL
    tiles[1::4, -1] = tiles[3::4, 0] = Tile.EMPTY
    tiles[0, 0], tiles[-1, -1 if n_corridors % 2 else 0] = Tile.SOURCE, Tile.TARGET
    return tiles


def assert_equal(function: str, tiles: NDArray[np.uint8], device: str, *start: Any) -> None:
    """That both modules answer alike, in values, shape, dtype and device."""
    on_device = torch.from_numpy(tiles.copy()).to(device)
    result = getattr(solvers_torch, function)(on_device, *start)
    assert result.device.type == device
    np.testing.assert_array_equal(on_device.cpu().numpy(), tiles)
    expected = getattr(solvers, function)(tiles, *start)
    assert result.cpu().numpy().dtype == expected.dtype
    np.testing.assert_array_equal(result.cpu().numpy(), expected)


def assert_all_equal(tiles: NDArray[np.uint8], device: str) -> None:
    for function in FUNCTIONS:
        assert_equal(function, tiles, device)


class Calls(TorchDispatchMode):
    """Counts what is asked of the device, and how often the host waits for an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.total = self.waits = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.total += 1
        self.waits += function is torch.ops.aten._local_scalar_dense.default
        return function(*args, **(kwargs or {}))


class TestEqualsSolvers:
    @pytest.mark.parametrize("density", [0.0, 0.1, 0.3, 0.4, 0.5, 0.7, 1.0])
    @pytest.mark.parametrize(("height", "width"), [(1, 2), (1, 9), (9, 1), (2, 2), (3, 14), (8, 8), (18, 18), (5, 70)])
    def test_on_noise(self, height: int, width: int, density: float, device: str) -> None:
        rng = np.random.default_rng([height, width, int(10 * density)])
        tiles = noise(rng, 60, height, width, density)
        assert_all_equal(tiles, device)
        assert_equal("diameter", clear_endpoints(tiles), device)

    @pytest.mark.parametrize("border", [True, False])
    @pytest.mark.parametrize("size", [(9, 9), (16, 16), (5, 12)])
    @pytest.mark.parametrize("generator", GENERATORS)
    def test_on_every_family(self, generator: str, size: tuple[int, int], border: bool, device: str) -> None:
        assert_all_equal(generate(np.random.default_rng(0), 40, size, generator, border=border), device)

    def test_on_large_perfect_mazes(self, device: str) -> None:
        assert_all_equal(generate(np.random.default_rng(0), 10, 31, "perfect"), device)

    @pytest.mark.parametrize(("n_corridors", "length"), [(1, 600), (7, 13), (20, 40), (3, 2)])
    def test_on_long_corridors(self, n_corridors: int, length: int, device: str) -> None:
        tiles = serpentine(n_corridors, length)
        assert solvers.shortest_path(tiles).sum() == n_corridors * (length + 1) - 1
        assert_all_equal(np.stack([tiles, tiles[::-1], tiles[:, ::-1]]), device)

    @pytest.mark.parametrize(
        "name", [pytest.param(n, marks=[pytest.mark.slow] * (prefab(n).size > 10_000)) for n in list_prefabs()]
    )
    def test_on_prefabs(self, name: str, device: str) -> None:
        assert_all_equal(prefab(name)[None], device)

    @pytest.mark.parametrize("n", [0, 1, 17, 18, 35])
    def test_in_parts(self, n: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(solvers_torch, "TILES_AT_ONCE", 17 * 144)
        monkeypatch.setattr(solvers_torch, "WORDS_AT_ONCE", 1)
        tiles = noise(np.random.default_rng(n), n, 12, 12, 0.2)
        assert_all_equal(tiles, device)
        if n:
            assert_equal(
                "distances", clear_endpoints(np.zeros_like(tiles)), device, np.arange(2 * n).reshape(n, 2) % 12
            )

    def test_on_tiles_that_are_a_view(self, device: str) -> None:
        tiles = noise(np.random.default_rng(0), 20, 7, 9, 0.3)
        view = torch.from_numpy(tiles).to(device).transpose(1, 2)
        expected = solvers.diameter(tiles.transpose(0, 2, 1))
        np.testing.assert_array_equal(solvers_torch.diameter(view).cpu().numpy(), expected)


class TestShortestPath:
    @given(levels_with_endpoints(8))
    def test_is_networkx_first_path(self, tiles: NDArray[np.uint8]) -> None:
        expected = canonical_shortest_path(tiles)
        path = solvers_torch.shortest_path(torch.from_numpy(tiles[None]))[0].numpy()
        np.testing.assert_array_equal(path, np.zeros(tiles.shape) if expected is None else expected)

    def test_unsolvable_levels_have_no_path(self, device: str) -> None:
        batch = torch.from_numpy(np.stack([parse("S.#T"), parse("S..T"), parse("T#.S")])).to(device)
        assert solvers_torch.shortest_path(batch).any(dim=2).flatten().tolist() == [False, True, False]

    @pytest.mark.parametrize("wrong", ["S...", "...T", "....", "SS.T", "S.TT"])
    def test_needs_one_source_and_one_target(self, wrong: str) -> None:
        batch = np.stack([parse("S..T"), parse("S.#T"), parse(wrong), parse("...."), parse("ST..")])
        with pytest.raises(ValueError, match="exactly one source and one target; level 2 has") as expected:
            solvers.shortest_path(batch)
        with pytest.raises(ValueError, match="exactly one source") as error:
            solvers_torch.shortest_path(torch.from_numpy(batch))
        assert str(error.value) == str(expected.value)


class TestDiameter:
    @given(mazes(6))
    def test_is_networkx_first_longest_path(self, tiles: NDArray[np.uint8]) -> None:
        expected = canonical_diameter(tiles)
        path = solvers_torch.diameter(torch.from_numpy(tiles[None]))[0].numpy()
        np.testing.assert_array_equal(path, np.zeros(tiles.shape) if expected is None else expected)

    def test_levels_without_a_free_tile_have_no_path(self, device: str) -> None:
        batch = torch.from_numpy(np.stack([parse("##\n##"), parse("##\n.#"), parse("#.\n#.")])).to(device)
        assert solvers_torch.diameter(batch).sum(dim=(1, 2)).tolist() == [0, 1, 2]
        assert not solvers_torch.diameter(batch[:1]).any()


class TestDistances:
    @pytest.mark.parametrize(
        "start", [(2, 5), [[i % 6, i % 7] for i in range(30)], torch.tensor([3, 3]), np.array([1, 6], np.uint8)]
    )
    def test_from_given_starts(self, start: Any, device: str) -> None:
        tiles = noise(np.random.default_rng(0), 30, 6, 7, 0.4)
        expected_start = np.broadcast_to(np.asarray(start), (30, 2))
        tiles[np.arange(30), expected_start[:, 0], expected_start[:, 1]] = Tile.EMPTY
        result = solvers_torch.distances(torch.from_numpy(tiles).to(device), start)
        np.testing.assert_array_equal(result.cpu().numpy(), solvers.distances(tiles, expected_start))

    @pytest.mark.parametrize(
        "start", [(0, 4), (1, 0), (-1, 0), (0, 1), (0.0, 0.0), (0,), [[0, 0]] * 3, "S", [[0, 0], [0, 1]]]
    )
    def test_starts_must_be_free_tiles(self, start: Any) -> None:
        batch = np.stack([parse("S#.T"), parse("S#.T")])
        with pytest.raises(ValueError, match="start must") as expected:
            solvers.distances(batch, start)
        with pytest.raises(ValueError, match="start must") as error:
            solvers_torch.distances(torch.from_numpy(batch), start)
        assert str(error.value) == str(expected.value)

    def test_without_start_needs_one_source(self) -> None:
        batch = np.stack([parse("S..."), parse("S..S"), parse("....")])
        with pytest.raises(ValueError, match="exactly one source; level 1 has 2"):
            solvers_torch.distances(torch.from_numpy(batch))


@pytest.mark.parametrize("function", FUNCTIONS)
class TestArguments:
    @pytest.mark.parametrize(
        ("tiles", "message"),
        [
            (torch.zeros(4, 4, dtype=torch.uint8), r"shape \(N, H, W\), got \(4, 4\)"),
            (torch.zeros(1, 1, 4, 4, dtype=torch.uint8), r"shape \(N, H, W\), got \(1, 1, 4, 4\)"),
            (torch.zeros(1, 0, 4, dtype=torch.uint8), r"at least one tile, got shape \(1, 0, 4\)"),
            (torch.zeros(1, 4, 4), "must be uint8, got torch.float32"),
            (torch.zeros(1, 4, 4, dtype=torch.int64), "must be uint8, got torch.int64"),
        ],
    )
    def test_are_checked(self, function: str, tiles: torch.Tensor, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            getattr(solvers_torch, function)(tiles)


def count_calls(task: str, tiles: NDArray[np.uint8], device: str) -> Calls:
    on_device = torch.from_numpy(tiles).to(device)
    with Calls() as calls:
        getattr(solvers_torch, task)(on_device)
    return calls


@pytest.mark.parametrize("task", TASKS)
class TestCost:
    def test_does_not_grow_with_the_batch(self, task: str, device: str) -> None:
        tiles = generate(np.random.default_rng(0), 1, 16)
        one, many = count_calls(task, tiles, device), count_calls(task, tiles.repeat(50, axis=0), device)
        assert (one.total, one.waits) == (many.total, many.waits)

    def test_the_host_waits_once_in_eight_waves(self, task: str, device: str) -> None:
        n_floods = {"shortest_path": 1, "diameter": 3}[task]
        short, long = (count_calls(task, serpentine(1, length)[None], device) for length in (81, 161))
        assert long.waits - short.waits == n_floods * 80 / 8
        assert short.waits <= n_floods * 11 + 3


@pytest.mark.parametrize("solve", ["shortest_path", "diameter", "distances", "eccentricities"])
def test_what_is_no_tensor_with_values(solve: str) -> None:
    tiles = np.zeros((1, 3, 3), np.uint8)
    for other in (tiles, tiles.tolist(), None, "FourRooms"):
        with pytest.raises(ValueError, match=r"tiles must be a torch\.Tensor, got"):
            getattr(solvers_torch, solve)(other)
    for empty in (torch.from_numpy(tiles).to("meta"), torch.from_numpy(tiles).to_sparse()):
        with pytest.raises(ValueError, match="tiles must be a dense tensor with values, got one"):
            getattr(solvers_torch, solve)(empty)
