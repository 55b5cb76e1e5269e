# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module audit_info."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from .._access.realm import kinds_of_realms
from .._api.caching import CachingReader
from .._cluster.state import with_names
from .._cluster.tenant import PREFIX
from .._core import validate
from .._core.errors import FleetError
from .._core.parallel import side_by_side
from .._core.result import Result
from .audit import Finding, judge_guests, judge_subjects, judge_tenant, judge_tokens, judge_volumes
from .checks import find_templates
from .facts import Facts, read_facts
from .model import Tenant, read_tenant

if TYPE_CHECKING:
    from .._api.client import Client

_READS_AT_ONCE = 8
_USUAL = {"operations": ["read", "operate", "provision", "snapshot"]}  # as in module tenant
_OF_TENANT = ("comment", "pool", "quota")


def run_audit(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return what is wrong among the tenants; nothing is written."""
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    max_age = validate.number(params["max_token_age"], 1, 36500, "max_token_age")
    tenants = [_described(name, given, prefix) for name, given in params["tenants"].items()]
    reader = CachingReader(client)
    facts = read_facts(reader)
    facts = replace(facts, cluster=with_names(reader, facts.cluster, missing=True))
    by_tag = {tenant.tag: tenant for tenant in tenants}
    found = list(judge_guests(facts, by_tag, prefix))
    warnings: list[str] = []
    if params["volumes"]:
        configs, warnings = _configs(reader, facts)
        found += judge_volumes(facts, configs, prefix)
    realms = kinds_of_realms(reader)
    found += judge_tokens(facts, realms, client.clock.time(), max_age)
    found += judge_subjects(facts)
    for tenant in tenants:
        templates = find_templates(reader, tenant, facts)
        found += judge_tenant(tenant, facts, templates)
    values = {
        "passed": not found,
        "vms": len(facts.cluster.vms),
        "findings": [asdict(one) for one in found],
        "report": _lines(found),
    }
    return Result(False, values, warnings=tuple(warnings))


def _described(name: str, given: Mapping[str, Any] | None, prefix: str) -> Tenant:
    """Return a tenant as an estate describes it."""
    settings = given or {}
    options = {**_USUAL, **(settings.get("access") or {})}
    for option in _OF_TENANT:
        options[option] = settings.get(option)
    return read_tenant({**options, "name": name, "tenant_prefix": prefix})


def _configs(client: Client, facts: Facts) -> tuple[dict[int, Mapping[str, Any]], list[str]]:
    """Return the configuration of each VM, one request each, and warnings about unreadable ones."""

    def read(vmid: int) -> Mapping[str, Any] | FleetError:
        node = facts.cluster.vms[vmid].node
        try:
            answer: Mapping[str, Any] = client.get("nodes", node, "qemu", vmid, "config")
        except FleetError as error:
            return error
        return answer

    numbers = sorted(facts.cluster.vms)
    found: dict[int, Mapping[str, Any]] = {}
    warnings: list[str] = []
    for vmid, answer in zip(numbers, side_by_side(read, numbers, _READS_AT_ONCE), strict=True):
        if isinstance(answer, FleetError):
            warnings.append(f"The volumes of VM {vmid} were not checked: {answer.message}")
        else:
            found[vmid] = answer
    return found, warnings


def _lines(found: list[Finding]) -> list[str]:
    lines = [f"{one.kind}: {one.message}" for one in found]
    return [f"Findings: {len(found)}", *lines]
