# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The VNet and the zone of guests in an inventory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.addresses import AddressRule
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.details import (
    add_vnets,
    detail_variables,
)

ROWS = [{"vnet": "tabc", "zone": "tenants"}, {"vnet": "other", "zone": "lab"}]


class FakeClient:
    """Answers one request, and counts how often."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.paths: list[tuple[str, ...]] = []

    def get(self, *path: str, **_more: Any) -> Any:
        self.paths.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def details_of(answer: Any, **configs: str) -> tuple[dict[str, dict[str, Any]], FakeClient]:
    """Return the details of guests with these NICs."""
    client = FakeClient(answer)
    found: dict[str, dict[str, Any]] = {
        key: {"config": {"net0": net}} for key, net in configs.items()
    }
    guests: Any = [SimpleNamespace(key=key, kind="vm", site="") for key in configs]
    clients: Any = {"": client}
    add_vnets(clients, guests, found, 5.0)
    return found, client


def test_a_guest_on_a_vnet_has_its_zone() -> None:
    found, client = details_of(
        ROWS, a="virtio=BC:24:11:00:00:01,bridge=tabc", b="virtio=BC:24:11:00:00:02,bridge=vmbr0"
    )
    assert found["a"]["vnet"] == ["tabc", "tenants"]
    assert "vnet" not in found["b"]
    assert client.paths == [("cluster", "sdn", "vnets")]
    variables = detail_variables("vm", found["a"], ["config"], AddressRule())
    assert (variables["proxmox_vnet"], variables["proxmox_zone"]) == ("tabc", "tenants")
    assert "proxmox_vnet" not in detail_variables("vm", found["b"], ["config"], AddressRule())


def test_a_site_without_other_bridges_is_not_asked() -> None:
    _found, client = details_of(ROWS, b="virtio=BC:24:11:00:00:02,bridge=vmbr0")
    assert client.paths == []


def test_vnets_that_cannot_be_read_are_left_out() -> None:
    denied = PermissionDenied(attempted="x", answer="y", next_step="z", reason="no right")
    for answer in (denied, None, {"no": "list"}, ["no row"]):
        found, _client = details_of(answer, a="virtio=BC:24:11:00:00:01,bridge=tabc")
        assert "vnet" not in found["a"]
