# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metered use beside random histories of three sites, whose true use is known to the second."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.row import OK, TaskRow
from ansible_collections.pve.fleet.plugins.module_utils._operation.usage.document import (
    DayUse,
    day_in,
    day_text,
    days_with,
    sample_in,
    sample_text,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.usage.model import (
    ArchiveUse,
    GuestUse,
    Sample,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.usage.month import (
    AMOUNTS,
    Class,
    read_month,
    usage_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.usage.statement import csv_of
from ansible_collections.pve.fleet.plugins.module_utils._operation.usage.timeline import use_between
from tests.cases import repeated

MONTH = "2026-10"
START, END = read_month(MONTH)
STEP = 300
DOCUMENT = (Path(__file__).resolve().parents[4] / "docs" / "usage.md").read_text("utf-8")
GIB = 1 << 30
CLASSES = [Class("small", 1, GIB), Class("large", 4, 8 * GIB)]


@dataclass
class Site:
    """The true history of a site: the use in each second, and the tasks that show parts of it."""

    random: random.Random
    now: int
    guests: dict[int, GuestUse] = field(default_factory=dict)
    archives: dict[str, ArchiveUse] = field(default_factory=dict)
    tasks: list[TaskRow] = field(default_factory=list)
    tenants: dict[str, Counter[str]] = field(default_factory=dict)
    nodes: dict[str, Counter[str]] = field(default_factory=dict)
    changed: dict[int, int] = field(default_factory=dict)

    def task(self, kind: str, ident: object, node: str) -> None:
        """Add a task that ends now."""
        upid = f"UPID:{node}:{len(self.tasks):08X}:0:{self.now:08X}:{kind}:{ident}:root@pam:"
        times = (self.now, self.now)
        self.tasks.append(TaskRow(upid, node, kind, str(ident), "root@pam", None, *times, OK, "OK"))

    def pass_to(self, until: int) -> None:
        """Count the use until then."""
        seconds, self.now = until - self.now, until
        for guest in self.guests.values():
            use = {"cores": guest.cores, "memory": guest.memory, "disk": guest.disk or 0}
            self._count(guest.tenant, guest.node, use, seconds)
        for archive in self.archives.values():
            self._count(archive.tenant, archive.node, {"backup": archive.size}, seconds)

    def _count(self, tenant: str, node: str, use: dict[str, int], seconds: int) -> None:
        for sums, key in ((self.tenants, tenant), (self.nodes, node)):
            part = sums.setdefault(key, Counter())
            for name, amount in use.items():
                part[name] += amount * seconds

    def create(self, *, by_clone: bool) -> None:
        """Create a guest; it exists from the start of its task."""
        free = set(range(100, 112)) - self.guests.keys()
        if not free:
            return
        vmid = self.random.choice(sorted(free))
        size = self.random.choice(CLASSES)
        self.guests[vmid] = GuestUse(
            "vm",
            vmid,
            f"vm{vmid}",
            self.random.choice(("acme", "globex", "")),
            self.random.choice(("pve1", "pve2")),
            size.cores,
            size.memory,
            10 * GIB,
            1,
        )
        kind, ident = ("qmclone", 9000) if by_clone else ("qmcreate", vmid)
        self.task(kind, ident, self.guests[vmid].node)

    def was_changed(self, vmid: int) -> bool:
        """Return whether the size of a guest changed a short time ago: no sample may have shown it."""
        return self.changed.get(vmid, 0) > self.now - STEP

    def remove(self, vmid: int) -> None:
        if self.was_changed(vmid):
            return  # no sample shows the last size
        guest = self.guests.pop(vmid)
        self.task("qmdestroy", vmid, guest.node)

    def move(self, vmid: int) -> None:
        guest = self.guests[vmid]
        node = "pve2" if guest.node == "pve1" else "pve1"
        self.guests[vmid] = replace(guest, node=node)
        self.task("qmigrate", vmid, guest.node)

    def resize(self, vmid: int) -> None:
        guest = self.guests[vmid]
        if self.was_changed(vmid):
            return  # two resizes between two samples have a bound
        self.changed[vmid] = self.now
        self.guests[vmid] = replace(guest, disk=(guest.disk or 0) + GIB)
        self.task("resize", vmid, guest.node)

    def change(self, vmid: int) -> None:
        """Change the configuration, which is not a task."""
        if self.was_changed(vmid):
            return  # no sample shows a change that the next one takes back
        self.changed[vmid] = self.now
        size = self.random.choice(CLASSES)
        guest = self.guests[vmid]
        self.guests[vmid] = replace(guest, cores=size.cores, memory=size.memory)

    def back_up(self, vmid: int) -> None:
        guest = self.guests[vmid]
        name = f"backups/backup/vzdump-qemu-{vmid}-{self.now}.vma.zst"
        made = ArchiveUse("backups", "", vmid, guest.tenant, 3 * GIB, self.now)
        self.archives[name] = made

    def prune(self) -> None:
        """Remove a backup that a sample has shown."""
        old = [name for name, made in self.archives.items() if made.made <= self.now - STEP]
        if old:
            del self.archives[self.random.choice(sorted(old))]

    def sample(self, before: Sample | None) -> tuple[Sample, list[TaskRow]]:
        """Return what the readings of a site show now."""
        seen = frozenset(task.upid for task in self.tasks if task.started >= self.now - 300)
        fresh = [task for task in self.tasks if before and task.ended > before.time]
        archives = dict(self.archives)
        sample = Sample(self.now, dict(self.guests), archives=archives, seen=seen)
        return sample, fresh


class Meter:
    """The files of a site, as the module writes them."""

    def __init__(self) -> None:
        self.last: Sample | None = None
        self.days: dict[str, DayUse] = {}

    def take(self, site: Site, lost: dict[str, str] | None = None, *, again: bool = False) -> None:
        sample, tasks = site.sample(self.last)
        if self.last is not None:
            window = use_between(self.last, sample, tasks, lost or {}, 3600)
            for _time in range(2 if again else 1):
                for day in days_with(self.days, window):
                    self.days[day.day] = day_in(day_text("", day))
            sample = replace(sample, waiting=window.waiting, gone=window.gone)
        self.last = sample_in(sample_text("", sample))


def measured(meters: dict[str, Meter], now: int = END) -> dict[str, Any]:
    sites = {name: meter.days.values() for name, meter in meters.items()}
    return usage_of(sites, MONTH, CLASSES, now)


def sums(rows: Iterable[dict[str, Any]], site: str, key: str) -> dict[str, Counter[str]]:
    """Return the measured amounts by tenant or by node of a site, without zeros."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row["site"] == site:
            part = found.setdefault(row[key], Counter())
            part.update({name: row["seconds"][name] for name in AMOUNTS})
    return {name: part for name, part in found.items() if any(part.values())}


def nonzero(truth: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    return {name: part for name, part in truth.items() if any(part.values())}


def live(site: Site, meter: Meter, steps: int, act: Any) -> None:
    """Let a history happen: a few changes in each window, then a sample."""
    meter.take(site)
    for _step in range(steps):
        end = site.now + STEP
        for _change in range(site.random.randint(0, 2)):
            site.pass_to(site.random.randint(site.now + 1, max(site.now + 1, end - 1)))
            act(site)
        site.pass_to(max(end, site.now))
        meter.take(site, again=site.random.random() < 0.1)


@pytest.mark.parametrize("seed", repeated(range(20), first=2, more=4))
def test_use_is_exact_if_tasks_show_each_change(seed: int) -> None:
    """Guests that live for ten minutes, are resized or moved, at three sites with samples every five
    minutes. Sums over tenants and classes are equal to sums over nodes.
    """
    sites = {name: Site(random.Random(f"{name}{seed}"), START) for name in ("a", "b", "c")}
    meters = {name: Meter() for name in sites}
    born: dict[tuple[str, int], int] = {}

    def act(site: Site) -> None:
        name = next(name for name, one in sites.items() if one is site)
        old = [vmid for vmid in site.guests if site.now - born[name, vmid] >= 600]
        choice = site.random.choice(("create", "remove", "move", "resize", "back_up"))
        if choice == "create":
            site.create(by_clone=False)
            for vmid in site.guests:
                born.setdefault((name, vmid), site.now)
        elif old and choice == "remove":
            vmid = site.random.choice(old)
            site.remove(vmid)
            if vmid not in site.guests:
                del born[name, vmid]
        elif old:
            getattr(site, choice)(site.random.choice(old))

    for name, site in sites.items():
        live(site, meters[name], 150, act)
        site.pass_to(site.now + STEP)
        meters[name].take(site)
    usage = measured(meters)
    for name, site in sites.items():
        assert sums(usage["tenants"], name, "tenant") == nonzero(site.tenants)
        assert sums(usage["nodes"], name, "node") == nonzero(site.nodes)
    assert usage["total"]["uncertain"] == dict.fromkeys(AMOUNTS, "0.000")
    assert {row["class"] for row in usage["tenants"]} == {"", "small", "large"}
    assert [row["part"] for row in usage["missing"]] == ["site"] * 3


@pytest.mark.parametrize("seed", repeated(range(20), first=2, more=4))
def test_true_use_lies_within_the_bounds(seed: int) -> None:
    """Changes without a task, clones, which have the VMID of their source, and removed backups."""
    sites = {name: Site(random.Random(f"{name}{seed}"), START) for name in ("a", "b", "c")}
    meters = {name: Meter() for name in sites}
    born: dict[int, int] = {}

    def act(site: Site) -> None:
        choice = site.random.choice(("create", "remove", "change", "prune", "back_up"))
        old = [vmid for vmid in site.guests if site.now - born[vmid] >= 600]
        if choice == "create":
            site.create(by_clone=True)
            born.update(dict.fromkeys(site.guests.keys() - born.keys(), site.now))
        elif choice == "prune":
            site.prune()
        elif old and choice == "remove":
            vmid = site.random.choice(old)
            site.remove(vmid)
            if vmid not in site.guests:
                del born[vmid]
        elif old and choice in ("change", "back_up"):
            getattr(site, choice)(site.random.choice(old))

    for name, site in sites.items():
        born.clear()
        live(site, meters[name], 100, act)
        for _sample in range(3):  # the samples that decide about the last changes
            site.pass_to(site.now + STEP)
            meters[name].take(site)
    usage = measured(meters)
    for name, site in sites.items():
        check_bounds(usage, name, site)


def check_bounds(usage: dict[str, Any], name: str, site: Site) -> None:
    """Check that the true use of each tenant lies between the certain use and its bound."""
    certain = sums(usage["tenants"], name, "tenant")
    assert sums_of(certain) == sums_of(sums(usage["nodes"], name, "node"))
    for tenant, truth in site.tenants.items():
        rows = [row for row in usage["tenants"] if (row["site"], row["tenant"]) == (name, tenant)]
        for part, unit in (("cores", 1), ("memory", GIB), ("disk", GIB), ("backup", GIB)):
            low = certain.get(tenant, Counter())[part] / unit / 3600
            high = low + sum(float(row["uncertain"][part]) for row in rows)
            true = truth[part] / unit / 3600
            assert low - 0.001 <= true <= high + 0.002, (tenant, part)


def sums_of(parts: dict[str, Counter[str]]) -> Counter[str]:
    return sum(parts.values(), Counter())


def test_a_guest_between_two_samples_is_named() -> None:
    site, meter = Site(random.Random(1), START), Meter()
    meter.take(site)
    site.pass_to(START + 60)
    site.create(by_clone=False)
    vmid = next(iter(site.guests))
    site.pass_to(START + 200)
    site.remove(vmid)
    site.pass_to(START + 300)
    meter.take(site)
    usage = measured({"a": meter})
    assert usage["tenants"] == []
    guest = [row for row in usage["missing"] if row["part"] == "guest"]
    assert [(row["subject"], row["from"], row["to"]) for row in guest] == [
        (str(vmid), "2026-10-01T00:01:00Z", "2026-10-01T00:03:20Z")
    ]
    assert usage["complete"] is False


def test_a_missing_day_is_named() -> None:
    site, meter = Site(random.Random(1), START), Meter()
    site.create(by_clone=False)
    while site.now < END:
        meter.take(site)
        day = (site.now - START) // 86400
        site.pass_to(site.now + (2 * 86400 if day == 9 else 3600))
    meter.take(site)
    usage = measured({"a": meter})
    (gap,) = usage["missing"]
    assert (gap["from"], gap["to"]) == ("2026-10-10T00:00:00Z", "2026-10-12T00:00:00Z")
    assert gap["days"] == ["2026-10-10", "2026-10-11"]
    (row,) = [row for row in usage["tenants"] if row["class"]]
    hours = int(row["seconds"]["cores"]) / 3600 / max(g.cores for g in site.guests.values())
    assert hours == 29 * 24


def test_a_month_that_is_over_is_closed_and_complete() -> None:
    """Three sites with a sample every hour, from before the month until after its end."""
    meters = {name: Meter() for name in ("a", "b", "c")}
    cores = 0
    for name, meter in meters.items():
        site = Site(random.Random(name), START - 3600)
        site.create(by_clone=False)
        (guest,) = site.guests.values()
        cores += guest.cores
        while site.now <= END:
            meter.take(site)
            site.pass_to(site.now + 3600)
        meter.take(site)
    usage = measured(meters)
    assert (usage["closed"], usage["complete"], usage["missing"]) == (True, True, [])
    assert usage["total"]["seconds"]["cores"] == cores * (END - START)
    lines = csv_of(usage).splitlines()
    assert lines[0].split(",") == [
        *("month", "site", "tenant", "class"),
        *("core_hours", "memory_gib_hours", "disk_gib_hours", "backup_gib_hours"),
        *("uncertain_core_hours", "uncertain_memory_gib_hours"),
        *("uncertain_disk_gib_hours", "uncertain_backup_gib_hours", "complete"),
    ]
    described = re.findall(r"^\| `([a-z_]+)` \|", DOCUMENT.partition("## The columns")[2], re.M)
    assert described == lines[0].split(",")
    assert {line.rsplit(",", 1)[1] for line in lines[1:]} == {"true"}
    before = measured(meters, END - 1)
    assert (before["closed"], before["complete"]) == (False, False)


def test_a_site_without_files_is_missing_and_a_month_that_is_not_over_is_not_closed() -> None:
    usage = usage_of({"munich": ()}, MONTH, (), END - 1)
    assert (usage["closed"], usage["complete"]) == (False, False)
    (gap,) = usage["missing"]
    assert (gap["site"], len(gap["days"])) == ("munich", 31)


def test_lost_tasks_are_named() -> None:
    site, meter = Site(random.Random(1), START), Meter()
    meter.take(site)
    site.pass_to(START + 300)
    meter.take(site, {"pve1": "its list of tasks no longer reaches back to the last sample"})
    rows = [row for row in measured({"a": meter})["missing"] if row["part"] == "tasks"]
    assert [row["subject"] for row in rows] == ["pve1"]
