# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Containers in an export: their settings as options, planned as module container does it (pure).

The tables that turn an option into a key of PVE are read backwards, as for VMs. Options that are
missing from the configuration are left out: a run does not change them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.core.quantities import MIB, read_size, render_size, whole_number
from ...._foundation.resource.plan import Step
from ...._foundation.schema.formats import rule_of
from ...._foundation.schema.lxc import LXC
from ...._foundation.spec.container import container_spec
from ...._foundation.spec.generated.container_rules import PROPERTY_STRINGS, SCALARS
from ...kinds.container.config.actual import (
    is_privileged,
    is_volume,
    mounts,
    read_environment,
    storage_of,
)
from ...kinds.model import Actual
from ..export.settings import (
    ClusterContext,
    Config,
    Exporter,
    InexpressibleSetting,
    SettingAlternative,
    SettingGroup,
    item_of,
    parsed,
    piece,
    raw,
    typed,
)
from ..plan.origin import require_origin
from .desired.parse import read_options
from .plan.planner import CONTAINER_PLANNER

# Keys that PVE itself writes into a configuration; they are not settings.
_OF_PVE = frozenset("digest lock parent snapstate snaptime template".split())
# Keys with a function of their own.
_OWN = frozenset("hostname tags description memory swap rootfs features env unprivileged".split())
_KNOWN = _OF_PVE.union(_OWN, SCALARS[""].values(), PROPERTY_STRINGS[""].values())
_NUMBERED = re.compile(r"^(net|mp|dev|unused)(\d+)\Z")
_SEPARATORS = re.compile(r"[\s,;]+")
# Options that are lists, and PVE's separators.
_LISTS = frozenset(("nameservers", "trunks", "mount_options", "mount"))
_ADDRESSES = {"ip": "ip", "gw": "gateway", "ip6": "ip6", "gw6": "gateway6"}
# Every NIC of a container has this type.
_TYPE_OF_NIC = "veth"
_SECRET = "environment"


def _by_number(key: str) -> tuple[str, int]:
    match = _NUMBERED.match(key)
    return (key, 0) if match is None else (match[1], int(match[2]))


def _mebibytes(key: str, config: Config) -> Iterator[SettingGroup]:
    if key not in config:
        return
    size = whole_number(config[key])
    if size is None:
        yield piece(key, config[key])
        return
    value: Any = render_size(size * MIB) if size else 0
    yield piece(key, config[key], {key: value})


def _scalars(config: Config) -> Iterator[SettingGroup]:
    for option, key in SCALARS[""].items():
        if key not in config or key in _OWN:
            continue
        value = _value(option, config[key], rule_of(key, schema=LXC) or {})
        yield piece(key, config[key], {option: value}, raw(key, config[key], LXC))


def _value(option: str, text: str, rule: Mapping[str, Any]) -> Any:
    if option in _LISTS:
        return [word for word in _SEPARATORS.split(text) if word]
    return typed(text, rule)


def _named(place: str, key: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return sub-keys as options of an item; sub-keys without an option are under C(options)."""
    item = item_of(SCALARS[place], key, values, LXC)
    for option in _LISTS & item.keys():
        item[option] = _value(option, values[SCALARS[place][option]], {})
    return item


def _features(key: str, text: str, values: Mapping[str, str]) -> SettingGroup:
    return piece(key, text, {"features": _named("features", key, values)})


def _node_device(key: str, text: str, values: Mapping[str, str]) -> SettingGroup:
    return piece(key, text, {"devices": [{"name": key, **_named("devices", key, values)}]})


def _nic(key: str, text: str, values: Mapping[str, str]) -> SettingGroup:
    rest = dict(values)
    if rest.get("type") == _TYPE_OF_NIC:
        del rest["type"]
    addresses = {}
    for sub_key, option in _ADDRESSES.items():
        if sub_key in rest:
            addresses[option] = rest.pop(sub_key)
    item = {"name": key, **_named("nics", key, rest), **addresses}
    return piece(key, text, {"nics": [item]})


def _root(key: str, text: str, values: Mapping[str, str]) -> SettingGroup:
    item, lost = _volume("rootfs", key, text, values)
    way = SettingAlternative({"rootfs": item}, lost)
    return SettingGroup((way,), (InexpressibleSetting(key, text),))


def _mount(key: str, text: str, values: Mapping[str, str]) -> SettingGroup:
    item, lost = _volume("mounts", key, text, values)
    way = SettingAlternative({"mounts": [{"name": key, **item}]}, lost)
    return SettingGroup((way,), (InexpressibleSetting(key, text),))


def _volume(
    place: str, key: str, text: str, values: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[InexpressibleSetting, ...]]:
    """Return a volume as an item, and the part that options cannot express."""
    mount = mounts({key: text})[key]
    volume = mount.get("volume", "")
    rest = {name: value for name, value in values.items() if name not in ("volume", "size")}
    item: dict[str, Any] = {}
    lost: tuple[InexpressibleSetting, ...] = ()
    size = read_size(mount.get("size")) or 0
    if not is_volume(volume):
        if place == "mounts":
            item["volume"] = volume
        else:
            lost = (InexpressibleSetting(key, volume, "it is not a volume of a storage"),)
    else:
        item["storage"] = storage_of(volume)
        if size:
            item["size"] = render_size(size)
    return {**item, **_named(place, key, rest)}, lost


_DEVICES: Mapping[str, Callable[[str, str, Mapping[str, str]], SettingGroup]] = {
    "rootfs": _root,
    "mp": _mount,
    "net": _nic,
    "dev": _node_device,
    "features": _features,
}


def _open(config: Config) -> Iterator[SettingGroup]:
    """Yield the settings that have no option of their own."""
    for key in sorted(config.keys() - _KNOWN):
        if _NUMBERED.match(key):
            continue
        if rule_of(key, schema=LXC) is None:
            yield piece(key, config[key])
        else:
            yield piece(key, config[key], raw(key, config[key], LXC))


class ContainerExporter(Exporter):
    """How containers become items of module vms."""

    spec = container_spec()

    def settings(self, config: Config) -> Iterator[SettingGroup]:
        if is_privileged(config):
            yield piece("unprivileged", "0", {"unprivileged": False})
        for key in ("memory", "swap"):
            yield from _mebibytes(key, config)
        yield from _scalars(config)
        for option, key in PROPERTY_STRINGS[""].items():
            if key in config:
                yield piece(key, config[key], {option: config[key]})
        for key in sorted(config, key=_by_number):
            text = config[key]
            family = _by_number(key)[0]
            if family == "unused":
                yield piece(key, text, reason="a volume that no mount point uses")
            elif family in _DEVICES:
                values = parsed(key, text, LXC)
                if values:
                    yield _DEVICES[family](key, text, values)
                else:
                    yield piece(key, text)
        yield from _open(config)

    def secrets(self, config: Config) -> tuple[str, ...]:
        return (_SECRET,) if read_environment(config.get("env", "")) else ()

    def figures(self, actual: Actual) -> QuotaFigures:
        return actual.kind.figures_of(actual.target, template=actual.template)

    def steps(
        self, given: Mapping[str, Any], actual: Actual, around: ClusterContext
    ) -> tuple[Step, ...] | str:
        desired = read_options(given).desired
        require_origin(desired.guest, actual, around.cluster)
        return CONTAINER_PLANNER.plan_update(desired, actual).steps


CONTAINER_EXPORTER = ContainerExporter()
