# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers in the export: a run of each item with module container changes nothing, nor does a
run of the estate with module vms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.generated.lxc import (
    OPTIONS,
)
from tests.cases import cases
from tests.modules.container_lab import add_container, add_mount
from tests.modules.estate_lab import Lab
from tests.modules.snapshot_lab import check, machine
from tests.modules.test_estate_info import export, provision
from tests.unit.module_utils.estate.container_strategies import (
    OPTIONS_OF_DEVICE,
    OPTIONS_OF_FEATURES,
    OPTIONS_OF_MORE,
    OPTIONS_OF_MOUNT,
    OPTIONS_OF_NIC,
    PLAIN,
    containers,
)
from tests.unit.module_utils.estate.test_promise import many

NIC = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:07:01,ip=10.99.0.77/24,gw=10.99.0.1,type=veth"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def items(result: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the containers of an export by VMID, each with the settings of the whole estate."""
    estate = result["estate"]
    shared = {"state": estate["provision_state"]}
    prefix = estate["provision_defaults"].get("tenant_prefix")
    if prefix:
        shared["tenant_prefix"] = prefix
    return {one["vmid"]: {**shared, **one} for one in estate.get("provision_containers", ())}


def provision_each(lab: Lab, result: Mapping[str, Any]) -> None:
    """Run module container with each item, which must change nothing and cost no write."""
    lab.simulator.reset_log()
    for item in items(result).values():
        done = lab.run("container", **item)
        assert not done.get("failed"), (item, done)
        assert done["changed"] is False, (item, done["plan"])
    assert lab.simulator.writes() == []


@many(cases(60, 8))
@given(found=containers(3))
def test_any_container_is_provisioned_without_a_write(
    cluster: Lab, found: dict[int, dict[str, str]]
) -> None:
    cluster.simulator.reset()
    for vmid, config in found.items():
        runs = vmid % 2 == 0 and "template" not in config
        body = {"node": "pve1", "running": runs, "config": config}
        cluster.simulator.ask("POST", f"/containers/{vmid}", body)
    result = export(cluster)
    assert result["complete"]
    assert result["unsettled"] == []
    assert items(result).keys() == found.keys()
    unused = {vmid for vmid, config in found.items() if "unused0" in config}
    assert {(row["vmid"], row["option"]) for row in result["unexpressed"]} == {
        (vmid, "unused0") for vmid in unused
    }
    with_secrets = {row["vmid"] for row in result["secrets"]}
    assert with_secrets == {vmid for vmid, config in found.items() if "env" in config}
    assert "hunter2" not in str(result)
    provision_each(cluster, result)
    provision(cluster, result["estate"])


def test_random_containers_have_every_option() -> None:
    """Except the lock, which belongs to a task."""
    parts = {
        "mp[n]": {*OPTIONS_OF_MOUNT, *OPTIONS_OF_MORE, "mp", "size", "volume"},
        "rootfs": {*OPTIONS_OF_MOUNT, "size", "volume"},
        "net[n]": {*OPTIONS_OF_NIC, "gw", "gw6", "hwaddr", "name", "type"},
        "features": {*OPTIONS_OF_FEATURES},
        "dev[n]": {*OPTIONS_OF_DEVICE, "path"},
    }
    assert {*PLAIN, *parts, "unused[n]", "template", "lock"} == OPTIONS.keys()
    for key, given_keys in parts.items():
        assert given_keys == OPTIONS[key]["format"].keys(), key


def test_each_option_has_the_name_of_its_module(lab: Lab) -> None:
    add_container(
        lab,
        710,
        running=True,
        hostname="proxy1",
        tags="tenant_acme;web",
        cores=2,
        memory=1024,
        swap=0,
        net0=NIC,
        features="nesting=1,mount=nfs;cifs",
        nameserver="10.0.0.1 10.0.0.2",
        onboot=1,
        startup="order=2",
        description="notes",
        timezone="Europe/Berlin",
    )
    add_mount(lab, 710, "ceph:2,mp=/data,backup=1,mountoptions=noatime;nosuid")
    result = export(lab, tenant="acme")
    (item,) = result["estate"]["provision_containers"]
    assert item == {
        "name": "proxy1",
        "vmid": 710,
        "tenant": "acme",
        "cores": 2,
        "memory": "1G",
        "swap": 0,
        "rootfs": {"storage": "ceph", "size": "1G"},
        "mounts": [
            {
                "name": "mp0",
                "path": "/data",
                "storage": "ceph",
                "size": "2G",
                "backup": True,
                "mount_options": ["noatime", "nosuid"],
            }
        ],
        "nics": [
            {
                "name": "net0",
                "interface": "eth0",
                "bridge": "vmbr0",
                "mac": "BC:24:11:00:07:01",
                "ip": "10.99.0.77/24",
                "gateway": "10.99.0.1",
            }
        ],
        "nameservers": ["10.0.0.1", "10.0.0.2"],
        "features": {"nesting": True, "mount": ["nfs", "cifs"]},
        "ostype": "debian",
        "timezone": "Europe/Berlin",
        "onboot": True,
        "startup": "order=2",
        "tags": ["web"],
        "tags_exact": True,
        "description": "notes",
    }
    assert result["report"] == ["exported 0 VMs, 1 container"]
    provision_each(lab, result)


def test_settings_of_vms_do_not_hold_for_containers(lab: Lab) -> None:
    """Defaults and settings of tenants are about both kinds."""
    for number in (1, 2):
        lab.vm(name=f"web{number}", tenant="acme", pool="acme", memory="1G", onboot=True)
    alone = export(lab)
    assert alone["estate"]["tenants"]["acme"]["defaults"]["onboot"] is True
    assert alone["estate"]["tenants"]["acme"]["pool"] == "acme"
    assert "provision_containers" not in alone["estate"]
    add_container(lab, 710, hostname="proxy1", tags="tenant_acme")
    add_container(lab, 711, hostname="proxy2", tags="tenant_hooli")
    both = export(lab, quotas=True)
    estate = both["estate"]
    assert "pool" not in estate["tenants"]["acme"]
    assert "onboot" not in estate["tenants"]["acme"].get("defaults", {})
    assert estate["tenants"]["acme"]["quota"]["vms"] == 3
    assert estate["tenants"]["hooli"]["quota"]["vms"] == 1
    provision_each(lab, both)
    without = {name: value for name, value in estate.items() if name != "provision_containers"}
    provision(lab, without)


def test_filters_and_templates(lab: Lab) -> None:
    add_container(lab, 710, hostname="proxy1", tags="tenant_acme", pool="acme")
    add_container(lab, 711, hostname="base", template=1)
    machine(lab, name="proxy1", tags="tenant_hooli")
    assert items(export(lab, tenant="acme")).keys() == {710}
    assert items(export(lab, pool="acme")).keys() == {710}
    assert items(export(lab, vms=["711"]))[711]["state"] == "template"
    named = export(lab, vms=["proxy1"])
    assert items(named).keys() == {710}
    assert len(named["estate"]["provision_vms"]) == 1
    assert items(export(lab, templates=False)).keys() == {710}
    provision_each(lab, export(lab))


def test_adoption_of_a_container_only_adds_the_tag(lab: Lab) -> None:
    add_container(lab, 710, hostname="proxy1", tags="web")
    result = export(lab, adopt="acme")
    item = items(result)[710]
    assert (item["tenant"], item["adopt"]) == ("acme", True)
    done = lab.run("container", **item)
    assert done["changed"], done
    config = lab.client.get("nodes", "pve1", "lxc", 710, "config")
    assert set(config["tags"].split(";")) == {"web", "tenant_acme"}
    provision_each(lab, result)


def test_a_container_that_cannot_be_read_is_named(lab: Lab) -> None:
    add_container(lab, 710, hostname="proxy1", tags="tenant_acme")
    lab.simulator.fault(
        method="GET", path="/lxc/710/(config|pending)$", status=500, message="broken", times=None
    )
    result = check(lab, "estate_info", retries=1)
    assert result["complete"] is False
    (row,) = result["missing"]
    assert (row["vmid"], row["tenant"]) == (710, "acme")
    assert items(result)[710].keys() == {"vmid", "state", "tenant"}
    assert result["estate"]["provision_containers"][0]["state"] == "present"
