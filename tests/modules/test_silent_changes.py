# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of guests that no listing and no list of tasks shows: docs/decisions/0037."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.snapshot_lab import machine, take
from tests.simulator.schema.definition import load_paths

ROOT = Path(__file__).resolve().parents[2]
RECORD = (ROOT / "docs" / "decisions" / "0037-no-change-signal.md").read_text("utf-8")
GUESTS = ("/nodes/{node}/qemu/{vmid}", "/nodes/{node}/lxc/{vmid}")
# Fields of the listing that change although no one changes the guest.
MEASURED = frozenset("cpu mem memhost disk diskread diskwrite netin netout uptime".split())


def silent_calls() -> set[str]:
    """Return the writing calls of a guest whose result is null, as the schema has them."""
    found: set[str] = set()
    for path, methods in load_paths("9.2").items():
        if not path.startswith(GUESTS):
            continue
        for method, call in methods.items():
            result = call.get("returns")
            if method != "GET" and isinstance(result, dict) and result.get("type") == "null":
                found.add(f"{method} {path}")
    return found


def test_the_record_names_every_call_without_a_task() -> None:
    named = set(re.findall("`((?:PUT|POST|DELETE) [^`]+)`", RECORD))
    families = re.findall("`(firewall/[a-z]+)`", RECORD)
    harmless = ("agent/file-write", "dbus-vmstate", "sendkey")
    assert all(f"`{name}`" in RECORD for name in harmless)
    others = {
        call
        for call in silent_calls() - named
        if not any(f"/{part}" in call for part in (*families, *harmless))
    }
    assert others == set()
    assert named <= silent_calls()


def test_the_record_counts_every_writing_call() -> None:
    results: dict[str, list[str]] = {}
    for path, methods in load_paths("9.2").items():
        if not path.startswith(GUESTS):
            continue
        for method in methods.keys() - {"GET"}:
            result = (methods[method].get("returns") or {}).get("type", "console")
            results.setdefault("text" if path.endswith("/monitor") else result, []).append(path)
    rows = re.findall(
        r"^\| (?:a|an|the)? ?`?(UPID|null|text|object|console).*? \| (\d+) \|", RECORD, re.M
    )
    counted = {name: int(number) for name, number in rows}
    counted["string"] = counted.pop("UPID")
    assert counted == {name: len(found) for name, found in results.items()}
    assert sum(counted.values()) == int(re.findall(r"has (\d+) writing calls", RECORD)[0])


@pytest.fixture
def guests(unused: Lab) -> Iterator[dict[str, tuple[str | int, ...]]]:
    """A VM and a container, each with a snapshot: their paths."""
    vm = machine(unused, scsi1="ceph:1", ide2="ceph:cloudinit", ciuser="one")
    take(unused, vm, "before")
    add_container(unused, 730, hostname="quiet1")
    path = ("nodes", "pve1", "lxc", 730, "snapshot")
    unused.client.task("POST", *path, data={"snapname": "before"})
    yield {
        "vm": ("nodes", vm["node"], "qemu", vm["vmid"]),
        "container": ("nodes", "pve1", "lxc", 730),
    }
    unused.simulator.ask("DELETE", "/containers/730", None)


def seen(lab: Lab, path: tuple[str | int, ...]) -> tuple[Any, ...]:
    """Return the row of a guest without measured values, and the tasks of all nodes."""
    rows = lab.client.get("cluster", "resources", type="vm")
    (row,) = [row for row in rows if row["vmid"] == path[-1]]
    shown = {name: value for name, value in row.items() if name not in MEASURED}
    tasks = [
        task["upid"]
        for node in ("pve1", "pve2", "pve3")
        for task in lab.client.get("nodes", node, "tasks", source="all", limit=500)
    ]
    return shown, tasks


@pytest.mark.parametrize(
    ("guest", "part", "data"),
    [
        ("vm", ("config",), {"description": "another"}),
        ("vm", ("config",), {"net3": "virtio,bridge=vmbr0"}),
        ("container", ("config",), {"description": "another"}),
        ("container", ("config",), {"net3": "name=eth3,bridge=vmbr0"}),
        ("vm", ("snapshot", "before", "config"), {"description": "another"}),
        ("vm", ("unlink",), {"idlist": "scsi1"}),
        ("container", ("snapshot", "before", "config"), {"description": "another"}),
    ],
)
def test_a_change_is_seen_only_in_the_configuration(
    unused: Lab,
    guests: dict[str, tuple[str | int, ...]],
    guest: str,
    part: tuple[str, ...],
    data: dict[str, str],
) -> None:
    path = guests[guest]
    before, digest = seen(unused, path), unused.client.get(*path, "config")["digest"]
    unused.client.write("PUT", *path, *part, data=data)
    assert seen(unused, path) == before
    assert unused.client.get(*path, "config")["digest"] != digest


def test_a_new_cloud_init_drive_is_seen_nowhere(
    unused: Lab, guests: dict[str, tuple[str | int, ...]]
) -> None:
    path = guests["vm"]
    unused.client.write("PUT", *path, "config", data={"ciuser": "another"})
    before = seen(unused, path)
    unused.client.write("PUT", *path, "cloudinit")
    assert seen(unused, path) == before
    rows = unused.client.get(*path, "cloudinit")
    assert [row for row in rows if "pending" in row or "delete" in row] == []


def test_a_container_that_becomes_a_template_has_a_task(
    unused: Lab, guests: dict[str, tuple[str | int, ...]]
) -> None:
    """PVE returns no UPID of it (pve-container, API2/LXC.pm, template)."""
    path = guests["container"]
    unused.client.task("DELETE", *path, "snapshot", "before")
    _row, before = seen(unused, path)
    assert unused.client.write("POST", *path, "template") is None
    (upid,) = set(seen(unused, path)[1]) - set(before)
    assert ":vztemplate:730:" in upid


@pytest.mark.parametrize("guest", ["vm", "container"])
def test_a_change_of_the_firewall_is_seen_nowhere(
    unused: Lab, guests: dict[str, tuple[str | int, ...]], guest: str
) -> None:
    """It is a file of its own (pve-firewall, save_vmfw_conf), without a task and an entry in a log."""
    path = (*guests[guest], "firewall")
    before, digest = (
        seen(unused, guests[guest]),
        unused.client.get(*guests[guest], "config")["digest"],
    )
    member = {"cidr": "10.20.0.0/24"}
    for method, part, data in (
        ("PUT", ("options",), {"enable": 1}),
        ("POST", ("rules",), {"type": "in", "action": "ACCEPT", "enable": 1}),
        ("PUT", ("rules", 0), {"comment": "another"}),
        ("DELETE", ("rules", 0), {}),
        ("POST", ("aliases",), {"name": "here", **member}),
        ("PUT", ("aliases", "here"), {"cidr": "10.30.0.0/24"}),
        ("DELETE", ("aliases", "here"), {}),
        ("POST", ("ipset",), {"name": "some"}),
        ("POST", ("ipset", "some"), member),
        ("DELETE", ("ipset", "some", "10.20.0.0/24"), {}),
        ("DELETE", ("ipset", "some"), {}),
    ):
        unused.client.write(method, *path, *part, data=data)
        assert seen(unused, guests[guest]) == before, part
    assert unused.client.get(*guests[guest], "config")["digest"] == digest
