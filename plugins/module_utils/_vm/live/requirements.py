# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must be there before anything is written: node, storages, bridges, pool, PVE's version.

Reads, and raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..._cluster.bridges import KnownBridges
from ..._cluster.lookup import volume_owner
from ..._cluster.placement import require_node, require_storage
from ..._cluster.site import require_own_bridges, require_own_storages
from ..._cluster.state import ClusterState
from ..._core import validate
from ..._core.errors import (
    ConfigurationError,
    Conflict,
    NotSupported,
    PermissionDenied,
    ValidationFailed,
)
from ..._core.propstring import parse
from ..._schema.check import (
    Refusal,
    check_options,
    disputed,
    taken_by,
    unknown_option,
    unknown_part,
)
from ..._schema.formats import OPTIONS, rule_of, sub_keys_of
from ..._schema.qemu import CPU_MODELS
from ..._schema.root_only import root_only
from ..._schema.versions import Version, is_newer
from ..config.actual import drives, volume_of
from ..config.changes import Change
from ..config.drives import RAW_ONLY
from ..desired.canonical import refusal_error
from ..model import Actual, Desired

if TYPE_CHECKING:
    from ..._api.client import Client

_NIC = re.compile(r"^net\d+$")


def check_version(client: Client, label: str, options: Mapping[str, str]) -> None:
    """Raise NotSupported for options that the server's version of PVE does not take and another one
    does.

    Where all versions agree, and they nearly always do, no request is made; else one, and one for
    all of a client.
    """
    doubtful: dict[str, str] = {}
    for key in disputed(options):
        text = options[key]
        if unknown_option(key, text):
            continue
        doubtful[key] = text
    if not doubtful:
        return
    version = client.version()
    release = client.release()
    refused = check_options(doubtful, release)
    if not refused:
        return
    causes: list[str] = []
    for key, why in sorted(refused.items()):
        takers = _takers(key, doubtful[key], version)
        causes.append(f"{key} ({why}; {takers})")
    raise NotSupported(
        attempted=f"{label} could not be planned",
        answer=f"the server is PVE {_number(version)}, which does not take {', '.join(causes)}",
        next_step="Leave that out for this server, or use a server whose version takes it",
        reason=", ".join(sorted(refused)),
        parameters=refused,
        details={"version": _number(version)},
    )


def check_names(client: Client, desired: Desired) -> tuple[str, ...]:
    """Return what of the options only the server can judge, in words.

    Options, sub-keys and words that the schema does not have are left to a server that is newer
    than the schema. Raises ValidationFailed for any other server, which would refuse them. Without
    such names no request is made.
    """
    doubts: list[str] = []
    unclear = "is known to the server only"
    cpu = desired.property_strings.get("cpu", {})
    model = cpu.get("cputype") or ""
    if model.startswith("custom-"):
        doubts.append(f"{desired.label}: whether there is a CPU model {model} {unclear}")
    unknown = list(unknown_names(desired))
    if not unknown:
        return tuple(doubts)
    release = client.release()
    number = _number(release)
    if not is_newer(release):
        raise _unknown_name(unknown[0], number)
    names = ", ".join(name.shown for name in unknown)
    doubts.append(f"{desired.label}: whether PVE {number} takes {names} {unclear}")
    return tuple(doubts)


@dataclass(frozen=True)
class UnknownName:
    """An option or sub-key, and why no known version takes it."""

    key: str
    part: str  # the sub-key, empty for an option
    text: str
    refusal: Refusal

    @property
    def shown(self) -> str:
        """How messages call it."""
        if not self.part:
            return self.key
        return f"{self.key}.{self.part}"


def unknown_names(desired: Desired) -> Iterator[UnknownName]:
    """Yield the options and sub-keys of the task that no known version takes."""
    for key, text in desired.scalars.items():
        refusal = unknown_option(key, text)
        if refusal:
            yield UnknownName(key, "", text, refusal)
    property_strings = dict(desired.property_strings)
    for disk in desired.disks:
        property_strings[disk.slot] = disk.options
    for key, values in property_strings.items():
        if rule_of(key) is None:
            refusal = unknown_option(key, "")
            if refusal:
                yield UnknownName(key, "", ",".join(values), refusal)
            continue
        for part, value in values.items():
            if value is None:
                continue
            refusal = unknown_part(key, part, value)
            if refusal:
                yield UnknownName(key, part, value, refusal)


def _unknown_name(name: UnknownName, number: str) -> ValidationFailed:
    """Return the error of a name that the server, of that version, does not have."""
    refusal = name.refusal
    if refusal.answer:
        return refusal_error(name.shown, name.text, refusal)
    return validate.refused(
        name.shown,
        name.text[:40],
        f"was refused ({refusal.reason}; the server is PVE {number})",
        _correction(name),
    )


def _correction(name: UnknownName) -> str:
    """Return the next step for a name that PVE does not have: near ones, or all of them."""
    from difflib import get_close_matches  # not loaded where every value is valid

    near: list[str] = []
    others = "Write it as PVE does"
    if not name.part:
        if rule_of(name.key) is None:
            near = get_close_matches(name.key, sorted(OPTIONS), 1)
            others = "Check the spelling"
    else:
        names = sorted(sub_keys_of(name.key))
        if name.part not in names:
            near = get_close_matches(name.part, names, 1)
            others = f"Use {', '.join(names)}"
        elif name.shown == "cpu.cputype":
            near = get_close_matches(name.text, CPU_MODELS, 1)
    if near:
        return f"Did you mean '{near[0]}'?"
    return others


def check_root_only(client: Client, label: str, change: Change, target: Mapping[str, str]) -> None:
    """Raise PermissionDenied for options that PVE lets root@pam alone change, and no token, not
    even one of root's.
    """
    connection = client.connection
    is_root = connection.user == "root@pam"
    if is_root and not connection.token_id:
        return
    written = {*change.sets, *change.deletes}
    refused: dict[str, str] = {}
    for key in sorted(written - change.drives.keys):
        values = (change.sets.get(key), target.get(key))
        why = root_only(key, values)
        if why:
            refused[key] = why
    if refused:
        raise PermissionDenied(
            attempted=f"{label} could not be planned",
            answer="; ".join(refused.values()),
            next_step=(
                "PVE allows this to root@pam with a password only, never to a token; use a resource"
                " mapping for a device, or let root set it"
            ),
            reason="root only",
            parameters=refused,
        )


def _takers(key: str, value: str, server: Version) -> str:
    """Return which version takes an option that the server's does not: the next one that does, or
    the last that did.
    """
    takers = taken_by(key, value)
    for version in takers:
        if version > server:
            return f"PVE {_number(version)} takes it"
    return f"PVE {_number(takers[-1])} took it"


def _number(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def check_change(known: KnownBridges, change: Change, node: str, cluster: ClusterState) -> None:
    """Raise ConfigurationError unless the node has the storages and bridges that a change needs."""
    require_node(cluster, node)
    storages = set(change.drives.storages)
    for volume in change.drives.volumes:
        storages.add(_storage_of(volume))
    require_own_storages(known.connection, storages)
    for storage, content in sorted(change.drives.storages.items()):
        require_storage(cluster, storage, node, content)
    _check_formats(change, cluster)
    for volume, content in sorted(change.drives.volumes.items()):
        is_of_vm = volume_owner(volume) is not None
        if content == "import" and is_of_vm:
            content = "images"  # the disk of a VM, and no file
        if content == "import":
            _require_importable(cluster, volume, node)
        require_storage(cluster, _storage_of(volume), node, content)
    bridges = bridges_of(change.sets)
    check_bridges(known, bridges, node)


def _storage_of(volume: str) -> str:
    storage, _colon, _name = volume.partition(":")
    return storage


def _check_formats(change: Change, cluster: ClusterState) -> None:
    """Raise NotSupported for a format that a storage does not have."""
    kinds = {row.storage: row.kind for row in cluster.storages}
    for slot, (storage, wanted) in sorted(change.drives.formats.items()):
        kind = kinds.get(storage)
        if wanted == "raw" or kind not in RAW_ONLY:
            continue
        raise NotSupported(
            attempted=f"Disk {slot} could not be planned in format {wanted}",
            answer=f"storage {storage} ({kind}) has disks in format raw only",
            next_step="Leave format out, or choose a storage of files",
            reason="format",
        )


def _require_importable(cluster: ClusterState, volume: str, node: str) -> None:
    """Raise NotSupported, with the way around, where an image lies on a storage that PVE imports
    nothing from.
    """
    storage = _storage_of(volume)
    row = cluster.storage_on(storage, node)
    if row is None or not row.available:
        return
    if "import" in row.content:
        return
    raise NotSupported(
        attempted=f"{volume} could not be imported on node {node}",
        answer=(
            f"storage '{storage}' takes {', '.join(sorted(row.content))}, not import, which PVE has"
            " since 8.3"
        ),
        next_step=(
            "Put the image on a storage with content import, or make a template of it once and"
            " clone that"
        ),
        reason="storage content",
    )


def check_cpus(label: str, config: Mapping[str, str], node: str, cluster: ClusterState) -> None:
    """Raise ConfigurationError for more CPUs than the node has, ValidationFailed for more in use
    than there are.

    Such a VM does not start (qemu-server: config_to_command).
    """
    cores = int(config.get("cores") or 1)
    sockets = int(config.get("sockets") or 1)
    wanted = cores * sockets
    in_use = int(config.get("vcpus") or 0)
    if in_use > wanted:
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer=f"it would have {wanted} CPUs, and vcpus is {in_use}",
            next_step="Give it more cores or sockets, or fewer vcpus",
            reason="too many vcpus",
        )
    has_numa = config.get("numa") == "1"
    if config.get("hugepages") and not has_numa:  # Memory.pm, config
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer="numa needs to be enabled to use hugepages",
            next_step="Set numa=true, or leave hugepages out",
            reason="hugepages",
        )
    row = cluster.nodes.get(node)
    if row is None or row.cores <= 0:
        return
    if row.cores < wanted:
        raise ConfigurationError(
            attempted=f"{label} could not be planned to run on node {node}",
            answer=f"it would have {wanted} CPUs, and a VM on that node can have {row.cores}",
            next_step="Give it fewer cores or sockets, or choose a larger node",
            reason="too many CPUs",
        )


def bridges_of(config: Mapping[str, str]) -> frozenset[str]:
    """Return the bridges that the NICs of a configuration use."""
    bridges: set[str] = set()
    for key in filter(_NIC.match, config):
        nic = parse(config[key], sub_keys_of(key))
        bridge = nic.get("bridge")
        if bridge:
            bridges.add(bridge)
    return frozenset(bridges)


def check_bridges(known: KnownBridges, bridges: Collection[str], node: str) -> None:
    """Raise ConfigurationError for a bridge that the node does not have.

    PVE itself would notice only at start.
    """
    if not bridges:
        return
    require_own_bridges(known.connection, bridges)
    there = known.on(node)
    missing = set(bridges) - there
    if missing:
        names = ", ".join(sorted(there))
        raise ConfigurationError(
            attempted=f"Bridge '{min(missing)}' could not be used on node {node}",
            answer=f"the node has {names or 'no bridge'}",
            next_step=(
                "Name one of them; the token needs Sys.Audit on the node, or SDN.Use, to see a"
                " bridge"
            ),
            reason="unknown bridge",
        )


def hidden_pool(client: Client, desired: Desired, actual: Actual) -> tuple[str, ...]:
    """Return a warning where no pool is asked for and the token could not see the one that the VM
    is in.

    PVE leaves out the pool of a VM in its listing without Pool.Audit on that pool
    (API2/Cluster.pm).
    """
    is_taken_out = desired.pool == ""
    if actual.pool or not is_taken_out:
        return ()
    held = client.get("access", "permissions", path="/pool") or {}
    privileges = held.get("/pool") or {}
    if privileges.get("Pool.Audit"):
        return ()
    cause = "the token has no Pool.Audit on /pool"
    return (f"{actual.label}: {cause}, so a pool that it is in may be hidden",)


def check_pool(client: Client, pool: str | None, cluster: ClusterState) -> None:
    """Raise ConfigurationError for a pool that does not exist."""
    if not pool or pool in cluster.pools:
        return
    rows = client.get("pools")
    there = {row["poolid"] for row in rows}
    if pool in there:
        return
    names = ", ".join(sorted(there))
    raise ConfigurationError(
        attempted=f"Pool '{pool}' could not be used",
        answer=f"pools are {names or 'none that this token may see'}",
        next_step="Create the pool first, or name one that is there",
        reason="unknown pool",
    )


def check_snapshots(client: Client, desired: Desired, actual: Actual, change: Change) -> None:
    """Raise Conflict for what PVE does not do to a VM with snapshots.

    It converts none into a template, and does not remove or move a disk of a snapshot. Only for
    those changes the snapshots are read: one request, and for disks one more for each snapshot.
    """
    converts = desired.state == "template" and not actual.template
    volumes: dict[str, str] = {}
    for slot in {*change.drives.removed, *change.drives.moved}:
        volume = volume_of(slot, actual.target.get(slot, ""))
        if volume:
            volumes[slot] = volume
    if not converts and not volumes:
        return
    rows = client.get(*actual.path, "snapshot")
    names = sorted(str(row["name"]) for row in rows if row["name"] != "current")
    if converts and names:
        raise Conflict(
            attempted=f"{actual.label} was not converted into a template",
            answer=f"it has snapshots: {', '.join(names)}",
            next_step="Remove them first, with module snapshot",
            reason="snapshots",
        )
    _require_free(client, actual, change, volumes, names)


def _require_free(
    client: Client,
    actual: Actual,
    change: Change,
    volumes: Mapping[str, str],
    snapshots: Collection[str],
) -> None:
    """Raise Conflict for a volume that is part of a snapshot; one request a snapshot."""
    if not volumes:
        return
    for name in snapshots:
        held = _volumes_of_snapshot(client, actual, name)
        for slot, volume in sorted(volumes.items()):
            if volume in held:
                raise _held_by_snapshot(
                    actual,
                    slot,
                    name,
                    moves=slot in change.drives.moved,
                )


def _volumes_of_snapshot(client: Client, actual: Actual, name: str) -> set[str | None]:
    """Return the volumes of the drives in a snapshot; one request."""
    config = client.get(*actual.path, "config", snapshot=name)
    texts = {key: str(text) for key, text in config.items()}
    return {drive.get("file") for drive in drives(texts).values()}


def _held_by_snapshot(actual: Actual, slot: str, snapshot: str, *, moves: bool) -> Conflict:
    verb, other = "removed", ", or detach the disk instead"
    if moves:
        verb, other = "moved", ""
    return Conflict(
        attempted=f"Disk {slot} of {actual.label} was not {verb}",
        answer=f"its volume is part of snapshot '{snapshot}'",
        next_step=f"Remove the snapshot first, with module snapshot{other}",
        reason="snapshots",
    )
