# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.mistakes`: misspelt variables and values that they cannot have."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mistakes
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Which variables of a role or playbook are misspelt
description:
  - Ansible ignores a variable that nothing reads, so a misspelt one has no effect. The roles and
    playbooks of this collection look for such variables before their first request.
  - Returns one text for each variable that has a prefix of the collection and is unknown, for each
    variable that the playbook needs and that is not set, for each value that is of another type or
    not among the choices, for each wrong setting of a tenant
    in C(tenants), for a C(-e) that replaces C(provision_defaults) of the estate, and for a plan that
    the playbook would neither write nor follow.
  - Variables with the prefixes C(audit_), C(awx_), C(export_), C(image_), C(metrics_), C(report_)
    and C(tenant_) may belong to other roles. Unless C(-e) sets them, only those are mistakes that
    resemble a known one. Variables that C(-e) sets are also compared without their prefix.
  - Results that a task registered are not checked.
  - Nothing is asked of Proxmox VE.
options:
  _terms:
    description: The prefixes of variables to check, without the underscore, such as C(provision).
    required: true
    type: list
    elements: str
  pve_fleet_unchecked_variables:
    description:
      - Names of variables that are not checked, or patterns such as C(tenant_dns_*), because they
        belong to something else.
    type: list
    elements: str
    default: []
    vars: [{name: pve_fleet_unchecked_variables}]
"""

EXAMPLES = r"""
- name: Check the variables of the role provision
  ansible.builtin.assert:
    that: query('pve.fleet.mistakes', 'provision') | length == 0
"""

RETURN = r"""
_raw:
  description: What is wrong, one text for each variable.
  type: list
  elements: str
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.parsing.splitter import parse_kv
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

from ..module_utils._foundation.core.arguments.variables import (
    PlayVariables,
    VariableFamily,
    find_missing,
    find_unknown,
    find_wrong,
)
from ..module_utils._foundation.core.errors import ValidationFailed
from ..module_utils._foundation.spec.generated.variables import FAMILIES
from ..module_utils._foundation.spec.tenants import read_estate_tenants

# The variables with the settings of tenants, and the families whose playbooks read them.
_TENANTS = ("tenants", "provision_tenant_settings")
_READ_TENANTS = frozenset(("audit", "metrics", "provision", "report", "tenant"))
_DECLARED = {name for family in FAMILIES.values() for name in family.variables}
# Playbooks that write, and have no plan that can be approved.
_WITHOUT_PLANS = frozenset(("backup", "drill", "image", "rebalance", "snapshot_policy", "tidy"))
_PLANS = ("plan_file", "apply_plan")
_DEFAULTS = "provision_defaults"
_GUESTS = {"provision_vms", "provision_containers", "provision_vm"}
_ESCAPE = "pve_fleet_unchecked_variables"
# The variables of all playbooks.
_COMMON = "pve_fleet"


class LookupModule(LookupBase):
    """Misspelt variables, and values that variables cannot have."""

    def run(
        self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any
    ) -> list[str]:
        """Return a text for each mistake."""
        self.set_options(var_options=variables, direct=options)
        families = [_family(str(term)) for term in (*terms, _COMMON)]
        given = variables or {}
        names = [name for name in given if not _is_registered(given[name])]
        # One command can run several playbooks with the same variables.
        of_play = PlayVariables(
            names=set(names) - _DECLARED,
            extra=frozenset(load_extra_vars(self._loader)),
            unchecked=tuple(map(str, self.get_option(_ESCAPE))),
        )
        found = list(find_unknown(families, of_play))
        found += find_missing(families, given, lambda name: self._value(given, name))
        written = {name: given[name] for name in names}
        found += find_wrong(families, written, lambda name: self._value(given, name))
        if not _WITHOUT_PLANS.isdisjoint(terms):
            found += [
                f"{name} has no effect here, because these changes have no plan file: leave it out"
                for name in _PLANS
                if given.get(name)
            ]
        if terms == ["provision"]:
            found += self._replaced()
        if not _READ_TENANTS.isdisjoint(terms):
            found += self._of_tenants(given)
        return found

    def _value(self, given: Mapping[str, Any], name: str) -> Any:
        """Return the value of a variable."""
        return self._templar.template(given[name])

    def _replaced(self) -> Iterator[str]:
        """Yield a text if C(-e) replaces the defaults of the estate. The last C(-e) wins; an option
        that is not a file replaces them unless it has guests, too.
        """
        given = [str(text) for text in context.CLIARGS.get("extra_vars") or ()]
        having = [(text, self._names(text)) for text in given]
        having = [(text, names) for text, names in having if _DEFAULTS in names]
        found: dict[str, None] = {}
        for text, names in having:
            is_file = text.startswith("@")
            if len(having) > 1 or not (is_file or names & _GUESTS):
                # A value may be secret.
                found[f"-e {text}" if is_file else f"-e with {', '.join(sorted(names))}"] = None
        if found:
            yield (
                f"{_DEFAULTS} is given with {' and with '.join(found)}. Ansible replaces a variable"
                " as a whole, so every default and quota of the estate would be lost. Put the"
                " options of this run into provision_overrides, which is merged, or give"
                f" {_DEFAULTS} together with the VMs"
            )

    def _names(self, text: str) -> set[str]:
        """Return the variables that one -e defines, as ansible.utils.vars.load_extra_vars does."""
        if text.startswith("@"):
            data = self._loader.load_from_file(text[1:])
        elif text[:1] in ("[", "{"):
            data = self._loader.load(text)
        else:
            data = parse_kv(text)
        return {str(name) for name in data} if isinstance(data, Mapping) else set()

    def _of_tenants(self, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield a text for each variable with wrong settings of a tenant."""
        for name in _TENANTS:
            if name in given:
                yield from _refusal(self._value(given, name))
        if "tenant_settings" in given and "tenant_name" in given:
            tenant = str(self._value(given, "tenant_name"))
            # The role itself reports an empty tenant name.
            if tenant:
                yield from _refusal({tenant: self._value(given, "tenant_settings")})


def _refusal(tenants: Any) -> Iterator[str]:
    """Yield why settings of tenants are refused, nothing if they are valid."""
    try:
        read_estate_tenants(tenants)
    except ValidationFailed as error:
        yield error.message.rstrip(".")


def _family(name: str) -> VariableFamily:
    if name in FAMILIES:
        return FAMILIES[name]
    known = ", ".join(FAMILIES)
    raise AnsibleError(f"{name} is not a prefix of this collection. Known prefixes: {known}.")


def _is_registered(value: Any) -> bool:
    """Return whether a value is the result of a task."""
    return isinstance(value, Mapping) and "changed" in value
