# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a VM, and the sub-keys of formats that the API schema only names
(qemu-server: QemuServer.pm, CPUConfig.pm, PCI.pm, RNG.pm).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..core.propstring import Format, canonical, parse, render
from .generated.qemu import CPU
from .versions import BY_VERSION, Rules, Version, together

OPTIONS: dict[str, Mapping[str, Any]] = together(BY_VERSION)

_BOOL = {"type": "boolean"}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer"}
_VOLUME = {"type": "string", "format": "pve-volume-id"}
_BASE64 = {"type": "string", "pattern": r"[A-Za-z0-9+\/]+={0,2}"}
_PCI_ID = {"type": "string", "pattern": "0x[0-9a-fA-F]{4}"}
_PCI = r"(?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?"

NAMED: dict[str, dict[str, dict[str, Any]]] = {
    "pve-vm-cpu-conf": {
        **CPU,
        "cputype": {**CPU["cputype"], "format": "pve-cpu-type"},
        "flags": {**CPU["flags"], "format": "pve-cpu-flags"},
        "reported-model": {"type": "string", "format": "pve-cpu-reported"},
    },
    "pve-qm-boot": {"legacy": {"type": "string", "default_key": 1}, "order": _TEXT},
    "pve-qm-ipconfig": {"gw": _TEXT, "gw6": _TEXT, "ip": _TEXT, "ip6": _TEXT},
    "pve-qm-cicustom": {"meta": _VOLUME, "network": _VOLUME, "user": _VOLUME, "vendor": _VOLUME},
    "pve-startup-order": {
        "order": {"type": "integer", "default_key": 1},
        "up": _COUNT,
        "down": _COUNT,
    },
    "pve-qm-watchdog": {
        "model": {
            "type": "string",
            "default": "i6300esb",
            "default_key": 1,
            "enum": ["i6300esb", "ib700"],
        },
        "action": {
            "type": "string",
            "enum": ["reset", "shutdown", "poweroff", "pause", "debug", "none"],
        },
    },
    "pve-qm-rng": {
        "source": {
            "type": "string",
            "default_key": 1,
            "enum": ["/dev/urandom", "/dev/random", "/dev/hwrng"],
        },
        "max_bytes": {"type": "integer", "default": 1024},
        "period": {"type": "integer", "default": 1000},
    },
    "pve-qm-smbios1": {
        "base64": _BOOL,
        "family": _BASE64,
        "manufacturer": _BASE64,
        "product": _BASE64,
        "serial": _BASE64,
        "sku": _BASE64,
        "uuid": {
            "type": "string",
            "pattern": "[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}",
        },
        "version": _BASE64,
    },
    "pve-qm-hostpci": {
        "host": {"type": "string", "default_key": 1, "pattern": f"{_PCI}(?:;{_PCI})*"},
        "device-id": _PCI_ID,
        "driver": {"type": "string", "default": "vfio", "enum": ["vfio", "keep"]},
        "legacy-igd": {"type": "boolean", "default": 0},
        "mapping": {"type": "string", "format": "pve-configid"},
        "mdev": {"type": "string", "pattern": r"[^/\.:]+"},
        "pcie": {"type": "boolean", "default": 0},
        "rombar": {"type": "boolean", "default": 1},
        "romfile": {"type": "string", "pattern": "[^,;]+"},
        "sub-device-id": _PCI_ID,
        "sub-vendor-id": _PCI_ID,
        "vendor-id": _PCI_ID,
        "x-vga": {"type": "boolean", "default": 0},
    },
    "pve-qemu-sev-fmt": {
        "type": {"type": "string", "default_key": 1, "enum": ["std", "es", "snp"]},
        **dict.fromkeys(("allow-smt", "kernel-hashes", "no-debug", "no-key-sharing"), _BOOL),
    },
    "pve-qemu-tdx-fmt": {
        "type": {"type": "string", "default_key": 1, "enum": ["tdx"]},
        "attestation": _BOOL,
        "vsock-cid": _COUNT,
        "vsock-port": _COUNT,
    },
}

# The behaviour of a drive without the sub-key; the schema has no defaults for these (qemu-server:
# Drive.pm).
_DRIVE_DEFAULTS = {
    "backup": 1,
    "cache": "none",
    "discard": "ignore",
    "media": "disk",
    "replicate": 1,
}
_DRIVES = ("ide[n]", "sata[n]", "scsi[n]", "virtio[n]")

_INDEXED = re.compile(r"^([a-z]+?)(\d+)\Z")
# The maximum number of each device of a VM (qemu-server: $MAX_NETS and similar constants; the API
# schema lists the expanded names).
MAX_COUNTS: Mapping[str, int] = {
    "hostpci": 16,
    "ide": 4,
    "ipconfig": 32,
    "net": 32,
    "numa": 8,
    "parallel": 3,
    "sata": 6,
    "scsi": 31,
    "serial": 4,
    "unused": 256,
    "usb": 14,
    "virtio": 16,
    "virtiofs": 10,
}


@dataclass(frozen=True, eq=False)
class Schema:
    """The options of one kind of guests; there is one object for each kind.

    `options` joins all versions of PVE, `maximum` is the maximum number of devices by family.
    """

    by_version: Mapping[Version, Rules]
    options: Rules
    maximum: Mapping[str, int]


QEMU = Schema(BY_VERSION, OPTIONS, MAX_COUNTS)


@lru_cache(maxsize=1024)
def rule_of(
    key: str, schema: Schema = QEMU, version: Version | None = None
) -> Mapping[str, Any] | None:
    """Return the facts about an option (C(cores), C(net0)), or None if it is not in the schema.

    The default joins all versions of PVE.
    """
    rules = schema.options if version is None else schema.by_version[version]
    if key in rules:
        return rules[key]
    found = _INDEXED.match(key)
    if not found:
        return None
    family, index = found.group(1), int(found.group(2))
    if index >= schema.maximum.get(family, 0):
        return None
    return rules.get(f"{family}[n]")


def format_of(key: str, schema: Schema = QEMU, version: Version | None = None) -> Format | None:
    """Return the sub-keys of an option that is a property string, or None for a plain option."""
    rule = rule_of(key, schema, version)
    fmt = rule.get("format") if rule else None
    return NAMED.get(fmt) if isinstance(fmt, str) else fmt


def sub_keys_of(key: str, schema: Schema = QEMU) -> Format:
    """Return the sub-keys of an option; a plain or unknown option has none."""
    return format_of(key, schema) or {}


def parse_option(key: str, text: str, schema: Schema = QEMU) -> dict[str, str]:
    """Return the sub-keys and values of a property string.

    Raises ValidationFailed if it is malformed.
    """
    return dict(_parsed(key, text, schema))


@lru_cache(maxsize=1024, typed=True)
def _parsed(key: str, text: str, schema: Schema) -> Mapping[str, str]:
    """Return the sub-keys of a text; the stages of a task ask for the same texts many times."""
    return parse(text, sub_keys_of(key, schema), what=key)


def render_option(key: str, values: Mapping[str, str | None], schema: Schema = QEMU) -> str:
    """Return the property string of the sub-keys whose value is not None."""
    return render(values, sub_keys_of(key, schema))


def canonical_option(key: str, value: object, schema: Schema = QEMU) -> str:
    """Return the canonical text of a plain option's value."""
    return canonical(value, rule_of(key, schema=schema) or {})


def canonical_sub_key(key: str, name: str, value: object, schema: Schema = QEMU) -> str:
    """Return the canonical text of the value of a sub-key."""
    return canonical(value, sub_keys_of(key, schema).get(name, {}))


def _with_drive_defaults(fmt: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {
        name: {**sub, "default": _DRIVE_DEFAULTS[name]} if name in _DRIVE_DEFAULTS else sub
        for name, sub in fmt.items()
    }


OPTIONS |= {
    key: {**OPTIONS[key], "format": _with_drive_defaults(OPTIONS[key]["format"])} for key in _DRIVES
}
