# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rights that would be lost with a group or a role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core.errors import Conflict

AclRow = Mapping[str, Any]
"""One entry of the access control list, as PVE lists it."""


def uses_of(client: Api, concerns: Callable[[AclRow], bool]) -> list[str]:
    """Return the access control entries that `concerns` selects, as text for messages.

    The list contains only entries that the caller may see (pve-access-control: API2/ACL.pm,
    read_acl).
    """
    entries = client.get("access", "acl", attempted="Could not read the rights") or []
    return sorted(
        f"{entry['roleid']} for {entry['type']} {entry['ugid']} on {entry['path']}"
        for entry in entries
        if concerns(entry)
    )


def require_unused(label: str, members: Sequence[str], rights: Sequence[str]) -> None:
    """Raise Conflict for the deletion of a group or a role that has members or is in use.

    PVE itself would delete it, and silently remove these rights.
    """
    used_by = [*members, *rights]
    if not used_by:
        return
    raise Conflict(
        f"{label[:1].upper()}{label[1:]} was not deleted: it is in use: {', '.join(used_by)}",
        "Remove these first, or set force=true to take these rights away with it",
        "in use",
        details={"used_by": used_by},
    )
