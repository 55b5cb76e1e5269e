# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of requests as the API's documentation writes them, and how often each was called (pure).

The number of templates is limited by this file, whatever VMs, nodes and users are called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from .protocols import Row

# What follows a word of a path, as the API's schema calls it.
_NAMED = {
    "nodes": "{node}",
    "qemu": "{vmid}",
    "lxc": "{vmid}",
    "snapshot": "{snapname}",
    "tasks": "{upid}",
    "storage": "{storage}",
    "content": "{volume}",
    "network": "{iface}",
    "pools": "{poolid}",
    "users": "{userid}",
    "token": "{tokenid}",
    "groups": "{groupid}",
    "roles": "{roleid}",
    "domains": "{realm}",
    "resources": "{sid}",
    "vnets": "{vnet}",
    "zones": "{zone}",
}
# A name that may hold slashes, so that it is all the rest of a path.
_LONG_NAMES = ("{volume}",)
_WORDS = frozenset(
    "access acl agent clone cloudinit cluster config content current domains download-url exec"
    " exec-status feature file-read file-write get-host-name get-osinfo groups ha info log lxc"
    " manager_status migrate move_disk network network-get-interfaces nextid nodes options"
    " password pending permissions ping pools qemu query-url-metadata reboot reset resize"
    " resources resume roles rollback sdn shutdown snapshot start status stop storage suspend"
    " sync tasks template ticket token unlink upload users version vnets zones".split()
)
OTHER = "other"


def template_of(path: str) -> str:
    """Return a path with placeholders for names, such as C(/nodes/{node}/qemu/{vmid}/config).

    From the first unknown word on it is V(other), so that no name gets into a template.
    """
    found: list[str] = []
    placeholder = ""
    for part in filter(None, path.split("/")):
        if placeholder:
            found.append(placeholder)
            if placeholder in _LONG_NAMES:
                break
            placeholder = ""
        elif part in _WORDS:
            found.append(part)
            placeholder = _NAMED.get(part, "")
        else:
            found.append(OTHER)
            break
    return "/" + "/".join(found)


def status_of(row: Row) -> str:
    """Return the HTTP status of a request, V(none) for one without an answer."""
    status = row[2]
    if status == 0:
        return "none"
    return str(status)


def count_requests(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return how often each method and template was called with which status, sorted."""
    counts = Counter((row[0], template_of(row[1]), status_of(row)) for row in list(rows))
    found: list[dict[str, Any]] = []
    for method, endpoint, status in sorted(counts):
        number = counts[method, endpoint, status]
        found.append({"method": method, "endpoint": endpoint, "status": status, "count": number})
    return found
