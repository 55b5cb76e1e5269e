# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a configuration is shown: in results and in diffs, with the same keys everywhere (pure).

Keys are PVE's own. Property strings become dictionaries, tags and keys lists, a volume its storage and size; what
PVE generates (volume names, uuids) is not shown, and no secret is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from .._cluster.tenant import parse_tags
from .._core.propstring import canonical, parse
from .._core.quantities import read_size, render_size
from .._schema.formats import format_of, rule_of
from .actual import DRIVE, is_cloud_init, storage_of
from .marker import split_notes

# Not part of what a VM is meant to be: PVE makes them, or they are state rather than configuration.
HIDDEN = frozenset("digest meta smbios1 vmgenid lock snapstate parent runningmachine runningcpu".split())


def show(config: Mapping[str, str], keys: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a configuration as plain data, all of it or only `keys`."""
    chosen = set(config) if keys is None else set(keys)
    shown: dict[str, Any] = {}
    for key in sorted(chosen - HIDDEN):
        if key in config and config[key] != "":
            value = show_value(key, config[key])
            if value not in ("", [], {}):
                shown[key] = value
    return shown


def show_value(key: str, text: str) -> Any:
    """Return one option's value as plain data."""
    if key == "tags":
        return sorted(parse_tags(text))
    if key == "sshkeys":
        return decode_keys(text)
    if key == "cipassword":
        return "(set)"
    if key == "description":
        return split_notes(text)[0]
    if key == "nameserver":
        return text.replace(",", " ").split()
    if DRIVE.match(key) or key.startswith("unused"):
        return _drive(key, text)
    fmt = format_of(key)
    if fmt:
        values = {
            name: _typed(canonical(value, fmt.get(name, {})), fmt.get(name, {}))
            for name, value in parse(text, fmt).items()
        }
        if key == "memory":
            return values.get("current")
        if key == "boot":
            return str(values.get("order") or "").split(";") if "order" in values else values.get("legacy")
        return values
    rule = rule_of(key) or {}
    return _typed(canonical(text, rule), rule)


def _typed(text: str, rule: Mapping[str, Any]) -> Any:
    kind = rule.get("type")
    if kind == "boolean" and text in ("0", "1"):
        return text == "1"
    if kind == "integer" and text.lstrip("-").isdigit():
        return int(text)
    return text


def _drive(key: str, text: str) -> dict[str, Any]:
    fmt = format_of(key) or {}
    parts = parse(text, fmt)
    shown: dict[str, Any] = {}
    storage = storage_of(parts)
    if is_cloud_init(parts):
        return {"cloudinit": True, "storage": storage}
    if parts.get("media") == "cdrom":
        shown["volume"] = parts.get("file")
    elif storage:
        shown["storage"] = storage
    size = read_size(parts.get("size"))
    if size and parts.get("media") != "cdrom" and key not in ("efidisk0", "tpmstate0"):  # PVE decides those
        shown["size"] = render_size(size)
    for name, value in sorted(parts.items()):
        if name not in ("file", "size", "format", "import-from"):
            shown[name] = _typed(canonical(value, fmt.get(name, {})), fmt.get(name, {}))
    return shown


def decode_keys(text: str) -> list[str]:
    """Return the lines of PVE's percent-encoded C(sshkeys)."""
    return [line.strip() for line in unquote(text).splitlines() if line.strip()]
