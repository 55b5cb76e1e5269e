# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Automation Platform counts guests: extensions/audit/event_query.yml over results of modules.

The platform runs each query with the Python package jq on the results of a job's tasks. It ignores
what has no canonical facts, and counts different canonical facts as different nodes
(awx/main/tasks/host_indirect.py).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.modules.estate_lab import Lab, open_lab

jq = pytest.importorskip("jq")

REPO = Path(__file__).resolve().parents[2]
QUERIES: dict[str, dict[str, str]] = yaml.safe_load(
    (REPO / "extensions" / "audit" / "event_query.yml").read_text(encoding="utf-8")
)
# Modules that return guests which are not there any more, numbers of guests, or guests without
# their state, which another task of the same play reports.
NOT_COUNTED = {"container_image", "tenant"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        yield lab


def counted(module: str, result: Any) -> list[dict[str, Any]]:
    """Return what the platform counts of a result, after a check of its form."""
    query = QUERIES[f"pve.fleet.{module}"]["query"]
    nodes: list[dict[str, Any]] = jq.compile(query).input_value(result).all()
    for node in nodes:
        assert set(node) == {"name", "canonical_facts", "facts"}
        assert isinstance(node["name"], str)
        assert node["name"]
        for facts in (node["canonical_facts"], node["facts"]):
            assert facts
            assert None not in facts.values()
    identities = [json.dumps(node["canonical_facts"], sort_keys=True) for node in nodes]
    assert len(identities) == len(set(identities)), "a guest is counted twice"
    names = [node["name"] for node in nodes]
    assert len(names) == len(set(names)), "AWX drops all records of the job: unique_together"
    return nodes


def numbers(module: str, result: Any) -> list[int]:
    return sorted(node["canonical_facts"]["vmid"] for node in counted(module, result))


def types(module: str, result: Any) -> dict[int, str]:
    """Return the type of device of each counted guest, by its number."""
    nodes = counted(module, result)
    return {node["canonical_facts"]["vmid"]: node["facts"]["device_type"] for node in nodes}


def test_every_module_that_returns_guests_has_a_query() -> None:
    returning = set()
    for file in (REPO / "plugins" / "modules").glob("*.py"):
        module = importlib.import_module(
            f"ansible_collections.pve.fleet.plugins.modules.{file.stem}"
        )
        returned = yaml.safe_load(module.RETURN) or {}
        for value in (returned, returned.get("drift", {}).get("contains", {})):
            for key in ("vm", "vms", "container", "containers"):
                kind = (value.get(key) or {}).get("type")
                items = (value.get(key) or {}).get("elements", "dict")
                if kind in ("dict", "list") and items == "dict":
                    returning.add(file.stem)
    assert {"vm", "vms", "vm_info", "container", "container_info"} <= returning
    assert {f"pve.fleet.{name}" for name in returning - NOT_COUNTED} == QUERIES.keys()


def test_each_vm_is_counted_once_by_every_module(lab: Lab) -> None:
    options: dict[str, Any] = {"tenant": "acme", "cores": 1, "memory": 256}
    listed = {"vms": [{"name": "web1"}, {"name": "web2"}], **options}
    assert numbers("vms", lab.run("vms", check=True, **listed)) == []
    made = lab.run("vms", **listed)
    known = sorted(row["vmid"] for row in made["vms"])
    assert numbers("vms", made) == known
    assert numbers("vms", lab.run("vms", details=False, **listed)) == known

    template = {"vms": [{"name": "golden", "state": "template"}], **options}
    for details in (True, False):
        listed_template = lab.run("vms", details=details, **template)
        assert listed_template["vms"][0]["template"] is True
        assert numbers("vms", listed_template) == []
    assert lab.run("vms", remove=True, **template)["changed"]

    one = lab.run("vm", name="db1", **options)
    assert numbers("vm", one) == [one["vm"]["vmid"]]
    assert numbers("vm", lab.run("vm", check=True, name="db9", **options)) == []
    wanted: dict[str, Any] = {"name": "app1", "source": "debian-13", "tenant": "acme"}
    assert numbers("clone", lab.run("clone", check=True, **wanted)) == []
    clone = lab.run("clone", **wanted)
    assert numbers("clone", clone) == [clone["vm"]["vmid"]]
    known = sorted([*known, one["vm"]["vmid"], clone["vm"]["vmid"]])

    taken = lab.run("snapshot", tenant="acme", snapshot="before")
    assert numbers("snapshot", taken) == known
    assert numbers("snapshot_info", lab.run("snapshot_info", tenant="acme")) == known
    assert numbers("vm_info", lab.run("vm_info", tenant="acme")) == known
    assert numbers("vm_info", lab.run("vm_info", tenant="acme", config=True)) == known
    drift = lab.run("drift_info", vms=[*listed["vms"], {"name": "nope"}], defaults=options)
    assert numbers("drift_info", drift) == sorted(row["vmid"] for row in made["vms"])

    everything = lab.run("vm_info")
    templates = {row["vmid"] for row in everything["vms"] if row["template"]}
    assert templates
    assert not templates & set(numbers("vm_info", everything))
    gone = lab.run("vm", name="db1", tenant="acme", state="absent")
    assert numbers("vm", gone) == []


CONTAINER: dict[str, Any] = {
    "tenant": "initech",
    "source": "debian-13-standard",
    "default_storage": "ceph",
    "memory": 256,
}


def test_containers_are_counted_by_every_module(lab: Lab) -> None:
    planned = lab.run("container", check=True, name="web1", **CONTAINER)
    assert planned["container"]["name"] == "web1"
    assert numbers("container", planned) == []
    one = lab.run("container", name="web1", **CONTAINER)
    web1 = one["container"]["vmid"]
    assert types("container", one) == {web1: "Container"}

    containers = [{"name": "web1"}, {"name": "web2", **CONTAINER}]
    listed: dict[str, Any] = {"vms": [{"name": "db1"}], "containers": containers}
    both = {**listed, "tenant": "initech", "memory": 256}
    assert numbers("vms", lab.run("vms", check=True, **both)) == [web1]
    made = lab.run("vms", **both)
    vmids = {row["name"]: row["vmid"] for row in made["vms"]}
    known = {web1: "Container", vmids["web2"]: "Container", vmids["db1"]: "VM"}
    assert types("vms", made) == known

    taken = lab.run("snapshot", tenant="initech", snapshot="before")
    assert types("snapshot", taken) == known
    assert types("snapshot_info", lab.run("snapshot_info", tenant="initech")) == known
    drift = lab.run("drift_info", defaults={"tenant": "initech"}, **listed)
    assert types("drift_info", drift) == known
    of_kind = {vmid: kind for vmid, kind in known.items() if kind == "Container"}
    assert types("container_info", lab.run("container_info", tenant="initech")) == of_kind

    lab.run("container", name="base", state="template", **CONTAINER)
    assert len(lab.run("container_info", tenant="initech")["containers"]) == len(of_kind) + 1
    assert types("container_info", lab.run("container_info", tenant="initech")) == of_kind
    gone = lab.run("container", name="web2", tenant="initech", state="absent")
    assert numbers("container", gone) == []


def test_a_vm_stays_the_same_when_it_is_renamed(lab: Lab) -> None:
    options: dict[str, Any] = {"tenant": "globex", "cores": 1, "memory": 256}
    first = lab.run("vm", name="old", **options)
    renamed = lab.run("vm", vmid=first["vm"]["vmid"], name="new", **options)
    assert renamed["vm"]["name"] == "new"
    before, after = counted("vm", first), counted("vm", renamed)
    assert before[0]["canonical_facts"] == after[0]["canonical_facts"]
    assert before[0]["facts"] == after[0]["facts"]
    known = f"{first['site']} {first['vm']['vmid']}"
    assert [before[0]["name"], after[0]["name"]] == [f"old ({known})", f"new ({known})"]


def test_guests_of_one_name_and_of_two_clusters_are_counted(lab: Lab) -> None:
    """AWX stores the name of a counted node with its job, unique together (the model
    IndirectManagedNodeAudit of awx/main/models/indirect_managed_node_audit.py). Two clusters have
    the same VMIDs.
    """
    options: dict[str, Any] = {"cores": 1, "memory": 256, "name": "twin"}
    for tenant in ("acme", "globex"):
        lab.run("vm", tenant=tenant, **options)
    found = lab.run("vm_info")
    assert found["site"] == "127.0.0.1"
    names = [node["name"] for node in counted("vm_info", found)]
    assert len([name for name in names if name.startswith("twin (127.0.0.1 ")]) == 2
    elsewhere = counted("vm_info", {**found, "site": "munich"})
    here = [node["canonical_facts"] for node in counted("vm_info", found)]
    assert all(node["canonical_facts"] not in here for node in elsewhere)
    row = {"vmid": 107, "name": "a", "node": "pve1"}
    drift = {"vms": [{**row, "site": "vienna"}, {**row, "site": "munich"}]}
    facts = [one["canonical_facts"] for one in counted("drift_info", {"drift": drift, "site": ""})]
    assert {one["site"] for one in facts} == {"vienna", "munich"}


@pytest.mark.parametrize("module", [name.removeprefix("pve.fleet.") for name in QUERIES])
@pytest.mark.parametrize(
    "result",
    [
        {},
        {"failed": True, "msg": "no connection", "vms": [{"name": "a", "tenant": "acme"}]},
        {"vm": None, "vms": None, "drift": None, "container": None, "containers": None},
        {"results": [{"vm": {"vmid": 1}}], "changed": False},  # of a loop, whose items have events
        {"censored": "the output has been hidden"},
        {"vm": "text", "vms": [None, "text", {"vmid": None, "status": "running"}]},
        {"container": "text", "containers": [None, "text", {"vmid": None, "status": "running"}]},
    ],
    ids=["empty", "failed", "nulls", "loop", "censored", "malformed", "malformed containers"],
)
def test_other_results_count_nothing(module: str, result: dict[str, Any]) -> None:
    assert counted(module, result) == []


@pytest.mark.parametrize(
    ("module", "result", "name"),
    [
        ("vm_info", {"vms": [{}]}, "vm (107)"),
        ("container_info", {"containers": [{}]}, "container (107)"),
        ("vms", {"vms": [{"kind": "container"}]}, "container (107)"),
        ("vms", {"vms": [{"kind": "vm"}]}, "vm (107)"),
    ],
    ids=str,
)
def test_a_guest_without_a_name_has_one(
    module: str, result: dict[str, list[dict[str, Any]]], name: str
) -> None:
    row = {"vmid": 107, "name": None, "status": "running"}
    nodes = counted(module, {key: [{**row, **more}] for key, (more,) in result.items()})
    assert [node["name"] for node in nodes] == [name]
