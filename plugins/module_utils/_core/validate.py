# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that need no server. Each returns the value in its canonical form or raises ValidationFailed.

Patterns are those of PVE::JSONSchema (pve-common), so that what PVE refuses is refused before any request.
"""

from __future__ import annotations

import ipaddress
import re

from .errors import ValidationFailed

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?"
_DNS_NAME = re.compile(rf"^(?:{_LABEL}\.)*{_LABEL}$")
_TAG = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*$", re.IGNORECASE)
_MAC = re.compile(r"^[0-9A-F]{2}(?::[0-9A-F]{2}){5}$", re.IGNORECASE)
_POOL = re.compile(r"^[A-Za-z0-9\.\-_/]+$")
_STORAGE = re.compile(r"^[a-z][a-z0-9\-_.]*[a-z0-9]$", re.IGNORECASE)
_NODE = re.compile(r"^[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?$")
_BRIDGE = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$")
_VOLUME = re.compile(r"^[a-z][a-z0-9\-_.]*[a-z0-9]:\S+$", re.IGNORECASE)
# The names of key types in OpenSSH (sshd, AUTHORIZED_KEYS FILE FORMAT), and base64 behind one.
_SSH_KEY = re.compile(r"(?:^|\s)(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.\-]+\s+[A-Za-z0-9+/]+=*(?:\s|$)")

VMID_LEAST, VMID_MOST = 100, 999999999


def refused(what: str, value: object, why: str, next_step: str) -> ValidationFailed:
    """Return the ValidationFailed for option `what`, which had `value`."""
    return ValidationFailed(
        attempted=f"{what} was refused", answer=f"{value!r} {why}", next_step=next_step, reason=what
    )


def dns_name(value: str, what: str = "name") -> str:
    """Return a VM name that PVE takes: a DNS name (no underscore, no space)."""
    if not _DNS_NAME.match(value):
        raise refused(what, value, "is no DNS name", "Use letters, digits, hyphens and dots only")
    return value


def vmid(value: object, what: str = "vmid") -> int:
    """Return a VMID as a number from 100 to 999999999."""
    text = str(value)
    if not text.isdigit() or not VMID_LEAST <= int(text) <= VMID_MOST:
        raise refused(what, value, "is no VMID", f"Use a number from {VMID_LEAST} to {VMID_MOST}")
    return int(text)


def tag(value: str, what: str = "tags") -> str:
    """Return a tag in lower case, PVE's default storage form (datacenter option tag-style)."""
    if not _TAG.match(value):
        raise refused(what, value, "is no PVE tag", "Use letters, digits, _ first, then also - + and .")
    return value.lower()


def mac(value: str, what: str = "mac") -> str:
    """Return a unicast MAC address in upper case."""
    if not _MAC.match(value):
        raise refused(what, value, "is no MAC address", "Write it as BC:24:11:00:00:01")
    if int(value[:2], 16) & 1:
        raise refused(what, value, "is a multicast address", "The first octet of a MAC address must be even")
    return value.upper()


def pool(value: str, what: str = "pool") -> str:
    """Return a pool name (nested pools are written a/b)."""
    if not _POOL.match(value):
        raise refused(what, value, "is no pool name", "Use letters, digits, . - _ and / between nested pools")
    return value


def storage(value: str, what: str = "storage") -> str:
    """Return a storage ID."""
    if not _STORAGE.match(value):
        raise refused(what, value, "is no storage ID", "Use the name that Datacenter > Storage shows")
    return value


def node(value: str, what: str = "node") -> str:
    """Return a node name."""
    if not _NODE.match(value):
        raise refused(what, value, "is no node name", "Use the short host name of the node")
    return value


def bridge(value: str, what: str = "bridge") -> str:
    """Return a bridge or VNet name."""
    if not _BRIDGE.match(value):
        raise refused(what, value, "is no bridge name", "Use a name such as vmbr0")
    return value


def volume(value: str, what: str = "volume") -> str:
    """Return a volume ID of the form C(storage:name)."""
    if not _VOLUME.match(value):
        raise refused(what, value, "is no volume ID", "Write it as storage:path, such as local:iso/debian.iso")
    return value


def cidr(value: str, version: int, what: str) -> str:
    """Return an interface address with prefix (C(10.0.0.5/24)); the host part is kept."""
    try:
        if "/" not in value:
            raise ValueError
        found = ipaddress.ip_interface(value)
    except ValueError:
        found = None
    if found is None or found.version != version:
        example = "10.0.0.5/24" if version == 4 else "fd00::5/64"
        raise refused(what, value, f"is no IPv{version} address with prefix", f"Write it as {example}")
    return value


def address(value: str, version: int | None, what: str) -> str:
    """Return an IP address without prefix; `version` 4 or 6, or None for either."""
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        found = None
    if found is None or (version and found.version != version):
        raise refused(
            what, value, f"is no IP{'v' + str(version) if version else ''} address", "Write it without prefix"
        )
    return value


def ssh_key(value: str, what: str) -> str:
    """Return a line that has the form of a public key, options before and a comment behind it included.

    Whether the data are a key is for PVE to say, which has ssh-keygen read each line.
    """
    if not _SSH_KEY.search(value):
        raise refused(what, f"{value[:30]}...", "is no public key", "Give a line of a file such as id_ed25519.pub")
    return value


def count(value: int | None, usual: int, what: str) -> int:
    """Return a number from 1 on, such as seconds to wait, or the usual one where none is given."""
    return usual if value is None else number(value, 1, 1000000, what)


def number(value: int, least: int, most: int, what: str) -> int:
    """Return a number inside `least` to `most`."""
    if not least <= value <= most:
        raise refused(what, value, f"is outside {least} to {most}", "Choose a number inside that range")
    return value
