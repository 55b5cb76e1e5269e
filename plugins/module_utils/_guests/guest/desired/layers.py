# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges options of several layers (pure): options for all VMs, options of a class, the VM's own on
top; and replaces an estate's names of networks, storages and classes by their options.

Dictionaries are merged by key, disks and network cards by slot, tags add up; anything else is
replaced. An empty list of disks or cards inherits nothing from the lower layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.common.validation import check_type_dict

from ...._foundation.cluster.storages.allocation import THICK, THIN
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean, hidden_values, parse_options
from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from ...._foundation.spec.fleet import VM_SPECS, GuestSpecs
from .guest import OF_VNET, own_networks, require_class, tag_of, unlisted_networks

# Options of a disk or card that exclude others: an option of the upper layer removes the options
# that it excludes from the lower layer.
_INSTEAD: Mapping[str, tuple[str, ...]] = {
    "bridge": ("network",),
    "network": ("bridge",),
    "storage_class": ("storage",),
    "iso": ("size", "import_from", "storage", "storage_class", "format", "volume"),
    "volume": ("size", "import_from", "storage", "storage_class", "format", "iso"),
    "size": ("iso", "volume"),
    "import_from": ("iso", "volume"),
}
# An address that needs no gateway removes the gateway of the lower layer.
_GATEWAYS = (("ip", "gateway"), ("ip6", "gateway6"))
_NOT_STATIC = ("", "dhcp", "auto")


def lay_over(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer's options, overwritten by the layer above; None there is ignored."""
    merged = dict(base)
    for key, value in more.items():
        if value is not None:
            merged[key] = _joined(key, merged.get(key), value)
    return merged


def _joined(key: str, old: Any, new: Any) -> Any:
    """Return the value of an option that both layers have, or the upper one."""
    if old is None:
        return new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return lay_over(old, new)
    if key == "tags":
        unique = dict.fromkeys([*old, *new])
        return list(unique)
    slots_of = {"disks": disk_slots, "nics": nic_slots}.get(key)
    return new if slots_of is None else _by_slot(slots_of(old), old, slots_of(new), new)


def _by_slot(
    old_slots: Sequence[str],
    old: Sequence[Mapping[str, Any]],
    new_slots: Sequence[str],
    new: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Return the items of both lists, one for each slot; a duplicate slot is refused later."""
    if not new:
        return []
    lower = dict(zip(old_slots, old, strict=True))
    upper = dict(zip(new_slots, new, strict=True))
    is_twice = len(lower) < len(old) or len(upper) < len(new)
    if is_twice:
        return [*old, *new]
    merged: list[Mapping[str, Any]] = []
    for slot in dict.fromkeys((*lower, *upper)):
        item = _item_over(lower.get(slot, {}), upper.get(slot, {}))
        item["name"] = slot
        merged.append(item)
    return merged


def _item_over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a disk or card with the options of the upper layer over the lower ones."""
    given: set[str] = set()
    replaced: set[str] = set()
    for key, value in own.items():
        if value in (None, ""):
            continue
        given.add(key)
        instead = _INSTEAD.get(key, ())
        replaced.update(instead)
    gone = replaced - given
    for address, gateway in _GATEWAYS:
        if own.get(address) in _NOT_STATIC:
            gone.add(gateway)
    kept = dict(base)
    for key in gone:
        kept.pop(key, None)
    return lay_over(kept, own)


def nic_slots(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the name of each card, by its position if it has no name."""
    slots: list[str] = []
    for position, item in enumerate(items):
        name = item.get("name") or f"net{position}"
        slots.append(str(name))
    return slots


def disk_slots(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the drive of each disk; a disk without a name gets the first free drive of its bus."""
    items = list(items)
    names = [item.get("name") for item in items]
    taken = set(map(str, filter(None, names)))
    slots: list[str] = []
    for item, name in zip(items, names, strict=True):
        slot = name
        if not slot:
            bus = item.get("bus") or "scsi"
            slot = free_slot(bus, taken)
        slot = str(slot)
        taken.add(slot)
        slots.append(slot)
    return slots


def free_slot(bus: str, taken: Iterable[str]) -> str:
    """Return the first drive of a bus that is not taken."""
    used = set(taken)
    index = 0
    while f"{bus}{index}" in used:
        index += 1
    return f"{bus}{index}"


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
                f"{option}.{label} was refused: unknown keys {', '.join(wrong)}",
                f"Use {', '.join(sorted(keys))}",
                option,
            )
        found[label] = content
    return found


def unknown_name(kind: str, label: str, known: Mapping[str, Any]) -> ConfigurationError:
    names = ", ".join(sorted(known))
    cause = f"known are {names}{did_you_mean(label, known)}" if known else "none is defined"
    return ConfigurationError(
        f"The {kind} {label!r} could not be resolved: {cause}",
        f"Name one of them or define {label!r}",
        f"unknown {kind}",
    )


def class_options(
    label: str, classes: Mapping[str, Any], specs: GuestSpecs, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a class for one kind of guests, checked and converted as Ansible checks
    and converts the module's options.

    Raises ConfigurationError for a class that does not exist, PermissionDenied for one that is not
    in O(allowed) of the `options`, and ValidationFailed for options that a class cannot have.
    """
    require_class(label, options)
    if label not in classes:
        raise unknown_name("class", label, classes)
    content = classes[label]
    if not isinstance(content, Mapping):
        raise validate.refused(
            f"classes.{label}",
            content,
            "is not a dictionary",
            "Give it options such as cores and memory",
        )
    try:
        return parse_options(specs.of_class, specs.own(content))
    except ValidationFailed as error:
        raise ValidationFailed(
            f"classes.{label} was refused: {error.answer}",
            "A class takes the options of a guest that are not its name, place or state",
            "classes",
        ) from None


def class_secrets(arguments: Mapping[str, Any], specs: GuestSpecs = VM_SPECS) -> set[str]:
    """Return the secrets in all classes of a task's arguments, before anything is checked."""
    found: set[str] = set()
    vms = arguments.get("vms")
    for options in (arguments, *(vms if isinstance(vms, list) else ())):
        for content in _as_dict(_as_dict(options).get("classes")).values():
            found |= hidden_values(specs.of_class, content)
    return found


def _as_dict(value: Any) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = check_type_dict(value)
    except (TypeError, ValueError):
        return {}
    return found
