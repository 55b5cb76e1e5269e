# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of values in answers: each returns a value with the type that the rest of the code expects,
or raises `WrongForm` (pure).

PVE is written in Perl, whose JSON can contain the same figure as a number in one answer and as a
text in the next. A form always returns one of the two. It returns None for a value that counts as
missing, and keeps unknown keys: a newer version may have more keys.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Form = Callable[[Any], Any]

Test = Callable[[Any], object]
"""Returns whether a form leaves a value of a known class unchanged."""

# PVE's integers have 64 bits. The last moment is the end of the year 9999.
_BITS = 2**63
_LAST_MOMENT = 253402300799
_WORDS = {
    str: "a text",
    bool: "a flag",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


class WrongForm(ValueError):
    """A value in the wrong form; `place` are the keys and indices that lead to the value."""

    def __init__(self, problem: str, place: tuple[str | int, ...] = ()) -> None:
        self.problem = problem
        self.place = place
        super().__init__(problem)

    def within(self, key: str | int) -> WrongForm:
        """Return the same error with its place extended by the key or index of the containing
        object or list.
        """
        return WrongForm(self.problem, (key, *self.place))

    def __str__(self) -> str:
        names = [f"row {key + 1}" if isinstance(key, int) else key[:64] for key in self.place]
        return f"{' of '.join(reversed(names)) or 'it'} {self.problem}"


def _unlike(expected: str, value: Any) -> WrongForm:
    found = _WORDS.get(value.__class__, "null")
    if found == expected:
        return WrongForm(f"is not possible for {expected}")
    return WrongForm(f"is {found}, not {expected}")


def unchanged(value: Any) -> Any:
    """Return any value without a change."""
    return value


def text(value: Any) -> str:
    """Return a text; Perl may print a text of digits, such as the name 100, as a number."""
    if value.__class__ is str:
        return value
    if value.__class__ is bool:
        return str(int(value))
    if value.__class__ in (int, float):
        return str(value)
    raise _unlike("a text", value)


_TESTS: dict[Form, dict[type, Test]] = {}
"""The test of a value by its form and its class."""


def like(pattern: str, what: str) -> Form:
    """Return the form of a text or number whose text must match; the value is not converted."""
    compiled = re.compile(pattern, re.DOTALL)

    def read(value: Any) -> Any:
        if value.__class__ in (str, int) and compiled.fullmatch(str(value)):
            return value
        raise WrongForm(f"is not {what}")

    _TESTS[read] = {str: compiled.fullmatch}
    return read


count = like("[0-9]{0,18}", "a whole number")
memory = like("(?:(?:current=)?[0-9]{1,18}(?:,.*)?)?", "an amount of memory")
_option = like("[A-Za-z0-9_-]{1,64}", "the name of an option")
retention = like("([a-z-]+=[0-9]{1,18}(,|$))*", "a rule for old backups")
position = like("[0-9]{1,18}", "a position")
rule_type = like("in|out|forward|group", "the type of a rule")
properties = like("[^=,]+=[^,]*(,[^=,]+=[^,]*)*", "a list of properties")
task_id = like("(UPID:.*)?", "the ID of a task")


def option_name(value: Any) -> str:
    """Return the name of an option, which Perl may print as a number."""
    return str(_option(value))


def scalar(value: Any) -> Any:
    """Return a text or a number without a change."""
    if value.__class__ in (str, int, bool) or _is_finite(value):
        return value
    raise _unlike("a text", value)


def number(value: Any) -> int | float | None:
    """Return a number within PVE's range."""
    if value.__class__ is int and -_BITS <= value < _BITS:
        return value
    if value.__class__ is str:
        return _read_number(value)
    if value.__class__ is bool:
        return int(value)
    if _is_finite(value) and -_BITS <= value < _BITS:
        return value
    raise _unlike("a number", value)


def _is_finite(value: Any) -> bool:
    return value.__class__ is float and math.isfinite(value)


def _read_number(value: str) -> int | float | None:
    if not value:
        return None
    if len(value) > 40 or not value.isascii():
        raise _unlike("a number", value)
    for kind in (int, float):
        try:
            return number(kind(value))
        except ValueError:
            continue
    raise _unlike("a number", value)


def whole(value: Any) -> int | None:
    """Return a whole number, such as bytes, seconds or a count."""
    if value.__class__ is int and -_BITS <= value < _BITS:
        return value
    found = number(value)
    return None if found is None else int(found)


def vmid(value: Any) -> int:
    """Return a VMID."""
    found = number(value)
    if found is None or found != int(found) or found < 1:
        raise WrongForm("is not the number of a guest")
    return int(found)


def flag(value: Any) -> int | None:
    """Return 1 or 0."""
    found = number(value)
    if found in (0, 1, None):
        return found if found is None else int(found)
    raise WrongForm("is not 0 or 1")


def moment(value: Any) -> int | None:
    """Return seconds since the epoch."""
    found = whole(value)
    if found is None or 0 <= found <= _LAST_MOMENT:
        return found
    raise WrongForm("is not a time")


def name(value: Any) -> str:
    """Return a text that is not empty."""
    found = text(value)
    if not found:
        raise WrongForm("is empty")
    return found


def network(value: Any) -> str:
    """Return an IP network in CIDR notation, or an empty text."""
    found = text(value)
    try:
        ipaddress.ip_network(found or "::/0", strict=False)
    except ValueError:
        raise WrongForm("is not an IP network") from None
    return found


def address(value: Any) -> str:
    """Return an IP address, or an empty text."""
    found = text(value)
    try:
        ipaddress.ip_address(found or "::")
    except ValueError:
        raise WrongForm("is not an IP address") from None
    return found


def subnet(value: Any) -> str:
    """Return the ID of an SDN subnet: zone, address and prefix length, joined by dashes."""
    found = text(value)
    parts = found.split("-", 2)
    if len(parts) < 3:
        raise WrongForm("is not the ID of a subnet")
    network("/".join(parts[1:]))
    return found


_is_whole = range(-_BITS, _BITS).__contains__


def _always(_value: Any) -> bool:
    return True


def _never(_value: Any) -> bool:
    return False


_TESTS.update(
    {
        text: {str: _always},
        scalar: {str: _always, int: _always, bool: _always},
        whole: {int: _is_whole},
        number: {int: _is_whole, float: lambda value: -_BITS <= value < _BITS},
        vmid: {int: range(1, _BITS).__contains__},
        flag: {int: range(2).__contains__},
        moment: {int: range(_LAST_MOMENT + 1).__contains__},
        name: {str: bool},
        option_name: _TESTS[_option],
    }
)
_SHAPES = 200  # of one form; a cluster has fewer


class ObjectForm:
    """The form of an object whose keys have their own forms; the `needed` keys are required.

    A key with null counts as missing. The rows of a listing have few shapes: keys, and the classes
    of their values. The tests of each shape are chosen once, and a row that passes them is returned
    unchanged. Only other rows are converted, field by field.
    """

    def __init__(self, needed: Mapping[str, Form], fields: Mapping[str, Form]) -> None:
        self._needed = needed
        self._forms = {**fields, **needed}
        self._tests: dict[tuple[Any, ...], list[tuple[str, Test]]] = {}

    def __call__(self, value: Any) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise _unlike("an object", value)
        shape = (*value, *map(type, value.values()))
        tests = self._tests.get(shape)
        if tests is None:
            tests = self._tests_of(value)
            if len(self._tests) < _SHAPES:
                self._tests[shape] = tests
        if all(test(value.get(key)) for key, test in tests):
            return value
        return self._converted(value)

    def _tests_of(self, value: dict[str, Any]) -> list[tuple[str, Test]]:
        """Return the tests of all objects that have the shape of this one."""
        tests: list[tuple[str, Test]] = []
        tests += [(key, _never) for key in self._needed if key not in value]
        for key in self._forms.keys() & value.keys():
            known = _TESTS.get(self._forms[key], {})
            tests.append((key, known.get(value[key].__class__, _never)))
        return [(key, test) for key, test in tests if test is not _always]

    def _converted(self, value: dict[str, Any]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for key, item in value.items():
            form = self._forms.get(key, unchanged)
            try:
                found = None if item is None else form(item)
            except WrongForm as error:
                raise error.within(key) from None
            if found is not None or key not in self._forms:
                converted[key] = found
        for key in self._needed:
            if key not in converted:
                raise WrongForm("is missing", (key,))
        return converted


class OptionForm(ObjectForm):
    """The form of a row that names an option in `key`; its values have the form of that option."""

    def __init__(
        self, key: Form, known: Mapping[str, Form], form: Form, kept_in: tuple[str, ...]
    ) -> None:
        super().__init__({"key": key}, {"delete": whole})
        self._by_key = {
            key: ObjectForm({}, dict.fromkeys(kept_in, one)) for key, one in known.items()
        }
        self._usual = ObjectForm({}, dict.fromkeys(kept_in, form))

    def __call__(self, value: Any) -> dict[str, Any]:
        row = super().__call__(value)
        return self._by_key.get(row["key"], self._usual)(row)


class TypeForm:
    """The form of rows whose `type` names their kind."""

    def __init__(self, **records: ObjectForm) -> None:
        self._records = records
        self._any = ObjectForm({"type": name}, {})

    def __call__(self, value: Any) -> dict[str, Any]:
        row = self._any(value)
        return self._records.get(row["type"], self._any)(row)


def each(form: Form, names: str) -> dict[str, Form]:
    """Return the same form for each of the names."""
    return dict.fromkeys(names.split(), form)


def rows(form: Form) -> Form:
    """Return the form of a list; null does not count as an empty list."""

    def read(value: Any) -> list[Any]:
        if value.__class__ is not list:
            raise _unlike("a list", value)
        found: list[Any] = []
        try:
            for row in value:
                found.append(form(row))
        except WrongForm as error:
            raise error.within(len(found)) from None
        return found

    return read


def values(form: Form, known: Mapping[str, Form] | None = None, key: Form = unchanged) -> Form:
    """Return the form of an object whose values all have one form, except the `known` ones, and
    whose keys all have one form.

    Perl's JSON can contain an empty list in place of an object without keys.
    """
    forms = known or {}

    def read(value: Any) -> dict[str, Any]:
        if value == []:
            return {}
        if value.__class__ is not dict:
            raise _unlike("an object", value)
        found = {}
        for name_, one in value.items():
            try:
                key(name_)
                typed = None if one is None else forms.get(name_, form)(one)
            except WrongForm as error:
                raise error.within(name_) from None
            if typed is not None:
                found[name_] = typed
        return found

    return read


def either(form: Form, other: Form, kind: type = list) -> Form:
    """Return the form of an answer that has `form` if it is a list (or another `kind`), otherwise
    `other`.
    """

    def read(value: Any) -> Any:
        return form(value) if value.__class__ is kind else other(value)

    return read


def optional(form: Form) -> Form:
    """Return the form of an answer that may be null."""

    def read(value: Any) -> Any:
        return None if value is None else form(value)

    return read


def bucket(value: Any) -> dict[str, Any]:
    """Return a bucket of the CRUSH map or an OSD, with its children."""
    return _BUCKET(value)


_BUCKET = ObjectForm(
    {},
    {
        **each(whole, "id in total_space bytes_used"),
        **each(text, "name type host status device_class ceph_version_short"),
        "children": rows(bucket),
    },
)
