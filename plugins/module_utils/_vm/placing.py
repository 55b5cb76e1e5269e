# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a VM goes: what its configuration needs of a node, for a new one and for one that may have to move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .._cluster.bridges import KnownBridges, choose_with_bridges
from .._cluster.picture import Picture, fill_names
from .._cluster.placement import Choice, Needs, require_node, why_not
from .._core.propstring import parse
from .._core.quantities import MIB
from .._schema.formats import format_of
from .actual import drives, is_cloud_init, is_disk, storage_of
from .checks import bridges_of
from .config import Change
from .model import Actual, Desired

if TYPE_CHECKING:
    from .._api.client import Client

# What PVE takes where a configuration says nothing.
_MEMORY = 512


def memory_of(config: Mapping[str, str]) -> int:
    """Return the bytes of memory that a configuration gives a VM."""
    text = parse(config.get("memory", ""), format_of("memory") or {}).get("current")
    return int(text or _MEMORY) * MIB


def cpus_of(config: Mapping[str, str]) -> int:
    """Return the most CPUs that a VM of that configuration can have, those to be plugged in later included."""
    return int(config.get("cores") or 1) * int(config.get("sockets") or 1)


def cores_of(config: Mapping[str, str]) -> int:
    """Return the cores that a configuration gives a VM, over all sockets."""
    if config.get("vcpus"):
        return int(config["vcpus"])
    return cpus_of(config)


def needs_of(desired: Desired, config: Mapping[str, str], change: Change, *, vmid: int | None = None) -> Needs:
    """Return what a VM needs of its node that will have this configuration (pure)."""
    storages: dict[str, str] = {}
    for slot, drive in drives(config).items():
        storage = storage_of(drive) or "/"
        allocated = is_disk(drive) or is_cloud_init(drive)
        if allocated and slot not in change.gone and not storage.startswith("/"):  # a path of the node is no storage
            storages[storage] = "images"
    return Needs(
        storages={**storages, **change.drives.storages},
        memory=memory_of(config),
        cores=cores_of(config),
        cpus=cpus_of(config) if desired.state == "started" else 0,
        bridges=bridges_of(config),
        vmid=vmid,
        tenant_tag=desired.tenant_tag,
        prefix=desired.tenant_prefix,
        label=desired.name or str(vmid or ""),
    )


def place_new(client: Client, desired: Desired, needs: Needs, picture: Picture, bridges: KnownBridges) -> Choice:
    """Return the node of a new VM: the one that is asked for, the settings' default, or the one that is chosen."""
    if desired.node:
        return Choice(desired.node, reasons=("node names it",))
    rules, default = desired.rules, client.default_node
    if default and needs.only is None:
        require_node(picture, default)
        if not rules.given:
            return Choice(default, reasons=("it is the default node of the connection",))
        if not rules.nodes:
            rules = replace(rules, nodes=(default,))
    if rules.needs_names:
        picture = fill_names(client, picture)
    return choose_with_bridges(picture, needs, rules, bridges)


def rebalance(
    client: Client,
    desired: Desired,
    actual: Actual,
    config: Mapping[str, str],
    change: Change,
    picture: Picture,
    bridges: KnownBridges,
) -> Choice | None:
    """Return where an existing VM shall be, or None where nothing is to be decided.

    It stays where it is as long as that node meets every constraint; a preference alone moves nothing.
    """
    if desired.node:
        return Choice(desired.node, reasons=("node names it",))
    if not desired.rebalance:
        return None
    if desired.rules.needs_names:
        picture = fill_names(client, picture)
    needs = needs_of(desired, config, change, vmid=actual.vmid)
    seen = _without(picture, actual)
    here = why_not(seen, actual.node, needs, desired.rules)
    if here is None:
        return Choice(actual.node, reasons=("it is there, and every constraint holds",))
    choice = choose_with_bridges(seen, needs, desired.rules, bridges)
    return replace(choice, reasons=(f"{actual.node} is no longer fit: {here}", *choice.reasons))


def _without(picture: Picture, actual: Actual) -> Picture:
    """Return the picture as if the VM used no memory of its node: what it uses moves with it."""
    node = picture.nodes.get(actual.node)
    if node is None or not actual.running:
        return picture
    own = memory_of(actual.live)
    return replace(
        picture, nodes={**picture.nodes, node.node: replace(node, memory_used=max(0, node.memory_used - own))}
    )
