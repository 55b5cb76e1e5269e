# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a VM over those of its class: merged by key and by slot, from module vm as from a list
of VMs.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import fleet_spec
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.items import merge
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired.parse import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.hardware import DesiredVm

STORAGES = {"fast": {"storage": "ceph", "ssd": True}, "slow": "nas"}


def checked(spec: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    result = ArgumentSpecValidator(spec).validate(options)
    assert not result.error_messages, result.error_messages
    return result.validated_parameters


def alone(lower: dict[str, Any], own: dict[str, Any]) -> DesiredVm:
    options = {
        "name": "w",
        "class": "c",
        "classes": {"c": lower},
        "storage_classes": STORAGES,
        **own,
    }
    return read_options(checked(vm_spec(), options)).desired


def of_class(lower: dict[str, Any], own: dict[str, Any]) -> DesiredVm:
    said = {
        "vms": [{"name": "w", "class": "c", **own}],
        "classes": {"c": lower},
        "storage_classes": STORAGES,
    }
    params = checked(fleet_spec(), said)
    return read_options(merge(params, params["vms"][0])).desired


def said_for_all(lower: dict[str, Any], own: dict[str, Any]) -> DesiredVm:
    params = checked(
        fleet_spec(), {"vms": [{"name": "w", **own}], "storage_classes": STORAGES, **lower}
    )
    return read_options(merge(params, params["vms"][0])).desired


DISKS: list[tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]] = [
    ([{"size": 30}], [{"cache": "unsafe"}], {"scsi0": (30, None, None, {"cache": "unsafe"})}),
    (
        [{"size": 30}],
        [{"name": "scsi1", "size": 5}],
        {"scsi0": (30, None, None, {}), "scsi1": (5, None, None, {})},
    ),
    ([{"name": "scsi0", "size": 30}], [{"size": 40}], {"scsi0": (40, None, None, {})}),
    (
        [{"size": 30}],
        [{"bus": "virtio", "size": 4}],
        {"scsi0": (30, None, None, {}), "virtio0": (4, None, None, {})},
    ),
    ([{"size": 30, "storage": "ceph"}], [{"storage": "nas"}], {"scsi0": (30, "nas", None, {})}),
    (
        [{"size": 30, "storage": "ceph"}],
        [{"storage_class": "slow"}],
        {"scsi0": (30, "nas", None, {})},
    ),
    (
        [{"size": 30, "storage_class": "fast"}],
        [{"storage": "nas"}],
        {"scsi0": (30, "nas", None, {"ssd": "1"})},
    ),
    (
        [{"size": 30, "storage_class": "fast"}],
        [{"storage": ""}],
        {"scsi0": (30, "ceph", None, {"ssd": "1"})},
    ),
    (
        [{"size": 30}],
        [{"iso": "local:iso/x.iso"}],
        {"scsi0": (None, None, "local:iso/x.iso", {"media": "cdrom"})},
    ),
    ([{"iso": "local:iso/x.iso"}], [{"size": 3}], {"scsi0": (3, None, None, {})}),
    (
        [{"size": 30, "cache": "unsafe"}],
        [{"cache": ""}],
        {"scsi0": (30, None, None, {"cache": None})},
    ),
    (
        [{"size": 3, "options": {"ro": 1}}],
        [{"options": {"aio": "native"}}],
        {"scsi0": (3, None, None, {"ro": "1", "aio": "native"})},
    ),
    ([{"size": 30}], [], {}),
]


@pytest.mark.parametrize("way", [alone, of_class, said_for_all])
@pytest.mark.parametrize(("lower", "own", "expected"), DISKS, ids=str)
def test_disks_are_merged_by_slot(way: Any, lower: Any, own: Any, expected: dict[str, Any]) -> None:
    found = way({"disks": lower}, {"disks": own})
    seen = {
        disk.slot: (
            disk.size >> 30 if disk.size else None,
            disk.storage,
            disk.volume,
            dict(disk.options),
        )
        for disk in found.hardware.disks
    }
    assert seen == expected


NICS: list[tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]] = [
    ([{"network": "lan"}], [{"vlan": 7}], {"net0": {"bridge": "vmbr0", "tag": "7"}}),
    ([{"network": "lan"}], [{"bridge": "vmbr9"}], {"net0": {"bridge": "vmbr9"}}),
    ([{"bridge": "vmbr9"}], [{"network": "dmz"}], {"net0": {"bridge": "vmbr1"}}),
    (
        [{"network": "lan"}],
        [{"name": "net1", "network": "dmz"}],
        {"net0": {"bridge": "vmbr0"}, "net1": {"bridge": "vmbr1"}},
    ),
    (
        [{"bridge": "vmbr0", "ip": "10.0.0.5/24", "gateway": "10.0.0.1"}],
        [{"ip": "dhcp"}],
        {"net0": {"bridge": "vmbr0"}, "ipconfig0": {"ip": "dhcp", "gw": None}},
    ),
    ([{"network": "lan"}], [], {}),
]


@pytest.mark.parametrize("way", [alone, of_class, said_for_all])
@pytest.mark.parametrize(("lower", "own", "expected"), NICS, ids=str)
def test_cards_are_merged_by_slot(way: Any, lower: Any, own: Any, expected: dict[str, Any]) -> None:
    parts = way({"nics": lower}, {"nics": own}).hardware.property_strings
    assert {
        key: dict(values) for key, values in parts.items() if key.startswith(("net", "ipconfig"))
    } == expected


@pytest.mark.parametrize("way", [alone, of_class, said_for_all])
def test_a_slot_that_is_twice_in_one_list_is_refused(way: Any) -> None:
    double = [{"name": "scsi0", "size": 1}, {"name": "scsi0", "size": 2}]
    for lower, own in ((double, [{"size": 3}]), ([{"size": 3}], double)):
        with pytest.raises(ValidationFailed, match="listed twice"):
            way({"disks": lower}, {"disks": own})


@pytest.mark.parametrize("way", [alone, of_class, said_for_all])
def test_cloud_init_of_a_class_keeps_what_the_task_does_not_say(way: Any) -> None:
    """Ansible fills in defaults of nested options: they are not what the task says."""
    lower = {"cloud_init": {"drive": "scsi1", "snippets": {"meta": "local:snippets/m.yml"}}}
    found = way(
        lower, {"cloud_init": {"user": "ops", "snippets": {"user": "local:snippets/u.yml"}}}
    )
    assert found.hardware.cloud_init_drive == "scsi1"
    assert found.hardware.property_strings["cicustom"] == {
        "meta": "local:snippets/m.yml",
        "user": "local:snippets/u.yml",
    }


def test_one_card_of_a_class_can_be_left_out() -> None:
    found = alone(
        {"nics": [{"network": "lan"}, {"network": "dmz"}]},
        {"nics": [{"name": "net1", "state": "absent"}]},
    )
    assert "net1" not in found.hardware.property_strings
    assert {"net1", "ipconfig1"} <= found.hardware.unset
