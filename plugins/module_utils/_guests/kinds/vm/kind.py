# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Virtual machines as a kind of guests; the only file that knows PVE's word for them (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from ...._foundation.cluster.cards import Card, cards_in
from ...._foundation.schema.formats import QEMU, Schema, parse_option
from ..addresses import cloud_init_addresses
from ..identity import Identity
from ..kind import Kind, OtherKind, nics_in
from .config.actual import (
    DRIVE,
    HIDDEN,
    drives,
    figures_of,
    format_value,
    is_disk,
    state_volume,
    storage_of,
    volumes_in,
)
from .config.hotplug import waits_for_stop

_MEMORY_OBSTACLE = re.compile(r"amd-sev|intel-tdx|virtiofs\d+")
_UUID = re.compile(r"(?:^|,)uuid=([0-9a-fA-F-]+)")

_MAPPED_TYPES = {"hostpci": "pci", "usb": "usb", "virtiofs": "dir"}
_MAPPED = re.compile(rf"(?:{'|'.join(_MAPPED_TYPES)})\d+")


class VmKind(Kind):
    """Virtual machines, which PVE runs in QEMU."""

    type: ClassVar[str] = "qemu"
    noun: ClassVar[str] = "VM"
    creation_tasks: ClassVar[Collection[str]] = ("qmclone", "qmcreate", "qmrestore", "imgcopy")
    task_prefix: ClassVar[str] = "qm"
    migration_task: ClassVar[str] = "qmigrate"
    minimum_mtu: ClassVar[int] = 576
    tool: ClassVar[str] = "qm"
    console: ClassVar[str] = "kvm"
    generated_options: ClassVar[Collection[str]] = HIDDEN
    name_option: ClassVar[str] = "name"
    secret_options: ClassVar[Collection[str]] = ("cipassword",)
    other: ClassVar[OtherKind] = OtherKind("container", "hostname", "rootdir")
    has_uuid: ClassVar[bool] = True
    saves_memory: ClassVar[bool] = True
    checks_migration: ClassVar[bool] = True
    converts_disks: ClassVar[bool] = True
    content: ClassVar[str] = "images"
    archive_word: ClassVar[str] = "vm"
    schema: ClassVar[Schema] = QEMU
    volume_option: ClassVar[re.Pattern[str]] = DRIVE
    move_request: ClassVar[tuple[str, str]] = ("move_disk", "disk")

    volumes_in = staticmethod(volumes_in)
    waits_for_stop = staticmethod(waits_for_stop)
    addresses_in = staticmethod(cloud_init_addresses)
    memory_volume = staticmethod(state_volume)
    figures_of = staticmethod(figures_of)
    format_value = staticmethod(format_value)
    parse_nic = staticmethod(parse_option)

    def disks_in(self, config: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        return {slot: drive for slot, drive in drives(config).items() if is_disk(drive)}

    def storages_in(self, config: Mapping[str, str]) -> Collection[str]:
        found = [drive for drive in drives(config).values() if drive.get("file") != "none"]
        return frozenset(storage_of(drive) or "" for drive in found)

    def unsaved_in(self, config: Mapping[str, str]) -> list[str]:
        """Return its disks with C(backup=0), and an EFI disk without OVMF (qemu-server:
        QemuConfig.pm, get_backup_volumes).
        """
        has_ovmf = config.get("bios") == "ovmf"
        return sorted(
            slot
            for slot, disk in self.disks_in(config).items()
            if disk.get("backup") == "0" or (slot == "efidisk0" and not has_ovmf)
        )

    def macs_in(self, config: Mapping[str, str]) -> Mapping[str, str]:
        found = {}
        for key, nic in self.formatted(config, nics_in(config)).items():
            if isinstance(nic, dict) and nic.get("macaddr"):
                found[key] = nic["macaddr"]
        return found

    def devices_in(self, config: Mapping[str, str]) -> frozenset[str]:
        """Return the mapped devices, without which PVE does not start a VM (qemu-server:
        QemuServer/PCI.pm, USB.pm and Virtiofs.pm, find_on_current_node).
        """
        found: set[str] = set()
        for slot in filter(_MAPPED.fullmatch, config):
            option = parse_option(slot, config[slot])
            kind = slot.rstrip("0123456789")
            name = option.get("dirid" if kind == "virtiofs" else "mapping")
            if name:
                found.add(f"{_MAPPED_TYPES[kind]}/{name}")
        return frozenset(found)

    def cards_in(self, config: Mapping[str, str]) -> tuple[Card, ...]:
        return cards_in(config)

    def memory_obstacles_in(self, config: Mapping[str, Any]) -> Collection[str]:
        """Return the options with which PVE does not save the memory (qemu-server:
        QemuMigrate/Helpers.pm, check_non_migratable_resources).
        """
        return tuple(sorted(filter(_MEMORY_OBSTACLE.fullmatch, config)))

    def identity_in(
        self, config: Mapping[str, Any], *, name: str, volumes: Mapping[str, str]
    ) -> Identity:
        """Return the uuid in C(smbios1) and the creation in C(meta).

        PVE gives each VM, and each clone, a new uuid. It also stores version and time of the
        creation; a clone keeps these of its source (qemu-server: API2/Qemu.pm, create_vm and
        clone_vm; QemuServer/MetaInfo.pm).
        """
        uuid = ""
        found = _UUID.search(str(config.get("smbios1", "")))
        if found:
            uuid = found[1].lower()
        creation = str(config.get("meta", ""))
        return Identity(name, uuid, creation, volumes, uuid_option="smbios1")


VM = VmKind()
