# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VMID a new VM gets (pure). PVE reserves nothing: whoever creates first has the number."""

from __future__ import annotations

from collections.abc import Collection

from .._core.errors import QuotaExceeded


def lowest_free(band: tuple[int, int], taken: Collection[int]) -> int:
    """Return the lowest VMID of the band that nobody has. Raises QuotaExceeded where the band is full."""
    first, last = band
    used = set(taken)
    for vmid in range(first, last + 1):
        if vmid not in used:
            return vmid
    raise QuotaExceeded(
        attempted="A VMID could not be chosen",
        answer=f"all of {first} to {last} are taken",
        next_step="Widen vmid_range or remove VMs",
        reason="no free VMID",
    )
