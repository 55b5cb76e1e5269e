# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The context that the run of one VM passes through its stages. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from .._guest.context import RunContext
from .model import DesiredVm


@dataclass(frozen=True)
class VmContext(RunContext[DesiredVm]):
    """The context that one run of a VM passes through its stages."""

    snippet_now: str | None = None  # the present content of the file of the desired user data
