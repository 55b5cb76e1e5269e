# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approved plans of module container_image. PVE chooses the names of the volumes during the run
(pve-storage: Plugin.pm, find_free_diskname; pve-container: API2/LXC.pm, move_volume).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import ApiError
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.replace.run import (
    Replacement,
)
from tests.cases import repeated
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_container_image import STEPS, config, container, holders, publish, volume
from tests.modules.test_plans import approved_requests, written


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


@pytest.fixture
def vmid(lab: Lab, place: str) -> int:
    """The VMID of a running container with an approved plan for its newer image."""
    publish(lab, "1")
    vmid = container(lab, state="started")
    publish(lab, "2")
    lab.simulator.reset_log()
    planned = image(lab, vmid, plan_file=place, check=True)
    assert not planned.get("failed"), planned["msg"]
    assert lab.simulator.writes() == []
    return vmid


def image(lab: Lab, vmid: int, state: str = "replaced", **options: Any) -> dict[str, Any]:
    """Return the result of a task that replaces an image and starts the container, or confirms it."""
    is_replaced = state == "replaced"
    source: dict[str, Any] = {"source": "golden", "start": True} if is_replaced else {}
    return dict(lab.run("container_image", vmid=vmid, state=state, **source, **options))


def applied(lab: Lab, vmid: int, place: str) -> list[str]:
    """Apply the plan with both tasks, and return the finished steps."""
    found: list[str] = []
    for state in ("replaced", "confirmed"):
        result = image(lab, vmid, state, apply_plan=place)
        assert not result.get("failed"), result["msg"]
        found += result["done"]
    return found


def refused(lab: Lab, vmid: int, place: str, **options: Any) -> dict[str, Any]:
    """Return the result of a run that was refused without a write."""
    lab.simulator.reset_log()
    for check in (True, False):
        result = image(lab, vmid, apply_plan=place, check=check, **options)
        assert result["failed"]
        assert result["error"]["reason"] == "not the approved plan"
    assert lab.simulator.writes() == []
    return result


def test_the_approved_image_is_the_one_that_the_container_gets(
    lab: Lab, vmid: int, place: str
) -> None:
    before = config(lab, vmid)
    (part,) = json.loads(Path(place).read_text(encoding="utf-8"))["parts"]
    (change,) = part["changes"]
    summaries = [one["summary"] for one in change["requests"]]
    assert part["lines"][0] == "~ web  image golden@1 -> golden@2"
    data = [one["data"] for one in change["requests"]]
    holder = data[0]["newid"]
    assert data[3]["rootfs"] == f"local-lvm:*-{holder}-disk-*,size=1G"
    assert data[7]["rootfs"] == f"local-lvm:*-{vmid}-disk-*,size=2G"
    assert applied(lab, vmid, place) == summaries
    assert len(summaries) == STEPS + 3  # stop, start, remove the holder
    assert written(lab) <= approved_requests(place)
    after = config(lab, vmid)
    assert "image=golden:2" in after["description"]
    assert after["unused1"] == volume(before["rootfs"])
    assert (holders(lab), after["mp0"]) == ([], before["mp0"])
    status = lab.client.get("nodes", "pve1", "lxc", vmid, "status", "current")
    assert status["status"] == "running"
    lab.simulator.reset_log()
    assert applied(lab, vmid, place) == []
    assert lab.simulator.writes() == []


def stop_before(
    lab: Lab, vmid: int, place: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Apply the plan in a run that ends before its step of that number."""
    sent: list[str] = []

    def die(_self: Replacement, step: Any) -> None:
        if len(sent) == number:
            raise ApiError(attempted="The run", answer="was killed", next_step="Run it again")
        sent.append(step.summary)

    with monkeypatch.context() as patch:
        patch.setattr(Replacement, "guard", die)
        assert image(lab, vmid, apply_plan=place)["failed"]


@pytest.mark.parametrize("number", repeated([6, 0, 1, 2, 3, 4, 5, 7, 8]))
def test_an_interrupted_run_is_continued(
    lab: Lab, vmid: int, place: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    stop_before(lab, vmid, place, monkeypatch, number)
    assert len(applied(lab, vmid, place)) == STEPS + 3 - number
    assert holders(lab) == []
    assert "image=golden:2" in config(lab, vmid)["description"]


def test_a_holder_that_another_run_uses_is_not_removed(
    lab: Lab, vmid: int, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan has read the container before that run moved the image to it, and the holder later:
    no such holder is of use.
    """
    stop_before(lab, vmid, place, monkeypatch, STEPS - 2)
    assert len(holders(lab)) == 1
    late = Replacement._read
    read: list[Any] = []

    def read_early(self: Replacement, actual: Any) -> Any:
        if not read:
            target = {key: one for key, one in actual.target.items() if "unused" not in key}
            actual = replace(actual, target=target)
        read.append(actual)
        return late(self, actual)

    monkeypatch.setattr(Replacement, "_read", read_early)
    lab.simulator.reset_log()
    result = image(lab, vmid, apply_plan=place)
    assert result["plan"][0].startswith("Remove container")
    assert not result.get("failed"), result["msg"]
    assert [one for one in lab.simulator.writes() if one["method"] == "DELETE"] == []
    assert len(holders(lab)) == 1
    assert "image=golden:2" in config(lab, vmid)["description"]


def test_changes_behind_the_plan_are_refused(lab: Lab, vmid: int, place: str) -> None:
    do(lab, "container", vmid=vmid, description="Another proxy")
    result = refused(lab, vmid, place)
    assert "description A proxy image=golden:2 -> Another proxy image=golden:2" in result["msg"]
    assert "The plan of web is not the approved one" in result["msg"]
    assert result["error"]["planned"]
    do(lab, "container", vmid=vmid, description="A proxy", rootfs={"size": "3G"})
    assert "size 2G -> 3G" in refused(lab, vmid, place)["msg"]


def test_a_newer_image_is_not_the_approved_one(lab: Lab, vmid: int, place: str) -> None:
    """Neither a new clone of it, nor the clone of another run that is ready for the container."""
    publish(lab, "3")
    assert "not planned: Clone image golden@3" in refused(lab, vmid, place)["msg"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replacement, "guard", _die_before_the_stop)
        assert image(lab, vmid)["failed"]
    assert "image=golden:2" in refused(lab, vmid, place)["msg"]


# A change behind the plan, and the refusal; without one, the change does not concern the plan.
BEHIND: dict[str, tuple[Callable[[Lab, tuple[Any, ...]], Any], str]] = {
    "renamed": (
        lambda lab, path: lab.client.write("PUT", *path, "config", data={"hostname": "other"}),
        "planned VMID {vmid} as lxc web, now it is lxc other",
    ),
    "moved": (
        lambda lab, path: lab.client.task(
            "POST", *path, "migrate", data={"target": "pve2", "restart": 1}
        ),
        "planned VMID {vmid} on node pve1, now the node has none",
    ),
    "storage": (
        lambda lab, _path: lab.client.write("PUT", "storage", "local-lvm", data={"disable": 1}),
        "planned VMID {vmid} on node pve1, now PVE cannot rename volumes",
    ),
    "stopped": (lambda lab, path: lab.client.task("POST", *path, "status", "stop"), ""),
    "disk": (
        lambda lab, path: lab.client.write(
            "PUT", *path, "config", data={"mp5": "local-lvm:1,mp=/more"}
        ),
        "",
    ),
}


@pytest.mark.parametrize("change", BEHIND)
def test_a_container_that_changed_behind_the_plan(
    lab: Lab, vmid: int, place: str, change: str
) -> None:
    behind, text = BEHIND[change]
    behind(lab, ("nodes", "pve1", "lxc", vmid))
    lab.simulator.reset_log()
    for check in (True, False):
        result = image(lab, vmid, apply_plan=place, check=check)
        assert text.format(vmid=vmid) in result.get("msg", "")
        assert result.get("failed", False) == bool(text)
    assert written(lab) <= approved_requests(place)
    assert not text or lab.simulator.writes() == []
    if not text:
        applied(lab, vmid, place)
        assert applied(lab, vmid, place) == []


def _die_before_the_stop(_self: Replacement, step: Any) -> None:
    if step.action == "shutdown":
        raise ApiError(attempted="The run", answer="was killed", next_step="Run it again")


def test_the_vmid_of_the_holder_is_kept(lab: Lab, vmid: int, place: str) -> None:
    (part,) = json.loads(Path(place).read_text(encoding="utf-8"))["parts"]
    holder = part["changes"][0]["requests"][0]["data"]["newid"]
    other = lab.vm(name="other", vmid=holder, memory="128M", node="pve1")
    assert "newid" in refused(lab, vmid, place)["msg"], other
    lab.vm(name="other", vmid=holder, state="absent")
    assert len(applied(lab, vmid, place)) == STEPS + 3


def test_an_approved_plan_has_no_return(lab: Lab, vmid: int, place: str) -> None:
    assert not image(lab, vmid, apply_plan=place).get("failed")
    lab.simulator.reset_log()
    result = image(lab, vmid, "returned", apply_plan=place)
    assert "not planned" in result["msg"] or "differ" in result["msg"]
    assert lab.simulator.writes() == []
