"""Pictures: frames of levels and states, PNG and GIF files, and the window.

Importing this package imports Pillow; pygame is imported when a `Window` is made.
"""

from __future__ import annotations

from maze_nca_gym.rendering.controls import Action, Request
from maze_nca_gym.rendering.files import gif_bytes, png_bytes, save_gif, save_png
from maze_nca_gym.rendering.frame import Snapshot, captioned, contact_sheet, draw_level
from maze_nca_gym.rendering.layout import Layout, Panel, frame_layout
from maze_nca_gym.rendering.window import NoScreenError, Window

__all__ = [
    "Action",
    "Layout",
    "NoScreenError",
    "Panel",
    "Request",
    "Snapshot",
    "Window",
    "captioned",
    "contact_sheet",
    "draw_level",
    "frame_layout",
    "gif_bytes",
    "png_bytes",
    "save_gif",
    "save_png",
]
