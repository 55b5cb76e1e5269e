# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module node_update_info (pve-manager: PVE/API2/APT.pm, list_updates)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.each_node import answered, read_each_node, result_of_nodes
from ..._foundation.core.result import Result

# Packages whose update installs an image in /boot: the kernels and the packages that depend on the
# newest kernel, but not their helper. Role maintenance decides about a reboot from these images.
_KERNEL = re.compile(r"(?:pve|proxmox)-kernel-[0-9]|linux-image-")


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the pending updates of one node or of all nodes; nothing is written.

    One request for each node, and one for the list of nodes.
    """
    answers = read_each_node(client, params.get("node"), "pending updates", "apt", "update")
    nodes = [describe_updates(node, rows or ()) for node, rows in answered(answers).items()]
    return result_of_nodes(answers, "nodes", nodes)


def describe_updates(node: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the updates of a node by name, and whether they install a kernel (pure)."""
    updates = [
        {
            "package": row["Package"],
            "title": row.get("Title"),
            "old_version": row.get("OldVersion"),
            "version": row.get("Version"),
            "origin": row.get("Origin"),
            "section": row.get("Section"),
            "kernel": bool(_KERNEL.match(row["Package"])),
        }
        for row in rows
    ]
    return {
        "node": node,
        "updates": sorted(updates, key=lambda one: str(one["package"])),
        "installs_kernel": any(one["kernel"] for one in updates),
    }
