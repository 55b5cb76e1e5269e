# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The restore of a guest of a lost site, its obstacles, and guests here that are in its way."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.failover import (
    failover_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.archive import Archive
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.choose import (
    ChosenArchive,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.desired import (
    DesiredFailover,
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.guest import (
    RestoredGuest,
    SiteNames,
    find_missing,
    incoming_of,
    with_source,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.read import (
    find_conflict,
)

VOLUME = "nas:backup/vzdump-qemu-101-2026_11_20-20_15_33.vma"
OLDER = "nas:backup/vzdump-qemu-101-2026_11_19-20_15_33.vma"
CONFIG = {
    "name": "web",
    "tags": "shop;tenant_acme",
    "scsi0": "ceph:vm-101-disk-0,size=1G",
    "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr1",
    "startup": "order=2,up=5",
    "description": "The shop.",
}


def desired(**options: Any) -> DesiredFailover:
    defaults = {name: rule.get("default") for name, rule in failover_spec().items()}
    return read_desired({**defaults, "storages": ["nas"], **options}, 1000.0, "00ff00")


def chosen(**config: str) -> ChosenArchive:
    archive = Archive(VOLUME, "nas", "dir", "pve1", "", "qemu", 101, 900, 1)
    return ChosenArchive(archive, {**CONFIG, **config})


def incoming(**options: Any) -> RestoredGuest:
    one, problems = incoming_of(desired(**options), chosen(), {"acme": "acme-pool"})
    assert problems == []
    return one


def test_a_guest_keeps_its_vmid_name_and_tenant() -> None:
    one = incoming(storage_map={"ceph": "zfs", "other": "zfs"}, networks={"vmbr1": "vmbr0"})
    assert (one.order, one.wait, one.tenant, one.starts) == (2, 5, "acme", True)
    restore = one.restore
    assert (restore.new_name, restore.owner.tag, restore.volume) == ("web", "tenant_acme", VOLUME)
    assert restore.storage_map == {"ceph": "zfs"}
    options = dict(restore.options)
    assert options.pop("nics") == [{"name": "net0", "mac": "BC:24:11:00:00:01", "bridge": "vmbr0"}]
    assert options == {
        "state": "started",
        "description": f"The shop.\n\nFailover from {VOLUME}.",
        "placement": {"storage_overcommit": 1},
        "pool": "acme-pool",
        "vmid": 101,
    }


def test_other_vmids_and_guests_that_are_not_started() -> None:
    one = incoming(vmid_range=[500, 600], start="onboot", pools={"ACME": "other"}, node="pve2")
    options = one.restore.options
    assert (options["vmid_range"], options["state"]) == ([500, 600], "present")
    assert (options["pool"], options["node"], "vmid" in options) == ("other", "pve2", False)
    assert not one.starts


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"tags": "tenant_globex"}, "tenant globex has no pool here"),
        ({"tags": "tenant_globex;tenant_acme"}, "several tenant tags"),
        ({"hostpci0": "01:00"}, "hostpci0 uses a device"),
    ],
)
def test_obstacles_of_a_configuration(config: dict[str, str], part: str) -> None:
    _one, problems = incoming_of(desired(), chosen(**config), {"acme": "acme"})
    assert len(problems) == 1
    assert part in problems[0]


def test_a_guest_without_a_name_cannot_be_described() -> None:
    with pytest.raises(ValidationFailed):
        incoming_of(desired(), chosen(name=""), {"acme": "acme"})


def test_each_missing_storage_and_bridge_is_found() -> None:
    place = SiteNames({"zfs": frozenset(("images",)), "nas": frozenset(("backup",))}, frozenset())
    found = find_missing(desired(), chosen(), place)
    assert [text.partition(": ")[2].partition(" is not")[0] for text in found] == [
        "storage ceph for its disks",
        "bridge or VNet vmbr1",
    ]
    mapped = desired(storage="zfs", networks={"vmbr1": "vmbr0"})
    here = SiteNames(place.storages, frozenset(("vmbr0",)))
    assert find_missing(mapped, chosen(), here) == []
    assert "storage nas" in find_missing(desired(storage="nas"), chosen(), here)[0]


@pytest.mark.parametrize(
    ("notes", "name", "status", "part"),
    [
        (with_source("", VOLUME), "web", "stopped", ""),
        (with_source("", OLDER), "web", "running", ""),
        (with_source("", OLDER), "web", "stopped", f"{VOLUME} is newer"),
        (with_source("", VOLUME.replace("101", "102")), "web", "running", "not overwritten"),
        (with_source("", VOLUME), "db", "running", "not overwritten"),
        ("The shop.", "web", "running", "not overwritten"),
    ],
)
def test_only_a_guest_that_a_failover_has_restored_is_continued(
    notes: str, name: str, status: str, part: str
) -> None:
    config = {"name": name, "description": notes}
    actual = Actual(VM, 101, "pve1", status, live=config, target=config)
    problem = find_conflict(incoming(), actual)
    assert part in problem
    assert bool(problem) == bool(part)


@pytest.mark.parametrize(
    "options",
    [
        {"run": "../x"},
        {"max_age": "soon"},
        {"networks": {"vmbr1": "a bridge"}},
        {"vmid_range": [900]},
        {"parallel": 0},
        {"placement": {"nowhere": 1}},
        {"exclude": ["-"]},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        desired(**options)
