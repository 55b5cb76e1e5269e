# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module report_info: a report on all sites, from one reading of each site."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.names import require_nodes_of_sites
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
from ..._foundation.spec.vm import vm_spec
from ..._guests.fleet.items import Estate, read_estate
from ..._guests.fleet.over_sites.auto import at_known_sites
from ..._guests.fleet.run import sites_of as sites_of_estate
from ..._infrastructure.facts.node_info import read_rules
from ..._protection.restore.drill.record import read_proofs
from ..drift.run_info import has_guests, read_scope, secrets_in
from .costs import read_prices
from .document import csv_with, document_of, history_with
from .history import read_history
from .model import ReportOptions, Row, SiteReading
from .read_site import read_report_site
from .tenants import read_report_tenants, read_totals, unlisted_sites

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
    scope = read_scope(estate) if estate is not None else None
    if estate is not None:
        estate = at_known_sites(estate, clients)

    def one(part: SiteClient) -> SiteReading:
        names, client = part
        # read without a client, so the list of VMs is known even if the site is down
        own: Estate | None = None
        if estate is not None and has_guests(estate):
            own = read_estate(estate, None, list(names) or estate.get("of_sites") or None)
        return read_report_site(client, names, wanted, own, scope)

    readings = side_by_side(one, clients, SITES_AT_ONCE)
    readings.sort(key=lambda reading: reading.site)
    for option, names in wanted.nodes.items():
        require_nodes_of_sites(option, names, [reading.known_nodes for reading in readings])
    now = clients[0][1].clock.time()
    counted = scope.counted if scope is not None else ()
    report = document_of(readings, wanted, history, now, counted)
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
    if estate is None and not params.get("of_sites"):
        warnings += unlisted_sites(
            wanted.tenants, {name for names, _one in clients for name in names}
        )
    return Result(False, values, warnings=tuple(warnings))


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites of a task: the named sites, and the sites of the estate's VMs; none of both
    means all sites.

    An empty text is the site of the task. Raises FleetError for a mistake in the estate.
    """
    named = {str(name) for name in params.get("of_sites") or ()}
    estate = _estate_options(params)
    of_estate = set() if estate is None else set(sites_of_estate(estate))
    if named and of_estate == {""}:
        return sorted(named)
    return sorted(named | of_estate)


def estate_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in the estate, before anything is checked."""
    estate = arguments.get("estate")
    return secrets_in(estate) if isinstance(estate, Mapping) else set()


def _estate_options(params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the estate as options of module drift_info, None without one."""
    given = params.get("estate")
    if given is None:
        return None
    attempted = "The option estate was refused"
    options = parse_options(drift_info_spec(), given, attempted)
    if not has_guests(options) and options.get("cluster") is None:
        raise ValidationFailed(
            f"{attempted}: it has neither vms nor containers nor cluster",
            "Give it the lists of the estate; they may be empty",
            "estate",
        )
    blank = {name: option.get("default") for name, option in drift_info_spec().items()}
    return with_defaults(fleet_spec(), {**blank, **options})


def read_desired(params: Mapping[str, Any]) -> ReportOptions:
    """Return the options of a task, parsed. Raises ValidationFailed."""
    given, spec = params.get("placement") or {}, vm_spec()["placement"]["options"]
    placement = parse_options(spec, given, "The option placement was refused")
    rules = read_placement(placement)
    require_not_kept(rules, "a report")
    facts = {name: placement.get(name) for name in _OF_NODES}
    facts |= {name: params[name] for name in ("memory_warn", "storage_warn")}
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    facts["tenant_prefix"] = prefix
    read_rules(facts)
    return ReportOptions(
        prefix=prefix,
        snapshot_days=_days(params, "snapshot_days"),
        backup_days=_days(params, "backup_days"),
        tenants=read_report_tenants(params.get("tenants") or {}, prefix),
        totals=read_totals(params.get("tenants") or {}, prefix),
        prices=read_prices(params.get("prices")),
        facts=facts,
        nodes={
            "placement.nodes": rules.nodes,
            "placement.exclude": rules.exclude,
            "placement.max_vms_per_node": rules.max_vms_by_node,
        },
        proofs=read_proofs(params.get("drills")),
        addresses=bool(params.get("addresses")),
    )


def _days(params: Mapping[str, Any], option: str) -> int:
    return validate.number(params[option], 0, _MAX_DAYS, option)


def lines_of(report: Row) -> list[str]:
    """Return the extent of the report in one line, and a line for each risk."""
    unread = [site for site in report["sites"] if site["reason"]]
    head = f"Report: sites {len(report['sites'])}, VMs {len(report['vms'])}"
    if report["containers"]:
        head = f"{head}, containers {len(report['containers'])}"
    if unread:
        names = [site["site"] for site in unread if site["site"]]
        of = f" ({', '.join(names)})" if names else ""
        head = f"{head}, sites that could not be read {len(unread)}{of}"
    lines = [head]
    for risk in report["attention"]:
        lines.append(f"{risk['severity']}: {risk['title']}: {risk['count']}")
    if not report["attention"]:
        lines.append("Nothing needs attention")
    return lines
