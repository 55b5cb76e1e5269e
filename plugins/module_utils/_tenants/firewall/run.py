# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module firewall: find the scope, then read, check, plan and execute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.core.result import Result
from ..._foundation.resource.engine import apply_plan
from .desired import read_desired
from .find_scope import find_scope, require_same_guest, tag_of
from .model import Firewall
from .owners import read_owner, require_marks_unchanged, require_owner
from .reach.guard import require_access
from .read import read_aliases, read_firewall, read_known
from .references import require_known, require_one_version
from .resource import FirewallOfScope
from .scope import GROUP
from .users import require_group_unused, require_names_unused

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring the firewall of one scope to the desired state; check mode writes nothing."""
    scope = find_scope(client, params)
    desired = replace(read_desired(params, scope), kept_groups=scope.tenant_groups)
    actual = read_firewall(client, scope, desired)
    require_owner(scope, read_owner(client, scope, actual), tag_of(params))
    known = read_known(client, scope, desired)
    require_known(desired.rules or (), known, desired)
    aliases = read_aliases(client, scope, desired)
    if aliases is not None:
        require_one_version(desired.rules or (), aliases)
    desired = replace(desired, own_names=known.own)

    is_group_removed = scope.kind == GROUP and actual.exists and not desired.is_wanted

    def check(before: Firewall, after: Firewall) -> tuple[str, ...]:
        require_marks_unchanged(scope, before, after)
        require_names_unused(client, scope, before, after)
        warnings = require_access(client, scope, desired, params)
        if is_group_removed:
            require_group_unused(client, scope.name)
        return warnings

    def look() -> None:
        require_same_guest(client, scope, params)

    return apply_plan(FirewallOfScope(client, scope, desired, actual, check, look), check_mode)
