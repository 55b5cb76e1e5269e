# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of a tenant and their isolation, as a task describes them (data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OWN, SHARED, NONE = "own", "shared", "none"
"""Isolation from other tenants, from everything outside the tenants, or none."""


@dataclass(frozen=True)
class TenantNetwork:
    """A network of a tenant: a VNet and its subnet.

    `tag` is None if it is chosen from `tag_range`. `subnet` is empty if there is none. `settings`
    are the other options of the subnet, named as in module sdn.
    """

    name: str
    vnet: str
    zone: str
    tag: int | None = None
    tag_range: tuple[int, int] | None = None
    subnet: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_wanted: bool = True

    @property
    def path(self) -> str:
        """Its path below /sdn/zones."""
        return f"{self.zone}/{self.vnet}"


@dataclass(frozen=True)
class TenantNetworking:
    """The networks of a tenant that a task describes; `peers` are tags of other tenants."""

    networks: tuple[TenantNetwork, ...]
    isolation: str
    peers: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[TenantNetwork, ...]:
        return tuple(one for one in self.networks if one.is_wanted)

    @property
    def subnets(self) -> tuple[str, ...]:
        return tuple(one.subnet for one in self.wanted if one.subnet)
