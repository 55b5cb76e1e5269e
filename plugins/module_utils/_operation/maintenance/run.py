# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules evacuation and evacuation_info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from .evacuate import run_evacuation
from .give_back import run_next, run_return
from .model import COMPLETE, NEXT, RETURNED
from .options import read_options
from .read import read_members, read_records

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Evacuate a node, or return its guests; check mode writes nothing. Raises FleetError."""
    options = read_options(params, check_mode)
    if options.state == NEXT:
        return run_next(options, client)
    if options.state in (COMPLETE, RETURNED):
        return run_return(options, client)
    return run_evacuation(options, client)


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the maintenances that are not finished; one request for each online node."""
    _quorate, members = read_members(client)
    rows = [
        {
            "node": node,
            "phase": record.phase,
            "since": iso(record.since),
            "guests": sorted(record.guests),
            "stopped": sorted(record.stopped),
        }
        for node, record in sorted(read_records(client, members).items())
    ]
    offline = sorted(name for name, is_online in members.items() if not is_online)
    return Result(False, {"maintenances": rows, "offline": offline})
