# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which guests a drill restores (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._cluster.drill.copies import is_marked
from .._cluster.state import VmRow
from .record import GuestKey, Proof


@dataclass(frozen=True)
class Due:
    """The choice of guests: only guests without a proof in the last `unproven_for` seconds, and at
    most `sample` of them, the longest unproven first.
    """

    now: float
    unproven_for: int | None = None
    sample: int | None = None


def key_of_row(row: VmRow) -> GuestKey:
    """Return the key of a guest in the record."""
    return row.type, row.vmid, row.own_name


def choose_due(rows: Iterable[VmRow], proofs: Mapping[GuestKey, Proof], due: Due) -> list[VmRow]:
    """Return the guests to restore, by VMID; no templates, and no copies of drills."""
    ages: dict[int, float] = {}
    known: dict[int, VmRow] = {}
    for row in rows:
        if row.template or is_marked(row.tags):
            continue
        proof = proofs.get(key_of_row(row))
        age = float("inf") if proof is None else due.now - proof.time
        if due.unproven_for is None or age > due.unproven_for:
            ages[row.vmid], known[row.vmid] = age, row
    oldest_first = sorted(ages, key=lambda vmid: (-ages[vmid], vmid))
    return [known[vmid] for vmid in sorted(oldest_first[: due.sample])]
