# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A desired VM: a guest and its hardware. Data only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..hardware import DesiredGuest, GuestHardware

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
