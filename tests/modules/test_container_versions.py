# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers on Proxmox VE 8.4, whose pve-container is 5.2 or 5.3, and on versions to come.

The differences are those of the history of pve-container, see tests/simulator/schema/older.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.versions import RELEASE
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab

SMALL: dict[str, Any] = {"source": "debian-13-standard", "memory": "1G", "default_storage": "ceph"}


def converged(lab: Lab, module: str = "container", **options: Any) -> dict[str, Any]:
    """Return the result of a task that check mode has foreseen and whose second run is empty."""
    foreseen = do(lab, module, check=True, **options)
    result = do(lab, module, **options)
    assert result["diff"] == foreseen["diff"]
    assert result["changed"]
    assert not do(lab, module, **options)["changed"]
    return result


def test_life_of_a_container(old: Lab) -> None:
    """Create, change, grow, add a volume, take a snapshot, clone, move, remove."""
    made = converged(old, name="web", **SMALL, nics=[{"bridge": "vmbr0"}], state="started")
    assert made["container"]["status"] == "running"
    vmid = made["container"]["vmid"]
    # 8.4 creates privileged containers unless the request says otherwise.
    assert old.client.get("nodes", made["container"]["node"], "lxc", vmid, "config")["unprivileged"]
    converged(old, name="web", cores=2, tags=["proxy"], mounts=[{"path": "/data", "size": "2G"}])
    converged(old, name="web", rootfs={"size": "6G"})
    do(old, "snapshot", name="web", snapshot="s1")
    copy = {"name": "copy", "source": "web", "snapshot": "s1", "full": True}
    assert converged(old, "clone", **copy)["kind"] == "container"
    do(old, "snapshot", name="web", snapshot="s1", state="absent")
    converged(old, name="web", node="pve3")
    listed = do(old, "container_info", config=True)["containers"]
    assert {row["name"] for row in listed} == {"copy", "web"}
    converged(old, name="web", state="absent", force=True)


def test_both_kinds_in_one_list(old: Lab) -> None:
    vms = [{"name": "db", "source": "debian-13", "cores": 1}]
    containers = [{"name": "web", **SMALL, "cores": 1}]
    result = do(old, "vms", vms=vms, containers=containers, tenant="acme")
    assert {row["kind"] for row in result["vms"]} == {"vm", "container"}


NEWER: list[tuple[dict[str, Any], str]] = [
    ({"entrypoint": "/bin/own"}, "entrypoint"),
    ({"environment": {"A": "1"}}, "env"),
    ({"nics": [{"bridge": "vmbr0", "host_managed": True}]}, "net0"),
    ({"rootfs": {"options": {"idmap": "passthrough"}}}, "rootfs"),
    ({"mounts": [{"path": "/a", "size": "1G", "options": {"keepattrs": True}}]}, "mp0"),
]


@pytest.mark.parametrize(("options", "key"), NEWER, ids=[key for _options, key in NEWER])
def test_newer_option_is_refused_with_the_version(
    old: Lab, options: dict[str, Any], key: str
) -> None:
    do(old, "container", name="web", **SMALL)
    for name in ("web", "new"):
        failure = refused(old, "container", name=name, **SMALL, **options)
        assert (failure["error"]["category"], failure["error"]["version"]) == (
            "NotSupported",
            "8.4",
        )
        assert key in failure["msg"]


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"options": {"brand-new": 1}}, "brand-new"),
    ({"nics": [{"bridge": "vmbr0", "options": {"brand-new": 1}}]}, "net0"),
]


@pytest.mark.parametrize(("options", "key"), UNKNOWN, ids=["option", "sub-key"])
def test_only_a_newer_server_judges_an_unknown_name(
    unused: Lab, options: dict[str, Any], key: str
) -> None:
    """A server of the schema's version would refuse it, so that no request is sent."""
    failure = refused(unused, "container", name="web", **SMALL, **options)
    assert "brand-new" in failure["msg"]
    newer = ".".join(map(str, (*RELEASE[:2], RELEASE[2] + 1)))
    for node in ("pve1", "pve2", "pve3"):
        unused.simulator.steer(f"/nodes/{node}", {"version": newer})
    foreseen = do(unused, "container", check=True, name="web", **SMALL, **options)
    doubt = f"New container 'web': whether PVE {newer} takes {key} is known to the server only"
    assert foreseen["warnings"] == [doubt]
    unused.simulator.reset_log()
    # The simulated server does not know the name either.
    result = unused.run("container", name="web", **SMALL, **options)
    assert "brand-new" in str(unused.simulator.writes()[0]["params"])
    assert (result["error"]["status"], result["error"]["path"][-4:]) == (400, "/lxc")
