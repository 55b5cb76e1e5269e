# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of guests and their differences: virtual machines and containers (pure).

Code for both kinds gets the differences from the kind of a guest, which is a field of the guest.
All kinds are in C(_guests/kinds/words.py), the operations on them in C(_guests/guest/registry.py);
lower rooms import neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ..._foundation.cluster.cards import Card
from ..._foundation.cluster.quota import QuotaFigures
from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.schema.formats import Schema
from .addresses import GuestAddress
from .identity import Identity

_NIC = re.compile(r"net(\d+)")


def nics_in(config: Mapping[str, Any]) -> list[str]:
    """Return the keys of the NICs by their numbers: net2 comes before net10."""
    numbers: dict[str, int] = {}
    for key in config:
        found = _NIC.fullmatch(key)
        if found is not None:
            numbers[key] = int(found[1])
    return sorted(numbers, key=numbers.__getitem__)


@dataclass(frozen=True)
class NicMtu:
    """The MTU of a NIC that PVE compares with the MTU of its bridge when the guest starts."""

    nic: str
    bridge: str
    mtu: int


@dataclass(frozen=True)
class OtherKind:
    """The words for guests of the other kind: their noun in messages, the option with their name,
    and the content of storages with their disks.
    """

    noun: str
    name_option: str
    content: str


class Kind(Protocol):
    """A kind of guests.

    `type` is PVE's word for it: the `type` of its rows in C(/cluster/resources), and the segment of
    its paths. `noun` is the word for it in messages.

    `creation_tasks` are the types of the tasks that create its guests, `migration_task` is the type
    of the task that moves a guest. The types of its other tasks begin with `task_prefix`. `tool` is
    its program on a node. `console` is the word for its console in URLs of the user interface.
    `generated_options` are options that PVE sets itself. `name_option` is the option with the name;
    the values of `secret_options` are never shown. `other` has the words for guests of the other
    kind. `has_uuid` is whether its guests have uuids, `saves_memory` whether a snapshot can have
    their memory. `content` is the content of storages with its disks. `template_is_task` is whether
    PVE names the task that converts a guest into a template, `converts_disks` whether an
    interrupted conversion can be completed disk by disk. `archive_word` is the word for it in the
    names of archives on a backup server. `has_rootfs` is whether its guests have a root file
    system. `restores_empty_disks` is whether a restore creates disks without data in the archive,
    which are then empty, or leaves them out. `schema` contains its options; `volume_option` matches
    the options with volumes. `checks_migration` is whether PVE is asked if it can migrate a guest.
    `move_request` is the request that moves a disk, and its option with the slot.
    """

    type: ClassVar[str]
    noun: ClassVar[str]
    creation_tasks: ClassVar[Collection[str]]
    task_prefix: ClassVar[str]
    migration_task: ClassVar[str]
    minimum_mtu: ClassVar[int] = 0
    tool: ClassVar[str]
    console: ClassVar[str]
    generated_options: ClassVar[Collection[str]]
    name_option: ClassVar[str]
    secret_options: ClassVar[Collection[str]]
    other: ClassVar[OtherKind]
    has_uuid: ClassVar[bool] = False
    saves_memory: ClassVar[bool] = False
    content: ClassVar[str]
    template_is_task: ClassVar[bool] = True
    converts_disks: ClassVar[bool] = False
    checks_migration: ClassVar[bool] = False
    archive_word: ClassVar[str]
    has_rootfs: ClassVar[bool] = False
    restores_empty_disks: ClassVar[bool] = False
    schema: ClassVar[Schema]
    volume_option: ClassVar[re.Pattern[str]]
    move_request: ClassVar[tuple[str, str]]

    def path(self, node: str, *below: str | int) -> tuple[str | int, ...]:
        """Return the path of its guests on a node, such as `path("pve1", 100, "config")`."""
        return ("nodes", node, self.type, *below)

    def name_in(self, config: Mapping[str, Any]) -> str:
        """Return the name of a guest with this configuration, an empty text if it has none."""
        return str(config.get(self.name_option) or "")

    def formatted(
        self, config: Mapping[str, str], keys: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Return a configuration, or only `keys` of it, as plain data without secrets; empty values
        are left out.
        """
        chosen = set(config) if keys is None else set(config).intersection(keys)
        formatted: dict[str, Any] = {}
        for key in sorted(chosen.difference(self.generated_options)):
            value = self.format_value(key, config) if config[key] else ""
            if value not in ("", [], {}):
                formatted[key] = value
        return formatted

    def format_value(self, key: str, config: Mapping[str, str]) -> Any:
        """Return the value of an option as plain data without secrets."""

    def parse_nic(self, key: str, text: str) -> Mapping[str, str]:
        """Return the sub-keys of a NIC. Raises ValidationFailed if PVE could not parse it."""
        raise NotImplementedError

    def waits_for_stop(
        self, key: str, old: str | None, new: str | None, live: Mapping[str, str]
    ) -> bool:
        """Return whether a change of `key` on a running guest with the options `live` waits for a
        stop. `old` or `new` is None for an unset option.
        """
        raise NotImplementedError

    def macs_in(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the MAC address of each NIC that has one, by the key of the NIC."""

    def volumes_in(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the volumes of its disks by slot, unused disks included."""

    def disks_in(self, config: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        """Return its disks by slot, without drives for media; the volume is C(file)."""

    def storages_in(self, config: Mapping[str, str]) -> Collection[str]:
        """Return the storages of its disks, of drives for media and of its other volumes; a disk
        that is a path of the node counts as a storage.
        """

    def unsaved_in(self, config: Mapping[str, str]) -> list[str]:
        """Return the slots of its disks whose data its backups leave out, sorted."""

    def bridges_in(self, config: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the bridge of each of its NICs that has one, in the order of the NICs.

        Proxmox VE ignores a NIC that it cannot parse (qemu-server: PVE/QemuServer.pm, parse_net).
        """
        found: dict[str, str] = {}
        for nic in nics_in(config):
            try:
                bridge = self.parse_nic(nic, str(config[nic])).get("bridge")
            except ValidationFailed:
                continue
            if bridge:
                found[nic] = bridge
        return found

    def mtus_in(self, config: Mapping[str, Any]) -> Sequence[NicMtu]:
        """Return the MTUs of its NICs that must fit their bridges. A VM has them for virtio only
        (qemu-server: QemuServer.pm, print_netdevice_full; pve-container: LXC.pm,
        update_lxc_config).
        """
        return [nic for nic in self._virtual_mtus_in(config) if nic.mtu > 1]

    def inherited_mtus_in(self, config: Mapping[str, Any]) -> Sequence[NicMtu]:
        """Return its NICs that get the MTU of their bridge at each start: 1, or none."""
        return [nic for nic in self._virtual_mtus_in(config) if nic.mtu <= 1]

    def _virtual_mtus_in(self, config: Mapping[str, Any]) -> list[NicMtu]:
        found: list[NicMtu] = []
        for nic, bridge in self.bridges_in(config).items():
            option = self.parse_nic(nic, str(config[nic]))
            mtu = str(option.get("mtu") or "0")
            if mtu.isdecimal() and option.get("model", "virtio") == "virtio":
                found.append(NicMtu(nic, bridge, int(mtu)))
        return found

    def devices_in(self, config: Mapping[str, str]) -> frozenset[str]:
        """Return the mapped devices and directories that it needs to start, such as C(pci/gpu)."""
        return frozenset()

    def cards_in(self, config: Mapping[str, str]) -> tuple[Card, ...]:
        """Return the PCI devices that it holds while it runs."""
        return ()

    def arch_in(self, config: Mapping[str, str]) -> str:
        """Return the architecture of a node that it names, empty if it names none."""
        return config.get("arch", "")

    def is_privileged(self, config: Mapping[str, str]) -> bool:
        """Return whether its root user is the root user of the node."""
        return False

    def addresses_in(self, config: Mapping[str, Any]) -> list[GuestAddress]:
        """Return the static addresses of its NICs, in the order of the NICs."""

    def memory_volume(
        self, config: Mapping[str, str], cluster: ClusterState, node: str
    ) -> tuple[str, int]:
        """Return the storage and the bytes of the volume for a snapshot of its memory; an empty
        storage if PVE cannot save the memory of its kind.
        """
        return "", 0

    def memory_obstacles_in(self, config: Mapping[str, Any]) -> Collection[str]:
        """Return the options with which PVE cannot save its memory."""
        return ()

    def identity_in(
        self, config: Mapping[str, Any], *, name: str, volumes: Mapping[str, str]
    ) -> Identity:
        """Return the fingerprint that distinguishes it from a later guest with its VMID."""

    def figures_of(
        self,
        config: Mapping[str, str],
        images: Mapping[str, int] | None = None,
        *,
        template: bool = False,
    ) -> QuotaFigures:
        """Return the figures that a quota counts of a guest with this configuration.

        `images` are the bytes of imported images by slot.
        """
