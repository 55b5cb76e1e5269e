# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Made-up sites, and the reports on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.access.privileges import (
    Privileges,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.nodes import (
    CapacityRules,
    NodeFacts,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.nodes import (
    report as node_report,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.drift.model import (
    ComparedGuest,
    DriftReading,
    OptionDifference,
    UnlistedGuest,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.backups import CopySummary
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.costs import read_prices
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.document import (
    document_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.history import (
    ReportHistory,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.model import (
    ReportOptions,
    ReportTenant,
    SiteReading,
    VmReading,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.model import Snapshot

NOW = 1_790_000_000
GIB = 1 << 30


def wanted(**more: Any) -> ReportOptions:
    """Return what a task asks for."""
    prices = read_prices({"core": "1", "memory": "1", "storage": "1", "currency": "EUR"})
    usual: dict[str, Any] = {
        "prefix": "tenant_",
        "snapshot_days": 30,
        "backup_days": 7,
        "tenants": [ReportTenant("acme", "", {"vms": 1, "memory": GIB})],
        "prices": prices,
        "facts": {},
    }
    return ReportOptions(**{**usual, **more})


def site(texts: Sequence[str], name: str = "") -> SiteReading:
    """Return a site in which every text that others choose is one of these."""
    text = list(texts)

    def pick(number: int) -> str:
        return text[number % len(text)]

    node = pick(0)
    rows: list[dict[str, Any]] = [
        {
            "type": "node",
            "node": node,
            "status": "online",
            "maxcpu": 4,
            "maxmem": 8 * GIB,
            "mem": GIB,
            "cpu": 0.5,
            "uptime": 100,
        },
        {"type": "node", "node": "down", "status": "offline"},
    ]
    for number in range(4):
        rows.append(
            {
                "type": "qemu",
                "vmid": 100 + number,
                "node": node,
                "name": pick(number),
                "status": "running",
                "tags": ["tenant_acme", "", f"tenant_{pick(1)}", "tenant_a;tenant_b"][number],
                "maxcpu": 1,
                "maxmem": GIB,
                "maxdisk": GIB,
            }
        )
    state = cluster_state_of(rows, {"qemu"})
    guests = [_guest(row, pick) for row in state.vms.values()]
    member = {"online": True}
    nodes = [
        node_report(str(row["node"]), row, rows, NodeFacts(member), CapacityRules())
        for row in rows[:2]
    ]
    return SiteReading(
        site=name,
        time=NOW,
        state=state,
        cluster={
            "name": pick(2),
            "version": pick(3),
            "quorate": True,
            "storages": [_storage(pick)],
            "containers": 1,
            "failed_tasks": [_task(pick)],
            "health": {"status": "ok", "reasons": []},
        },
        nodes=nodes,
        missing=[{"part": pick(1), "reason": pick(2)}],
        guests=guests,
        backups={
            100: CopySummary(2, NOW - 60),
            101: CopySummary(1, NOW - 20 * 86400),
            102: PermissionDenied(answer=pick(3)),
            103: CopySummary(0, 0),
        },
        privileges=Privileges({"/": {"VM.Audit": 1}}),
        drift=_drift(pick, name),
        zones=[{"zone": pick(1), "type": pick(2)}],
        vnets=[
            {
                "vnet": vnet,
                "zone": pick(1),
                "tag": 7,
                "alias": f"{pick(3)} [pve.fleet: tenant=tenant_a<b>]",
            }
            for vnet in ("tabc", "tdef")
        ],
        reach=[{"source": "tabc", "dest": "tdef", "connections": [pick(0), pick(1)]}],
    )


def _guest(row: Any, pick: Any) -> VmReading:
    if row.vmid == 103:
        return VmReading(row, reason=pick(0))
    target = {"name": pick(row.vmid), "memory": "1024", "cores": "1", "agent": "0"}
    target["net0"] = "virtio=BC:24:11:00:00:01,bridge=tabc"
    live = {**target, "cores": "2"}
    actual = Actual(VM, row.vmid, row.node, "running", live, target)
    return VmReading(row, actual, (Snapshot(pick(1), NOW - 40 * 86400, pick(2)),))


def _storage(pick: Any) -> dict[str, Any]:
    return {
        "storage": pick(0),
        "kind": pick(1),
        "shared": True,
        "content": ["images"],
        "nodes": [pick(0)],
        "unavailable_on": [pick(2)],
        "total": 100,
        "used": 99,
        "free": 1,
    }


def _task(pick: Any) -> dict[str, Any]:
    return {
        "upid": pick(0),
        "node": pick(0),
        "type": pick(1),
        "id": pick(2),
        "user": pick(3),
        "ended": "2026-09-21T14:13:00Z",
        "status": pick(0),
    }


def _drift(pick: Any, name: str) -> DriftReading:
    difference = OptionDifference(pick(0), pick(1), [pick(2)], {"value": {pick(3): pick(0)}})
    task = {
        "type": pick(0),
        "user": pick(1),
        "token": pick(2),
        "started": "2026-09-21T14:13:00Z",
        "status": "ok",
    }
    compared = ComparedGuest(
        name=pick(1),
        tenant=pick(2),
        site=name,
        vmid=100,
        status="drifted",
        reason=pick(3),
        options=[difference],
        last_task=task,
    )
    unlisted = UnlistedGuest(pick(2), pick(3), name, 101, pick(0), "running")
    return DriftReading(name, vms=[compared], unlisted=[unlisted])


def report_on(texts: Sequence[str], history: ReportHistory | None = None) -> dict[str, Any]:
    """Return the report on two sites, one of which could not be read."""
    dead = SiteReading("dead", NOW, reason=texts[0])
    readings = [site(texts, "alive"), dead]
    return document_of(readings, wanted(), history or ReportHistory(), NOW)
