"""Medians and ranges, and what one part of the measurement found (pure)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

OURS, PEER = "pve.fleet", "community.proxmox"


@dataclass(frozen=True)
class Figure:
    """Values of several runs, in the order in which they were measured."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def percentile(self, share: int) -> float:
        """Return the value that this share of the runs, in percent, does not exceed."""
        ordered = sorted(self.values)
        place = math.ceil(len(ordered) * share / 100)
        return ordered[max(place - 1, 0)]

    def scaled(self, factor: float) -> Figure:
        """Return each value times the factor."""
        return Figure(tuple(value * factor for value in self.values))

    def as_dict(self) -> dict[str, Any]:
        shown = [round(value, 4) for value in self.values]
        return {
            "median": round(self.median, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "values": shown,
        }


def ratio(upper: Figure, lower: Figure) -> Figure:
    """Return how many times the one is the other.

    The runs of two sides are made in turns, so the pairs of the same turn show how much the
    machine's noise matters; where one side had fewer runs, its median stands in each pair. The
    median is that of the two medians.
    """
    if len(upper.values) == len(lower.values):
        pairs = [one / other for one, other in zip(upper.values, lower.values, strict=True)]
    elif len(upper.values) < len(lower.values):
        pairs = [upper.median / other for other in lower.values]
    else:
        pairs = [one / lower.median for one in upper.values]
    return _around(upper.median / lower.median, pairs)


def _around(middle: float, pairs: Sequence[float]) -> Figure:
    """Return a figure with this median and the range of the pairs, which the median of medians may
    lie outside of.
    """
    low, high = min(*pairs, middle), max(*pairs, middle)
    return Figure((low, middle, high))


@dataclass(frozen=True)
class Row:
    """One way of doing one thing: how long it took and what it cost."""

    what: str
    side: str
    seconds: Figure
    requests: int
    units: int = 1  # tasks, VMs or hosts that the time is for
    play: Figure | None = None  # seconds of the whole play, where `seconds` are those of its tasks
    command: Figure | None = None  # seconds of the whole command, where `seconds` are a part of it
    # seconds of processor time of the whole command, in all its processes
    cpu: Figure | None = None
    peak_mib: Figure | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "what": self.what,
            "side": self.side,
            "runs": len(self.seconds.values),
            "seconds": self.seconds.as_dict(),
            "requests": self.requests,
            "units": self.units,
            "per_second": round(self.units / self.seconds.median, 3),
        }
        more = {
            "play_seconds": self.play,
            "command_seconds": self.command,
            "cpu_seconds": self.cpu,
            "peak_mib": self.peak_mib,
        }
        found.update(
            {name: figure.as_dict() for name, figure in more.items() if figure is not None}
        )
        return {**found, "note": self.note} if self.note else found


@dataclass
class Measured:
    """What a part found: its rows, and the named keys with their ranges."""

    rows: list[Row] = field(default_factory=list)
    keys: dict[str, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def key(self, name: str, *values: float) -> None:
        """Note a named figure."""
        self.keys[name] = Figure(tuple(values))
