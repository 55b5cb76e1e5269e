# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module report_info: a report on all sites, from one reading of each site."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.quota import read_limits
from ..._foundation.cluster.rules import read_rules as read_placement
from ..._foundation.cluster.rules import require_not_kept
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ..._foundation.core.result import Result
from ..._foundation.spec.fleet import fleet_spec, with_defaults
from ..._foundation.spec.generated.drift_info import drift_info_spec
from ..._foundation.spec.tenants import read_estate_tenants
from ..._foundation.spec.vm import vm_spec
from ..._guests.fleet.items import Estate, read_estate
from ..._guests.fleet.run import sites_of as sites_of_estate
from ..._infrastructure.facts.node_info import read_rules
from ..._protection.restore.drill.record import read_proofs
from ..drift.run_info import has_guests, read_scope, secrets_in
from .costs import read_prices
from .document import csv_with, document_of, history_with
from .history import read_history
from .lines import lines_of
from .model import ReportOptions, ReportTenant, SiteReading
from .read_site import read_report_site

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_MAX_DAYS = 36500
_OF_NODES = ("cpu_overcommit", "memory_overcommit", "min_free_memory", "max_vms_per_node")

SiteClient = tuple[Collection[str], "Client"]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the report on one site. Nothing is written, with or without check mode.

    Raises ValidationFailed for a mistake in the options. Objects that cannot be read are unknown in
    the report.
    """
    return run_at_sites(params, [((), client)], check_mode)


def run_at_sites(
    params: Mapping[str, Any], clients: Sequence[SiteClient], check_mode: bool = False
) -> Result:
    """Do the same at several sites in parallel; `clients` pairs names of sites with a client."""
    wanted = read_desired(params)
    history = read_history(params.get("history"))
    estate = _estate_options(params)
    scope = None
    if estate is not None:
        scope = read_scope(estate)

    def one(part: SiteClient) -> SiteReading:
        names, client = part
        # read without a client, so the list of VMs is known even if the site is down
        own: Estate | None = None
        if estate is not None and has_guests(estate):
            own = read_estate(estate, None, list(names) or None)
        return read_report_site(client, names, wanted, own, scope)

    readings = side_by_side(one, clients, SITES_AT_ONCE)
    readings.sort(key=lambda reading: reading.site)
    now = clients[0][1].clock.time()
    report = document_of(readings, wanted, history, now)
    values = {
        "report": report,
        "lines": lines_of(report),
        "history": history_with(report, history),
        "costs_csv": csv_with(report),
    }
    drifts = [reading.drift for reading in readings if reading.drift is not None]
    warnings = [text for drift in drifts for text in drift.warnings]
    if history.reason:
        warnings.append(history.reason)
    return Result(False, values, warnings=tuple(warnings))


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites of a task: the named sites, and the sites of the estate's VMs.

    An empty text is the site of the task. Raises FleetError for a mistake in the estate.
    """
    named = [str(name) for name in params.get("of_sites") or ()]
    estate = _estate_options(params)
    if estate is None:
        return sorted(set(named)) or [""]
    of_estate = sites_of_estate(estate)
    if of_estate == [""] and named:
        return sorted(set(named))
    return sorted({*named, *of_estate})


def estate_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in the estate, before anything is checked."""
    estate = arguments.get("estate")
    if not isinstance(estate, Mapping):
        return set()
    return secrets_in(estate)


def _estate_options(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the estate as options of module drift_info, None without one."""
    given = params.get("estate")
    if given is None:
        return None
    attempted = "The option estate was refused"
    options = parse_options(drift_info_spec(), given, attempted)
    if not has_guests(options) and options.get("cluster") is None:
        raise ValidationFailed(
            attempted=attempted,
            answer="it has neither vms nor containers nor cluster",
            next_step="Give it the lists of the estate; they may be empty",
            reason="estate",
            dispatched=False,
        )
    return with_defaults(fleet_spec(), {**_blank(), **options})


def _blank() -> dict[str, Any]:
    return {name: option.get("default") for name, option in drift_info_spec().items()}


def read_desired(params: Mapping[str, Any]) -> ReportOptions:
    """Return the options of a task, parsed. Raises ValidationFailed."""
    placement = _placement(params.get("placement"))
    facts = {name: placement.get(name) for name in _OF_NODES}
    facts |= {name: params[name] for name in ("memory_warn", "storage_warn")}
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    facts["tenant_prefix"] = prefix
    read_rules(facts)
    return ReportOptions(
        prefix=prefix,
        snapshot_days=_days(params, "snapshot_days"),
        backup_days=_days(params, "backup_days"),
        tenants=_tenants(params.get("tenants") or {}, prefix),
        prices=read_prices(params.get("prices")),
        facts=facts,
        proofs=read_proofs(params.get("drills")),
    )


def _placement(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the rules of placement, checked as module vm checks them."""
    spec = vm_spec()["placement"]["options"]
    options = parse_options(spec, given or {}, "The option placement was refused")
    require_not_kept(read_placement(options), "a report")
    return options


def _days(params: Mapping[str, Any], option: str) -> int:
    return validate.number(params[option], 0, _MAX_DAYS, option)


def _tenants(given: Mapping[str, Any], prefix: str) -> list[ReportTenant]:
    """Return the tenants as an estate describes them. Raises ValidationFailed."""
    found: list[ReportTenant] = []
    for name, options in read_estate_tenants(given).items():
        quota = options.get("quota")
        quotas = {} if quota is None else {name: quota}
        limits = read_limits({"tenant": name, "quotas": quotas, "tenant_prefix": prefix})
        site = str(options.get("site") or "")
        found.append(ReportTenant(name.lower(), site, limits or {}))
    return found
