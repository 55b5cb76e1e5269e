# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules metrics and metrics_info."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.names import require_nodes_of_sites
from ...._foundation.cluster.quota import Limits, read_limits
from ...._foundation.cluster.tenant import PREFIX
from ...._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ...._foundation.core.result import Result
from ...._foundation.core.times import iso
from ...._infrastructure.facts.node_info import read_rules
from ...._protection.restore.drill.record import read_proofs
from .drift import add_drift, read_report
from .exposition import data_of, text_of
from .families import FAMILIES, family_of
from .gauges import add_site
from .model import MetricsOptions, SiteFacts
from .read_site import read_site
from .samples import SampleKey, Samples, is_of_a_playbook
from .text_file import require_path, write_samples

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_ACTIONS = {True: "pve.fleet.metrics", False: "pve.fleet.metrics_info"}

SiteClient = tuple[Collection[str], "Client"]


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
    values = {"file": path, **_shape(written.after), **_findings(sites)}
    before: dict[str, Any] = {}
    if written.before is not None:
        before = {"file": path, **_shape(written.before)}
    after = {"file": path, **_shape(written.after)}
    diff = {"before": before, "after": after}
    lost = _lost_sites(written.before, names)
    warnings = _warnings(sites)
    if lost:
        warnings = (*warnings, _lost_text(path, lost))
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
    found = {_site_of(key) for key, _value in before or () if not is_of_a_playbook(key)}
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
    return Result(False, values, warnings=_warnings(sites))


def read_desired(params: Mapping[str, Any]) -> MetricsOptions:
    """Return the options, parsed. Raises ValidationFailed."""
    prefix = params.get("tenant_prefix") or PREFIX
    given = params.get("quotas") or {}
    quotas: dict[str, Limits | None] = {}
    for tenant in given:
        quotas[tenant] = read_limits({"tenant": tenant, "quotas": given, "tenant_prefix": prefix})
    return MetricsOptions(
        prefix=prefix,
        rules=read_rules(params),
        quotas=quotas,
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
    if wanted.drift is not None:
        add_drift(samples, wanted.drift, [site.name for site in sites])
    return samples


def _read_all(clients: Sequence[SiteClient], wanted: MetricsOptions) -> list[SiteFacts]:
    def one(part: SiteClient) -> SiteFacts:
        _names, client = part
        return read_site(client, wanted, client.site)

    sites = side_by_side(one, clients, SITES_AT_ONCE)
    clusters = [site.cluster for site in sites]
    require_nodes_of_sites("max_vms_per_node", wanted.rules.max_vms_by_node, clusters)
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


def _warnings(sites: Sequence[SiteFacts]) -> tuple[str, ...]:
    """Return one line for each part of a site with missing data and each category of errors."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for site in sites:
        for one in site.missing:
            found.setdefault((site.name, one.part, one.category), []).append(one.reason)
    lines: list[str] = []
    for (site_name, _part, _category), reasons in found.items():
        line = reasons[0]
        if len(reasons) > 1:
            line = f"{line} There are {len(reasons) - 1} more like this in missing."
        if site_name:
            line = f"Site {site_name}: {line}"
        lines.append(line)
    return tuple(lines)
