# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a VM as options of module vms, without disks, NICs and cloud-init (pure).

The tables that turn an option into a key of PVE are read backwards. Values that equal PVE's
default, or the default of a new VM, are left out. A value that cannot be parsed needs no special
case: the plan of the VM refuses the option with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....._foundation.core.propstring import canonical, same
from ....._foundation.core.quantities import MIB, render_size, whole_number
from ....._foundation.schema.formats import format_of, rule_of, sub_keys_of
from ....._foundation.schema.values import is_same_option
from ....._foundation.spec.generated.vm_rules import PROPERTY_STRINGS, SCALARS
from ....kinds.hardware import VmHardware
from ....kinds.vm.config.changes import NEW_VM, first_boot_order
from ...export.settings import Config, SettingGroup, parsed, piece, raw, typed

# Keys that PVE itself writes into a configuration; they are not settings.
_OF_PVE = frozenset(
    "digest meta vmgenid lock snapstate parent template vmstate runningmachine runningcpu"
    " running-nets-host-mtu snaptime".split()
)
# Options with a function of their own, here and in the other files of the room.
_OWN = frozenset(
    "name tags description memory balloon cores agent boot bootdisk serial0 sshkeys cipassword"
    " cicustom".split()
)
_KNOWN = _OF_PVE.union(
    _OWN, SCALARS[""].values(), PROPERTY_STRINGS[""].values(), SCALARS["cloud_init"].values()
)
_DEVICE = re.compile(r"^(?:(?:net|ide|sata|scsi|virtio|ipconfig|unused)\d+|efidisk0|tpmstate0)\Z")
_MIN_MEMORY = 64
_INTEGER = {"type": "integer"}
_NOTHING = VmHardware()


def hardware_pieces(config: Config) -> Iterator[SettingGroup]:
    """Yield the pieces of a VM with this configuration."""
    text = config.get("cores", "1")
    options = {"cores": typed(text, _INTEGER)}
    yield piece("cores", text, options)
    yield _memory(config)
    yield from _balloon(config)
    yield from _scalars(config)
    yield from _property_strings(config)
    yield _agent(config)
    yield from _console(config)
    yield from _boot(config)
    yield from _open(config)
    if config.get("vmgenid") == "0":
        yield piece("vmgenid", "0")
    if "bootdisk" in config:
        yield piece("bootdisk", config["bootdisk"], reason="the old form of the boot order")


def is_default(key: str, text: str) -> bool:
    """Return whether PVE behaves the same without the option."""
    if format_of(key) is None:
        rule = rule_of(key) or {}
        value = canonical(text, rule)
        return is_same_option(key, value, None)
    values = parsed(key, text)
    return bool(values) and not differing(key, values)


def differing(key: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the sub-keys of an option that have another value than PVE's default."""
    fmt = sub_keys_of(key)
    return {name: value for name, value in values.items() if not same(name, value, None, fmt)}


def _effective(key: str, config: Config) -> str:
    """Return the effective value: the configuration's, or else PVE's default."""
    rule = rule_of(key) or {}
    default = rule.get("default", "")
    value = config.get(key, default)
    return canonical(value, rule)


def _memory(config: Config) -> SettingGroup:
    text = config.get("memory", "512")
    current = parsed("memory", text).get("current", "")
    size = whole_number(current)
    if size is None:
        return piece("memory", text)
    options = {"memory": _mebibytes(size)}
    if size < _MIN_MEMORY:
        options["memory_floor"] = _mebibytes(size)
    return piece("memory", text, options)


def _balloon(config: Config) -> Iterator[SettingGroup]:
    """Yield the minimum memory of a VM, under PVE's own name if the option would be refused."""
    if "balloon" not in config:
        return
    text = config["balloon"]
    size = whole_number(text)
    if size is None:
        yield piece("balloon", text, raw("balloon", text))
    else:
        options = {"balloon": _mebibytes(size)}
        yield piece("balloon", text, options, raw("balloon", text))


def _mebibytes(size: int) -> Any:
    """Return MiB with their unit; 0 stays a number."""
    return 0 if size == 0 else render_size(size * MIB)


def _scalars(config: Config) -> Iterator[SettingGroup]:
    """Yield the options that are scalars in PVE."""
    for option, key in SCALARS[""].items():
        if not _is_needed(key, config):
            continue
        rule = rule_of(key) or {}
        text = _effective(key, config)
        options = {option: typed(text, rule)}
        yield piece(key, text, options, raw(key, text))


def _is_needed(key: str, config: Config) -> bool:
    """Return whether a new VM with the same options except this one would be different."""
    if key in NEW_VM:
        return _effective(key, config) != NEW_VM[key]
    if key not in config:
        return False
    return not is_default(key, config[key])


def _property_strings(config: Config) -> Iterator[SettingGroup]:
    for option, key in PROPERTY_STRINGS[""].items():
        if not _is_needed(key, config):
            continue
        text = config[key]
        options = {option: text}
        yield piece(key, text, options, raw(key, text))


def _agent(config: Config) -> SettingGroup:
    """Return the guest agent; a new VM has it switched on."""
    text = config.get("agent", "0")
    fmt = sub_keys_of("agent")
    values = {"enabled": "0", **parsed("agent", text)}
    enabled = typed(values["enabled"], fmt["enabled"])
    others = differing("agent", values)
    others.pop("enabled", None)
    if others:
        named = {"enabled": enabled}
        for name, value in others.items():
            named[name] = typed(value, fmt.get(name, {}))
        return piece("agent", text, {"agent": named})
    if enabled is True:
        return piece("agent", text, {})
    return piece("agent", text, {"agent": enabled})


def _console(config: Config) -> Iterator[SettingGroup]:
    if "serial0" not in config:
        return
    text = config["serial0"]
    options: Mapping[str, Any] = {"serial_console": True}
    if text != "socket":
        options = raw("serial0", text)
    yield piece("serial0", text, options)


def _boot(config: Config) -> Iterator[SettingGroup]:
    """Yield the boot order, unless a new VM with the same devices has the same one."""
    if "boot" not in config:
        return
    text = config["boot"]
    if text == first_boot_order(config, _NOTHING):
        return
    order = parsed("boot", text).get("order")
    if order is None:
        yield piece("boot", text, raw("boot", text))
    else:
        options = {"boot": order.split(";")}
        yield piece("boot", text, options, raw("boot", text))


def _open(config: Config) -> Iterator[SettingGroup]:
    """Yield settings for which the module has no option, under PVE's names."""
    for key in sorted(config.keys() - _KNOWN):
        text = config[key]
        if _DEVICE.match(key) or is_default(key, text):
            continue
        if key == "smbios1" and parsed(key, text).keys() <= {"uuid"}:
            continue
        yield piece(key, text, raw(key, text))
