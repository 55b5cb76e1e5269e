# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a node as PVE has them, and the requests that a task needs (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.core import propstring, validate
from ...._foundation.core.errors import ConfigurationError, FleetError, ValidationFailed
from ...._foundation.resource.plan import Plan, Step
from ...datacenter.general import LOCATION
from ..record import comment_in, without_comment
from .acme import acme_of, with_acme
from .desired import CONFIG, DNS, HOSTS, TIME, DesiredSettings

Names = Mapping[str, tuple[str, ...]]
SettingsReading = Mapping[str, Mapping[str, Any]]
"""The answers of PVE by part, for the parts that were read."""
_STRINGS = ("wakeonlan", "location")  # split into their keys, and removed if they have none
_WAKEONLAN = {"mac": {"default_key": True}, "bind-interface": {}, "broadcast-address": {}}
_SINCE = (9, 2)
_NOT_CHANGED = "The settings of node {} were not changed"


@dataclass(frozen=True)
class NodeSettings:
    """The settings of a node as modules return them; None for a part that was not read."""

    config: Mapping[str, Any] | None = None
    dns: Mapping[str, Any] | None = None
    hosts: Names | None = None
    timezone: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as a task declares them."""
        config = self.config
        found: dict[str, Any] = {
            "description": None,
            "startall_onboot_delay": None,
            "ballooning_target": None,
            "wakeonlan": None,
            "acme": None,
            "location": None,
            "dns": self.dns,
            "hosts": None,
            "timezone": self.timezone,
        }
        if config is not None:
            found["description"] = without_comment(config.get("description", ""))
            found["startall_onboot_delay"] = int(config.get("startall-onboot-delay", 0))
            found["ballooning_target"] = int(config.get("ballooning-target", 80))
            values = config.get("wakeonlan", {})
            found["wakeonlan"] = {key.replace("-", "_"): value for key, value in values.items()}
            found["acme"] = acme_of(config).as_dict()
            found["location"] = dict(config.get("location", {})) or None
        if self.hosts is not None:
            found["hosts"] = [
                {"address": address, "names": list(names)} for address, names in self.hosts.items()
            ]
        return found


def settings_of(actual: SettingsReading) -> NodeSettings:
    """Return PVE's answers in canonical form."""
    config: dict[str, Any] | None = None
    if CONFIG in actual:
        config = {key: str(value) for key, value in actual[CONFIG].items() if key != "digest"}
        config["description"] = config.get("description", "").strip("\n")
        if "location" in config:
            config["location"] = LOCATION.read(config["location"])
        if "wakeonlan" in config:
            text = config["wakeonlan"]
            values = propstring.parse(text, _WAKEONLAN, what="wakeonlan")
            config["wakeonlan"] = {**values, "mac": values.get("mac", "").upper()}
    dns = None
    if DNS in actual:
        known = [actual[DNS].get(key) for key in ("dns1", "dns2", "dns3")]
        servers = [propstring.plain_address(server) for server in known if server]
        dns = {"search": actual[DNS].get("search") or "", "servers": servers}
    hosts = hosts_in(str(actual[HOSTS].get("data") or "")) if HOSTS in actual else None
    zone = str(actual[TIME].get("timezone") or "") if TIME in actual else None
    return NodeSettings(config, dns, hosts, zone)


def hosts_in(text: str) -> dict[str, tuple[str, ...]]:
    """Return the names by address in a hosts file; an address has the names of all its lines."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.split("\n"):
        address, names = _entry(line)
        if address:
            known = found.get(address, ())
            found[address] = (*known, *(name for name in names if name not in known))
    return found


def _entry(line: str) -> tuple[str, list[str]]:
    """Return the address and the names of a line; the address is empty if there is none."""
    words = line.partition("#")[0].split()
    try:
        return str(ipaddress.ip_address(words[0])), words[1:]
    except (IndexError, ValueError):
        return "", []


def with_hosts(text: str, desired: Names) -> str:
    """Return a hosts file with these names; other lines and comments are kept."""
    lines: list[str] = []
    written: set[str] = set()
    for line in text.rstrip("\n").split("\n"):
        address, names = _entry(line)
        if address not in desired:
            lines.append(line)
        elif desired[address] and address not in written:
            written.add(address)
            is_same = hosts_in(text)[address] == desired[address] == tuple(names)
            lines.append(line if is_same else _line(address, desired[address]))
    for address, given in desired.items():
        if given and address not in written:
            lines.append(_line(address, given))
    return "\n".join(lines) + "\n"


def _line(address: str, names: tuple[str, ...]) -> str:
    return " ".join((address, *names))


def plan_settings(desired: DesiredSettings, actual: SettingsReading) -> tuple[Plan, NodeSettings]:
    """Return the plan of a task, and the settings after it. Raises ConfigurationError."""
    before = settings_of(actual)
    steps: list[Step] = []
    config, dns, hosts, zone = before.config, before.dns, before.hosts, before.timezone
    if config is not None:
        config = _config_after(desired, config)
        if config != before.config:
            steps.append(_config_step(desired.node, before.config or {}, config, actual[CONFIG]))
    if dns is not None and desired.dns is not None:
        dns = {**dns, **desired.dns}
        if dns != before.dns:
            steps.append(_dns_step(desired.node, dns))
    if HOSTS in actual and desired.hosts is not None:
        text = str(actual[HOSTS].get("data") or "")
        hosts = hosts_in(with_hosts(text, desired.hosts))
        _require_own_name(desired.node, before.hosts or {}, hosts)
        if hosts != before.hosts:
            steps.append(_hosts_step(desired, text, actual[HOSTS]))
    if desired.timezone is not None and zone != desired.timezone:
        zone = desired.timezone
        summary = f"Change the time zone of node {desired.node} to {zone}"
        path = ("nodes", desired.node, "time")
        steps.append(Step(TIME, summary, "PUT", path, {"timezone": zone}, is_task=False))
    after = NodeSettings(config, dns, hosts, zone)
    old, new = before.as_dict(), after.as_dict()
    changed = [key for key in new if old[key] != new[key]]
    plan = Plan(
        tuple(steps), {key: old[key] for key in changed}, {key: new[key] for key in changed}
    )
    return plan, after


def _config_after(desired: DesiredSettings, before: Mapping[str, Any]) -> dict[str, Any]:
    after = with_acme(before, desired.acme)
    defaults = {"startall-onboot-delay": "0", "ballooning-target": "80", "description": ""}
    for key, value in desired.config.items():
        if key == "description":
            # The notes may contain the record of an unfinished maintenance.
            comment = comment_in(before.get("description", ""))
            value = "\n".join(filter(None, (value, comment)))
        if before.get(key, defaults[key]) != value:
            after[key] = value
    if desired.location is not None:
        after["location"] = location_after(
            desired.node, before.get("location", {}), desired.location
        )
    if desired.wakeonlan is not None:
        after["wakeonlan"] = _wakeonlan_after(desired.node, desired.wakeonlan, before)
    return {key: value for key, value in after.items() if value or key not in _STRINGS}


def _wakeonlan_after(
    node: str, desired: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, str]:
    values = dict(before.get("wakeonlan", {}))
    for option, value in desired.items():
        key = option.replace("_", "-")
        values[key] = value
        if not value:
            del values[key]
    if values and not values.get("mac"):
        answer = "wake-on-LAN needs a MAC address"
        raise _refused(node, answer, "Set wakeonlan.mac, or remove the other keys", "mac")
    return values


def _config_step(
    node: str, before: Mapping[str, Any], after: Mapping[str, Any], read: Mapping[str, Any]
) -> Step:
    data: dict[str, Any] = {}
    removed = [key for key in before if key not in after]
    for key, value in after.items():
        if before.get(key) == value:
            continue
        if key == "description" and not value:
            removed.append(key)
        elif key == "wakeonlan":
            data[key] = propstring.render(value, _WAKEONLAN)
        elif key == "location":
            data[key] = LOCATION.send(value)
        else:
            data[key] = value
    if removed:
        data["delete"] = ",".join(removed)
    names = ", ".join(sorted(key.replace("-", "_") for key in (*data, *removed) if key != "delete"))
    if read.get("digest"):
        data["digest"] = read["digest"]
    summary = f"Change the settings of node {node}: {names}"
    return Step(CONFIG, summary, "PUT", ("nodes", node, "config"), data, is_task=False)


def _dns_step(node: str, dns: Mapping[str, Any]) -> Step:
    if not dns["search"]:
        answer = "PVE requires a search domain with the name servers"
        raise _refused(node, answer, "Set dns.search", "dns.search")
    data = {"search": dns["search"]}
    for number, server in enumerate(dns["servers"], 1):
        data[f"dns{number}"] = server
    summary = f"Change the DNS settings of node {node}"
    return Step(DNS, summary, "PUT", ("nodes", node, "dns"), data, is_task=False)


def _hosts_step(desired: DesiredSettings, text: str, read: Mapping[str, Any]) -> Step:
    data = {"data": with_hosts(text, desired.hosts or {})}
    if read.get("digest"):
        data["digest"] = str(read["digest"])
    addresses = ", ".join(
        address
        for address, names in (desired.hosts or {}).items()
        if (hosts_in(text).get(address, ()) != names)
    )
    summary = f"Change the hosts of node {desired.node}: {addresses}"
    return Step(HOSTS, summary, "POST", ("nodes", desired.node, "hosts"), data, is_task=False)


def _require_own_name(node: str, before: Names, after: Names) -> None:
    """Raise ConfigurationError if the node's own name loses its address: PVE needs it to start."""
    had = [address for address, names in before.items() if _has(names, node)]
    has = [address for address, names in after.items() if _has(names, node)]
    if had and not (set(had) & set(has)):
        answer = f"{had[0]} would lose the name {node}, by which the node finds its own address"
        step = f"Keep the name {node} with {had[0]}"
        raise _refused(node, answer, step, "own name")


def _has(names: tuple[str, ...], node: str) -> bool:
    return node.lower() in (name.lower() for name in names)


def _refused(node: str, answer: str, step: str, reason: str) -> FleetError:
    return ConfigurationError(
        f"Refused to change the settings of node {node}: {answer}", step, reason
    )


def location_after(
    node: str, known: Mapping[str, str], desired: Mapping[str, str]
) -> dict[str, str]:
    """Return the location after a task; an empty text removes a key.

    Raises ValidationFailed for one coordinate without the other, or a name without coordinates.
    """
    found = {key: text for key, text in {**known, **desired}.items() if text}
    for sub_key in LOCATION.sub_keys:
        if sub_key.key in found and sub_key.needs not in found:
            raise ValidationFailed(
                f"{_NOT_CHANGED.format(node)}: location.{sub_key.option} needs "
                f"location.{sub_key.needs}",
                f"Set location.{sub_key.needs} too",
                "location",
            )
    return found


def require_version(node: str, version: tuple[int, int]) -> None:
    """Raise NotSupported for a version without locations of nodes."""
    attempted = _NOT_CHANGED.format(node)
    validate.require_since(_SINCE, version, attempted, "location", "Leave out location")
