# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers about SDN in canonical form."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.forms import is_in_force

NODES = [
    {"type": "node", "node": "pve1", "status": "online"},
    {"type": "node", "node": "pve2", "status": "online"},
    {"type": "node", "node": "pve3", "status": "offline"},
]


def new_row(node: str, status: str = "available") -> dict[str, Any]:
    return {"type": "network", "network": "teams", "node": node, "status": status}


def old_row(node: str) -> dict[str, Any]:
    return {"type": "sdn", "sdn": "teams", "node": node, "status": "available"}


@pytest.mark.parametrize(
    ("rows", "zone", "in_force"),
    [
        ([new_row("pve1"), new_row("pve2")], {}, True),
        ([old_row("pve1"), old_row("pve2")], {}, True),
        ([new_row("pve1")], {}, False),
        ([new_row("pve1")], {"nodes": "pve1,pve3"}, True),
        ([new_row("pve1"), new_row("pve2", "pending")], {}, False),
        ([new_row("pve1"), new_row("pve2", "error")], {}, False),
    ],
)
def test_zones_are_in_force_if_each_online_node_reports_them(
    rows: list[dict[str, Any]], zone: dict[str, str], in_force: bool
) -> None:
    """Rows as /cluster/resources has them (pve-manager: PVE/API2/Cluster.pm, resources)."""
    assert is_in_force([*NODES, *rows], {"teams": zone}) is in_force
    assert not is_in_force(rows, {"teams": zone}), "no node is known"
