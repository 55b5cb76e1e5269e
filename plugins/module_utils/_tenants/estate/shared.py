# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings shared by VMs, written once: networks, storage classes, defaults, tenants, classes
(pure).

Each step takes a setting out of a group of VMs only if every VM of the group has it in exactly the
same form, so the layers of module vms result in the same options again. Names are derived from the
content, so they do not change from run to run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ..._foundation.core.quantities import MIB, parse_size
from ..._guests.guest.desired.layers import NOT_STATIC
from ..._guests.guest.export.settings import Options

Values = dict[str, Any]

# Options of a NIC that its network can have, and the options that identify the network.
_OF_NETWORK = ("firewall", "link_down", "model", "mtu", "queues", "rate")
_NETWORK_KEY = ("bridge", "vlan", "trunks")
_GATEWAYS = (("gateway", "ip"), ("gateway6", "ip6"))
_OF_STORAGE = ("backup", "cache", "discard", "iothread", "replicate", "ssd")
# Options that belong to the VM itself, and the options of its size.
_OWN = frozenset(
    "name vmid tenant adopt blank state node pool tags description nics memory_floor".split()
)
_SIZE = frozenset("cores sockets memory disks".split())
_MINIMUM = 2


def take_networks(vms: Sequence[Values]) -> dict[str, Values]:
    """Return networks that several NICs share, and let the NICs name them."""
    networks: dict[str, Values] = {}
    for name, nics in _groups(_devices(vms, "nics"), _network_name).items():
        network = _common(nics, (*_NETWORK_KEY, *_OF_NETWORK))
        for gateway, address in _GATEWAYS:  # only NICs with a static address use a gateway
            static = [nic for nic in nics if nic.get(address) not in NOT_STATIC]
            if static:
                network.update(_common(static, (gateway,)))
        if len(network) > 1:
            networks[name] = network
            _replace(nics, network, {"network": name})
    return networks


def take_storage_classes(vms: Sequence[Values]) -> dict[str, Values]:
    """Return storages with options that several disks share, and let the disks name them."""
    classes: dict[str, Values] = {}
    for name, disks in _groups(_devices(vms, "disks"), _storage_name).items():
        content = _common(disks, ("storage", *_OF_STORAGE))
        classes[name] = content
        _replace(disks, content, {"storage_class": name})
    return classes


def take_defaults(vms: Sequence[Values], of_both: Collection[str] = ()) -> Values:
    """Return the settings that all VMs have in common, except their size, and take them out.

    `of_both` are options that are not shared, because they would apply to containers too.
    """
    if len(vms) < _MINIMUM:
        return {}
    return _taken(vms, ((_OWN | _SIZE) - {"pool"}) | frozenset(of_both))


def take_tenants(vms: Sequence[Values], of_both: Collection[str] = ()) -> dict[str, Values]:
    """Return the settings of each tenant: pool and common settings, without options `of_both`."""
    tenants: dict[str, Values] = {}
    shared = () if "pool" in of_both else ("pool",)
    for name, members in _groups(vms, _tenant_name, minimum=1).items():
        settings = _common(members, shared)
        _take_out(members, settings)
        defaults: Values = {}
        if len(members) >= _MINIMUM:
            defaults = _taken(members, (_OWN | _SIZE).union(of_both))
        if defaults:
            settings["defaults"] = defaults
        tenants[name] = settings
    return tenants


def take_classes(vms: Sequence[Values]) -> dict[str, Values]:
    """Return a class for each size that several VMs have, with their common options."""
    classes: dict[str, Values] = {}
    groups = _groups(vms, _class_name)
    for name in sorted(groups, key=lambda one: _by_size(groups[one][0])):
        members = groups[name]
        disks = _common_disks(members)
        content = _taken(members, _OWN | {"disks"})
        if disks:
            content["disks"] = disks
        classes[name] = content
        for vm in members:
            vm["class"] = name
    return classes


def _devices(vms: Sequence[Values], kind: str) -> Iterator[Values]:
    for vm in vms:
        yield from vm.get(kind, ())


def _groups(
    items: Iterable[Values], name_of: Callable[[Values], str], minimum: int = _MINIMUM
) -> dict[str, list[Values]]:
    """Return the items by their name, sorted, without unnamed items and small groups."""
    groups: dict[str, list[Values]] = defaultdict(list)
    for item in items:
        name = name_of(item)
        groups[name].append(item)
    groups.pop("", None)
    return {name: groups[name] for name in sorted(groups) if len(groups[name]) >= minimum}


def _tenant_name(vm: Values) -> str:
    return str(vm.get("tenant", ""))


def _network_name(nic: Values) -> str:
    """Return the name of a network: its bridge, with VLAN and trunks if it has them."""
    if "bridge" not in nic:
        return ""
    parts = [str(nic["bridge"])]
    if "vlan" in nic:
        parts.append(str(nic["vlan"]))
    if "trunks" in nic:
        parts.append("trunks")
        parts += nic["trunks"]
    return ".".join(parts)


def _storage_name(disk: Values) -> str:
    """Return the name of a storage class: its storage and its options, at least one."""
    parts = []
    for key in _OF_STORAGE:
        if isinstance(disk.get(key), bool):
            parts.append(key if disk[key] else f"no{key}")
        elif key in disk:
            parts.append(str(disk[key]))
    if "storage" not in disk or not parts:
        return ""
    return "-".join([disk["storage"], *parts])


def _class_name(vm: Values) -> str:
    """Return the name of a size, such as 2c-4g; a template has none."""
    if "memory" not in vm or vm.get("state") == "template":
        return ""
    cores = f"{vm.get('cores', 1)}c"
    if "sockets" in vm:
        cores = f"{vm['sockets']}x{cores}"
    memory = str(vm["memory"]).lower()
    return f"{cores}-{memory}"


def _by_size(vm: Values) -> tuple[int, int, str]:
    """Return the sort key of classes: CPUs, memory, name."""
    cores = int(vm.get("cores", 1))
    sockets = int(vm.get("sockets", 1))
    memory = parse_size(vm["memory"], bare=MIB, what="memory")
    return cores * sockets, memory, _class_name(vm)


def _canonical(value: Any) -> str:
    """Return a text that is the same for equal values of the same type: 1 differs from true."""
    return json.dumps(value, sort_keys=True)


def _common(items: Sequence[Options], keys: Iterable[str]) -> Values:
    """Return the options with the same value in all items; dictionaries are compared as a whole."""
    return {key: items[0][key] for key in keys if _is_common(items, key)}


def _is_common(items: Sequence[Options], key: str) -> bool:
    if key not in items[0]:
        return False
    wanted = _canonical(items[0][key])
    return all(_canonical(item.get(key)) == wanted for item in items)


def _replace(items: Iterable[Values], shared: Options, named: Options) -> None:
    """Replace the shared settings of each item by a reference, placed after the item's name."""
    for item in items:
        rest = dict(item)
        for key in shared.keys() & rest.keys():
            del rest[key]
        name = rest.pop("name")
        item.clear()
        item["name"] = name
        item.update(named)
        item.update(rest)


def _common_disks(members: Sequence[Values]) -> list[Values]:
    """Return the disks that all members have in exactly the same form, and take them out."""
    shared = {_canonical(disk): dict(disk) for disk in members[0].get("disks", ())}
    for vm in members:
        own = set(map(_canonical, vm.get("disks", ())))
        for text in shared.keys() - own:
            del shared[text]
    for vm in members:
        rest = [disk for disk in vm.pop("disks", ()) if _canonical(disk) not in shared]
        if rest:
            vm["disks"] = rest
    return list(shared.values())


def _taken(members: Sequence[Values], kept: Iterable[str]) -> Values:
    """Take out and return the settings that all members share, except some options. Dictionaries
    are compared by key.
    """
    shared: Values = {}
    for key in sorted(members[0].keys() - set(kept)):
        nested = [vm.get(key) for vm in members]
        if _is_common(members, key):
            shared[key] = members[0][key]
        elif all(isinstance(one, dict) for one in nested):
            inner = _common(nested, nested[0] or ())  # type: ignore[arg-type]
            if inner:
                shared[key] = inner
    _take_out(members, shared)
    return shared


def _take_out(members: Sequence[Values], shared: Options) -> None:
    """Remove the shared settings from each member, from its dictionaries key by key."""
    for vm in members:
        for key, value in shared.items():
            own = vm.pop(key)
            if not isinstance(value, dict):
                continue
            rest = dict(own)
            for name in value:
                del rest[name]
            if rest:
                vm[key] = rest
