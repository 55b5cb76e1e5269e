# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses the guests of the lost site to bring up, with the newest archive of each (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...._foundation.cluster.drill.copies import is_marked
from ...._foundation.cluster.find.owner import OwnerScope
from ...._foundation.cluster.tenant import owns, parse_tags, tenant_of, tenants_of
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.times import iso
from ...backup.archive import Archive, newest_first
from ..choose import ChosenArchive, is_ordinary

EXCLUDED = "it is excluded"


@dataclass(frozen=True)
class GuestSelection:
    """The guests of a task. `named` and `excluded` have names and VMIDs; an empty `named` means
    all. Archives older than `oldest` are left out. `source` is the word for the data from which
    guests come up, in messages.
    """

    owner: OwnerScope
    named: frozenset[str]
    excluded: frozenset[str]
    oldest: float
    source: str = "archive"


@dataclass
class ChosenGuests:
    """The guests to bring up, and the guests left out with the reason."""

    guests: list[ChosenArchive] = field(default_factory=list)
    skipped: list[tuple[ChosenArchive, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def newest_archives(archives: Iterable[Archive], choice: GuestSelection) -> list[Archive]:
    """Return the newest archive of each VMID that is not excluded, sorted by VMID. Archives of
    other kinds of guests, such as OpenVZ, cannot be restored and are left out.
    """
    newest: dict[int, Archive] = {}
    for one in sorted(filter(is_ordinary, archives), key=newest_first):
        if one.vmid is None:
            continue
        if str(one.vmid) not in choice.excluded:
            newest.setdefault(one.vmid, one)
    return [newest[vmid] for vmid in sorted(newest)]


def choose(
    found: Iterable[ChosenArchive], choice: GuestSelection, known: Collection[str] = ()
) -> ChosenGuests:
    """Return the guests to bring up. Problems are named guests without a usable archive, excluded
    guests and tenants that do not exist, and names shared by two guests of a tenant.

    `known` are names and VMIDs of other guests, which a task may exclude.
    """
    result = ChosenGuests()
    read = list(found)
    owned = [one for one in read if owns(choice.owner.tag, tags_of(one), choice.owner.prefix)]
    for one in owned:
        keys = keys_of(one)
        if choice.named and not keys & choice.named:
            continue
        reason = _reason_to_skip(one, choice)
        if not reason:
            result.guests.append(one)
            continue
        result.skipped.append((one, reason))
        if keys & choice.named:
            result.problems.append(f"{label_of(one)} is named, and {reason}")
    result.problems += _unknown_names(choice, read, owned, set(known))
    result.problems += _namesakes(result.guests, choice.owner.prefix)
    return result


def _unknown_names(
    choice: GuestSelection,
    read: Iterable[ChosenArchive],
    owned: Iterable[ChosenArchive],
    others: set[str],
) -> Iterator[str]:
    """Yield a sentence about each name of the task that names nothing. Only guests of the tenant of
    the task (`owned`) are suggested; the tenant of `others` is not known.
    """
    tag, prefix = choice.owner.tag, choice.owner.prefix
    own: set[str] = set().union(*map(keys_of, owned))
    known: set[str] = set().union(*map(keys_of, read))
    for name in sorted(choice.named - own - choice.excluded):
        answer = f"no {choice.source} of it was found{did_you_mean(name, own)}"
        if name in known:
            answer = f"it is not a guest of {tag}"
        yield f"guest {name} is named, and {answer}"
    for name in sorted(choice.excluded - known - others):
        hint = did_you_mean(name, own)
        yield f"guest {name} is excluded, and no {choice.source} of it was found{hint}"
    if tag is not None and not own and not choice.excluded & (others - known):
        tags: set[str] = set().union(*(tenants_of(tags_of(one), prefix) for one in read))
        tenant = tag[len(prefix) :]
        hint = did_you_mean(tenant, [one[len(prefix) :] for one in tags])
        yield f"no {choice.source} is of a guest of tenant '{tenant}'{hint}"


def _reason_to_skip(one: ChosenArchive, choice: GuestSelection) -> str:
    if is_marked(tags_of(one)):
        return "it is a copy of a drill"
    if keys_of(one) & choice.excluded:
        return EXCLUDED
    if one.config.get("template") == "1":
        return "it is a template"
    if one.archive.time < choice.oldest:
        return f"its newest {choice.source} is from {iso(one.archive.time)}"
    return ""


def _namesakes(guests: Sequence[ChosenArchive], prefix: str) -> list[str]:
    """Return a sentence about each guest that has the name of another guest of its tenant."""
    known: dict[tuple[tuple[str, ...], str], ChosenArchive] = {}
    problems: list[str] = []
    for one in guests:
        key = (tenants_of(tags_of(one), prefix), one.name)
        other = known.setdefault(key, one)
        if other is not one:
            problems.append(f"{label_of(one)} has the name of guest {other.archive.vmid}")
    return problems


def keys_of(one: ChosenArchive) -> set[str]:
    """Return the words by which a task can name a guest: its VMID and its name."""
    return {str(one.archive.vmid), one.name}


def tags_of(one: ChosenArchive) -> tuple[str, ...]:
    """Return the tags of the guest in an archive."""
    return parse_tags(one.config.get("tags"))


def label_of(one: ChosenArchive) -> str:
    """Return the label of a guest of the lost site in messages."""
    return f"{one.kind.noun} '{one.name}' ({one.archive.vmid})"


def in_groups(guests: Mapping[int, int]) -> list[list[int]]:
    """Return the VMIDs in groups with the same start order; `guests` has the order by VMID."""
    groups: dict[int, list[int]] = {}
    for vmid in sorted(guests):
        groups.setdefault(guests[vmid], []).append(vmid)
    return [groups[order] for order in sorted(groups)]


def short_names(guests: Iterable[ChosenArchive], prefix: str) -> dict[str, str]:
    """Return the names of guests in lines, such as C(acme/web1), by their labels."""
    found: dict[str, str] = {}
    for one in guests:
        tenant = tenant_of(tags_of(one), prefix)[0]
        name = one.name or str(one.archive.vmid)
        found[label_of(one)] = f"{tenant}/{name}" if tenant else name
    return found
