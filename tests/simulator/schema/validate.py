"""Checks values against an API schema and reports errors in Proxmox VE's own words."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from .cpumodels import CPU_MODELS
from .formats import FormatError, check_named
from .named_hashes import HASHES, SUPPORTED_CPU_FLAGS

Prop = dict[str, Any]
Errors = dict[str, str]

MISSING = "property is missing and it is not optional"
UNKNOWN = "property is not defined in schema and the schema does not allow additional properties"
_INTEGER = re.compile(r"[+-]?\d+\Z")
_NUMBER = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?\Z")
_TRUE = re.compile(r"(?:1|on|yes|true)\Z", re.IGNORECASE)
_FALSE = re.compile(r"(?:0|off|no|false)\Z", re.IGNORECASE)


def add_error(errors: Errors, path: str, text: str) -> None:
    """Note an error.

    A second one of the same parameter is joined as PVE does, with a literal backslash n.
    """
    errors[path] = f"{errors[path]}\\n{text}" if path in errors else text


@cache
def perl_pattern(pattern: str) -> re.Pattern[str]:
    """A Perl pattern that must match the whole value."""
    python = re.sub(r"\(\?\^([a-z]*):", lambda m: f"(?{m[1]}:" if m[1] else "(?:", pattern)
    python = (
        python.replace("[:alnum:]", "a-zA-Z0-9")
        .replace("[:alpha:]", "a-zA-Z")
        .replace("[:^space:]", r"\S")
    )
    return re.compile(rf"(?:{python})\n?\Z")


def parse_bool(text: str) -> str:
    """Booleans inside property strings may be words; they become 1 or 0, anything else stays."""
    if _TRUE.match(text):
        return "1"
    return "0" if _FALSE.match(text) else text


def hash_format(name: Any) -> dict[str, Prop] | None:
    """The keys of a property-string format, given by value or by name."""
    if isinstance(name, dict):
        return name
    return HASHES.get(name) if isinstance(name, str) else None


def _put_part(keys: dict[str, Prop], result: dict[str, str], name: str, value: str) -> None:
    if name in result:
        raise FormatError(f"duplicate key in comma-separated list property: {name}\n")
    prop = keys.get(name) or {}
    alias = prop.get("alias")
    if alias:
        key_alias = prop.get("keyAlias")
        if key_alias:
            if key_alias in result:
                raise FormatError(f"key alias '{key_alias}' is already defined\n")
            result[key_alias] = name
        name, prop = alias, keys.get(alias, {})
        if name in result:
            raise FormatError(f"key '{name}' is already defined (via alias)\n")
    result[name] = parse_bool(value) if prop.get("type") == "boolean" else value


def split_property_string(keys: dict[str, Prop], text: str) -> dict[str, str]:
    """The parts of `value,key=value,...` by their keys; only the form is checked."""
    result: dict[str, str] = {}
    default_key = next((name for name, prop in keys.items() if prop.get("default_key")), None)
    seen_default = False
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if equals and name and value:
            _put_part(keys, result, name, value)
        elif not equals:
            if default_key is None:
                raise FormatError("value without key, but schema does not define a default key\n")
            if seen_default or result.get(default_key):
                raise FormatError(
                    f"duplicate key in comma-separated list property: {default_key}\n"
                )
            seen_default = True
            result[default_key] = (
                parse_bool(part) if keys[default_key].get("type") == "boolean" else part
            )
        else:
            raise FormatError("missing key in comma-separated list property\n")
    return result


def parse_property_string(keys: dict[str, Prop], text: str, path: str) -> dict[str, str]:
    """The parts of a property string, all of them checked; raises FormatError."""
    result = split_property_string(keys, text)
    errors: Errors = {}
    check_object(path, keys, result, False, errors)
    if errors:
        raise FormatError(
            "format error\n" + "".join(f"{name}: {errors[name]}\n" for name in sorted(errors))
        )
    return result


def _check_cpu(cpu: dict[str, str]) -> None:
    model = cpu.get("cputype")
    if model is None:
        return
    # `check_cpu_model` of config/checks.py knows the custom models of the cluster.
    if model not in CPU_MODELS and not model.startswith("custom-"):
        raise FormatError(
            f"Built-in cputype '{model}' is not defined (missing 'custom-' prefix?)\n"
        )
    for flag in filter(None, cpu.get("flags", "").split(";")):
        if flag[1:] not in SUPPORTED_CPU_FLAGS:
            raise FormatError(
                f"VM-specific CPU flags must be a subset of: {', '.join(SUPPORTED_CPU_FLAGS)}\n"
            )
    if "reported-model" in cpu:
        raise FormatError("Property 'reported-model' not allowed in VM-specific CPU config.\n")


def _check_prune(kept: dict[str, str]) -> None:
    """Source: pve-storage, Plugin.pm, validate_prune_backups."""
    numbers = [int(value) for name, value in kept.items() if name != "keep-all"]
    if any(number > 0 for number in numbers) and kept.get("keep-all", "0") != "0":
        raise FormatError("keep-all cannot be set together with other options.\n")


def check_format(name: Any, value: str, path: str) -> None:
    """Check the value against a format; raises FormatError."""
    keys = hash_format(name)
    if keys is not None:
        parsed = parse_property_string(keys, value, path)
        if name == "pve-vm-cpu-conf":
            _check_cpu(parsed)
        elif name == "prune-backups":
            _check_prune(parsed)
        return
    check_named(name, value)


_HOLDERS: dict[str, type] = {"array": list, "object": dict}


def _check_type(path: str, kind: Any, value: Any, errors: Errors) -> bool:
    if not kind or kind == "any":
        return True
    if kind in _HOLDERS:
        good = isinstance(value, _HOLDERS[kind])
        if not good:
            add_error(errors, path, f"type check ('{kind}') failed")
        return good
    if isinstance(value, (list, dict)):
        add_error(
            errors,
            path,
            f"type check ('{kind}') failed - got {'ARRAY' if isinstance(value, list) else 'HASH'}",
        )
        return False
    good = True
    if kind == "boolean":
        good = value in ("0", "1")
    elif kind == "integer":
        good = bool(_INTEGER.match(value))
    elif kind == "number":
        good = bool(_NUMBER.match(value))
    if not good:
        add_error(errors, path, f"type check ('{kind}') failed - got '{value}'")
    return good


def check_object(
    path: str, props: dict[str, Prop], value: dict[str, Any], additional: Any, errors: Errors
) -> None:
    """Check the members of an object: missing ones, each one's value, requirements, unknown
    ones.
    """
    for name, prop in props.items():
        missing = name not in value or value[name] is None
        if (
            missing
            and not prop.get("optional")
            and not prop.get("alias")
            and prop.get("type") != "null"
        ):
            add_error(errors, f"{path}.{name}" if path else name, MISSING)
    for name, item in value.items():
        below = f"{path}.{name}" if path else name
        found = props.get(name)
        if found is None:
            if additional is not None and not additional:
                add_error(errors, below, UNKNOWN)
            continue
        if item is not None:
            check_prop(item, found, below, errors)
        required = found.get("requires")
        if isinstance(required, str) and value.get(required) is None:
            add_error(
                errors,
                f"{path}.{required}" if path else required,
                f"missing property required by '{below}'",
            )


def check_prop(value: Any, prop: Prop, path: str, errors: Errors) -> None:
    """Check one value: type, then format, pattern, length, range, enumeration.

    The first fault is reported.
    """
    if prop.get("alias") or not _check_type(path, prop.get("type"), value, errors):
        return
    if isinstance(value, list):
        items = prop.get("items")
        if items:
            for index, element in enumerate(value):
                check_prop(element, items, f"{path}[{index}]", errors)
        return
    if isinstance(value, dict):
        if prop.get("properties"):
            check_object(path, prop["properties"], value, prop.get("additionalProperties"), errors)
        return
    fault = _scalar_fault(value, prop, path)
    if fault:
        add_error(errors, path, fault)


def _scalar_fault(value: str, prop: Prop, path: str) -> str | None:
    named = prop.get("format")
    if named is not None:
        try:
            check_format(named, value, path)
        except FormatError as error:
            return f"invalid format - {error}"
    pattern = prop.get("pattern")
    if pattern and not perl_pattern(pattern).match(value):
        return "value does not match the regex pattern"
    longest, shortest = prop.get("maxLength"), prop.get("minLength")
    if longest is not None and len(value) > longest:
        return f"value may only be {longest} characters long"
    if shortest is not None and len(value) < shortest:
        return f"value must be at least {shortest} characters long"
    maximum, minimum = prop.get("maximum"), prop.get("minimum")
    if (maximum is not None or minimum is not None) and _NUMBER.match(value):
        if maximum is not None and float(value) > float(maximum):
            return f"value must have a maximum value of {maximum}"
        if minimum is not None and float(value) < float(minimum):
            return f"value must have a minimum value of {minimum}"
    allowed = prop.get("enum")
    if allowed and value not in allowed:
        return (
            f"value '{value}' does not have a value in the enumeration"
            f" '{', '.join(map(str, allowed))}'"
        )
    return None
