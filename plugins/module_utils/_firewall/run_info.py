# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module firewall_info: the firewall of one scope, in the form of module firewall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._core.result import Result
from .find_scope import find_scope
from .read import groups_of, read_firewall
from .scope import CLUSTER, ROOT
from .view import view_of

if TYPE_CHECKING:
    from .._api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the firewall of a scope. Nothing is written, in check mode or out of it."""
    scope = find_scope(client, params)
    firewall = read_firewall(client, scope)
    shown = view_of(scope, firewall) if firewall.exists else None
    groups: list[dict[str, str]] = []
    if scope.kind == CLUSTER:
        found = groups_of(client.get(*ROOT, "groups"))
        groups = [{"name": name, "comment": found[name]} for name in sorted(found)]
    return Result(False, {"firewall": shown, "groups": groups})
