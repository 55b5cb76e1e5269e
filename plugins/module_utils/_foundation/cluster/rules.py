# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option O(placement): the eligible nodes, and the rules to choose one of them (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ..core import validate
from ..core.arguments.options import did_you_mean
from ..core.quantities import MIB, parse_size
from .state import VmRow

if TYPE_CHECKING:
    from ..api.settings import ConnectionSettings

_BY_NAME = "name:"
# How many times its free bytes a thin storage may allocate to new disks.
STORAGE_OVERCOMMIT = 10.0


@dataclass(frozen=True)
class VmSelector:
    """Other VMs, by a tag or by a pattern for their name."""

    text: str

    @property
    def by_name(self) -> bool:
        return self.text.startswith(_BY_NAME)

    def fits(self, row: VmRow) -> bool:
        """Return whether a VM matches: one of its tags exactly, or its name by a shell pattern."""
        return self.fits_any([(row.name, row.tags)])

    def fits_any(self, vms: Iterable[tuple[str, Collection[str]]]) -> bool:
        """Return whether one of the VMs matches, each with its name and tags."""
        if self.by_name:
            return any(fnmatchcase(name, self.text[len(_BY_NAME) :]) for name, _tags in vms)
        return any(self.text in {tag.lower() for tag in tags} for _name, tags in vms)


@dataclass(frozen=True)
class PlacementRules:
    """The rules of placement. Sizes in bytes; None and empty set no rule."""

    nodes: tuple[str, ...] = ()
    exclude: frozenset[str] = frozenset()
    strategy: str = "least_used"
    seed: str = ""
    max_vms: int | None = None
    max_vms_by_node: Mapping[str, int] = field(default_factory=dict, hash=False)
    min_free_memory: int | None = None
    cpu_overcommit: float | None = None
    memory_overcommit: float | None = None
    storage_overcommit: float = STORAGE_OVERCOMMIT
    affinity: tuple[VmSelector, ...] = ()
    anti_affinity: tuple[VmSelector, ...] = ()
    required: bool = True  # whether affinity and anti-affinity are required or only preferred
    keep: bool | None = None  # whether HA rules keep affinity and anti-affinity
    given: bool = False  # whether the task has any rule
    own: tuple[str, ...] = ()  # the nodes that the site uses; empty for all
    site: str = ""

    def max_on(self, node: str) -> int | None:
        """Return the maximum of VMs on a node, or None."""
        return self.max_vms_by_node.get(node, self.max_vms)

    @property
    def counts_vms(self) -> bool:
        return self.max_vms is not None or bool(self.max_vms_by_node)

    @property
    def needs_names(self) -> bool:
        return any(match.by_name for match in (*self.affinity, *self.anti_affinity))


def read_rules(options: Mapping[str, Any] | None) -> PlacementRules:
    """Return the rules of the option. Raises ValidationFailed."""
    given = {key: value for key, value in (options or {}).items() if value is not None}
    nodes = [validate.node(name, "placement.nodes") for name in given.get("nodes", ())]
    exclude = [validate.node(name, "placement.exclude") for name in given.get("exclude", ())]
    max_vms, max_vms_by_node = read_max_vms(
        given.get("max_vms_per_node"), "placement.max_vms_per_node"
    )
    min_free_memory = given.get("min_free_memory")
    if min_free_memory is not None:
        what = "placement.min_free_memory"
        min_free_memory = parse_size(min_free_memory, bare=MIB, what=what)
    storage_overcommit = _ratio_of(given, "storage_overcommit")
    return PlacementRules(
        nodes=tuple(dict.fromkeys(nodes)),
        exclude=frozenset(exclude),
        strategy=given.get("strategy") or "least_used",
        seed=str(given.get("seed") or ""),
        max_vms=max_vms,
        max_vms_by_node=max_vms_by_node,
        min_free_memory=min_free_memory,
        cpu_overcommit=_ratio_of(given, "cpu_overcommit"),
        storage_overcommit=storage_overcommit or STORAGE_OVERCOMMIT,
        memory_overcommit=_ratio_of(given, "memory_overcommit"),
        affinity=read_selectors(given, "affinity"),
        anti_affinity=read_selectors(given, "anti_affinity"),
        required=given.get("affinity_policy") != "preferred",
        keep=_keep_of(given),
        given=bool(options),
    )


def _keep_of(given: Mapping[str, Any]) -> bool | None:
    """Return C(keep). Raises ValidationFailed for a preference, which HA rules do not have."""
    keep: bool | None = given.get("keep")
    if keep and given.get("affinity_policy") == "preferred":
        raise validate.refused(
            "placement.keep",
            keep,
            "cannot hold for a preference: HA rules are always required",
            "Set affinity_policy: required, or leave out keep",
        )
    return keep


def find_unmatched(
    rules: PlacementRules, rows: Collection[VmRow], name: str, tags: Collection[str]
) -> tuple[str, ...]:
    """Return a warning about each entry of affinity and anti-affinity that matches neither one of
    the VMs nor the new VM itself, with its name and tags (pure).
    """
    known = {tag.lower() for row in rows for tag in row.tags}
    warnings: list[str] = []
    for option, selectors in (("affinity", rules.affinity), ("anti_affinity", rules.anti_affinity)):
        for selector in selectors:
            if selector.fits_any([(row.name, row.tags) for row in rows] + [(name, tags)]):
                continue
            hint = "" if selector.by_name else did_you_mean(selector.text, known)
            warnings.append(f"placement.{option}: no VM matches '{selector.text}'{hint}")
    return tuple(warnings)


def require_not_kept(rules: PlacementRules, what: str) -> None:
    """Raise ValidationFailed if HA rules must keep the placement of a single guest."""
    if rules.keep is not None:
        raise validate.refused(
            "placement.keep",
            rules.keep,
            f"is not an option of {what}: HA rules follow from all guests of an estate",
            "List the guests in pve.fleet.vms, or manage the rules with pve.fleet.ha_rule",
        )


def _ratio_of(given: Mapping[str, Any], key: str) -> float | None:
    return ratio(given.get(key), f"placement.{key}")


def with_site(rules: PlacementRules, connection: ConnectionSettings) -> PlacementRules:
    """Return the rules with the nodes of the site, and with its limits if the task has none."""
    if not rules.counts_vms and connection.max_vms_per_node is not None:
        max_vms, max_vms_by_node = read_max_vms(
            connection.max_vms_per_node, f"max_vms_per_node of site {connection.site}"
        )
        rules = replace(rules, max_vms=max_vms, max_vms_by_node=max_vms_by_node)
    return replace(
        rules, own=connection.own_nodes, site=connection.site, given=rules.given or rules.counts_vms
    )


def read_max_vms(value: Any, what: str) -> tuple[int | None, dict[str, int]]:
    """Return the maximum of VMs on any node, or by node; other nodes have no limit."""
    if value is None or value == {}:
        return None, {}
    if not isinstance(value, Mapping):
        return _count(value, 1, what), {}
    by_node: dict[str, int] = {}
    for name, maximum in value.items():
        node = validate.node(str(name), what)
        by_node[node] = _count(maximum, 0, f"{what}.{node}")
    return None, by_node


def _count(value: Any, minimum: int, what: str) -> int:
    if isinstance(value, bool) or not re.fullmatch("[0-9]+", str(value)):
        step = "Give a number, or a map of nodes to numbers"
        raise validate.refused(what, value, "is not a number of VMs", step)
    return validate.number(int(value), minimum, 100000, what)


def ratio(value: float | None, what: str) -> float | None:
    """Return the share of a node that may be allocated, 1.0 for all. Raises ValidationFailed."""
    if value is None:
        return None
    if not 0 < value <= 1000:
        raise validate.refused(what, value, "is not a ratio", "Give a number such as 1.5")
    return float(value)


def read_selectors(
    given: Mapping[str, Any], key: str, option: str = "placement"
) -> tuple[VmSelector, ...]:
    """Return the other VMs that a key of the option names. Raises ValidationFailed."""
    found: list[VmSelector] = []
    for text in given.get(key) or ():
        if text == _BY_NAME:
            step = "Write it as name:db-*"
            raise validate.refused(f"{option}.{key}", text, "names nothing", step)
        if text.startswith(_BY_NAME):
            found.append(VmSelector(text))
            continue
        tag = validate.tag(text, f"{option}.{key}")
        found.append(VmSelector(tag))
    return tuple(found)
