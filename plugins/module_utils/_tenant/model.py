# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant as a task describes it, with the names of what belongs to it (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._cluster.quota import Limits, read_limits
from .._cluster.tenant import PREFIX, tenant_tag
from .._core import validate
from .._core.errors import ValidationFailed
from .rights import KINDS

# A tenant's name is part of a tag, a role, a user and a file.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,31}")
# What the comment of a token that was made for a tenant says of its age.
_TOKEN_MARK = re.compile(r"created (\d{4}-\d\d-\d\d)")
_VNET = re.compile(r"[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){1,2}")


@dataclass(frozen=True)
class Tenant:
    """What a tenant is and may do. `registered` is None where the operations decide it."""

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
    registered: bool
    quota: Limits | None

    @property
    def tag(self) -> str:
        """The tag of its VMs."""
        return tenant_tag(self.name, self.prefix)

    @property
    def mark(self) -> str:
        """How the comment of a user, group or token begins that was made for it."""
        return f"Tenant {self.name}"

    @property
    def label(self) -> str:
        return f"tenant '{self.name}'"

    @property
    def roles(self) -> dict[str, str]:
        """The name of each of its roles by its suffix."""
        return {suffix: f"{self.tag}{suffix}" for suffix in KINDS}

    @property
    def subject(self) -> tuple[str, str]:
        """Who gets the roles: kind and name."""
        return ("group", self.group) if self.group else ("user", self.user)

    @property
    def tokens(self) -> tuple[str, str]:
        """The names of its token, of which one is in use: a rotation changes to the other."""
        return (self.token, f"{self.token}-2")

    def is_marked(self, comment: object) -> bool:
        """Return whether a user, group or token with this comment was made for the tenant."""
        text = str(comment or "")
        begins_with_mark = text.startswith((f"{self.mark},", f"{self.mark}:"))
        return begins_with_mark or text == self.mark


def creation_day(token: Mapping[str, Any]) -> str | None:
    """Return the day (YYYY-MM-DD) on which a token was created, None where its comment lacks it.

    Proxmox VE does not keep it; module tenant writes it into the comment.
    """
    found = _TOKEN_MARK.search(str(token.get("comment") or ""))
    if found is None:
        return None
    return found[1]


def read_tenant(params: Mapping[str, Any]) -> Tenant:
    """Return the tenant that the options describe. Raises ValidationFailed."""
    name = str(params["name"]).strip()
    if not _NAME.fullmatch(name):
        step = "Use letters, digits, _ and -, 32 characters at most"
        raise validate.refused("name", name, "is not the name of a tenant", step)
    prefix = params.get("tenant_prefix") or PREFIX
    tag = validate.role(validate.tag(tenant_tag(name, prefix), "name"), "name")
    group = params.get("group")
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
        user=validate.user(params.get("owner") or f"{tag}@pve", "owner"),
        group=validate.group(group) if group else None,
        members=_members(params),
        token=validate.token_name(params.get("token") or "fleet", "token"),
        expire=params.get("expire"),
        registered=_is_registered(params, operations),
        quota=read_limits({"tenant": name, "quota": params.get("quota"), "tenant_prefix": prefix}),
    )


def _checked(params: Mapping[str, Any], option: str, check: Any) -> tuple[str, ...]:
    """Return the values of an option, each once. Raises ValidationFailed where one is refused."""
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
            attempted="members was refused",
            answer="the members of a tenant are the users of its group, and no group is given",
            next_step="Set group too",
            reason="members",
        )
    return members


def _is_registered(params: Mapping[str, Any], operations: Iterable[str]) -> bool:
    """Return whether the tag is a registered one, which only Sys.Modify on / can set and remove.

    A tenant that provisions sets the tag of its own VMs, so it cannot have one (qemu-server:
    PVE/API2/Qemu.pm, assert_tag_permissions in PVE/GuestHelpers.pm).
    """
    provisions = "provision" in operations
    given = params.get("registered_tag")
    if given is None:
        return not provisions
    if given and provisions:
        raise ValidationFailed(
            attempted="registered_tag was refused",
            answer="only a user with Sys.Modify on / can set a registered tag, so the tenant could"
            " not create VMs with it",
            next_step="Leave out registered_tag, or the operation provision",
            reason="registered_tag",
        )
    return bool(given)
