# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A desired container: a guest and its hardware. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..hardware import DesiredGuest, GuestHardware


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
