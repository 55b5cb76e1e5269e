# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configurations and replicas of lost nodes, as commands on another node print them (pure).

An offline node answers no request for its guests. Their configurations are still in C(/etc/pve) of
every other node, and a replica has a snapshot whose name contains its job and its time
(pve-guest-common: PVE/ReplicationState.pm, replication_snapshot_name).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....._foundation.core.errors import ValidationFailed
from ....._guests.kinds.words import CONTAINER, VM

# The kind of guests by PVE's directory of configurations.
FOLDERS: Mapping[str, str] = {"qemu-server": VM.type, "lxc": CONTAINER.type}
# Options that apply only to the restore of archives.
OF_ARCHIVES = tuple(
    "storages from_site storage storage_map pools quotas node placement copy_pool network"
    " vmid_range".split()
)
_FILE = re.compile(r"/etc/pve/nodes/([^/:]+)/(qemu-server|lxc)/(\d+)\.conf:(.*)")
_SNAPSHOT = re.compile(r"(\S+)@__replicate_(\d+-\d+)_(\d+)__")
_OPTION = re.compile(r"([a-z][\w.]*):\s*(.*\S)\s*")


@dataclass
class FoundConfig:
    """The configuration of a guest in the directory of a node, without its snapshots."""

    node: str
    type: str
    vmid: int
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LostNodes:
    """The lost nodes of this cluster, and the configurations of their guests. `newest` has the time
    of the newest replica by remaining node, then by dataset and job.
    """

    lost: frozenset[str]
    configs: tuple[FoundConfig, ...]
    newest: Mapping[str, Mapping[tuple[str, str], int]]


def read_replicas(params: Mapping[str, Any]) -> LostNodes | None:
    """Return the replicas of a task, or None if its guests come up from archives. Raises
    ValidationFailed for options that apply only to the other source.
    """
    lost, listed = params.get("lost_nodes") or (), params.get("replicas") or {}
    if not lost:
        _require_unset(params, ("configurations", "replicas"), "it needs lost_nodes")
        if not params.get("storages"):
            raise _refused("storages", "neither storages nor lost_nodes are set")
        return None
    _require_unset(params, OF_ARCHIVES, "it does not apply to replicas of lost_nodes")
    if params.get("keep_macs") is False:
        raise _refused("keep_macs", "guests of replicas keep their MAC addresses")
    if not listed:
        raise _refused("replicas", "lost_nodes need the replicas on other nodes")
    both = sorted(set(lost) & listed.keys())
    if both:
        raise _refused(f"replicas.{both[0]}", "the node is lost")
    newest = {str(node): parse_replicas(lines or ()) for node, lines in listed.items()}
    configs = parse_configs(params.get("configurations") or ())
    return LostNodes(frozenset(map(str, lost)), tuple(configs), newest)


def _require_unset(params: Mapping[str, Any], options: Iterable[str], why: str) -> None:
    """Raise ValidationFailed if one of these options is set."""
    for option in options:
        if params.get(option):
            raise _refused(option, why)


def _refused(option: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"{option} was refused: {why}",
        "See docs/failover.md: guests come up from backups or from replicas",
        option,
    )


def parse_configs(lines: Iterable[str]) -> list[FoundConfig]:
    """Return the guests in lines such as C(/etc/pve/nodes/pve1/lxc/100.conf:memory: 512). Sections
    after the present configuration, such as snapshots, are left out.
    """
    found: dict[tuple[str, str, str], FoundConfig] = {}
    finished: set[tuple[str, str, str]] = set()
    for line in lines:
        match = _FILE.fullmatch(line)
        if match is None:
            continue
        node, folder, vmid, text = match.groups()
        key = (node, folder, vmid)
        guest = found.setdefault(key, FoundConfig(node, FOLDERS[folder], int(vmid)))
        option = _OPTION.fullmatch(text)
        if text.startswith("["):
            finished.add(key)
        elif option is not None and key not in finished:
            guest.config[option[1]] = option[2]
    return list(found.values())


def parse_replicas(lines: Iterable[str]) -> dict[tuple[str, str], int]:
    """Return the time of the newest replica, in seconds since the epoch, by ZFS dataset and job."""
    newest: dict[tuple[str, str], int] = {}
    for line in lines:
        match = _SNAPSHOT.fullmatch(line.strip())
        if match is None:
            continue
        key = (match[1], match[2])
        newest[key] = max(newest.get(key, 0), int(match[3]))
    return newest
