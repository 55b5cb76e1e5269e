# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks options against an argument specification, with one short cause for each mistake (pure).

Ansible checks the options of a task itself. If a mistake is in a list of dictionaries, it reports
neither the position nor the name of the item, and a role prints its whole specification. So the
items of such lists are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ansible.module_utils.common.validation import (
    check_type_bool,
    check_type_dict,
    check_type_float,
    check_type_int,
    check_type_list,
    check_type_path,
    check_type_str,
)
from ansible.module_utils.errors import AnsibleValidationError, UnsupportedError

from ..errors import ValidationFailed

Spec = Mapping[str, Mapping[str, Any]]
HINT = "did you mean"

_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "bool": check_type_bool,
    "dict": check_type_dict,
    "float": check_type_float,
    "int": check_type_int,
    "list": check_type_list,
    "path": check_type_path,
    "str": check_type_str,
}
_NUMBERS = ("float", "int")
_KINDS: Mapping[str, str] = {
    "bool": "true or false",
    "dict": "a dictionary",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "path": "a path",
    "str": "a text",
}
_TEXTS = ("str", "path")
# States by other names, in results, in PVE or in other collections.
_SYNONYMS: Mapping[str, str] = {
    "running": "started",
    "start": "started",
    "off": "stopped",
    "shutdown": "stopped",
    "poweroff": "stopped",
    "rebooted": "restarted",
    "reboot": "restarted",
    "suspended": "paused",
    "set": "present",
    "created": "present",
    "latest": "present",
    "deleted": "absent",
    "removed": "absent",
    "destroyed": "absent",
}
# Options by the names that Proxmox VE and its tools give them.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "privsep": ("privilege_separation",),
    "ports": ("bridge_ports", "ovs_ports"),
    "userid": ("owner",),
}
# Options of modules by the options of the connection that are mistaken for them.
_OF_CONNECTION: Mapping[str, tuple[str, ...]] = {
    "url": ("source_url", "webhook_url"),
    "password": ("user_password",),
    "user": ("owner",),
}
_CHOICES = re.compile(
    r"value of \S+ must be one of: (?P<choices>.*?), got: (?P<given>.*?)(?P<place> found in .*)?",
    re.DOTALL,
)
_UNSUPPORTED = re.compile(
    r"(?P<begin>Unsupported parameters for \([^)]*\) module: )(?P<names>.*?)\. Supported parameters"
    r" include: .*",
    re.DOTALL,
)
# Ansible's message about a value that is not a dictionary
# (ansible/module_utils/common/parameters.py).
_NOT_A_DICTIONARY = re.compile(
    r"(?P<item>Elements value for option|argument) '(?P<name>[^']*)'(?: found in '[^']*'\.?)?"
    r" is of type (?P<kind>.*?)(?: found in '[^']*'\.?)? and we were unable to convert to"
    r" (?:<class ')?dict\b.*",
    re.DOTALL,
)

# Ansible's message about a value that is not a list (the same file).
_NOT_A_LIST = re.compile(
    r"argument '(?P<name>[^']*)' is of type .*? and we were unable to convert to list\b.*",
    re.DOTALL,
)
# Ansible's message about a value that is not of a simple type (the same file).
_NOT_A_VALUE = re.compile(
    r"(?P<item>Elements value for option|argument) '(?P<name>[^']*)' is of type .*? and we were"
    r" unable to convert to (?:<class ')?(?P<kind>bool|float|int|path|str)\b.*",
    re.DOTALL,
)
# Messages in which Ansible repeats a refusal without the name of the option, or less precisely.
_REPEATED = re.compile(
    r"dictionary requested, could not parse JSON or key=value"
    r"|value of '[^']*' must be of type dict or list of dicts"
)


def parse_options(spec: Spec, given: Any, what: str = "") -> dict[str, Any]:
    """Return the options that are given, converted as Ansible converts them.

    Options that are not given are left out, unless they have a default. `what` is the name of the
    dictionary in the error. Raises ValidationFailed with all mistakes.
    """
    checker = _Checker()
    options = checker.options(spec, given, "")
    if checker.causes:
        causes = "; ".join(checker.causes)
        raise ValidationFailed(f"{what}: {causes}", reason=checker.reason)
    return options


def require_numbers(spec: Spec, options: Mapping[str, Any], path: str = "") -> None:
    """Raise ValidationFailed for a boolean in the place of a number, also in nested options: Ansible
    takes `cores: true` for 1.
    """
    for name in [name for name in spec if options.get(name) is not None]:
        rule, value, place = spec[name], options[name], f"{path}{name}"
        items = value if isinstance(value, list) else [value]
        if "int" in (rule.get("type"), rule.get("elements")):
            wrong = next((item for item in items if isinstance(item, bool)), None)
            if wrong is not None:
                answer = f"{place} was refused: {str(wrong).lower()} is a boolean, not a number"
                raise ValidationFailed(answer, f"Write {name} as a number", "wrong type")
        for item in items:
            if isinstance(item, dict):
                require_numbers(rule.get("options") or {}, item, f"{place}.")


def hidden_values(spec: Spec, given: Any) -> set[str]:
    """Return the secret values: all values of options with `no_log`, also nested options."""
    return set(_hidden(spec, given))


def every_refusal(errors: Iterable[AnsibleValidationError], module: str, spec: Spec) -> str:
    """Return one text for all mistakes that Ansible has found in the arguments of a task.

    Ansible itself reports only the first one.
    """
    texts: list[str] = []
    for error in errors:
        message = str(error.msg)
        if isinstance(error, UnsupportedError):
            message = f"Unsupported parameters for ({module}) module: {message}"
        texts.append(shorter_refusal(message, spec))
    if any(" was refused: " in text for text in texts):
        texts = [text for text in texts if not _REPEATED.fullmatch(text)]
    return "; ".join(dict.fromkeys(texts))


def shorter_refusal(message: str, spec: Spec) -> str:
    """Return a message of Ansible with a hint: for an unknown option a likely name instead of all
    names, for a value that is not a dictionary or a list the form to write, for another value of
    the wrong type this type in words, for an unknown value a likely value.
    """
    single = _NOT_A_LIST.match(message)
    if single is not None:
        name = single["name"]
        return f"{name} was refused: it is not a list. Write '{name}: [{_entry_of(name, spec)}]'."
    wrong = _NOT_A_DICTIONARY.match(message)
    if wrong is not None:
        name, is_list = wrong["name"], "list" in wrong["kind"]
        return _how_to_write(name, wrong["item"] == "argument", is_list, _entry_of(name, spec))
    other = _NOT_A_VALUE.match(message)
    if other is not None:
        subject = "it" if other["item"] == "argument" else "an item of the list"
        return f"{other['name']} was refused: {subject} is not {_KINDS[other['kind']]}."
    found = _UNSUPPORTED.match(message)
    if found is None:
        return f"{message}{_choice_hint(message)}"
    hints = [f"{name}{_hint(name, spec)}" for name in found["names"].split(", ")]
    return f"{found['begin']}{', '.join(hints)}. See ansible-doc for the options."


def _entry_of(name: str, spec: Spec) -> str:
    """Return a dictionary with the first keys of an option, in the form of messages."""
    rule = spec.get(name) or {}
    keys = list(rule.get("options") or ())[:2]
    if rule.get("elements") not in (None, "dict"):
        return "VALUE"
    return "{" + ", ".join(f"{key}: VALUE" for key in keys or ["KEY"]) + "}"


def _how_to_write(name: str, whole: bool, is_list: bool, entry: str) -> str:
    """Return how to write an option that is a dictionary (`whole`), or a list of dictionaries."""
    if not whole:
        return (
            f"{name} was refused: an item of the list is not a dictionary of options. Write each as"
            f" one, such as '{name}: [{{name: NAME}}]'."
        )
    if is_list:
        return (
            f"{name} was refused: it is a list, and a dictionary is needed. Write each entry under"
            f" its name, such as '{name}: {{NAME: {{...}}}}', instead of '- name: NAME'."
        )
    return f"{name} was refused: it is not a dictionary. Write '{name}: {entry}'."


def _choice_hint(message: str) -> str:
    found = _CHOICES.fullmatch(message)
    if found is None:
        return ""
    return _choice_meant(found["given"], found["choices"].split(", "))


def _choice_meant(given: str, choices: Iterable[str]) -> str:
    """Return the hint for an unknown value: the choice with its meaning, else a similar choice."""
    known = list(choices)
    meant = _SYNONYMS.get(given.lower())
    if meant in known:
        return f" (did you mean '{meant}'?)"
    return did_you_mean(given, known)


def _hint(dotted: str, spec: Spec) -> str:
    """Return the hint for an unknown option such as `cloud_init.usr`, empty if no name is close."""
    level = spec
    *above, name = dotted.split(".")
    for part in above:
        level = (level.get(part) or {}).get("options") or {}
    meant = [f"'{option}'" for option in _OPTIONS.get(name, ()) if option in level]
    if meant:
        return f" (did you mean {' or '.join(meant)}?)"
    return did_you_mean(name, level)


def mistaken_for_connection(spec: Spec, given: Mapping[str, Any]) -> str:
    """Return a sentence about an option of the connection that the task probably sets by mistake,
    or an empty text. A login has both a user and a password.
    """
    is_login = any(given.get(name) for name in ("user", "api_user")) and given.get("password")
    for option, names in _OF_CONNECTION.items():
        meant = next((name for name in names if name in spec), "")
        if given.get(option) and meant and not given.get(meant) and not is_login:
            return f"{option} belongs to the connection: did you mean {meant}?"
    return ""


class _Checker:
    """Converts options and collects their mistakes."""

    def __init__(self) -> None:
        self.causes: list[str] = []
        self.reason = ""

    def options(self, spec: Spec, given: Any, path: str) -> dict[str, Any]:
        """Return the options of one dictionary; `path` is its place, such as `nics[0].`."""
        try:
            entries: Mapping[str, Any] = check_type_dict(given)
        except (TypeError, ValueError):
            where = f"{path.rstrip('.')}: " if path else ""
            self._note("wrong type", f"{where}{given!r} is not a dictionary of options")
            return {}
        found: dict[str, Any] = {}
        for name, value in entries.items():
            if name in spec:
                found[name] = self._value(spec[name], value, f"{path}{name}")
            else:
                self._note("unknown option", _unknown(str(name), spec, path))
        self._complete(spec, found, path)
        return found

    def _complete(self, spec: Spec, found: dict[str, Any], path: str) -> None:
        for name, rule in spec.items():
            if found.get(name) is not None:
                continue
            if rule.get("required"):
                self._note("missing option", f"option '{path}{name}' is missing")
            elif rule.get("default") is not None:
                found[name] = rule["default"]

    def _value(self, rule: Mapping[str, Any], value: Any, path: str) -> Any:
        if value is None:
            return None
        kind = rule.get("type", "str")
        if kind == "dict" and rule.get("options"):
            return self.options(rule["options"], value, f"{path}.")
        converted = self._converted(rule, kind, value, path)
        if kind == "list" and isinstance(converted, list):
            return self._items(rule, converted, path)
        self._require_choice(rule, converted, path)
        return converted

    def _items(self, rule: Mapping[str, Any], items: list[Any], path: str) -> list[Any]:
        found: list[Any] = []
        for index, item in enumerate(items):
            where = f"{path}[{index}]"
            if rule.get("options"):
                found.append(self.options(rule["options"], item, f"{where}."))
                continue
            converted = self._converted(rule, rule.get("elements", "raw"), item, where)
            self._require_choice(rule, converted, where)
            found.append(converted)
        return found

    def _converted(self, rule: Mapping[str, Any], kind: str, value: Any, path: str) -> Any:
        if kind == "raw":
            return value
        try:
            if kind in _TEXTS and isinstance(value, (list, Mapping)):
                raise TypeError
            if kind in _NUMBERS and isinstance(value, bool):  # `cores: yes` would be 1
                raise TypeError
            return _CONVERTERS[kind](value)
        except (TypeError, ValueError):
            formatted = "the value" if rule.get("no_log") else repr(value)
            self._note("wrong type", f"{path}: {formatted} is not {_KINDS[kind]}")
            return None

    def _require_choice(self, rule: Mapping[str, Any], value: Any, path: str) -> None:
        choices = rule.get("choices")
        if choices and value is not None and value not in choices:
            known = ", ".join(str(choice) for choice in choices if choice != "")
            hint = _choice_meant(str(value), map(str, choices))
            self._note("unknown value", f"{path}: {value!r} is not one of {known}{hint}")

    def _note(self, reason: str, cause: str) -> None:
        self.causes.append(cause)
        self.reason = self.reason or reason


def _unknown(name: str, spec: Spec, path: str) -> str:
    return f"unknown option '{path}{name}'{did_you_mean(name, spec)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the most similar name as a hint after a message, or an empty text."""
    close = nearest(name, known)
    return f" ({HINT} '{close}'?)" if close else ""


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return the most similar name, an empty text if none is similar. Case does not count."""
    by_lower = {other.lower(): other for other in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=alike)
    return by_lower[close[0]] if close else ""


def _hidden(spec: Spec, given: Any) -> Iterator[str]:
    try:
        entries: Mapping[str, Any] = check_type_dict(given)
    except (TypeError, ValueError):
        return
    for name, value in entries.items():
        rule = spec.get(name)
        if rule is None or value is None:
            continue
        if rule.get("no_log"):
            yield from _texts(value)
        elif rule.get("options"):
            for item in value if isinstance(value, list) else [value]:
                yield from _hidden(rule["options"], item)


def _texts(value: Any) -> Iterator[str]:
    """Return every text within a value: Ansible masks texts."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)
    elif value not in ("", None):
        yield str(value)
