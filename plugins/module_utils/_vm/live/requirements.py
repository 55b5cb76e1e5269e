# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must be there before anything is written: node, storages, bridges, pool, PVE's version.

Reads, and raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

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
from ..._schema.formats import OPTIONS, format_of, rule_of
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


def check_version(client: Client, label: str, options: Mapping[str, str]) -> None:
    """Raise NotSupported for options that the server's version of PVE does not take and another one
    does.

    Where all versions agree, and they nearly always do, no request is made; else one, and one for
    all of a client.
    """
    options = {
        key: options[key] for key in disputed(options) if not unknown_option(key, options[key])
    }
    if not options:
        return
    version = client.version()
    refused = check_options(options, client.release())
    if not refused:
        return
    said = [
        f"{key} ({why}; {_takers(key, options[key], version)})"
        for key, why in sorted(refused.items())
    ]
    raise NotSupported(
        attempted=f"{label} could not be planned",
        answer=f"the server is PVE {_number(version)}, which does not take {', '.join(said)}",
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
    doubts = [f"{desired.label}: {text}" for text in _unseen(desired)]
    unknown = list(_unknown_names(desired))
    if not unknown:
        return tuple(doubts)
    release = client.release()
    if not is_newer(release):
        what, key, text, refusal = unknown[0]
        if refusal.answer:
            raise refusal_error(what, text, refusal)
        answer = f"was refused ({refusal.reason}; the server is PVE {_number(release)})"
        raise validate.refused(what, text[:40], answer, _correction(what, key, text))
    names = ", ".join(what for what, _key, _text, _refusal in unknown)
    doubts.append(
        f"{desired.label}: whether PVE {_number(release)} takes {names} is known to the server only"
    )
    return tuple(doubts)


def _unknown_names(desired: Desired) -> Iterator[tuple[str, str, str, Refusal]]:
    """Yield options and sub-keys that no known version takes: what each is called, its key, its
    value, and why.
    """
    for what, key, text, refusal in _judged_names(desired):
        if refusal is not None:
            yield what, key, text, refusal


def _judged_names(desired: Desired) -> Iterator[tuple[str, str, str, Refusal | None]]:
    for key, text in desired.scalars.items():
        yield key, key, text, unknown_option(key, text)
    parts = {**desired.property_strings, **{disk.slot: disk.options for disk in desired.disks}}
    for key, values in parts.items():
        if rule_of(key) is None:
            yield key, key, ",".join(values), unknown_option(key, "")
            continue
        for name, value in values.items():
            if value is not None:
                yield f"{key}.{name}", key, value, unknown_part(key, name, value)


def _rule(what: str, key: str) -> Mapping[str, Any] | None:
    """Return the schema's facts about an option or a sub-key, or None where it has no such name."""
    if what == key:
        return rule_of(key)
    return (format_of(key) or {}).get(what.rpartition(".")[2])


def _correction(what: str, key: str, text: str) -> str:
    """Return the next step for a name that PVE does not have: near ones, or all of them."""
    from difflib import get_close_matches  # not loaded where every value is valid

    if _rule(what, key) is None:
        names = sorted(OPTIONS if what == key else format_of(key) or {})
        near = get_close_matches(what.rpartition(".")[2], names, 1)
        others = f"Use {', '.join(names)}" if what != key else "Check the spelling"
    else:
        near = get_close_matches(text, CPU_MODELS, 1) if what == "cpu.cputype" else []
        others = "Write it as PVE does"
    return f"Did you mean '{near[0]}'?" if near else others


def _unseen(desired: Desired) -> Iterator[str]:
    model = desired.property_strings.get("cpu", {}).get("cputype") or ""
    if model.startswith("custom-"):
        yield f"whether there is a CPU model {model} is known to the server only"


def check_root_only(client: Client, label: str, change: Change, target: Mapping[str, str]) -> None:
    """Raise PermissionDenied for options that PVE lets root@pam alone change, and no token, not
    even one of root's.
    """
    connection = client.connection
    if connection.user == "root@pam" and not connection.token_id:
        return
    keys = sorted({*change.sets, *change.deletes} - change.drives.keys)
    refused = {
        key: why for key in keys if (why := root_only(key, (change.sets.get(key), target.get(key))))
    }
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
    newer = [version for version in takers if version > server]
    return f"PVE {_number(newer[0])} takes it" if newer else f"PVE {_number(takers[-1])} took it"


def _number(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def check_change(known: KnownBridges, change: Change, node: str, cluster: ClusterState) -> None:
    """Raise ConfigurationError unless the node has the storages and bridges that a change needs."""
    require_node(cluster, node)
    stores = {
        *change.drives.storages,
        *(volume.partition(":")[0] for volume in change.drives.volumes),
    }
    require_own_storages(known.connection, stores)
    for storage, content in sorted(change.drives.storages.items()):
        require_storage(cluster, storage, node, content)
    kinds = {row.storage: row.kind for row in cluster.storages}
    for slot, (storage, wanted) in sorted(change.drives.formats.items()):
        if wanted != "raw" and kinds.get(storage) in RAW_ONLY:
            raise NotSupported(
                attempted=f"Disk {slot} could not be planned in format {wanted}",
                answer=f"storage {storage} ({kinds[storage]}) has disks in format raw only",
                next_step="Leave format out, or choose a storage of files",
                reason="format",
            )
    for volume, content in sorted(change.drives.volumes.items()):
        # the disk of a VM, and no file
        if content == "import" and volume_owner(volume) is not None:
            content = "images"
        _require_importable(cluster, volume, node, content)
        require_storage(cluster, volume.partition(":")[0], node, content)
    check_bridges(known, bridges_of(change.sets), node)


def _require_importable(cluster: ClusterState, volume: str, node: str, content: str) -> None:
    """Raise NotSupported, with the way around, where an image lies on a storage that PVE imports
    nothing from.
    """
    storage = volume.partition(":")[0]
    row = cluster.storage_on(storage, node)
    if content != "import" or row is None or not row.available or "import" in row.content:
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
    row = cluster.nodes.get(node)
    wanted = int(config.get("cores") or 1) * int(config.get("sockets") or 1)
    in_use = int(config.get("vcpus") or 0)
    if in_use > wanted:
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer=f"it would have {wanted} CPUs, and vcpus is {in_use}",
            next_step="Give it more cores or sockets, or fewer vcpus",
            reason="too many vcpus",
        )
    if config.get("hugepages") and config.get("numa") != "1":  # Memory.pm, config
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer="numa needs to be enabled to use hugepages",
            next_step="Set numa=true, or leave hugepages out",
            reason="hugepages",
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
    nics = (
        parse(text, format_of(key) or {})
        for key, text in config.items()
        if key[:3] == "net" and key[3:].isdigit()
    )
    return frozenset(bridge for nic in nics if (bridge := nic.get("bridge")))


def check_bridges(known: KnownBridges, bridges: Collection[str], node: str) -> None:
    """Raise ConfigurationError for a bridge that the node does not have.

    PVE itself would notice only at start.
    """
    if not bridges:
        return
    require_own_bridges(known.connection, bridges)
    there = known.on(node)
    missing = sorted(set(bridges) - there)
    if missing:
        raise ConfigurationError(
            attempted=f"Bridge '{missing[0]}' could not be used on node {node}",
            answer=f"the node has {', '.join(sorted(there)) or 'no bridge'}",
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
    if desired.pool != "" or actual.pool:
        return ()
    held = client.get("access", "permissions", path="/pool") or {}
    if (held.get("/pool") or {}).get("Pool.Audit"):
        return ()
    return (
        (
            f"{actual.label}: the token has no Pool.Audit on /pool, so a pool that it is in may be"
            " hidden"
        ),
    )


def check_pool(client: Client, pool: str | None, cluster: ClusterState) -> None:
    """Raise ConfigurationError for a pool that does not exist."""
    if not pool or pool in cluster.pools:
        return
    there = {row["poolid"] for row in client.get("pools")}
    if pool not in there:
        raise ConfigurationError(
            attempted=f"Pool '{pool}' could not be used",
            answer=f"pools are {', '.join(sorted(there)) or 'none that this token may see'}",
            next_step="Create the pool first, or name one that is there",
            reason="unknown pool",
        )


def check_snapshots(client: Client, desired: Desired, actual: Actual, change: Change) -> None:
    """Raise Conflict for what PVE does not do to a VM with snapshots.

    It converts none into a template, and does not remove or move a disk of a snapshot. Only for
    those changes the snapshots are read: one request, and for disks one more for each snapshot.
    """
    converts = desired.state == "template" and not actual.template
    volumes = {}
    for slot in {*change.drives.removed, *change.drives.moved}:
        volumes[slot] = volume_of(slot, actual.target.get(slot, ""))
    volumes = {slot: volume for slot, volume in volumes.items() if volume}
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
    for name in names:
        config = client.get(*actual.path, "config", snapshot=name)
        held = drives({key: str(text) for key, text in config.items()})
        files = {drive.get("file") for drive in held.values()}
        for slot in sorted(volumes):
            if volumes[slot] in files:
                raise _held_by_snapshot(actual, slot, name, moves=slot in change.drives.moved)


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
