# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container_info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.core.result import Result
from ...kinds.container.kind import CONTAINER
from ..gather import gather
from .live import report

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the containers that match all filters; check mode makes no difference."""
    return gather(params, client, CONTAINER, report, restored=False)
