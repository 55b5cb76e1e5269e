# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a node as a task declares them, in canonical form (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.core import validate
from ...datacenter.general import LOCATION
from .acme import AcmeSettings, read_acme

CONFIG, DNS, HOSTS, TIME = "config", "dns", "hosts", "time"
PARTS = (CONFIG, DNS, HOSTS, TIME)
_NUMBERS = {
    "startall_onboot_delay": ("startall-onboot-delay", (0, 300)),
    "ballooning_target": ("ballooning-target", (0, 100)),
}
_HOST_NAME = re.compile(r"[.\-a-zA-Z0-9]+")  # pve-common: INotify.pm, write_etc_hosts
_IFACE = re.compile(r"[a-z][a-z0-9_]{1,20}(?:[:.]\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class DesiredSettings:
    """The settings of a task. A part that the task does not set is None.

    `config` has texts by PVE's key; an empty text removes the key. `wakeonlan`, `location` and
    `dns` have only the keys that are set. `hosts` are names by address; an address without names
    is removed.
    """

    node: str
    config: Mapping[str, str]
    wakeonlan: Mapping[str, str] | None = None
    dns: Mapping[str, Any] | None = None
    hosts: Mapping[str, tuple[str, ...]] | None = None
    timezone: str | None = None
    acme: AcmeSettings | None = None
    location: Mapping[str, str] | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that must be read, because the task sets them."""
        others = (self.wakeonlan, self.acme, self.location)
        others = (self.wakeonlan, self.acme, self.location)
        is_set = {
            CONFIG: bool(self.config) or any(one is not None for one in others),
            DNS: self.dns is not None,
            HOSTS: self.hosts is not None,
            TIME: self.timezone is not None,
        }
        return tuple(part for part in PARTS if is_set[part])


def read_desired(params: Mapping[str, Any]) -> DesiredSettings:
    """Return the settings of a task. Raises ValidationFailed."""
    config: dict[str, str] = {}
    description, location = params.get("description"), params.get("location")
    if description is not None:
        if len(description) > 65536:
            what = f"{description[:20]}..."
            raise validate.refused("description", what, "is too long", "Use 65536 characters")
        config["description"] = description.strip("\n")
    for option, (key, limits) in _NUMBERS.items():
        if params.get(option) is not None:
            number = validate.number(params[option], *limits, option)
            config[key] = str(number)
    return DesiredSettings(
        node=validate.node(params["node"]),
        config=config,
        wakeonlan=_wakeonlan(params.get("wakeonlan")),
        dns=_dns(params.get("dns")),
        hosts=_hosts(params.get("hosts")),
        timezone=params.get("timezone"),
        acme=read_acme(params.get("acme")),
        location=None if location is None else LOCATION.want(location),
    )


def _wakeonlan(given: Mapping[str, Any] | None) -> dict[str, str] | None:
    if given is None:
        return None
    found = {key: str(value) for key, value in given.items() if value is not None}
    if found.get("mac"):
        found["mac"] = validate.mac(found["mac"], "wakeonlan.mac")
    if found.get("broadcast_address"):
        address = validate.address(found["broadcast_address"], 4, "wakeonlan.broadcast_address")
        found["broadcast_address"] = address
    if found.get("bind_interface") and not _IFACE.fullmatch(found["bind_interface"]):
        what = "wakeonlan.bind_interface"
        raise validate.refused(what, found["bind_interface"], "is not an interface", "Correct it")
    return found


def _dns(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    found: dict[str, Any] = {}
    if given.get("search") is not None:
        found["search"] = validate.dns_name(given["search"], "dns.search")
    if given.get("servers") is not None:
        servers = [validate.address(str(one), None, "dns.servers") for one in given["servers"]]
        if len(servers) > 3:
            step = "Name three of them"
            raise validate.refused("dns.servers", servers, "are more than three", step)
        found["servers"] = list(dict.fromkeys(servers))
    return found


def _hosts(given: list[Mapping[str, Any]] | None) -> dict[str, tuple[str, ...]] | None:
    if given is None:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for number, item in enumerate(given):
        what = f"hosts[{number}]"
        address = str(
            ipaddress.ip_address(validate.address(item["address"], None, f"{what}.address"))
        )
        if address in found:
            raise validate.refused(f"{what}.address", address, "is listed twice", "List it once")
        names = tuple(str(one) for one in item.get("names") or ())
        for name in names:
            if not _HOST_NAME.fullmatch(name):
                step = "Use letters, digits, hyphens and dots"
                raise validate.refused(f"{what}.names", name, "is not a host name", step)
        found[address] = names
    return found
