# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of a node that run commands in its containers, and the address of the node (pure)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

_GONE = re.compile(rb"Configuration file 'nodes/[^']+/lxc/\d+\.conf' does not exist")
_STOPPED = re.compile(rb"container '?\d+'? not running")


def enter(vmid: int, command: str, *, become: bool) -> str:
    """Return a command of the node that runs a shell command in a container.

    With `become`, a user of the node other than root runs it with sudo.
    """
    words = ["pct", "exec", str(vmid), "--", "/bin/sh", "-c", command]
    if become:
        words = ["sudo", "-n", *words]
    return shlex.join(words)


def was_moved(status: int, err: bytes) -> bool:
    """Return whether the container is not on the node; if so, nothing was run."""
    return status != 0 and bool(_GONE.search(err))


def is_stopped(status: int, err: bytes) -> bool:
    """Return whether the container is stopped; if so, nothing was run."""
    return status != 0 and bool(_STOPPED.search(err))


def address_of(node: str, given: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the address for SSH to a node: from `given`, else from the cluster, else its name.

    `rows` are the answer to C(GET /cluster/status), empty if the user may not read it.
    """
    if given.get(node):
        return str(given[node])
    for row in rows:
        if row.get("type") == "node" and row.get("name") == node and row.get("ip"):
            return str(row["ip"])
    return node
