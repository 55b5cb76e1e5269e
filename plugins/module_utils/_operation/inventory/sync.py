# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One sync of all sites: list, choose, fetch details; and its form in the cache."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.api.settings import ENVIRONMENT, ReadFile
from ..._foundation.cluster.find.names import NODE, POOL, TAG, TENANT, GivenNames, check_names_at
from ..._foundation.cluster.find.restoring import seems_bare
from ..._foundation.cluster.state import cluster_state_of
from ..._foundation.core.errors import (
    AuthenticationError,
    ConfigurationError,
    FleetError,
    PermissionDenied,
)
from ..._foundation.core.formatting import counted
from ..._guests.kinds.words import TYPES, VIRTUAL_MACHINE, VM
from .cache_policy import EarlierSync, reusable
from .details import fetch_details
from .hosts import InventoryGuest, guest_of, read_guests
from .options import InventoryOptions
from .sites import SiteListing, read_listings

# The form of the cached text; a cache of another form is ignored.
FORM = 6

# Seconds by which the clocks of controllers that share a cache may differ.
CLOCK_SLACK = 60.0

IsWanted = Callable[[InventoryGuest], tuple[bool, str]]
"""Returns whether a guest passes the filters, and the reason if this cannot be decided."""

# Errors of a site that answers, but refuses the request.
_ALIVE = (AuthenticationError, PermissionDenied, ConfigurationError)
# Options of the connection that do not change the shown VMs.
_MANNERS = frozenset({"timeout", "retries", "retry_timeout", "lock_timeout", "max_answer_size"})
_SECRET = re.compile("password|token_secret|client_key")
_SECRET_VARIABLE = re.compile("PASSWORD|SECRET")
# Maximum number of undecided VMs in a warning.
_MAX_NAMES = 5


@dataclass(frozen=True)
class InventorySync:
    """The chosen guests, and the details of each by its key with the time `taken` of the request.

    `read` is the time of the last reading of each site. If a site did not answer this time, the
    sync is incomplete, and its former guests that are not shown are `hidden`. Times are in seconds.
    """

    guests: tuple[InventoryGuest, ...]
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    is_complete: bool = True
    taken: float = 0.0
    read: dict[str, float] = field(default_factory=dict)
    hidden: tuple[InventoryGuest, ...] = ()

    @property
    def known(self) -> tuple[InventoryGuest, ...]:
        """All guests in the last listings of their sites."""
        return (*self.guests, *self.hidden)

    def for_cache(self) -> str:
        """Return the sync as one text: Ansible's cache plugins are slow with structures."""
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
    def from_cache(cls, text: str, now: float) -> InventorySync | None:
        """Return the sync from its text, or None if the text has another form.

        Entries dated in the future are rejected: if a clock was corrected after the write, they
        would count as fresh for years.
        """
        try:
            data = json.loads(text)
            if data["form"] != FORM:
                return None
            if data["taken"] > now + CLOCK_SLACK:
                return None
            return cls(
                guests=tuple(map(guest_of, data["guests"])),
                details={key: dict(one) for key, one in data["details"].items()},
                warnings=list(map(str, data["warnings"])),
                is_complete=bool(data["is_complete"]),
                taken=float(data["taken"]),
                read={site: float(read) for site, read in data["read"].items()},
                hidden=tuple(map(guest_of, data["hidden"])),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


# The sync before the first one.
_NOTHING = InventorySync(guests=())


def fingerprint(
    connection: Mapping[str, Any],
    environ: Mapping[str, str],
    options: InventoryOptions,
    read_file: ReadFile | None = None,
    extra_vars: Mapping[str, Any] | None = None,
) -> str:
    """Return a text that differs whenever other VMs or other details could be shown.

    It contains no secret. It also ignores the number of retries, the naming and grouping of hosts,
    and the choice of the address: an old sync can be reused if these change. The `extra_vars` count
    only if a filter may read them. Raises ConfigurationError for a sites file that cannot be read.
    """
    filters = list(map(str, options.expressions.filters))
    if filters and options.compatible_with:
        filters.append(options.compatible_with)
    settings = _without_secrets(connection)
    for option in _MANNERS:
        settings.pop(option, None)
    sites = None
    named = connection.get("sites_file") or environ.get("PROXMOX_SITES_FILE")
    sites_file = str(named or "").strip()
    if sites_file and read_file is not None:
        sites = _without_secrets(read_file(sites_file))
    known: dict[str, Any] = {
        "connection": settings,
        "environ": _relevant_variables(environ),
        "sites": sites,
        "options": [
            repr(options.choice),
            options.tenant_prefix,
            list(options.fetch),
            sorted(options.kinds),
        ],
        "filters": filters,
        "extra_vars": {},
        "form": FORM,
    }
    if filters and extra_vars:
        known["extra_vars"] = dict(extra_vars)
    text = json.dumps(known, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _relevant_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the connection, without secrets."""
    names: set[str] = set()
    for option, variables in ENVIRONMENT.items():
        if option not in _MANNERS:
            names.update(variables)
    allowed = [name for name in sorted(names) if not _SECRET_VARIABLE.search(name)]
    return {name: environ.get(name, "") for name in allowed}


def run_sync(
    clients: Mapping[str, Client],
    unusable: Sequence[SiteListing],
    options: InventoryOptions,
    is_wanted: IsWanted,
    old: InventorySync | None = None,
    *,
    refetch: bool = False,
) -> InventorySync:
    """Return the VMs of all sites; `stale: allow` shows the VMs of a dead site from the `old` sync.

    `clients` and `unusable` come from `open_clients`; the clients are closed at the end. Details of
    a VM that has not changed are copied from the old sync, unless `refetch` is set. Raises
    FleetError for a site that cannot be read, unless the options allow it.
    """
    try:
        errors = [listing.error for listing in unusable if listing.error is not None]
        if errors and (options.dead_site == "fail" or not clients):
            raise errors[0]
        listings = [*read_listings(clients, options.kinds), *unusable]
        return _sync_of(listings, clients, options, is_wanted, old or _NOTHING, refetch=refetch)
    finally:
        for client in clients.values():
            client.close()


def _sync_of(
    listings: Sequence[SiteListing],
    clients: Mapping[str, Client],
    options: InventoryOptions,
    is_wanted: IsWanted,
    old: InventorySync,
    *,
    refetch: bool,
) -> InventorySync:
    """Return the sync of these listings, and fetch the missing details for it."""
    stale, warnings = _without_answer(listings, options, old)
    warnings += _unknown_names(listings, clients, options)
    guests, undecided = choose(listings, options, is_wanted)
    now = time.time()
    read = {listing.site: now for listing in listings if listing.error is None}
    former = [guest for guest in old.known if guest.site not in read]
    kept: list[InventoryGuest] = []
    hidden: list[InventoryGuest] = []
    details: dict[str, dict[str, Any]] = {}
    for guest in former:
        if guest.site in stale and is_wanted(guest)[0]:
            kept.append(guest)
        else:
            hidden.append(guest)
        if guest.key in old.details:
            details[guest.key] = old.details[guest.key]
    earlier: Mapping[str, Mapping[str, Any]] = {} if refetch else old.details
    if options.fetch and not refetch:
        known = EarlierSync({guest.key: guest for guest in old.known}, old.details, old.ages(now))
        details.update(reusable(guests, known, options.fetch, options.limits.max_age, now))
    missing = [guest for guest in guests if guest.key not in details]
    offline: set[tuple[str, str]] = set()
    for listing in listings:
        offline.update((listing.site, node) for node in listing.offline)
    fetched = fetch_details(
        clients, missing, options.fetch, options.limits, earlier=earlier, offline=offline
    )
    for key, one in fetched.items():
        details[key] = {**one, "taken": now}
    # Endpoints whose certificate is not verified; sites may share one.
    unverified = [text for client in clients.values() for text in client.connection.warnings]
    return InventorySync(
        guests=(*guests, *kept),
        details=details,
        warnings=[*dict.fromkeys(unverified), *warnings, *undecided],
        is_complete=len(read) == len(listings),
        taken=now,
        read={**old.read, **read},
        hidden=tuple(hidden),
    )


def _unknown_names(
    listings: Sequence[SiteListing], clients: Mapping[str, Client], options: InventoryOptions
) -> list[str]:
    """Return a warning for each tenant, pool and tag in the options that no site has; a playbook
    may create them after the inventory is read. Raises NotFound for a node.

    Nothing is decided if a site did not answer.
    """
    choice = options.choice
    given: GivenNames = {
        "tenants": (TENANT, list(choice.tenants or ())),
        "nodes": (NODE, list(choice.nodes or ())),
        "pools": (POOL, list(choice.pools or ())),
        "tags": (TAG, list(choice.tags or ())),
    }
    if any(listing.error for listing in listings):
        return []
    sites = [(clients[one.site], cluster_state_of(one.rows, TYPES)) for one in listings]
    return check_names_at(sites, given, options.tenant_prefix, (TENANT, POOL, TAG))


def _without_answer(
    listings: Sequence[SiteListing], options: InventoryOptions, old: InventorySync
) -> tuple[set[str], list[str]]:
    """Return the sites without an answer whose guests of the old sync are shown, and warnings.

    A site that rejects the credentials is not dead, so its old guests are not shown. Raises the
    error of a site if it must be readable.
    """
    sites: set[str] = set()
    warnings: list[str] = []
    missing: list[FleetError] = []
    ages = old.ages(time.time()) if options.stale == "allow" else {}
    for listing in listings:
        error = listing.error
        if error is None:
            continue
        name = _name(listing)
        warnings.append(f"{name} cannot be read: {error}")
        if listing.site not in ages or isinstance(error, _ALIVE):
            missing.append(error)
            continue
        sites.add(listing.site)
        age = ages[listing.site]
        warnings.append(f"showing the last good inventory of {name}, {age:.0f} s old")
    if missing and (len(missing) == len(listings) or options.dead_site == "fail"):
        raise missing[0]
    return sites, warnings


def choose(
    listings: Sequence[SiteListing], options: InventoryOptions, is_wanted: IsWanted
) -> tuple[list[InventoryGuest], list[str]]:
    """Return the chosen guests of all sites, and warnings.

    The warnings report sites without a guest, and guests that were left out because a filter could
    not be decided.
    """
    chosen: list[InventoryGuest] = []
    undecided: list[str] = []
    reasons: list[str] = []
    warnings: list[str] = []
    for listing in listings:
        if listing.error is None and not listing.shows_guests:
            hint = "where there are some, the user lacks VM.Audit"
            warnings.append(f"{_name(listing)} shows no guest at all: {hint}")
        if VIRTUAL_MACHINE in options.kinds:
            warnings += _restored(listing)
        guests = read_guests(listing.rows, listing.site, options.tenant_prefix, options.kinds)
        for guest in filter(options.choice.accepts, guests):
            wanted, reason = is_wanted(guest)
            if wanted:
                chosen.append(guest)
            elif reason:
                undecided.append(guest.name or guest.substitute)
                reasons.append(reason)
    if undecided:
        listed = ", ".join(undecided[:_MAX_NAMES])
        if len(undecided) > _MAX_NAMES:
            listed += " ..."
        number, why = counted(len(undecided), "host"), reasons[0]
        warnings.append(
            f"left out {number} for which a filter could not be decided ({listed}): {why}"
        )
    return chosen, warnings


def _restored(listing: SiteListing) -> list[str]:
    """Return a warning for each VM without name, tags and disks: a restore may be creating it."""
    warnings: list[str] = []
    # a large cluster has few VMs of this kind
    rows = [row for row in listing.rows if not row.get("tags") and not row.get("maxdisk")]
    for vmid, row in sorted(cluster_state_of(rows, {VM.type}).vms.items()):
        if seems_bare(row):
            warnings.append(
                f"VM {vmid} of {_name(listing)} has neither name, tags nor disks, as during a"
                " restore: a host may be missing until it is complete"
            )
    return warnings


def _name(listing: SiteListing) -> str:
    if not listing.site:
        return "Proxmox VE"
    return f"site {listing.site}"


def _without_secrets(value: Any) -> Any:
    """Return a copy of plain data without the keys that are secret."""
    if isinstance(value, Mapping):
        shown = {key: one for key, one in value.items() if not _SECRET.search(str(key))}
        return {key: _without_secrets(one) for key, one in shown.items()}
    if isinstance(value, (list, tuple)):
        return [_without_secrets(one) for one in value]
    return value
