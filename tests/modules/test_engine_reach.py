# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables that no module has yet, against the simulated PVE. Recordings of the real one check it
for these paths (`make fidelity`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import Table
from tests.modules.estate_lab import Lab, open_lab
from tests.unit.module_utils.resource.proof_tables import HA_RESOURCE, HA_RULE


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


def converge(lab: Lab, table: Table, **options: Any) -> Result:
    """Preview and run a task, and require that they agree and that a second run changes nothing."""
    lab.simulator.reset_log()
    foreseen = run(table, options, lab.client, True)
    assert lab.simulator.writes() == []
    made = run(table, options, lab.client, False)
    assert (foreseen.changed, foreseen.diff) == (made.changed, made.diff)
    assert len(lab.simulator.writes()) == len(made.values["done"])
    assert not run(table, options, lab.client, False).changed
    return made


def test_ha_resources_and_their_rule(lab: Lab) -> None:
    vmids = [
        lab.vm(name=f"ha-{number}", memory="128M", disks=[])["vm"]["vmid"] for number in (1, 2, 3)
    ]
    sids = [f"vm:{vmid}" for vmid in vmids]
    for sid in sids:
        converge(lab, HA_RESOURCE, sid=sid, request_state="stopped")
    converge(lab, HA_RESOURCE, sid=sids[0], comment="first", max_restart=2)
    rule = {"name": "apart", "type": "resource-affinity", "affinity": "negative"}
    converge(lab, HA_RULE, **rule, resources=sids[:2], comment="two")
    grown = converge(lab, HA_RULE, name="apart", resources=sids[2:], comment="")
    assert grown.values["ha_rule"]["resources"] == sorted(sids)
    assert grown.values["ha_rule"]["comment"] == ""
    converge(lab, HA_RULE, name="apart", resources=sids[1:], exact=True, disable=True)
    converge(lab, HA_RULE, name="apart", state="absent")
    for sid in sids:
        converge(lab, HA_RESOURCE, sid=sid, state="absent")
