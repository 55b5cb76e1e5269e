# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A VMID that the token may not see is an error in every module, and never taken for a VM that does
not exist.

The listing leaves such a VM out; C(GET /cluster/nextid?vmid=N) answers 400 C(VM N already exists)
to everybody (pve-manager, API2/Cluster.pm, nextid).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab

STRANGER = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}
FREE = 45999


def as_stranger(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Return what a module answers to a token that sees the pool acme only.

    Nothing must be written.
    """
    lab.simulator.reset_log()
    result = lab.run(module, **{**STRANGER, **options})
    assert lab.simulator.writes() == []
    return result


@pytest.fixture
def hidden(lab: Lab, name: str) -> int:
    """The VMID of a VM that the stranger does not see."""
    return int(lab.vm(name=name, disks=[{"size": 1}])["vm"]["vmid"])


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vm", {"state": "absent"}),
        ("vm", {"state": "absent", "check": True}),
        ("vm", {"state": "present", "name": "other", "disks": [{"size": 1}]}),
        ("vm", {"state": "started"}),
        ("vm_info", {}),
        ("snapshot", {"snapshot": "s1", "state": "present"}),
        ("snapshot", {"snapshot": "s1", "state": "absent"}),
        ("clone", {"name": "other", "source": "9000"}),
    ],
)
def test_a_hidden_vmid_is_an_error(
    lab: Lab, hidden: int, module: str, options: dict[str, Any]
) -> None:
    result = as_stranger(lab, module, vmid=hidden, **options)
    error = result["error"]
    errors = [error, *(one["error"] for one in result.get("vms") or [] if one.get("error"))]
    assert [one["category"] for one in errors] == ["PermissionDenied"] * len(errors), result
    assert f"number {hidden} exists" in result["msg"]
    assert f"VM.Audit on /vms/{hidden}" in result["msg"]


def test_a_hidden_vmid_in_a_list_is_an_error_of_that_vm(lab: Lab, hidden: int) -> None:
    result = as_stranger(
        lab, "vms", vms=[{"vmid": hidden, "state": "absent"}, {"vmid": FREE, "state": "absent"}]
    )
    assert [(one.get("error") or {}).get("category") for one in result["vms"]] == [
        "PermissionDenied",
        None,
    ], result


@pytest.mark.parametrize("module", ["vm", "clone"])
def test_a_hidden_source_is_an_error(lab: Lab, hidden: int, module: str) -> None:
    result = as_stranger(lab, module, name="other", source=str(hidden))
    assert result["error"]["category"] == "PermissionDenied"
    assert f"number {hidden} exists" in result["msg"]


def test_a_vmid_that_is_free_stays_absent(lab: Lab) -> None:
    result = as_stranger(lab, "vm", vmid=FREE, state="absent")
    assert not result.get("failed"), result
    assert not result["changed"]
    assert as_stranger(lab, "vm_info", vmid=FREE)["vms"] == []


def test_absent_by_a_name_needs_no_further_request(lab: Lab) -> None:
    as_stranger(lab, "vm", name="no-such-vm", state="absent")
    assert not [entry for entry in lab.simulator.log() if "nextid" in entry["path"]]
