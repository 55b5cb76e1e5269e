# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose a VM is: one tag says so, matched exactly (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIX = "tenant_"
_SEPARATORS = re.compile(r"[;,\s]+")


def parse_tags(text: str | None) -> tuple[str, ...]:
    """Return the tags of a VM as PVE stores them; it accepts semicolon, comma and space between them."""
    return tuple(tag for tag in _SEPARATORS.split(text or "") if tag)


def tenant_tag(tenant: str, prefix: str = PREFIX) -> str:
    """Return the tag that the VMs of a tenant bear, in lower case as PVE stores tags."""
    return f"{prefix}{tenant}".lower()


def tenants_of(tags: Iterable[str], prefix: str = PREFIX) -> tuple[str, ...]:
    """Return the tenants' tags among `tags`, each once, sorted; unless there is exactly one, nobody owns the VM."""
    start = prefix.lower()
    return tuple(sorted({low for tag in tags if (low := tag.lower()).startswith(start) and len(low) > len(start)}))


def keep_owners(tags: Iterable[str], owners: Iterable[str], prefix: str = PREFIX) -> tuple[str, ...] | None:
    """Return `tags` with exactly these tenants' tags among them, or None where they are so already."""
    listed, kept = tuple(tags), tuple(owners)
    others = set(tenants_of(listed, prefix))
    if others == {owner.lower() for owner in kept}:
        return None
    return (*(tag for tag in listed if tag.lower() not in others), *kept)


def tenant_of(tags: Iterable[str], prefix: str = PREFIX) -> tuple[str | None, str]:
    """Return the tenant's id and an empty text, or None and why the VM belongs to nobody."""
    owners = tenants_of(tags, prefix)
    if not owners:
        return None, "no tenant tag"
    if len(owners) > 1:
        return None, f"several tenant tags: {', '.join(owners)}"
    return owners[0][len(prefix) :], ""
