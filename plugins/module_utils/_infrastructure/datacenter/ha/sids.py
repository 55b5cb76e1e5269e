# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""IDs of HA resources (pure)."""

from __future__ import annotations

import re

from ...._foundation.cluster.state import VmRow
from ...._foundation.core import validate
from ...._guests.kinds.container.kind import ContainerKind
from ...._guests.kinds.vm.kind import VmKind

KINDS = {VmKind.type: "vm", ContainerKind.type: "ct"}
"""The word for a kind of guests in an ID, by the type of its rows in a listing."""

_SID = re.compile(r"(?:vm|ct):[1-9][0-9]{2,8}")


def sid(value: str, what: str = "sid") -> str:
    """Return the ID of an HA resource, such as C(vm:100)."""
    text = str(value).strip()
    if not _SID.fullmatch(text):
        raise validate.refused(
            what, text, "is not an HA resource", "Write it as vm:100, or as ct:100 for a container"
        )
    return text


def sid_of(row: VmRow) -> str:
    """Return the ID of a guest as an HA resource."""
    return f"{KINDS[row.type]}:{row.vmid}"


def vmid_of(text: str) -> int:
    """Return the VMID of a resource's ID."""
    return int(text.partition(":")[2])
