# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module preflight_info: asks for the facts, in an order in which a failure explains what follows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .._cluster.lookup import find_template, find_vm
from .._cluster.picture import Picture, VmRow, fill_names, picture_of
from .._core import validate
from .._core.errors import AuthenticationError, FleetError
from .._core.parallel import side_by_side
from .._core.result import Result
from .._estate.parts import Parts, listed_states, standing
from .checks import (
    FAIL,
    PASS,
    SKIPPED,
    bridge_rows,
    node_rows,
    privilege_rows,
    quorum_row,
    row,
    storage_rows,
    table,
    version_row,
    vm_rows,
)
from .needs import TEMPLATE, VM, Held, Question, Subjects, questions

if TYPE_CHECKING:
    from .._api.client import Client

_WORKERS = 8
_VERSION = re.compile(r"^\d+(\.\d+)*$")
_LISTING = "listing of the cluster"
_IMAGES = frozenset({"images", "rootdir"})
Found: TypeAlias = "list[tuple[str, VmRow | None, FleetError | None]]"


def gather(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the table of checks. Nothing is written, in check mode or out of it, and no failed check raises."""
    _require_sense(params)
    rows, version = _first_contact(params, client)
    if version is not None:
        rows += _checks(params, client, version)
    bad = [one for one in rows if one["status"] == FAIL and one["required"]]
    values = {
        "passed": not bad,
        "checks": rows,
        "failed_checks": bad,
        "table": table(rows),
    }
    return Result(False, values)


def _require_sense(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an option that no cluster could satisfy, before any request."""
    least = str(params.get("min_version") or "0")
    if not _VERSION.match(least):
        raise validate.refused("min_version", least, "is no version", "Write it as 8.4")
    for said in params.get("nodes") or ():
        validate.node(said, "nodes")
    for storage in params.get("storages") or ():
        validate.storage(storage["name"], "storages")
        if storage.get("node"):
            validate.node(storage["node"], "storages")
    for said in params.get("bridges") or ():
        validate.bridge(said, "bridges")
    for option in ("templates", "vms"):
        for said in params.get(option) or ():
            if said.isdigit():
                validate.vmid(said, option)


def _first_contact(params: Mapping[str, Any], client: Client) -> tuple[list[dict[str, Any]], tuple[int, int] | None]:
    """Return the rows of endpoint, credentials and version, and the version where it could be had."""
    url = client.connection.endpoint.url
    try:
        answer = client.get("version", attempted="Could not ask for the version") or {}
    except AuthenticationError as error:
        return [
            row("endpoint", url, PASS, "it answers"),
            row("authentication", _who(client), FAIL, error.answer or error.reason, error.next_step),
            row("everything else", "", SKIPPED, "it cannot be asked without valid credentials"),
        ], None
    except FleetError as error:
        return [
            row("endpoint", url, FAIL, error.answer or error.reason, error.next_step),
            row("everything else", "", SKIPPED, "it cannot be asked as long as the endpoint does not answer"),
        ], None
    text = str(answer.get("version") or "0")
    parts = [int(part) if part.isdigit() else 0 for part in text.replace("-", ".").split(".")]
    version = (parts[0], parts[1] if len(parts) > 1 else 0)
    return [
        row("endpoint", url, PASS, "it answers"),
        row("authentication", _who(client), PASS, ""),
        version_row(text, version, str(params.get("min_version") or "0")),
    ], version


def _checks(params: Mapping[str, Any], client: Client, version: tuple[int, int]) -> list[dict[str, Any]]:
    parts = Parts(client)
    raw = parts.read(_LISTING, "cluster", "resources")
    if raw is None:
        why = parts.missing[0]["reason"]
        return [
            row("listing", "cluster", FAIL, why, "Check the cluster's file system and services, then try again"),
            row("everything else", "", SKIPPED, "it cannot be checked without the listing of the cluster"),
        ]
    picture = picture_of(raw)
    cluster = standing(parts.read("cluster status", "cluster", "status"))
    states = {node: "online" if one.online else "offline" for node, one in picture.nodes.items()}
    states.update({node: "online" if one["online"] else "offline" for node, one in cluster["members"].items()})
    if not states:
        listed = parts.read("nodes", "nodes") or []
        states = {one["node"]: str(one.get("status") or "unknown") for one in listed}
    unread = {one["part"]: one["reason"] for one in parts.missing}
    nodes: list[str] = list(params.get("nodes") or ())
    storages = list(params.get("storages") or ())
    rows = [quorum_row(cluster["quorate"], unread.get("cluster status", ""))]
    rows += node_rows(states, nodes, [node for node, state in listed_states(raw).items() if state == "maintenance"])
    rows += storage_rows(picture, storages, nodes)
    rows += _bridges(params, parts, states, nodes)
    templates, picture = _find(client, picture, params.get("templates") or (), True)
    vms, picture = _find(client, picture, params.get("vms") or (), False)
    rows += vm_rows("template", templates) + vm_rows("vm", vms)
    if params.get("pool"):
        rows += _pool(parts, picture, params["pool"])
    named = {VM: _numbers(vms), TEMPLATE: _numbers(templates)}
    subjects = Subjects(
        vms=named[VM],
        templates=named[TEMPLATE],
        storages=tuple(_names(storages, True)),
        image_storages=tuple(_names(storages, False)),
        bridges=tuple(params.get("bridges") or ()),
        nodes=tuple(nodes),
        pool=params.get("pool"),
        unfound=frozenset(kind for kind, found in ((VM, vms), (TEMPLATE, templates)) if found and not named[kind]),
    )
    return rows + _privileges(client, questions(params.get("tasks") or (), subjects, version))


def _bridges(
    params: Mapping[str, Any], parts: Parts, states: Mapping[str, str], nodes: Sequence[str]
) -> list[dict[str, Any]]:
    wanted: list[str] = list(params.get("bridges") or ())
    if not wanted:
        return []
    asked = [node for node in nodes or states if states.get(node) == "online"]
    answers = parts.each("bridges", asked, "network", type="any_bridge")
    there = {node: None if rows is None else {one["iface"] for one in rows} for node, rows in answers.items()}
    why = {
        one["part"].rpartition(" ")[2]: one["reason"] for one in parts.missing if one["part"].startswith("bridges of")
    }
    return bridge_rows(there, wanted, why)


def _find(client: Client, picture: Picture, wanted: Sequence[str], template: bool) -> tuple[Found, Picture]:
    """Return each VM or template that is named, with its row or its error, and the picture with late names."""
    found: Found = []
    for said in wanted:
        number = int(said) if said.isdigit() else None
        try:
            one = _one(picture, said, number, template)
            if one is None and number is None:
                picture = fill_names(client, picture)
                one = _one(picture, said, number, template)
            found.append((said, one, None))
        except FleetError as error:
            found.append((said, None, error))
    return found, picture


def _numbers(found: Found) -> tuple[int, ...]:
    """Return the VMIDs of what was named; one that is not visible has still its number where it was named by it."""
    return tuple(vm.vmid if vm else int(said) for said, vm, _error in found if vm or said.isdigit())


def _one(picture: Picture, said: str, number: int | None, template: bool) -> VmRow | None:
    name = None if number else said
    found = None if template else find_vm(picture, vmid=number, name=name)
    return found or find_template(picture, vmid=number, name=name)


def _pool(parts: Parts, picture: Picture, pool: str) -> list[dict[str, Any]]:
    there = set(picture.pools)
    if pool not in there:
        there |= {one["poolid"] for one in parts.read("pools", "pools") or []}
    said = f"pools are {', '.join(sorted(there)) or 'none that the caller may see'}"
    step = "Create it first, or name one that is there; the caller needs Pool.Audit to see it"
    return [row("pool", pool, PASS if pool in there else FAIL, "" if pool in there else said, step)]


def _names(storages: Sequence[Mapping[str, Any]], disks: bool) -> list[str]:
    """Return the storages that take disks, or those that take what disks are made from."""
    return list(
        dict.fromkeys(one["name"] for one in storages if ((one.get("content") or "images") in _IMAGES) is disks)
    )


def _privileges(client: Client, asked: Sequence[Question]) -> list[dict[str, Any]]:
    """Return the rows of the caller's privileges; one request a path, because only PVE knows what it inherits."""
    paths = list(dict.fromkeys(question.path for question in asked))
    if any(question.instead for question in asked) and "/" not in paths:
        paths.append("/")
    why: dict[str, str] = {}

    def ask(path: str) -> Held:
        try:
            return (client.get("access", "permissions", path=path) or {}).get(path)
        except FleetError as error:
            why[path] = error.message
            return None

    held = dict(zip(paths, side_by_side(ask, paths, _WORKERS), strict=True))
    return privilege_rows(_who(client), asked, held, why)


def _who(client: Client) -> str:
    return client.connection.token_id or client.connection.user
