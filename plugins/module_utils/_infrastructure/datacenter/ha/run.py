# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules ha_rule and ha_resource: the checks depend on the tenant of the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core.result import Result
from ...._foundation.resource.run import run
from .checks import precheck_resource, precheck_rule
from .resource import HA_RESOURCE
from .rule import HA_RULE


def run_rule(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring an HA rule to the desired state and return the outcome."""
    check = partial(precheck_rule, params.get("tenant"))
    return run(replace(HA_RULE, precheck=check), params, client, check_mode)


def run_resource(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring an HA resource to the desired state and return the outcome."""
    check = partial(precheck_resource, params.get("tenant"))
    return run(replace(HA_RESOURCE, precheck=check), params, client, check_mode)
