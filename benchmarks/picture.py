"""Draw the results of the benchmarks: times of all peers relative to ours, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill, shorten

from matplotlib.ticker import FuncFormatter

from maze_nca_gym.agents.evaluation.drawing import BLUE, GREY, INK, figure, panels

from .timing import Result

LONGEST, LONGEST_PEER = 48, 40
"""Largest number of characters in a line of a job's label, and in a peer's name."""
ROOM = 200
"""Factor by which the axis extends beyond the smallest and the largest ratio, so that the names of peers fit."""


def draw(results: Sequence[Result], path: Path) -> None:
    """Write a PNG file with a line for each job that has peers, and with a dot for each peer of the job.

    A dot is blue if the peer takes longer than this package. The fastest and the slowest peer have their names beside
    the dots. Peers whose names begin with "floor" are left out.

    Args:
        results: results in the order of the picture, from top to bottom.
        path: the file.
    """
    lines = []
    for result in results:
        peers = [
            comparison
            for comparison in result.comparisons
            if comparison.ratio and not comparison.peer.startswith("floor")
        ]
        if peers:
            lines.append((result, sorted(peers, key=lambda peer: peer.ratio or 0)))
    with figure(path, 12, 1.1 + 0.52 * len(lines), dpi=110, style={"font.size": 9.5}) as fig:
        (axes,) = panels(fig, 1, 1)
        for place, (_, peers) in enumerate(lines):
            ratios = [peer.ratio or 0 for peer in peers]
            axes.plot(ratios, [place] * len(ratios), color="#ced4da", linewidth=3, solid_capstyle="round", zorder=1)
            colours = [BLUE if ratio >= 1 else GREY for ratio in ratios]
            axes.scatter(ratios, [place] * len(ratios), s=34, c=colours, zorder=3)
            named = {peers[-1]: (7, "left"), peers[0]: (-7, "right")}  # the name of a single peer stands on the left
            for peer, (offset, align) in named.items():
                ratio = peer.ratio or 0
                text = f"{shorten(peer.peer, LONGEST_PEER, placeholder=' …')} {ratio:,.{2 if ratio < 10 else 0}f}x"
                style = {"ha": align, "va": "center", "fontsize": 8, "bbox": {"color": "white", "pad": 0.5}}
                axes.annotate(text, (ratio, place), (offset, 0), textcoords="offset points", **style)
        axes.axvline(1, color=INK, linewidth=1)
        axes.set(xscale="log", xlabel="time of an alternative, divided by ours: right of 1 we are faster")
        axes.set_yticks(
            range(len(lines)), [fill(f"{comparison.row}  {comparison.name}", LONGEST) for comparison, _ in lines]
        )
        axes.set_ylim(len(lines) - 0.4, -0.7)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}x"))
        ratios_shown = [1.0, *(comparison.ratio or 1.0 for _, peers in lines for comparison in peers)]
        axes.set_xlim(min(ratios_shown) / ROOM, max(ratios_shown) * ROOM)
