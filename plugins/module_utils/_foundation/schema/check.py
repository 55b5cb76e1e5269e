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

from ..core import validate
from ..core.errors import ValidationFailed
from ..core.propstring import MalformedPropertyString, parse_exactly
from .formats import QEMU, Schema, format_of, rule_of
from .named import find_breach
from .versions import NEWEST, SINCE, Version, deciding_versions, is_newer

Release = tuple[int, ...]

_MOST = 2**63 - 1
_BOOLEANS = frozenset(("0", "1"))
# Inside a property string, PVE also accepts words (parse_boolean).
_WORDS = _BOOLEANS | {"on", "off", "yes", "no", "true", "false"}
_BOOT_DEVICE = re.compile(r"(?:ide|sata|scsi|virtio|net|usb|hostpci)\d+")
_LEGACY_BOOT = re.compile(r"[acdn]{1,4}")
# An option is one line of the configuration (QemuServer.pm, check_type), except the notes.
_LINE_FEED = re.compile(r"[\n\r]")


# Formats that are lists of names: a newer server may accept more names.
_LISTS_OF_NAMES = frozenset(
    ("pve-cpu-flags", "pve-cpu-type", "pve-ct-timezone", "pve-hotplug-features")
)


class Refusal(NamedTuple):
    """The reason why PVE refuses a value, in PVE's words.

    `answer` and `next_step` are for users. They are set if the value breaks a rule of the schema.
    """

    reason: str
    answer: str = ""
    next_step: str = ""


def refusal_error(what: str, text: str, refusal: Refusal) -> ValidationFailed:
    """Return the error of a value that PVE refuses, with the schema's cause if it has one."""
    unexplained = f"was refused ({refusal.reason})"
    return validate.refused(
        what, text[:40], refusal.answer or unexplained, refusal.next_step or "Write it as PVE does"
    )


_UNKNOWN = Refusal("property is not defined in schema")
_MISSING = Refusal("property is missing and it is not optional")
_HAS_LINE_FEED = Refusal("property contains a line feed")
# A comma separates the keys of a property string (pve-common: JSONSchema.pm, parse_property_string).
_HAS_COMMA = Refusal("missing key in comma-separated list property", "has a comma", "Leave it out")


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
    if "," in text:
        return _HAS_COMMA
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
        rule = rule_of(self.key, self.schema, version)
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
    fmt = format_of(key, schema, version)
    named = (rule_of(key, schema, version) or {}).get("format")
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


def refusal_of_parameter(
    text: str, rule: Mapping[str, Any], *, lenient: bool = False
) -> Refusal | None:
    """Return the refusal of a parameter of a request by its rule, or None; `lenient` accepts names
    that the rule does not contain.
    """
    fmt = rule.get("format")
    if isinstance(fmt, Mapping):
        return _refusal_of_property_string(text, fmt, None, lenient=lenient)
    return _refusal_of_scalar(text, rule, lenient=lenient)


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
    if len(text) < rule.get("minLength", 0):
        minimum = f"{rule['minLength']} characters"
        return Refusal(
            f"value must be at least {minimum} long", "is too short", f"At least {minimum}"
        )
    named = rule.get("format")
    if not isinstance(named, str) or (lenient and named in _LISTS_OF_NAMES):
        return None
    cause = find_breach(named, text)
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
    # Perl has integers of 64 bits (perlnumber).
    low, high = rule.get("minimum"), rule.get("maximum", _MOST if kind == "integer" else None)
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


def _startup(values: Mapping[str, str]) -> str | None:
    """Check order, up and down (JSONSchema.pm, pve_parse_startup_order)."""
    good = all(re.fullmatch(r"\d+", value) for value in values.values())
    return None if good else "unable to parse startup options"


# Formats whose sub-keys are checked together.
_WHOLE: dict[str, Callable[[Mapping[str, str]], str | None]] = {
    "pve-qm-boot": _boot,
    "pve-qm-ipconfig": _ip_config,
    "pve-startup-order": _startup,
}
