# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE's own check of a VM's options, made before any request: types, ranges, enumerations, patterns, formats.

The rules are those of PVE::JSONSchema (pve-common) with the facts of the API schemas of several versions. An option
that none of them knows is not judged: a newer server may know it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .formats import format_of, rule_of
from .versions import BY_VERSION, Rules, Version, judges

_BOOLEANS = frozenset(("0", "1"))
# Inside a property string PVE also takes words (parse_boolean).
_WORDS = _BOOLEANS | {"on", "off", "yes", "no", "true", "false"}
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?"
_DNS_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_TAG = re.compile(r"[a-z0-9_][a-z0-9_\-+.]*", re.IGNORECASE)
_VOLUME = re.compile(r"[a-z][a-z0-9\-_.]*[a-z0-9]:.+", re.IGNORECASE)
_NEW_DISK = re.compile(r"(?:[^/:\s]+:)?\d+(?:\.\d+)?")
_STORAGE = re.compile(r"[a-z][a-z0-9\-_.]*[a-z0-9]", re.IGNORECASE)
_CONFIG_ID = re.compile(r"[a-z][a-z0-9_-]+", re.IGNORECASE)
_SIZE = re.compile(r"\d+(?:\.\d+)?[KMGT]?")
_MAC = re.compile(r"[0-9a-f][02468ace](?::[0-9a-f]{2}){5}", re.IGNORECASE)
_BRIDGE = re.compile(r"[-_.\w]+")
_CPUSET = re.compile(r"\s*\d+(?:-\d+)?(?:\s*,\s*\d+(?:-\d+)?)*\s*")
_BOOT_DEVICE = re.compile(r"(?:ide|sata|scsi|virtio|net|usb|hostpci)\d+")
_LEGACY_BOOT = re.compile(r"[acdn]{1,4}")
_URL_ENCODED = re.compile(r"(?:[-_.~A-Za-z0-9!*'()]|%[0-9A-Fa-f]{2})*")
_STARTUP = re.compile(r"(?:order=)?\d+|up=\d+|down=\d+")
_HOTPLUG = frozenset(("network", "disk", "cpu", "memory", "usb", "cloudinit"))


def check_options(options: Mapping[str, Any], server: Version | None = None) -> dict[str, str]:
    """Return what PVE would refuse in these options of a VM, by option, or an empty dictionary.

    `server` is its version; without it only what every known version refuses. The reasons are the newest one's.
    """
    found: dict[str, str] = {}
    for key, value in options.items():
        reasons = _verdicts(key, str(value), judges(server))
        if reasons and all(reasons):
            found[key] = str(reasons[-1])
    return found


def disputed(options: Mapping[str, Any]) -> frozenset[str]:
    """Return the options that some known versions of PVE refuse and others take."""
    verdicts = {key: _verdicts(key, str(value), judges(None)) for key, value in options.items()}
    return frozenset(key for key, reasons in verdicts.items() if any(reasons) and not all(reasons))


def taken_by(key: str, value: Any) -> list[Version]:
    """Return the known versions of PVE that take an option with this value, the oldest first."""
    return [version for version in BY_VERSION if not check_options({key: value}, version)]


def check_part(key: str, name: str, text: str) -> str | None:
    """Return what every known version refuses in one sub-key of a property string, or None."""
    formats = [format_of(key, rules) or {} for rules in BY_VERSION.values()]
    reasons = [_judge_value(text, fmt[name]) for fmt in formats if name in fmt]
    return reasons[-1] if all(reasons) and reasons else None


def _verdicts(key: str, text: str, versions: Iterable[Version]) -> list[str | None]:
    """Return what each of these versions says against an option; nothing for one that no version knows."""
    if rule_of(key) is None:
        return []
    said: dict[int, str | None] = {}  # most rules are the same in all versions
    reasons = []
    for version in versions:
        rules = BY_VERSION[version]
        known = id(rule_of(key, rules))
        if known not in said:
            said[known] = _judge(key, text, rules)
        reasons.append(said[known])
    return reasons


def _judge(key: str, text: str, rules: Rules) -> str | None:
    rule = rule_of(key, rules)
    if rule is None:
        return "property is not defined in schema"
    named = rule.get("format")
    if isinstance(named, str) and named in _CHECKS:
        return _judge_plain(text, rule)
    fmt = format_of(key, rules)
    return _judge_plain(text, rule) if fmt is None else _judge_parts(text, fmt)


def _judge_parts(text: str, fmt: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Judge a property string by its sub-keys."""
    bare = next((name for name, rule in fmt.items() if rule.get("default_key")), None)
    values: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            if bare is None:
                return "value without key, but schema does not define a default key"
            name, value = bare, part
        rule = fmt.get(name)
        if rule is None:
            return f"{name}: property is not defined in schema"
        if rule.get("alias"):
            if rule.get("keyAlias"):
                values[rule["keyAlias"]] = name
            name = rule["alias"]
        values[name] = value
    for name, rule in fmt.items():
        if name in values:
            reason = _judge_value(values[name], rule)
            if reason:
                return f"{name}: {reason}"
        elif rule.get("required"):
            return f"{name}: property is missing and it is not optional"
    return None


def _judge_value(text: str, rule: Mapping[str, Any]) -> str | None:
    """Judge the value of a sub-key, where a boolean may be a word."""
    return None if rule.get("type") == "boolean" and text.lower() in _WORDS else _judge_plain(text, rule)


def _judge_plain(text: str, rule: Mapping[str, Any]) -> str | None:
    kind = rule.get("type")
    if kind == "boolean" and text not in _BOOLEANS:
        return f"type check ('boolean') failed - got '{text}'"
    if kind in ("integer", "number"):
        reason = _judge_number(text, rule)
        if reason:
            return reason
    if "enum" in rule and text not in rule["enum"]:
        return f"value '{text}' does not have a value in the enumeration '{', '.join(rule['enum'])}'"
    if "pattern" in rule and not re.fullmatch(rule["pattern"], text):
        return "value does not match the regex pattern"
    if "maxLength" in rule and len(text) > rule["maxLength"]:
        return f"value may only be {rule['maxLength']} characters long"
    named = rule.get("format")
    check = _CHECKS.get(named) if isinstance(named, str) else None
    return check(text) if check else None


def _judge_number(text: str, rule: Mapping[str, Any]) -> str | None:
    pattern = r"[+-]?\d+" if rule["type"] == "integer" else r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    if not re.fullmatch(pattern, text):
        return f"type check ('{rule['type']}') failed - got '{text}'"
    if "minimum" in rule and float(text) < rule["minimum"]:
        return f"value must have a minimum value of {rule['minimum']}"
    if "maximum" in rule and float(text) > rule["maximum"]:
        return f"value must have a maximum value of {rule['maximum']}"
    return None


def _matches(pattern: re.Pattern[str], what: str) -> Callable[[str], str | None]:
    return lambda text: None if pattern.fullmatch(text) else f"value does not look like a valid {what}"


def _each(check: Callable[[str], bool], why: str, separators: str = r"[,;\s\0]+") -> Callable[[str], str | None]:
    def judge(text: str) -> str | None:
        wrong = [item for item in re.split(separators, text) if item and not check(item)]
        return f"{why} '{wrong[0]}'" if wrong else None

    return judge


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return bool(_DNS_NAME.fullmatch(text))
    return True


def _volume_or_new(text: str) -> str | None:
    good = text in ("none", "cdrom") or text.startswith("/") or _VOLUME.fullmatch(text) or _NEW_DISK.fullmatch(text)
    return None if good and text else f"unable to parse volume ID '{text}'"


def _volume_or_path(text: str) -> str | None:
    return None if text.startswith("/") or _VOLUME.fullmatch(text) else f"unable to parse volume ID '{text}'"


def _ip_config(text: str) -> str | None:
    values = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if any("=" not in part for part in text.split(",")):
        return "value without key, but schema does not define a default key"
    if unknown := sorted(values.keys() - {"ip", "gw", "ip6", "gw6"}):
        return f"{unknown[0]}: property is not defined in schema"
    for address, gateway, version, words in (("ip", "gw", 4, {"dhcp"}), ("ip6", "gw6", 6, {"dhcp", "auto"})):
        if gateway in values and address not in values:
            return f"{address}: missing property required by '{gateway}'"
        given = values.get(address)
        if given is not None and given not in words and not _is_interface(given, version):
            return f"{address}: value does not look like a valid IPv{version} network configuration"
        given = values.get(gateway)
        if given is not None and not _is_interface(f"{given}/{32 if version == 4 else 128}", version):
            return f"{gateway}: value does not look like a valid IPv{version} address"
    return None


def _is_interface(text: str, version: int) -> bool:
    try:
        return "/" in text and ipaddress.ip_interface(text).version == version
    except ValueError:
        return False


def _boot(text: str) -> str | None:
    order = [part.partition("=")[2] for part in text.split(",") if part.startswith("order=")]
    if not order:
        legacy = text.removeprefix("legacy=")
        return None if _LEGACY_BOOT.fullmatch(legacy) else "legacy: value does not match the regex pattern"
    wrong = [item for item in re.split(r"[;,\s]+", order[0]) if item and not _BOOT_DEVICE.fullmatch(item)]
    return f"order: invalid boot device '{wrong[0]}'" if wrong else None


def _hotplug(text: str) -> str | None:
    if text in _BOOLEANS:
        return None
    wrong = [item for item in re.split(r"[,;\s]+", text) if item not in _HOTPLUG]
    return f"invalid hotplug feature '{wrong[0]}'" if wrong else None


def _startup(text: str) -> str | None:
    good = all(_STARTUP.fullmatch(part) for part in text.split(","))
    return None if good else "unable to parse startup options"


_CHECKS: dict[str, Callable[[str], str | None]] = {
    "address-list": _each(_is_address, "value does not look like a valid address:"),
    "disk-size": _matches(_SIZE, "disk size"),
    "dns-name": _matches(_DNS_NAME, "DNS name"),
    "mac-addr": _matches(_MAC, "unicast MAC address"),
    "pve-bridge-id": _matches(_BRIDGE, "bridge ID"),
    "pve-configid": _matches(_CONFIG_ID, "configuration ID"),
    "pve-cpuset": _matches(_CPUSET, "CPU set"),
    "pve-hotplug-features": _hotplug,
    "pve-qm-boot": _boot,
    "pve-qm-ipconfig": _ip_config,
    "pve-startup-order": _startup,
    "pve-storage-id": _matches(_STORAGE, "storage ID"),
    "pve-tag-list": _each(lambda tag: bool(_TAG.fullmatch(tag)), "invalid characters in tag"),
    "pve-volume-id": _matches(_VOLUME, "volume ID"),
    "pve-volume-id-or-absolute-path": _volume_or_path,
    "pve-volume-id-or-qm-path": _volume_or_new,
    "urlencoded": lambda text: None if _URL_ENCODED.fullmatch(text) else f"invalid urlencoded string: {text}",
}
