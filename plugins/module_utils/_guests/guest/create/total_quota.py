# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The quota of a tenant over several sites, and the rule that guests of other runs can break
(docs/decisions/0034-one-tenant-many-sites.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.quota import Limits, QuotaFigures, beyond, excess, total
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import FleetError, NodeUnhealthy, ValidationFailed
from ...._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ...._foundation.resource.race import RaceReading
from ..live.creation import is_finished
from .quota_race import QuotaGrowth, read_cluster_now, read_usage

if TYPE_CHECKING:
    from ...._foundation.api.client import Client
    from ...kinds.model import Guest

GuestKey: TypeAlias = tuple[str, int]
"""A guest among all sites: the name of its site, and its VMID."""


@dataclass(frozen=True)
class UnreadSite:
    """A site that does not answer. `figures` is its last known use, or its quota, of the kinds that
    are known; `source` names it for people. `names` are the kinds and names of its guests at that
    time, None if they are unknown.
    """

    site: str
    error: FleetError
    figures: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    names: frozenset[str] | None = None

    @property
    def text(self) -> str:
        """The use that counts, as messages show it."""
        return f"site {self.site} does not answer, {self.source} counts" if self.source else ""


@dataclass(frozen=True)
class TotalQuota:
    """The quota of a tenant over several sites, with its use at the start of the run.

    `clients` are the sites that answered, `figures` are the guests of the tenant there. Guests in
    `known` existed before, so they never give way to a new guest.
    """

    tenant: str
    limits: Limits
    clients: Mapping[str, Client] = field(default_factory=dict)
    figures: Mapping[GuestKey, QuotaFigures] = field(default_factory=dict)
    known: frozenset[GuestKey] = frozenset()
    unread: tuple[UnreadSite, ...] = ()

    @property
    def of_unread(self) -> QuotaFigures:
        """The use that counts for the sites that do not answer."""
        return total(QuotaFigures(**site.figures) for site in self.unread)

    def find_excess(
        self, used: QuotaFigures, more: QuotaFigures
    ) -> Mapping[str, Mapping[str, int]] | FleetError:
        """Return the figures that exceed the quota, the error if the use of a site is unknown, or
        an empty dictionary. `used` is the use at the sites that answer.
        """
        limited = {kind for kind in self.limits if getattr(more, kind)}
        for site in self.unread:
            if limited - site.figures.keys():
                return _unknown_use(self.tenant, site)
        return excess(self.limits, used + self.of_unread, more)

    def refusal(self, label: str, over: Any, next_step: str, **details: Any) -> FleetError:
        """Return the error for a result of `find_excess`."""
        if isinstance(over, FleetError):
            return over.on(attempted=label)
        notes = [site.text for site in self.unread]
        sites = ", ".join([*self.clients, *(site.site for site in self.unread)])
        error = beyond(self.tenant, over, label, next_step, sites=sites.split(", "), **details)
        answer = "; ".join([f"{error.answer}, over the sites {sites}", *notes])
        return error.on(answer=answer)


def _unknown_use(tenant: str, site: UnreadSite) -> NodeUnhealthy:
    return NodeUnhealthy(
        f"The quota of tenant {tenant} could not be checked: site {site.site} does not answer "
        f"({site.error.message}), and neither its last use nor its quota is known",
        ("Bring the site back, set its state to closed, or give it a quota in site_quotas"),
        "site not readable",
        details={"site": site.site},
    )


def _lost_site(site: str, error: FleetError) -> NodeUnhealthy:
    """Return the error of a site that answered before. It must not be a NetworkError, which would
    mean that the fate of the guest's last write is unknown.
    """
    return NodeUnhealthy(
        answer=f"site {site} stopped answering while the quota was counted ({error.message})",
        next_step="Run again",
        reason="site not readable",
        details={"site": site},
    )


@dataclass(frozen=True)
class SiteQuota:
    """The quota of a tenant over several sites, for guests of one of them."""

    quota: TotalQuota
    site: str

    def use_with(
        self, guest: Guest, vmid: int, grown: QuotaGrowth, after: QuotaFigures, used: QuotaFigures
    ) -> QuotaFigures:
        """Return the use with a new or grown guest, which then has the figures `after`; `used` is
        the use before. Raises FleetError for a guest beyond the quota (pure).
        """
        is_unlimited = after.vms > 0 and after.cores == 0
        if is_unlimited and "cores" in self.quota.limits and (grown.more.vms or grown.before.cores):
            raise _unlimited_cores(guest)
        present = self.quota.figures.get((self.site, vmid), QuotaFigures())
        others = used - present + grown.before
        over = self.quota.find_excess(others, grown.more)
        if over:
            step = "Remove or shrink guests of this tenant, ask for less, or raise the quota"
            raise self.quota.refusal(f"{guest.label} was refused", over, step)
        return others + grown.more


def _unlimited_cores(guest: Guest) -> ValidationFailed:
    return ValidationFailed(
        f"{guest.label} was refused: the quota of tenant {guest.tenant} limits cores, and it has "
        "no limit of cores",
        "Set cores",
        "unlimited cores",
    )


def require_grown_within_total(rule: TotalRule, before: QuotaFigures) -> None:
    """Raise the error of a guest that has grown beyond the quota; `before` are its figures before.

    The growth is not reverted, because a disk cannot shrink.
    """
    if not any(getattr(rule.own, kind) for kind in rule.at.quota.limits):
        return
    reading = rule.read()
    breach = reading.find_breach({**reading.guests, rule.vmid: before})
    if breach:
        step = (
            "Another run took the rest of the quota: shrink one of the guests, or raise the quota"
        )
        raise rule.at.quota.refusal(f"{rule.label} has grown", breach, step)


@dataclass(frozen=True)
class TotalRule:
    """A tenant stays within its quota over all sites with a new guest, whose figures are `own`.

    The guest with the highest pair of site and VMID gives way.
    """

    at: SiteQuota
    desired: Guest
    label: str
    number: int
    own: QuotaFigures

    @property
    def vmid(self) -> GuestKey:
        return self.at.site, self.number

    @property
    def known(self) -> frozenset[GuestKey]:
        return self.at.quota.known

    def read(self) -> RaceReading:
        """Count at all sites. If a site that answered before cannot be read, this is a breach."""
        quota = self.at.quota
        desired = replace(self.desired, limits=quota.limits)
        names = list(quota.clients)

        def read_one(site: str) -> tuple[ClusterState, dict[int, QuotaFigures]]:
            try:
                cluster = read_cluster_now(quota.clients[site], desired)
                return cluster, read_usage(quota.clients[site], desired, cluster)
            except FleetError as error:
                raise _lost_site(site, error) from error

        try:
            readings = dict(zip(names, side_by_side(read_one, names, SITES_AT_ONCE), strict=True))
        except NodeUnhealthy as error:
            failure = error
            return RaceReading({}, lambda _guests: failure, lambda _key: True)
        guests = {
            (site, vmid): figures
            for site, (_cluster, used) in readings.items()
            for vmid, figures in used.items()
        }
        guests.pop(self.vmid, None)

        def is_key_finished(key: GuestKey) -> bool:
            site, vmid = key
            rows = {row.vmid: row for row in readings[site][0].guests}
            return is_finished(quota.clients[site], self.desired.kind, rows[vmid])

        return RaceReading(
            guests,
            lambda staying: quota.find_excess(total(staying.values()), self.own),
            is_key_finished,
        )

    def removed(self, breach: Any) -> FleetError:
        step = "Another run took the rest of the quota: run again when there is room"
        label = f"{self.label} was removed again"
        return self.at.quota.refusal(label, breach, step, removed=self.number)

    def not_removed(self, breach: Any, failure: FleetError) -> FleetError:
        error = self.removed(breach)
        return error.on(
            attempted=f"{self.label} could not be removed again ({failure.message})",
            next_step="Remove it by hand: the quota over all sites is exceeded",
            details={**error.details, "removed": None},
        )
