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

from .._cluster.tenant import PREFIX
from .._core.errors import ConfigurationError
from .._vm.addresses import FAMILIES, AddressRule, parse_subnets
from .details import DETAILS, Limits
from .hosts import GROUP_KINDS, Choice

# Option -> name in the environment. An empty value means unset.
ENVIRONMENT: Mapping[str, str] = {
    "tenant": "PROXMOX_TENANT",
    "tenants": "PROXMOX_TENANTS",
    "tenant_prefix": "PROXMOX_TENANT_PREFIX",
    "nodes": "PROXMOX_INVENTORY_NODES",
    "pools": "PROXMOX_INVENTORY_POOLS",
    "statuses": "PROXMOX_INVENTORY_STATUSES",
    "tags": "PROXMOX_INVENTORY_TAGS",
    "templates": "PROXMOX_INVENTORY_TEMPLATES",
    "group_by": "PROXMOX_INVENTORY_GROUP_BY",
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
    "strict": "PROXMOX_INVENTORY_STRICT",
    "compose": "PROXMOX_INVENTORY_COMPOSE",
    "groups": "PROXMOX_INVENTORY_GROUPS",
    "keyed_groups": "PROXMOX_INVENTORY_KEYED_GROUPS",
    "leading_separator": "PROXMOX_INVENTORY_LEADING_SEPARATOR",
}
ADDRESS = "proxmox_address | default('')"  # what `ansible_host` is without the option
_TENANT = re.compile(r"^[a-z0-9_\-+.]+$")
_PREFIX = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*$")
_LOOKUP = re.compile(r"\b(?:lookup|query|q)\s*\(")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


Value = TypeVar("Value")
Trust = Callable[[Value], Value]
"""Returns a text from the environment so that Ansible reads it as an expression."""


@dataclass(frozen=True)
class Expressions:
    """Everything that is Jinja: the options of a constructed inventory, the filters, and `ansible_host`."""

    filters: tuple[str, ...] = ()
    ansible_host: str = ADDRESS
    strict: bool = False
    compose: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    keyed_groups: Sequence[Any] = ()
    leading_separator: bool = True

    @property
    def filters_look_elsewhere(self) -> bool:
        """Whether a filter asks something that is no option, such as a variable of the environment.

        What was chosen by it may not be shown later, because nobody knows what it would choose then.
        """
        return any(_LOOKUP.search(one) for one in self.filters)


@dataclass(frozen=True)
class InventoryOptions:
    """What the user wants of the inventory, checked."""

    choice: Choice
    tenant_prefix: str
    group_by: tuple[str, ...]
    hostnames: tuple[str, ...]
    fetch: tuple[str, ...]
    limits: Limits
    addresses: AddressRule
    dead_site: str
    stale: str
    expressions: Expressions


def read_options(
    get: Callable[[str], Any], environ: Mapping[str, str], trust: Trust[Any] = lambda value: value
) -> InventoryOptions:
    """Return the options; `get` returns what the file or ansible.cfg says, or None. Raises ConfigurationError."""
    reader = _Reader(get, environ, trust)
    return InventoryOptions(
        choice=Choice(
            tenants=_tenants(reader),
            nodes=reader.several("nodes"),
            pools=reader.several("pools"),
            statuses=reader.several("statuses"),
            tags=_lower(reader.several("tags")),
            templates=reader.flag("templates", True),
        ),
        tenant_prefix=_prefix(reader),
        group_by=reader.several("group_by", GROUP_KINDS) or _all_unless_empty(reader, "group_by", GROUP_KINDS),
        hostnames=reader.expressions("hostnames", ",") or ("name",),
        fetch=reader.several("fetch", DETAILS) or (),
        limits=Limits(
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
    )


def _expressions(reader: _Reader) -> Expressions:
    host, where = reader.raw("ansible_host", empty=True)
    return Expressions(
        filters=reader.expressions("filters"),
        ansible_host=host if where else ADDRESS,
        strict=reader.flag("strict", False),
        compose=reader.structure("compose", dict),
        groups=reader.structure("groups", dict),
        keyed_groups=reader.structure("keyed_groups", list),
        leading_separator=reader.flag("leading_separator", True),
    )


class _Reader:
    """Values by name, with their source for messages; an empty value is no value."""

    def __init__(self, get: Callable[[str], Any], environ: Mapping[str, str], trust: Trust[Any]) -> None:
        self._get = get
        self._environ = environ
        self._trust = trust

    def raw(self, name: str, *, empty: bool = False) -> tuple[Any, str]:
        """Return the value and where it stands, or (None, ""); `empty` says that an empty text of the file counts."""
        value = self._get(name)
        if value is not None and (empty or not (isinstance(value, str) and not value.strip())):
            return value, f"option {name}"
        variable = ENVIRONMENT[name]
        text = self._environ.get(variable, "").strip()
        return (self._trust(text), variable) if text else (None, "")

    def expressions(self, name: str, separator: str = "") -> tuple[str, ...]:
        """Return the list of expressions; a text is a JSON list, or one expression, or several with the separator.

        An expression of the file is left as it is: on ansible-core 2.19 it carries the mark that makes it one.
        """
        value, where = self.raw(name)
        if isinstance(value, str):
            if value.lstrip().startswith("["):
                value = self.structure(name, list)
            elif separator:
                value = [self._trust(part.strip()) for part in value.split(separator)]
        if isinstance(value, Mapping):
            raise wrong(f"{where} is no list", "Write a list of expressions")
        found = value if isinstance(value, (list, tuple)) else [value]
        return tuple(one if isinstance(one, str) else str(one) for one in found if one is not None and str(one).strip())

    def structure(self, name: str, kind: type) -> Any:
        """Return the dictionary or list, which is JSON where it is a text, or an empty one when it is not set."""
        value, where = self.raw(name)
        if not where:
            return kind()
        word = "dictionary" if kind is dict else "list"
        if isinstance(value, str):
            try:
                value = self._trust(json.loads(value))
            except ValueError as error:
                raise wrong(f"{where} is no JSON ({error})", f"Write a {word} as JSON") from None
        if not isinstance(value, Mapping if kind is dict else (list, tuple)):
            raise wrong(f"{where} is no {word}", f"Write a {word}")
        return value

    def text(self, name: str) -> str:
        return str(self.raw(name)[0] or "").strip()

    def several(self, name: str, allowed: Sequence[str] = ()) -> tuple[str, ...] | None:
        """Return the list, which a text separates by commas or has as JSON, or None when it is not set."""
        value, where = self.raw(name)
        if not where:
            return None
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = self.structure(name, list)
        parts = re.split(r"[,\s]+", value) if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)):
            parts = [parts]
        texts = [part if isinstance(part, str) else str(part) for part in parts if part is not None]
        found = tuple(text for text in texts if text.strip())
        for part in found:
            if allowed and part not in allowed:
                raise wrong(f"{where} holds {part!r}", f"Use {', '.join(allowed)}")
        return found

    def one_of(self, name: str, allowed: Sequence[str], default: str) -> str:
        value, where = self.raw(name)
        if not where:
            return default
        if str(value) not in allowed:
            raise wrong(f"{where} is {value!r}", f"Use {' or '.join(allowed)}")
        return str(value)

    def flag(self, name: str, default: bool) -> bool:
        value, where = self.raw(name)
        if not where:
            return default
        word = str(value).strip().lower()
        if word not in _TRUE + _FALSE:
            raise wrong(f"{where} is {value!r}, which is neither true nor false", "Write true or false")
        return word in _TRUE

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value, where = self.raw(name)
        if not where:
            return default
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not least <= number <= most:
            raise wrong(f"{where} is {value!r}, which is no number from {least:g} to {most:g}", "Correct it")
        return number


def wrong(answer: str, next_step: str) -> ConfigurationError:
    """Return the error for an option of the inventory."""
    return ConfigurationError(
        attempted="Could not read the options of the inventory",
        answer=answer,
        next_step=next_step,
        reason="malformed option",
        dispatched=False,
    )


def check_names(given: Collection[str], known: Collection[str]) -> None:
    """Raise ConfigurationError for an option that does not exist: a misspelt tenant would show every VM."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), list(known), 1)
            raise wrong(f"there is no option {name!r}", f"Did you mean {near[0]}" if near else "Remove it")


def _tenants(reader: _Reader) -> tuple[str, ...] | None:
    """Return the tenants that may be shown. An empty list is refused: it could mean none as well as all."""
    one = reader.text("tenant")
    several = reader.several("tenants")
    if several is not None and not several:
        raise wrong("tenants is an empty list", "Name a tenant, or leave tenants out to see every VM")
    if one and several is not None:
        raise wrong("both tenant and tenants are given", "Give one of them")
    tenants = (one,) if one else several
    for tenant in tenants or ():
        if not _TENANT.match(tenant):
            raise wrong(
                f"{tenant!r} cannot be a tenant",
                "Write it as in the tag: lower-case letters, digits and any of _ - + .",
            )
    return tenants


def _prefix(reader: _Reader) -> str:
    prefix = reader.text("tenant_prefix") or PREFIX
    if not _PREFIX.match(prefix):
        raise wrong(f"tenant_prefix is {prefix!r}", "Write it as a tag begins: lower-case letters, digits, _ - + .")
    return prefix


def _lower(tags: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if tags is None else tuple(dict.fromkeys(spelling for tag in tags for spelling in (tag, tag.lower())))


def _all_unless_empty(reader: _Reader, name: str, everything: tuple[str, ...]) -> tuple[str, ...]:
    """Return everything when the option is not set, and nothing for an empty list."""
    return everything if reader.several(name) is None else ()
