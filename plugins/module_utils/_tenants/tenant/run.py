# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.core.errors import FleetError
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import UNCHANGED, PlanLine, lines_of_diff, plan_lines
from ..access.login.credentials import LoginKeeper
from ..access.role import precheck_role
from ..access.user import precheck_user
from . import checks, work
from .describe import describe, notes, privileged_among
from .facts import TenantFacts, forbidden_to_be_privileged, read_facts, read_guests, with_pool
from .leaving.removal import remove
from .login.rotation import rotate
from .login.token import (
    adopted_token_resources,
    creates,
    current_token,
    plan_token,
    require_known_secret,
    with_token_name,
    write_token,
)
from .login.token_age import warnings_of as token_warnings
from .marks import require_own_user
from .model import Tenant, read_tenant
from .network.unisolated import find_unisolated
from .network.unisolated import warnings_of as unisolated_warnings
from .network.work import PlannedNetworks, described_networks, plan_networks
from .own_loss import own_warnings
from .tenant_resources import (
    TenantResource,
    group_resources,
    pool_resource,
    right_resources,
    role_resources,
    tag_resource,
    unused_role_resources,
    user_resources,
    wanted_privileges,
)

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a tenant to the desired state and return the result; check mode writes nothing."""
    tenant = read_tenant(params)
    works = {"present": create, "rotated": rotate, "absent": remove}
    return works[str(params["state"])](tenant, params, client, check_mode)


def create(tenant: Tenant, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Create or change a tenant."""
    keeper = LoginKeeper.open(params, tenant.name)
    reader = CachingReader(client)
    facts = with_pool(read_facts(reader), tenant, reader)
    tenant = with_token_name(tenant, facts)
    require_own_user(tenant, facts)
    require_known_secret(tenant, facts, keeper)
    checks.require_objects(reader, tenant, facts)
    templates = checks.find_templates(tenant, checks.with_template_names(reader, tenant, facts))
    planned = work.plan_resources(_resources(tenant, facts, templates, reader), reader)
    checks.require_own_names(tenant, facts, planned)
    unusable = checks.bridges_of_templates(reader, tenant, facts, templates)
    lost, token = plan_token(tenant, facts, reader, keeper.stored)
    whole = [*planned, *lost, *token]
    networks = plan_networks(tenant, reader)
    plans = [*(one.plan for one in whole), *networks.plans]
    work.keep_plans(reader, plans)
    open_guests = find_unisolated(tenant, facts, reader)
    checks.require_plans_permitted(reader, plans)
    is_new = any(creates(one.resource) for one in token)
    repair = None if is_new else keeper.find_repair()
    own = own_warnings(tenant, client.login, facts, [*planned, *lost])
    report, login = work.TenantProgress(blinds=bool(own), warnings=own), None
    final: TenantFacts | None = facts
    if repair is not None and not check_mode:
        report.run(partial(keeper.repair, repair))
    if (whole or networks.parts) and not check_mode:
        if is_new:
            report.run(partial(keeper.reserve, client.connection, again=bool(lost)))
        networks = _write_resources([*planned, *lost], networks, client, report, keeper)
        for one in token:
            login = write_token(tenant, one.resource, client, report, keeper)
        final = work.read_result(client, report, login)
    values = {
        "tenant": _described(tenant, final, templates, networks),
        "not_isolated": [one.vmid for one in open_guests],
        "credentials": login,
        "vms": [],
        "plan": [*([repair.summary] if repair else []), *_lines(whole, token, networks)],
        "done": report.done,
    }
    lines = [*unusable, *work.warnings_of(whole), *networks.warnings, *report.warnings]
    lines += unisolated_warnings(open_guests)
    lines += repair.warnings if repair else ()
    if final is not None:
        lines += notes(tenant, final)
        rows = forbidden_to_be_privileged(tenant, final)
        guests, _unread = read_guests(reader, rows)
        lines += [text for text, _vmid in privileged_among(tenant, rows, guests)]
        name = current_token(tenant, final)
        lines += token_warnings(tenant, final, name, client.clock.time())
    diff = work.with_repair(networks.with_diff(work.diff_of(whole)), keeper.label, repair)
    changes = lines_of_diff(diff["before"], diff["after"]) or [PlanLine(UNCHANGED, tenant.label)]
    values["report"] = plan_lines(changes, check_mode=check_mode)
    return Result(
        bool(whole or networks.parts or repair), values, diff, tuple(dict.fromkeys(lines))
    )


def _described(
    tenant: Tenant,
    final: TenantFacts | None,
    templates: Mapping[str, int],
    networks: PlannedNetworks,
) -> dict[str, Any] | None:
    """Return the tenant as the module reports it; None if it could not be read afterwards."""
    if final is None:
        return None
    return {**describe(tenant, final, templates), **described_networks(tenant, networks)}


def _lines(
    whole: Sequence[work.PlannedResource],
    token: Sequence[work.PlannedResource],
    networks: PlannedNetworks,
) -> list[str]:
    """Return the steps in the order of execution: the token is last."""
    before = [one for one in whole if one not in token]
    return [*work.summaries(before), *networks.summaries, *work.summaries(token)]


def _write_resources(
    planned: Sequence[work.PlannedResource],
    networks: PlannedNetworks,
    client: Client,
    report: work.TenantProgress,
    keeper: LoginKeeper,
) -> PlannedNetworks:
    """Write all resources except the token, and return the resulting networks.

    A failure releases the reservation of the file.
    """
    try:
        work.execute_resources(planned, client, report)
        return networks.written(client, report)
    except FleetError:
        keeper.release()
        raise


def _resources(
    tenant: Tenant, facts: TenantFacts, templates: Mapping[str, int], reader: Client
) -> list[TenantResource]:
    """Return all resources except the token, in the order of execution.

    During planning, checks that read other resources see them in their planned state.
    """
    roles = work.with_precheck(role_resources(tenant, facts), precheck_role)
    users = user_resources(tenant, facts)
    groups = group_resources(tenant, facts)
    if not groups:
        users = work.with_precheck(users, partial(precheck_user, reader.connection))
    may_give = checks.giver_check(wanted_privileges(tenant, facts), facts)
    rights = work.with_precheck(right_resources(tenant, facts, templates), may_give)
    return [
        pool_resource(tenant, facts),
        *groups,
        *roles,
        *users,
        *rights,
        *unused_role_resources(tenant, facts),
        tag_resource(tenant, registered=tenant.registered),
        *adopted_token_resources(tenant, facts),
    ]
