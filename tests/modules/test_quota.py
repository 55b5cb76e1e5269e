# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a tenant may have: before the first write, while a VM grows, and when several runs ask at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.quota import (
    QuotaFigures,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import node_of
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource import race
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.race import RaceReading
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.create.quota_race import (
    QuotaRule,
)
from tests.modules.estate_lab import Lab, first_number, open_lab, run_at_once

BLANK: dict[str, Any] = {
    "disks": [{"size": 2, "storage": "ceph"}, {"size": 1, "storage": "local-lvm"}],
    "memory": "1G",
    "cores": 2,
    "sockets": 2,
}
GIB = 1 << 30


@pytest.fixture
def own(quiet: Lab) -> Lab:
    """A cluster in which acme has one VM with 4 cores, 1 GiB of memory and 3 GiB of disks, and
    globex has another.
    """
    for tenant in ("acme", "globex"):
        quiet.vm(name=f"{tenant}-old", tenant=tenant, **BLANK)
    return quiet


FIGURES = {"vms": (1, 1), "cores": (4, 4), "memory": (GIB, GIB), "disk": (3 * GIB, 3 * GIB)}
JUST = {"vms": 2, "cores": 8, "memory": "2G", "disk": "6G"}
LESS = {"vms": 1, "cores": 7, "memory": "2047M", "disk": "5G"}


@pytest.mark.parametrize("form", ["quota", "quotas"])
@pytest.mark.parametrize("kind", FIGURES)
def test_one_more_vm_must_fit(own: Lab, kind: str, form: str) -> None:
    def limits(values: dict[str, Any]) -> dict[str, Any]:
        limit = {kind: values[kind]}
        return (
            {"quota": limit}
            if form == "quota"
            else {"quotas": {"Acme": limit, "globex": {"vms": 0}}}
        )

    foreseen = own.run("vm", check=True, name="new", tenant="acme", **BLANK, **limits(LESS))
    assert foreseen["error"]["category"] == "QuotaExceeded"
    result = own.refused(name="new", tenant="acme", **BLANK, **limits(LESS))
    assert (result["error"]["category"], result["error"]["reason"]) == ("QuotaExceeded", "quota")
    figures = result["error"]["quota"][kind]
    assert (figures["used"], figures["wanted"]) == FIGURES[kind]
    assert "acme" in result["msg"]
    assert kind in result["msg"]
    assert own.vm(name="new", tenant="acme", **BLANK, **limits(JUST))["changed"]
    assert not own.vm(name="new", tenant="acme", **BLANK, **limits(JUST))["changed"]


@pytest.mark.usefixtures("fast")
def test_an_unfinished_clone_counts() -> None:
    """A clone has the tags of its source until the run that makes it continues (qemu-server:
    API2/Qemu.pm, clone_vm), so one that was left behind has no tag of the tenant.
    """
    with open_lab("--task-ms", "default=20,qmclone=2000") as lab:
        left: dict[str, Any] = {"name": "web1", "tenant": "acme", "source": "debian-13"}
        first = lab.run("vm", task_timeout=1, **left)
        assert first["error"]["category"] == "TaskTimeout", first
        vmid = first_number("web1", "acme")
        (node,) = [
            row["node"]
            for row in lab.client.get("cluster", "resources", type="vm")
            if row["vmid"] == vmid
        ]
        path = ("nodes", node, "qemu", vmid, "config")
        while lab.client.get(*path).get("lock"):
            lab.client.clock.sleep(0.2)
        assert "tenant_acme" not in lab.client.get(*path).get("tags", "")
        for kind, limit, used in (("vms", 1, 1), ("cores", 2, 2), ("memory", "2G", 2 << 30)):
            other = {**left, "name": "web2", "quota": {kind: limit}}
            result = lab.refused(**other)
            assert result["error"]["quota"][kind]["used"] == used, result
            assert lab.run("vm", check=True, **{**other, "tenant": "globex"}).get("changed")
        # The VM itself counts once, and those that are complete are not read.
        assert lab.vm(quota={"vms": 1}, **left)["vm"]["vmid"] == vmid
        lab.simulator.reset_log()
        assert lab.refused(**{**left, "name": "web2", "quota": {"vms": 1}})
        read = [request["path"] for request in lab.simulator.log()]
        assert not [path for path in read if f"/qemu/{vmid}/" in path]


def test_a_clone_counts_what_it_will_have(own: Lab) -> None:
    """The template has 2 cores, 2 GiB of memory and a disk of 3 GiB."""
    quota = {"cores": 6, "memory": "3G", "disk": "6G"}
    for more, kind in (
        ({"cores": 3}, "cores"),
        ({"memory": "3G"}, "memory"),
        ({"disks": [{"size": "4G"}]}, "disk"),
    ):
        result = own.refused(name="new", tenant="acme", source="debian-13", quota=quota, **more)
        assert result["error"]["quota"].keys() == {kind}, result["msg"]
    made = own.vm(name="new", tenant="acme", source="debian-13", quota=quota, state="started")
    assert made["done"] == made["plan"]
    assert made["vm"]["status"] == "running"


GROWTH: list[tuple[dict[str, Any], str]] = [
    ({"cores": 3}, "cores"),
    ({"memory": "2G"}, "memory"),
    ({"disks": [{"name": "scsi0", "size": "3G"}]}, "disk"),
    ({"disks": [{"name": "scsi4", "size": "1G", "storage": "ceph"}]}, "disk"),
]


@pytest.mark.parametrize(("change", "kind"), GROWTH, ids=str)
def test_an_update_that_grows_counts(own: Lab, change: dict[str, Any], kind: str) -> None:
    quota = {"vms": 1, "cores": 4, "memory": "1G", "disk": "3G"}
    result = own.refused(name="acme-old", tenant="acme", quota=quota, **change)
    assert result["error"]["quota"].keys() == {kind}
    wider = {**quota, kind: {"cores": 6, "memory": "2G", "disk": "4G"}[kind]}
    assert own.vm(name="acme-old", tenant="acme", quota=wider, **change)["changed"]


def test_a_quota_that_is_exceeded_already_stops_only_what_grows(own: Lab) -> None:
    quota = {"vms": 0, "cores": 1, "memory": "128M", "disk": "1G"}
    assert not own.vm(name="acme-old", tenant="acme", quota=quota, **BLANK)["changed"]
    assert own.vm(name="acme-old", tenant="acme", quota=quota, cores=1, description="smaller")[
        "changed"
    ]
    assert own.vm(name="acme-old", tenant="acme", quota=quota, state="started")["changed"]
    result = own.refused(name="acme-old", tenant="acme", quota=quota, memory="2G", cores=1)
    assert result["error"]["quota"].keys() == {"memory"}
    result = own.refused(name="acme-new", tenant="acme", quota=quota, **BLANK)
    assert result["error"]["quota"].keys() == set(FIGURES)
    assert own.vm(name="acme-old", tenant="acme", quota=quota, state="absent")["changed"]


def test_a_vm_that_is_taken_over_counts_as_new(own: Lab) -> None:
    own.vm(name="nobodys", **BLANK)
    result = own.refused(name="nobodys", tenant="acme", adopt=True, quota={"vms": 1})
    assert result["error"]["quota"] == {"vms": {"used": 1, "wanted": 1, "limit": 1}}
    assert (
        own.vm(name="nobodys", tenant="acme", adopt=True, quota={"vms": 2})["vm"]["tenant"]
        == "acme"
    )


def test_templates_count_for_their_disks_only(own: Lab) -> None:
    own.vm(
        name="image",
        tenant="acme",
        state="template",
        **BLANK,
        quota={"vms": 1, "cores": 4, "disk": "6G"},
    )
    result = own.refused(
        name="new", tenant="acme", **BLANK, quota={"vms": 2, "cores": 8, "disk": "8G"}
    )
    assert result["error"]["quota"] == {
        "disk": {"used": 6 * GIB, "wanted": 3 * GIB, "limit": 8 * GIB}
    }


def test_what_the_listing_does_not_know_yet_counts(name: str) -> None:
    with open_lab("--lag-s", "60") as lab:
        lab.vm(name=name, tenant="acme", **BLANK)
        result = lab.refused(
            name=f"{name}-2", tenant="acme", **BLANK, quota={"cores": 7, "memory": "10G"}
        )
        assert result["error"]["quota"] == {"cores": {"used": 4, "wanted": 4, "limit": 7}}


WRONG: list[dict[str, Any]] = [
    {"quota": {"vms": 1}},
    {"tenant": "acme", "quota": {"vms": -1}},
    {"tenant": "acme", "quota": {"disk": "plenty"}},
    {"tenant": "acme", "quotas": {"acme": {"vm": 1}}},
    {"tenant": "acme", "quotas": {"acme": 1}},
    {"tenant": "acme", "quotas": {"no tag": {"vms": 1}}},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_a_quota_that_makes_no_sense(quiet: Lab, options: dict[str, Any]) -> None:
    result = quiet.refused(name="new", **BLANK, **options)
    assert result["error"]["category"] == "ValidationFailed"
    assert "quota" in result["msg"]


# -- several at once
# --------------------------------------------------------------------------------


@pytest.fixture
def busy() -> Iterator[Lab]:
    with open_lab("--lag-s", "8", "--latency-ms", "5") as opened:
        yield opened


def of_tenant(lab: Lab, tenant: str) -> set[int]:
    """Return the VMIDs that a tenant really has, from the nodes themselves."""
    found = set()
    for node in ("pve1", "pve2", "pve3"):
        rows = lab.client.get("nodes", node, "qemu")
        found |= {
            row["vmid"] for row in rows if f"tenant_{tenant}" in row.get("tags", "").split(";")
        }
    return found


@pytest.mark.parametrize("kind", ["vms", "cores", "memory", "disk"])
@pytest.mark.parametrize("source", [None, "debian-13"])
def test_runs_that_together_exceed_a_quota_end_within_it(
    busy: Lab, kind: str, source: str | None
) -> None:
    """Six runs, and room for two: who is too many removes what it made and says so."""
    vm = (
        {"source": source}
        if source
        else {"disks": [{"size": 3, "storage": "ceph"}], "cores": 2, "memory": "2G"}
    )
    room = {"vms": 2, "cores": 5, "memory": "5G", "disk": "7G"}[kind]
    all_wanted = [
        {
            "name": f"at-once-{index}",
            "tenant": "acme",
            "quota": {kind: room},
            "state": "started",
            **vm,
        }
        for index in range(6)
    ]
    results = run_at_once(busy, all_wanted)
    made = [result["vm"]["vmid"] for result in results if isinstance(result, dict)]
    failed = [result for result in results if isinstance(result, FleetError)]
    assert of_tenant(busy, "acme") == set(made)
    assert len(made) <= 2
    assert made, "one run should get the remaining quota"
    for error in failed:
        assert error.category == "QuotaExceeded", error
        assert error.details["quota"].keys() == {kind}
        assert "quota of tenant acme" in error.message
        if "removed" in error.details:
            assert "removed again" in error.message
            assert error.details["removed"] not in made
    rows = busy.client.get("nodes", "pve1", "storage", "ceph", "content")
    assert {row["vmid"] for row in rows if row.get("vmid")} <= {9000, 9001, *made}


@pytest.mark.parametrize("source", [None, "debian-13"])
@pytest.mark.parametrize("state", ["present", "started"])
def test_a_new_vm_has_its_marker_until_it_was_counted(
    own: Lab, source: str | None, state: str
) -> None:
    """So no other run uses a VM that may have to give way."""
    options = {"source": source} if source else BLANK
    wanted = {"name": "new", "tenant": "acme", "state": state, "quota": {"vms": 2}, **options}
    foreseen = own.run("vm", check=True, **wanted)
    own.simulator.reset_log()
    made = own.vm(**wanted)
    assert made["plan"] == made["done"] == foreseen["plan"]
    log = own.simulator.log()
    path = f"/nodes/{made['vm']['node']}/qemu/{made['vm']['vmid']}/config"
    (ended,) = [
        index
        for index, request in enumerate(log)
        if request["method"] == "PUT"
        and request["path"].endswith(path)
        and "description" in (*request["params"], request["params"].get("delete"))
    ]
    tagged = max(
        index for index, request in enumerate(log) if "tenant_acme" in str(request["params"])
    )
    counted = max(
        index for index, request in enumerate(log) if request["path"].endswith("/cluster/resources")
    )
    assert tagged < counted < ended
    assert "run=" not in str(own.config(made["vm"]).get("description"))


def breach_after(
    lab: Lab, meddle: Callable[[int, str], None]
) -> Callable[[QuotaRule], RaceReading]:
    """Return a look after another has done something with the VM; it has to give way."""

    def look(rule: QuotaRule) -> RaceReading:
        meddle(rule.vmid, str(node_of(lab.client, rule.vmid)))
        breach = {"vms": {"used": 1, "wanted": 1, "limit": 1}}
        return RaceReading({1: QuotaFigures(1)}, lambda _guests: breach, lambda _number: True)

    return look


def test_a_vm_that_gives_way_may_be_gone_already(
    own: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(vmid: int, node: str) -> None:
        own.client.task("DELETE", "nodes", node, "qemu", vmid, attempted="x", timeout=60)

    monkeypatch.setattr(QuotaRule, "read", breach_after(own, remove))
    result = own.run("vm", name=name, tenant="globex", quota={"vms": 9}, **BLANK)
    assert result["error"]["category"] == "QuotaExceeded"
    assert result["error"]["removed"] == first_number(name, "globex")
    assert "by hand" not in result["msg"]


def test_a_vm_that_gives_way_is_found_on_another_node(
    own: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move(vmid: int, node: str) -> None:
        target = "pve2" if node != "pve2" else "pve3"
        own.client.task(
            *("POST", "nodes", node, "qemu", vmid, "migrate"),
            data={"target": target},
            attempted="x",
            timeout=60,
        )

    monkeypatch.setattr(QuotaRule, "read", breach_after(own, move))
    result = own.run(
        "vm", name=name, tenant="globex", quota={"vms": 9}, disks=[{"size": 1, "storage": "ceph"}]
    )
    assert result["error"]["removed"] == first_number(name, "globex")
    assert len(of_tenant(own, "globex")) == 1


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    "notes", ["<!-- pve.fleet: run=0123456789ab tenant=tenant_globex -->", "done"]
)
def test_a_vm_that_another_run_took_over_is_left_to_it(
    own: Lab, name: str, notes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That run may be at work on it, or have finished it."""

    def take(vmid: int, node: str) -> None:
        own.client.write(
            *("PUT", "nodes", node, "qemu", vmid, "config"),
            data={"description": notes},
            attempted="x",
        )

    monkeypatch.setattr(QuotaRule, "read", breach_after(own, take))
    made = own.vm(name=name, tenant="globex", quota={"vms": 2}, **BLANK)
    assert made["vm"]["vmid"] == first_number(name, "globex")
    assert "run=" not in str(own.config(made["vm"]).get("description"))


@pytest.mark.usefixtures("fast")
def test_a_vm_that_was_left_before_it_was_counted_counts_as_new(own: Lab, name: str) -> None:
    left = own.vm(name=name, tenant="acme", **BLANK)["vm"]
    own.client.write(
        *("PUT", "nodes", left["node"], "qemu", left["vmid"], "config"),
        data={"description": "<!-- pve.fleet: run=0123456789ab tenant=tenant_acme -->"},
        attempted="x",
    )
    result = own.refused(name=name, tenant="acme", quota={"vms": 1}, **BLANK)
    assert result["error"]["quota"] == {"vms": {"used": 1, "wanted": 1, "limit": 1}}
    assert own.vm(name=name, tenant="acme", quota={"vms": 2}, **BLANK)["changed"]


def test_two_that_grow_at_once_are_reported(busy: Lab) -> None:
    names = ["grow-1", "grow-2"]
    for name in names:
        busy.vm(name=name, tenant="acme", disks=[{"size": 1, "storage": "ceph"}], cores=1)
    busy.simulator.steer("settings", {"latency_ms": 60})
    all_wanted = [
        {"name": name, "tenant": "acme", "cores": 3, "quota": {"cores": 4}} for name in names
    ]
    results = run_at_once(busy, all_wanted)
    failed = [result for result in results if isinstance(result, FleetError)]
    assert failed
    assert all(error.category == "QuotaExceeded" for error in failed)
    grown = [error for error in failed if "has grown" in error.message]
    assert len(grown) != 1 or len(failed) == 1
    if len(failed) == 2:
        assert all("shrink one of the two" in error.message for error in failed)


def test_a_vm_that_cannot_be_removed_again_is_named(
    busy: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for it in vain, and then give way too, as far as they can."""
    monkeypatch.setattr(race, "PATIENCE", 1.0)
    busy.simulator.fault(method="DELETE", path=r"/qemu/\d+$", status=500, message="no", times=9)
    results = run_at_once(
        busy,
        [
            {
                "name": f"{name}-{index}",
                "tenant": "acme",
                "quota": {"vms": 1},
                "disks": [{"size": 1}],
            }
            for index in range(3)
        ],
    )
    stuck = [
        error for error in results if isinstance(error, FleetError) and "removed" in error.details
    ]
    for error in stuck:
        assert error.details["removed"] is None
        assert "could not be removed again" in error.message
        assert "Remove it by hand" in error.message
