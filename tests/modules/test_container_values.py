# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of containers: those of a creation, and options by PVE's own names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab

NEW: dict[str, Any] = {"source": "debian-13-standard", "default_storage": "ceph", "memory": "1G"}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqmZ1rKy6V1bF0m1oWqUu5Q0b3kHk0aXn3mYl2Wc9dE ann"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMh8Jt2pVw4cR7nXqLZ5sYb1gKd0eUo3fTi6vHaNzBmC bob"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def changed(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the result of a change that check mode has foreseen and a second run confirms."""
    lab.simulator.reset_log()
    foreseen = do(lab, "container", check=True, **options)
    assert lab.simulator.writes() == []
    result = do(lab, "container", **options)
    assert result["changed"]
    assert foreseen["diff"] == result["diff"]
    assert foreseen["plan"] == result["plan"] == result["done"]
    lab.simulator.reset_log()
    assert not do(lab, "container", **options)["changed"]
    assert lab.simulator.writes() == []
    return result


def config_of(lab: Lab, vmid: int) -> dict[str, Any]:
    (row,) = do(lab, "container_info", vmid=vmid)["containers"]
    return dict(lab.client.get("nodes", row["node"], "lxc", vmid, "config"))


def test_password_and_keys_are_used_at_creation_only(lab: Lab) -> None:
    """PVE writes both into the new file system, and the configuration has neither (pve-container:
    API2/LXC.pm, create_vm; LXC/Setup/Base.pm, set_user_password).
    """
    secret: dict[str, Any] = {"root_password": "first-secret", "ssh_keys": [KEY]}
    made = do(lab, "container", name="ct1", **NEW, **secret)
    (create,) = [row for row in lab.simulator.writes() if row["path"].endswith("/lxc")]
    assert create["params"].keys() >= {"password"}
    assert create["params"]["ssh-public-keys"] == KEY
    assert "first-secret" not in str(made)
    later: dict[str, Any] = {"root_password": "other-secret", "ssh_keys": [OTHER_KEY]}
    lab.simulator.reset_log()
    for check in (True, False):
        again = do(lab, "container", check=check, name="ct1", **NEW, **later)
        assert not again["changed"]
        assert again["diff"] == {"before": {}, "after": {}}
        assert again.get("warnings", []) == []
    assert lab.simulator.writes() == []
    do(lab, "container", name="ct1", memory="2G", **later)
    (write,) = lab.simulator.writes()
    assert write["params"].keys() == {"memory", "digest"}


def test_options_by_the_names_of_pve_are_set_and_removed(lab: Lab) -> None:
    vmid = do(lab, "container", name="ct1", **NEW)["container"]["vmid"]
    given: dict[str, Any] = {"timezone": "host", "startup": {"order": 2, "up": 5}}
    changed(lab, name="ct1", options=given)
    found = config_of(lab, vmid)
    assert (found["timezone"], found["startup"]) == ("host", "2,up=5")
    changed(lab, name="ct1", options={"startup": {"up": 9}})
    assert config_of(lab, vmid)["startup"] == "2,up=9"
    changed(lab, name="ct1", options={"timezone": None})
    found = config_of(lab, vmid)
    assert "timezone" not in found
    assert found["startup"] == "2,up=9"
    copy = do(lab, "container", name="ct2", **NEW, options=given)["container"]
    assert config_of(lab, copy["vmid"])["startup"] == "2,up=5"
    assert not do(lab, "container", name="ct2", **NEW, options=given)["changed"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"nosuch": 1}, "nosuch"),
        ({"mp0": "ceph:1,mp=/data"}, "mp0"),
        ({"lock": "backup"}, "lock"),
        ({"timezone": {"a": 1}}, "timezone"),
    ],
    ids=str,
)
def test_options_that_pve_does_not_take_are_refused(
    lab: Lab, options: dict[str, Any], reason: str
) -> None:
    do(lab, "container", name="ct1", **NEW)
    for name in ("ct1", "ct2"):
        failure = refused(lab, "container", name=name, **NEW, options=options)
        assert reason in failure["msg"]


def test_a_nic_that_pve_does_not_take_is_refused(lab: Lab) -> None:
    """pve-container: LXC/Config.pm, update_pct_config; pve-common: Network.pm, read_bridge_mtu."""
    nic = {"name": "net3", "bridge": "vmbr0", "host_managed": True, "ip6": "auto"}
    for name in ("ct1", "ct2"):
        failure = refused(lab, "container", name=name, **NEW, nics=[nic])
        assert "Leave out host_managed, or give another ip6" in failure["msg"]
    made = do(lab, "container", name="ct1", **NEW, nics=[{**nic, "link_down": True}])["container"]
    path = ("nodes", made["node"], "lxc", made["vmid"], "config")
    lab.client.write("PUT", *path, data={"net4": "name=eth4,hwaddr=BC:24:11:00:00:04"})
    failure = refused(lab, "container", name="ct1", nics=[{"name": "net4", "mtu": 1400}])
    assert "Give bridge, or leave out mtu" in failure["msg"]


def test_option_of_a_newer_version_is_refused_by_an_old_server(old: Lab) -> None:
    failure = refused(old, "container", name="ct1", **NEW, options={"entrypoint": "/bin/own"})
    assert failure["error"]["category"] == "NotSupported"
    assert "entrypoint" in failure["msg"]


@pytest.mark.parametrize("module", ["vm", "container"])
def test_a_cpu_weight_above_the_largest_is_the_largest(lab: Lab, module: str) -> None:
    """Source: pve-common, CGroup.pm, clamp_cpu_shares; the API schema allows more."""
    kind = {"container": NEW, "vm": {"memory": "1G"}}[module]
    task = {**kind, "name": "heavy", "options": {"cpuunits": 50000}}
    made = do(lab, module, **task)[module]
    path = ("nodes", made["node"], {"vm": "qemu", "container": "lxc"}[module], made["vmid"])
    assert int(lab.client.get(*path, "config")["cpuunits"]) == 10000
    assert not do(lab, module, **task)["changed"]
