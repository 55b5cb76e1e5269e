# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is checked of a tenant before the first write, so that nothing is done half."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .._access.acl_check import held_on, judge_giver
from .._access.realm import kinds_of_realms
from .._access.role import read_privileges
from .._cluster.bridges import KnownBridges
from .._cluster.lookup import find_template
from .._cluster.state import ClusterState, VmRow, with_names
from .._core.errors import ConfigurationError, FleetError, NotFound, PermissionDenied
from .._core.quantities import whole_number
from .._preflight.needs import Question, Subjects, holds, questions
from .._resource.change import Change, Desired
from .._resource.protocols import Api
from .._resource.table import Precheck
from .._vm.live.requirements import bridges_of
from .facts import Facts, own_rights
from .model import Tenant
from .rights import bridge_path
from .work import PlannedPart

if TYPE_CHECKING:
    from .._api.client import Client

# The kinds of resources that are tasks of preflight by the same name.
_TASKS = {"pool", "group", "role", "user", "token", "cluster_options"}


def find_templates(client: Client, tenant: Tenant, facts: Facts) -> dict[str, int]:
    """Return the VMIDs of the templates, by what names them. Raises NotFound for one that is not
    there, and Conflict for an ambiguous name.
    """
    cluster = facts.cluster
    if any(whole_number(text) is None for text in tenant.templates):
        cluster = with_names(client, cluster, missing=True)
    found: dict[str, int] = {}
    missing: list[str] = []
    for text in tenant.templates:
        row = _find_vm(cluster, text)
        if row is not None and row.template:
            found[text] = row.vmid
        else:
            missing.append(text)
    if missing:
        names = [row.name for row in cluster.vms.values() if row.template]
        raise _unknown(tenant, "template", missing, names)
    return found


def _find_vm(cluster: ClusterState, text: str) -> VmRow | None:
    """Return the VM of a VMID, or the template of a name; None where there is none."""
    number = whole_number(text)
    if number is not None:
        return find_template(cluster, vmid=number)
    return find_template(cluster, name=text)


def require_objects(client: Client, tenant: Tenant, facts: Facts) -> None:
    """Raise for storages, nodes, bridges, members or a realm that do not exist."""
    storages = {row.storage for row in facts.cluster.storages}
    asked = {*tenant.storages, *tenant.image_storages}
    _require(tenant, "storage", asked, storages)
    _require(tenant, "node", tenant.nodes, facts.cluster.nodes)
    _require(tenant, "user", tenant.members, facts.users)
    _require_bridges(client, tenant, facts)
    if tenant.user not in facts.users:
        realm = tenant.user.rpartition("@")[2]
        _require(tenant, "realm", {realm}, kinds_of_realms(client))


def bridges_of_templates(
    client: Client, tenant: Tenant, facts: Facts, templates: Mapping[str, int]
) -> list[str]:
    """Return a warning for each template whose bridges the tenant was not given, so that Proxmox VE
    refuses to clone it (qemu-server: PVE/API2/Qemu.pm, clone_vm).

    One request for each template that the tenant does not have yet.
    """
    if "provision" not in tenant.operations:
        return []
    given = own_rights(tenant, facts)
    known = {name.rpartition("/")[2] for name in tenant.bridges}
    warnings: list[str] = []
    for name, vmid in templates.items():
        if f"/vms/{vmid}" in given:
            continue
        node = facts.cluster.vms[vmid].node
        config = client.get("nodes", node, "qemu", vmid, "config")
        missing = ", ".join(sorted(bridges_of(config) - known))
        if missing:
            text = f"Template {name} has a NIC on {missing}, which {tenant.label} was not given"
            warnings.append(f"{text}: Proxmox VE refuses to clone it. Add it to bridges")
    return warnings


def _require(tenant: Tenant, kind: str, asked: Iterable[str], known: Collection[str]) -> None:
    missing = sorted(set(asked) - set(known))
    if missing:
        raise _unknown(tenant, kind, missing, known)


def _require_bridges(client: Client, tenant: Tenant, facts: Facts) -> None:
    """Raise for bridges that no node has, among those that the tenant does not have yet; VNets are
    not read.
    """
    given = own_rights(tenant, facts)
    asked: list[str] = []
    for name in tenant.bridges:
        is_vnet = "/" in name
        if not is_vnet and bridge_path(name) not in given:
            asked.append(name)
    if asked:
        _require(tenant, "bridge", asked, _all_bridges(client, facts))


def _all_bridges(client: Client, facts: Facts) -> set[str]:
    """Return the bridges of all nodes that answer; one request for each node that is online."""
    bridges = KnownBridges(client)
    for name, node in sorted(facts.cluster.nodes.items()):
        if node.online:
            bridges.learn(name)
    found: set[str] = set()
    for names in bridges.seen.values():
        found.update(names or ())
    return found


def _unknown(tenant: Tenant, kind: str, missing: Sequence[str], known: Iterable[str]) -> FleetError:
    """Return the error for objects that do not exist; `known` are those that do."""
    category: type[FleetError] = ConfigurationError
    if kind in ("user", "template"):
        category = NotFound
    names = ", ".join(sorted(known)) or "none that this user or token may see"
    return category(
        attempted=f"{tenant.label} was not changed",
        answer=f"there is no {kind} {', '.join(missing)}; the cluster has {names}",
        next_step="Create it first, or check the name",
        reason=f"unknown {kind}",
        details={f"{kind}s": list(missing)},
    )


def giver_check(roles: Mapping[str, frozenset[str]], facts: Facts) -> Precheck:
    """Return a check of rights while all is planned; `roles` will exist then."""
    known = {name: read_privileges(row) for name, row in facts.roles.items()}
    known.update(roles)

    def check(client: Api, desired: Desired, change: Change) -> tuple[str, ...]:
        path = desired.keys["path"]
        judge_giver(
            held_on(client, path),
            known,
            change.adds.get("grants", frozenset()),
            change.removes.get("grants", frozenset()),
            f"The rights on '{path}' were not changed",
        )
        return ()

    return check


def require_privileges(client: Client, tenant: Tenant, planned: Sequence[PlannedPart]) -> None:
    """Raise PermissionDenied where the caller lacks what the planned changes need."""
    kinds = {one.kind for one in planned}
    tasks = sorted(_TASKS & kinds)
    lacking: list[str] = []
    for question in questions(tasks, Subjects(pool=tenant.pool), client.version()):
        if not holds(question, held_on(client, question.path)):
            lacking.append(_text(question))
    if lacking:
        raise PermissionDenied(
            attempted=f"{tenant.label} was not changed",
            answer=f"this user or token does not have {', '.join(lacking)}",
            next_step="Log in as an administrator: a tenant cannot be managed with less",
            reason="no right",
            details={"privileges": lacking},
        )


def _text(question: Question) -> str:
    return f"{' or '.join(question.privileges)} on {question.path}"
