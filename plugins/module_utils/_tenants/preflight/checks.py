# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks: facts in, rows of pass and fail with next steps out; the files of container
templates (pure).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._foundation.cluster.state import ClusterState, StorageRow, VmRow
from ..._foundation.cluster.storages.contents import StorageContents
from ..._foundation.cluster.storages.template_file import TemplateFile
from ..._foundation.cluster.tenant import tenants_of
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import FleetError
from ..._guests.kinds.words import label_of
from ..access.needs.needs import Held, PrivilegeCheck, holds

# With this content, a storage only needs to be available.
ANY_CONTENT = "any"

PASS, FAIL, UNKNOWN, SKIPPED = "pass", "fail", "unknown", "skipped"
Row = dict[str, Any]
TEMPLATE_FILES = "vztmpl"  # the content of a storage
_DOWNLOAD = (
    "Check the spelling, or download it with pve.fleet.storage_download; the caller needs"
    " Datastore.Audit or Datastore.AllocateSpace on its storage"
)


class NamedVm(NamedTuple):
    """A name from the options, with its row of the listing, or the error of the search."""

    name: str
    row: VmRow | None
    error: FleetError | None


_NODE_UNKNOWN = "Name one of the cluster's nodes"
_STORAGE_VISIBLE = "the caller needs Datastore.Audit to see it"
_BRIDGE_VISIBLE = "the caller needs Sys.Audit on the node or SDN.Use to see a bridge"
_NAME_SUBJECTS = "name what the tasks work on, so that only that is checked"
_NODE_DOWN = "Bring the node back, or work on another one"


def row(
    check: str,
    subject: str,
    status: str,
    detail: str,
    next_step: str = "",
    *,
    required: bool = True,
) -> Row:
    """Return one line of the table; a check that passes has no next step."""
    if status == PASS:
        next_step = ""
    return {
        "check": check,
        "subject": subject,
        "status": status,
        "required": required,
        "detail": detail,
        "next_step": next_step,
    }


def verdict(passed: bool) -> str:
    """Return the status of a check that passed or failed."""
    return PASS if passed else FAIL


def version_row(version: str, found: tuple[int, int], minimum: str) -> Row:
    """Return whether the version is new enough; `minimum` is a text such as 8.1."""
    parts = minimum.split(".")[:2]
    numbers = tuple(int(part) for part in parts if part.isdigit())
    status = verdict(found >= numbers)
    step = f"Upgrade Proxmox VE to {minimum} or newer"
    return row("version", f"Proxmox VE {version}", status, f"{minimum} or newer is needed", step)


def quorum_row(quorate: bool | None, reason: str) -> Row:
    """Return whether the cluster has a quorum; `reason` explains an unknown quorum (None)."""
    if quorate is None:
        step = "Give the caller Sys.Audit on / to check this"
        return row("quorum", "cluster", UNKNOWN, reason, step, required=False)
    if quorate:
        return row("quorum", "cluster", PASS, "quorate")
    step = "Bring back enough nodes for a quorum; until then Proxmox VE accepts no change"
    return row("quorum", "cluster", FAIL, "no quorum", step)


def node_rows(
    states: Mapping[str, str], wanted: Sequence[str], maintained: Collection[str] = ()
) -> list[Row]:
    """Return whether each wanted node is online.

    Without wanted nodes all nodes are checked, and none is required. A node in maintenance is
    reported, but never counts as a failure: it still works, though not for long.
    """
    existing = ", ".join(sorted(states)) or "no node that the caller may see"
    required = bool(wanted)
    rows = []
    for node in wanted or sorted(states):
        state = states.get(node)
        if state is None:
            detail = f"the cluster has {existing}"
            rows.append(row("node", node, FAIL, detail, _NODE_UNKNOWN, required=required))
        elif state != "online":
            rows.append(row("node", node, FAIL, state, _NODE_DOWN, required=required))
        elif node in maintained:
            command = f"ha-manager crm-command node-maintenance disable {node}"
            step = f"Work on another node, or end it there: {command}"
            rows.append(row("node", node, FAIL, "online, in maintenance", step, required=False))
        else:
            rows.append(row("node", node, PASS, state, required=required))
    return rows


def storage_rows(
    cluster: ClusterState, wanted: Iterable[Mapping[str, Any]], nodes: Sequence[str]
) -> list[Row]:
    """Return whether each storage is available for its content, on each named node.

    An item of `wanted` has `name`, `content` and `node`. If neither the item nor `nodes` names a
    node, one node of the cluster with the storage is enough.
    """
    rows = []
    for item in wanted:
        content = item.get("content") or "images"
        required_on = list(nodes)
        if item.get("node"):
            required_on = [item["node"]]
        good: list[str] = []
        faults: list[str] = []
        for node in required_on or sorted(cluster.nodes):
            fault = _storage_fault(cluster, item["name"], node, content)
            if fault:
                faults.append(f"{node}: {fault}")
            else:
                good.append(node)
        passed = not faults if required_on else bool(good)
        listed = ", ".join(sorted(good)) if passed else "; ".join(faults)
        step = f"Choose one that takes {content}, or allow {content} on it; {_STORAGE_VISIBLE}"
        subject = f"{item['name']} ({content})"
        detail = listed or "no node is visible"
        rows.append(row("storage", subject, verdict(passed), detail, step))
    return rows


def _storage_fault(cluster: ClusterState, name: str, node: str, content: str) -> str:
    """Return why a node cannot use a storage for the content, or an empty text."""
    found = cluster.storage_on(name, node)
    if found is None:
        names = {row.storage for row in cluster.storages if row.node == node}
        return f"it is not there{did_you_mean(name, names)}"
    if not found.available:
        return "it is not available"
    if content not in (ANY_CONTENT, *found.content):
        return f"it takes {', '.join(sorted(found.content))}"
    return ""


def bridge_rows(
    answers: Mapping[str, Collection[str] | None], wanted: Iterable[str], reasons: Mapping[str, str]
) -> list[Row]:
    """Return whether each node has each bridge.

    `answers` are the bridges by node, None for a node that does not answer; a check of its own
    reports this node. `reasons` are the reasons by node.
    """
    rows = []
    for bridge in dict.fromkeys(wanted):
        for node in sorted(answers):
            existing = answers[node]
            subject = f"{bridge} on {node}"
            if existing is None:
                reason = reasons.get(node, "")
                rows.append(row("bridge", subject, UNKNOWN, reason, "See the check of the node"))
            elif bridge in existing:
                rows.append(row("bridge", subject, PASS, ""))
            else:
                names = ", ".join(sorted(existing)) or "no bridge"
                step = f"Name one of them, or create it; {_BRIDGE_VISIBLE}"
                rows.append(row("bridge", subject, FAIL, f"the node has {names}", step))
    return rows


def vm_rows(kind: str, found: Iterable[NamedVm], names: Collection[str] = ()) -> list[Row]:
    """Return whether each VM or template exists. `kind` is `vm` or `template`, and `names` are the
    names that exist.
    """
    rows = []
    for name, vm, error in found:
        if vm is None:
            reason = f"nothing of that name or number is visible{did_you_mean(name, names)}"
            if error is not None:
                reason = error.answer
            step = "Check the spelling, and that the caller has VM.Audit on it"
            rows.append(row(kind, name, FAIL, reason, step))
            continue
        detail = f"{label_of(vm)} on {vm.node}"
        if kind == "template" and not vm.template:
            detail += ", not a template: it can only be cloned in full"
        rows.append(row(kind, name, PASS, detail))
    return rows


def tenant_rows(name: str, prefix: str, cluster: ClusterState) -> list[Row]:
    """Return a row about a tenant without a guest whose name resembles that of a tenant with guests:
    a new tenant has none yet.
    """
    tags = {tag for one in cluster.guests for tag in tenants_of(one.tags, prefix)}
    tenants = {tag[len(prefix) :] for tag in tags}
    hint = "" if name.lower() in tenants else did_you_mean(name, tenants)
    text = f"no guest that the caller may see has its tag{hint}"
    step = "Check the spelling, unless the tenant is new"
    return [row("tenant", name, FAIL, text, step, required=False)] if hint else []


def privilege_rows(
    who: str,
    requested: Iterable[PrivilegeCheck],
    held: Mapping[str, Held],
    reasons: Mapping[str, str],
) -> list[Row]:
    """Return whether the caller has the privileges that the tasks need.

    `held` are the caller's privileges by path; `reasons` are the errors of paths that could not be
    read.
    """
    rows = []
    for question in requested:
        path = question.path
        names = " or ".join(question.privileges)
        subject = f"{names} on {path}"
        tasks = ", ".join(question.tasks)
        if path in reasons:
            rows.append(row("privilege", subject, UNKNOWN, reasons[path], "Ask again later"))
            continue
        if holds(question, held.get(path), held.get("/")):
            rows.append(row("privilege", subject, PASS, f"for {tasks}"))
            continue
        step = f"Give {who} a role with {subject}"
        if question.below:
            step += f" with propagation, or {_NAME_SUBJECTS}"
        rows.append(row("privilege", subject, FAIL, f"{who} lacks {subject}, for {tasks}", step))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as aligned lines of text, with the next step of rows that need an action."""
    marks = {PASS: "PASS", FAIL: "FAIL", UNKNOWN: "????", SKIPPED: "----"}
    check_width = max((len(one["check"]) for one in rows), default=0)
    subject_width = max((len(one["subject"]) for one in rows), default=0)
    subject_width = min(60, subject_width)
    lines = []
    for one in rows:
        mark = marks[one["status"]]
        if one["status"] == FAIL and not one["required"]:
            mark = "warn"
        check = one["check"].ljust(check_width)
        subject = one["subject"].ljust(subject_width)
        line = f"{mark}  {check}  {subject}  {one['detail']}".rstrip()
        if one["next_step"]:
            line += f" -> {one['next_step']}"
        lines.append(line)
    return lines


@dataclass(frozen=True)
class NewestTemplate:
    """A template that the user named, with its newest file: the volume, the storage, and the nodes
    with this file (None for all).
    """

    name: str
    volume: str
    storage: str
    nodes: frozenset[str] | None


def find_file(name: str, contents: StorageContents) -> NewestTemplate | None:
    """Return the newest file with a name or a volume, like module container."""
    fitting: list[tuple[TemplateFile, StorageRow]] = []
    for storage, row_of_file in contents.volumes:
        file = TemplateFile(str(row_of_file["volid"]), None if storage.shared else storage.node)
        if name == file.volume or file.has_name(name):
            fitting.append((file, storage))
    if not fitting:
        return None
    best, storage = max(fitting, key=lambda one: one[0].version)
    nodes = {file.node for file, _storage in fitting if file.volume == best.volume}
    everywhere = None in nodes
    known = frozenset(node for node in nodes if node)
    return NewestTemplate(name, best.volume, storage.storage, None if everywhere else known)


def file_rows(found: Iterable[NewestTemplate], nodes: Sequence[str]) -> list[Row]:
    """Return whether each of `nodes` has each file; without `nodes`, any node is enough."""
    rows = []
    for one in found:
        having = "all nodes" if one.nodes is None else ", ".join(sorted(one.nodes))
        detail = f"{one.volume} on {having}"
        lacking = sorted(set(nodes) - (one.nodes or set(nodes)))
        if lacking:
            step = f"Download it to {', '.join(lacking)} too, or leave these nodes out"
            rows.append(row("template", one.name, FAIL, detail, step))
        else:
            rows.append(row("template", one.name, PASS, detail))
    return rows


def missing_row(name: str, contents: StorageContents) -> Row:
    """Return the row of a template that is neither a guest nor a file."""
    if contents.unread:
        _storage, error = contents.unread[0]
        step = error.next_step or "Try again"
        return row("template", name, UNKNOWN, error.message, step)
    names = {TemplateFile(str(one["volid"]), None).name for _row, one in contents.volumes}
    listed = ", ".join(sorted(names)) or "none"
    detail = f"there is no such guest and no such file; files of templates are {listed}"
    return row("template", name, FAIL, detail, _DOWNLOAD)
