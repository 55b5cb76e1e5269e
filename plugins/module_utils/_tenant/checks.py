# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is checked of a tenant before the first write, so that nothing is done half."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._access.acl_check import judge_giver
from .._access.role import read_privileges
from .._cluster.bridges import KnownBridges
from .._cluster.lookup import find_template
from .._cluster.state import with_names
from .._core.errors import ConfigurationError, FleetError, NotFound, PermissionDenied
from .._preflight.needs import Question, Subjects, holds, questions
from .._resource.change import Change, Desired
from .._resource.protocols import Api
from .facts import Facts, own_rights
from .model import Tenant
from .rights import bridge_path

if TYPE_CHECKING:
    from .._api.client import Client

# The kinds of resources that are tasks of preflight by the same name.
_TASKS = {"pool", "group", "role", "user", "token", "cluster_options"}


def find_templates(client: Client, tenant: Tenant, facts: Facts) -> dict[str, int]:
    """Return the VMIDs of the templates, by what names them. Raises NotFound for one that is not
    there, and Conflict for an ambiguous name.
    """
    cluster = facts.cluster
    if any(not one.isdigit() for one in tenant.templates):
        cluster = with_names(client, cluster, missing=True)
    found: dict[str, int] = {}
    missing: list[str] = []
    for one in tenant.templates:
        number = int(one) if one.isdigit() else None
        row = find_template(cluster, vmid=number, name=None if number else one)
        if row is None or not row.template:
            missing.append(one)
            continue
        found[one] = row.vmid
    if missing:
        names = ", ".join(sorted(row.name for row in cluster.vms.values() if row.template))
        raise _unknown(tenant, "template", missing, names)
    return found


def require_objects(client: Client, tenant: Tenant, facts: Facts) -> None:
    """Raise for storages, nodes, bridges, members or a realm that do not exist."""
    storages = {row.storage for row in facts.cluster.storages}
    asked = {*tenant.storages, *tenant.image_storages}
    _require(tenant, "storage", asked, storages)
    _require(tenant, "node", tenant.nodes, facts.cluster.nodes)
    _require(tenant, "user", tenant.members, facts.users)
    _require_bridges(client, tenant, facts)
    if tenant.user not in facts.users:
        realms = {str(row["realm"]) for row in client.get("access", "domains") or []}
        _require(tenant, "realm", {tenant.user.rpartition("@")[2]}, realms)


def _require(tenant: Tenant, kind: str, asked: Iterable[str], known: Collection[str]) -> None:
    missing = sorted(set(asked) - set(known))
    if missing:
        raise _unknown(tenant, kind, missing, ", ".join(sorted(known)))


def _require_bridges(client: Client, tenant: Tenant, facts: Facts) -> None:
    """Raise for bridges that no node has, among those that the tenant does not have yet; VNets are
    not read.
    """
    given = own_rights(tenant, facts)
    new = [name for name in tenant.bridges if bridge_path(name) not in given]
    asked = [name for name in new if "/" not in name]
    if not asked:
        return
    bridges = KnownBridges(client)
    for name, node in sorted(facts.cluster.nodes.items()):
        if node.online:
            bridges.learn(name)
    known = {name for seen in bridges.seen.values() for name in seen or ()}
    _require(tenant, "bridge", asked, known)


def _unknown(tenant: Tenant, kind: str, missing: Sequence[str], known: str) -> FleetError:
    category = NotFound if kind in ("user", "template") else ConfigurationError
    return category(
        attempted=f"{tenant.label} was not changed",
        answer=f"there is no {kind} {', '.join(missing)}; the cluster has {known or 'none'}",
        next_step="Create it first, or check the name",
        reason=f"unknown {kind}",
        details={f"{kind}s": list(missing)},
    )


def giver_check(roles: Mapping[str, frozenset[str]], facts: Facts) -> Any:
    """Return a check of rights while all is planned; `roles` will exist then."""
    known = {name: read_privileges(row) for name, row in facts.roles.items()}
    known.update(roles)

    def check(client: Api, desired: Desired, change: Change) -> tuple[str, ...]:
        path = desired.keys["path"]
        answer: Mapping[str, Any] = client.get("access", "permissions", path=path) or {}
        judge_giver(
            answer.get(path) or {},
            known,
            change.adds.get("grants", frozenset()),
            change.removes.get("grants", frozenset()),
            f"The rights on '{path}' were not changed",
        )
        return ()

    return check


def require_privileges(client: Client, tenant: Tenant, kinds: Collection[str]) -> None:
    """Raise PermissionDenied where the caller lacks what the changes of these kinds need."""
    tasks = sorted(_TASKS & set(kinds))
    asked = questions(tasks, Subjects(pool=tenant.pool), client.version())
    lacking: list[str] = []
    for question in asked:
        answer: Mapping[str, Any] = client.get("access", "permissions", path=question.path) or {}
        if not holds(question, answer.get(question.path)):
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
