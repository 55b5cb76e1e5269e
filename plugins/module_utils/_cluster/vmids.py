# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VMID a new VM gets (pure). PVE reserves nothing: whoever creates first has the number."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .._core import validate
from .._core.errors import QuotaExceeded

Band = tuple[int, int]

# The number of free VMIDs among which is chosen after a race was lost; it doubles with each further loss.
_FIRST_SPREAD = 4
_WIDEST_SPREAD = 4096


@dataclass(frozen=True)
class Bands:
    """Who numbers what: templates and people by hand, the collection by itself, and what is kept for others."""

    template: Band = (100, 999)
    manual: Band = (1000, 9999)
    automatic: Band = (10000, 99999)
    reserved: Band = (100000, 999999999)


def read_bands(automatic: Sequence[int] | None, others: Mapping[str, Any] | None) -> Bands:
    """Return the bands of O(vmid_range) and O(vmid_bands). Raises ValidationFailed for what is no range."""
    usual = Bands()
    given = {key: value for key, value in (others or {}).items() if value is not None}
    return Bands(
        **{
            name: _band(given.get(name) or getattr(usual, name), f"vmid_bands.{name}")
            for name in ("template", "manual", "reserved")
        },
        automatic=_band(automatic or usual.automatic, "vmid_range"),
    )


def _band(band: Sequence[int], what: str) -> Band:
    if len(band) != 2 or band[0] > band[1]:
        raise validate.refused(what, list(band), "is no range", "Give the first and the last VMID")
    return validate.vmid(band[0], what), validate.vmid(band[1], what)


def advice(vmid: int, bands: Bands) -> str | None:
    """Return a warning about a number chosen by hand that is outside the bands for that, or None."""
    if _inside(vmid, bands.template) or _inside(vmid, bands.manual):
        return None
    for name, band in (("automatic choice", bands.automatic), ("others (reserved)", bands.reserved)):
        if _inside(vmid, band):
            return (
                f"VMID {vmid} lies in the band for {name}, {band[0]} to {band[1]}; numbers chosen by hand are "
                f"{bands.manual[0]} to {bands.manual[1]} (vmid_bands)"
            )
    return f"VMID {vmid} lies in none of the bands of vmid_bands and vmid_range"


def _inside(vmid: int, band: Band) -> bool:
    return band[0] <= vmid <= band[1]


def lowest_free(band: Band, taken: Collection[int]) -> int:
    """Return the lowest VMID of the band that nobody has. Raises QuotaExceeded where the band is full."""
    return _free(band, taken, 1)[0]


def next_free(band: Band, taken: Collection[int], losses: int, rng: random.Random) -> int:
    """Return a free VMID after `losses` (1 or more) races for a number were lost.

    Those who lose together must not all ask for the next one again, so each takes one of the lowest free ones by
    chance, among more of them with each loss. Raises QuotaExceeded where the band is full.
    """
    spread = min(_FIRST_SPREAD << min(losses - 1, 16), _WIDEST_SPREAD)
    return rng.choice(_free(band, taken, spread))


def _free(band: Band, taken: Collection[int], most: int) -> list[int]:
    first, last = band
    used = taken if isinstance(taken, (set, frozenset)) else set(taken)
    free = list(islice((vmid for vmid in range(first, last + 1) if vmid not in used), most))
    if free:
        return free
    raise QuotaExceeded(
        attempted="A VMID could not be chosen",
        answer=f"all {last - first + 1} numbers from {first} to {last} are taken",
        next_step="Widen vmid_range or remove VMs",
        reason="no free VMID",
        details={"band": [first, last], "taken": last - first + 1},
    )
