# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever VMs a cluster has: the plan of their exported estate does nothing, and with adopt it
adds one tag.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.items import read_estate
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.export.settings import (
    ClusterContext,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.find import require_own
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.refusals.options import (
    unknown_names,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.update import (
    plan_update,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.document import (
    estate_of,
    text_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.guest import describe
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.model import (
    ExportChoices,
    ExportedEstate,
    ExportedVm,
    ExportReadings,
)
from ansible_collections.pve.fleet.plugins.modules.vms import ENTRY
from tests.cases import cases
from tests.unit.module_utils.estate.configs import BASES, empty_cluster, machines

CHOICES = ExportChoices(prefix="tenant_")
AROUND = ClusterContext(empty_cluster(), BASES)
DEFAULTS = {name: rule.get("default") for name, rule in ENTRY.spec.items()}
OPTIONS_OF_VARIABLES = {
    "provision_state": "state",
    "provision_defaults": "defaults",
    "provision_classes": "classes",
    "provision_networks": "networks",
    "provision_storage_classes": "storage_classes",
    "tenants": "tenant_settings",
    "provision_vms": "vms",
    "provision_containers": "containers",
}
# The settings that our options cannot have: what PVE calls them, and why.
LOSSES = {
    r"unused\d+": "a disk that no drive uses",
    r"ipconfig\d+": "an address without a NIC|.*gateway.* needs a static.*",
    "sshkeys": "without a cloud-init drive there is no option for it|a comment",
    "name": "it is not a DNS name",
    "bootdisk": "the old form of the boot order",
    "template": "it is not converted completely",
    "vmgenid": "pve.fleet has no option for it",
    "tags": "the tags of several tenants",
    r"(ide|sata|scsi|virtio)\d+": (
        "it is not a volume of a storage|it is smaller than 1M|a second cloud-init drive"
    ),
    "memory|balloon": r"(memory|balloon) was refused: .*outside.*",
    "cores": "cores was refused: .*outside.*",
}


# Looking for the smallest case that fails takes minutes.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def many(cases_to_try: int) -> settings:
    """Return the settings of a test that tries this number of cases."""
    return settings(
        max_examples=cases_to_try,
        deadline=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )


class Loader(yaml.SafeLoader):
    """Reads an estate file as Ansible does, without templates."""


class Unsafe(str):
    """A text that Ansible does not read as a template."""


def _unsafe(loader: Loader, node: yaml.ScalarNode) -> Unsafe:
    return Unsafe(loader.construct_scalar(node))


Loader.add_constructor("!unsafe", _unsafe)


def machine_lists(most: int) -> st.SearchStrategy[list[Actual]]:
    """Return clusters of one VM and more."""
    return st.integers(1, most).flatmap(
        lambda count: st.tuples(*(machines(100 + number) for number in range(count))).map(list)
    )


def export(
    vms: Sequence[Actual], choices: ExportChoices = CHOICES
) -> tuple[ExportedEstate, ExportReadings]:
    found = ExportReadings(vms=[describe(vm, AROUND, choices) for vm in vms])
    return estate_of(found, choices), found


def planned(estate: Mapping[str, Any], vms: Sequence[Actual]) -> dict[int, tuple[Step, ...]]:
    """Return the steps of each VM, as module vms plans them with these variables."""
    given_options = {OPTIONS_OF_VARIABLES[name]: value for name, value in estate.items()}
    read = read_estate({**DEFAULTS, **given_options}, None)
    by_vmid = {vm.vmid: vm for vm in vms}
    steps: dict[int, tuple[Step, ...]] = {}
    for item in read.items:
        desired = item.desired
        assert desired.guest.vmid is not None
        assert not list(unknown_names(desired))
        actual = by_vmid[desired.guest.vmid]
        require_own(desired.guest, actual)
        steps[desired.guest.vmid] = plan_update(desired, actual, bases=BASES).steps
    return steps


@many(cases(400, 40))
@given(vms=machine_lists(5), seed=st.integers(0, 99))
def test_no_step_is_left(vms: list[Actual], seed: int) -> None:
    estate, found = export(vms)
    assert {one.actual.vmid for one in found.vms} == {vm.vmid for vm in vms}
    text = text_of(estate, found, "")
    read = yaml.load(text, Loader)
    assert read == without_empty(estate.variables)
    refuse_templates(read)
    assert planned(read, vms) == {one.actual.vmid: no_steps(one) for one in found.vms}
    shuffled = list(vms)
    random.Random(seed).shuffle(shuffled)
    again, others = export(shuffled)
    assert text_of(again, others, "") == text


def no_steps(exported: ExportedVm) -> tuple[Step, ...]:
    """Return what a run without options does, which is nothing unless a change was interrupted."""
    actual = exported.actual
    return planned({"provision_vms": [{"vmid": actual.vmid}]}, [actual])[actual.vmid]


def without_empty(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of an estate file: those without a value are not in it."""
    return {key: value for key, value in variables.items() if value or key == "provision_vms"}


def refuse_templates(value: Any) -> None:
    """Fail for a text that Ansible would read as a template."""
    if isinstance(value, dict):
        for name, one in value.items():
            assert isinstance(name, str)
            refuse_templates(one)
    elif isinstance(value, list):
        for one in value:
            refuse_templates(one)
    elif isinstance(value, str) and not isinstance(value, Unsafe):
        assert not re.search(r"\{[{%#]", value)


@many(cases(2000, 100))
@given(vm=machines(100))
def test_only_what_has_no_option_is_left_out(vm: Actual) -> None:
    exported = describe(vm, AROUND, CHOICES)
    assert not exported.steps
    for one in exported.lost:
        (reasons,) = [LOSSES[name] for name in LOSSES if re.fullmatch(name, one.option)]
        assert re.fullmatch(reasons, one.reason), one


@many(cases(300, 25))
@given(vms=machine_lists(4))
def test_adoption_sets_a_tag(vms: list[Actual]) -> None:
    choices = replace(CHOICES, adopt="initech")
    estate, found = export(vms, choices)
    steps = planned(estate.variables, vms)
    for one in found.vms:
        for step in steps[one.actual.vmid]:
            assert one.options["adopt"]
            assert step.data.keys() <= {"tags", "digest"}
            before = set(filter(None, one.actual.target.get("tags", "").lower().split(";")))
            assert set(step.data["tags"].lower().split(";")) - before == {"tenant_initech"}
        if one.options.get("adopt"):
            assert steps[one.actual.vmid]
