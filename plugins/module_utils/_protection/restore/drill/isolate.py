# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The isolated copy of a guest: its options, and reasons why it would not be safe (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...._foundation.cluster.drill.copies import OWNER_PREFIX, copy_name, copy_notes, copy_tags
from ...._foundation.cluster.tenant import parse_tags, tenant_of
from ...._guests.guest.plan.archive import dropped_in
from ...._guests.kinds.kind import Kind
from ...._guests.kinds.words import CONTAINER, VM
from ..choose import ChosenArchive
from ..desired import DesiredRestore, read_desired
from ..guest import storages_by_disk
from .desired import CopyOptions

_NIC = re.compile(r"net\d+")
# Options with which a copy would use a device, a file or a program of its node. A key with a dot is
# an option of LXC itself.
_OF_NODE: Mapping[str, re.Pattern[str]] = {
    VM.type: re.compile(r"args|hookscript|hostpci\d+|usb\d+|(serial|parallel)\d+|virtiofs\d+"),
    CONTAINER.type: re.compile(r"hookscript|dev\d+|[a-z]+\..+"),
}
_HARMLESS = re.compile(r"socket|spice(,.*)?")


def find_obstacle(kind: Kind, config: Mapping[str, str]) -> str:
    """Return why a copy of a guest cannot run next to the original, or an empty text."""
    if config.get("template") == "1":
        return "it is a template"
    for key in sorted(config.keys() - set(dropped_in(kind, config))):
        is_of_node = _OF_NODE[kind.type].fullmatch(key)
        if is_of_node and not _HARMLESS.fullmatch(config[key]):
            return f"its option {key} uses a device, a file or a program of its node"
        if kind.volume_option.match(key) and config[key].startswith("/"):
            return f"its {key} is a path of its node"
    return ""


def restore_of(
    options: CopyOptions, chosen: ChosenArchive, prefix: str, run: str, now: float
) -> DesiredRestore:
    """Return the restore that makes the copy of a guest and starts it."""
    tenant, _why = tenant_of(parse_tags(chosen.config.get("tags")), prefix)
    guest: dict[str, Any] = {
        "state": "started",
        "onboot": False,
        "protection": False,
        "tags": copy_tags(tenant),
        "tags_exact": True,
        "description": copy_notes(run, now),
        "nics": _nics(chosen.config, options.network),
        "vmid_range": list(options.vmid_range),
        # A restore writes the whole disk, even on a thin storage.
        "placement": {"storage_overcommit": 1},
    }
    if options.node:
        guest["node"] = options.node
    if options.pool:
        guest["pool"] = options.pool
    return read_desired(
        {
            "archive": chosen.archive.volume,
            "new_name": copy_name(chosen.archive.vmid or 0, chosen.name, run),
            "tenant_prefix": OWNER_PREFIX,
            "storage": options.storage,
            "storage_map": used_map(options, chosen),
            "options": guest,
            "keep": "none",
            "task_timeout": options.timeout,
        }
    )


def _nics(config: Mapping[str, str], network: str | None) -> list[dict[str, Any]]:
    """Return the NICs of the copy: disconnected, or all in the isolated network."""
    nics: list[dict[str, Any]] = []
    for slot in sorted(filter(_NIC.fullmatch, config)):
        nic: dict[str, Any] = {"name": slot}
        if network is None:
            nic["link_down"] = True
        else:
            nic["bridge"] = network
            if ",link_down=1" in config[slot]:
                nic["link_down"] = False
            if ",tag=" in config[slot]:
                nic["vlan"] = 0
        nics.append(nic)
    return nics


def used_map(options: CopyOptions, chosen: ChosenArchive) -> dict[str, str]:
    """Return the entries of the storage map for the storages of the disks in this archive."""
    used = set(storages_by_disk(chosen.kind, chosen.config).values())
    return {source: target for source, target in options.storage_map.items() if source in used}
