# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module user: the table of users depends on the login of the task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run
from .user import user_table


def run_user(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring the user to the desired state and return the outcome; check mode writes nothing."""
    return run(user_table(client.connection), params, client, check_mode)
