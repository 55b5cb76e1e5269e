# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides whether an object that a listing lacks is absent, or hidden from the caller.

Proxmox VE leaves objects out of many listings if the caller lacks a privilege on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.errors import PermissionDenied
from .privileges import Privileges

Way = tuple[tuple[str, str], ...]
"""Privileges, with their paths, which together make PVE list an object. A path that ends with a
slash means all paths below it.
"""


# The privileges with which the rights on a path can be changed, besides Permissions.Modify.
_MAY_MODIFY = {"/storage/": "Datastore.Allocate", "/vms/": "VM.Allocate", "/pool/": "Pool.Allocate"}


def ways_to_rights(path: str) -> tuple[Way, ...]:
    """Return the ways in which PVE lists the rights on a path (pve-access-control: API2/ACL.pm,
    read_acl; RPCEnvironment.pm, check_perm_modify).
    """
    names = ["Permissions.Modify"]
    for prefix, name in _MAY_MODIFY.items():
        if path.startswith(prefix):
            names.append(name)
    return (("/access", "Sys.Audit"),), *(((path, name),) for name in names)


def is_listed(held: Privileges, *ways: Way) -> bool:
    """Return whether PVE lists an object to a caller with these privileges (pure)."""
    return any(all(name in held.on(path) for path, name in way) for way in ways)


def require_listed(privileges: Mapping[str, Mapping[str, int]], label: str, *ways: Way) -> None:
    """Raise PermissionDenied if PVE would not list the object `label` to a caller with these
    privileges, so that it may exist although the listing lacks it (pure).
    """
    if is_listed(Privileges(privileges), *ways):
        return
    texts = [" and ".join(f"{name} on {path.rstrip('/')}" for path, name in way) for way in ways]
    path, privilege = ways[0][0]
    raise PermissionDenied(
        f"Could not remove {label}: it is not listed, but may exist: Proxmox VE hides it from a "
        f"login without {', or '.join(texts)}",
        "Use a login that sees it, or give this user (and the token, if its privileges are"
        f" separated) {texts[0]}",
        "hidden object",
        details={"privilege": privilege, "acl_path": path.rstrip("/")},
    )
