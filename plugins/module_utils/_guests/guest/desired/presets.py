# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replaces an estate's names of networks and storages by plain options (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._foundation.cluster.storages.allocation import THICK, THIN
from ...._foundation.core import validate
from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from .isolation import OF_VNET, own_networks, tag_of, unlisted_networks

# The meaning of each name that is missing from the user's own map; names of bridges (vmbr*) and
# VNets are used unchanged.
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "lan": {"bridge": "vmbr0"},
    "default": {"bridge": "vmbr0"},
    "dmz": {"bridge": "vmbr1"},
    "mgmt": {"bridge": "vmbr2"},
    "management": {"bridge": "vmbr2"},
}

_NETWORK_KEYS = frozenset(
    "bridge vlan trunks firewall mtu rate queues model gateway gateway6 link_down".split()
)
NOT_STATIC = (None, "", "dhcp", "auto")
_STORAGE_KEYS = frozenset("storage type format cache ssd discard iothread backup replicate".split())


def name_presets(options: dict[str, Any], volumes: str) -> None:
    """Replace the names of networks and of storage classes in `options` by their options.

    `volumes` is the option with the list of disks; a container has a root file system beside it.
    The options of a NIC or disk win over its network or storage class. Raises ConfigurationError
    for a name that no map contains, ValidationFailed for a map of the wrong shape.
    """
    keys = _NETWORK_KEYS | OF_VNET
    networks = _maps(options.get("networks"), "networks", keys, shorthand="bridge")
    storages = _maps(
        options.get("storage_classes"), "storage_classes", _STORAGE_KEYS, shorthand="storage"
    )
    tag = tag_of(options)
    named = own_networks(networks, tag)
    if options.get("nics") is not None:
        known = {**unlisted_networks(options["nics"], networks, tag), **NETWORKS, **named}
        options["nics"] = [_nic(item, known) for item in options["nics"]]
    if options.get(volumes) is not None:
        options[volumes] = [with_storage_class(item, storages) for item in options[volumes]]
    if options.get("rootfs") is not None:
        options["rootfs"] = with_storage_class(options["rootfs"], storages)


def _nic(item: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    label = item.get("network")
    if not label:
        return dict(item)
    if item.get("bridge"):
        raise validate.refused(
            "nics", label, "and a bridge are both given", "Name the network or the bridge"
        )
    if label not in known:
        if label.startswith("vmbr"):
            return {**item, "bridge": label}
        raise unknown_name("network", label, known)
    return _over(known[label], item, ip=item.get("ip"), ip6=item.get("ip6"))


def with_storage_class(
    item: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    label = item.get("storage_class")
    if not label:
        return dict(item)
    if label not in known:
        raise unknown_name("storage class", label, known)
    found = dict(known[label])
    kind = found.get("type")
    if kind not in (None, THIN, THICK):
        raise validate.refused(
            f"storage_classes.{label}.type", kind, "is not a type", f"Use {THIN} or {THICK}"
        )
    if kind == THIN:  # otherwise it would grow to the size of a thick disk over time
        found.setdefault("discard", True)
    return _over(found, item)


def _over(
    base: Mapping[str, Any], own: Mapping[str, Any], **addresses: str | None
) -> dict[str, Any]:
    """Lay an item's options over those of its name; a gateway needs a static address."""
    given = {key: value for key, value in own.items() if value is not None}
    merged = {**own, **base, **given}
    for gateway, address in (("gateway", "ip"), ("gateway6", "ip6")):
        if gateway not in base or given.get(gateway):
            continue
        if addresses.get(address) in NOT_STATIC:
            merged[gateway] = None
    return merged


def _maps(
    value: Any, option: str, keys: frozenset[str], *, shorthand: str | None
) -> dict[str, Mapping[str, Any]]:
    """Return a map of names; a plain string stands for `shorthand` (a network for its bridge)."""
    found: dict[str, Mapping[str, Any]] = {}
    for label, content in (value or {}).items():
        if isinstance(content, str):
            content = {shorthand: content}
        if not isinstance(content, Mapping):
            raise validate.refused(
                f"{option}.{label}",
                content,
                "is not a dictionary",
                f"Give it keys such as {sorted(keys)[0]}",
            )
        wrong = sorted(set(content) - keys)
        if wrong:
            raise ValidationFailed(
                attempted=f"{option}.{label} was refused",
                answer=f"unknown keys {', '.join(wrong)}",
                next_step=f"Use {', '.join(sorted(keys))}",
                reason=option,
            )
        found[label] = content
    return found


def unknown_name(kind: str, label: str, known: Mapping[str, Any]) -> ConfigurationError:
    return ConfigurationError(
        attempted=f"The {kind} {label!r} could not be resolved",
        answer=f"known are {', '.join(sorted(known))}" if known else "none is defined",
        next_step=f"Name one of them or define {label!r}",
        reason=f"unknown {kind}",
    )
