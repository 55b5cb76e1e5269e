"""Draws the plot: `python plot.py latest.json benchmarks.svg`, run in the environment that has
matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot

COLOURS = {"pve.fleet": "#2a6fbb", "community.proxmox": "#c2702c"}
SINGLE = (
    "noop_loop",
    "process_loop",
    "noop_forks",
    "operations",
    "create",
    "clone_start",
    "snapshot",
    "fleet20",
    "fleet100",
    "fleet1000",
    "drift1000",
    "export1000",
    "report1000",
    "container_loop",
    "container_create",
    "mixed1000",
)


def bars(axes: Any, rows: list[dict[str, Any]], title: str) -> None:
    """Draw a bar for each row, with its range."""
    labels = [f"{row['what']}" for row in rows]
    middle = [row["seconds"]["median"] for row in rows]
    spans = [
        [row["seconds"]["median"] - row["seconds"]["low"] for row in rows],
        [row["seconds"]["high"] - row["seconds"]["median"] for row in rows],
    ]
    places = range(len(rows))
    axes.barh(
        places,
        middle,
        xerr=spans,
        color=[COLOURS[row["side"]] for row in rows],
        ecolor="#444444",
        capsize=2,
    )
    for place, row in zip(places, rows, strict=True):
        axes.text(
            row["seconds"]["high"] * 1.08,
            place,
            f"{row['seconds']['median']:.3g} s",
            va="center",
            fontsize=7,
        )
    axes.set_yticks(places, labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.18)
    axes.set_xlabel("seconds, logarithmic", fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    axes.grid(axis="x", alpha=0.3)


def main(source: Path, target: Path) -> None:
    """Draw what was measured."""
    parts = json.loads(source.read_text(encoding="utf-8"))["parts"]
    tasks = [row for name in SINGLE if name in parts for row in parts[name]["rows"]]
    inventories = [
        row for name, part in parts.items() if name.startswith("inv") for row in part["rows"]
    ]
    shown = [
        (rows, title)
        for rows, title in ((tasks, "Tasks and fleets"), (inventories, "Inventory"))
        if rows
    ]
    if not shown:  # the measured parts are on the page only
        return
    matplotlib.rcParams["svg.hashsalt"] = "bench"  # the same figures give the same file
    heights = [len(rows) + 1.5 for rows, _title in shown]
    figure, axes = plot.subplots(
        len(shown),
        1,
        figsize=(9, 0.26 * sum(heights) + 0.8),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for (rows, title), place in zip(shown, axes[:, 0], strict=True):
        bars(place, rows, title)
    handles = [plot.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    figure.legend(handles, list(COLOURS), loc="outside upper right", ncols=2, fontsize=8)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
