# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One reading of all sites: list, choose, fetch details; and its form in the cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._api.settings import ENVIRONMENT, ReadFile
from .addresses import agent_addresses
from .details import fetch_details
from .hosts import Guest, guest_of, read_guests
from .options import InventoryOptions
from .sites import Listing, open_clients, read_listings

FORM = 2  # of what is cached; another number makes an old cache worthless

IsWanted = Callable[[Guest], tuple[bool, str]]
"""Whether a guest passes the filters, and why that could not be decided (an empty text when it could)."""

UPTIME_SLACK = 60.0  # seconds by which an uptime may differ from what has passed; the listing itself lags 10 s
# A failure that only a restart of the VM can end, so that asking again is of no use before.
_LASTING = frozenset({"agent not configured"})
_TELLING = ("proxmox_cpus", "proxmox_memory_bytes", "proxmox_disk_bytes", "proxmox_lock")

_MANNERS = frozenset({"timeout", "retries", "lock_timeout"})
_SECRET = frozenset({"password", "token_secret", "client_key"})


@dataclass(frozen=True)
class Sync:
    """The chosen guests and the raw details of each by its key. `is_fresh` says that every site was read just now."""

    guests: tuple[Guest, ...]
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    is_fresh: bool = True
    taken: float = 0.0

    def for_cache(self) -> str:
        """Return the sync as one text, because Ansible's cache plugins look long at every value of a structure."""
        guests = [guest.variables for guest in self.guests]
        return json.dumps({"form": FORM, "taken": self.taken, "guests": guests, "details": self.details})

    def age(self, now: float) -> float:
        """Return the seconds since the sites were read."""
        return max(0.0, now - self.taken)

    @classmethod
    def from_cache(cls, text: str) -> Sync | None:
        """Return the sync from its text, or None when the text is not of this form."""
        try:
            data = json.loads(text)
            if data["form"] != FORM:
                return None
            guests = tuple(guest_of(variables) for variables in data["guests"])
            return cls(guests, dict(data["details"]), [], False, float(data["taken"]))
        except (KeyError, TypeError, ValueError):
            return None


def fingerprint(
    connection: Mapping[str, Any], environ: Mapping[str, str], options: InventoryOptions, filters: Any
) -> str:
    """Return a text that differs whenever other VMs or other details could be shown; no secret is part of it.

    How long and how often something is tried, how hosts are named and grouped, and which address is chosen is not part
    of it either: an old sync serves all of these.
    """
    names = {name for option, several in ENVIRONMENT.items() if option not in _MANNERS for name in several}
    known = {
        "connection": {key: value for key, value in _without_secrets(connection).items() if key not in _MANNERS},
        "environ": {
            name: environ.get(name, "") for name in sorted(names) if "PASSWORD" not in name and "SECRET" not in name
        },
        "options": [repr(options.choice), options.tenant_prefix, list(options.fetch)],
        "filters": [str(one) for one in filters or []],
        "form": FORM,
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()


def run_sync(
    connection: Mapping[str, Any],
    environ: Mapping[str, str],
    options: InventoryOptions,
    is_wanted: IsWanted,
    read_file: ReadFile | None = None,
    old: Sync | None = None,
) -> Sync:
    """Return what the sites have now, or with `stale: allow` the `old` sync when a site is dead.

    Details of a VM that has not changed since the old sync are taken from there. Raises FleetError for a site that
    cannot be read, unless the options say otherwise.
    """
    clients = open_clients(connection, environ, read_file)
    try:
        listings = read_listings(clients)
        dead = [(listing, listing.error) for listing in listings if listing.error is not None]
        warnings = [f"{_name(listing)} cannot be read: {error}" for listing, error in dead]
        if dead:
            if old is not None and options.stale == "allow":
                warnings.append(f"showing the last good inventory, {old.age(time.time()):.0f} s old")
                return replace(old, warnings=warnings, is_fresh=False)
            if options.dead_site == "fail" or len(dead) == len(listings):
                raise dead[0][1]
        guests, undecided = choose(listings, options, is_wanted)
        now = time.time()
        known = reusable(old, guests, options.fetch, now) if old is not None else {}
        missing = [guest for guest in guests if guest.key not in known]
        details = {**known, **fetch_details(clients, missing, options.fetch, options.limits)}
        return Sync(tuple(guests), details, warnings + undecided, not dead, now)
    finally:
        for client in clients.values():
            client.close()


def choose(
    listings: Sequence[Listing], options: InventoryOptions, is_wanted: IsWanted
) -> tuple[list[Guest], list[str]]:
    """Return the wanted guests of all sites, and warnings about those that were left out undecided."""
    chosen: list[Guest] = []
    undecided: list[str] = []
    reason = ""
    for listing in listings:
        for guest in read_guests(listing.rows, listing.site, options.tenant_prefix):
            if not options.choice.takes(guest):
                continue
            wanted, why = is_wanted(guest)
            if wanted:
                chosen.append(guest)
            elif why:
                undecided.append(guest.name or f"vm-{guest.vmid}")
                reason = reason or why
    if not undecided:
        return chosen, []
    names = ", ".join(undecided[:5]) + (" ..." if len(undecided) > 5 else "")
    return chosen, [f"left out {len(undecided)} VMs for which a filter could not be decided ({names}): {reason}"]


def reusable(old: Sync, guests: Sequence[Guest], kinds: Collection[str], now: float) -> dict[str, dict[str, Any]]:
    """Return the old details that still hold: of VMs that have not changed, and that were not lacking anything."""
    before = {guest.key: guest for guest in old.guests}
    found: dict[str, dict[str, Any]] = {}
    for guest in guests:
        earlier = before.get(guest.key)
        if earlier is None or has_changed(earlier, guest, old.age(now)):
            continue
        details = old.details.get(guest.key, {})
        if is_complete(details, guest, kinds):
            found[guest.key] = details
    return found


def has_changed(before: Guest, after: Guest, seconds: float) -> bool:
    """Return whether the listing shows that a VM was changed, moved or restarted in the seconds between."""
    if before != after and replace(before, uptime=after.uptime) != after:
        return True
    if any(before.variables.get(name) != after.variables.get(name) for name in _TELLING):
        return True
    if not before.uptime and not after.uptime:
        return False
    return after.uptime < before.uptime or abs(after.uptime - before.uptime - seconds) > UPTIME_SLACK


def is_complete(details: Mapping[str, Any], guest: Guest, kinds: Collection[str]) -> bool:
    """Return whether asking again would bring nothing: a guest that still boots may get its address any moment."""
    if any(reason not in _LASTING for reason in (details.get("errors") or {}).values()):
        return False
    if "addresses" not in kinds or guest.status != "running" or guest.template:
        return True
    return "addresses" in (details.get("errors") or {}) or bool(agent_addresses(details.get("addresses")))


def _name(listing: Listing) -> str:
    return f"site {listing.site}" if listing.site else "Proxmox VE"


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(one) for key, one in value.items() if not any(s in str(key) for s in _SECRET)}
    if isinstance(value, (list, tuple)):
        return [_without_secrets(one) for one in value]
    return value
