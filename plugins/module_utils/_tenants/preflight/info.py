# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module preflight_info: checks in an order in which one failure explains the next."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.lookup import find_template, find_vm
from ..._foundation.cluster.state import ClusterState, VmRow, cluster_state_of, with_names
from ..._foundation.cluster.storages.contents import read_contents
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.errors import AuthenticationError, FleetError, ValidationFailed
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.quantities import whole_number
from ..._foundation.core.result import Result
from ..._foundation.spec.generated.preflight_info import storages_item_spec
from ..._guests.kinds.words import TYPES
from ..._infrastructure.facts.partial_read import PartialRead, listed_states, standing
from ..access.needs.need import TEMPLATE, TEMPLATE_STORAGE, VM
from ..access.needs.needs import (
    Held,
    PrivilegeCheck,
    TaskObjects,
    merged,
    operation_questions,
    questions,
    tasks_of,
)
from .checks import (
    ANY_CONTENT,
    FAIL,
    PASS,
    SKIPPED,
    TEMPLATE_FILES,
    UNKNOWN,
    NamedVm,
    NewestTemplate,
    Row,
    bridge_rows,
    file_rows,
    find_file,
    missing_row,
    node_rows,
    privilege_rows,
    quorum_row,
    row,
    storage_rows,
    table,
    version_row,
    vm_rows,
)
from .estate import (
    BackedUp,
    GuestNeeds,
    backups_of,
    device_rows,
    estate_questions,
    job_questions,
    job_storages,
    needed_bridge_rows,
    needs_of,
    parse_estate,
    role_command,
    root_rows,
    storage_items,
    tag_questions,
)
from .orphans import find_orphans

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_VERSION = re.compile(r"^\d+(\.\d+)*\Z")
_DISKS = frozenset({"images", "rootdir", ANY_CONTENT})
_CREATES = "container_create"  # the task that uses files of templates

Version = tuple[int, int]
Find = Callable[..., "VmRow | None"]
"""Returns the VM with a VMID or a name, given as keywords."""


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the table of checks; a failed check is a row and raises nothing.

    Nothing is written. Raises ValidationFailed for options that no cluster could meet.
    """
    params = {**params, "storages": _storages(params)}
    _validate(params)
    estate = parse_estate(params)
    needs = needs_of(estate)
    tasks = [*_given(params, "tasks"), *(task for one in needs for task in one.tasks)]
    named = [one.template for one in needs if one.template]
    templates = [*_given(params, "templates"), *named]
    params = {
        **params,
        "own_tasks": params.get("tasks"),
        "tasks": list(dict.fromkeys(tasks)),
        "templates": list(dict.fromkeys(templates)),
    }
    rows, version = _first_contact(params, client)
    orphans: list[dict[str, Any]] = []
    requested: list[PrivilegeCheck] = []
    if version is not None:
        more, orphans, requested = _checks(params, (backups_of(estate), needs), client, version)
        rows += more
    failed = [one for one in rows if one["status"] == FAIL and one["required"]]
    command, lines = role_command(requested), table(rows)
    if command:
        lines.append(f"A role with the privileges above: {command}")
    values = {
        "passed": not failed,
        "checks": rows,
        "failed_checks": failed,
        "table": lines,
        "role_command": command,
        "unfinished": orphans,
    }
    return Result(False, values)


def _storages(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of O(storages). Raises ValidationFailed with the name of each wrong item."""
    spec = storages_item_spec()
    items: list[dict[str, Any]] = []
    causes: list[str] = []
    for index, given in enumerate(_given(params, "storages")):
        try:
            items.append(parse_options(spec, given))
        except ValidationFailed as error:
            name = given.get("name") if isinstance(given, Mapping) else None
            label = name or "without a name"
            causes.append(f"storages[{index}] ({label}): {error.answer}")
    if causes:
        raise ValidationFailed(
            f"The list of storages was refused: {'; '.join(causes)}",
            "Correct what is wrong, and run again",
            "storages",
        )
    return items


def _given(params: Mapping[str, Any], option: str) -> Sequence[Any]:
    """Return the value of an option that is a list, an empty list if it is not set."""
    value = params.get(option)
    return value or ()


def _minimum_version(params: Mapping[str, Any]) -> str:
    return str(params.get("min_version") or "0")


def _validate(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an option that no cluster could meet, before any request."""
    minimum = _minimum_version(params)
    if not _VERSION.match(minimum):
        raise validate.refused("min_version", minimum, "is not a version", "Write it as 8.4")
    for node in _given(params, "nodes"):
        validate.node(node, "nodes")
    for storage in _given(params, "storages"):
        validate.storage(storage["name"], "storages")
        if storage.get("node"):
            validate.node(storage["node"], "storages")
    for bridge in _given(params, "bridges"):
        validate.bridge(bridge, "bridges")
    for option in ("templates", "vms"):
        vmids = [term for term in _given(params, option) if whole_number(term) is not None]
        for vmid in vmids:
            validate.vmid(vmid, option)


def _first_contact(params: Mapping[str, Any], client: Client) -> tuple[list[Row], Version | None]:
    """Return the rows of endpoint, credentials and version, and the version or None."""
    try:
        answer = client.get("version", attempted="Could not ask for the version") or {}
    except AuthenticationError as error:
        reason = error.answer or error.reason
        refused = row("authentication", _who(client), FAIL, reason, error.next_step)
        rest = _skipped("it cannot be asked without valid credentials")
        return [_reached(client), refused, rest], None
    except FleetError as error:
        reason = error.answer or error.reason
        unreached = row("endpoint", client.connection.endpoint.url, FAIL, reason, error.next_step)
        rest = _skipped("it cannot be asked as long as the endpoint does not answer")
        return [unreached, rest], None
    text = str(answer.get("version") or "0")
    # The first two numbers of a version such as 9.2.11 or 8.4-1.
    parts = text.replace("-", ".").split(".")
    numbers = [whole_number(part) or 0 for part in parts]
    major, minor = [*numbers, 0][:2]
    version = (major, minor)
    accepted = row("authentication", _who(client), PASS, "")
    rows = [_reached(client), accepted, version_row(text, version, _minimum_version(params))]
    return rows, version


def _reached(client: Client) -> Row:
    return row("endpoint", client.endpoint.url, PASS, "it answers")


def _skipped(reason: str) -> Row:
    return row("everything else", "", SKIPPED, reason)


def _checks(
    params: Mapping[str, Any],
    declared: tuple[BackedUp, list[GuestNeeds]],
    client: Client,
    version: Version,
) -> tuple[list[Row], list[dict[str, Any]], list[PrivilegeCheck]]:
    """Return the rows of all checks that need the listing of the cluster, the tenant's unfinished
    VMs, and the privileges that are needed.

    `declared` are the backups and the needs of the estate.
    """
    backups, needs = declared
    read = PartialRead(client)
    listing = read.read("listing of the cluster", "cluster", "resources")
    if listing is None:
        reason = read.missing[0]["reason"]
        step = "Check the cluster's file system and services, then try again"
        rows = [
            row("listing", "cluster", FAIL, reason, step),
            _skipped("it cannot be checked without the listing of the cluster"),
        ]
        return rows, [], []
    cluster = cluster_state_of(listing, TYPES)
    status = standing(read.read("cluster status", "cluster", "status"))
    states = _node_states(read, cluster, status["members"])
    unread = {one["part"]: one["reason"] for one in read.missing}
    ha_states = listed_states(listing)
    maintained = [node for node, state in ha_states.items() if state == "maintenance"]
    nodes = list(_given(params, "nodes"))
    storages = _given(params, "storages")
    rows = [quorum_row(status["quorate"], unread.get("cluster status", ""))]
    needed_nodes = [one.node for one in needs if one.node]
    rows += node_rows(states, list(dict.fromkeys([*nodes, *needed_nodes])), maintained)
    rows += storage_rows(cluster, storages, nodes)
    rows += storage_rows(cluster, [*storage_items(needs), *job_storages(backups)], ())
    found_bridges, vnets = _bridges(params, needs, read, states)
    rows += found_bridges
    rows += device_rows(needs, partial(_mappings, read))
    templates, cluster = _find_all(client, cluster, _given(params, "templates"), find_template)
    vms, cluster = _find_all(client, cluster, _given(params, "vms"), _find_any)
    guests, files, more = _template_files(params, client, cluster, templates)
    names = [one.own_name for one in cluster.guests]
    rows += vm_rows("template", guests, [one.own_name for one in cluster.guests if one.template])
    rows += more
    rows += vm_rows("vm", vms, names)
    pools = [params.get("pool"), *(one.pool for one in needs)]
    rows += [_pool_row(read, cluster, pool) for pool in dict.fromkeys(filter(None, pools))]
    subjects = replace(_subjects(params, vms, templates, files), zones=_zones(read, vnets))
    vmids = {one.name: one.row.vmid for one in templates if one.row is not None}
    requested = merged(
        [
            *questions(_given(params, "own_tasks"), subjects, version),
            *operation_questions(_given(params, "operations"), subjects, version),
            *estate_questions(needs, vmids, subjects, version),
            *tag_questions(needs, cluster.guests, _tag_options(read, needs)),
            *job_questions(backups, version),
        ]
    )
    rows += _privileges(client, requested, _given(params, "operations"))
    rows += root_rows(client.login, needs, cluster.guests)
    orphans: list[dict[str, Any]] = []
    if params.get("tenant"):
        found, orphans = find_orphans(params, client, cluster)
        rows += found
    return rows, orphans, requested


def _template_files(
    params: Mapping[str, Any], client: Client, cluster: ClusterState, templates: list[NamedVm]
) -> tuple[list[NamedVm], list[NewestTemplate], list[Row]]:
    """Return the templates that are or must be guests, the files of the other templates, and the
    rows of these, found or not.

    One request for each storage with container templates, if a template is not a guest.
    """
    uses_files = _CREATES in tasks_of(_given(params, "tasks"))
    guests: list[NamedVm] = []
    others: list[str] = []
    for one in templates:
        is_guest = one.row is not None or one.error is not None
        if is_guest or whole_number(one.name) is not None or not uses_files:
            guests.append(one)
        else:
            others.append(one.name)
    if not others:
        return guests, [], []
    contents = read_contents(client, cluster, TEMPLATE_FILES)
    found = {name: find_file(name, contents) for name in others}
    files = [file for file in found.values() if file is not None]
    rows = file_rows(files, _given(params, "nodes"))
    rows += [missing_row(name, contents) for name, file in found.items() if file is None]
    return guests, files, rows


def _subjects(
    params: Mapping[str, Any],
    vms: list[NamedVm],
    templates: list[NamedVm],
    files: list[NewestTemplate],
) -> TaskObjects:
    """Return the objects on which privileges are checked."""
    storages = _given(params, "storages")
    vmids = {VM: _vmids(vms), TEMPLATE: _vmids(templates)}
    with_files = dict.fromkeys(file.storage for file in files)
    with_files |= dict.fromkeys(
        one["name"] for one in storages if one.get("content") == TEMPLATE_FILES
    )
    unfound = set()
    if vms and not vmids[VM]:
        unfound.add(VM)
    if templates and not vmids[TEMPLATE]:
        unfound.add(TEMPLATE)
    if templates and not with_files:
        unfound.add(TEMPLATE_STORAGE)
    return TaskObjects(
        vms=vmids[VM],
        templates=vmids[TEMPLATE],
        storages=_names(storages, for_disks=True),
        image_storages=_names(storages, for_disks=False),
        template_storages=tuple(with_files),
        bridges=tuple(_given(params, "bridges")),
        nodes=tuple(_given(params, "nodes")),
        pool=params.get("pool"),
        unfound=frozenset(unfound),
    )


def _node_states(
    read: PartialRead, cluster: ClusterState, members: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Return `online` or `offline` by node; the membership has precedence over the listing."""
    online = {name: node.online for name, node in cluster.nodes.items()}
    for name, member in members.items():
        online[name] = member["online"]
    states = {name: "online" if is_online else "offline" for name, is_online in online.items()}
    if not states:
        for one in read.rows("nodes", "nodes"):
            states[one["node"]] = str(one.get("status") or "unknown")
    return states


def _bridges(
    params: Mapping[str, Any],
    needs: Sequence[GuestNeeds],
    read: PartialRead,
    states: Mapping[str, str],
) -> tuple[list[Row], set[str]]:
    """Return the rows of the bridges on the online nodes, and the VNets among the bridges.

    If nodes are named, only these are checked.
    """
    wanted = _given(params, "bridges")
    needed = {bridge for one in needs for bridge in one.bridges}
    if not wanted and not needed:
        return [], set()
    nodes = _given(params, "nodes") or list(states)
    online = [node for node in nodes if states.get(node) == "online"]
    bridges: dict[str, set[str] | None] = {}
    vnets: set[str] = set()
    for node, answer in read.each("bridges", online, "network", type="any_bridge").items():
        bridges[node] = None
        if answer is not None:
            bridges[node] = {one["iface"] for one in answer}
            vnets |= {one["iface"] for one in answer if one.get("type") == "vnet"}
    rows = bridge_rows(bridges, wanted, read.reasons("bridges"))
    return rows + needed_bridge_rows(needs, bridges), vnets & {*wanted, *needed}


def _mappings(read: PartialRead, word: str) -> list[str]:
    """Return the names of the mappings of a kind, or of the CPU models."""
    if word == "cpu":
        models = read.rows("CPU models", "cluster", "qemu", "custom-cpu-models")
        return [str(one["cputype"]).removeprefix("custom-") for one in models]
    return [str(one["id"]) for one in read.rows(f"{word} mappings", "cluster", "mapping", word)]


def _tag_options(read: PartialRead, needs: Sequence[GuestNeeds]) -> Mapping[str, Any]:
    """Return the options of the cluster, which restrict tags; one request if a guest has tags."""
    if not any(one.tags for one in needs):
        return {}
    return read.read("options of the cluster", "cluster", "options") or {}


def _zones(read: PartialRead, vnets: set[str]) -> dict[str, str]:
    """Return the zone of each VNet; one request if there are VNets."""
    if not vnets:
        return {}
    rows = read.rows("virtual networks", "cluster", "sdn", "vnets")
    return {row["vnet"]: row["zone"] for row in rows if row["vnet"] in vnets}


def _find_all(
    client: Client, cluster: ClusterState, terms: Sequence[str], find: Find
) -> tuple[list[NamedVm], ClusterState]:
    """Return the VM of each name or VMID, and the cluster state with the names read for this."""
    found: list[NamedVm] = []
    for term in terms:
        is_vmid = whole_number(term) is not None
        try:
            vm = _find_term(find, cluster, term)
            if vm is None and not is_vmid:
                cluster = with_names(client, cluster)
                vm = _find_term(find, cluster, term)
            found.append(NamedVm(term, vm, None))
        except FleetError as error:
            found.append(NamedVm(term, None, error))
    return found, cluster


def _find_term(find: Find, cluster: ClusterState, term: str) -> VmRow | None:
    """Return the VM with a VMID or a name. Raises Conflict for an ambiguous name."""
    vmid = whole_number(term)
    if vmid:
        return find(cluster, vmid=vmid, name=None)
    return find(cluster, vmid=None, name=term)


def _find_any(cluster: ClusterState, *, vmid: int | None, name: str | None) -> VmRow | None:
    """Return the VM, or else the template, with this VMID or name."""
    found = find_vm(cluster, vmid=vmid, name=name)
    return found or find_template(cluster, vmid=vmid, name=name)


def _vmids(found: list[NamedVm]) -> tuple[int, ...]:
    """Return the VMIDs of the named VMs; a VMID counts even if it is not visible."""
    vmids: list[int] = []
    for term, vm, _error in found:
        vmid = whole_number(term)
        if vm is not None:
            vmids.append(vm.vmid)
        elif vmid is not None:
            vmids.append(vmid)
    return tuple(vmids)


def _pool_row(read: PartialRead, cluster: ClusterState, pool: str) -> Row:
    existing = set(cluster.pools)
    if pool not in existing:
        existing |= {one["poolid"] for one in read.rows("pools", "pools")}
    if pool in existing:
        return row("pool", pool, PASS, "")
    names = ", ".join(sorted(existing)) or "none that the caller may see"
    step = "Create it first, or name one that exists; the caller needs Pool.Audit to see it"
    return row("pool", pool, FAIL, f"pools are {names}", step)


def _names(storages: Sequence[Mapping[str, Any]], *, for_disks: bool) -> tuple[str, ...]:
    """Return the storages for disks, or otherwise the storages for images and other sources of
    disks.
    """
    names: dict[str, None] = {}
    for storage in storages:
        content = storage.get("content") or "images"
        takes_disks = content in _DISKS
        if takes_disks is for_disks:
            names[storage["name"]] = None
    return tuple(names)


_NO_TASKS = "Set tasks, or give the estate: a check of privileges needs to know the work"
_NO_OBJECTS = (
    "Set pool or vms (preflight_pool or preflight_vms of the role), and list the templates, storages and bridges that"
    " the tenant uses: operations are checked on these only"
)


def _privileges(
    client: Client, requested: Sequence[PrivilegeCheck], operations: Sequence[str]
) -> list[Row]:
    """Return the rows of the caller's privileges.

    One request for each path, because only PVE knows the privileges that a path inherits.
    """
    if not requested:
        detail, step = "none was checked", _NO_TASKS
        if operations:
            detail, step = f"none was checked for {', '.join(operations)}", _NO_OBJECTS
        return [row("privilege", _who(client), UNKNOWN, detail, step, required=False)]
    paths = {question.path: None for question in requested}
    if any(question.instead for question in requested):
        paths["/"] = None
    reasons: dict[str, str] = {}

    def read_privileges(path: str) -> Held:
        try:
            answer = client.get("access", "permissions", path=path) or {}
        except FleetError as error:
            reasons[path] = error.message
            return None
        return answer.get(path)

    answers = side_by_side(read_privileges, list(paths))
    held = dict(zip(paths, answers, strict=True))
    return privilege_rows(_who(client), requested, held, reasons)


def _who(client: Client) -> str:
    return client.connection.token_id or client.connection.user
