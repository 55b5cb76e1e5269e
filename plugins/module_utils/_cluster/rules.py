# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option O(placement): which nodes come into question, and how one of them is chosen (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .._core import validate
from .._core.quantities import MIB, parse_size
from .picture import VmRow

_BY_NAME = "name:"


@dataclass(frozen=True)
class Match:
    """Other VMs, by a tag or by a pattern for their name."""

    text: str

    @property
    def by_name(self) -> bool:
        return self.text.startswith(_BY_NAME)

    def fits(self, row: VmRow) -> bool:
        """Tell whether a VM is meant. Tags are matched whole, names by a shell pattern; both exactly otherwise."""
        if self.by_name:
            return fnmatchcase(row.name, self.text[len(_BY_NAME) :])
        return self.text in {tag.lower() for tag in row.tags}


@dataclass(frozen=True)
class Rules:
    """What is asked of the choice of a node. Sizes in bytes; None and empty ask for nothing."""

    nodes: tuple[str, ...] = ()
    exclude: frozenset[str] = frozenset()
    strategy: str = "least_used"
    seed: str = ""
    max_vms: int | None = None
    min_free_memory: int | None = None
    cpu_overcommit: float | None = None
    memory_overcommit: float | None = None
    affinity: tuple[Match, ...] = ()
    anti_affinity: tuple[Match, ...] = ()
    required: bool = True  # whether affinity and anti-affinity must hold, or are only preferred
    given: bool = False  # whether the task says anything at all

    @property
    def needs_names(self) -> bool:
        return any(match.by_name for match in (*self.affinity, *self.anti_affinity))


def read_rules(options: Mapping[str, Any] | None) -> Rules:
    """Return the rules that the option says. Raises ValidationFailed."""
    given = {key: value for key, value in (options or {}).items() if value is not None}
    free = given.get("min_free_memory")
    most = given.get("max_vms_per_node")
    return Rules(
        nodes=tuple(dict.fromkeys(validate.node(name, "placement.nodes") for name in given.get("nodes") or ())),
        exclude=frozenset(validate.node(name, "placement.exclude") for name in given.get("exclude") or ()),
        strategy=given.get("strategy") or "least_used",
        seed=str(given.get("seed") or ""),
        max_vms=None if most is None else validate.number(most, 1, 100000, "placement.max_vms_per_node"),
        min_free_memory=None if free is None else parse_size(free, bare=MIB, what="placement.min_free_memory"),
        cpu_overcommit=ratio(given.get("cpu_overcommit"), "placement.cpu_overcommit"),
        memory_overcommit=ratio(given.get("memory_overcommit"), "placement.memory_overcommit"),
        affinity=_matches(given, "affinity"),
        anti_affinity=_matches(given, "anti_affinity"),
        required=given.get("affinity_policy") != "preferred",
        given=bool(options),
    )


def ratio(value: float | None, what: str) -> float | None:
    """Return how much of a node may be given away, 1.0 for all it has, or None. Raises ValidationFailed."""
    if value is None:
        return None
    if not 0 < value <= 1000:
        raise validate.refused(what, value, "is no ratio", "Give a number such as 1.5")
    return float(value)


def _matches(given: Mapping[str, Any], key: str) -> tuple[Match, ...]:
    found: list[Match] = []
    for text in given.get(key) or ():
        if text.startswith(_BY_NAME):
            if len(text) == len(_BY_NAME):
                raise validate.refused(f"placement.{key}", text, "names nothing", "Write it as name:db-*")
            found.append(Match(text))
        else:
            found.append(Match(validate.tag(text, f"placement.{key}")))
    return tuple(found)
