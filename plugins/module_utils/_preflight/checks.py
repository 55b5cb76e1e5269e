# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks: facts in, rows of pass and fail with next steps out (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .._cluster.picture import Picture, VmRow
from .._core.errors import FleetError
from .needs import Held, Question, holds

PASS, FAIL, UNKNOWN, SKIPPED = "pass", "fail", "unknown", "skipped"
Row = dict[str, Any]


def row(check: str, subject: str, status: str, detail: str, next_step: str = "", *, required: bool = True) -> Row:
    """Return one line of the table."""
    return {
        "check": check,
        "subject": subject,
        "status": status,
        "required": required,
        "detail": detail,
        "next_step": next_step if status != PASS else "",
    }


def version_row(version: str, found: tuple[int, int], least: str) -> Row:
    """Return whether the version is new enough; `least` is such as 8.1."""
    numbers = tuple(int(part) for part in least.split(".")[:2] if part.isdigit()) or (0,)
    good = found >= numbers
    step = f"Upgrade Proxmox VE to {least} or newer"
    return row("version", f"Proxmox VE {version}", PASS if good else FAIL, f"{least} or newer is needed", step)


def quorum_row(quorate: bool | None, why: str) -> Row:
    """Return whether the cluster can be changed at all."""
    if quorate is None:
        return row("quorum", "cluster", UNKNOWN, why, "Give the caller Sys.Audit on / to check this", required=False)
    step = "Bring back enough nodes for a quorum; until then Proxmox VE accepts no change"
    return row("quorum", "cluster", PASS if quorate else FAIL, "quorate" if quorate else "no quorum", step)


def node_rows(states: Mapping[str, str], wanted: Sequence[str], maintained: Collection[str] = ()) -> list[Row]:
    """Return whether each node that is wanted is online, or each there is; then one that is down is no hindrance.

    One in maintenance can do the work, but soon shall not: that never counts.
    """
    rows = []
    for node in wanted or sorted(states):
        state = states.get(node)
        if state == "online" and node in maintained:
            step = f"Work on another node, or end it there: ha-manager crm-command node-maintenance disable {node}"
            rows.append(row("node", node, FAIL, "online, in maintenance", step, required=False))
            continue
        said = f"the cluster has {', '.join(sorted(states)) or 'no node that the caller may see'}"
        step = "Bring the node back, or work on another one" if state else "Name one of the cluster's nodes"
        good = state == "online"
        rows.append(row("node", node, PASS if good else FAIL, state or said, step, required=bool(wanted)))
    return rows


def storage_rows(picture: Picture, wanted: Iterable[Mapping[str, Any]], nodes: Sequence[str]) -> list[Row]:
    """Return whether each storage is available with the content it must take, on each node where it must be.

    Without a node it must be so on one of them.
    """
    rows = []
    for item in wanted:
        name, content = item["name"], item.get("content") or "images"
        places = [item["node"]] if item.get("node") else list(nodes)
        faults = {node: _storage_fault(picture, name, node, content) for node in places or sorted(picture.nodes)}
        bad = {node: fault for node, fault in faults.items() if fault}
        good = not bad if places else len(bad) < len(faults)
        where = (
            ", ".join(sorted(faults.keys() - bad.keys())) if good else "; ".join(f"{n}: {f}" for n, f in bad.items())
        )
        step = f"Choose one that takes {content}, or allow {content} on it; the caller needs Datastore.Audit to see it"
        rows.append(row("storage", f"{name} ({content})", PASS if good else FAIL, where or "no node is visible", step))
    return rows


def _storage_fault(picture: Picture, name: str, node: str, content: str) -> str:
    found = picture.storage_on(name, node)
    if found is None:
        return "it is not there"
    if not found.available:
        return "it is not available"
    return "" if content in found.content else f"it takes {', '.join(sorted(found.content))}"


def bridge_rows(
    answers: Mapping[str, Collection[str] | None], wanted: Iterable[str], why: Mapping[str, str]
) -> list[Row]:
    """Return whether each node has each bridge. A node that does not answer is a matter of its own check."""
    rows = []
    for bridge in dict.fromkeys(wanted):
        for node, there in sorted(answers.items()):
            if there is None:
                rows.append(
                    row("bridge", f"{bridge} on {node}", UNKNOWN, why.get(node, ""), "See the check of the node")
                )
                continue
            said = f"the node has {', '.join(sorted(there)) or 'no bridge'}"
            step = "Name one of them, or make it; the caller needs Sys.Audit on the node or SDN.Use to see a bridge"
            good = bridge in there
            rows.append(row("bridge", f"{bridge} on {node}", PASS if good else FAIL, "" if good else said, step))
    return rows


def vm_rows(kind: str, found: Iterable[tuple[str, VmRow | None, FleetError | None]]) -> list[Row]:
    """Return whether each VM or template is there, and is what it must be. `kind` is `vm` or `template`."""
    rows = []
    for said, vm, error in found:
        if error is not None or vm is None:
            why = error.answer if error else "nothing of that name or number is visible"
            step = "Check the spelling, and that the caller has VM.Audit on it"
            rows.append(row(kind, said, FAIL, why, step))
        elif kind == "template" and not vm.template:
            rows.append(row(kind, said, PASS, f"VM {vm.vmid} on {vm.node}, no template: it can only be cloned in full"))
        else:
            rows.append(row(kind, said, PASS, f"VM {vm.vmid} on {vm.node}"))
    return rows


def privilege_rows(who: str, asked: Iterable[Question], held: Mapping[str, Held], why: Mapping[str, str]) -> list[Row]:
    """Return whether the caller has what the tasks need; `held` is by path, None where that could not be asked."""
    rows = []
    for question in asked:
        names = " or ".join(question.privileges)
        subject = f"{names} on {question.path}"
        tasks = ", ".join(question.tasks)
        if question.path in why:
            rows.append(row("privilege", subject, UNKNOWN, why[question.path], "Ask again later"))
        elif holds(question, held.get(question.path), held.get("/")):
            rows.append(row("privilege", subject, PASS, f"for {tasks}"))
        else:
            step = f"Give {who} a role with {names} on {question.path}"
            if question.below:
                step += " with propagation, or name what the tasks work on, so that only that is checked"
            rows.append(row("privilege", subject, FAIL, f"{who} lacks {names} on {question.path}, for {tasks}", step))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines of text, aligned, the ones to act on with their next step."""
    marks = {PASS: "PASS", FAIL: "FAIL", UNKNOWN: "????", SKIPPED: "----"}
    first = max((len(one["check"]) for one in rows), default=0)
    second = min(60, max((len(one["subject"]) for one in rows), default=0))
    lines = []
    for one in rows:
        mark = "warn" if one["status"] == FAIL and not one["required"] else marks[one["status"]]
        line = f"{mark}  {one['check']:<{first}}  {one['subject']:<{second}}  {one['detail']}".rstrip()
        lines.append(f"{line} -> {one['next_step']}" if one["next_step"] else line)
    return lines
