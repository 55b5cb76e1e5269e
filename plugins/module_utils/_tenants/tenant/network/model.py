# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of a tenant and their isolation, as a task describes them (data)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.cluster.tenant import tenant_tag, vnet_id
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import parse_options
from ...._foundation.core.errors import ValidationFailed
from ...._guests.guest.desired.guest import OF_VNET
from ...._guests.guest.desired.layers import NETWORKS

OWN, SHARED, NONE = "own", "shared", "none"
"""Isolation from other tenants, from everything outside the tenants, or none."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,31}")
_RANGE = {
    "start_address": {"type": "str", "required": True},
    "end_address": {"type": "str", "required": True},
}
_SPEC: dict[str, dict[str, Any]] = {
    "zone": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "tag": {"type": "int"},
    "tag_range": {"type": "list", "elements": "int"},
    "subnet": {"type": "str"},
    "gateway": {"type": "str"},
    "snat": {"type": "bool"},
    "dhcp_ranges": {"type": "list", "elements": "dict", "options": _RANGE},
    "dhcp_dns_server": {"type": "str"},
}
OF_SUBNET = ("gateway", "snat", "dhcp_ranges", "dhcp_dns_server")
_LARGEST_TAG = 16777215


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


def read_networking(params: Mapping[str, Any], tag: str, prefix: str) -> TenantNetworking | None:
    """Return the networks of a task, None if it describes none. Raises ValidationFailed."""
    given = params.get("networks") or {}
    # A network with a zone is a VNet of the tenant; others are names of bridges.
    own = {
        name: content
        for name, content in given.items()
        if isinstance(content, Mapping) and "zone" in content
    }
    isolation, peers = params.get("isolation"), params.get("peers") or ()
    if not own:
        described = {"isolation": isolation not in (None, NONE), "peers": bool(list(peers))}
        for name, is_described in described.items():
            if is_described:
                raise _refused(name, "the tenant has no network with a zone", "Set networks too")
        return None
    networks = tuple(_network(str(name), content, tag) for name, content in sorted(own.items()))
    tags_of_peers = tuple(dict.fromkeys(tenant_tag(str(name), prefix) for name in peers))
    if tag in tags_of_peers:
        raise _refused("peers", "it names the tenant itself", "Name other tenants")
    found = TenantNetworking(networks, isolation or OWN, tags_of_peers)
    _require_subnets(found)
    return found


def _refused(what: str, answer: str, step: str) -> ValidationFailed:
    return ValidationFailed(f"{what} was refused: {answer}", step, "networks")


def _network(name: str, content: Mapping[str, Any], tag: str) -> TenantNetwork:
    what = f"networks.{name}"
    if not _NAME.fullmatch(name):
        raise _refused(what, "it has other characters", "Use letters, digits, _ and -")
    if name in NETWORKS or name.startswith("vmbr"):
        raise _refused(what, "the name means a bridge", "Use another name, such as front")
    described = {key: value for key, value in content.items() if key in OF_VNET}
    options = parse_options(_SPEC, described, what)
    return TenantNetwork(
        name=name,
        vnet=vnet_id(tag, name),
        zone=str(options["zone"]),
        tag=options.get("tag"),
        tag_range=_tag_range(options.get("tag_range"), f"{what}.tag_range"),
        subnet=_subnet(options.get("subnet"), f"{what}.subnet"),
        settings={key: options[key] for key in OF_SUBNET if options.get(key) is not None},
        is_wanted=options.get("state") != "absent",
    )


def _tag_range(given: Any, what: str) -> tuple[int, int] | None:
    if given is None:
        return None
    if len(given) != 2 or not 1 <= given[0] <= given[1] <= _LARGEST_TAG:
        raise validate.refused(what, given, "is not a range", "Give the first and the last tag")
    return given[0], given[1]


def _subnet(given: str | None, what: str) -> str:
    if not given:
        return ""
    try:
        return str(ipaddress.ip_network(given))
    except ValueError:
        raise validate.refused(what, given, "is not a network", "Write it as 10.1.0.0/24") from None


def _require_subnets(networking: TenantNetworking) -> None:
    """Raise ValidationFailed for an isolated network without a subnet: rules need addresses."""
    if networking.isolation == NONE:
        return
    for network in networking.wanted:
        if not network.subnet:
            answer = "it has no subnet, by which guests of other tenants are recognized"
            raise _refused(f"networks.{network.name}", answer, "Set subnet, or isolation: none")
