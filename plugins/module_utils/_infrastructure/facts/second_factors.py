# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tfa_info (pve-access-control: PVE/API2/TFA.pm)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso

Row = Mapping[str, Any]


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the second factors of the users; three requests. Nothing is written."""
    factors = client.get("access", "tfa", attempted="Could not list the second factors") or []
    accounts = client.get("access", "users", attempted="Could not list the users") or []
    realms = client.get("access", "domains", attempted="Could not list the realms") or []
    users = describe_users(accounts, factors, realms)
    without = [one["name"] for one in users if one["enabled"] and not one["has_factor"]]
    return Result(False, {"users": users, "without_factor": without})


def describe_users(
    accounts: Iterable[Row], factors: Iterable[Row], realms: Iterable[Row]
) -> list[dict[str, Any]]:
    """Return the users by name, each with its factors and the factor of its realm (pure).

    PVE lists the same users in both answers: the users of groups that the login may audit.
    """
    required = {str(row["realm"]): row.get("tfa") or None for row in realms}
    by_user = {str(row["userid"]): row for row in factors}
    users: list[dict[str, Any]] = []
    for account in sorted(accounts, key=lambda row: str(row["userid"])):
        name = str(account["userid"])
        row = by_user.get(name, {})
        entries = [
            {
                "id": entry["id"],
                "type": entry["type"],
                "description": entry.get("description"),
                "enabled": bool(entry.get("enable", 1)),
                "created": iso(entry.get("created") or 0),
            }
            for entry in row.get("entries") or ()
        ]
        users.append(
            {
                "name": name,
                "enabled": bool(account.get("enable", 1)),
                "realm_factor": required.get(name.rpartition("@")[2]),
                "has_factor": any(entry["enabled"] for entry in entries),
                "factors": entries,
                "totp_locked": bool(row.get("totp-locked")),
                "locked_until": iso(row.get("tfa-locked-until") or 0),
            }
        )
    return users
