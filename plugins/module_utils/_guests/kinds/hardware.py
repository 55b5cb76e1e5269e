# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A desired guest with its hardware, of any kind, of a VM, and of a container. Data only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from .model import Guest

AnyDesired = TypeVar("AnyDesired", bound="DesiredGuest")


# The state of a disk that another guest gets.
MOVED = "moved"


# The value of a sub-key to remove.
REMOVE = None


@dataclass(frozen=True)
class Disk:
    """One disk of a VM, or one volume of a container, as desired.

    `size` is in bytes; `options` are PVE's sub-keys, REMOVE deletes a sub-key.
    """

    slot: str
    state: str = "present"
    size: int | None = None
    storage: str | None = None
    format: str | None = None
    import_from: str | None = None
    replaces: bool = False  # whether the image replaces the volume of an existing disk
    image_size: int = 0  # bytes of the image, if its template shows them
    # an existing volume to attach, such as an ISO, or a path of the node
    volume: str | None = None
    bwlimit: int | None = None  # KiB/s of a move to another storage
    # the guest that gets the disk, and the slot there, if its state is moved
    target_vmid: int | None = None
    target_slot: str = ""
    allocation: str | None = None  # thin or thick, as its storage class asks for
    options: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_cdrom(self) -> bool:
        return self.options.get("media") == "cdrom"

    @property
    def has_content(self) -> bool:
        """Whether the task sets anything that only a disk has."""
        return any((self.size, self.storage, self.import_from, self.format))


@dataclass(frozen=True)
class Snippet:
    """User data as desired, its file, PVE's name of the volume, and the present content."""

    content: str = field(repr=False)
    file: str
    volume: str
    now: str | None = field(default=None, repr=False)  # None without a file

    @property
    def is_written(self) -> bool:
        """Whether the file does not have the content yet."""
        return self.content != self.now


@dataclass(frozen=True)
class GuestHardware:
    """The settings of a guest in PVE's own keys and canonical values.

    Options that are missing here stay unchanged.
    """

    scalars: Mapping[str, str] = field(default_factory=dict)
    property_strings: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    disks: tuple[Disk, ...] = ()
    disks_exact: bool = False
    nics_exact: bool = False
    default_storage: str = "local-lvm"
    snippet: Snippet | None = None  # of VMs only

    @property
    def slots(self) -> set[str]:
        """The slots of the drives that are named."""
        return {disk.slot for disk in self.disks}


@dataclass(frozen=True)
class DesiredGuest:
    """A desired guest with its hardware."""

    guest: Guest
    hardware: GuestHardware = GuestHardware()

    def with_guest(self: AnyDesired, **changes: Any) -> AnyDesired:
        """Return the desired guest with other values of the guest."""
        return replace(self, guest=replace(self.guest, **changes))

    def with_hardware(self: AnyDesired, **changes: Any) -> AnyDesired:
        """Return the desired guest with other values of the hardware."""
        return replace(self, hardware=replace(self.hardware, **changes))

    def without_defaults(self: AnyDesired) -> AnyDesired:
        """Return the desired guest without the defaults of a new guest, because its values come
        from its source.
        """
        return self

    def with_written(
        self: AnyDesired, options: Collection[str], *, is_new: bool = False
    ) -> AnyDesired:
        """Return the desired guest for the rest of its plan, after these options were written."""
        return self

    @property
    def advice(self) -> tuple[str, ...]:
        """Warnings about options that are possible but seldom intended."""
        return ()


@dataclass(frozen=True)
class ContainerHardware(GuestHardware):
    """The settings of a container.

    `environment` are variables by name, None removes one. `password` and `ssh_keys` are used at
    creation only. `allow_privileged` is whether a new container can be privileged.
    """

    environment: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    password: str | None = field(default=None, repr=False)
    ssh_keys: tuple[str, ...] | None = None
    allow_privileged: bool = True


@dataclass(frozen=True)
class DesiredContainer(DesiredGuest):
    """A desired container."""

    hardware: ContainerHardware = ContainerHardware()


# More sockets than this are possible, but probably a mistake.
MAX_SOCKETS = 4


@dataclass(frozen=True)
class VmHardware(GuestHardware):
    """The settings of a VM."""

    ssh_keys: tuple[str, ...] | None = None
    password: str | None = field(default=None, repr=False)
    update_password: str = "on_create"
    default_agent: bool = True  # whether a new VM gets the guest agent without an option
    cloud_init_drive: str | None = None  # slot; "" for any, None without cloud-init
    cloud_init_storage: str | None = None


@dataclass(frozen=True)
class DesiredVm(DesiredGuest):
    """A desired VM."""

    hardware: VmHardware = VmHardware()

    def without_defaults(self) -> DesiredVm:
        # if the option is not set, a copy keeps the agent setting of its source
        return self.with_hardware(default_agent=False)

    def with_written(self, options: Collection[str], *, is_new: bool = False) -> DesiredVm:
        """Return the desired VM without a password that was written.

        A clone inherits the password of its template, which PVE does not show: the desired password
        of a new VM is written once.
        """
        if "cipassword" in options:
            return self.with_hardware(update_password="on_create")
        return self.with_hardware(update_password="always") if is_new else self

    @property
    def advice(self) -> tuple[str, ...]:
        """Warnings about options that are possible but seldom intended."""
        sockets = int(self.hardware.scalars.get("sockets") or 1)
        if sockets <= MAX_SOCKETS:
            return ()
        text = f"guests are seldom made for {sockets} sockets; give it cores instead"
        return (f"{self.guest.label}: {text}",)
