"""The window's controls: actions, with their buttons, keys and labels.

The page in `docs/play` has the same labels and keys for the actions that it shares with the window.
"""

from __future__ import annotations

from enum import Enum, auto


class Request(Enum):
    """A request of the user, which the caller that runs the automaton must fulfil: usually to show another step, as
    each member describes."""

    CONTINUE = auto()
    """Show the next step, because its time has come."""
    STEP = auto()
    """Show the next step at once; the window is paused."""
    BACK = auto()
    """Show the step before; the window is paused."""
    RESTART = auto()
    """Begin this level again."""
    NEW_LEVEL = auto()
    """Begin another level."""
    EDGES = auto()
    """Begin this level again with other edges: closed, or joined to a torus or a Moebius strip."""
    EDIT = auto()
    """Make the change `Window.edit`, then show the changed state, without a further step."""
    CHOOSE = auto()
    """Begin with another policy or generator, which `Window.choice` names."""
    QUIT = auto()
    """End, because the user has closed the window."""


class Action(Enum):
    """The actions of buttons and keys, in the order of the buttons and of the help.

    Attributes:
        keys: names of keys, as in pygame, or characters.
        label: the button's text; empty for a key without a button.
        hint: a line of explanation.
    """

    RESTART = ("r",), "Begin again", "begin again on this level"
    BACK = (",", "left"), "Back", "one iteration back, with all edits since"
    PAUSE = ("space",), "Pause", "run or pause"
    STEP = (".", "right"), "Step", "one iteration"
    SLOWER = ("-",), "Slower", "slower"
    FASTER = ("+", "="), "Faster", "faster"
    NEW_LEVEL = ("n",), "New level", "new level"
    POLICY = ("p",), "Policy", "choose another policy"
    LEVEL = ("m",), "Level", "choose another generator of levels"
    EDGES = ("e",), "Edges", "close the edges, or join them to a torus or a Moebius strip"
    WALLS = ("w",), "Draw walls", "draw or remove walls, and drag the ends"
    DAMAGE = ("d",), "Damage", "damage: scramble states"
    CHANNELS = ("c",), "Channels", "show or hide the channels"
    SAVE = ("s",), "Save", "save a picture, maze-0001.png"
    RECORD = ("g",), "Record", "begin or end recording a GIF, maze-0001.gif"
    HELP = ("?", "h"), "Keys", "show or hide this help"
    SCROLL_UP = ("page up", "up"), "", "channels further up; the mouse wheel too"
    SCROLL_DOWN = ("page down", "down"), "", "channels further down"
    CLOSE = ("escape",), "", "close help, list or enlarged channel; else quit"
    QUIT = ("q",), "", "quit"

    def __init__(self, keys: tuple[str, ...], label: str, hint: str) -> None:
        self.keys, self.label, self.hint = keys, label, hint

    @property
    def keys_label(self) -> str:
        """The keys as text, such as "R" or ", or left"."""
        return " or ".join(key.upper() if len(key) == 1 else key for key in self.keys)


MOUSE = (
    ("drag", "draw walls from an empty tile, remove them from a wall; drag source and target"),
    ("point", "the value under the pointer, below the maze"),
    ("press a channel", "enlarge it; press again to shrink it"),
    ("right button", "on a channel: tint the maze by it"),
)
"""The actions of the mouse and their explanations, for the help."""
