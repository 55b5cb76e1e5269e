# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs under restore as listings show them: found by what they lack, and named where they matter."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.find.restoring import (
    is_bare,
    seems_bare,
    suspects,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import UnknownVm
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.find import find_row
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.options import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sites import (
    SiteListing,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sync import choose

MIB = 1024**2
# As a real Proxmox VE 9.2.11 lists a VM while a restore writes it.
BARE: dict[str, Any] = {
    "type": "qemu",
    "vmid": 803,
    "node": "pve1",
    "name": "VM 803",
    "status": "stopped",
    "maxmem": 128 * MIB,
    "maxdisk": 0,
}
NAMED = {**BARE, "vmid": 804, "name": "web", "tags": "tenant_acme", "maxdisk": 1024 * MIB}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"memory": "128", "digest": "d"}, True),
        ({"memory": 128}, True),
        ({"memory": "128", "lock": "create"}, True),  # from a backup server
        ({"digest": "d"}, True),  # a restore to a new VM failed early
        ({"lock": "create"}, False),  # a VM that is being created
        ({"lock": "clone"}, False),
        ({"memory": "256"}, False),
        ({"memory": "128", "smbios1": "uuid=1", "meta": "creation-qemu=10.1.2"}, False),
        (None, False),
    ],
)
def test_bare_configurations(config: dict[str, Any] | None, expected: bool) -> None:
    assert is_bare(config) is expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (BARE, True),
        ({**BARE, "lock": "create"}, True),
        ({**BARE, "lock": "backup"}, False),
        ({**BARE, "name": "web"}, False),
        ({**BARE, "tags": "x"}, False),
        ({**BARE, "template": 1}, False),
        ({**BARE, "maxdisk": 1}, False),
        ({**BARE, "maxmem": 256 * MIB}, False),
        ({**BARE, "maxmem": 512 * MIB}, True),
        ({**BARE, "maxmem": 512 * MIB, "lock": "create"}, True),  # at the beginning of a restore
        ({**BARE, "maxmem": 512 * MIB, "lock": "backup"}, False),
    ],
)
def test_rows_that_seem_bare(row: dict[str, Any], expected: bool) -> None:
    assert seems_bare(cluster_state_of([row], {"qemu"}).vms[803]) is expected


@pytest.mark.parametrize(
    ("pool", "owner", "tag", "expected"),
    [
        ("acme", "tenant_acme", "tenant_acme", [803]),
        ("acme", "tenant_acme", "tenant_globex", []),
        ("acme", "tenant_acme", None, [803]),
        (None, "tenant_acme", "tenant_globex", [803]),
        ("acme", "", "tenant_globex", [803]),  # no VM of the pool has a tenant
    ],
)
def test_a_pool_rules_others_out(
    pool: str | None, owner: str, tag: str | None, expected: list[int]
) -> None:
    rows = [{**BARE, "pool": pool}, {**NAMED, "pool": pool, "tags": owner}]
    found = suspects(cluster_state_of(rows, {"qemu"}), tag, "tenant_")
    assert [row.vmid for row in found] == expected


def test_the_inventory_warns() -> None:
    listing = SiteListing("", (BARE, NAMED))
    guests, warnings = choose(
        [listing], read_options(lambda _name: None, {}), lambda _guest: (True, "")
    )
    assert [guest.vmid for guest in guests] == [803, 804]
    assert len(warnings) == 1
    assert warnings[0].startswith("VM 803 of Proxmox VE has neither name, tags nor disks")


def test_the_lookup_names_the_vm_that_may_be_meant() -> None:
    with pytest.raises(UnknownVm) as caught:
        find_row([BARE, NAMED], "db", "", "tenant_", must_exist=True)
    assert "it may be what is being restored as VM 803 on node pve1" in caught.value.message
    with pytest.raises(UnknownVm) as caught:
        find_row([NAMED], "db", "", "tenant_", must_exist=True)
    assert "restored" not in caught.value.message
