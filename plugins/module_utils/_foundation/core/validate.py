# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that need no server.

Each returns the value in its canonical form or raises ValidationFailed.

The patterns come from PVE::JSONSchema (pve-common), so a value that PVE would refuse is refused
before any request.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Any

from .errors import NotSupported, ValidationFailed
from .formatting import formatted
from .quantities import whole_number

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?"
_DNS_NAME = re.compile(rf"^(?:{_LABEL}\.)*{_LABEL}\Z")
_TAG = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*\Z", re.IGNORECASE)
_MAC = re.compile(r"^[0-9A-F]{2}(?::[0-9A-F]{2}){5}\Z", re.IGNORECASE)
# pve-access-control: verify_poolname
_POOL = re.compile(r"^[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}\Z")
# pve-access-control: Auth/Plugin.pm, verify_username; AccessControl.pm, token_subid_regex
_SIMPLE_NAME = re.compile(r"^[A-Za-z0-9.\-_]+\Z")
_USER = re.compile(r"^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+\Z")
_TOKEN = re.compile(r"^[A-Za-z][A-Za-z0-9.\-_]+\Z")
_REALM = re.compile(r"^[A-Za-z][A-Za-z0-9.\-_]+\Z")
MIN_USER, MAX_USER = 3, 64
MAX_REALM = 32
_STORAGE = re.compile(r"^[a-z][a-z0-9\-_.]*[a-z0-9]\Z", re.IGNORECASE)
_CONFIG_ID = re.compile(r"^[a-z][a-z0-9_\-]+\Z", re.IGNORECASE)
_LONGEST_CONFIG_ID = 40
_NODE = re.compile(r"^[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?\Z")
_BRIDGE = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9_.\-]*\Z")
_VOLUME = re.compile(r"^[a-z][a-z0-9\-_.]*[a-z0-9]:\S+\Z", re.IGNORECASE)
# The names of key types in OpenSSH (sshd, AUTHORIZED_KEYS FILE FORMAT), each followed by base64.
_SSH_KEY = re.compile(r"(?:^|\s)(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.\-]+\s+[A-Za-z0-9+/]+=*(?:\s|$)")

# proxmox-time: src/calendar_event.rs and src/date_time_value.rs; a schedule in words, or weekdays,
# a date and a time, whose values are numbers, ranges and repetitions below a limit.
_WORDS_FOR_SCHEDULES = frozenset(
    ("minutely", "hourly", "daily", "weekly", "monthly", "yearly", "annually", "quarterly")
    + ("semiannually", "semi-annually")
)
_DAY = (
    "(?i:mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?"
    "|sun(?:day)?)"
)
_VALUE = r"\d+(?:\.\.\d+)?(?:/\d+)?"
_PART = rf"(?:\*(?:/\d+)?|{_VALUE}(?:,{_VALUE})*)"
_SCHEDULE = re.compile(
    rf"(?:{_DAY}(?:(?:,|\.\.){_DAY})*)?\s*(?:(?:{_PART}-)?(?P<month>{_PART})-(?P<day>{_PART}))?\s*"
    rf"(?:(?:(?P<hour>{_PART}):)?(?P<minute>{_PART})(?::(?P<second>{_PART}))?)?(?:\s*UTC)?"
)
_LIMITS_OF_SCHEDULES = {"month": 13, "day": 32, "hour": 24, "minute": 60, "second": 60}

# The longest prefix of an address by version of IP.
_LONGEST = {4: 32, 6: 128}

# The maximum lengths of a DNS name and of a label between its dots (RFC 1035, 2.3.4; 255 octets on
# the wire are 253 characters).
MAX_NAME = 253
MAX_LABEL = 63
MIN_VMID = 100
MAX_VMID = 999999999


def require_since(
    since: tuple[int, ...], version: tuple[int, ...], attempted: str, what: str, next_step: str
) -> None:
    """Raise NotSupported for a version of Proxmox VE that does not have `what` yet."""
    if version < since:
        first, own = (".".join(map(str, numbers)) for numbers in (since, version))
        text = f"{attempted}: {what} came with Proxmox VE {first}, and this is {own}"
        raise NotSupported(text, next_step, "version")


def refused(what: str, value: object, why: str, next_step: str) -> ValidationFailed:
    """Return the ValidationFailed for option `what`, which had `value`."""
    return ValidationFailed(f"{what} was refused: {formatted(value)} {why}", next_step, what)


def _like(
    pattern: re.Pattern[str], default: str, why: str, next_step: str, longest: int = 10_000
) -> Callable[..., str]:
    """Return the check of a text that must match; `default` is the name of its option."""

    def check(value: str, what: str = default) -> str:
        text = str(value)
        if not pattern.fullmatch(text) or len(text) > longest:
            raise refused(what, text, why, next_step)
        return text

    return check


def dns_name(value: str, what: str = "name") -> str:
    """Return a VM name that PVE accepts: a DNS name (no underscore, no space) within the limits of
    DNS.

    PVE itself does not limit the length (JSONSchema.pm, pve_verify_dns_name), but a guest cannot
    use a longer name.
    """
    if not _DNS_NAME.fullmatch(value):
        raise refused(
            what, value, "is not a DNS name", "Use letters, digits, hyphens and dots only"
        )
    longest = max(len(label) for label in value.split("."))
    if longest > MAX_LABEL or len(value) > MAX_NAME:
        answer = f"is too long: {len(value)} characters, and {longest} in one part"
        raise refused(
            what,
            value[:80],
            answer,
            f"Use {MAX_NAME} characters at most, {MAX_LABEL} between two dots",
        )
    return value


def vmid(value: object, what: str = "vmid") -> int:
    """Return a VMID as a number from 100 to 999999999."""
    vmid_value = whole_number(str(value))
    if vmid_value is None or not MIN_VMID <= vmid_value <= MAX_VMID:
        raise refused(what, value, "is not a VMID", f"Use a number from {MIN_VMID} to {MAX_VMID}")
    return vmid_value


def tag(value: str, what: str = "tags") -> str:
    """Return a tag in lower case, PVE's default storage form (datacenter option tag-style)."""
    if not _TAG.fullmatch(value):
        raise refused(
            what, value, "is not a PVE tag", "Use letters, digits and _, then also - + and dots"
        )
    return value.lower()


def mac(value: str, what: str = "mac") -> str:
    """Return a unicast MAC address in upper case."""
    if not _MAC.fullmatch(value):
        raise refused(what, value, "is not a MAC address", "Write it as BC:24:11:00:00:01")
    if int(value[:2], 16) & 1:
        raise refused(
            what, value, "is a multicast address", "The first octet of a MAC address must be even"
        )
    return value.upper()


_WITHOUT_SIGNS = "Use letters, digits, . - and _ only"
pool = _like(
    _POOL,
    "pool",
    "is not a pool name",
    "Use letters, digits, . - and _, with / between nested pools, of which there are three levels at"
    " most",
)
group = _like(_SIMPLE_NAME, "group", "is not the name of a group", _WITHOUT_SIGNS)
role = _like(_SIMPLE_NAME, "role", "is not the name of a role", _WITHOUT_SIGNS)
realm = _like(
    _REALM,
    "realm",
    "is not the name of a realm",
    f"Use a letter first, then letters, digits, . - and _, {MAX_REALM} characters at most",
    MAX_REALM,
)
token_name = _like(
    _TOKEN,
    "name",
    "is not the name of a token",
    "Use two characters at least, a letter first, then also digits, . - and _, without the user",
)
# pve-common: PVE/JSONSchema.pm, format pve-configid and option pve-config-id.
config_id = _like(
    _CONFIG_ID,
    "id",
    "is not a valid ID",
    "Begin with a letter, then use letters, digits, - and _: 2 to 40 characters",
    _LONGEST_CONFIG_ID,
)
storage = _like(
    _STORAGE, "storage", "is not a storage ID", "Use the name that Datacenter > Storage shows"
)
node = _like(_NODE, "node", "is not a node name", "Use the short host name of the node")
bridge = _like(_BRIDGE, "bridge", "is not a bridge name", "Use a name such as vmbr0")
volume = _like(
    _VOLUME,
    "volume",
    "is not a volume ID",
    "Write it as storage:path, such as local:iso/debian.iso",
)


def user(value: str, what: str = "user") -> str:
    """Return a user with its realm, such as C(alice@pve)."""
    if not _USER.fullmatch(value):
        raise refused(
            what, value, "is not a user with its realm", "Write it as NAME@REALM, such as alice@pve"
        )
    if not MIN_USER <= len(value) <= MAX_USER:
        why = f"has {len(value)} characters"
        raise refused(what, value, why, f"Use {MIN_USER} to {MAX_USER} characters with the realm")
    return value


def token(value: str, what: str = "token") -> str:
    """Return the full name of a token, such as C(alice@pve!deploy)."""
    owner, mark, name = value.rpartition("!")
    if not mark or not _USER.fullmatch(owner) or not _TOKEN.fullmatch(name):
        raise refused(
            what,
            value,
            "is not a token with its user",
            "Write it as USER@REALM!NAME, such as alice@pve!deploy",
        )
    return value


def cidr(value: str, version: int, what: str) -> str:
    """Return an interface address with prefix (C(10.0.0.5/24)); the host part is kept."""
    if not is_cidr(value, version):
        example = "10.0.0.5/24" if version == 4 else "fd00::5/64"
        raise refused(
            what,
            value,
            f"is not an IPv{version} address with a prefix from 8 to {_LONGEST[version]}",
            f"Write it as {example}, or dhcp",
        )
    return value


def address(value: str, version: int | None, what: str) -> str:
    """Return an IP address without prefix, in its shortest notation; `version` is 4, 6 or None for
    either.
    """
    versions = (4, 6) if version is None else (version,)
    if not any(is_address(value, one) for one in versions):
        kind = f"IPv{version}" if version else "IP"
        raise refused(what, value, f"is not an {kind} address", "Write it without prefix")
    return str(ipaddress.ip_address(value))


def is_cidr(text: str, version: int) -> bool:
    """Return whether a text is an address with a prefix as PVE accepts it (JSONSchema.pm,
    pve_verify_cidrv4 and cidrv6).

    The prefix is a number of at least 8, not a netmask.
    """
    address, slash, prefix = text.partition("/")
    if (
        not slash
        or not re.fullmatch("[0-9]{1,3}", prefix)
        or not 8 <= int(prefix) <= _LONGEST[version]
    ):
        return False
    return is_address(address, version)


def network(
    text: str, *, strict: bool = False
) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return the network of an address, or of an address with a prefix, None for another text.

    `strict` refuses bits beyond the prefix.
    """
    try:
        return ipaddress.ip_network(text, strict=strict)
    except ValueError:
        return None


def is_address(text: str, version: int | None = None) -> bool:
    """Return whether a text is an IP address without zone, of any version if none is given."""
    try:
        found = ipaddress.ip_address(text).version
    except ValueError:
        return False
    return "%" not in text and version in (None, found)


def schedule(value: object, what: str = "schedule") -> str:
    """Return a calendar event with one blank between its parts (pve-common: CalendarEvent.pm)."""
    text = " ".join(str(value).split())
    if not _is_schedule(text):
        raise refused(
            what, value, "is not a schedule", "Write it as 02:30, mon..fri 22:00 or */6:00"
        )
    return text


def _is_schedule(text: str) -> bool:
    if text.removesuffix("UTC").rstrip() in _WORDS_FOR_SCHEDULES:
        return True
    found = _SCHEDULE.fullmatch(text)
    if found is None or not text:
        return False
    for name, limit in _LIMITS_OF_SCHEDULES.items():
        numbers = re.findall(r"\d+", found[name] or "")
        values = map(whole_number, numbers)
        if any(value is None or value >= limit for value in values):
            return False
    return True


def ssh_key(value: str, what: str) -> str:
    """Return a line that has the form of a public key; options before it and a comment after it are
    allowed.

    PVE itself checks whether the data are a key: it passes each line to ssh-keygen.
    """
    if not _SSH_KEY.search(value):
        raise refused(
            what,
            f"{value[:30]}...",
            "is not a public key",
            "Give a line of a file such as id_ed25519.pub",
        )
    return value


def count(value: int | None, default: int, what: str) -> int:
    """Return a number of at least 1, such as seconds to wait, or the default if none is given."""
    if value is None:
        return default
    return number(value, 1, 1000000, what)


def number(value: int, minimum: int, maximum: int, what: str) -> int:
    """Return a number from `minimum` to `maximum`."""
    if not minimum <= value <= maximum:
        reason = f"is outside {minimum} to {maximum}"
        raise refused(what, value, reason, "Choose a number inside that range")
    return value


def distinct_tenants(names: Iterable[Any], what: str) -> None:
    """Raise ValidationFailed for an empty name of a tenant, and for names that differ only in case:
    PVE stores tags in lower case, so they are one tenant.
    """
    known: dict[str, str] = {}
    for name in map(str, names):
        if not name.strip():
            raise refused(what, name, "is not the name of a tenant", "Name each tenant")
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise ValidationFailed(
                f"{what} was refused: '{other}' and '{name}' are one tenant, because tags are in "
                "lower case",
                "Merge the two entries, or rename one of them",
                "two entries for one tenant",
            )
