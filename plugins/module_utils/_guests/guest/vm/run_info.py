# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm_info."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...._foundation.core.result import Result
from ...kinds.vm.kind import VM
from ..gather import gather
from .live import report_of_guest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the VMs that match all filters; check mode makes no difference."""
    report = partial(report_of_guest, waits=False)
    return gather(params, client, VM, report, restored=True)
