# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module drift_info: compares an estate and a cluster file with the cluster, from the
plans of modules vms and cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from ..._foundation.spec.fleet import fleet_spec, with_defaults
from ..._foundation.spec.generated.cluster import cluster_spec
from ..._guests.fleet.items import read_estate
from ..._guests.fleet.listed import read_tenants
from ..._guests.fleet.over_sites.auto import at_known_sites
from ..._guests.fleet.secrets import fleet_secrets
from ..cluster_file.desired import secrets_in as cluster_secrets
from .cluster_file import require_valid
from .document import document_of
from .ignore import read_ignored
from .model import DriftReading, DriftScope
from .quotas import read_counted
from .read_site import read_site
from .tenants import read_networked
from .text import lines_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


SiteClient = tuple[Collection[str], "Client"]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the differences from the estate. Nothing is written, with or without check mode.

    Raises FleetError for a mistake in the estate. VMs that cannot be read are unknown in the
    result.
    """
    return run_at_sites(params, [((), client)], check_mode)


def run_at_sites(
    params: Mapping[str, Any], clients: Sequence[SiteClient], check_mode: bool = False
) -> Result:
    """Do the same at several sites in parallel; `clients` pairs names of sites with a client."""
    wanted = at_known_sites(with_defaults(fleet_spec(), dict(params)), clients)
    scope = read_scope(wanted)

    def one(part: SiteClient) -> DriftReading:
        names, client = part
        sites = list(names) or wanted.get("of_sites") or None
        # read without a client, so the list of VMs is known even if the site is down
        estate = read_estate(wanted, None, sites) if has_guests(wanted) else None
        return read_site(estate, client, scope, names)

    readings = side_by_side(one, clients, SITES_AT_ONCE)
    first = clients[0][1]
    readings.sort(key=lambda reading: reading.site)
    document = document_of(readings, iso(first.clock.time()), scope.counted)
    warnings = tuple(text for reading in readings for text in reading.warnings)
    return Result(False, {"drift": document, "report": lines_of(document)}, warnings=warnings)


def has_guests(options: Mapping[str, Any]) -> bool:
    """Return whether options of the module contain a list of guests, which may be empty."""
    return options.get("vms") is not None or options.get("containers") is not None


def read_scope(options: Mapping[str, Any]) -> DriftScope:
    """Return the scope of a comparison. Raises ValidationFailed."""
    given = options.get("cluster")
    cluster = None
    if given is not None:
        spec = cluster_spec()
        checked = parse_options(spec, given, "The option cluster was refused")
        cluster = {**dict.fromkeys(spec), **checked}
        require_valid(cluster)
    tenants = read_tenants(dict(options))
    ignored = read_ignored(options["ignore"])
    networked = read_networked(options, tenants)
    counted = read_counted(options) if has_guests(options) else []
    return DriftScope(tenants, options["unlisted"], ignored, cluster, networked, counted)


def secrets_in(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets of the estate and of the cluster file, before anything is checked."""
    cluster = arguments.get("cluster")
    found = fleet_secrets(arguments)
    if isinstance(cluster, Mapping):
        found |= cluster_secrets(cluster)
    return found
