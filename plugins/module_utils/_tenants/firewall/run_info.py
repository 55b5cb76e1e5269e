# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module firewall_info: the firewall of one scope, in the form of module firewall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.core.result import Result
from .evaluate.chains import IN, OUT, guest_chain
from .find_scope import find_scope, tag_of
from .model import view_of
from .owners import read_owner, require_owner
from .reach.read import read_cluster, read_cluster_firewall, read_guest
from .read import groups_of, read_firewall
from .scope import CLUSTER, GUEST, ROOT

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the firewall of a scope. Nothing is written, with or without check mode."""
    scope = find_scope(client, params)
    firewall = read_firewall(client, scope)
    tag = tag_of(params)
    if tag is not None:
        require_owner(scope, read_owner(client, scope, firewall), tag)
    described = view_of(scope, firewall) if firewall.exists else None
    groups: list[dict[str, str]] = []
    if scope.kind == CLUSTER:
        found = groups_of(client.get(*ROOT, "groups"))
        groups = [{"name": name, "comment": found[name]} for name in sorted(found)]
    effective = None
    if params.get("effective") and scope.kind == GUEST:
        guest = read_guest(client, scope, scope.config)
        cluster = read_cluster(client, read_cluster_firewall(client), guest.firewall.rules)
        effective = []
        for nic in guest.nics:
            for direction in (IN, OUT):
                for link in guest_chain(cluster, guest, nic, direction):
                    row: dict[str, Any] = {"nic": nic.name, "direction": direction}
                    row.update(origin=link.origin, position=link.position, rule=link.rule.as_view())
                    row["not_from"] = link.outside or None
                    effective.append(row)
    return Result(False, {"firewall": described, "groups": groups, "effective": effective})
