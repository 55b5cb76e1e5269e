# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE's own check of a guest's options, made before any request: types, ranges, enumerations,
patterns, formats.

The rules come from PVE::JSONSchema (pve-common), the facts from the API schemas of several
versions. If none of these versions knows an option, a sub-key or a word of an enumeration, it is
refused for servers of these versions. A newer server checks it itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._core import validate
from .._core.propstring import MalformedPropertyString, parse_exactly
from .formats import QEMU, Schema, format_of, rule_of
from .generated.qemu import CPU_MODELS
from .versions import NEWEST, SINCE, Version, deciding_versions, is_newer

Release = tuple[int, ...]

_BOOLEANS = frozenset(("0", "1"))
# Inside a property string, PVE also accepts words (parse_boolean).
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
# An option is one line of the configuration (QemuServer.pm, check_type), except the notes.
_LINE_FEED = re.compile(r"[\n\r]")
_HOTPLUG = frozenset(("network", "disk", "cpu", "memory", "usb", "cloudinit"))


# PVE's own models besides QEMU's, and the flags that a VM may set (CPUConfig.pm, CPUFlags.pm).
_CPU_LEVELS = ("x86-64-v2", "x86-64-v2-AES", "x86-64-v3", "x86-64-v4")
_CPU_FLAGS = (
    "nested-virt",
    "md-clear",
    "pcid",
    "spec-ctrl",
    "ssbd",
    "ibpb",
    "virt-ssbd",
    "amd-ssbd",
    "amd-no-ssb",
    "pdpe1gb",
    "hv-tlbflush",
    "hv-evmcs",
    "aes",
)
# Formats that are lists of names: a newer server may accept more names.
_LISTS_OF_NAMES = frozenset(("pve-cpu-flags", "pve-cpu-type", "pve-hotplug-features"))


class Refusal(NamedTuple):
    """The reason why PVE refuses a value, in PVE's words.

    `answer` and `next_step` are for users. They are set if the value breaks a rule of the schema.
    """

    reason: str
    answer: str = ""
    next_step: str = ""


_UNKNOWN = Refusal("property is not defined in schema")
_MISSING = Refusal("property is missing and it is not optional")
_HAS_LINE_FEED = Refusal("property contains a line feed")


def find_refusals(
    options: Mapping[str, Any], server: Release | None = None, schema: Schema = QEMU
) -> dict[str, str]:
    """Return the options of a VM that PVE would refuse, with the reasons, or an empty dictionary.

    `server` is the version of PVE; without it, a value is refused only if every version refuses it,
    future ones included. The reasons are the newest version's.
    """
    refusals = {
        key: find_refusal(key, str(value), server, schema) for key, value in options.items()
    }
    return {key: refusal.reason for key, refusal in refusals.items() if refusal}


def find_refusal(
    key: str, text: str, server: Release | None = None, schema: Schema = QEMU
) -> Refusal | None:
    """Return why PVE would refuse an option, or None; `server` as for `find_refusals`."""
    if key != "description" and _LINE_FEED.search(text):
        return _HAS_LINE_FEED
    return _common_refusal(_refusals_by_version(key, text, server, schema))


def disputed(options: Mapping[str, Any], schema: Schema = QEMU) -> frozenset[str]:
    """Return the options that some versions of PVE refuse, and others or future ones may accept."""
    refusals_by_option = {
        key: _refusals_by_version(key, str(value), None, schema) for key, value in options.items()
    }
    return frozenset(
        key for key, refusals in refusals_by_option.items() if any(refusals) and not all(refusals)
    )


def unknown_option(key: str, value: Any, schema: Schema = QEMU) -> Refusal | None:
    """Return the refusal of an option that no known version of PVE accepts, but a newer one may.

    It is None for any other option.
    """
    if key not in disputed({key: value}, schema) or taken_by(key, value, schema):
        return None
    return find_refusal(key, str(value), NEWEST, schema)


def unknown_part(key: str, name: str, text: str, schema: Schema = QEMU) -> Refusal | None:
    """Return the refusal of a sub-key that no known version of PVE accepts, but a newer one may.

    It is None for any other sub-key.
    """
    refusal = find_part_refusal(key, name, text, NEWEST, schema)
    if refusal is None or find_part_refusal(key, name, text, schema=schema):
        return None
    if all(find_part_refusal(key, name, text, version, schema) for version in schema.by_version):
        return refusal
    return None


def taken_by(key: str, value: Any, schema: Schema = QEMU) -> list[Version]:
    """Return the known versions of PVE that accept this value of an option, the oldest first."""
    return [
        version for version in schema.by_version if not find_refusals({key: value}, version, schema)
    ]


def find_part_refusal(
    key: str, name: str, text: str, server: Release | None = None, schema: Schema = QEMU
) -> Refusal | None:
    """Return why a sub-key of a property string is refused, or None.

    `server` is the version of PVE; without it, a value is refused only if every version refuses it,
    future ones included.
    """
    if _LINE_FEED.search(text):
        return _HAS_LINE_FEED
    value = _Value(key, text, schema)
    if is_newer(server):
        return value.refusal_of(name, NEWEST, lenient=True)
    if server is not None:
        return _common_refusal(
            [value.refusal_of(name, version) for version in deciding_versions(server)]
        )
    knowing = [
        version for version in schema.by_version if name in (_format_in(key, version, schema) or {})
    ]
    refusals = [value.refusal_of(name, version) for version in knowing]
    if NEWEST in knowing:
        refusals.append(value.refusal_of(name, NEWEST, lenient=True))
    return _common_refusal(refusals)


def _common_refusal(refusals: Sequence[Refusal | None]) -> Refusal | None:
    """Return the last refusal if every version that counts refuses, else None."""
    return refusals[-1] if refusals and all(refusals) else None


def _refusals_by_version(
    key: str, text: str, server: Release | None, schema: Schema
) -> list[Refusal | None]:
    """Return the refusal (or None) of an option by each relevant version, the newest last."""
    value = _Value(key, text, schema)
    refusals: list[Refusal | None] = []
    if not is_newer(server):
        refusals = [value.refusal(version) for version in deciding_versions(server)]
    if server is None or is_newer(server):
        refusals.append(value.refusal(NEWEST, lenient=True))
    return refusals


class _Value(NamedTuple):
    """The value of an option, or of one of its sub-keys."""

    key: str
    text: str
    schema: Schema

    def refusal(self, version: Version, *, lenient: bool = False) -> Refusal | None:
        """Return the refusal of an option by one version's rules, or None.

        `lenient` accepts names that the rules do not contain.
        """
        rule = rule_of(self.key, self.schema.by_version[version], self.schema)
        if rule is None:
            return None if lenient else _UNKNOWN
        fmt = _format_in(self.key, version, self.schema)
        if fmt is None:
            return _refusal_of_scalar(self.text, rule, lenient=lenient)
        return _refusal_of_property_string(
            self.text, fmt, _WHOLE.get(str(rule.get("format"))), lenient=lenient
        )

    def refusal_of(self, name: str, version: Version, *, lenient: bool = False) -> Refusal | None:
        """Return the refusal of the value of a sub-key by one version's rules, or None."""
        fmt = _format_in(self.key, version, self.schema) or {}
        if name not in fmt:
            return None if lenient else _UNKNOWN
        return _refusal_of_value(self.text, fmt[name], lenient=lenient)


def _format_in(
    key: str, version: Version, schema: Schema
) -> Mapping[str, Mapping[str, Any]] | None:
    """Return the sub-keys that an option has in one version."""
    rules = schema.by_version[version]
    fmt = format_of(key, rules, schema)
    named = (rule_of(key, rules, schema) or {}).get("format")
    if fmt is None or not isinstance(named, str):
        return fmt
    return {
        name: rule for name, rule in fmt.items() if SINCE.get((named, name), version) <= version
    }


def _refusal_of_property_string(
    text: str,
    fmt: Mapping[str, Mapping[str, Any]],
    find_breach: Callable[[Mapping[str, str]], str | None] | None,
    *,
    lenient: bool,
) -> Refusal | None:
    """Return the refusal of a property string, or None; `find_breach` checks all its sub-keys."""
    try:
        values = parse_exactly(text, fmt)
    except MalformedPropertyString as error:
        return Refusal(error.reason)
    for name in values:
        if name not in fmt and not lenient:
            return Refusal(f"{name}: {_UNKNOWN.reason}")
    if find_breach is not None:
        reason = find_breach(values)
        return Refusal(reason) if reason else None
    for name, rule in fmt.items():
        refusal = _MISSING if rule.get("required") else None
        if name in values:
            refusal = _refusal_of_value(values[name], rule, lenient=lenient)
        if refusal:
            return Refusal(f"{name}: {refusal.reason}")
    return None


def _refusal_of_value(text: str, rule: Mapping[str, Any], *, lenient: bool) -> Refusal | None:
    """Return the refusal of a sub-key's value, or None; booleans may be words such as `yes`."""
    if rule.get("type") == "boolean" and text.lower() in _WORDS:
        return None
    return _refusal_of_scalar(text, rule, lenient=lenient)


def _refusal_of_scalar(text: str, rule: Mapping[str, Any], *, lenient: bool) -> Refusal | None:
    """Return the refusal of a value by type, range, enumeration, pattern, length and format."""
    kind = rule.get("type")
    if kind == "boolean" and text not in _BOOLEANS:
        reason = f"type check ('boolean') failed - got '{text}'"
        return Refusal(reason, "is not a boolean", "Use true or false")
    if kind in ("integer", "number"):
        refusal = _refusal_of_number(text, rule)
        if refusal:
            return refusal
    if "enum" in rule and text not in rule["enum"] and not lenient:
        known = ", ".join(rule["enum"])
        reason = f"value '{text}' does not have a value in the enumeration '{known}'"
        return Refusal(reason, "is not one of PVE's values", f"Use {known}")
    if "pattern" in rule and not re.fullmatch(rule["pattern"], text):
        step = f"It must match {rule['pattern']}"
        return Refusal(
            "value does not match the regex pattern",
            "does not have the form that PVE requires",
            step,
        )
    if "maxLength" in rule and len(text) > rule["maxLength"]:
        maximum = f"{rule['maxLength']} characters"
        return Refusal(f"value may only be {maximum} long", "is too long", f"At most {maximum}")
    named = rule.get("format")
    if not isinstance(named, str) or (lenient and named in _LISTS_OF_NAMES):
        return None
    check = _CHECKS.get(named)
    cause = check(text) if check else None
    return Refusal(cause) if cause else None


def _refusal_of_number(text: str, rule: Mapping[str, Any]) -> Refusal | None:
    kind = rule["type"]
    pattern = r"[+-]?\d+" if kind == "integer" else r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    if not re.fullmatch(pattern, text):
        article = "an" if kind == "integer" else "a"
        return Refusal(
            f"type check ('{kind}') failed - got '{text}'",
            f"is not {article} {kind}",
            "Write a number",
        )
    low, high = rule.get("minimum"), rule.get("maximum")
    if low is not None and float(text) < low:
        return Refusal(
            f"value must have a minimum value of {low}", "is out of range", _range(low, high)
        )
    if high is not None and float(text) > high:
        return Refusal(
            f"value must have a maximum value of {high}", "is out of range", _range(low, high)
        )
    return None


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"PVE takes at least {low}"
    if low is None:
        return f"PVE takes at most {high}"
    return f"PVE takes {low} to {high}"


def _matches(pattern: re.Pattern[str], what: str) -> Callable[[str], str | None]:
    return lambda text: (
        None if pattern.fullmatch(text) else f"value does not look like a valid {what}"
    )


def _each(
    check: Callable[[str], bool], why: str, separators: str = r"[,;\s\0]+"
) -> Callable[[str], str | None]:
    def find_breach(text: str) -> str | None:
        wrong = [item for item in re.split(separators, text) if item and not check(item)]
        return f"{why} '{wrong[0]}'" if wrong else None

    return find_breach


def _is_host(text: str) -> bool:
    """Return whether a text is an address or a DNS name (pve-common: JSONSchema.pm,
    pve_verify_address).
    """
    return validate.is_address(text) or bool(_DNS_NAME.fullmatch(text))


def _volume_or_new(text: str) -> str | None:
    good = (
        text in ("none", "cdrom")
        or text.startswith("/")
        or _VOLUME.fullmatch(text)
        or _NEW_DISK.fullmatch(text)
    )
    return None if good and text else f"unable to parse volume ID '{text}'"


def _volume_or_path(text: str) -> str | None:
    return (
        None
        if text.startswith("/") or _VOLUME.fullmatch(text)
        else f"unable to parse volume ID '{text}'"
    )


def _ip_or_word(version: int, words: frozenset[str]) -> Callable[[str], str | None]:
    """Return the check of an address with a prefix, or of a word in its place."""

    def find_breach(text: str) -> str | None:
        if text in words or validate.is_cidr(text, version):
            return None
        return f"value does not look like a valid ipv{version} network configuration"

    return find_breach


def _ip(version: int) -> Callable[[str], str | None]:
    def find_breach(text: str) -> str | None:
        if validate.is_address(text, version):
            return None
        return f"value does not look like a valid IPv{version} address"

    return find_breach


def _mount_path(text: str) -> str | None:
    """Return why the path of a mount point is refused (pve-container: LXC/Config.pm,
    verify_lxc_mp_string).
    """
    parts = text.split("/")
    is_upward = text.startswith("../")
    if is_upward or not {".", ".."}.isdisjoint(parts[1:]):
        return f"{text} contains illegal character sequences"
    return None


# Address, gateway, version of IP and the words instead of an address (JSONSchema.pm,
# pve_verify_ipv4_config).
_IP_KEYS = (
    ("ip", "gw", 4, frozenset(("dhcp", "manual"))),
    ("ip6", "gw6", 6, frozenset(("auto", "dhcp", "manual"))),
)


def _ip_config(values: Mapping[str, str]) -> str | None:
    for address, gateway, version, words in _IP_KEYS:
        if gateway in values and address not in values:
            return f"{address}: missing property required by '{gateway}'"
        given = values.get(address)
        if given is not None and given not in words and not validate.is_cidr(given, version):
            return f"{address}: value does not look like a valid IPv{version} network configuration"
        given = values.get(gateway)
        if given is not None and not validate.is_address(given, version):
            return f"{gateway}: value does not look like a valid IPv{version} address"
    return None


def _boot(values: Mapping[str, str]) -> str | None:
    if "order" not in values:
        known = _LEGACY_BOOT.fullmatch(values.get("legacy", ""))
        return None if known else "legacy: value does not match the regex pattern"
    devices = re.split(r"[;,\s]+", values["order"])
    wrong = [item for item in devices if item and not _BOOT_DEVICE.fullmatch(item)]
    return f"order: invalid boot device '{wrong[0]}'" if wrong else None


def _hotplug(text: str) -> str | None:
    if text in _BOOLEANS:
        return None
    wrong = [item for item in re.split(r"[,;\s]+", text) if item not in _HOTPLUG]
    return f"invalid hotplug feature '{wrong[0]}'" if wrong else None


def _startup(values: Mapping[str, str]) -> str | None:
    """Check order, up and down (JSONSchema.pm, pve_parse_startup_order)."""
    good = all(re.fullmatch(r"\d+", value) for value in values.values())
    return None if good else "unable to parse startup options"


def _cpu_type(text: str) -> str | None:
    """Check a CPU type (CPUConfig.pm, validate_vm_cpu_conf).

    Only the server knows whether a custom type exists.
    """
    if text in CPU_MODELS or text in _CPU_LEVELS or text.startswith("custom-"):
        return None
    return f"Built-in cputype '{text}' is not defined (missing 'custom-' prefix?)"


def _cpu_flags(text: str) -> str | None:
    wrong = [flag for flag in text.split(";") if flag[1:] not in _CPU_FLAGS]
    return f"VM-specific CPU flags must be a subset of: {', '.join(_CPU_FLAGS)}" if wrong else None


def _phys_bits(text: str) -> str | None:
    good = text == "host" or (re.fullmatch("[0-9]{1,2}", text) and 8 <= int(text) <= 64)
    return None if good else "value must be an integer between 8 and 64 or 'host'"


def _only_in_custom_models(_text: str) -> str:
    return "Property 'reported-model' not allowed in VM-specific CPU config."


# Formats whose sub-keys are checked together.
_WHOLE: dict[str, Callable[[Mapping[str, str]], str | None]] = {
    "pve-qm-boot": _boot,
    "pve-qm-ipconfig": _ip_config,
    "pve-startup-order": _startup,
}
_CHECKS: dict[str, Callable[[str], str | None]] = {
    "address-list": _each(_is_host, "value does not look like a valid address:"),
    "ipv4": _ip(4),
    "ipv6": _ip(6),
    "dns-name-list": _each(
        lambda name: bool(_DNS_NAME.fullmatch(name)), "value does not look like a valid DNS name:"
    ),
    "pve-ipv4-config": _ip_or_word(4, frozenset(("dhcp", "manual"))),
    "pve-ipv6-config": _ip_or_word(6, frozenset(("auto", "dhcp", "manual"))),
    "pve-lxc-mp-string": _mount_path,
    "disk-size": _matches(_SIZE, "disk size"),
    "dns-name": _matches(_DNS_NAME, "DNS name"),
    "mac-addr": _matches(_MAC, "unicast MAC address"),
    "pve-bridge-id": _matches(_BRIDGE, "bridge ID"),
    "pve-configid": _matches(_CONFIG_ID, "configuration ID"),
    "pve-cpu-flags": _cpu_flags,
    "pve-cpu-reported": _only_in_custom_models,
    "pve-cpu-type": _cpu_type,
    "pve-cpuset": _matches(_CPUSET, "CPU set"),
    "pve-hotplug-features": _hotplug,
    "pve-phys-bits": _phys_bits,
    "pve-storage-id": _matches(_STORAGE, "storage ID"),
    "pve-tag-list": _each(lambda tag: bool(_TAG.fullmatch(tag)), "invalid characters in tag"),
    "pve-volume-id": _matches(_VOLUME, "volume ID"),
    "pve-volume-id-or-absolute-path": _volume_or_path,
    "pve-volume-id-or-qm-path": _volume_or_new,
    "urlencoded": lambda text: (
        None if _URL_ENCODED.fullmatch(text) else f"invalid urlencoded string: {text}"
    ),
}
