# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares a task with the choices and the guests of its approved plan (pure).

A run sees only what it finds and what its options name, so a guest that it no longer finds would be
skipped without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..api.access.privileges import Privileges
from ..core.errors import ValidationFailed
from .document import Change, Part, PlannedGuest, plain, refused
from .requests import HASHED

if TYPE_CHECKING:
    from ..cluster.state import VmRow

# The options that choose guests or the direction of a change, by module: with another value, a run
# may have nothing to do, and would report that nothing is left of the plan.
_CHOICES = {
    "cluster": ("exact", "sections"),
    "failover": ("vms", "exclude", "tenant"),
    "power": ("state", "tenants", "exclude", "selection"),
    "tenant": ("state",),
    "vms": ("state", "tenants", "remove", "prune"),
}
_SHOWN = 5
# The options with which a task acts in each run: PVE does not show that an earlier run has acted. The
# uptime of a VM begins with its process, so also after a migration.
_REPEATED = {
    "state": ("restarted", "reset", "rotated"),
    "reboot": ("always",),
    "update_password": ("always",),
    "update_secrets": ("always",),
}


def require_no_repetition(arguments: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a task that acts in each run, so also in a second apply of its plan."""
    found = dict.fromkeys(_repeated_in(arguments))
    if found:
        raise ValidationFailed(
            f"Nothing was done: {', '.join(found)} in a plan would act again each time the plan "
            "is applied",
            "Leave it out of the plan, and run it in a task without plan_file",
            "plan options",
        )


def _repeated_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _repeated_in(item)
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str) and item in _REPEATED.get(key, ()):
                yield f"{key}: {item}"
            yield from _repeated_in(item)


def require_same_choices(part: Part, arguments: Mapping[str, Any], place: str) -> None:
    """Raise ValidationFailed if a task chooses something else than the plan, or lacks an item of a
    list of it. A plan with a subject can be applied item by item.
    """
    found = list(_other_choices(part, arguments))
    if not part.subject:
        found += _missing_items(part, arguments)
    if found:
        next_step = "Apply it with the variables of its plan, or plan again"
        raise refused(place, "; ".join(found), next_step).on(reason="not as planned")


def _other_choices(part: Part, arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in _CHOICES.get(part.task, ()):
        planned, now = (_shown(one.get(name)) for one in (part.arguments, arguments))
        if planned != now:
            yield f"it was made with {name} {planned}, and this task has {now}"


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(sorted(map(str, value))) or "not set"
    return str(plain(value)) if value not in (None, "") else "not set"


def _missing_items(part: Part, arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, planned in part.arguments.items():
        now = set(_names_in(arguments.get(name)))
        missing = [
            one
            for one in dict.fromkeys(_names_in(planned))
            if one not in now and not one.startswith(HASHED)  # the name contains a secret
        ]
        if missing:
            more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            yield f"this task lacks {', '.join(missing[:_SHOWN])}{more} of its {name}"


def _names_in(items: Any) -> Iterator[str]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and (item.get("name") or item.get("vmid")):
            name = str(item.get("name") or item["vmid"])
            yield f"{item['tenant']}/{name}" if item.get("tenant") else name


def find_lost(
    changes: Iterable[Change], rows: Mapping[int, VmRow], *, may_go: bool = True
) -> Iterator[tuple[Change, str]]:
    """Yield the changes of guests that are not there any more, or not as the guest that was
    planned, with the difference. With `may_go`, a guest that the plan removes may be gone.
    """
    for change in changes:
        guest = change.guest
        if guest is None:
            continue
        row = rows.get(guest.vmid)
        differences = differences_of(guest, row) if row is not None else []
        if row is None and (change.after or not may_go):
            differences = [f"planned VMID {guest.vmid}, now there is no such guest"]
        if differences:
            yield change, "; ".join(differences)


def differences_of(guest: PlannedGuest, row: VmRow) -> list[str]:
    """Return what tells a guest of the listing from the planned one with its VMID."""
    found: list[str] = []
    if guest.kind != row.type or _has_other_name(guest, row):
        now = f"{row.type} {row.own_name}".rstrip()
        found.append(f"planned VMID {guest.vmid} as {guest.kind} {guest.name}, now it is {now}")
    if guest.tenant and guest.tenant not in row.tags:
        tags = ", ".join(row.tags) or "none"
        found.append(f"planned with tag {guest.tenant}, now its tags are: {tags}")
    return found


def _has_other_name(guest: PlannedGuest, row: VmRow) -> bool:
    """Return whether a guest has another name. An unnamed one is planned with its VMID, and the name
    of a guest on a lost node is not known.
    """
    is_named = guest.name.rpartition(" ")[2] != str(guest.vmid)
    return bool(is_named and row.own_name) and guest.name.lower() != row.own_name.lower()


def find_unreachable(
    changes: Iterable[Change], vmids: Iterable[int], held: Privileges
) -> Iterator[Change]:
    """Yield the changes of guests that a login cannot see (it sees `vmids`), and on
    whose path or pool it has no privilege: the guests of others.
    """
    visible = set(vmids)
    for change in changes:
        guest = change.guest
        if guest is None or guest.vmid in visible:
            continue
        pools = [one.data.get("pool") for one in change.requests]
        paths = [f"/pool/{one}" for one in (*pools, change.before.get("pool")) if one]
        if not any(held.on(path) for path in (f"/vms/{guest.vmid}", *paths)):
            yield change
