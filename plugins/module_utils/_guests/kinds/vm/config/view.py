# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of a configuration in results and in diffs, with the same keys everywhere (pure).

Keys are PVE's own. Property strings become dictionaries, tags and keys become lists, a volume
becomes its storage and size. Secrets, and values that PVE generates (volume names, uuids), are not
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.core.quantities import read_size, render_size
from ....._foundation.schema.formats import parse_option
from ....._foundation.schema.values import typed_option, typed_sub_keys
from ...config.view import format_options
from ...marker import split_notes
from .actual import FIRMWARE, VOLUME, is_cloud_init, storage_of

# Not part of a user's configuration: PVE generates them, or they are state.
HIDDEN = frozenset(
    "digest meta smbios1 vmgenid lock snapstate parent runningmachine runningcpu".split()
)
# Sub-keys of a disk that results show in another form, or not at all.
_OF_VOLUME = frozenset(("file", "size", "format", "import-from"))


def format_config(config: Mapping[str, str], keys: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a configuration as plain data, all of it or only `keys`."""
    return format_options(config, keys, HIDDEN, format_value)


def format_value(key: str, text: str) -> Any:
    """Return one option's value as plain data."""
    if key in _FORMATTERS:
        return _FORMATTERS[key](text)
    if VOLUME.match(key):
        return _drive(key, text)
    return typed_option(key, text)


def _drive(key: str, text: str) -> dict[str, Any]:
    """Return a drive with its storage and size, or the volume in a CD drive."""
    values = parse_option(key, text)
    if is_cloud_init(values):
        return {"cloudinit": True, "storage": storage_of(values)}
    formatted: dict[str, Any] = {}
    if values.get("media") == "cdrom":
        formatted["volume"] = values.get("file")
    else:
        formatted.update(_volume(key, values))
    typed = typed_sub_keys(key, values)
    for name in sorted(typed.keys() - _OF_VOLUME):
        formatted[name] = typed[name]
    return formatted


def _volume(key: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the storage and the size of a disk."""
    formatted: dict[str, str] = {}
    storage = storage_of(values)
    if storage:
        formatted["storage"] = storage
    size = read_size(values.get("size"))
    is_firmware = key in FIRMWARE
    if size and not is_firmware:
        formatted["size"] = render_size(size)
    return formatted


def decode_keys(text: str) -> list[str]:
    """Return the lines of PVE's percent-encoded C(sshkeys)."""
    lines = map(str.strip, unquote(text).splitlines())
    return list(filter(None, lines))


def _format_memory(text: str) -> Any:
    values = typed_sub_keys("memory", parse_option("memory", text))
    return values.get("current")


def _format_boot(text: str) -> Any:
    """Return the devices of the boot order, or the old form of an order unchanged."""
    values = parse_option("boot", text)
    return values["order"].split(";") if "order" in values else values.get("legacy")


def _format_tags(text: str) -> list[str]:
    return sorted(parse_tags(text))


def _format_password(_text: str) -> str:
    return "(set)"


def _format_notes(text: str) -> str:
    notes, _marker = split_notes(text)
    return notes


def _format_nameservers(text: str) -> list[str]:
    spaced = text.replace(",", " ")
    return spaced.split()


# The form of options that are more than a text, a number or a property string.
_FORMATTERS: Mapping[str, Callable[[str], Any]] = {
    "boot": _format_boot,
    "memory": _format_memory,
    "tags": _format_tags,
    "sshkeys": decode_keys,
    "cipassword": _format_password,
    "description": _format_notes,
    "nameserver": _format_nameservers,
}


def macs(config: Mapping[str, str]) -> dict[str, str]:
    """Return the MAC address of each NIC that has one."""
    found = {}
    for key, nic in format_config(config).items():
        if key.startswith("net") and isinstance(nic, dict) and nic.get("macaddr"):
            found[key] = nic["macaddr"]
    return found
