# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of the list of VMs, and the selection that a run works on (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._foundation.cluster.tenant import PREFIX, tenant_tag
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.errors import FleetError, ValidationFailed, category_class
from ..._foundation.core.failures.several import FailedGuest, causes_of
from ..guest.registry import LISTS, ListKind
from .tenants import TenantSettings, read_settings, settings_of, site_of


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


@dataclass(frozen=True)
class _ItemError:
    option: str
    index: int
    label: str
    error: FleetError


class ItemErrors:
    """Collects the errors of single VMs, so that one error names all of them."""

    def __init__(self) -> None:
        self._found: list[_ItemError] = []

    def note(self, kind: ListKind, index: int, own: Mapping[str, Any], error: FleetError) -> None:
        """Note the error of a guest by its place in a list; `own` are its options, valid or not."""
        name = own.get("name") or own.get("vmid") or "without a name"
        label = f"{kind.label(index)} ({name})"
        self._found.append(_ItemError(kind.option, index, label, error))

    def raise_any(self) -> None:
        """Raise one error for the whole list if any mistake was noted."""
        if self._found:
            raise _refused(self._found)


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
    return ListEntry(
        index=index,
        kind=kind,
        options={name: value for name, value in own.items() if name != "site"},
        name=str(own.get("name") or ""),
        vmid=own.get("vmid"),
        tenant=tenant,
        tag=tag,
        settings=of_tenant,
        site=site_of(own, of_tenant),
    )


def require_distinct(listed: Sequence[ListEntry]) -> None:
    """Raise ValidationFailed if two entries name one guest: each would undo the other's work.

    Each site has its own VMIDs and names, which both kinds of guests share.
    """
    by_vmid: dict[tuple[str, int], ListEntry] = {}
    by_name: dict[tuple[str, str, str], ListEntry] = {}
    for entry in listed:
        if entry.vmid is not None:
            other = by_vmid.setdefault((entry.site, entry.vmid), entry)
            if other is not entry:
                raise _duplicate_vmid(other, entry)
        if entry.name:
            key = (entry.site, entry.tag, entry.name.lower())
            other = by_name.setdefault(key, entry)
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
        attempted=f"{first.place} and {second.place} {collision}",
        answer=answer,
        next_step=f"{rule}: rename one of them",
        reason="listed twice",
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
            attempted="tenants is given without a value",
            answer="a tenant's name is empty, such as that of a variable that is empty",
            next_step="Name the tenants, or leave it out to work on the whole list",
            reason="tenants",
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
            attempted=f"tenants names {names}, but no VM of the list has that tenant",
            answer=f"its tenants are {existing}",
            next_step="Names are compared exactly: correct tenants or the list",
            reason="unknown tenant",
        )
    return chosen, others


def require_one_tenant(tenants: Sequence[str]) -> str:
    """Return the one tenant whose VMs are pruned. Raises ValidationFailed for several."""
    if len(tenants) == 1:
        return tenants[0]
    raise ValidationFailed(
        attempted="Nothing was changed, because prune works on one tenant at a time",
        answer=f"tenants names {', '.join(tenants) or 'none'}",
        next_step="Name exactly one tenant there, and run once for each of several",
        reason="prune",
    )


def require_same_spelling(others: Sequence[ListEntry], tenant: str, tag: str) -> None:
    """Raise ValidationFailed for entries with the tenant's tag that spell its name differently."""
    misspelt = [entry.label for entry in others if entry.tag == tag.lower()]
    if not misspelt:
        return
    cause = f"these entries of the list have the tag {tag} too"
    raise ValidationFailed(
        attempted=f"Nothing was changed, because {cause}",
        answer=f"they would be pruned as if they were not listed: {', '.join(misspelt)}",
        next_step=f"Spell their tenant {tenant} as tenants does",
        reason="tenant in other letters",
    )


def _refused(wrong: Sequence[_ItemError]) -> FleetError:
    """Return one error for the whole list that combines the errors of its VMs."""
    failures: list[FailedGuest] = []
    details: list[dict[str, Any]] = []
    reasons: set[str] = set()
    categories: set[type[FleetError]] = set()
    for one in wrong:
        failures.append(FailedGuest(one.label, one.error))
        place = {"list": one.option, "index": one.index, "vm": one.label}
        details.append({**place, **one.error.as_result()})
        reasons.add(one.error.reason)
        categories.add(category_class(one.error))
    category = categories.pop() if len(categories) == 1 else ValidationFailed
    return category(
        attempted="The list of VMs was refused, and nothing was changed",
        answer=causes_of(failures),
        next_step="Correct what is wrong, and run again",
        reason=reasons.pop() if len(reasons) == 1 else "several",
        details={"vms": details},
    )
