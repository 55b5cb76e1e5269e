# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of realms, which are only read (pve-access-control: API2/Domains.pm).

The list has no secrets, and anybody may read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import ConfigurationError
from ...._foundation.resource.table import Call, Field, Key, Table
from ...._foundation.resource.values import as_flag

_SYNCHRONIZED = ("ldap", "ad")


def _of_name(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    rows = {str(row["realm"]): row for row in answer or []}
    return rows.get(keys["name"])


REALM = Table(
    kind="realm",
    keys=(Key("name", "realm", validate.realm),),
    fields=(),
    read_only=(
        Field("type", "type"),
        Field("comment", "comment"),
        Field("default", "default", read=as_flag(False)),
        Field("second_factor", "tfa", read=lambda text: text or None),
    ),
    read_call=Call(("access", "domains")),
    pick=_of_name,
)


def kinds_of_realms(client: Api) -> dict[str, str]:
    """Return the type of each realm by its name; one request."""
    rows = client.get("access", "domains", attempted="Could not list the realms") or []
    return {str(row["realm"]): str(row["type"]) for row in rows}


def kind_of_realm(kinds: Mapping[str, str], name: str, attempted: str, next_step: str) -> str:
    """Return the type of a realm (pure). Raises ConfigurationError if `kinds` lacks the realm."""
    if name not in kinds:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"there is no realm '{name}'; the cluster has {', '.join(sorted(kinds))}",
            next_step=next_step,
            reason="unknown realm",
            details={"realms": sorted(kinds)},
        )
    return kinds[name]


def require_directory(kinds: Mapping[str, str], name: str, attempted: str) -> None:
    """Raise ConfigurationError for a realm that does not exist, or that has no directory."""
    kind = kind_of_realm(kinds, name, attempted, next_step="Check the name")
    if kind not in _SYNCHRONIZED:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"it is of type {kind}, and only LDAP and AD realms have a directory",
            next_step="Name a realm of type ldap or ad",
            reason="realm without directory",
        )
