# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An archive as the source of a guest: its name, its configuration, its owner (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

from ...._foundation.cluster.tenant import owns, parse_tags, tenants_of
from ...._foundation.core.errors import Conflict, ForeignTenant, NotFound
from ...kinds.kind import Kind
from ...kinds.model import Guest

# pve-storage: PVE/Storage.pm, archive_info, and PVE/Storage/PBSPlugin.pm, parse_volname.
_FILE = re.compile(r"vzdump-(?P<type>[a-z]+)-(?P<vmid>\d+)-")
_ON_SERVER = re.compile(r"backup/(?P<word>[a-z]+)/(?P<vmid>\d+)/")
# The lines with which an archive of a VM maps its disks (qemu-server: VZDump/QemuServer.pm).
_MAP = "#qmdump#"


def is_archive(volume: str) -> bool:
    """Return whether a volume is a backup (pve-storage: parse_volname of the plugins)."""
    _storage, _colon, path = volume.partition(":")
    return path.startswith("backup/")


def archived_vmid(volume: str) -> int | None:
    """Return the VMID of the guest in an archive, None if the name does not have it."""
    found = _FILE.search(volume) or _ON_SERVER.search(volume)
    return None if found is None else int(found["vmid"])


def is_archive_of(kind: Kind, volume: str, config: Mapping[str, str]) -> bool:
    """Return whether an archive contains a guest of this kind. For a renamed file its configuration
    decides: every container has a root file system.
    """
    found = _FILE.search(volume)
    if found is not None:
        return found["type"] == kind.type
    found = _ON_SERVER.search(volume)
    if found is not None:
        return found["word"] == kind.archive_word
    return ("rootfs" in config) == kind.has_rootfs


def read_archived(text: str) -> Mapping[str, str]:
    """Return the configuration in an archive, without its snapshots."""
    config: dict[str, str] = {}
    notes: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            break
        if line.startswith(_MAP):
            continue
        if line.startswith("#"):
            notes.append(line[1:])
            continue
        key, colon, value = line.partition(":")
        if colon:
            config[key.strip()] = value.strip()
    if notes and "description" not in config:
        config["description"] = unquote("\n".join(notes))
    return config


def dropped_in(kind: Kind, config: Mapping[str, str]) -> list[str]:
    """Return the disks in an archived configuration that a restore leaves out (qemu-server:
    QemuServer.pm, restore_update_config_line).
    """
    return [] if kind.restores_empty_disks else kind.unsaved_in(config)


def remark_on_unsaved(kind: Kind, config: Mapping[str, str]) -> str:
    """Return the end of a sentence about a restore: the disks that it leaves out or restores
    empty, because their data is not in the archive. Return an empty text if there are none.
    """
    unsaved = kind.unsaved_in(config)
    if not unsaved:
        return ""
    if kind.restores_empty_disks:
        return f", with an empty {', '.join(unsaved)}"
    return f", without {', '.join(unsaved)}"


def warn_of_unsaved(kind: Kind, label: str, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning about the disks whose data is not in an archive, if there are any.

    PVE leaves such disks of a VM out, and creates such volumes of a container without data
    (qemu-server: QemuServer.pm, restore_update_config_line; pve-container: API2/LXC.pm, create_vm).
    """
    unsaved = kind.unsaved_in(config)
    if not unsaved:
        return ()
    effect = "creates them empty" if kind.restores_empty_disks else "does not restore them"
    problem = f"The archive of {label} has no data of {', '.join(unsaved)}"
    remedy = "set backup: true on them, so that the next backup includes them"
    return (f"{problem}, and the restore {effect}: {remedy}",)


def require_listed(volume: str, having: Collection[str], node: str | None) -> None:
    """Raise NotFound for an archive that no node lists; `having` are the nodes that list it.

    PVE hides an archive from a caller who may not use it (pve-storage: PVE/Storage.pm,
    check_volume_access).
    """
    if having:
        return
    place = f"node {node} does not have it" if node else "no node has it"
    vmid = archived_vmid(volume)
    raise NotFound(
        f"{volume} could not be restored: {place}, or it is not visible",
        (
            "Check the name with module backup_info; the token needs Datastore.AllocateSpace on the"
            f" storage and VM.Backup on /vms/{vmid or 'VMID'}"
        ),
        "unknown archive",
    )


def require_kind(kind: Kind, volume: str, config: Mapping[str, str]) -> None:
    """Raise Conflict for the archive of a guest of the other kind."""
    if is_archive_of(kind, volume, config):
        return
    raise Conflict(
        f"{volume} was not restored: it is the backup of a {kind.other.noun}, not of a {kind.noun}",
        f"Name the backup of a {kind.noun}",
        "archive of the other kind",
    )


def require_own_archive(guest: Guest, volume: str, config: Mapping[str, Any]) -> None:
    """Raise ForeignTenant unless the task's tenant is the only tenant in the tags of the archive.

    Without a tenant, archives of tenants are refused only if the guest has `only_unowned`.
    """
    tags = parse_tags(config.get("tags"))
    prefix = guest.tenant_prefix
    is_open = guest.tenant_tag is None and not guest.only_unowned
    is_unowned = guest.tenant_tag is None and not tenants_of(tags, prefix)
    is_own = guest.tenant_tag is not None and owns(guest.tenant_tag, tags, prefix)
    if is_open or is_unowned or is_own:
        return
    owner = "another tenant's guest" if tenants_of(tags, prefix) else "a guest without a tenant"
    raise ForeignTenant(
        f"{volume} was not restored: it is the backup of {owner}",
        "Choose a backup of this tenant",
        "foreign tenant",
    )
