# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The refusal of requests that PVE accepts only from root@pam with a password (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import PermissionDenied

ROOT = "root@pam"


def require_root(
    login: str, attempted: str, remedy: str = "", causes: Mapping[str, str] | None = None
) -> None:
    """Raise PermissionDenied for any login but root@pam, also for a token of root@pam.

    `causes` are the reasons by option, if options are the cause. `remedy` is a next step that does
    not need another login.
    """
    if login == ROOT:
        return
    login_of_root = f"set user={ROOT} and password for this task"
    cause = "; ".join(causes.values()) if causes else f"the login is {login}"
    raise PermissionDenied(
        f"{attempted}: {cause}",
        f"PVE allows this to {ROOT} with a password only, never to a token;"
        f" {remedy or login_of_root}",
        "root only",
        parameters=causes or {},
    )
