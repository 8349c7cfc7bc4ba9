"""The effects of keys and clicks, without a screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tables import for_each

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.rendering import Action, Request, Snapshot, palette, snapshots
from maze_nca_gym.rendering.edits import Damage, MoveEnd, Paint
from maze_nca_gym.rendering.interface import Interface
from maze_nca_gym.rendering.layout import menu_layout

MENUS = {Action.POLICY: ("one", "two"), Action.LEVEL: ("random", "perfect")}
SIZE = (800, 1300)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty working directory, into which pictures and recordings are saved."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def interface(snapshot: Snapshot) -> Interface:
    return made(snapshot)


def made(snapshot: Snapshot, **options: object) -> Interface:
    interface = Interface(**{"fps": 10, "menus": MENUS, "restarts": True, **options})  # type: ignore[arg-type]
    interface.size = SIZE
    interface.take(snapshot, "")
    return interface


def of_shape(n_channels: int, rows: int, cols: int) -> Snapshot:
    """Return an empty level with n channels."""
    tiles = np.zeros((rows, cols), np.uint8)
    return Snapshot(tiles, np.zeros((n_channels, rows, cols), np.float32), tiles > 9)


def tile(interface: Interface, row: int, col: int) -> tuple[int, int]:
    maze = interface._layout().maze
    return maze.top + row * maze.cell + maze.cell // 2, maze.left + col * maze.cell + maze.cell // 2


def thumbnail(interface: Interface, channel: int) -> tuple[int, int]:
    panel = dict(interface._layout().channels)[channel]
    return panel.top + 3, panel.left + 3


def button(interface: Interface, action: Action) -> tuple[int, int]:
    box = interface._layout().buttons[interface._buttons.index(action)]
    return box.top + 2, box.left + 2


def in_maze(interface: Interface) -> np.ndarray:
    return interface.picture()[interface._layout().maze.area]


def test_every_action_has_one_key_and_every_key_one_action(interface: Interface) -> None:
    keys = [key for action in Action for key in action.keys]
    assert len(set(keys)) == len(keys)
    assert all(action.keys for action in Action)
    assert all(interface.is_key(key) for key in keys)
    assert not interface.is_key("x")


@for_each("action", [*Action])
def test_every_key_has_an_effect(action: Action) -> None:
    interface = made(of_shape(75, 18, 18))
    if action is Action.SCROLL_UP:
        interface.scroll(1)
    interface.press({Action.WALLS: "d", Action.DAMAGE: "w"}.get(action, ""))
    names = ("request", "paused", "fps", "_tool", "_menu", "_show_help", "_show_channels", "_row_in_view", "_notice")
    before = [getattr(interface, name) for name in names]
    interface.press(action.keys[0])
    assert [getattr(interface, name) for name in names] != before


@for_each("action", [action for action in Action if action.label])
def test_a_button_has_the_effect_of_its_key(snapshot: Snapshot, action: Action) -> None:
    by_key, by_button = made(snapshot), made(snapshot)
    if action is Action.WALLS:
        for interface in (by_key, by_button):
            interface.press("d")
    before = by_key.picture()
    by_key.press(action.keys[0])
    by_button.click(*button(by_button, action))
    by_button.pointer = None
    for name in ("request", "paused", "fps", "_tool", "_menu", "_show_help", "_show_channels"):
        assert getattr(by_key, name) == getattr(by_button, name)
    assert by_key.request is not None or not np.array_equal(by_key.picture(), before)


def test_unsupported_requests_have_no_control(snapshot: Snapshot) -> None:
    interface = made(snapshot, menus={}, restarts=False)
    assert set(Action) - set(interface._actions) == {Action.RESTART, Action.EDGES, Action.POLICY, Action.LEVEL}
    for key in ("r", "e", "p", "m"):
        interface.press(key)
        assert interface.request is None


def test_speed_doubles_and_halves_within_bounds(interface: Interface) -> None:
    interface.press("+")
    assert interface.fps == 20
    interface.press("=")
    interface.press("-")
    assert interface.fps == 20
    for _ in range(30):
        interface.press("-")
    assert interface.fps == 0.5
    for _ in range(30):
        interface.press("+")
    assert interface.fps == 1000


def test_a_drag_continues_tile_by_tile_until_the_release(interface: Interface) -> None:
    interface.click(*tile(interface, 1, 1))
    interface.request = None
    interface.point(*tile(interface, 1, 1))
    assert interface.request is None  # the same tile
    interface.point(*tile(interface, 1, 3))
    assert (interface.request, interface.edit) == (Request.EDIT, MoveEnd(Tile.SOURCE, (1, 3), (1, 1)))
    interface.request = None
    interface.release()
    interface.point(*tile(interface, 1, 2))
    interface.click(5, 5)  # outside of all boxes
    assert interface.request is None


def test_damage_is_a_tool(interface: Interface) -> None:
    interface.press("d")
    interface.click(*tile(interface, 1, 1))
    assert interface.edit == Damage((1, 1))
    interface.press("w")
    interface.request = None
    interface.point(*tile(interface, 1, 2))
    assert interface.request is None  # the change of the tool has ended the stroke


def test_the_value_under_the_pointer_is_shown(interface: Interface, snapshot: Snapshot) -> None:
    interface.point(*tile(interface, 1, 2))
    assert interface._display().status == "row 1, column 2: path 1"
    interface.take(replace(snapshot, highlight=1), "")
    assert interface._display().status == "row 1, column 2: age 250, path 1"
    interface.pointer = None
    assert interface._display().status == "?: keys"


def test_buttons_and_thumbnails_have_tooltips(interface: Interface) -> None:
    interface.point(*button(interface, Action.STEP))
    assert interface._display().status == "one iteration (. or right)"
    interface.point(*thumbnail(interface, 1))
    assert interface._display().status.startswith("age, -3 to 250: press to enlarge")


def test_a_click_on_a_thumbnail_enlarges_it(interface: Interface, snapshot: Snapshot) -> None:
    before = in_maze(interface)
    interface.click(*thumbnail(interface, 1))
    maze = interface._layout().maze
    walls = snapshot.tiles == Tile.WALL
    colours = palette.heat_colours(snapshot.channels[1], walls)
    assert np.array_equal(in_maze(interface)[:: maze.cell, :: maze.cell], colours)
    interface.click(*tile(interface, 1, 2))  # the large picture can be edited like the maze
    assert interface.edit == Paint(((1, 2),), Tile.WALL)
    interface.press("escape")
    assert interface.request is Request.EDIT  # and not QUIT
    interface.pointer = None
    assert np.array_equal(in_maze(interface), before)


def test_the_right_button_tints_the_maze_by_a_channel(interface: Interface, snapshot: Snapshot) -> None:
    interface.click(*thumbnail(interface, 1), tints=True)
    interface.pointer = None
    tinted = in_maze(interface)
    other = made(replace(snapshot, highlight=1))
    assert np.array_equal(tinted, in_maze(other))
    assert not np.array_equal(tinted, in_maze(made(snapshot)))


def test_another_policy_resets_the_chosen_channel(interface: Interface) -> None:
    interface.click(*thumbnail(interface, 1))
    interface.click(*thumbnail(interface, 1), tints=True)
    interface.take(of_shape(1, 5, 6), "")
    assert interface.picture().shape == (*SIZE, 3)
    assert interface._viewed.highlight is None


def test_75_channels_are_scrolled() -> None:
    interface = made(of_shape(75, 18, 18))
    visible = {channel for channel, _ in interface._layout().channels}
    assert 0 in visible
    assert 74 not in visible
    for _ in range(100):
        interface.press("page down")
        visible |= {channel for channel, _ in interface._layout().channels}
    assert visible == set(range(75))
    interface.scroll(-1000)
    assert interface._layout().channels[0][0] == 0


def test_help_lists_every_control(interface: Interface) -> None:
    before = interface.picture()
    interface.press("h")
    assert len(interface._display().help) >= len(Action)
    assert not np.array_equal(before, interface.picture())
    interface.click(*tile(interface, 1, 2))  # a click closes it without an edit
    interface.pointer = None
    assert interface.request is None
    assert np.array_equal(before, interface.picture())


@for_each(("key", "action"), [("p", Action.POLICY), ("m", Action.LEVEL)])
def test_mouse_and_keys_choose_from_a_list(snapshot: Snapshot, key: str, action: Action) -> None:
    interface = made(snapshot)
    interface.press(key)
    interface.press("up")
    interface.press("return")
    assert (interface.request, interface.choice) == (Request.CHOOSE, (action, MENUS[action][1]))
    interface.request = None
    interface.press(key)
    display = interface._display()
    _, boxes = menu_layout(SIZE, 2, 100)
    interface.click(boxes[0].top + 3, SIZE[1] // 2)
    assert display.entries == MENUS[action]
    assert (interface.request, interface.choice) == (Request.CHOOSE, (action, MENUS[action][0]))


@for_each("running", [{}, {Action.LEVEL: "perfect"}, {Action.POLICY: "none of these"}, {Action.POLICY: "two"}])
def test_a_list_marks_the_current_entry_and_begins_there(snapshot: Snapshot, running: dict[Action, str]) -> None:
    interface, plain = made(snapshot), made(snapshot)
    interface.take(snapshot, "", running)
    for either in (interface, plain):
        either.press("p")
    in_use = MENUS[Action.POLICY].index("two") if running.get(Action.POLICY) == "two" else None
    assert (interface._display().running, interface._display().chosen) == (in_use, in_use or 0)
    assert np.array_equal(interface.picture(), plain.picture()) == (in_use is None)
    if in_use is not None:
        interface.press("up")
        assert not np.array_equal(interface.picture(), plain.picture()), "the mark stays where the bar leaves"


@for_each("close", [lambda i: i.press("escape"), lambda i: i.click(1, 1), lambda i: i.press("p")])
def test_a_list_is_closed_without_a_choice(interface: Interface, close: Callable[[Interface], None]) -> None:
    before = interface.picture()
    interface.press("p")
    close(interface)
    interface.pointer = None
    assert interface.request is None
    assert np.array_equal(before, interface.picture())


def test_escape_closes_one_thing_at_a_time(interface: Interface) -> None:
    interface.click(*thumbnail(interface, 1))
    interface.press("?")
    interface.press("escape")
    interface.press("escape")
    assert interface.request is None
    interface.press("escape")
    assert interface.request is Request.QUIT


def test_a_notice_stays_until_the_next_key(interface: Interface, snapshot: Snapshot) -> None:
    interface.take(snapshot, "no earlier step")
    interface.take(snapshot, "")
    assert interface._display().status == "no earlier step"
    interface.press("space")
    assert interface._display().status == "?: keys"


def test_pictures_are_numbered_and_overwrite_nothing(interface: Interface, snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "maze-0001.png").write_bytes(b"mine")
    interface.press("s")
    interface.press("s")
    assert (tmp_path / "maze-0001.png").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"maze-000{n}.png" for n in (1, 2, 3)]
    with Image.open(tmp_path / "maze-0003.png") as image:
        assert np.array_equal(np.asarray(image), snapshot.draw())
    assert "maze-0003.png" in interface._display().status


@pytest.mark.parametrize("keys", ["s", "gg"])
def test_a_picture_that_cannot_be_saved_does_not_crash(
    interface: Interface, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr("maze_nca_gym.rendering.interface.save_png", refuse)
    monkeypatch.setattr("maze_nca_gym.rendering.snapshots.save_gif", refuse)
    for key in keys:
        interface.press(key)
    interface.finish()
    assert interface._display().status == "not saved: read-only"


def test_a_recording_has_the_steps_since_it_began(interface: Interface, snapshot: Snapshot, tmp_path: Path) -> None:
    interface.press("g")
    for step in (1, 2):
        interface.take(replace(snapshot, step=step), "")
    assert "recording, 3 steps" in interface._display().state
    interface.press("g")
    assert interface._display().status == "saving 3 steps" or not interface.has_news
    interface.finish()
    assert f"saved {tmp_path / 'maze-0001.gif'}, 3 steps" == interface._display().status
    assert not interface.has_news
    with Image.open(tmp_path / "maze-0001.gif") as image:
        assert image.n_frames == 3  # type: ignore[attr-defined]
        assert image.info["duration"] == 100
        assert image.size == (1000, 580)


def test_a_recording_ends_with_another_kind_of_level(interface: Interface, tmp_path: Path) -> None:
    interface.press("g")
    interface.take(of_shape(2, 9, 20), "")
    assert interface._recorder is None
    interface.finish()
    assert (tmp_path / "maze-0001.gif").exists()


def test_a_recording_has_a_maximum_length(
    interface: Interface, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_FRAMES", 3)
    interface.press("c")
    interface.press("g")
    for step in range(2):
        interface.take(replace(snapshot, step=step), "")
    assert interface._recorder is not None
    interface.take(snapshot, "")
    assert interface._recorder is None
    interface.press("g")  # a second recording while the first is written
    interface.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["maze-0001.gif", "maze-0002.gif"]


def test_the_header_has_verdict_and_title(snapshot: Snapshot) -> None:
    pictures = [
        made(replace(snapshot, verdict=verdict, solved=solved, title=title, accuracy=accuracy)).picture()
        for verdict, solved, title, accuracy in (
            ("", False, "a", 0.5),
            ("shortest path found", True, "a", 0.5),
            ("no path joins source and target", False, "a", float("nan")),
            ("", False, "b", 0.5),
        )
    ]
    tops = [picture[:40] for picture in pictures]
    assert len({top.tobytes() for top in tops}) == 4
    assert (tops[1] == palette.TARGET).all(axis=-1).any()
    assert all(np.array_equal(picture[40:], pictures[0][40:]) for picture in pictures)
