# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NICs in the configuration of a guest of any kind (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.core.errors import ValidationFailed

_NIC = re.compile(r"net(\d+)")
Parser = Callable[[str, str], Mapping[str, str]]


def nics_in(config: Mapping[str, Any]) -> list[str]:
    """Return the keys of the NICs by their numbers: net2 comes before net10."""
    numbers: dict[str, int] = {}
    for key in config:
        found = _NIC.fullmatch(key)
        if found is not None:
            numbers[key] = int(found[1])
    return sorted(numbers, key=numbers.__getitem__)


@dataclass(frozen=True)
class NicMtu:
    """The MTU of a NIC that PVE compares with the MTU of its bridge when the guest starts."""

    nic: str
    bridge: str
    mtu: int


def mtus_of_nics(config: Mapping[str, Any], parse: Parser) -> list[NicMtu]:
    """Return the MTUs in a configuration; 1 is the MTU of the bridge. A VM has them for virtio only
    (qemu-server: QemuServer.pm, print_netdevice_full; pve-container: LXC.pm, update_lxc_config).
    """
    found: list[NicMtu] = []
    for nic, bridge in bridges_by_nic(config, parse).items():
        option = parse(nic, str(config[nic]))
        mtu = str(option.get("mtu", ""))
        if mtu.isdecimal() and int(mtu) > 1 and option.get("model", "virtio") == "virtio":
            found.append(NicMtu(nic, bridge, int(mtu)))
    return found


def bridges_by_nic(config: Mapping[str, Any], parse: Parser) -> dict[str, str]:
    """Return the bridge of each NIC that has one, in the order of the NICs.

    Proxmox VE ignores a NIC that it cannot parse (qemu-server: PVE/QemuServer.pm, parse_net).
    """
    found: dict[str, str] = {}
    for nic in nics_in(config):
        try:
            bridge = parse(nic, str(config[nic])).get("bridge")
        except ValidationFailed:
            continue
        if bridge:
            found[nic] = bridge
    return found
