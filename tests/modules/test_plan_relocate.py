# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approved plans of module relocate: the moves of the plan and no others, over days."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest

from ansible_collections.pve.fleet.plugins.filter.plan_text import plan_text
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from tests.labs.relocate import make_guest, make_managed, moved, options, prepare, state, unlock
from tests.modules.estate_lab import Lab
from tests.modules.test_killed_relocations import MODES, RUNS, Fate, run
from tests.modules.test_plans import SCHEMA, written
from tests.modules.test_relocate_faults import FAULTS, MOVE, VMID, Course, Write, real_send

BEFORE = {("POST", "/nodes/pve1/qemu"), ("POST", "/nodes/pve1/lxc")}
MAPS: dict[str, Any] = {"storage_map": {"ceph": "local-lvm"}, "networks": {"vmbr0": "vmbr1"}}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


@pytest.fixture
def away(munich: Lab) -> Lab:
    """The other site."""
    prepare(munich)
    return munich


def planned(here: Lab, away: Lab, place: str, given: dict[str, Any]) -> dict[str, Any]:
    """Write the plan of a task, and return its result."""
    for lab in (here, away):
        lab.simulator.reset_log()
    result: dict[str, Any] = here.run("relocate", check=True, plan_file=place, **given)
    assert not result.get("failed"), result
    assert here.simulator.writes() == away.simulator.writes() == []
    return result


def parts(place: str) -> dict[str, dict[str, Any]]:
    """Return the parts of a plan by site."""
    return {one["site"]: one for one in json.loads(Path(place).read_text())["parts"]}


def approved(place: str, site: str) -> set[tuple[str, str]]:
    """Return method and path of each request of a plan at a site; guests of the target are on pve1."""
    return {
        (request["method"], request["path"].replace("/*/", "/pve1/"))
        for change in parts(place)[site]["changes"]
        for request in change["requests"]
    }


def of_guests(lab: Lab) -> set[tuple[str, str]]:
    """Return the writes of the module: the tunnel is the work of the nodes."""
    return {one for one in written(lab) if "tunnel" not in one[1]}


@pytest.mark.usefixtures("fast")
def test_the_plan_of_a_move_names_both_sites_and_lasts_until_its_end(
    unused: Lab, away: Lab, place: str
) -> None:
    """The hold time and the command of root lie between two runs of the plan."""
    guests = {mode: make_guest(unused, mode, 20300 + i, mode) for i, mode in enumerate(MODES)}
    given = options(unused, away, tenant="acme", vmid_range=[700, 799], **MAPS)
    foreseen = planned(unused, away, place, given)
    jsonschema.validate(json.loads(Path(place).read_text()), SCHEMA)
    assert set(parts(place)) == {"vienna", "munich"}
    for site in ("vienna", "munich"):
        assert len(parts(place)[site]["changes"]) == len(MODES)
    apply = {**given, "apply_plan": place}
    made = moved(unused, apply)
    targets = {row["vmid"]: row["new_vmid"] for row in foreseen["guests"]}
    assert {row["vmid"]: row["new_vmid"] for row in made["guests"]} == targets
    assert {row["outcome"] for row in made["guests"]} == {"held"}
    assert not moved(unused, apply)["changed"]
    due = moved(unused, {**apply, "hold": "0s"})
    unlock({"vienna": unused}, due["commands"])
    final = moved(unused, apply)
    assert {row["outcome"] for row in final["guests"]} == {"complete"}
    assert of_guests(unused) <= approved(place, "vienna")
    assert of_guests(away) <= approved(place, "munich")
    for lab in (unused, away):
        lab.simulator.reset_log()
    assert not moved(unused, apply)["changed"]
    assert unused.simulator.writes() == away.simulator.writes() == []
    for mode, vmid in guests.items():
        power = "stopped" if mode == "offline" else "running"
        assert (state(unused, vmid), state(away, targets[vmid])) == ("gone", power)


@pytest.mark.usefixtures("fast")
def test_the_page_shows_each_move_once_with_both_sites(unused: Lab, away: Lab, place: str) -> None:
    for number, mode in enumerate(MODES):
        make_guest(unused, mode, 20300 + number, mode)
    planned(unused, away, place, options(unused, away, tenant="acme", **MAPS))
    page = plan_text(Path(place).read_text(), "html")
    rows = re.findall(r"<li>(.*?)</li>", page)
    assert sorted(re.sub(r"<[^>]+>", "", row) for row in rows) == sorted(
        f"vienna/pve1 tenant_acme/{mode} munich/pve1" for mode in MODES
    )
    assert "Needs on pve1: " in page


@pytest.mark.usefixtures("fast")
def test_the_way_back_has_a_plan_of_its_own(unused: Lab, away: Lab, place: str) -> None:
    """It also lasts over the command of root, and a plan of a move does not take a guest back."""
    vmid = make_guest(unused, "online")
    given = options(unused, away, vms=["mover"], **MAPS)
    planned(unused, away, place, given)
    moved(unused, {**given, "apply_plan": place})
    back = {**given, "state": "returned", "confirm": ["mover"]}
    wrong = unused.run("relocate", **back, apply_plan=place)
    assert "not planned: Shut down" in wrong["msg"], wrong
    planned(unused, away, place, back)
    for _number in range(3):
        found = moved(unused, {**back, "apply_plan": place})
        unlock({"vienna": unused, "munich": away}, found["commands"])
    assert (state(unused, vmid), state(away, vmid)) == ("running", "gone")
    assert not found["changed"]
    assert of_guests(away) <= approved(place, "munich")


CHANGES: dict[str, dict[str, Any]] = {
    "config memory": {"memory": 1024},
    "config sockets": {"sockets": 2},
    "planned VMID 20300 as qemu tenant_acme/w0, now it is qemu tenant_acme/other": {
        "name": "other"
    },
}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("text", CHANGES)
def test_a_guest_that_changed_is_refused_and_the_others_move(
    unused: Lab, away: Lab, place: str, text: str
) -> None:
    first, second = (make_guest(unused, "offline", 20300 + i, f"w{i}") for i in range(2))
    given = options(unused, away, tenant="acme", **MAPS)
    planned(unused, away, place, given)
    path = ("nodes", "pve1", "qemu", first, "config")
    unused.client.write("PUT", *path, data=CHANGES[text])
    apply = {**given, "apply_plan": place}
    for lab in (unused, away):
        lab.simulator.reset_log()
    foreseen = unused.run("relocate", check=True, **apply)
    assert text in foreseen["msg"], foreseen
    assert unused.simulator.writes() == away.simulator.writes() == []
    found = unused.run("relocate", **apply)
    rows = {row["vmid"]: row for row in found["guests"]}
    assert text in rows[first]["msg"]
    assert (rows[first]["outcome"], rows[second]["outcome"]) == ("failed", "held")
    assert (state(unused, first), state(away, first)) == ("stopped", "gone")


@pytest.mark.usefixtures("fast")
def test_a_guest_that_has_no_place_any_more_is_refused_alone(
    unused: Lab, away: Lab, place: str
) -> None:
    """Its VMID was taken at the target. A guest that was created later is not part of the plan."""
    first, second = (make_guest(unused, "offline", 20300 + i, f"w{i}") for i in range(2))
    given = options(unused, away, tenant="acme", **MAPS)
    planned(unused, away, place, given)
    late = make_guest(unused, "offline", 20302, "late")
    away.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": first, "name": "other"})
    found = unused.run("relocate", **given, apply_plan=place)
    rows = {row["vmid"]: row for row in found["guests"]}
    assert [rows[one]["outcome"] for one in (first, second, late)] == ["failed", "held", "failed"]
    assert "is taken at site munich" in rows[first]["msg"]
    assert "nothing was planned for it" in rows[late]["msg"]
    assert (state(away, second), state(away, late)) == ("stopped", "gone")


@pytest.mark.usefixtures("fast")
def test_a_node_that_lost_its_room_during_the_run_is_refused_before_the_write(
    unused: Lab, away: Lab, place: str
) -> None:
    """The second guest is planned while there is room for it."""
    first, second = (make_guest(unused, "online", 20300 + i, f"w{i}") for i in range(2))
    given = options(unused, away, tenant="acme", parallel=1, **MAPS)
    planned(unused, away, place, given)

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        answer = real_send(transport, request)
        if request.method == "PUT" and request.path == ("pools",):  # the first guest has moved
            away.simulator.steer("/nodes/pve1", {"memory": 2**28})
        return answer

    with mock.patch.object(ProxmoxerTransport, "send", send):
        found = unused.run("relocate", **given, apply_plan=place)
    rows = {row["vmid"]: row for row in found["guests"]}
    assert (rows[first]["outcome"], rows[second]["outcome"]) == ("held", "failed")
    assert "of memory, 512 MiB are needed" in rows[second]["msg"]
    assert f"/nodes/pve1/qemu/{second}/config" not in str(of_guests(unused))


def test_a_plan_has_no_token_and_is_for_one_pair_of_sites(
    unused: Lab, away: Lab, place: str
) -> None:
    """The plan of the other direction has parts for both sites, too."""
    make_guest(unused, "offline")
    given = options(unused, away, vms=["mover"], **MAPS)
    planned(unused, away, place, given)
    text = Path(place).read_text()
    assert "remote_migrate" in text
    for site in given["sites"]:
        assert str(site["token_secret"]) not in text
    for lab in (unused, away):
        lab.simulator.reset_log()
    back = {**given, "site": "munich", "to_site": "vienna", "apply_plan": place}
    refused = unused.run("relocate", **back)
    assert "it is for relocate munich at" in refused["msg"], refused
    graz = {**given["sites"][1], "name": "graz"}
    third = {**given, "sites": [given["sites"][0], graz], "to_site": "graz", "apply_plan": place}
    assert "this task is relocate graz at" in unused.run("relocate", **third)["msg"]
    for lab in (unused, away):
        assert lab.simulator.log() == []


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("seed", range(4))  # each way
def test_a_plan_is_applied_again_until_nothing_breaks(
    unused: Lab, away: Lab, place: str, seed: int
) -> None:
    """Killed, with broken tunnels and reboots in between: no write is outside of the plan."""
    fate = Fate(unused, away, seed)
    given = options(unused, away, vms=["mover"], hold="0s", task_timeout=30, **MAPS)
    given |= fate.options
    planned(unused, away, place, given)
    given["apply_plan"] = place
    for _number in range(RUNS):
        result = run(fate, given)
        found = fate.check()
        assert "not the approved" not in str(result), result
        if result is None:
            continue
        if found[0] == "gone" and not result.get("failed") and not result["changed"]:
            break
        unlock({"vienna": unused, "munich": away}, result.get("commands", ()))
    else:
        raise AssertionError(f"not complete: {fate.check()} {fate.seen}")
    assert of_guests(unused) - BEFORE <= approved(place, "vienna")
    assert of_guests(away) <= approved(place, "munich")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "write", [MOVE[0], MOVE[3], MOVE[6], MOVE[10]], ids=["record", "move", "rule", "remove"]
)
def test_a_write_of_a_plan_that_meets_a_fault(
    unused: Lab, away: Lab, place: str, write: Write, fault: str
) -> None:
    """The same plan completes the move in the next runs, of a guest with HA."""
    make_guest(unused, "online", VMID)
    make_managed(unused, VMID)
    given = options(unused, away, vms=["mover"], hold="0s", task_timeout=30, **MAPS)
    planned(unused, away, place, given)
    sites = {"vienna": unused, "munich": away}
    course = Course(sites, {**given, "apply_plan": place}, f"vm:{VMID}")
    site, method, path, nth = write
    if FAULTS[fault]:
        sites[site].simulator.fault(method=method, path=path, nth=nth, **FAULTS[fault])
    else:
        course.write, course.kills = write, fault.split()[1]
    for _number in range(RUNS):
        result = course.run()
        assert "not the approved" not in str(result), result
        is_done = result is not None and not result.get("failed") and not result["changed"]
        if is_done and course.check() == ("gone", "running"):
            break
    else:
        raise AssertionError(f"not complete: {course.check()}")
    assert of_guests(away) <= approved(place, "munich")
