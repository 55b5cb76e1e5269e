# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of module metrics, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated import metrics as own_options
from .generated.metrics import metrics_file_spec


def metrics_spec() -> Spec:
    """Return the options of module metrics."""
    return {**metrics_file_spec(), **own_options.metrics_spec()}
