# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired VMs of a list: options for all VMs, of the class and of the VM, merged (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.quota import TenantSites
from ..._foundation.cluster.tenant import tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.errors import FleetError, ValidationFailed
from ..._foundation.spec.fleet import with_defaults
from ..._protection.backup.job.declared import BackupDeclaration, read_declaration
from ..guest.desired.layers import class_options, lay_over
from ..guest.registry import LISTS, VMS, ListKind
from .listed import (
    ItemErrors,
    ListEntry,
    choose,
    inherited,
    read_listed,
    read_tenants,
    require_distinct,
    require_one_tenant,
    require_same_spelling,
)
from .over_sites.rules import SiteChoice, SiteRules, read_site_rules

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# Options that control how a pruned VM is stopped and how long its removal may take.
_OF_REMOVAL = ("graceful", "force", "shutdown_timeout", "task_timeout", "tenant", "tenant_prefix")
# The same for a VM of the list, whose protection may be lifted.
_OF_LISTED_REMOVAL = (*_OF_REMOVAL, "protection")


@dataclass(frozen=True)
class VmItem:
    """One guest of a list: its place, and its options merged over its class and the defaults."""

    index: int
    options: Any
    kind: ListKind = VMS
    pruned: bool = False
    site: str = ""  # set if the run covers several sites
    sites: TenantSites = TenantSites()  # of its tenant
    backup: BackupDeclaration | None = None  # None if its backup jobs are not changed
    site_rules: SiteRules = SiteRules()
    site_choice: SiteChoice | None = None  # set if this run chose its site

    @property
    def desired(self) -> Any:
        """The guest as desired."""
        return self.options.desired

    @property
    def order(self) -> tuple[int, int]:
        """Its place in the result: VMs come before containers."""
        return LISTS.index(self.kind), self.index

    @property
    def place(self) -> str:
        """The guest as messages call it, such as C(vms[0])."""
        return self.kind.label(self.index)

    @property
    def name_in_dns(self) -> str:
        """Its name in lower case, as DNS compares names; empty without one."""
        name = self.desired.guest.name or ""
        return name.lower()

    @property
    def label(self) -> str:
        """The name of the VM with its tenant, as lists of several VMs show it."""
        return self.label_as("")

    def label_as(self, present_name: str) -> str:
        """Return the label; an item that gives a VMID only has the present name of the VM."""
        name = self.desired.guest.name or present_name
        name = name or f"{self.kind.kind.noun} {self.desired.guest.vmid}"
        if self.desired.guest.tenant:
            return f"{self.desired.guest.tenant}/{name}"
        return name


@dataclass(frozen=True)
class PruneScope:
    """The VMs that may be pruned: all VMs of a tenant, of a pool, or of a tenant in a pool."""

    tenant_tag: str | None
    prefix: str
    pool: str | None

    @property
    def label(self) -> str:
        bounds: list[str] = []
        if self.tenant_tag:
            bounds.append(f"tag {self.tenant_tag}")
        if self.pool:
            bounds.append(f"pool {self.pool}")
        return " and ".join(bounds)


@dataclass(frozen=True)
class Estate:
    """The options of a task, parsed: the VMs to work on, other tenants' entries, the scope of
    prune.

    `params` are the options with O(defaults) merged into them.
    """

    params: Mapping[str, Any]
    items: list[VmItem]
    others: list[ListEntry]
    scope: PruneScope | None = None


def read_items(params: Mapping[str, Any], client: Client) -> list[VmItem]:
    """Return the VMs to work on, in the order of the list. Raises one error with all mistakes."""
    return read_estate(params, client).items


def read_estate(
    params: Mapping[str, Any], client: Client | None, sites: Collection[str] | None = None
) -> Estate:
    """Parse the options of a task. Raises FleetError for a mistake in any of them.

    The client is only asked for the version of PVE, and only if an option is not in the schema.
    Without a client, such options are not checked. With `sites`, only VMs of these sites are
    included.
    """
    params, given = fold_defaults(params), params
    listed = read_listed(params)
    tenants = read_tenants(params)
    prunes = bool(params.get("prune")) and not params.get("remove")
    if prunes and tenants is not None:
        params = {**params, "tenant": require_one_tenant(tenants)}
    chosen, others = choose(listed, tenants, must_exist=params.get("tenants_required") is not False)
    if sites is not None:
        chosen = _at_sites(chosen, sites)
        others = _at_sites(others, sites)
    read = removal_listed if params.get("remove") else merge
    params_of = {one.option: fold_defaults(given, one) for one in lists_of(chosen)}
    items: list[VmItem] = []
    mistakes = ItemErrors()
    for entry in chosen:
        try:
            own = params_of[entry.kind.option]
            layers = inherited(own, entry.settings, entry.kind)
            items.append(_item(entry, read(layers, entry.options, entry.kind), client))
        except FleetError as error:
            mistakes.note(entry.kind, entry.index, entry.options, error)
    mistakes.raise_any()
    require_distinct(listed)
    if not prunes:
        return Estate(params, items, others)
    scope = read_scope(params)
    tenant = str(params.get("tenant") or "")
    require_same_spelling(others, tenant, scope.tenant_tag or "")
    _require_inside(items, scope)
    return Estate(params, items, others, scope)


def lists_of(entries: Sequence[ListEntry | VmItem]) -> list[ListKind]:
    """Return the lists that have any of these guests (pure)."""
    return [one for one in LISTS if any(entry.kind is one for entry in entries)]


def _item(entry: ListEntry, merged: Mapping[str, Any], client: Client | None) -> VmItem:
    """Return the guest of an entry from its merged options. Raises FleetError."""
    options = dict(merged)
    given = options.pop("backup", None)
    sites = entry.settings.sites
    site_rules = read_site_rules(options.pop("site_placement", None), sites.names)
    declaration = None if given is None else read_declaration(given)
    item = VmItem(
        entry.index,
        entry.kind.read(options),
        entry.kind,
        site=entry.site,
        sites=sites,
        backup=declaration,
        site_rules=site_rules,
    )
    if client is not None:
        entry.kind.flow.require_names(client, item.desired)
    return item


def _at_sites(entries: list[ListEntry], sites: Collection[str]) -> list[ListEntry]:
    return [entry for entry in entries if entry.site in sites]


def fold_defaults(params: Mapping[str, Any], kind: ListKind = VMS) -> dict[str, Any]:
    """Return the options with O(defaults) merged over the options next to it, for the guests of one
    kind.

    Raises ValidationFailed.
    """
    given = params.get("defaults")
    if not given:
        return dict(params)
    specs, bare = kind.specs, kind.without_empty_texts
    more = parse_options(specs.shared, specs.own(given), "defaults")
    shared = {name: params.get(name) for name in specs.shared}
    return {**params, **lay_over(bare(shared), bare(more))}


def merge(
    params: Mapping[str, Any], own: Mapping[str, Any], kind: ListKind = VMS
) -> dict[str, Any]:
    """Return the options of one guest: its own override its class, which overrides the shared ones.

    Raises FleetError for a class that does not exist.
    """
    specs = kind.specs
    shared = specs.shared_of(params)
    label = own.get("class") or shared.get("class")
    named: Mapping[str, Any] = {}
    if label:
        named = class_options(label, _classes_of(shared, own), specs, shared)
    layers = [kind.without_empty_texts(options) for options in (shared, named, own)]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = lay_over(merged, layer)
    merged["class"] = None  # its options are merged already
    return with_defaults(specs.whole, merged)


def _classes_of(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes that a VM can have: its own override the shared ones."""
    for_all = shared.get("classes") or {}
    of_vm = own.get("classes") or {}
    return {**for_all, **of_vm}


def read_scope(params: Mapping[str, Any]) -> PruneScope:
    """Return the scope of prune. Raises ValidationFailed without a tenant or a pool."""
    prefix = params.get("tenant_prefix") or "tenant_"
    tag: str | None = None
    pool: str | None = None
    if params.get("tenant"):
        tag = validate.tag(tenant_tag(params["tenant"], prefix), "tenant")
    if params.get("pool"):
        pool = validate.pool(params["pool"])
    if tag is None and pool is None:
        raise validate.refused(
            "prune", True, "has no bounds", "Say whose VMs are pruned: tenant or pool, for all VMs"
        )
    return PruneScope(tag, prefix, pool)


def removal_of(
    params: Mapping[str, Any], vmid: int, name: str, kind: ListKind = VMS
) -> dict[str, Any]:
    """Return the options of a guest that is pruned."""
    shared = {name: params.get(name) for name in _OF_REMOVAL}
    own = {"vmid": vmid, "name": name or None, "state": "absent"}
    return with_defaults(kind.specs.whole, {**shared, **own})


def removal_listed(
    params: Mapping[str, Any], own: Mapping[str, Any], kind: ListKind = VMS
) -> dict[str, Any]:
    """Return the options that remove a listed guest; others, even a missing class, are ignored."""
    shared = {name: params.get(name) for name in _OF_LISTED_REMOVAL}
    label = own.get("class") or params.get("class")
    content = _classes_of(params, own).get(str(label))
    of_class: dict[str, Any] = {}
    if isinstance(content, Mapping):
        of_class = {"protection": content.get("protection")}
    protection = parse_options({"protection": {"type": "bool"}}, of_class)
    mine = {name: own.get(name) for name in ("name", "vmid", *_OF_LISTED_REMOVAL)}
    merged = lay_over(lay_over(shared, protection), mine)
    return with_defaults(kind.specs.whole, {**merged, "state": "absent"})


def _require_inside(items: list[VmItem], scope: PruneScope) -> None:
    """Raise ValidationFailed if a VM of the list is outside the scope of prune."""
    for item in items:
        desired = item.desired
        is_of_tenant = scope.tenant_tag in (None, desired.guest.tenant_tag)
        is_of_pool = scope.pool in (None, desired.guest.pool)
        is_inside = is_of_tenant and is_of_pool
        if not is_inside and desired.guest.state != "absent":
            raise ValidationFailed(
                f"{item.place}, {desired.guest.label}, was refused: with prune all guests of the "
                f"list have the {scope.label}; this one says another",
                "Leave out its tenant and pool, or put it into a task of its own",
                "outside the scope",
            )
