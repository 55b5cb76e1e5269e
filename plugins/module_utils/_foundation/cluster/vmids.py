# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses the VMID of a new VM (pure). PVE reserves nothing: the first creation gets the VMID."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import gcd
from typing import Any

from ..core import validate
from ..core.errors import QuotaExceeded

VmidRange = tuple[int, int]

# Number of free VMIDs to choose from after a lost race; it doubles with each further loss.
_FIRST_SPREAD = 4
_WIDEST_SPREAD = 4096


@dataclass(frozen=True)
class VmidRanges:
    """The bands of VMIDs: for templates, chosen by hand, chosen automatically, and reserved."""

    template: VmidRange = (100, 999)
    manual: VmidRange = (1000, 9999)
    automatic: VmidRange = (10000, 99999)
    reserved: VmidRange = (100000, 999999999)


def read_vmid_ranges(
    vmid_range: Sequence[int] | None, others: Mapping[str, Any] | None
) -> VmidRanges:
    """Return the bands of O(vmid_range), which is `vmid_range`, and O(vmid_bands).

    Raises ValidationFailed.
    """
    defaults = VmidRanges()
    automatic = _vmid_range(vmid_range or defaults.automatic, "vmid_range")
    given = others or {}
    vmid_ranges: dict[str, VmidRange] = {}
    for name in ("template", "manual", "reserved"):
        vmid_range = given.get(name) or getattr(defaults, name)
        vmid_ranges[name] = _vmid_range(vmid_range, f"vmid_bands.{name}")
    return VmidRanges(automatic=automatic, **vmid_ranges)


def _vmid_range(vmid_range: Sequence[int], what: str) -> VmidRange:
    if len(vmid_range) != 2 or vmid_range[0] > vmid_range[1]:
        raise validate.refused(
            what, list(vmid_range), "is not a range", "Give the first and the last VMID"
        )
    return validate.vmid(vmid_range[0], what), validate.vmid(vmid_range[1], what)


def advice(vmid: int, vmid_ranges: VmidRanges) -> str | None:
    """Return a warning about a VMID chosen by hand outside the bands for that, or None."""
    if _inside(vmid, vmid_ranges.template) or _inside(vmid, vmid_ranges.manual):
        return None
    other_ranges = {
        "automatic choice": vmid_ranges.automatic,
        "others (reserved)": vmid_ranges.reserved,
    }
    first, last = vmid_ranges.manual
    for name, vmid_range in other_ranges.items():
        if _inside(vmid, vmid_range):
            place = f"VMID {vmid} lies in the band for {name}, {vmid_range[0]} to {vmid_range[1]}"
            return f"{place}; numbers chosen by hand are {first} to {last} (vmid_bands)"
    return f"VMID {vmid} lies in none of the bands of vmid_bands and vmid_range"


def _inside(vmid: int, vmid_range: VmidRange) -> bool:
    return vmid_range[0] <= vmid <= vmid_range[1]


@dataclass(frozen=True)
class VmidAllocator:
    """The VMIDs a new VM may get, in the order in which they are tried.

    `by_name`: a fixed order that follows from tenant and name alone, so every run that creates this
    VM tries the same VMIDs, and Proxmox VE decides between the runs
    (docs/decisions/0014-one-number-for-one-name.md). Otherwise the lowest free VMID is first.
    """

    vmid_range: VmidRange
    tenant_tag: str | None
    name: str
    by_name: bool = True

    def order(self) -> Iterator[int]:
        """Yield every VMID of the band once."""
        first, last = self.vmid_range
        size = last - first + 1
        if not self.by_name:
            yield from range(first, last + 1)
            return
        start, stride = self._start_and_stride(size)
        for position in range(size):
            yield first + (start + position * stride) % size

    def first(self, count: int) -> frozenset[int]:
        """Return the VMIDs that are tried first."""
        return frozenset(islice(self.order(), count))

    def free(self, taken: Collection[int]) -> int:
        """Return the first VMID in the order that is not taken. Raises QuotaExceeded."""
        for vmid in self.order():
            if vmid not in taken:
                return vmid
        raise _range_is_full(self.vmid_range)

    def free_after(self, taken: Collection[int], losses: int, rng: random.Random) -> int:
        """Return a free VMID after other VMs got `losses` (1 or more) VMIDs first.

        Every run first tries the lowest VMID. After a loss it takes one of the lowest free VMIDs at
        random, out of more VMIDs with each loss. With `by_name` the order is kept. Raises
        QuotaExceeded.
        """
        if self.by_name:
            return self.free(taken)
        spread = min(_FIRST_SPREAD << min(losses - 1, 16), _WIDEST_SPREAD)
        free = (vmid for vmid in self.order() if vmid not in taken)
        lowest = list(islice(free, spread))
        if not lowest:
            raise _range_is_full(self.vmid_range)
        return rng.choice(lowest)

    def _start_and_stride(self, size: int) -> tuple[int, int]:
        """Return the start of the order and its step, which has no common divisor with `size`."""
        tenant = (self.tenant_tag or "").lower()
        key = f"{tenant}\0{self.name}".encode()
        digest = hashlib.sha256(key).digest()
        start = int.from_bytes(digest[:8], "big") % size
        stride = int.from_bytes(digest[8:16], "big") % size or 1
        while gcd(stride, size) != 1:
            stride += 1
        return start, stride


@lru_cache(maxsize=1 << 16)
def comes_early(vmid: int, vmid_range: VmidRange, tenant_tag: str, name: str, count: int) -> bool:
    """Return whether a VMID is among the first `count` VMIDs in the order for that VM."""
    first, last = vmid_range
    if not first <= vmid <= last:
        return False
    return vmid in VmidAllocator(vmid_range, tenant_tag, name).first(count)


def _range_is_full(vmid_range: VmidRange) -> QuotaExceeded:
    first, last = vmid_range
    return QuotaExceeded(
        f"A VMID could not be chosen: all {last - first + 1} numbers from {first} to {last} are "
        "taken",
        "Widen vmid_range or remove VMs",
        "no free VMID",
        details={"band": [first, last], "taken": last - first + 1},
    )
