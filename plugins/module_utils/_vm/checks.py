# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must be there before anything is written: node, storages, bridges, pool, PVE's version. Reads, and raises."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from .._cluster.bridges import KnownBridges
from .._cluster.lookup import volume_owner
from .._cluster.picture import Picture
from .._cluster.placement import require_node, require_storage
from .._core.errors import ConfigurationError, NotSupported, ValidationFailed
from .._core.propstring import parse
from .._schema.check import check_options, disputed, taken_by
from .._schema.formats import format_of
from .._schema.versions import Version
from .config import Change
from .drives import RAW_ONLY

if TYPE_CHECKING:
    from .._api.client import Client


def check_version(client: Client, label: str, options: Mapping[str, str]) -> None:
    """Raise NotSupported for options that the server's version of PVE does not take and another one does.

    Where all versions agree, and they nearly always do, no request is made; else one, and one for all of a client.
    """
    if not disputed(options):
        return
    version = client.version()
    refused = check_options({key: options[key] for key in disputed(options)}, version)
    if not refused:
        return
    said = [f"{key} ({why}; {_takers(key, options[key], version)})" for key, why in sorted(refused.items())]
    raise NotSupported(
        attempted=f"{label} could not be planned",
        answer=f"the server is PVE {_number(version)}, which does not take {', '.join(said)}",
        next_step="Leave that out for this server, or use a server whose version takes it",
        reason=", ".join(sorted(refused)),
        parameters=refused,
        details={"version": _number(version)},
    )


def _takers(key: str, value: str, server: Version) -> str:
    """Return which version takes an option that the server's does not: the next one that does, or the last that did."""
    takers = taken_by(key, value)
    newer = [version for version in takers if version > server]
    return f"PVE {_number(newer[0])} takes it" if newer else f"PVE {_number(takers[-1])} took it"


def _number(version: Version) -> str:
    return ".".join(map(str, version))


def check_change(known: KnownBridges, change: Change, node: str, picture: Picture) -> None:
    """Raise ConfigurationError unless the node has the storages and bridges that a change needs."""
    require_node(picture, node)
    for storage, content in sorted(change.drives.storages.items()):
        require_storage(picture, storage, node, content)
    kinds = {row.storage: row.kind for row in picture.storages}
    for slot, (storage, wanted) in sorted(change.drives.formats.items()):
        if wanted != "raw" and kinds.get(storage) in RAW_ONLY:
            raise NotSupported(
                attempted=f"Disk {slot} could not be planned in format {wanted}",
                answer=f"storage {storage} ({kinds[storage]}) has disks in format raw only",
                next_step="Leave format out, or choose a storage of files",
                reason="format",
            )
    for volume, content in sorted(change.drives.volumes.items()):
        if content == "import" and volume_owner(volume) is not None:  # the disk of a VM, and no file
            content = "images"
        _require_importable(picture, volume, node, content)
        require_storage(picture, volume.partition(":")[0], node, content)
    check_bridges(known, bridges_of(change.sets), node)


def _require_importable(picture: Picture, volume: str, node: str, content: str) -> None:
    """Raise NotSupported, with the way around, where an image lies on a storage that PVE imports nothing from."""
    storage = volume.partition(":")[0]
    row = picture.storage_on(storage, node)
    if content != "import" or row is None or not row.available or "import" in row.content:
        return
    raise NotSupported(
        attempted=f"{volume} could not be imported on node {node}",
        answer=f"storage '{storage}' takes {', '.join(sorted(row.content))}, not import, which PVE has since 8.3",
        next_step="Put the image on a storage with content import, or make a template of it once and clone that",
        reason="storage content",
    )


def check_cpus(label: str, config: Mapping[str, str], node: str, picture: Picture) -> None:
    """Raise ConfigurationError for more CPUs than the node has, ValidationFailed for more in use than there are.

    Such a VM does not start (qemu-server: config_to_command).
    """
    row = picture.nodes.get(node)
    wanted = int(config.get("cores") or 1) * int(config.get("sockets") or 1)
    in_use = int(config.get("vcpus") or 0)
    if in_use > wanted:
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer=f"it would have {wanted} CPUs, and vcpus is {in_use}",
            next_step="Give it more cores or sockets, or fewer vcpus",
            reason="too many vcpus",
        )
    if row is not None and 0 < row.cores < wanted:
        raise ConfigurationError(
            attempted=f"{label} could not be planned to run on node {node}",
            answer=f"it would have {wanted} CPUs, and a VM on that node can have {row.cores}",
            next_step="Give it fewer cores or sockets, or choose a larger node",
            reason="too many CPUs",
        )


def bridges_of(config: Mapping[str, str]) -> frozenset[str]:
    """Return the bridges that the NICs of a configuration use."""
    nics = (parse(text, format_of(key) or {}) for key, text in config.items() if key[:3] == "net" and key[3:].isdigit())
    return frozenset(bridge for nic in nics if (bridge := nic.get("bridge")))


def check_bridges(known: KnownBridges, bridges: Collection[str], node: str) -> None:
    """Raise ConfigurationError for a bridge that the node does not have; PVE itself would notice only at start."""
    if not bridges:
        return
    there = known.on(node)
    missing = sorted(set(bridges) - there)
    if missing:
        raise ConfigurationError(
            attempted=f"Bridge '{missing[0]}' could not be used on node {node}",
            answer=f"the node has {', '.join(sorted(there)) or 'no bridge'}",
            next_step="Name one of them; the token needs Sys.Audit on the node, or SDN.Use, to see a bridge",
            reason="unknown bridge",
        )


def check_pool(client: Client, pool: str | None, picture: Picture) -> None:
    """Raise ConfigurationError for a pool that does not exist."""
    if not pool or pool in picture.pools:
        return
    there = {row["poolid"] for row in client.get("pools")}
    if pool not in there:
        raise ConfigurationError(
            attempted=f"Pool '{pool}' could not be used",
            answer=f"pools are {', '.join(sorted(there)) or 'none that this token may see'}",
            next_step="Create the pool first, or name one that is there",
            reason="unknown pool",
        )
