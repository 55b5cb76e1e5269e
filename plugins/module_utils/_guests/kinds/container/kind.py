# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Containers as a kind of guests; the only file that knows PVE's word for them (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.core.propstring import parse
from ...._foundation.schema.formats import Schema
from ...._foundation.schema.lxc import LXC
from ..identity import Identity
from ..kind import Kind, OtherKind
from .config.actual import (
    HIDDEN,
    VOLUME,
    configured_addresses,
    figures_of,
    format_value,
    is_privileged,
    mounts,
    nics,
    storage_of,
    volumes_in,
)
from .config.hotplug import waits_for_stop

# The architecture of a node for each architecture of a container (pve-container: LXC/Config.pm).
ARCHITECTURES = {"amd64": "x86_64", "i386": "x86_64", "arm64": "aarch64", "armhf": "aarch64"}


class ContainerKind(Kind):
    """Containers, which PVE runs with LXC.

    PVE does not save their memory (pve-container: LXC/Config.pm, __snapshot_check_running).
    """

    type: ClassVar[str] = "lxc"
    noun: ClassVar[str] = "container"
    # A restore of a container is the same task as its creation (pve-container: API2/LXC.pm).
    creation_tasks: ClassVar[Collection[str]] = ("vzcreate", "vzrestore", "vzclone")
    task_prefix: ClassVar[str] = "vz"
    migration_task: ClassVar[str] = "vzmigrate"
    tool: ClassVar[str] = "pct"
    console: ClassVar[str] = "lxc"
    generated_options: ClassVar[Collection[str]] = HIDDEN
    name_option: ClassVar[str] = "hostname"
    secret_options: ClassVar[Collection[str]] = ("env",)
    other: ClassVar[OtherKind] = OtherKind("VM", "name", "images")
    content: ClassVar[str] = "rootdir"
    template_is_task: ClassVar[bool] = False
    archive_word: ClassVar[str] = "ct"
    has_rootfs: ClassVar[bool] = True
    restores_empty_disks: ClassVar[bool] = True
    schema: ClassVar[Schema] = LXC
    volume_option: ClassVar[re.Pattern[str]] = VOLUME
    move_request: ClassVar[tuple[str, str]] = ("move_volume", "volume")

    volumes_in = staticmethod(volumes_in)
    is_privileged = staticmethod(is_privileged)
    waits_for_stop = staticmethod(waits_for_stop)
    addresses_in = staticmethod(configured_addresses)
    format_value = staticmethod(format_value)

    def parse_nic(self, key: str, text: str) -> Mapping[str, str]:
        return parse(text, {})

    def macs_in(self, config: Mapping[str, str]) -> Mapping[str, str]:
        return {key: nic["hwaddr"] for key, nic in nics(config).items() if nic.get("hwaddr")}

    def disks_in(self, config: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        volumes = volumes_in(config)
        found: dict[str, Mapping[str, str]] = {}
        for slot, mount in mounts(config).items():
            if slot in volumes:
                found[slot] = {**mount, "file": volumes[slot]}
        return found

    def storages_in(self, config: Mapping[str, str]) -> Collection[str]:
        volumes = [mount.get("volume", "") for mount in mounts(config).values()]
        return frozenset(storage_of(volume) or "" for volume in volumes)

    def arch_in(self, config: Mapping[str, str]) -> str:
        return ARCHITECTURES.get(config.get("arch", ""), "")

    def unsaved_in(self, config: Mapping[str, str]) -> list[str]:
        """Return its volumes except the root file system and mounts with C(backup=1)
        (pve-container: LXC/Config.pm, mountpoint_backup_enabled).
        """
        disks = self.disks_in(config)
        return sorted(
            slot for slot, mount in disks.items() if slot != "rootfs" and mount.get("backup") != "1"
        )

    def identity_in(
        self, config: Mapping[str, Any], *, name: str, volumes: Mapping[str, str]
    ) -> Identity:
        """Return the fingerprint with the MAC addresses: PVE stores neither a uuid nor the time of
        creation of a container, and chooses random MACs (pve-container: PVE/LXC/Config.pm,
        parse_lxc_network).
        """
        macs = {key: mac.upper() for key, mac in self.macs_in(config).items()}
        return Identity(name, "", "", volumes, macs=macs)

    def figures_of(
        self,
        config: Mapping[str, str],
        images: Mapping[str, int] | None = None,
        *,
        template: bool = False,
    ) -> QuotaFigures:
        return figures_of(config, template=template)


CONTAINER = ContainerKind()
