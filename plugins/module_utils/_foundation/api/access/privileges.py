# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The privileges of the caller on each path, from one request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_ZONES = "/sdn/zones"
LOCAL = "localnetwork"  # the zone of the bridges of nodes
BRIDGE = re.compile(r"vmbr\d+")  # the usual names of bridges of nodes
NEWEST = (9, 2)


@dataclass(frozen=True)
class Privileges:
    """The privileges of the caller by path, as C(GET /access/permissions) without a path returns
    them.

    The value of a privilege is 1 if it holds for paths below too. The answer has the paths of all
    ACLs and of the members of all pools; any other path inherits the privileges that its parent
    propagates (pve-access-control: PVE/RPCEnvironment.pm, get_effective_permissions).

    The other fields are facts that decide about privileges: the zone of each VNet, the pool of each
    guest, the definition of each storage, and the options of the cluster.
    """

    by_path: Mapping[str, Mapping[str, int]]
    login: str = ""
    release: tuple[int, ...] = NEWEST
    zones: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)
    storages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def on(self, path: str) -> frozenset[str]:
        """Return the privileges on a path such as C(/vms/100)."""
        listed = self.by_path.get(path)
        if listed is not None:
            return frozenset(listed)
        if path == "/":
            return frozenset()
        parent = path.rpartition("/")[0] or "/"
        return self.below(parent)

    def below(self, path: str) -> frozenset[str]:
        """Return the privileges on all paths below a path, unless an ACL there removes them."""
        listed = self.by_path.get(path)
        if listed is None:
            return self.on(path)
        return frozenset(name for name, inherited in listed.items() if inherited)

    def networks(self, name: str) -> list[str]:
        """Return the possible ACL paths of a bridge or a VNet.

        A VNet of which the caller sees no zone may be in any zone (pve-guest-common:
        PVE/GuestHelpers.pm, check_vnet_access).
        """
        zones = [self.zones.get(name, LOCAL)]
        if name not in self.zones and not BRIDGE.fullmatch(name):
            zones += [path.split("/")[3] for path in self.by_path if path.startswith(f"{_ZONES}/")]
            zones.append("-")  # has the privileges that hold for all zones
        return [f"{_ZONES}/{zone}/{name}" for zone in zones]
