# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of tenants as an estate declares them.

A run of module tenant with this declaration must plan nothing; any steps are part of the export.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.tenant import EVERY_TENANT, group_name, vnet_id
from ...._foundation.core.errors import FleetError, NotSupported
from ...._foundation.core.marks import marked_tag
from ...._infrastructure.sdn.forms import running_of, view_of
from ...._infrastructure.sdn.model import SUBNETS, VNETS, SdnReading, Sections
from ...._infrastructure.sdn.plan import ROOT as SDN
from ...._infrastructure.sdn.read import read_sdn, with_subnets
from ...firewall.read import groups_of, rules_of, sets_of
from ...firewall.rules.model import Rule
from ...firewall.scope import ROOT
from ..model import read_tenant
from .model import NONE, OF_SUBNET, OWN, SHARED
from .sdn import name_of, owners_of, vnets_of
from .work import plan_networks

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass(frozen=True)
class ExportedNetworks:
    """A tenant's networks as `options` of module tenant, and the `steps` of a run with them."""

    tag: str
    options: Mapping[str, Any]
    steps: tuple[str, ...] = ()


def read_exported(client: Client, prefix: str, only: str | None) -> dict[str, ExportedNetworks]:
    """Return the networks of tenants by tenant name; `only` is the tag of the only tenant to read.

    One request if no tenant has networks; otherwise about ten, three for each tenant, and one for
    each VNet.
    """
    reader = CachingReader(client)
    try:
        rows = reader.get(*SDN, VNETS, params={"pending": 1}) or []
    except NotSupported:
        return {}
    owners = set(owners_of(running_of(VNETS, rows)).values())
    tags = sorted(tag for tag in owners if tag.startswith(prefix) and only in (None, tag))
    if not tags:
        return {}
    running = _running(reader, tags)
    groups = groups_of(reader.get(*ROOT, "groups"))
    sets = sets_of(reader.get(*ROOT, "ipset"))
    peers = {name: marked_tag(comment) for name, comment in sets.items()}
    found: dict[str, ExportedNetworks] = {}
    for tag in tags:
        rules: Sequence[Rule] | None = None
        if marked_tag(groups.get(group_name(tag))) == tag:
            rules = rules_of(reader.get(*ROOT, "groups", group_name(tag)))
        networks = networks_of(tag, running)
        options = {"networks": networks, **isolation_of(tag, rules, peers, prefix)}
        name = tag.removeprefix(prefix)
        found[name] = ExportedNetworks(tag, options, _steps(reader, name, prefix, options))
    return found


def _running(reader: Client, tags: Iterable[str]) -> Sections:
    """Return the running SDN configuration with the VNets and subnets of these tenants only."""
    reading = read_sdn(reader)
    vnets: dict[str, Any] = {}
    for tag in tags:
        vnets.update(vnets_of(tag, reading.running))
    own = SdnReading({**reading.running, VNETS: vnets}, reading.pending)
    return with_subnets(reader, own).running


def _steps(reader: Client, name: str, prefix: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the steps of a run of module tenant with these options, or the refusal."""
    try:
        tenant = read_tenant({"name": name, "tenant_prefix": prefix, **options})
        return tuple(plan_networks(tenant, reader).summaries)
    except FleetError as error:
        return (error.message,)


def networks_of(tag: str, running: Sections) -> dict[str, dict[str, Any]]:
    """Return the networks of a tenant as options, by name (pure).

    A VNet whose ID does not follow from its name cannot be declared, and is left out.
    """
    subnets = view_of({SUBNETS: running[SUBNETS]})[SUBNETS]
    found: dict[str, dict[str, Any]] = {}
    for vnet, entry in sorted(vnets_of(tag, running).items()):
        label = name_of(entry)
        if vnet_id(tag, label) != vnet:
            continue
        network: dict[str, Any] = {"zone": entry["zone"]}
        if entry.get("tag"):
            network["tag"] = int(entry["tag"])
        for row in [one for one in subnets if one["vnet"] == vnet][:1]:
            network["subnet"] = row["cidr"]
            network.update({key: row[key] for key in OF_SUBNET if key in row})
        found[label] = network
    return found


def isolation_of(
    tag: str, rules: Sequence[Rule] | None, owners: Mapping[str, str | None], prefix: str
) -> dict[str, Any]:
    """Return the isolation and the peers that the rules of a security group define (pure).

    `owners` are the tags of tenants by IP set. Other rules become steps of the next run.
    """
    if rules is None:
        return {"isolation": NONE}
    sources = [rule.source.removeprefix("+dc/") for rule in rules if rule.accepts]
    if EVERY_TENANT in sources:
        return {"isolation": SHARED}
    tags = [owners.get(source) for source in sources]
    peers = [one.removeprefix(prefix) for one in tags if one is not None and one != tag]
    return {"isolation": OWN, "peers": peers} if peers else {"isolation": OWN}
