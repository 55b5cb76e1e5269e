# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of the cluster's property strings, and their values after a task (pure).

Names, ranges and enumerations come from pve-cluster: DataCenterConfig.pm.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.core import propstring, validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.resource.table import DesiredResource, Field

Version = tuple[int, int]
Values = Mapping[str, str]
"""A property string by the keys of PVE; keys without a SubKey are kept unchanged."""

_COLOUR = re.compile(r"[0-9a-fA-F]{6}(?::[0-9a-fA-F]{6})?")
_WHOLE, _DECIMAL = re.compile(r"[0-9]+"), re.compile(r"[0-9]+(?:\.[0-9]+)?")
_EXACT_TAG = re.compile(r"[a-z0-9_][a-z0-9_\-+.]*", re.IGNORECASE)


def replaced(_known: str, wanted: str, _desired: DesiredResource) -> str:
    """Return the wanted text, which replaces the known text of a key."""
    return wanted


def in_any_order(value: Any) -> str:
    """Return a value as a text; the items of a list, or of a list in a text, are sorted."""
    items = value if isinstance(value, list) else str(value).split(";")
    return ";".join(sorted(propstring.plain_address(str(one)) for one in items))


@dataclass(frozen=True)
class SubKey:
    """One key of a property string, under the name of a sub-option.

    `want` returns the text of the sub-option's value or raises ValidationFailed, and `read` the text
    of the value in an answer. An empty text removes the key. `since` has the versions that
    introduced the key (C("")) or one of its values. A key that `needs` another key is refused
    without it.
    """

    option: str
    key: str
    want: Callable[[Any, str], str]
    show: Callable[[str], Any] = str
    default: str = ""
    merge: Callable[[str, str, DesiredResource], str] = replaced
    since: Mapping[str, Version] = field(default_factory=dict)
    needs: str = ""
    read: Callable[[Any], str] = in_any_order

    def since_value(self, text: str) -> Version:
        """Return the first version with this key and value; every version can remove the key."""
        oldest = (0, 0)
        if not text:
            return oldest
        return max(self.since.get("", oldest), self.since.get(text, oldest))


@dataclass(frozen=True)
class PropertyString:
    """The keys of one property string; PVE requires the `required` key if the string is set."""

    option: str
    sub_keys: tuple[SubKey, ...]
    required: SubKey | None = None

    def sub_key(self, key: str) -> SubKey:
        """Return the sub-key with that name."""
        return next(sub_key for sub_key in self.sub_keys if sub_key.key == key)

    @property
    def format(self) -> propstring.Format:
        """The keys as in the API schema; the name of the required key may be left out."""
        return {sub_key.key: {"default_key": sub_key is self.required} for sub_key in self.sub_keys}

    def as_field(self, **more: Any) -> Field:
        """Return the field of a table with this property string."""
        return Field(
            self.option,
            self.option.replace("_", "-"),
            want=self.want,
            read=self.read,
            send=self.send,
            show=self.show,
            merge=self.merge,
            **more,
        )

    def want(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of the sub-options, by key. Raises ValidationFailed."""
        return {
            sub_key.key: sub_key.want(options[sub_key.option], f"{self.option}.{sub_key.option}")
            for sub_key in self.sub_keys
            if options.get(sub_key.option) is not None
        }

    def read(self, value: Any) -> dict[str, str]:
        """Return the keys in an answer, in which some properties are texts and others objects."""
        if not value:
            return {}
        if not isinstance(value, Mapping):
            value = propstring.parse(str(value), self.format, what=self.option)
        readers = {sub_key.key: sub_key.read for sub_key in self.sub_keys}
        return {key: readers.get(key, in_any_order)(one) for key, one in value.items()}

    def merge(self, known: Values, wanted: Values, desired: DesiredResource) -> dict[str, str]:
        """Return the keys after a task, which keeps the keys that it does not name."""
        found = dict(known)
        for sub_key in self.sub_keys:
            if sub_key.key in wanted:
                found[sub_key.key] = sub_key.merge(
                    known.get(sub_key.key, ""), wanted[sub_key.key], desired
                )
        found = {key: text for key, text in found.items() if text}
        if found and self.required is not None:
            found.setdefault(self.required.key, self.required.default)
        return found

    def send(self, values: Values) -> str | None:
        """Return the property string, or None if it has no keys."""
        if not values:
            return None
        return ",".join(f"{key}={values[key]}" for key in sorted(values))

    def show(self, values: Values) -> dict[str, Any]:
        """Return the sub-options, with the default of PVE for keys that are not set."""
        return {
            sub_key.option: sub_key.show(values.get(sub_key.key, sub_key.default))
            for sub_key in self.sub_keys
        }


# Values

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")


def one_of(*words: str) -> Callable[[Any, str], str]:
    """Return a function that accepts one of these words, or an empty text."""

    def want(value: Any, what: str) -> str:
        text = str(value).strip()
        if text and text not in words:
            raise validate.refused(
                what, text, "is not a value of it", f"Use one of {', '.join(words)}"
            )
        return text

    return want


def flag(value: Any, what: str) -> str:
    """Return a boolean as PVE writes it."""
    text = propstring.canonical(value, {"type": "boolean"})
    if text not in ("", "0", "1"):
        raise validate.refused(what, value, "is not a boolean", "Use true or false")
    return text


def number(
    minimum: int, maximum: float = math.inf, *, whole: bool = False
) -> Callable[[Any, str], str]:
    """Return a function that accepts a number within these bounds, or an empty text."""
    pattern = _WHOLE if whole else _DECIMAL
    next_step = f"Use a number from {minimum} to {maximum}"
    if maximum == math.inf:
        next_step = f"Use a number, {minimum} or more"

    def want(value: Any, what: str) -> str:
        text = str(value).strip()
        if not text:
            return ""
        if not pattern.fullmatch(text):
            raise validate.refused(what, text, "is not a number of it", next_step)
        if not minimum <= float(text) <= maximum:
            raise validate.refused(what, text, "is out of range", next_step)
        return propstring.plain_number(text)

    return want


def show_number(text: str) -> int | float | str | None:
    """Return a number in the form of a result, None for an empty text, other texts unchanged."""
    if not _NUMBER.fullmatch(text):
        return text or None
    value = float(text)
    return int(value) if value.is_integer() else value


def show_flag(text: str) -> bool | None:
    """Return a boolean in the form of a result, None for an empty text."""
    return text == "1" if text else None


def show_text(text: str) -> str | None:
    """Return a text in the form of a result, None for an empty text."""
    return text or None


def network(value: Any, what: str) -> str:
    """Return a network as PVE accepts it: an address with a prefix (JSONSchema.pm, CIDR)."""
    text = str(value).strip()
    if not text:
        return ""
    next_step = "Write it as 10.1.0.0/24"
    if "/" not in text:
        raise validate.refused(what, text, "has no prefix", next_step)
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise validate.refused(what, text, "is not a network", next_step) from None
    return propstring.plain_address(text)


# Tags and their colours


def exact_tag(value: Any, what: str) -> str:
    """Return a tag in its own spelling: here PVE distinguishes upper case from lower case."""
    text = str(value).strip()
    if not _EXACT_TAG.fullmatch(text):
        raise validate.refused(
            what, text, "is not a tag", "Use letters, digits and _, then also - + and dots"
        )
    return text


def tags(value: Any, what: str) -> str:
    """Return tags in the form of a property string."""
    return ";".join(sorted({exact_tag(one, what) for one in value}))


def split(text: str) -> frozenset[str]:
    """Return the items of a text, separated by semicolons."""
    return frozenset(one for one in text.split(";") if one)


def merged_set(
    known: Collection[str], wanted: Collection[str], desired: DesiredResource
) -> frozenset[str]:
    """Return a set after a task: with the listed values, without them, or exactly these."""
    if not desired.present:
        return frozenset(known) - frozenset(wanted)
    if desired.exact:
        return frozenset(wanted)
    return frozenset(known) | frozenset(wanted)


def merge_tags(known: str, wanted: str, desired: DesiredResource) -> str:
    """Return the tags after a task in the form of a property string."""
    return ";".join(sorted(merged_set(split(known), split(wanted), desired)))


def colours(value: Mapping[str, Any], what: str) -> str:
    """Return the colours of tags in PVE's form: tag, colour of the background and colour of the
    text, such as C(web:ff0000:ffffff). An entry without a colour removes the tag's colours.
    """
    found: list[str] = []
    for name, given in sorted(value.items()):
        tag = exact_tag(name, what)
        colour = "" if given is None else str(given).strip().lstrip("#")
        if colour and not _COLOUR.fullmatch(colour):
            raise validate.refused(
                what,
                given,
                f"is not a colour (tag {tag})",
                "Write it as ff0000, or as ff0000:ffffff with the colour of the text",
            )
        found.append(f"{tag}:{colour}")
    return ";".join(found)


def split_colours(text: str) -> dict[str, str]:
    """Return the colours by tag."""
    pairs = [one.partition(":") for one in text.split(";") if one]
    return {tag: colour for tag, _colon, colour in pairs}


def merge_colours(known: str, wanted: str, desired: DesiredResource) -> str:
    """Return the colours after a task."""
    before, listed = split_colours(known), split_colours(wanted)
    all_colours = {**listed, **before}
    for tag, colour in listed.items():
        if colour.lower() != all_colours[tag].lower():
            all_colours[tag] = colour
    found = [
        f"{tag}:{all_colours[tag]}"
        for tag in merged_set(before.keys(), listed.keys(), desired)
        if all_colours[tag]
    ]
    return ";".join(sorted(found))


def require_order(lower: str, upper: str, attempted: str) -> None:
    """Raise ValidationFailed if a range ends before it begins (write_datacenter_config)."""
    if int(lower) > int(upper):
        raise ValidationFailed(
            f"{attempted}: next_id would begin at {lower} and end at {upper}",
            "Set next_id.lower and next_id.upper so that the range is not empty",
            "next_id",
        )
