# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One reading of all sites: list, choose, fetch details; and its form in the cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._api.settings import ENVIRONMENT, ReadFile
from .._core.errors import AuthenticationError, ConfigurationError, FleetError, PermissionDenied
from .details import fetch_details
from .hosts import Guest, guest_of, read_guests
from .options import InventoryOptions
from .reuse import reusable
from .sites import Listing, open_clients, read_listings

FORM = 5  # of what is cached; another number makes an old cache worthless

CLOCK_SLACK = 60.0  # seconds by which the clocks of controllers that share a cache may differ

IsWanted = Callable[[Guest], tuple[bool, str]]
"""Whether a guest passes the filters, and why that could not be decided (an empty text when it could)."""

# What a site answers with that lives but wants none of us.
_ALIVE = (AuthenticationError, PermissionDenied, ConfigurationError)
_MANNERS = frozenset({"timeout", "retries", "lock_timeout"})
_SECRET = frozenset({"password", "token_secret", "client_key"})


@dataclass(frozen=True)
class Sync:
    """The chosen guests and the details of each by its key, with the time `taken` when they were fetched.

    `read` is when each site was read last; one that did not answer this time makes the sync incomplete. Its guests of
    then are among `hidden` where they are not shown. Times are in seconds.
    """

    guests: tuple[Guest, ...]
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    is_complete: bool = True
    taken: float = 0.0
    read: dict[str, float] = field(default_factory=dict)
    hidden: tuple[Guest, ...] = ()

    @property
    def known(self) -> tuple[Guest, ...]:
        """All guests as their sites showed them last."""
        return (*self.guests, *self.hidden)

    def for_cache(self) -> str:
        """Return the sync as one text, because Ansible's cache plugins look long at every value of a structure."""
        data = {
            "form": FORM,
            "guests": [guest.variables for guest in self.guests],
            "details": self.details,
            "warnings": self.warnings,
            "is_complete": self.is_complete,
            "taken": self.taken,
            "read": self.read,
            "hidden": [guest.variables for guest in self.hidden],
        }
        return json.dumps(data)

    def age(self, now: float) -> float:
        """Return the seconds since the sites were asked."""
        return max(0.0, now - self.taken)

    def ages(self, now: float) -> dict[str, float]:
        """Return the seconds since each site was read."""
        return {site: max(0.0, now - read) for site, read in self.read.items()}

    @classmethod
    def from_cache(cls, text: str, now: float) -> Sync | None:
        """Return the sync from its text, or None when the text is not of this form.

        Neither is one from the future any good: written before a clock was set right, it would be young for years.
        """
        try:
            data = json.loads(text)
            if data["form"] != FORM or data["taken"] > now + CLOCK_SLACK:
                return None
            return cls(
                guests=tuple(guest_of(variables) for variables in data["guests"]),
                details={key: dict(one) for key, one in data["details"].items()},
                warnings=[str(one) for one in data["warnings"]],
                is_complete=bool(data["is_complete"]),
                taken=float(data["taken"]),
                read={site: float(read) for site, read in data["read"].items()},
                hidden=tuple(guest_of(variables) for variables in data["hidden"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


def fingerprint(
    connection: Mapping[str, Any],
    environ: Mapping[str, str],
    options: InventoryOptions,
    read_file: ReadFile | None = None,
    extra_vars: Mapping[str, Any] | None = None,
) -> str:
    """Return a text that differs whenever other VMs or other details could be shown; no secret is part of it.

    How long and how often something is tried, how hosts are named and grouped, and which address is chosen is not part
    of it either: an old sync serves all of these. The `extra_vars` count only where a filter may look at them. Raises
    ConfigurationError for a sites file that cannot be read.
    """
    names = {name for option, several in ENVIRONMENT.items() if option not in _MANNERS for name in several}
    filters = [str(one) for one in options.expressions.filters]
    sites_file = str(connection.get("sites_file") or environ.get("PROXMOX_SITES_FILE") or "").strip()
    known = {
        "connection": {key: value for key, value in _without_secrets(connection).items() if key not in _MANNERS},
        "environ": {
            name: environ.get(name, "") for name in sorted(names) if "PASSWORD" not in name and "SECRET" not in name
        },
        "sites": _without_secrets(read_file(sites_file)) if read_file is not None and sites_file else None,
        "options": [repr(options.choice), options.tenant_prefix, list(options.fetch)],
        "filters": filters,
        "extra_vars": dict(extra_vars or {}) if filters else {},
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
    anew: bool = False,
) -> Sync:
    """Return what the sites have now, or with `stale: allow` what a dead site had in the `old` sync.

    Details of a VM that has not changed since the old sync are taken from there, unless all is to be `anew`. Raises
    FleetError for a site that cannot be read, unless the options say otherwise.
    """
    clients, unusable = open_clients(connection, environ, read_file)
    for listing in unusable:
        if listing.error is not None and (options.dead_site == "fail" or not clients):
            raise listing.error
    try:
        listings = [*read_listings(clients), *unusable]
        stale, warnings = _without_answer(listings, options, old)
        guests, undecided = choose(listings, options, is_wanted)
        now = time.time()
        read = {listing.site: now for listing in listings if listing.error is None}
        former = [guest for guest in (old.known if old is not None else ()) if guest.site not in read]
        stand_ins = [guest for guest in former if guest.site in stale and is_wanted(guest)[0]]
        shown = {guest.key for guest in stand_ins}
        before = old.details if old is not None else {}
        known = {} if anew else _reusable(old, guests, options, now)
        missing = [guest for guest in guests if guest.key not in known]
        offline = {(listing.site, node) for listing in listings for node in listing.offline}
        fetched = fetch_details(clients, missing, options.fetch, options.limits, {} if anew else before, offline)
        details = {
            **{guest.key: before[guest.key] for guest in former if guest.key in before},
            **known,
            **{key: {**one, "taken": now} for key, one in fetched.items()},
        }
        return Sync(
            guests=(*guests, *stand_ins),
            details=details,
            warnings=warnings + undecided,
            is_complete=len(read) == len(listings),
            taken=now,
            read={**(old.read if old is not None else {}), **read},
            hidden=tuple(guest for guest in former if guest.key not in shown),
        )
    finally:
        for client in clients.values():
            client.close()


def _without_answer(
    listings: Sequence[Listing], options: InventoryOptions, old: Sync | None
) -> tuple[set[str], list[str]]:
    """Return the sites without an answer whose guests of the old sync are to be shown, and warnings.

    A site that refuses the credentials is not dead, so nothing stands in for it. Raises the error of a site that must
    not be missing.
    """
    sites: set[str] = set()
    warnings: list[str] = []
    missing: list[FleetError] = []
    ages = old.ages(time.time()) if old is not None and options.stale == "allow" else {}
    for listing in listings:
        if listing.error is None:
            continue
        warnings.append(f"{_name(listing)} cannot be read: {listing.error}")
        if listing.site in ages and not isinstance(listing.error, _ALIVE):
            sites.add(listing.site)
            warnings.append(f"showing the last good inventory of {_name(listing)}, {ages[listing.site]:.0f} s old")
        else:
            missing.append(listing.error)
    if missing and (options.dead_site == "fail" or len(missing) == len(listings)):
        raise missing[0]
    return sites, warnings


def _reusable(
    old: Sync | None, guests: Sequence[Guest], options: InventoryOptions, now: float
) -> dict[str, dict[str, Any]]:
    if old is None or not options.fetch:
        return {}
    earlier = {guest.key: guest for guest in old.known}
    return reusable(guests, earlier, old.details, options.fetch, options.limits.max_age, old.ages(now), now)


def choose(
    listings: Sequence[Listing], options: InventoryOptions, is_wanted: IsWanted
) -> tuple[list[Guest], list[str]]:
    """Return the wanted guests of all sites, and warnings about empty sites and what was left out undecided."""
    chosen: list[Guest] = []
    undecided: list[str] = []
    reason = ""
    warnings: list[str] = []
    for listing in listings:
        if listing.error is None and not listing.shows_guests:
            warnings.append(f"{_name(listing)} shows no VM at all: where there are some, the user lacks VM.Audit")
        for guest in read_guests(listing.rows, listing.site, options.tenant_prefix):
            if not options.choice.takes(guest):
                continue
            wanted, why = is_wanted(guest)
            if wanted:
                chosen.append(guest)
            elif why:
                undecided.append(guest.name or f"vm-{guest.vmid}")
                reason = reason or why
    if undecided:
        names = ", ".join(undecided[:5]) + (" ..." if len(undecided) > 5 else "")
        many = f"{len(undecided)} VMs" if len(undecided) > 1 else "1 VM"
        warnings.append(f"left out {many} for which a filter could not be decided ({names}): {reason}")
    return chosen, warnings


def _name(listing: Listing) -> str:
    return f"site {listing.site}" if listing.site else "Proxmox VE"


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(one) for key, one in value.items() if not any(s in str(key) for s in _SECRET)}
    if isinstance(value, (list, tuple)):
        return [_without_secrets(one) for one in value]
    return value
