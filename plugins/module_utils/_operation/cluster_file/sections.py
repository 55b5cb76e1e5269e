# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A section of a cluster file: resources of one kind (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.core.arguments.options import Spec
from ..._foundation.core.result import Result
from ..._foundation.resource.table import Table, Values
from ..._infrastructure.datacenter.ha.placement import marked_tenant
from ..._tenants.access.role import is_built_in
from .planned import RowEdit

Run = Callable[[dict[str, Any], Client, bool], Result]
Keys = Mapping[str, str]
Options = Mapping[str, Any]


def as_declared(items: Iterable[Options]) -> list[tuple[str, Options]]:
    """Return each item as a whole, in the order of the file."""
    return [("", item) for item in items]


def edits_of_account(item: Options) -> list[RowEdit]:
    """Return the edit for an ACME account, which the settings of a node can name."""
    row: dict[str, Any] | None = None if item.get("state") == "absent" else {}
    return [RowEdit(("cluster", "acme", "account"), {"name": str(item["name"])}, row)]


def no_edits(_item: Options) -> list[RowEdit]:
    """Return no edits: the item changes nothing that the checks of other items read."""
    return []


@dataclass(frozen=True, eq=False)
class Section:
    """Resources of one kind: an item has the options of the module, and `run` is its work.

    `keys` are the options that name a resource. With a `table` the resources are listed, with one
    request for each of `groups`; without a table each item is read. `listed` are the options in an
    incomplete listing. A `built_in` resource is not removed. A resource that is declared
    `elsewhere`, for example in an estate, is neither exported nor removed. `secret` is the name of
    a secret of each resource that Proxmox VE returns only once.
    """

    name: str
    spec: Callable[[], Spec]
    run: Run
    keys: tuple[str, ...]
    table: Table | None = None
    groups: tuple[Keys, ...] = ({},)
    listed: frozenset[str] = frozenset()
    built_in: Callable[[Keys], bool] = lambda _keys: False
    fixed: bool = False  # whether built-in resources cannot be changed
    elsewhere: Callable[[Values], bool] = lambda _values: False
    secret: str = ""
    arranged: Callable[[Iterable[Options]], list[tuple[str, Options]]] = as_declared
    edits: Callable[[Options], list[RowEdit]] = no_edits

    @property
    def can_be_exact(self) -> bool:
        """Whether resources that are not declared can be removed."""
        return self.table is not None and not self.table.permanent


def of_table(name: str, spec: Callable[[], Spec], run: Run, table: Table, **more: Any) -> Section:
    """Return a section whose resources are listed by a table."""
    return Section(name, spec, run, tuple(key.option for key in table.keys), table, **more)


def named(*names: str) -> Callable[[Keys], bool]:
    """Return the check whether a resource has one of these names."""
    return lambda keys: keys["name"] in names


def is_built_in_role(keys: Keys) -> bool:
    """Return whether Proxmox VE has a role of this name itself."""
    return is_built_in(keys["name"])


def is_placement(values: Values) -> bool:
    """Return whether an estate has created a rule or an HA resource to keep its placement."""
    return marked_tenant(values["comment"]) is not None
