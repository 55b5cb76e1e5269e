# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tenant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .._access.role import check_role
from .._access.user_check import check_user
from .._api.caching import CachingReader
from .._core.result import Result
from .checks import (
    bridges_of_templates,
    find_templates,
    giver_check,
    require_objects,
    require_privileges,
)
from .describe import describe, notes
from .facts import Facts, read_facts
from .model import Tenant, read_tenant
from .parts import (
    Part,
    group_parts,
    pool_part,
    refuse_foreign_user,
    right_parts,
    role_parts,
    tag_part,
    unused_role_parts,
    user_parts,
    wanted_privileges,
)
from .removal import remove
from .rotation import rotate
from .token import plan_token, require_known_secret, write_token
from .work import Report, carry_out, diff_of, plan_parts, summaries, warnings_of, with_precheck

if TYPE_CHECKING:
    from .._api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a tenant to the desired state and return the result; check mode writes nothing."""
    tenant = read_tenant(params)
    works = {"present": create, "rotated": rotate, "absent": remove}
    return works[str(params["state"])](tenant, params, client, check_mode)


def create(tenant: Tenant, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Create or change a tenant."""
    path = params.get("credentials_file")
    reader = CachingReader(client)
    facts = read_facts(reader)
    refuse_foreign_user(tenant, facts, is_given=bool(params.get("owner")))
    require_known_secret(tenant, facts, path)
    require_objects(reader, tenant, facts)
    templates = find_templates(reader, tenant, facts)
    planned = plan_parts(_parts(tenant, facts, templates, reader), reader)
    unusable = bridges_of_templates(reader, tenant, facts, templates)
    token = plan_token(tenant, facts, reader)
    whole = [*planned, *token]
    require_privileges(reader, tenant, whole)
    report, login = Report(), None
    if whole and not check_mode:
        carry_out(planned, client, report)
        for one in token:
            login = write_token(tenant, one.part, client, report, path)
        facts = read_facts(client)
    values = {
        "tenant": describe(tenant, facts, templates),
        "credentials": login,
        "vms": [],
        "plan": summaries(whole),
        "done": report.done,
    }
    lines = [*unusable, *warnings_of(whole), *report.warnings, *notes(tenant, facts)]
    return Result(bool(whole), values, diff_of(whole), tuple(dict.fromkeys(lines)))


def _parts(
    tenant: Tenant, facts: Facts, templates: Mapping[str, int], reader: Client
) -> list[Part]:
    """Return all parts but the token, in the order of the work.

    While all is planned, checks that read the others see them as they will be.
    """
    roles = with_precheck(role_parts(tenant, facts), check_role)
    users = user_parts(tenant, facts)
    groups = group_parts(tenant, facts)
    if not groups:
        users = with_precheck(users, partial(check_user, reader.connection))
    may_give = giver_check(wanted_privileges(tenant, facts), facts)
    rights = with_precheck(right_parts(tenant, facts, templates), may_give)
    pool = pool_part(tenant, facts)
    tag = tag_part(tenant, registered=tenant.registered)
    return [pool, *groups, *roles, *users, *rights, *unused_role_parts(tenant, facts), tag]
