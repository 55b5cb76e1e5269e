# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant as a task describes it, with the names of its objects (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.cluster.quota import Limits, read_limits
from ..._foundation.cluster.tenant import PREFIX, tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.marks import with_mark
from ..._foundation.resource.values import expiry
from .network.model import TenantNetworking, read_networking
from .rights import KINDS

# A tenant's name is part of a tag, a role, a user and a file.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,31}")
# The comment of a token that was created for a tenant contains its creation day.
DAY = 86400
_MAX_DAYS = 3650
_USUAL_LIFE = 90
_TOKEN_MARK = re.compile(r"created (\d{4}-\d\d-\d\d)")
_USUAL_TOKEN = "fleet"
_USUAL = {"operations": ["read", "operate", "provision", "snapshot"]}  # as in module tenant
# Options of module tenant that an estate sets next to `access`.
_OF_ESTATE = ("comment", "pool", "quota", "allow_privileged", "networks", "isolation", "peers")
_VNET = re.compile(r"[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){1,2}")


@dataclass(frozen=True)
class Tenant:
    """A tenant and its rights; `registered` is whether its tag is a registered tag."""

    name: str
    prefix: str
    pool: str
    comment: str | None
    operations: tuple[str, ...]
    templates: tuple[str, ...]
    storages: tuple[str, ...]
    image_storages: tuple[str, ...]
    bridges: tuple[str, ...]
    nodes: tuple[str, ...]
    user: str
    group: str | None
    members: tuple[str, ...]
    token: str
    expire: str | None
    token_life: int
    registered: bool
    quota: Limits | None
    allow_privileged: bool = True
    names_owner: bool = False  # whether the task names the user
    names_token: bool = False  # whether the task names the token
    adopt: bool = False
    allow_self: bool = False
    networking: TenantNetworking | None = None  # None if the task describes no networks

    @property
    def vnets(self) -> tuple[str, ...]:
        """Its own VNets as ZONE/VNET."""
        if self.networking is None:
            return ()
        return tuple(network.path for network in self.networking.wanted)

    @property
    def tag(self) -> str:
        """The tag of its VMs."""
        return tenant_tag(self.name, self.prefix)

    @property
    def mark(self) -> str:
        """The comment on a pool, user or group that was created for it."""
        return self.marked(f"Tenant {self.name}")

    @property
    def has_usual_user(self) -> bool:
        """Whether its user has the default name."""
        return self.user == _usual_user(self.tag)

    @property
    def label(self) -> str:
        return f"tenant '{self.name}'"

    @property
    def roles(self) -> dict[str, str]:
        """The names of its roles, by suffix."""
        return {suffix: f"{self.tag}{suffix}" for suffix in KINDS}

    @property
    def subject(self) -> tuple[str, str]:
        """The user or group that gets the roles: kind and name."""
        return ("group", self.group) if self.group else ("user", self.user)

    @property
    def tokens(self) -> tuple[str, str]:
        """The two names of its token: a rotation switches from one to the other."""
        return (self.token, f"{self.token}-2")

    @property
    def never_expires(self) -> bool:
        """Whether the task sets that its token never expires."""
        return self.expire is not None and expiry("expire")(self.expire) == 0

    def new_expiry(self, now: float) -> str:
        """Return the expiry of a token that is created now, in seconds since 1970.

        Without O(expire), that is the first midnight in UTC after O(token_life) days.
        """
        if self.expire is not None:
            return str(expiry("expire")(self.expire))
        return str((int(now // DAY) + self.token_life + 1) * DAY)

    def marked(self, text: object) -> str:
        """Return a comment with the mark of the tenant."""
        return with_mark(text, self.tag)

    def is_noted(self, comment: object) -> bool:
        """Return whether a comment has the form of earlier versions, which set no mark."""
        start, _comma, _rest = str(comment).partition(", created ")
        return start == f"Tenant {self.name}"


def creation_day(token: Mapping[str, Any]) -> str | None:
    """Return the day (YYYY-MM-DD) on which a token was created, None if its comment lacks it.

    Proxmox VE does not keep it; module tenant writes it into the comment.
    """
    found = _TOKEN_MARK.search(str(token.get("comment") or ""))
    return None if found is None else found[1]


def read_tenant(params: Mapping[str, Any]) -> Tenant:
    """Return the tenant that the options describe. Raises ValidationFailed."""
    name = str(params["name"]).strip()
    if not _NAME.fullmatch(name):
        step = "Use letters, digits, _ and -, 32 characters at most"
        raise validate.refused("name", name, "is not the name of a tenant", step)
    prefix = params.get("tenant_prefix") or PREFIX
    tag = validate.role(validate.tag(tenant_tag(name, prefix), "name"), "name")
    group, days = params.get("group"), params.get("token_life")
    operations = tuple(dict.fromkeys(params.get("operations") or ()))
    return Tenant(
        name=name,
        prefix=prefix,
        pool=validate.pool(params.get("pool") or name),
        comment=params.get("comment"),
        operations=operations,
        templates=tuple(dict.fromkeys(map(str, params.get("templates") or ()))),
        storages=_checked(params, "storages", validate.storage),
        image_storages=_checked(params, "image_storages", validate.storage),
        bridges=_checked(params, "bridges", _bridge),
        nodes=_checked(params, "nodes", validate.node),
        user=validate.user(params.get("owner") or _usual_user(tag), "owner"),
        group=validate.group(group) if group else None,
        members=_members(params),
        token=validate.token_name(params.get("token") or _USUAL_TOKEN, "token"),
        expire=params.get("expire"),
        token_life=_USUAL_LIFE
        if days is None
        else validate.number(int(days), 1, _MAX_DAYS, "token_life"),
        registered=_is_registered(params, operations),
        quota=read_limits({"tenant": name, "quota": params.get("quota"), "tenant_prefix": prefix}),
        allow_privileged=params.get("allow_privileged") is not False,
        names_owner=bool(params.get("owner")),
        names_token=bool(params.get("token")),
        adopt=bool(params.get("adopt")),
        allow_self=bool(params.get("allow_self")),
        networking=read_networking(params, tenant_tag(name, prefix), prefix),
    )


def described_tenant(name: str, settings: Mapping[str, Any], prefix: str) -> Tenant:
    """Return a tenant as an estate describes it. Raises ValidationFailed."""
    options = {**_USUAL, **(settings.get("access") or {})}
    for option in _OF_ESTATE:
        options[option] = settings.get(option)
    return read_tenant({**options, "name": name, "tenant_prefix": prefix})


def _usual_user(tag: str) -> str:
    return f"{tag}@pve"


def _checked(params: Mapping[str, Any], option: str, check: Any) -> tuple[str, ...]:
    """Return the values of an option, each once. Raises ValidationFailed for an invalid value."""
    values = params.get(option) or ()
    checked = [check(str(value), option) for value in values]
    return tuple(dict.fromkeys(checked))


def _bridge(value: str, what: str) -> str:
    if _VNET.fullmatch(value):
        return value
    return validate.bridge(value, what)


def _members(params: Mapping[str, Any]) -> tuple[str, ...]:
    members = _checked(params, "members", validate.user)
    if members and not params.get("group"):
        raise ValidationFailed(
            "members was refused: the members of a tenant are the users of its group, and no "
            "group is given",
            "Set group too",
            "members",
        )
    return members


def _is_registered(params: Mapping[str, Any], operations: Iterable[str]) -> bool:
    """Return whether the tag is registered: only a user with Sys.Modify on / can set and remove it.

    A tenant that creates VMs sets its tag on them, so the tag cannot be registered (qemu-server:
    PVE/API2/Qemu.pm, assert_tag_permissions in PVE/GuestHelpers.pm).
    """
    provisions = "provision" in operations
    given = params.get("registered_tag")
    if given is None:
        return not provisions
    if given and provisions:
        raise ValidationFailed(
            "registered_tag was refused: only a user with Sys.Modify on / can set a registered "
            "tag, so the tenant could not create VMs with it",
            "Leave out registered_tag, or the operation provision",
            "registered_tag",
        )
    return bool(given)
