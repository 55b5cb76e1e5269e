# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules metrics and metrics_info."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.names import require_nodes_of_sites
from ...._foundation.cluster.quota import read_limits
from ...._foundation.cluster.tenant import PREFIX
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ...._foundation.core.result import Result
from ...._foundation.core.times import iso, seconds
from ...._infrastructure.facts.node_info import read_rules
from ...._protection.restore.drill.record import read_proofs
from ...drift.document import VERSION
from ...drift.model import STATUSES, UNKNOWN
from ..tenants import read_report_tenants, read_totals, unlisted_sites
from .exposition import data_of, text_of
from .families import FAMILIES, family_of
from .gauges import QUOTA, add_site, add_totals
from .model import MetricsOptions, SiteFacts
from .read_site import read_site
from .samples import SampleKey, Samples, is_of_a_playbook
from .text_file import require_path, write_samples

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


_ACTIONS = {True: "pve.fleet.metrics", False: "pve.fleet.metrics_info"}
SiteClient = tuple[Collection[str], "Client"]
_UNLISTED = "unlisted"
_PARTS = ("sites", "nodes", "vms", "unlisted")


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Write the metrics of a site to a file; in check mode nothing is written.

    If a site does not answer, the file says so. Raises FleetError, before any request, for a
    mistake in the options and for a file that cannot be written.
    """
    return run_at_sites(params, [((), client)], check_mode)


def run_at_sites(
    params: Mapping[str, Any], clients: Sequence[SiteClient], check_mode: bool = False
) -> Result:
    """Write the metrics of several sites to one file, as `run` does."""
    wanted = read_desired(params)
    path = require_path(params["path"])
    sites = _read_all(clients, wanted)
    names = {site.name for site in sites}
    samples = samples_of(sites, wanted, _ACTIONS[True])

    def keeps(key: SampleKey) -> bool:
        if is_of_a_playbook(key):
            return True
        is_counted = FAMILIES[family_of(key.name)].is_counted
        return is_counted and _site_of(key) in names

    written = write_samples(path, samples, keeps, check_mode)
    after = {"file": path, **_shape(written.after)}
    before = {} if written.before is None else {"file": path, **_shape(written.before)}
    lost = _lost_sites(written.before, names)
    warnings = _warnings(sites, wanted)
    if lost:
        warnings = (*warnings, _lost_text(path, lost))
    values, diff = {**after, **_findings(sites)}, {"before": before, "after": after}
    return Result(written.changed, values, diff, warnings=warnings)


def _lost_text(path: str, lost: Sequence[str]) -> str:
    return (
        f"{path} had metrics of {', '.join(lost)}, which this task does not read: they are removed."
        " If another task writes them, use a file for each task"
    )


def _site_of(key: SampleKey) -> str:
    return dict(key.labels).get("site", "")


def _lost_sites(before: Samples | None, names: Collection[str]) -> list[str]:
    """Return the sites in an earlier file that this task does not read, in words (pure)."""
    keys = [key for key, _value in before or () if not is_of_a_playbook(key)]
    found = {_site_of(key) for key in keys if not key.name.startswith(QUOTA)}
    lost = sorted(found.difference(names))
    return [f"site {name}" if name else "a site without a name" for name in lost]


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the metrics of a site. Nothing is written."""
    return run_info_at_sites(params, [((), client)], check_mode)


def run_info_at_sites(
    params: Mapping[str, Any], clients: Sequence[SiteClient], check_mode: bool = False
) -> Result:
    """Return the metrics of several sites, as `run_info` does."""
    wanted = read_desired(params)
    sites = _read_all(clients, wanted)
    samples = samples_of(sites, wanted, _ACTIONS[False])
    values = {"metrics": data_of(samples), "text": text_of(samples), **_findings(sites)}
    return Result(False, values, warnings=_warnings(sites, wanted))


def read_desired(params: Mapping[str, Any]) -> MetricsOptions:
    """Return the options, parsed. Raises ValidationFailed."""
    prefix = params.get("tenant_prefix") or PREFIX
    given, tenants = params.get("quotas") or {}, params.get("tenants") or {}
    options = {"quotas": given, "tenant_prefix": prefix}
    quotas = {tenant: read_limits({"tenant": tenant, **options}) for tenant in given}
    return MetricsOptions(
        prefix=prefix,
        rules=read_rules(params),
        quotas=quotas,
        tenants=read_report_tenants(tenants, prefix),
        totals=read_totals(tenants, prefix),
        snapshots=bool(params["snapshots"]),
        backups=bool(params["backups"]),
        disks=bool(params["volumes"]),
        versions=bool(params["versions"]),
        drift=read_report(params.get("drift")),
        proofs=read_proofs(params.get("drills")),
    )


def samples_of(sites: Sequence[SiteFacts], wanted: MetricsOptions, action: str) -> Samples:
    """Return all samples of the sites, with the duration and requests of reading them (pure)."""
    samples = Samples()
    for site in sites:
        add_site(samples, site, wanted)
        samples.put_duration(site.duration, action=action, site=site.name)
        samples.count_requests(site.requests, site=site.name)
        failures = [one.category for one in site.missing]
        samples.count_errors(failures, site=site.name)
    add_totals(samples, wanted.totals)
    if wanted.drift is not None:
        add_drift(samples, wanted.drift, [site.name for site in sites])
    return samples


def _read_all(clients: Sequence[SiteClient], wanted: MetricsOptions) -> list[SiteFacts]:
    def one(part: SiteClient) -> SiteFacts:
        _names, client = part
        return read_site(client, wanted, client.site)

    sites = side_by_side(one, clients, SITES_AT_ONCE)
    nodes = [None if site.cluster is None else site.cluster.nodes for site in sites]
    require_nodes_of_sites("max_vms_per_node", wanted.rules.max_vms_by_node, nodes)
    return sorted(sites, key=lambda site: site.name)


def _shape(samples: Samples) -> dict[str, Any]:
    """Return the names of the families, and the number of samples."""
    present = {family_of(key.name) for key, _value in samples}
    return {"families": [name for name in FAMILIES if name in present], "series": len(samples)}


def _findings(sites: Sequence[SiteFacts]) -> dict[str, Any]:
    """Return the parts that are missing, and when the sites were read."""
    missing: list[dict[str, Any]] = []
    for site in sites:
        missing += [{"site": site.name, **asdict(one)} for one in site.missing]
    checked = min((site.checked for site in sites), default=0.0)
    return {"complete": not missing, "missing": missing, "checked": iso(checked)}


def _warnings(sites: Sequence[SiteFacts], wanted: MetricsOptions) -> tuple[str, ...]:
    """Return one line for each part of a site with missing data and each category of errors, and for
    each site of a tenant that is not among the sites.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for site in sites:
        for one in site.missing:
            found.setdefault((site.name, one.part, one.category), []).append(one.reason)
    lines = unlisted_sites(wanted.tenants, {site.name for site in sites})
    for (site_name, _part, _category), reasons in found.items():
        line = reasons[0]
        if len(reasons) > 1:
            line = f"{line} There are {len(reasons) - 1} more like this in missing."
        if site_name:
            line = f"Site {site_name}: {line}"
        lines.append(line)
    return tuple(lines)


def read_report(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a report of drift_info. Raises ValidationFailed for anything else."""
    if given is None:
        return None
    is_known = given.get("version") == VERSION
    has_parts = all(isinstance(given.get(part), list) for part in _PARTS)
    if is_known and has_parts:
        return given
    raise ValidationFailed(
        f"drift was refused: it is not a report of version {VERSION}",
        "Give it what pve.fleet.drift_info returns as drift",
        "drift",
    )


def add_drift(samples: Samples, drift: Mapping[str, Any], sites: Sequence[str]) -> None:
    """Add the number of VMs by site, tenant and status, and whether all of them are known.

    `sites` are the names of all sites. A report whose site has no name is about the only site.
    """
    only = sites[0] if len(sites) == 1 else ""
    incomplete = {row["site"] for row in drift["nodes"]}
    incomplete |= {row["site"] for row in drift["sites"] if row["reason"]}
    numbers: dict[tuple[str, str], dict[str, int]] = {}
    for row in drift["vms"]:
        _count(numbers, row, row["status"])
        if row["status"] == UNKNOWN:
            incomplete.add(row["site"])
    for row in drift["unlisted"]:
        _count(numbers, row, _UNLISTED)
    for (site, tenant), by_status in numbers.items():
        for status, number in by_status.items():
            labels = {"site": site or only, "tenant": tenant, "status": status}
            samples.put("proxmox_drift_vms", number, **labels)
    checked = seconds(str(drift.get("checked") or ""))
    for row in drift["sites"]:
        site = row["site"]
        label = {"site": site or only}
        samples.put("proxmox_drift_complete", site not in incomplete, **label)
        samples.put("proxmox_drift_timestamp_seconds", checked, **label)


def _count(
    numbers: dict[tuple[str, str], dict[str, int]], row: Mapping[str, Any], status: str
) -> None:
    """Count a VM. Each status of its tenant starts at 0, so that each one has a sample."""
    nothing = dict.fromkeys((*STATUSES, _UNLISTED), 0)
    of_tenant = numbers.setdefault((row["site"], row["tenant"]), nothing)
    of_tenant[status] += 1
