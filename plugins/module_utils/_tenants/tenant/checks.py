# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of a tenant before its first write, so that no run stops halfway."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..._foundation.api.interface import Api
from ..._foundation.cluster.bridges import KnownBridges
from ..._foundation.cluster.find.lookup import find_template, templates_named
from ..._foundation.cluster.find.visible import hidden_storages, require_no_hidden_storages
from ..._foundation.cluster.state import ClusterState, VmRow, with_names
from ..._foundation.cluster.tenant import is_of_others
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, FleetError, NotFound
from ..._foundation.core.quantities import whole_number
from ..._foundation.resource.engine import require_permitted
from ..._foundation.resource.plan import Plan
from ..._foundation.resource.table import DesiredResource, Precheck, ResourceChange
from ..._guests.kinds.words import kind_of_row
from ..access.acl import held_on, require_givable
from ..access.effective import read_privileges
from ..access.realms.realm import kinds_of_realms
from .facts import TenantFacts, own_rights
from .marks import is_established, not_marked
from .model import Tenant
from .rights import bridge_path
from .work import PlannedResource

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def with_template_names(client: Client, tenant: Tenant, facts: TenantFacts) -> ClusterState:
    """Return the state of VMs and containers, with all names if a template is given by name."""
    if all(whole_number(text) is not None for text in tenant.templates):
        return facts.of_both_kinds
    return with_names(client, facts.of_both_kinds, missing=True)


def find_templates(tenant: Tenant, cluster: ClusterState) -> dict[str, int]:
    """Return the VMIDs of the templates, by the name or VMID in the option (pure).

    A name with several versions or copies has an entry for each, with the VMID in its key. Raises
    NotFound for a missing template, and Conflict for an ambiguous name.
    """
    found: dict[str, int] = {}
    missing: list[str] = []
    for text in tenant.templates:
        rows = _find_rows(tenant, cluster, text)
        if not rows:
            missing.append(text)
        elif len(rows) == 1:
            found[text] = rows[0].vmid
        else:
            found |= {f"{text} ({row.vmid})": row.vmid for row in rows}
    if missing:
        names = [row.name for row in cluster.vms.values() if row.template]
        raise _unknown(tenant, "template", missing, names)
    return found


def _find_rows(tenant: Tenant, cluster: ClusterState, text: str) -> list[VmRow]:
    """Return the template with a VMID, or the templates with a name that no other tenant owns."""
    row = find_template(cluster, vmid=whole_number(text), name=text)
    if row is None or not row.template:
        return []
    if whole_number(text) is not None:
        return [row]
    same = templates_named(cluster, text)
    return [one for one in same if not is_of_others(tenant.tag, one.tags, tenant.prefix)]


def require_objects(client: Client, tenant: Tenant, facts: TenantFacts) -> None:
    """Raise for storages, nodes, bridges, members or a realm that do not exist."""
    storages = {row.storage for row in facts.cluster.storages}
    requested = {*tenant.storages, *tenant.image_storages}
    attempted = f"{tenant.label} was not changed"
    hidden = hidden_storages(client, sorted(requested - storages))
    require_no_hidden_storages(hidden, attempted)
    _require(tenant, "storage", requested, storages)
    _require(tenant, "node", tenant.nodes, facts.cluster.nodes)
    _require(tenant, "user", tenant.members, facts.users)
    _require_bridges(client, tenant, facts)
    if tenant.user not in facts.users:
        realm = tenant.user.rpartition("@")[2]
        _require(tenant, "realm", {realm}, kinds_of_realms(client))


def bridges_of_templates(
    client: Client, tenant: Tenant, facts: TenantFacts, templates: Mapping[str, int]
) -> list[str]:
    """Return a warning for each template with bridges that the tenant was not given.

    Proxmox VE refuses to clone such a template (qemu-server: PVE/API2/Qemu.pm, clone_vm;
    pve-container: API2/LXC.pm, clone_vm). One request for each template that the tenant has no
    rights on yet.
    """
    if "provision" not in tenant.operations:
        return []
    given = own_rights(tenant, facts)
    known = {name.rpartition("/")[2] for name in tenant.bridges}
    warnings: list[str] = []
    for name, vmid in templates.items():
        if f"/vms/{vmid}" in given:
            continue
        row = facts.of_both_kinds.vms[vmid]
        config = client.get(*row.path, "config")
        missing = ", ".join(sorted({*kind_of_row(row).bridges_in(config).values()} - known))
        if missing:
            text = f"Template {name} has a NIC on {missing}, which {tenant.label} was not given"
            warnings.append(f"{text}: Proxmox VE refuses to clone it. Add it to bridges")
    return warnings


def _require(tenant: Tenant, kind: str, requested: Iterable[str], known: Collection[str]) -> None:
    missing = sorted(set(requested) - set(known))
    if missing:
        raise _unknown(tenant, kind, missing, known)


def _require_bridges(client: Client, tenant: Tenant, facts: TenantFacts) -> None:
    """Raise for bridges that exist on no node.

    VNets, and bridges that the tenant already has rights on, are not checked. One request for each
    node that is online.
    """
    given = own_rights(tenant, facts)
    bridges = [name for name in tenant.bridges if "/" not in name]
    requested = [name for name in bridges if bridge_path(name) not in given]
    if not requested:
        return
    known = KnownBridges(client)
    for name, node in sorted(facts.cluster.nodes.items()):
        if node.online:
            known.try_read(name)
    found: set[str] = set()
    for names in known.by_node.values():
        found.update(names or ())
    _require(tenant, "bridge", requested, found)


def _unknown(tenant: Tenant, kind: str, missing: Sequence[str], known: Iterable[str]) -> FleetError:
    category: type[FleetError] = ConfigurationError
    if kind in ("user", "template"):
        category = NotFound
    visible = sorted(known)
    names = ", ".join(visible) or "none that this user or token may see"
    return category(
        f"{tenant.label} was not changed: there is no {kind} {', '.join(missing)}; the cluster "
        f"has {names}{did_you_mean(missing[0], visible)}",
        "Create it first, or check the name",
        f"unknown {kind}",
        details={f"{kind}s": list(missing)},
    )


def giver_check(roles: Mapping[str, frozenset[str]], facts: TenantFacts) -> Precheck:
    """Return a precheck of rights for the planning of the whole tenant.

    `roles` need not exist yet: they are created before the rights.
    """
    known = {name: read_privileges(row) for name, row in facts.roles.items()}
    known.update(roles)

    def check(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
        path = desired.keys["path"]
        require_givable(
            held_on(client, path),
            known,
            change.adds.get("grants", frozenset()),
            change.removes.get("grants", frozenset()),
            f"The rights on '{path}' were not changed",
        )
        return ()

    return check


def require_plans_permitted(client: Client, plans: Sequence[Plan]) -> None:
    """Raise PermissionDenied for the first step that Proxmox VE would refuse, with its cause."""
    step = "Log in as an administrator: a tenant cannot be managed with less"
    require_permitted(client, [(plan, {}) for plan in plans], step)


def require_own_names(
    tenant: Tenant, facts: TenantFacts, planned: Sequence[PlannedResource]
) -> None:
    """Raise Conflict if the plan changes roles, rights or a registered tag that existed before
    anything was created for the tenant.
    """
    found: list[str] = []
    for one in planned:
        desired = one.resource.desired
        changes_what_exists = {
            "role": desired.keys.get("name") in facts.roles,
            "acl": not desired.present,
            "cluster_options": not desired.present,
        }
        if changes_what_exists.get(one.kind):
            found.append(one.resource.table.label(desired.keys))
    if found and not is_established(tenant, facts):
        raise not_marked(tenant, found, f"{tenant.label} was not changed")
