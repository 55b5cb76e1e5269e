# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module usage against three simulated sites: the use of guests that live shortly, grow or move."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import machine

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "usage.schema.json").read_text("utf-8")
)
GIB = 1 << 30
CLASSES = {"small": {"cores": 2, "memory": "256M"}, "large": {"cores": 4, "memory": 8192}}


class Metered:
    """Sites with one time, which a test puts forward."""

    def __init__(self, labs: dict[str, Lab], path: Path) -> None:
        self.labs = labs
        self.path = path
        self.ahead = 0.0

    def now(self) -> float:
        return time.time() + self.ahead

    def forward(self, seconds: int) -> None:
        """Put the clocks of the sites and of the controller forward."""
        self.ahead += seconds
        for lab in self.labs.values():
            lab.simulator.ask("PUT", "/clock", {"to": self.now()})

    def run(self, *, check: bool = False, **options: Any) -> dict[str, Any]:
        """Return the result of the module for all sites; nothing is written to them."""
        sites = [{"name": name, **lab.connection} for name, lab in self.labs.items()]
        for lab in self.labs.values():
            lab.simulator.reset_log()
        given = {"sites": sites, "path": str(self.path), "retries": 1, **options}
        result = run_module("usage", given, check=check)
        for lab in self.labs.values():
            assert lab.simulator.writes() == []
        return result

    def usage(self) -> dict[str, Any]:
        """Return the use of the present month, after a sample."""
        month = time.strftime("%Y-%m", time.gmtime(self.now()))
        result = self.run(month=month, classes=CLASSES)
        assert not result.get("failed"), result
        jsonschema.validate(result["usage"], SCHEMA)
        return result

    def task(self, lab: Lab, node: str, kind: str) -> dict[str, Any]:
        """Return the last task of a type."""
        rows = lab.client.get("nodes", node, "tasks", typefilter=kind)
        return max(rows, key=lambda row: row["endtime"])


@pytest.fixture
def metered(
    unused: Lab, munich: Lab, quiet: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Metered]:
    sites = Metered({"berlin": unused, "munich": munich, "paris": quiet}, tmp_path / "usage")
    monkeypatch.setattr(Clock, "time", lambda _self: sites.now())
    # A whole day in the present month remains, whatever the time of the test is.
    moment = time.gmtime()
    into = ((32 - moment.tm_mday) % 31 + 2) * 86400
    sites.forward(into)
    yield sites
    for lab in sites.labs.values():
        lab.simulator.reset()


def seconds(usage: dict[str, Any], site: str, tenant: str) -> dict[str, int]:
    """Return the exact use of a tenant at a site."""
    rows = [row for row in usage["tenants"] if (row["site"], row["tenant"]) == (site, tenant)]
    names = ("cores", "memory", "disk", "backup")
    return {name: sum(row["seconds"][name] for row in rows) for name in names}


def require_equal_sums(usage: dict[str, Any]) -> None:
    for name in ("cores", "memory", "disk", "backup"):
        total = sum(row["seconds"][name] for row in usage["tenants"])
        assert total == sum(row["seconds"][name] for row in usage["nodes"])
        assert total == usage["total"]["seconds"][name]


def test_ten_minutes_of_a_guest_at_one_of_three_sites(metered: Metered) -> None:
    """The guest is created between two samples, grows, moves, and is removed between two others."""
    berlin = metered.labs["berlin"]
    metered.run()
    metered.forward(200)
    vm = machine(berlin, tags="tenant_acme", cores=2, disk="ceph:1")
    created = metered.task(berlin, "pve1", "qmcreate")["starttime"]
    metered.forward(100)
    metered.run()
    metered.forward(100)
    path = ("nodes", "pve1", "qemu", vm["vmid"])
    berlin.client.task("PUT", *path, "resize", data={"disk": "scsi0", "size": "3G"})
    resized = metered.task(berlin, "pve1", "resize")["endtime"]
    metered.forward(200)
    metered.run()
    metered.forward(100)
    berlin.client.task("POST", *path, "migrate", data={"target": "pve2"})
    moved = metered.task(berlin, "pve1", "qmigrate")["endtime"]
    metered.forward(200)
    metered.run()
    berlin.client.task("DELETE", "nodes", "pve2", "qemu", vm["vmid"])
    removed = metered.task(berlin, "pve2", "qmdestroy")["endtime"]
    metered.forward(300)
    result = metered.usage()
    usage = result["usage"]
    assert seconds(usage, "berlin", "acme") == {
        "cores": 2 * (removed - created),
        "memory": 256 * 1024 * 1024 * (removed - created),
        "disk": GIB * (resized - created) + 3 * GIB * (removed - resized),
        "backup": 0,
    }
    require_equal_sums(usage)
    nodes = {
        row["node"]: row["seconds"]["cores"] for row in usage["nodes"] if row["site"] == "berlin"
    }
    assert nodes["pve2"] == 2 * (removed - moved)
    (row,) = [row for row in usage["tenants"] if row["tenant"] == "acme"]
    assert (row["class"], row["uncertain"]["cores"]) == ("small", "0.000")
    lines = list(csv.DictReader(io.StringIO(result["csv"])))
    (line,) = [line for line in lines if line["tenant"] == "acme"]
    assert line["core_hours"] == row["hours"]["cores"]


def test_a_clone_a_container_and_a_backup(metered: Metered) -> None:
    """The task of a clone has the VMID of its source (qemu-server: API2/Qemu.pm, clone_vm)."""
    munich = metered.labs["munich"]
    metered.run()
    metered.forward(60)
    source = machine(munich, name="source", cores=1)
    metered.forward(240)
    metered.run()
    add_container(munich, 720, hostname="proxy1", tags="tenant_acme", cores=3, memory=512)
    data = {"newid": 31000, "name": "copy"}
    munich.client.task("POST", "nodes", "pve1", "qemu", source["vmid"], "clone", data=data)
    cloned = metered.task(munich, "pve1", "qmclone")["starttime"]
    munich.client.write(
        "PUT", "nodes", "pve1", "qemu", 31000, "config", data={"tags": "tenant_globex"}
    )
    made = int(metered.now())
    volid = "local:backup/vzdump-qemu-31000-2026_11_20-01_00_00.vma.zst"
    body = {"volid": volid, "new": True, "size": GIB, "ctime": made}
    munich.simulator.steer("/volumes/pve1", body)
    for _sample in range(3):
        metered.forward(300)
        metered.run()
    usage = metered.usage()["usage"]
    end = max(json.loads((metered.path / "munich" / "last.json").read_text())["sample"]["time"], 0)
    found = seconds(usage, "munich", "globex")
    assert found["cores"] == end - cloned
    assert found["backup"] == GIB * (end - made)
    require_equal_sums(usage)
    # Nothing shows when the simulator's container was made.
    (acme,) = [row for row in usage["tenants"] if row["tenant"] == "acme"]
    assert acme["seconds"]["cores"] > 0
    assert float(acme["uncertain"]["cores"]) > 0
    munich.simulator.ask("DELETE", "/containers/720", None)


def test_a_change_without_a_task_has_a_bound(metered: Metered) -> None:
    paris = metered.labs["paris"]
    vm = machine(paris, tags="tenant_acme", cores=2)
    metered.run()
    metered.forward(300)
    paris.client.write("PUT", "nodes", "pve1", "qemu", vm["vmid"], "config", data={"cores": 6})
    metered.forward(300)
    usage = metered.usage()["usage"]
    certain = seconds(usage, "paris", "acme")["cores"]
    doubt = sum(float(r["uncertain"]["cores"]) for r in usage["tenants"] if r["tenant"] == "acme")
    assert certain == pytest.approx(2 * 600, abs=20)
    assert doubt * 3600 == pytest.approx(4 * 600, abs=20)


def test_a_site_that_does_not_answer_is_named(metered: Metered) -> None:
    metered.run()
    metered.labs["munich"].simulator.fault(method="GET", path="/nodes", status=595, times=99)
    metered.forward(300)
    result = metered.run()
    assert (result["complete"], result["changed"]) == (False, True)
    (row,) = [row for row in result["sites"] if row["reason"]]
    assert (row["site"], row["guests"]) == ("munich", None)
    assert any("munich" in text for text in result["warnings"])
    metered.labs["munich"].simulator.clear_faults()
    metered.forward(4000)
    usage = metered.usage()["usage"]
    gaps = [row["site"] for row in usage["missing"] if row["part"] == "site"]
    assert {"berlin", "munich", "paris"} == set(gaps)
    assert usage["complete"] is False


def test_check_mode_writes_no_file(metered: Metered) -> None:
    result = metered.run(check=True)
    assert result["changed"] is True
    assert not metered.path.exists()
    metered.run()
    before = {path: path.read_text() for path in metered.path.rglob("*.json")}
    metered.forward(300)
    metered.run(check=True)
    assert {path: path.read_text() for path in metered.path.rglob("*.json")} == before


def test_mistakes_are_refused_before_a_request(metered: Metered) -> None:
    for options, words in (
        ({"path": "usage"}, "is not absolute"),
        ({"month": "2026-13"}, "is not a month"),
        ({"max_gap": 5}, "max_gap"),
        ({"classes": {"small": 5}}, "classes.small"),
        ({"classes": {"small": {"cores": "two", "memory": "1G"}}}, "classes.small.cores"),
    ):
        result = metered.run(**options)
        assert result.get("failed"), options
        assert words in result["msg"]
        assert metered.labs["berlin"].simulator.log() == []


def test_a_damaged_file_is_kept(metered: Metered) -> None:
    metered.run()
    file = metered.path / "berlin" / "last.json"
    file.write_text("{", encoding="utf-8")
    result = metered.run()
    assert result["failed"]
    assert "last.json" in result["msg"]
    assert file.read_text(encoding="utf-8") == "{"
