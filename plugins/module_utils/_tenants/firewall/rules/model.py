# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A firewall rule, as a task declares it and as Proxmox VE stores it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

_NO_LOG = "nolog"
_NOT_SET = "-"


@dataclass(frozen=True)
class Rule:
    """One rule. A property with an empty text is not set."""

    type: str
    action: str
    enable: bool = True
    macro: str = ""
    iface: str = ""
    source: str = ""
    dest: str = ""
    proto: str = ""
    sport: str = ""
    dport: str = ""
    icmp_type: str = ""
    log: str = ""
    comment: str = ""

    @property
    def accepts(self) -> bool | None:
        """Whether the rule accepts its packets; None for a security group, which can do both."""
        if self.type == "group":
            return None
        return self.action == "ACCEPT"

    @property
    def effect(self) -> tuple[Any, ...]:
        """The part of the rule that decides about packets."""
        values = (getattr(self, name) for name in _MATCHING)
        action = self.action if self.type == "group" else self.accepts
        return (self.type, action, self.enable, *values)

    def as_data(self) -> dict[str, Any]:
        """Return the parameters of a request that creates the rule."""
        data: dict[str, Any] = {}
        for name, key in PROPERTIES.items():
            value = getattr(self, name)
            if name == "enable":
                data[key] = int(value)
            elif value:
                data[key] = value
        return data

    def as_view(self) -> dict[str, Any]:
        """Return the rule as a task declares it, without properties that are not set."""
        view: dict[str, Any] = {}
        for name in PROPERTIES:
            value = getattr(self, name)
            if value != "":
                view[name] = value
        return view

    def changes_to(self, goal: Rule) -> dict[str, Any]:
        """Return the parameters of a request that changes this rule to `goal`."""
        data: dict[str, Any] = {}
        removed: list[str] = []
        for name, key in PROPERTIES.items():
            value = getattr(goal, name)
            if value == getattr(self, name):
                continue
            if name == "enable":
                data[key] = int(value)
            elif value:
                data[key] = value
            else:
                removed.append(key)
        if removed:
            data["delete"] = ",".join(removed)
        return data

    def __str__(self) -> str:
        """Return the rule in one line, such as `in ACCEPT tcp dport 443 from 10.0.0.0/8`."""
        words = [self.type, self.action]
        words += [one for one in (self.macro, self.proto) if one]
        named = (
            ("dport", self.dport),
            ("sport", self.sport),
            ("type", self.icmp_type),
            ("from", self.source),
            ("to", self.dest),
            ("on", self.iface),
        )
        words += [f"{word} {value}" for word, value in named if value]
        if not self.enable:
            words.append("(disabled)")
        if self.comment:
            words.append(f"# {self.comment.strip()}")
        return " ".join(words)


_MATCHING = ("macro", "iface", "source", "dest", "proto", "sport", "dport", "icmp_type")
FIELDS = tuple(one.name for one in fields(Rule))
PROPERTIES = {name: name.replace("_", "-") for name in FIELDS}
"""The fields of a rule and their names in Proxmox VE."""


def rule_of_row(row: Mapping[str, Any]) -> Rule:
    """Return the rule in a row of PVE's answer."""
    values: dict[str, Any] = {}
    for name, key in PROPERTIES.items():
        value = row.get(key)
        if name == "enable":
            values[name] = bool(int(value or 0))
        elif value is not None:
            values[name] = str(value)
    return canonical(values)


def canonical(values: Mapping[str, Any]) -> Rule:
    """Return the rule with these properties as PVE keeps them (pve-firewall: Firewall.pm,
    copy_rule_data and parse_fw_rule).

    `log: nolog` is the default and counts as not set, as does a dash. Aliases are not
    case-sensitive.
    """
    texts = {name: value for name, value in values.items() if name in FIELDS and value is not None}
    for name in [name for name, value in texts.items() if value == _NOT_SET and name != "action"]:
        del texts[name]
    if texts.get("log") == _NO_LOG:
        del texts["log"]
    if "comment" in texts:
        texts["comment"] = kept_comment(texts["comment"])
    for name in ("source", "dest"):
        address = texts.get(name, "")
        if address[:1].isalpha() and ":" not in address:  # an alias
            texts[name] = address.lower()
    return Rule(**texts)


def kept_comment(text: object) -> str:
    """Return a comment as PVE keeps it: without blanks at its ends, and empty instead of C(0)
    (pve-firewall: Firewall.pm, format_rules and parse_fw_rule).
    """
    stripped = str(text or "").strip()
    return "" if stripped == "0" else stripped
