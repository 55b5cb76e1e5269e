# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and addresses of guests that come up from replicas."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import with_defaults
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.failover import (
    failover_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.desired import (
    DesiredFailover,
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.replicas.find import (
    chosen_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.replicas.plan import (
    change_of,
    remaining_options,
)

MAC = "BC:24:11:00:07:01"
VM = {
    "net0": f"virtio={MAC},bridge=vmbr0,tag=5",
    "net1": "virtio=BC:24:11:00:07:02,bridge=vmbr9",
    "ipconfig0": "ip=10.1.0.7/24,gw=10.1.0.1",
    "ide2": "tank:vm-701-cloudinit,media=cdrom",
    "nameserver": "10.1.0.53 9.9.9.9",
}
SWAP = {"10.1.0.0/24": "10.2.0.0/24", "10.2.0.0/24": "10.1.0.0/24"}


def desired(**tables: Any) -> DesiredFailover:
    given = {"lost_nodes": ["pve1"], "replicas": {"pve2": []}, **tables}
    return read_desired(with_defaults(failover_spec(), given), 0, "0123abcd")


def chosen(**config: str) -> Any:
    return chosen_of("qemu", 701, {**VM, **config}, "701-0", 1)


def test_a_change_has_only_nics_that_differ() -> None:
    change = change_of(desired(networks={"vmbr0": "vmbr1"}, addresses=SWAP), chosen())
    nic = {"name": "net0", "mac": MAC, "bridge": "vmbr1", "ip": "10.2.0.7/24"}
    assert change.options == {
        "nics": [{**nic, "gateway": "10.2.0.1"}],
        "cloud_init": {"nameservers": ["10.2.0.53", "9.9.9.9"]},
    }
    assert change.words == (
        "nameservers 10.1.0.53 9.9.9.9 becomes 10.2.0.53 9.9.9.9",
        "net0 bridge vmbr0 becomes vmbr1",
        "net0 gateway 10.1.0.1 becomes 10.2.0.1",
        "net0 ip 10.1.0.7/24 becomes 10.2.0.7/24",
    )
    same = change_of(desired(), chosen())
    assert (same.options, same.words) == ({}, ())
    assert remaining_options(desired(), chosen(), same.after) == {}


@pytest.mark.parametrize("addresses", [SWAP, {"10.1.0.0/24": "10.2.0.0/24"}])
def test_a_change_is_made_once(addresses: dict[str, str]) -> None:
    """Also if the table maps the new addresses again, or lacks them."""
    tables = desired(addresses=addresses)
    first = change_of(tables, chosen())
    assert remaining_options(tables, chosen(), first.after) == first.options
    moved = {"ipconfig0": "ip=10.2.0.7/24,gw=10.2.0.1", "nameserver": "10.2.0.53 9.9.9.9"}
    assert remaining_options(tables, chosen(**moved), first.after) == {}


@pytest.mark.parametrize("config", [{}, {"net0": f"virtio={MAC},bridge=vmbr5"}])
def test_other_tables_or_nics_are_refused(config: dict[str, str]) -> None:
    expected = change_of(desired(addresses=SWAP), chosen()).after
    with pytest.raises(Conflict, match="have changed since its job was marked"):
        remaining_options(desired(), chosen(**config), expected)
