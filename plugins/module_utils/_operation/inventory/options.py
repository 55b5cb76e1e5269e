# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the inventory itself, from its file, ansible.cfg and the environment (pure)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..._foundation.cluster.tenant import PREFIX, blank_owner, is_blank
from ..._foundation.core.errors import ConfigurationError
from ..._foundation.core.formatting import formatted
from ..._guests.kinds.addresses import FAMILIES, AddressRule, parse_subnets
from ..._guests.kinds.words import GUESTS
from .compatible import COMMUNITY_PROXMOX
from .details import DETAILS, FetchLimits
from .hosts import GROUP_KINDS, GuestFilter
from .kinds import KINDS

# Option -> environment variable. An empty value means unset, except for tenant, tenants and prefix.
ENVIRONMENT: Mapping[str, str] = {
    "tenant": "PROXMOX_TENANT",
    "tenants": "PROXMOX_TENANTS",
    "tenant_prefix": "PROXMOX_TENANT_PREFIX",
    "kinds": "PROXMOX_INVENTORY_KINDS",
    "nodes": "PROXMOX_INVENTORY_NODES",
    "pools": "PROXMOX_INVENTORY_POOLS",
    "statuses": "PROXMOX_INVENTORY_STATUSES",
    "tags": "PROXMOX_INVENTORY_TAGS",
    "templates": "PROXMOX_INVENTORY_TEMPLATES",
    "group_by": "PROXMOX_INVENTORY_GROUP_BY",
    "compatible_with": "PROXMOX_INVENTORY_COMPATIBLE_WITH",
    "hostnames": "PROXMOX_INVENTORY_HOSTNAMES",
    "fetch": "PROXMOX_INVENTORY_FETCH",
    "fetch_workers": "PROXMOX_INVENTORY_FETCH_WORKERS",
    "fetch_timeout": "PROXMOX_INVENTORY_FETCH_TIMEOUT",
    "fetch_deadline": "PROXMOX_INVENTORY_FETCH_DEADLINE",
    "fetch_max_age": "PROXMOX_INVENTORY_FETCH_MAX_AGE",
    "address_family": "PROXMOX_INVENTORY_ADDRESS_FAMILY",
    "address_nics": "PROXMOX_INVENTORY_ADDRESS_NICS",
    "address_subnets": "PROXMOX_INVENTORY_ADDRESS_SUBNETS",
    "dead_site": "PROXMOX_INVENTORY_DEAD_SITE",
    "stale": "PROXMOX_INVENTORY_STALE",
    "filters": "PROXMOX_INVENTORY_FILTERS",
    "ansible_host": "PROXMOX_INVENTORY_ANSIBLE_HOST",
    "guest_connections": "PROXMOX_INVENTORY_GUEST_CONNECTIONS",
    "strict": "PROXMOX_INVENTORY_STRICT",
    "compose": "PROXMOX_INVENTORY_COMPOSE",
    "groups": "PROXMOX_INVENTORY_GROUPS",
    "keyed_groups": "PROXMOX_INVENTORY_KEYED_GROUPS",
    "leading_separator": "PROXMOX_INVENTORY_LEADING_SEPARATOR",
}
ADDRESS = "proxmox_address | default('')"  # the default of `ansible_host`
_TENANT = re.compile(r"^[a-z0-9_\-+.]+\Z")
_PREFIX = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*\Z")
_LOOKUP = re.compile(r"\b(?:lookup|query|q)\s*\(")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
# The name of each structure in messages, and its allowed types.
_STRUCTURES: Mapping[type, tuple[str, Any]] = {
    dict: ("dictionary", Mapping),
    list: ("list", (list, tuple)),
}


Value = TypeVar("Value")
Trust = Callable[[Value], Value]
"""Marks a text from the environment so that Ansible reads it as an expression."""


@dataclass(frozen=True)
class JinjaExpressions:
    """The Jinja options: constructed groups and variables, the filters, and `ansible_host`."""

    filters: tuple[str, ...] = ()
    ansible_host: str = ADDRESS
    strict: bool = False
    compose: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    keyed_groups: Sequence[Any] = ()
    leading_separator: bool = True

    @property
    def filters_use_lookups(self) -> bool:
        """Whether a filter reads more than options, such as an environment variable.

        If so, the chosen VMs cannot be shown later from a cache: the filter might choose others.
        """
        return any(_LOOKUP.search(one) for one in self.filters)


@dataclass(frozen=True)
class InventoryOptions:
    """The options of the inventory, validated."""

    choice: GuestFilter
    tenant_prefix: str
    group_by: tuple[str, ...]
    hostnames: tuple[str, ...]
    fetch: tuple[str, ...]
    limits: FetchLimits
    addresses: AddressRule
    dead_site: str
    stale: str
    expressions: JinjaExpressions
    compatible_with: str = ""
    kinds: tuple[str, ...] = tuple(GUESTS)
    guest_connections: bool = False


def read_options(
    get: Callable[[str], Any], environ: Mapping[str, str], trust: Trust[Any] = lambda value: value
) -> InventoryOptions:
    """Return the options. Raises ConfigurationError.

    `get` returns the value in the file or ansible.cfg, or None; `trust` marks a text of the
    environment so that Ansible reads it as an expression.
    """
    reader = _OptionReader(get, environ, trust)
    group_by = reader.several("group_by", GROUP_KINDS)
    return InventoryOptions(
        choice=GuestFilter(
            tenants=_tenants(reader),
            nodes=reader.several("nodes"),
            pools=reader.several("pools"),
            statuses=reader.several("statuses"),
            tags=_lower(reader.several("tags")),
            templates=reader.flag("templates", True),
        ),
        tenant_prefix=_prefix(reader),
        group_by=GROUP_KINDS if group_by is None else group_by,
        hostnames=reader.expressions("hostnames", ",") or ("name",),
        fetch=reader.several("fetch", DETAILS) or (),
        limits=FetchLimits(
            workers=int(reader.number("fetch_workers", 10, 1, 100)),
            call=reader.number("fetch_timeout", 5.0, 0.1, 3600.0),
            whole=reader.number("fetch_deadline", 120.0, 0.0, 86400.0),
            max_age=reader.number("fetch_max_age", 3600.0, 0.0, 31536000.0),
        ),
        addresses=AddressRule(
            family=reader.one_of("address_family", FAMILIES, "ipv4"),
            nics=reader.several("address_nics") or (),
            subnets=parse_subnets(reader.several("address_subnets") or ()),
        ),
        dead_site=reader.one_of("dead_site", ("fail", "report"), "fail"),
        stale=reader.one_of("stale", ("refuse", "allow"), "refuse"),
        expressions=_expressions(reader),
        compatible_with=reader.one_of("compatible_with", (COMMUNITY_PROXMOX,), ""),
        kinds=_kinds(reader),
        guest_connections=reader.flag("guest_connections", False),
    )


def _kinds(reader: _OptionReader) -> tuple[str, ...]:
    """Return the kinds of hosts. An empty list is refused: it could mean none or all."""
    kinds = reader.several("kinds", KINDS)
    if kinds is None:
        return tuple(GUESTS)
    if not kinds:
        raise wrong("kinds is an empty list", "Name a kind, or leave kinds out for all guests")
    return kinds


def _expressions(reader: _OptionReader) -> JinjaExpressions:
    host, where = reader.raw("ansible_host", empty=True)
    return JinjaExpressions(
        filters=reader.expressions("filters"),
        ansible_host=host if where else ADDRESS,
        strict=reader.flag("strict", False),
        compose=reader.structure("compose", dict),
        groups=reader.structure("groups", dict),
        keyed_groups=reader.structure("keyed_groups", list),
        leading_separator=reader.flag("leading_separator", True),
    )


class _OptionReader:
    """The values by name, with their place for messages; an empty value counts as not set."""

    def __init__(
        self, get: Callable[[str], Any], environ: Mapping[str, str], trust: Trust[Any]
    ) -> None:
        self._get = get
        self._environ = environ
        self._trust = trust

    def raw(self, name: str, *, empty: bool = False) -> tuple[Any, str]:
        """Return the value and its place, or (None, ""); with `empty` an empty text counts."""
        value = self._get(name)
        is_empty = isinstance(value, str) and not value.strip()
        if value is not None and (empty or not is_empty):
            return value, f"option {name}"
        variable = ENVIRONMENT[name]
        text = self._environ.get(variable, "").strip()
        return (self._trust(text), variable) if text else (None, "")

    def owner(self, name: str) -> str:
        """Return an option that names the owner of the shown VMs, empty if it is not set.

        Raises ValidationFailed if it is set to a blank value: every tenant's VMs would be shown.
        """
        self.require_named(name)
        return self.text(name)

    def require_named(self, name: str) -> None:
        """Raise ValidationFailed if the option or, without it, its variable is blank."""
        value = self._get(name)
        if value is not None:
            if isinstance(value, str) and is_blank(value):
                raise blank_owner(name)
            return
        variable = ENVIRONMENT[name]
        if is_blank(self._environ.get(variable, PREFIX)):
            raise blank_owner(name, variable)

    def expressions(self, name: str, separator: str = "") -> tuple[str, ...]:
        """Return the list of expressions.

        A text is a JSON list, one expression, or several with the separator. An expression in the
        file is not changed: since ansible-core 2.19 its text has a mark that makes it an
        expression.
        """
        value, where = self.raw(name)
        if isinstance(value, str):
            if value.lstrip().startswith("["):
                value = self.structure(name, list)
            elif separator:
                value = [self._trust(part.strip()) for part in value.split(separator)]
        if isinstance(value, Mapping):
            raise wrong(f"{where} is not a list", "Write a list of expressions")
        if not isinstance(value, (list, tuple)):
            value = [value]
        return _texts(value)

    def structure(self, name: str, kind: type) -> Any:
        """Return the dictionary or list, empty if it is not set; a text is read as JSON."""
        value, where = self.raw(name)
        if not where:
            return kind()
        word, types = _STRUCTURES[kind]
        if isinstance(value, str):
            try:
                value = self._trust(json.loads(value))
            except ValueError as error:
                raise wrong(f"{where} is not JSON ({error})", f"Write a {word} as JSON") from None
        if not isinstance(value, types):
            raise wrong(f"{where} is not a {word}", f"Write a {word}")
        return value

    def text(self, name: str) -> str:
        return str(self.raw(name)[0] or "").strip()

    def several(self, name: str, allowed: Sequence[str] = ()) -> tuple[str, ...] | None:
        """Return the list, or None if it is not set; a text is JSON or separated by commas."""
        value, where = self.raw(name)
        if not where:
            return None
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = self.structure(name, list)
        if isinstance(value, str):
            value = re.split(r"[,\s]+", value)
        if not isinstance(value, (list, tuple)):
            value = [value]
        found = _texts(value)
        if not allowed:
            return found
        for text in found:
            if text not in allowed:
                raise wrong(f"{where} holds {formatted(text)}", f"Use {', '.join(allowed)}")
        return found

    def one_of(self, name: str, allowed: Sequence[str], default: str) -> str:
        value, where = self.raw(name)
        if not where:
            return default
        if str(value) not in allowed:
            raise wrong(f"{where} is {formatted(value)}", f"Use {' or '.join(allowed)}")
        return str(value)

    def flag(self, name: str, default: bool) -> bool:
        value, where = self.raw(name)
        if not where:
            return default
        word = str(value).strip().lower()
        if word not in _TRUE + _FALSE:
            answer = f"{where} is {formatted(value)}, which is neither true nor false"
            raise wrong(answer, "Write true or false")
        return word in _TRUE

    def number(self, name: str, default: float, minimum: float, maximum: float) -> float:
        value, where = self.raw(name)
        if not where:
            return default
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not minimum <= number <= maximum:
            limits = f"from {minimum:g} to {maximum:g}"
            answer = f"{where} is {formatted(value)}, which is not a number {limits}"
            raise wrong(answer, "Correct it")
        return number


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the values as texts, without values that are None or blank.

    A text is returned as the same object, with the marks that Ansible gave it.
    """
    texts: list[str] = []
    for value in values:
        text = value if isinstance(value, str) else str(value)
        if value is not None and text.strip():
            texts.append(text)
    return tuple(texts)


def wrong(answer: str, next_step: str) -> ConfigurationError:
    """Return the error for an option of the inventory."""
    return ConfigurationError(
        f"Could not read the options of the inventory: {answer}", next_step, "malformed option"
    )


def require_known_options(given: Collection[str], known: Collection[str]) -> None:
    """Raise ConfigurationError for an unknown option: a misspelt tenant would show every VM."""
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(str(name), list(known), 1)
        step = f"Did you mean '{near[0]}'?" if near else "Remove it"
        raise wrong(f"there is no option {name!r}", step)


def _tenants(reader: _OptionReader) -> tuple[str, ...] | None:
    """Return the tenants that may be shown. An empty list is refused: it could mean none or all."""
    one = reader.owner("tenant")
    reader.require_named("tenants")
    several = reader.several("tenants")
    if several is None and not one:
        return None
    if several is None:
        tenants: tuple[str, ...] = (one,)
    elif not several:
        step = "Name a tenant, or leave tenants out to see every VM"
        raise wrong("tenants is an empty list", step)
    elif one:
        raise wrong("both tenant and tenants are given", "Give one of them")
    else:
        tenants = several
    for tenant in tenants:
        if not _TENANT.match(tenant):
            step = "Write it as in the tag: lower-case letters, digits and any of _ - + ."
            raise wrong(f"{tenant!r} cannot be a tenant", step)
    return tenants


def _prefix(reader: _OptionReader) -> str:
    prefix = reader.owner("tenant_prefix") or PREFIX
    if not _PREFIX.match(prefix):
        step = "Write it as a tag begins: lower-case letters, digits, _ - + ."
        raise wrong(f"tenant_prefix is {prefix!r}", step)
    return prefix


def _lower(tags: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return each tag in its own spelling and in lower case, without duplicates."""
    if tags is None:
        return None
    spellings: dict[str, None] = {}
    for tag in tags:
        spellings[tag] = None
        spellings[tag.lower()] = None
    return tuple(spellings)
