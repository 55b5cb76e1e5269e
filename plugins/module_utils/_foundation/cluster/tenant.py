# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tenant of a VM, named by exactly one tag, and the names of its network objects (pure)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.errors import ValidationFailed

PREFIX = "tenant_"
_SEPARATORS = re.compile(r"[;,\s]+")
EVERY_TENANT = "fleet-tenants"
"""The IP set of the cluster with the subnets of all tenants."""
# pve-firewall: src/PVE/Firewall.pm, $security_group_name_pattern and max_group_name_length.
_GROUP = re.compile(r"[A-Za-z][A-Za-z0-9\-_]{1,17}")
_LONGEST_GROUP = 18
_HASH_OF_GROUP = 6
# pve-network: src/PVE/Network/SDN/VnetPlugin.pm, parse_sdn_vnet_id.
_LONGEST_VNET = 8


def parse_tags(text: str | None) -> tuple[str, ...]:
    """Return the tags of a VM as PVE stores them, separated by semicolon, comma or space."""
    parts = _SEPARATORS.split(text or "")
    return tuple(filter(None, parts))


def tenant_tag(tenant: str, prefix: str = PREFIX) -> str:
    """Return the tag of a tenant's VMs, in lower case as PVE stores tags."""
    return f"{prefix}{tenant}".lower()


def tenants_of(tags: Iterable[str], prefix: str = PREFIX) -> tuple[str, ...]:
    """Return the tenants' tags among `tags`, each once, sorted.

    A VM belongs to a tenant if it has exactly one such tag.
    """
    start = prefix.lower()
    found: set[str] = set()
    for tag in tags:
        low = tag.lower()
        if low.startswith(start):
            found.add(low)
    found.discard(start)
    return tuple(sorted(found))


def owns(tenant_tag: str | None, tags: Iterable[str], prefix: str = PREFIX) -> bool:
    """Return whether a guest with these tags belongs to that tenant alone.

    Without a tenant the caller acts for all, and the answer is always true.
    """
    if tenant_tag is None:
        return True
    owners = tenants_of(tags, prefix)
    return owners == (tenant_tag,)


def have_same_tenants(tags: Iterable[str], others: Iterable[str], prefix: str = PREFIX) -> bool:
    """Return whether the guests with `tags` and with `others` belong to the same tenants."""
    return tenants_of(tags, prefix) == tenants_of(others, prefix)


def is_of_others(tenant_tag: str | None, tags: Iterable[str], prefix: str = PREFIX) -> bool:
    """Return whether a guest with these tags belongs to other tenants only, for that tenant."""
    if tenant_tag is None:
        return False
    owners = tenants_of(tags, prefix)
    return bool(owners) and tenant_tag not in owners


def foreign_tag(tags: Iterable[str], own: str | None, prefix: str = PREFIX) -> str | None:
    """Return a tag of another tenant than `own`, or None.

    Without `own`, several tags conflict with each other, and the first of them is returned.
    """
    owners = tenants_of(tags, prefix)
    if own is not None:
        foreign = set(owners) - {own}
        return min(foreign, default=None)
    if len(owners) > 1:
        return owners[0]
    return None


def keep_owners(
    tags: Iterable[str], owners: Iterable[str], prefix: str = PREFIX
) -> tuple[str, ...] | None:
    """Return `tags` with these tenants' tags in place of all others, or None if nothing changes."""
    listed = tuple(tags)
    kept = tuple(owners)
    present = set(tenants_of(listed, prefix))
    if present == {owner.lower() for owner in kept}:
        return None
    others = [tag for tag in listed if tag.lower() not in present]
    return (*others, *kept)


def tenant_of(tags: Iterable[str], prefix: str = PREFIX) -> tuple[str | None, str]:
    """Return the tenant and an empty text, or None and why the VM belongs to no tenant."""
    owners = tenants_of(tags, prefix)
    if not owners:
        return None, "no tenant tag"
    if len(owners) > 1:
        return None, f"several tenant tags: {', '.join(owners)}"
    return owners[0][len(prefix) :], ""


def require_named_owners(params: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> None:
    """Raise ValidationFailed for a tenant or prefix without a value, also in an item of `vms`.

    Without a tenant a task works on the VMs of all tenants: an empty variable must not cause that.
    `given` are the arguments as the user wrote them: only there null differs from an option that is
    left out. In an item of `vms` null means the value for all VMs.
    """
    raw = given or {}
    _require_owner(params, raw, "", is_given_for_all=False)
    if raw.get("tenants", "") is None:
        raise blank_owner("tenants")
    is_given_for_all = params.get("tenant") is not None
    defaults = params.get("defaults")
    if isinstance(defaults, Mapping):
        _require_owner(defaults, defaults, "defaults.", is_given_for_all=is_given_for_all)
        if defaults.get("tenant"):
            is_given_for_all = True
    written = _dictionaries(raw.get("vms"))
    for index, item in enumerate(_dictionaries(params.get("vms"))):
        own: Mapping[str, Any] = {}
        if index < len(written):
            own = written[index]
        _require_owner(item, own, f"vms[{index}].", is_given_for_all=is_given_for_all)


def blank_owner(option: str, place: str = "") -> ValidationFailed:
    """Return the error for an option about tenants without a value; `place` is its place."""
    without = "to work on the VMs of every tenant and of none"
    if option == "tenant_prefix":
        without = f"for the default, {PREFIX}"
    return ValidationFailed(
        f"{place or option} was refused: it is given without a value, such as that of a variable "
        "that is empty",
        f"Give it a value, or leave it out {without}",
        option,
    )


def is_blank(value: Any) -> bool:
    """Return whether a value is None or contains only blanks."""
    if value is None:
        return True
    text = str(value)
    return not text.strip()


def _require_owner(
    params: Mapping[str, Any], given: Mapping[str, Any], place: str, *, is_given_for_all: bool
) -> None:
    for option in ("tenant", "tenant_prefix"):
        value = params.get(option)
        if value is not None and is_blank(value):
            raise blank_owner(option, place + option)
    is_null = given.get("tenant", "") is None
    if is_null and not is_given_for_all:
        raise blank_owner("tenant", f"{place}tenant")


def _dictionaries(value: Any) -> list[Mapping[str, Any]]:
    """Return a list of dictionaries; any other item becomes an empty dictionary."""
    if not isinstance(value, list):
        return []
    return [one if isinstance(one, Mapping) else {} for one in value]


def vnet_id(tag: str, network: str) -> str:
    """Return the ID of the VNet of a network: 8 letters and digits that begin with t."""
    return f"t{_hash(f'{tag}/{network}', _LONGEST_VNET - 1)}"


def group_name(tag: str) -> str:
    """Return the name of the security group and of the IP set of a tenant.

    The name is the tag. If the tag is too long for a group, or has characters that a group cannot
    have, it is shortened and ends with a hash.
    """
    if _GROUP.fullmatch(tag):
        return tag
    length = _LONGEST_GROUP - _HASH_OF_GROUP - 1
    readable = re.sub(r"[^A-Za-z0-9\-_]", "-", tag)[:length]
    if not readable[:1].isalpha():
        readable = f"t{readable[1:]}"
    return f"{readable}-{_hash(tag, _HASH_OF_GROUP)}"


def _hash(text: str, length: int) -> str:
    """Return letters and digits that follow from a text."""
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:length]
