# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flags of Ceph as a table, and the work of module ceph_flag (pve-manager:
PVE/API2/Cluster/Ceph.pm, PVE/Ceph/Tools.pm, get_possible_osd_flags).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.result import Result
from ...._foundation.resource import run as simple
from ...._foundation.resource.decide import read_desired
from ...._foundation.resource.engine import apply_plan
from ...._foundation.resource.plan import Step
from ...._foundation.resource.table import Call, Table
from ...._foundation.resource.values import flag_field
from ...._foundation.spec.generated.ceph_flag import ceph_flag_spec

FLAGS: tuple[str, ...] = tuple(ceph_flag_spec()["flags"]["choices"])
_PLACE = ("cluster", "ceph", "flags")
_ALL = Call(_PLACE, is_task=True)
CEPH_FLAG = Table(
    kind="ceph_flag",
    title="flags",
    label_as="flags of Ceph",
    keys=(),
    fields=tuple(flag_field(name) for name in FLAGS),
    permanent=True,
    list_call=Call(_PLACE),
    read_call=Call(_PLACE),
    create_call=_ALL,
    update_call=_ALL,
    delete_call=_ALL,
    pick=lambda answer, _keys: {row["name"]: row.get("value") for row in answer or []},
)


def flag_values(params: Mapping[str, Any]) -> dict[str, bool]:
    """Return the flags that a task sets and clears (pure). Raises ValidationFailed."""
    is_set = params.get("state") != "absent"
    listed = dict.fromkeys(params["flags"], is_set)
    if not params.get("exact"):
        return listed
    if not is_set:
        raise ValidationFailed(
            "The flags of Ceph were not changed: exact lists the flags that are set, and state is "
            "absent",
            "Leave out exact, or set state=present",
            "exact",
        )
    return {**dict.fromkeys(FLAGS, False), **listed}


def run_flag(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Set and clear flags of Ceph and return the outcome."""
    desired = read_desired(CEPH_FLAG, flag_values(params))
    plan, actual = simple.plan_resource(CEPH_FLAG, desired, client)
    plan = replace(plan, steps=tuple(_described(step) for step in plan.steps))
    resource = simple.TableResource(CEPH_FLAG, desired, client, plan, actual)
    result = apply_plan(resource, check_mode)
    values = result.values[CEPH_FLAG.kind]
    flags = sorted(name for name, is_set in values.items() if is_set)
    return replace(result, values={**result.values, CEPH_FLAG.kind: {"flags": flags}})


def _described(step: Step) -> Step:
    """Return the step with a summary of the flags that it sets and clears."""
    names: dict[str, list[str]] = {"set": [], "clear": []}
    for name, value in step.data.items():
        names["set" if value else "clear"].append(name)
    parts = [f"{word} {', '.join(found)}" for word, found in names.items() if found]
    text = " and ".join(parts)
    return replace(step, summary=f"{text[:1].upper()}{text[1:]} of Ceph")
