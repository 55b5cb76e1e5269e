# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NICs of a guest at another site, and the line about its archive."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.guest import (
    source_of,
    with_source,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.mapping import (
    NicMap,
    bridges_after,
    mapped_nameservers,
    mapped_nics,
    read_addresses,
)

MAC = "BC:24:11:00:00:01"
NIC = f"virtio={MAC},bridge=vmbr1,tag=20"
VOLUME = "nas:backup/vzdump-qemu-101-2026_11_20-20_15_33.vma.zst"


def table(addresses: dict[str, str], *, keeps_macs: bool = True) -> NicMap:
    return NicMap({"vmbr1": "vmbr9"}, read_addresses(addresses, "addresses"), keeps_macs)


def test_a_vm_has_the_other_bridge_its_mac_and_its_place_in_the_other_network() -> None:
    config = {
        "net0": NIC,
        "ipconfig0": "ip=10.1.0.7/24,gw=10.1.0.1,ip6=fd00:1::7/64,gw6=fd00:1::1",
        "net1": "virtio=BC:24:11:00:00:02,bridge=vmbr0",
    }
    given = {"10.1.0.0/24": "10.2.0.0/24", "fd00:1::/64": "fd00:2::/64"}
    nics, problems = mapped_nics(VM, config, table(given))
    assert problems == []
    assert nics == [
        {
            "name": "net0",
            "mac": MAC,
            "bridge": "vmbr9",
            "ip": "10.2.0.7/24",
            "gateway": "10.2.0.1",
            "ip6": "fd00:2::7/64",
            "gateway6": "fd00:2::1",
        },
        {"name": "net1", "mac": "BC:24:11:00:00:02"},
    ]
    assert bridges_after(VM, config, table(given)) == ["vmbr0", "vmbr9"]


def test_a_container_has_its_addresses_in_the_nic() -> None:
    config = {"net0": f"name=eth0,bridge=vmbr1,hwaddr={MAC},ip=10.1.0.7/24,ip6=auto"}
    nics, problems = mapped_nics(
        CONTAINER, config, table({"10.1.0.0/24": "10.2.0.0/24"}, keeps_macs=False)
    )
    assert (nics, problems) == ([{"name": "net0", "bridge": "vmbr9", "ip": "10.2.0.7/24"}], [])


@pytest.mark.parametrize(
    ("given", "ip", "problems"),
    [
        ({}, None, []),
        ({"10.1.0.0/24": "10.1.0.0/24"}, None, []),
        ({"10.9.0.0/24": "10.2.0.0/24"}, None, ["'10.1.0.7/24' of net0 is in no network"]),
        ({"10.1.0.0/16": "10.2.0.0/16", "10.1.0.7/32": "10.3.0.9/32"}, "10.3.0.9/24", []),
    ],
)
def test_the_most_specific_network_counts(
    given: dict[str, str], ip: str | None, problems: list[str]
) -> None:
    config = {"net0": NIC, "ipconfig0": "ip=10.1.0.7/24"}
    nics, found = mapped_nics(VM, config, table(given))
    assert nics[0].get("ip") == ip
    assert [text.partition(" of addresses")[0] for text in found] == problems


@pytest.mark.parametrize(
    "given",
    [
        {"10.1.0.0/24": "10.2.0.0/23"},
        {"10.1.0.0/24": "fd00::/64"},
        {"10.1.0.5/24": "10.2.0.0/24"},
        {"10.1.0.0/24": "munich"},
    ],
)
def test_a_wrong_table_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        read_addresses(given, "addresses")


def test_name_servers_of_the_lost_site_change_and_others_stay() -> None:
    known = read_addresses({"10.1.0.0/24": "10.2.0.0/24"}, "addresses")
    mapped = mapped_nameservers({"nameserver": "10.1.0.53,9.9.9.9 ns.example.com"}, known)
    assert mapped == ["10.2.0.53", "9.9.9.9", "ns.example.com"]
    assert mapped_nameservers({"nameserver": "9.9.9.9"}, known) == []
    assert mapped_nameservers({}, known) == []


def test_the_line_about_the_archive_replaces_an_earlier_one() -> None:
    notes = with_source("The shop.\n\nSince 2019.", "nas:backup/one")
    assert source_of(notes) == "nas:backup/one"
    again = with_source(notes, VOLUME)
    assert again == f"The shop.\n\nSince 2019.\n\nFailover from {VOLUME}."
    assert source_of(with_source("", VOLUME)) == VOLUME
    assert source_of("Failover from nowhere, they said.") is None
