# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of the list of VMs, the settings of their tenants, and the selection that a run works on
(pure).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..._foundation.cluster.quota import AUTO, TenantSites, read_tenant_sites, site_of_guest
from ..._foundation.cluster.tenant import PREFIX, tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean, parse_options
from ..._foundation.core.errors import FleetError, ValidationFailed, category_class
from ..._foundation.core.failures.several import FailedGuest, causes_of
from ..._foundation.spec.tenants import OF_VMS, read_estate_tenants
from ..guest.desired.layers import lay_over
from ..guest.registry import LISTS, VMS, ListKind


@dataclass(frozen=True)
class TenantSettings:
    """The settings of a tenant: the site of its VMs (empty: the task's), or its sites, and the
    options of its VMs.
    """

    site: str = ""
    sites: TenantSites = TenantSites()
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(params: Mapping[str, Any]) -> dict[str, TenantSettings]:
    """Return O(tenant_settings) by tenant. Raises ValidationFailed that names the tenant."""
    found: dict[str, TenantSettings] = {}
    given = read_estate_tenants(params.get("tenant_settings"))
    for tenant, options in given.items():
        found[tenant] = _settings(tenant, options)
    return found


def _settings(tenant: str, options: Mapping[str, Any]) -> TenantSettings:
    defaults = options.get("defaults") or {}
    if defaults.get("tenant"):
        raise ValidationFailed(
            f"The settings of tenant {tenant} were refused: defaults has the option tenant, which "
            "is the name of these settings",
            "Leave it out",
            "tenant",
        )
    sites = read_tenant_sites(tenant, options)
    own = {name: options.get(name) for name in OF_VMS}
    return TenantSettings(
        site=str(options.get("site") or ""),
        sites=sites,
        options=lay_over(VMS.without_empty_texts(defaults), own),
    )


def settings_of(settings: Mapping[str, TenantSettings], tenant: str) -> TenantSettings:
    """Return the settings of a tenant; empty without a tenant, or if no tenant has settings.

    Raises ValidationFailed for a tenant without settings if other tenants have settings.
    """
    if not settings or not tenant:
        return TenantSettings()
    if tenant in settings:
        return settings[tenant]
    known = ", ".join(sorted(settings))
    hint = did_you_mean(tenant, settings)
    reason = "tenant without settings"
    attempted = f"tenant '{tenant}' was refused"
    answer = f"the estate has settings for {known} only{hint}"
    raise ValidationFailed(
        f"{attempted}: {answer}",
        "Correct the tenant, or add it to the tenants of the estate",
        reason,
    )


def inherited(
    params: Mapping[str, Any], settings: TenantSettings, kind: ListKind = VMS
) -> Mapping[str, Any]:
    """Return the options for a tenant's guests: its own settings override the shared ones."""
    if not settings.options:
        return params
    shared = {name: params.get(name) for name in kind.specs.shared}
    own = kind.specs.own(settings.options)
    return {**params, **lay_over(kind.without_empty_texts(shared), own)}


def site_of(own: Mapping[str, Any], settings: TenantSettings) -> str:
    """Return the site of a VM: its own, else its tenant's, else an empty text."""
    return str(own.get("site") or settings.site)


def _at_site(settings: TenantSettings, site: str) -> TenantSettings:
    """Return the settings of a tenant for its VMs at one of its sites."""
    return replace(settings, options={**settings.options, **settings.sites.options[site]})


@dataclass(frozen=True)
class ListEntry:
    """One entry of the list: its place, its own options, and the identity of its VM."""

    index: int
    kind: ListKind
    options: Mapping[str, Any]
    name: str
    vmid: int | None
    tenant: str
    tag: str  # the tenant's tag in lower case, empty without a tenant
    settings: TenantSettings = TenantSettings()
    site: str = ""  # empty for the site of the task

    @property
    def noun(self) -> str:
        """The word for its kind of guests."""
        return self.kind.kind.noun

    @property
    def place(self) -> str:
        """The entry as messages call it, such as C(vms[0])."""
        return self.kind.label(self.index)

    @property
    def label(self) -> str:
        return "/".join(filter(None, (self.tenant, self.name)))


class ItemErrors:
    """Collects the errors of single VMs, so that one error names all of them."""

    def __init__(self) -> None:
        self._failures: list[FailedGuest] = []
        self._details: list[dict[str, Any]] = []  # of each failure: its place, and its error

    def note(self, kind: ListKind, index: int, own: Mapping[str, Any], error: FleetError) -> None:
        """Note the error of a guest by its place in a list; `own` are its options, valid or not."""
        name = own.get("name") or own.get("vmid") or "without a name"
        label = f"{kind.label(index)} ({name})"
        self._failures.append(FailedGuest(label, error))
        place = {"list": kind.option, "index": index, "vm": label}
        self._details.append({**place, **error.as_result()})

    def raise_any(self) -> None:
        """Raise one error for the whole list if any mistake was noted."""
        if not self._failures:
            return
        reasons = {failed.error.reason for failed in self._failures}
        categories = {category_class(failed.error) for failed in self._failures}
        category = categories.pop() if len(categories) == 1 else ValidationFailed
        raise category(
            f"The list of VMs was refused, and nothing was changed: {causes_of(self._failures)}",
            "Correct what is wrong, and run again",
            reasons.pop() if len(reasons) == 1 else "several",
            details={"vms": self._details},
        )


def read_listed(params: Mapping[str, Any]) -> list[ListEntry]:
    """Return the entries of all lists, converted. Raises one FleetError for all mistakes."""
    settings = read_settings(params)
    mistakes = ItemErrors()
    found: list[ListEntry] = []
    for kind in LISTS:
        for index, given in enumerate(params.get(kind.option) or ()):
            try:
                options = parse_options(kind.specs.item, given)
                found.append(_listed(kind, index, options, params, settings))
            except FleetError as error:
                own = given if isinstance(given, Mapping) else {}
                mistakes.note(kind, index, own, error)
    mistakes.raise_any()
    return found


def _listed(
    kind: ListKind,
    index: int,
    own: Mapping[str, Any],
    params: Mapping[str, Any],
    settings: Mapping[str, TenantSettings],
) -> ListEntry:
    tenant = str(own.get("tenant") or params.get("tenant") or "")
    prefix = own.get("tenant_prefix") or params.get("tenant_prefix") or PREFIX
    tag = tenant_tag(tenant, prefix) if tenant else ""
    of_tenant = settings_of(settings, tenant)
    site = site_of(own, of_tenant)
    if of_tenant.sites.names:
        site = site_of_guest(tenant, site, of_tenant.sites)
    if site == AUTO:
        _require_choice(own, of_tenant.sites)
    elif of_tenant.sites.names:
        of_tenant = _at_site(of_tenant, site)
    return ListEntry(
        index=index,
        kind=kind,
        options={name: value for name, value in own.items() if name != "site"},
        name=str(own.get("name") or ""),
        vmid=own.get("vmid"),
        tenant=tenant,
        tag=tag,
        settings=of_tenant,
        site=site,
    )


def _require_choice(own: Mapping[str, Any], sites: TenantSites) -> None:
    """Raise ValidationFailed for a guest whose site cannot be chosen."""
    if not sites.names:
        raise validate.refused(
            "site", AUTO, "needs sites of its tenant", "List sites in the settings of the tenant"
        )
    if own.get("vmid") is not None or not own.get("name"):
        raise validate.refused(
            "site", AUTO, "needs a guest with a name and without a vmid", "Set its site"
        )


def require_distinct(listed: Sequence[ListEntry]) -> None:
    """Raise ValidationFailed if two entries name one guest: each would undo the other's work.

    Each site has its own VMIDs and names, which both kinds of guests share. The name of a guest
    whose site is chosen is unique at all sites of its tenant.
    """
    chosen = {(entry.tag, entry.name.lower()): entry for entry in listed if entry.site == AUTO}
    by_vmid: dict[tuple[str, int], ListEntry] = {}
    by_name: dict[tuple[str, str, str], ListEntry] = {}
    for entry in listed:
        if entry.vmid is not None:
            other = by_vmid.setdefault((entry.site, entry.vmid), entry)
            if other is not entry:
                raise _duplicate_vmid(other, entry)
        if entry.name:
            name = entry.tag, entry.name.lower()
            other = chosen.get(name) or by_name.setdefault((entry.site, *name), entry)
            if other is not entry:
                raise _duplicate_name(other, entry)


def _duplicate_vmid(first: ListEntry, second: ListEntry) -> ValidationFailed:
    label = f"{second.noun} VMID {second.vmid}"
    if first.kind is not second.kind:
        return _duplicate(first, second, f"both have the VMID {second.vmid}")
    return _duplicate(first, second, f"both are {label}; the list has more than one {label}")


def _duplicate_name(first: ListEntry, second: ListEntry) -> ValidationFailed:
    owner = f" of tenant {second.tenant}" if second.tenant else ""
    if first.kind is not second.kind:
        return _duplicate(first, second, f"both have the name '{second.name}'{owner}")
    noun = second.noun
    number = f"the list has more than one {noun} {first.label}"
    return _duplicate(first, second, f"both are {noun} '{second.name}'{owner}; {number}")


def _duplicate(first: ListEntry, second: ListEntry, answer: str) -> ValidationFailed:
    rule = "A tenant can have each name once, and each VMID belongs to one guest"
    collision = "have the same identity"
    if first.kind is second.kind:
        rule = f"A tenant can have each name once, and each VMID belongs to one {first.noun}"
        collision = f"are the same {first.noun}"
    return ValidationFailed(
        f"{first.place} and {second.place} {collision}: {answer}",
        f"{rule}: rename one of them",
        "listed twice",
    )


def read_tenants(params: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the tenants that a run works on, None if the option is omitted.

    Raises ValidationFailed for a tenant without a value.
    """
    given = params.get("tenants")
    if given is None:
        return None
    names = [str(name).strip() for name in given]
    if not all(names):
        raise ValidationFailed(
            "tenants is given without a value: a tenant's name is empty, such as that of a "
            "variable that is empty",
            "Name the tenants, or leave it out to work on the whole list",
            "tenants",
        )
    return tuple(dict.fromkeys(names))


def choose(
    listed: Sequence[ListEntry], tenants: Sequence[str] | None, *, must_exist: bool
) -> tuple[list[ListEntry], list[ListEntry]]:
    """Return the entries of the tenants, and the others.

    Without tenants all entries are chosen. Raises ValidationFailed for an unknown tenant if
    `must_exist` is set.
    """
    if not tenants:
        return list(listed), []
    chosen: list[ListEntry] = []
    others: list[ListEntry] = []
    known: set[str] = set()
    for entry in listed:
        known.add(entry.tenant)
        if entry.tenant in tenants:
            chosen.append(entry)
        else:
            others.append(entry)
    unknown = [tenant for tenant in tenants if tenant not in known]
    if unknown and must_exist:
        existing = ", ".join(filter(None, sorted(known))) or "none"
        names = ", ".join(unknown)
        raise ValidationFailed(
            f"tenants names {names}, but no VM of the list has that tenant: its tenants are "
            f"{existing}{did_you_mean(unknown[0], known)}",
            "Names are compared exactly: correct tenants or the list",
            "unknown tenant",
        )
    return chosen, others


def require_one_tenant(tenants: Sequence[str]) -> str:
    """Return the one tenant whose VMs are pruned. Raises ValidationFailed for several."""
    if len(tenants) == 1:
        return tenants[0]
    raise ValidationFailed(
        "Nothing was changed, because prune works on one tenant at a time: tenants names "
        f"{', '.join(tenants) or 'none'}",
        "Name exactly one tenant there, and run once for each of several",
        "prune",
    )


def require_same_spelling(others: Sequence[ListEntry], tenant: str, tag: str) -> None:
    """Raise ValidationFailed for entries with the tenant's tag that spell its name differently."""
    misspelt = [entry.label for entry in others if entry.tag == tag.lower()]
    if not misspelt:
        return
    cause = f"these entries of the list have the tag {tag} too"
    raise ValidationFailed(
        f"Nothing was changed, because {cause}: they would be pruned as if they were not listed: "
        f"{', '.join(misspelt)}",
        f"Spell their tenant {tenant} as tenants does",
        "tenant in other letters",
    )
