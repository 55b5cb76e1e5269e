# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm_info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.core.result import Result
from ...kinds.model import Actual
from ...kinds.vm.kind import VM
from ..gather import GuestListing, gather
from ..settings import GuestRequest
from .live.guest import guest_report, read_addresses

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the VMs that match all filters; check mode makes no difference."""
    return gather(params, client, GuestListing(VM, "vms", _report, restored=True))


def _report(client: Client, actual: Actual, request: GuestRequest) -> Mapping[str, Any]:
    return guest_report(actual, *read_addresses(client, actual), request.rule)
