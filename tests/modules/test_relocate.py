# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module relocate: guests of one simulated cluster move to another one."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.move import (
    OFFLINE,
    PROVEN,
    MoveRecord,
    notes_with,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.decide import (
    MOVE,
    PROVE,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.resource import (
    Relocation,
)
from tests.labs.maintenance import Killed, window
from tests.labs.relocate import identity, make_guest, moved, options, prepare, state, unlock
from tests.modules.access_lab import do, requests
from tests.modules.estate_lab import Lab
from tests.modules.test_drill import vmids


@pytest.fixture
def away(munich: Lab) -> Lab:
    """The other site."""
    prepare(munich)
    return munich


@pytest.fixture
def web(unused: Lab) -> dict[str, Any]:
    """A running VM of a tenant with a disk, a NIC and an agent."""
    made: dict[str, Any] = do(
        unused,
        "vm",
        name="web",
        tenant="acme",
        pool="acme",
        memory=256,
        state="started",
        disks=[{"name": "scsi0", "size": 1, "storage": "ceph"}],
        nics=[{"bridge": "vmbr0"}],
        agent=True,
    )["vm"]
    return made


def test_a_running_machine_moves_holds_and_loses_its_source(
    unused: Lab, away: Lab, web: dict[str, Any]
) -> None:
    """Check mode shows the writes of the run in their order. The source stays until the hold time
    is over and root has removed its lock.
    """
    vmid = web["vmid"]
    given = options(unused, away, vms=["web"], storage_map={"ceph": "local-lvm"})
    for lab in (unused, away):
        lab.simulator.reset_log()
    foreseen = unused.run("relocate", check=True, **given)
    assert not foreseen.get("failed"), foreseen
    assert unused.simulator.writes() == away.simulator.writes() == []
    made = moved(unused, given)
    assert made["plan"] == made["done"] == foreseen["plan"]
    label = f"VM 'web' ({vmid}) at site"
    assert made["done"] == [
        f"Record the move of {label} vienna in its notes",
        f"Move {label} vienna online to site munich as {vmid} on node pve1",
        f"Put {label} munich into pool acme",
        f"Record that {label} munich is proven",
    ]
    (row,) = made["guests"]
    assert (row["outcome"], row["side"], row["proof"]) == ("held", "target", "agent")
    assert state(unused, vmid) == "stopped migrate"
    assert state(away, vmid) == "running"
    config = away.client.get("nodes", "pve1", "qemu", vmid, "config")
    assert config["scsi0"].startswith("local-lvm:")
    members = away.client.get("pools", "acme")["members"]
    assert vmid in {one["vmid"] for one in members}
    for lab in (unused, away):
        lab.simulator.reset_log()
    again = moved(unused, given)
    assert not again["changed"], again
    assert unused.simulator.writes() == away.simulator.writes() == []
    due = moved(unused, {**given, "hold": "0s"})
    digest = unused.config(web)["digest"]
    assert due["commands"] == [
        {
            "site": "vienna",
            "node": web["node"],
            "place": f"vienna/{web['node']}",
            "command": f"qm set {vmid} --skiplock 1 --delete lock --template 1 --digest {digest}",
        }
    ]
    assert due["guests"][0]["outcome"] == "root"
    unlock({"vienna": unused}, due["commands"])
    final = moved(unused, given)
    assert final["done"] == [
        f"Remove {label} vienna",
        f"Record that the move of {label} munich is complete",
    ]
    assert final["guests"][0]["outcome"] == "complete"
    assert state(unused, vmid) == "gone"
    assert not moved(unused, given)["changed"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("mode", ["online", "offline", "restart"])
def test_a_source_that_root_has_released_cannot_be_started(
    unused: Lab, away: Lab, mode: str
) -> None:
    """Between the command of root and the removal, the source has no lock. It is a template, which
    no start accepts, and the way back makes it a guest again, also if it is interrupted.
    """
    vmid = make_guest(unused, mode)
    given = options(unused, away, vms=["mover"], storage_map={"ceph": "local-lvm"}, hold="0s")
    due = moved(unused, given)
    before = state(unused, vmid)
    unlock({"vienna": unused}, due["commands"])
    path = ("nodes", "pve1", "lxc" if mode == "restart" else "qemu", vmid)
    assert (before, state(unused, vmid)) == ("stopped migrate", "stopped")
    with pytest.raises(FleetError, match="if it's a template"):
        unused.client.task("POST", *path, "status", "start")
    back = {**given, "state": "returned", "confirm": ["mover"]}
    unused.simulator.fault(method="PUT", path=f"/{vmid}/config$", drop="after", nth=1)
    away.simulator.fault(method="DELETE", path=f"/{vmid}$", status=500, message="busy", nth=1)
    assert unused.run("relocate", **back)["failed"]
    moved(unused, back)
    power = "stopped" if mode == "offline" else "running"
    assert (state(unused, vmid), state(away, vmid)) == (power, "gone")
    assert "template" not in unused.client.get(*path, "config")
    assert not moved(unused, back)["changed"]
    unlock({"vienna": unused}, moved(unused, given)["commands"])
    moved(unused, given)
    assert (state(unused, vmid), state(away, vmid)) == ("gone", power)


def test_a_command_of_root_that_was_named_before_the_way_back_does_nothing(
    unused: Lab, away: Lab
) -> None:
    """Its digest is that of the locked source."""
    vmid = make_guest(unused, "offline")
    given = options(unused, away, vms=["mover"], storage_map={"ceph": "local-lvm"}, hold="0s")
    late = moved(unused, given)["commands"]
    back = {**given, "state": "returned", "confirm": ["mover"]}
    unlock({"vienna": unused}, moved(unused, back)["commands"])
    moved(unused, back)
    with pytest.raises(FleetError, match="file change by other user"):
        unlock({"vienna": unused}, late)
    assert (state(unused, vmid), state(away, vmid)) == ("stopped", "gone")


def test_the_way_back_needs_a_confirmation(unused: Lab, away: Lab, web: dict[str, Any]) -> None:
    vmid = web["vmid"]
    given = options(unused, away, vms=["web"], storage_map={"ceph": "local-lvm"})
    moved(unused, given)
    back = {**given, "state": "returned"}
    refused = unused.run("relocate", **back)
    assert refused["error"]["reason"] == "refused move", refused
    assert "name it in confirm" in refused["msg"]
    assert state(away, vmid) == "running"
    first = moved(unused, {**back, "confirm": ["web"]})
    assert first["done"][0] == f"Shut down VM 'web' ({vmid}) at site munich"
    assert state(away, vmid) == "stopped"
    unlock({"vienna": unused}, first["commands"])
    last = moved(unused, {**back, "confirm": ["web"]})
    assert last["guests"][0]["outcome"] == "at source"
    assert (state(unused, vmid), state(away, vmid)) == ("running", "gone")
    assert not moved(unused, {**back, "confirm": ["web"]})["changed"]


@pytest.mark.usefixtures("fast")
def test_a_site_is_emptied_over_days(unused: Lab, away: Lab) -> None:
    """Each run continues: complete moves are counted. A guest is found by its former VMID, because
    its record stays. Its way back is refused.
    """
    first, second = (make_guest(unused, "offline", 20300 + one, f"w{one}") for one in range(2))
    given = options(unused, away, storage_map={"ceph": "local-lvm"}, vmid_range=[700, 799])
    day = {**given, "all": True, "exclude": ["w1"]}
    moved(unused, day)
    due = moved(unused, {**day, "hold": "0s"})
    assert [row["vmid"] for row in due["guests"]] == [first]
    unlock({"vienna": unused}, due["commands"])
    assert moved(unused, day)["complete"] == 0
    assert state(unused, first) == "gone"
    last = moved(unused, {**given, "all": True})
    assert (last["complete"], [row["vmid"] for row in last["guests"]]) == (1, [second])
    assert "  1 guest moved before" in last["report"]
    unused.simulator.reset_log()
    away.simulator.reset_log()
    named = moved(unused, {**given, "vms": [str(first)]})
    assert (named["complete"], named["guests"], named["changed"]) == (1, [], False)
    back = unused.run("relocate", **given, vms=[str(first)], state="returned", confirm=["w0"])
    assert "move these guests back" in back["msg"], back
    assert unused.simulator.writes() == away.simulator.writes() == []


@pytest.mark.parametrize(
    "chosen", [{"vms": []}, {"tags": []}, {"all": False}, {"all": True, "vms": ["mover"]}]
)
def test_all_guests_are_never_meant_by_an_omission(
    unused: Lab, away: Lab, chosen: dict[str, Any]
) -> None:
    make_guest(unused, "offline")
    found = unused.run("relocate", check=True, **options(unused, away, **chosen))
    assert "Set either all: true, or guests by vms, tags or tenant" in found["msg"], found


COPIES = [
    ("graz", 444, "", 0),
    ("vienna", 445, "", 0),
    ("vienna", 444, "aa", 0),
    ("vienna", 444, "", 1),
]


@pytest.mark.parametrize(("origin", "target", "other", "guests"), COPIES)
def test_a_guest_of_a_third_site_and_copies_keep_their_records(
    unused: Lab, away: Lab, origin: str, target: int, other: str, guests: int
) -> None:
    """Their sources are not at this site, and that does not mean that they were removed: a guest of a
    third site, a clone, an archive of another cluster with the same names.
    """
    pair = f"{other or identity(unused)}.{identity(away)}"
    move = MoveRecord("0f", 444, "munich", target, OFFLINE, False, 1, PROVEN, 1, origin, "", pair)
    notes = notes_with({}, move)
    data = {"vmid": 444, "name": "other", "tags": "tenant_acme", "description": notes}
    away.client.task("POST", "nodes", "pve1", "qemu", data=data)
    away.simulator.reset_log()
    found = moved(unused, options(unused, away, tenant="acme"))
    assert (len(found["guests"]), found["complete"]) == (guests, 0)
    assert len(away.simulator.writes()) == guests


def test_everything_that_hinders_a_move_is_named_before_the_first_write(
    unused: Lab, away: Lab, web: dict[str, Any]
) -> None:
    path = ("nodes", web["node"], "qemu", web["vmid"])
    unused.client.task("POST", *path, "snapshot", data={"snapname": "before"})
    unused.client.write(
        "PUT", *path, "config", data={"ide2": "local:iso/debian-13-netinst.iso,media=cdrom"}
    )
    away.client.task(
        "POST", "nodes", "pve1", "qemu", data={"vmid": 444, "name": "web", "tags": "tenant_acme"}
    )
    given = options(unused, away, tenant="acme", quotas={"acme": {"memory": 128}})
    before = vmids(away)
    unused.simulator.reset_log()
    for check in (True, False):
        found = unused.run("relocate", check=check, **given)
        text = str(found["error"]["problems"])
        for part in ("snapshots before", "medium local:iso/debian-13-netinst.iso", "has its name"):
            assert part in text
        assert "memory of tenant acme" in text
        (line, end) = found["report"]
        assert line.startswith("! acme/web  not moved: ")
        assert "; it has the snapshots before: delete them" in line
        assert end == "Plan: 1 refused"
    assert unused.simulator.writes() == []
    assert vmids(away) == before


OPTIONS = "VM.Config.Network VM.Config.Memory VM.Config.HWType"
RIGHTS = (
    "Sys.Audit VM.Allocate VM.Audit VM.PowerMgmt VM.Config.Options VM.Config.Disk Pool.Audit"
    " Pool.Allocate Datastore.Audit SDN.Audit SDN.Use"
)


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        (f"Datastore.AllocateSpace {OPTIONS}", "Sys.Incoming"),
        (f"Sys.Incoming {OPTIONS}", "Datastore.AllocateSpace"),
        ("Sys.Incoming Datastore.AllocateSpace VM.Config.Memory", "VM.Config.Network"),
        ("Sys.Incoming Datastore.AllocateSpace VM.Config.Network", "VM.Config.Memory"),
        (f"Sys.Incoming Datastore.AllocateSpace {OPTIONS}", ""),
    ],
)
def test_the_token_of_the_target_needs_the_privileges_of_the_tunnel(
    unused: Lab, away: Lab, more: str, missing: str
) -> None:
    """Qemu.pm, mtunnel: Sys.Incoming on / and VM.Allocate, then Datastore.AllocateSpace on each
    storage; its command C(config) needs the rights on all options (update_vm_api). Check mode finds
    it without a request to the tunnel.
    """
    make_guest(unused, "offline")
    away.client.write("POST", "access", "users", data={"userid": "mover@pve"})
    path = ("access", "users", "mover@pve", "token", "move")
    token = away.client.write("POST", *path, data={"privsep": 0})
    privileges = f"{RIGHTS} {more}".replace(" ", ",")
    away.client.write("POST", "access", "roles", data={"roleid": "mover", "privs": privileges})
    away.client.write(
        "PUT", "access", "acl", data={"path": "/", "users": "mover@pve", "roles": "mover"}
    )
    given = options(unused, away, vms=["mover"])
    given["sites"][1] |= {"token_id": "mover@pve!move", "token_secret": token["value"]}
    found = unused.run("relocate", check=True, **given)
    assert bool(found.get("failed")) == bool(missing), found
    assert missing in found.get("msg", ""), found
    if not missing:
        assert not unused.run("relocate", **given).get("failed")


def test_an_mtu_that_the_bridge_of_the_target_lacks(unused: Lab, away: Lab) -> None:
    """The guest would not start (qemu-server: QemuServer.pm, print_netdev_full)."""
    vmid = make_guest(unused, "offline")
    nic = {"net0": "virtio,bridge=vmbr0,mtu=9000"}
    unused.client.write("PUT", "nodes", "pve1", "qemu", vmid, "config", data=nic)
    given = options(unused, away, vms=["mover"], networks={"vmbr0": "vmbr1"})
    found = unused.run("relocate", check=True, **given)
    assert "9000 is more than the MTU 1500 of bridge vmbr1" in found["msg"], found


@pytest.mark.parametrize(("mode", "mtu"), [("offline", ""), ("offline", ",mtu=1"), ("restart", "")])
def test_a_lower_mtu_that_a_nic_would_inherit_is_refused(
    unused: Lab, away: Lab, mode: str, mtu: str
) -> None:
    """Such a NIC gets the MTU of its bridge at each start (qemu-server: QemuServer.pm,
    print_netdevice_full; pve-container: LXC.pm, update_lxc_config).
    """
    vmid = make_guest(unused, mode)
    if mtu:
        nic = {"net0": f"virtio,bridge=vmbr0{mtu}"}
        unused.client.write("PUT", "nodes", "pve1", "qemu", vmid, "config", data=nic)
    given = options(unused, away, vms=["mover"], networks={"vmbr0": "vmbr1"})
    network = ("nodes", "pve1", "network")
    assert not unused.run("relocate", check=True, **given).get("failed")
    bridge = {"type": "bridge", "autostart": 1, "mtu": 1400}
    away.client.write("PUT", *network, "vmbr1", data=bridge)
    away.client.task("PUT", *network)
    found = unused.run("relocate", check=True, **given)
    text = "net0 gets the MTU of its bridge: 1500 of vmbr0, and vmbr1 of node pve1 has 1400"
    assert text in found["msg"], found


@pytest.mark.usefixtures("fast")
def test_moves_start_in_their_windows_only(unused: Lab, away: Lab) -> None:
    """The proof and the removal of the source have no window. Check mode foresees both."""
    make_guest(unused, "offline")
    given = options(unused, away, vms=["mover"])
    closed, open_now = window(2, 3), window(-1, 2)
    unused.simulator.reset_log()
    for check in (True, False):
        found = unused.run("relocate", check=check, **given, windows=[closed])
        assert (found["changed"], found["guests"][0]["outcome"]) == (False, "waits"), found
        assert f"in the windows {closed}" in str(found["report"])
    assert unused.simulator.writes() == []
    assert moved(unused, {**given, "windows": [open_now]})["changed"]
    due = moved(unused, {**given, "windows": [closed], "hold": "0s"})
    assert due["guests"][0]["outcome"] == "root"
    wrong = unused.run("relocate", check=True, **given, windows=["tonight"])
    assert "is not a window of time" in wrong["msg"]


@pytest.mark.parametrize(
    ("rates", "seconds", "text"),
    [
        ({}, None, "to copy: 8 GiB, its time is not known without transfer_rate or bwlimit"),
        ({"bwlimit": 1024}, 4101, "to copy: 8 GiB, about 69 min, without"),
        ({"bwlimit": 1024, "transfer_rate": 1}, 4101, "to copy: 8 GiB, about 137 min, without"),
        ({"transfer_rate": 64}, 69, "to copy: 8 GiB, about 3 min, without"),
    ],
)
def test_the_size_and_the_time_of_the_moves(
    unused: Lab, away: Lab, rates: dict[str, int], seconds: int | None, text: str
) -> None:
    """Two guests with 4 GiB each move at once and share the link. C(bwlimit) is for each of them."""
    for number in range(2):
        make_guest(unused, "offline", 20300 + number, f"w{number}")
    found = unused.run("relocate", check=True, **options(unused, away, tenant="acme", **rates))
    assert [row["seconds"] for row in found["guests"]] == [seconds] * 2
    assert text in str(found["report"])


@pytest.mark.usefixtures("fast")
def test_a_move_lists_each_site_once(unused: Lab, away: Lab) -> None:
    """The guest is then read on its node before each write. The target is listed again for its
    place and for the room right before the move.
    """
    make_guest(unused, "offline")
    given = options(unused, away, vms=["mover"])
    for lab in (unused, away):
        lab.simulator.reset_log()
    moved(unused, given)
    counts = [requests(lab).count("GET /cluster/resources") for lab in (unused, away)]
    assert counts == [1, 3]
    for lab in (unused, away):
        lab.simulator.reset_log()
    moved(unused, given)
    counts = [requests(lab).count("GET /cluster/resources") for lab in (unused, away)]
    assert counts == [1, 1]


def test_a_security_group_that_the_target_lacks(unused: Lab, away: Lab) -> None:
    """QemuMigrate.pm, phase1_remote: the target gets the firewall of the guest as a text."""
    vmid = make_guest(unused, "offline")
    groups = ("cluster", "firewall", "groups")
    unused.client.write("POST", *groups, data={"group": "web"})
    rules = ("nodes", "pve1", "qemu", vmid, "firewall", "rules")
    unused.client.write("POST", *rules, data={"type": "group", "action": "web", "enable": 1})
    given = options(unused, away, vms=["mover"])
    unused.simulator.reset_log()
    for check in (True, False):
        found = unused.run("relocate", check=check, **given)
        assert "uses the security group web, which site munich lacks" in found["msg"], found
    assert unused.simulator.writes() == []
    away.client.write("POST", *groups, data={"group": "web"})
    moved(unused, given)
    there = away.client.get("nodes", "pve1", "qemu", vmid, "firewall", "rules")
    assert [rule["action"] for rule in there] == ["web"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("per_storage", "most"), [(1, 1), (0, 3)])
def test_moves_from_one_storage_are_limited(
    unused: Lab, away: Lab, per_storage: int, most: int
) -> None:
    """A guest that has arrived leaves its room to the next one: the first proof waits here until
    another migration begins.
    """
    for number in range(3):
        make_guest(unused, "offline", 20300 + number, f"w{number}")
    lock, busy, seen = threading.Lock(), list[Any](), list[int]()
    second = threading.Event()
    send = Relocation.send

    def count(move: Relocation, step: Step) -> Any:
        if step.action == PROVE:
            assert second.wait(30)
        if step.action != MOVE:
            return send(move, step)
        with lock:
            busy.append(move)
            seen.append(len(busy))
            if len(seen) == 2:
                second.set()
        result = send(move, step)
        with lock:
            busy.remove(move)
        return result

    given = options(unused, away, tenant="acme", parallel=3, parallel_per_storage=per_storage)
    with mock.patch.object(Relocation, "send", count):
        moved(unused, given)
    assert max(seen) == most


@pytest.mark.usefixtures("fast")
def test_a_tier_moves_together_after_the_proof_of_the_tier_before(unused: Lab, away: Lab) -> None:
    """Although there is room for all three at once."""
    for number, order in enumerate((2, 1, 2)):
        vmid = make_guest(unused, "offline", 20300 + number, f"w{number}")
        path = ("nodes", "pve1", "qemu", vmid, "config")
        unused.client.write("PUT", *path, data={"startup": f"order={order}"})
    started: list[int] = []
    second, both = threading.Event(), threading.Barrier(2)
    send = Relocation.send

    def follow(move: Relocation, step: Step) -> Any:
        if step.action == MOVE:
            vmid = move.guest.actual.vmid
            started.append(vmid)
            if vmid == 20301:
                assert not second.wait(1), "the second tier moves beside the first one"
            else:
                second.set()
                notes = away.client.get("nodes", "pve1", "qemu", 20301, "config")["description"]
                assert ":proven:" in notes
                both.wait(30)
        return send(move, step)

    given = options(unused, away, tenant="acme", parallel=3)
    with mock.patch.object(Relocation, "send", follow):
        moved(unused, given)
    assert started[0] == 20301
    assert sorted(started) == [20300, 20301, 20302]


@pytest.mark.usefixtures("fast")
def test_each_guest_needs_a_bounded_number_of_requests(unused: Lab, away: Lab) -> None:
    """Besides the looks at its tasks: both sides are read before each of its four writes, and after
    the last one.
    """
    counts: list[int] = []
    for number, guests in enumerate((1, 3)):
        for at in range(guests):
            make_guest(unused, "online", 20300 + 10 * number + at, f"w{number}{at}")
        for lab in (unused, away):
            lab.simulator.reset_log()
        names = [f"w{number}{at}" for at in range(guests)]
        moved(unused, options(unused, away, vms=names, storage_map={"ceph": "local-lvm"}))
        sent = [one for lab in (unused, away) for one in requests(lab)]
        counts.append(len([one for one in sent if "tunnel" not in one and "UPID" not in one]))
    one, three = counts
    assert one <= 75
    assert three - one <= 2 * 48


def test_a_site_that_does_not_answer_stops_everything(
    unused: Lab, away: Lab, web: dict[str, Any]
) -> None:
    given = options(unused, away, vms=["web"], storage_map={"ceph": "local-lvm"})
    moved(unused, given)
    unlock({"": unused}, [{"site": "", "command": f"qm unlock {web['vmid']}"}])
    away.simulator.fault(method="GET", path="/cluster/resources", drop="before", nth=1)
    unused.simulator.reset_log()
    found = unused.run("relocate", retries=1, **given)
    assert found["failed"]
    assert unused.simulator.writes() == []
    assert state(unused, web["vmid"]) == "stopped"


TIERS = {"db": ("online", 1), "app": ("online", 2), "web": ("restart", 3)}


@pytest.mark.usefixtures("fast")
def test_three_tiers_move_although_two_runs_are_interrupted(unused: Lab, away: Lab) -> None:
    """The story of docs/relocation.md: the first run dies while the second tier moves, the tunnel
    of the second run breaks when the web server would start.
    """
    guests: dict[str, int] = {}
    for number, (name, (mode, order)) in enumerate(TIERS.items()):
        vmid = make_guest(unused, mode, 20300 + number, name)
        kind = "lxc" if mode == "restart" else "qemu"
        path = ("nodes", "pve1", kind, vmid, "config")
        unused.client.write("PUT", *path, data={"startup": f"order={order}"})
        guests[name] = vmid
    given = options(unused, away, tenant="acme", storage_map={"ceph": "local-lvm"}, hold="7d")
    story = unused.run("relocate", check=True, **given)["report"]

    sent: list[str] = []

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        answer = real(transport, request)
        if str(request.path[-1]) == "remote_migrate":
            sent.append(str(request.path[-2]))
        if len(sent) == 2:
            raise Killed
        return answer

    real = ProxmoxerTransport.send
    with mock.patch.object(ProxmoxerTransport, "send", send), pytest.raises(Killed):
        unused.run("relocate", **given)
    rule = {"method": "TUNNEL", "path": f"/lxc/{guests['web']}/mtunnel/start$"}
    away.simulator.fault(**rule, drop="before")
    broken = unused.run("relocate", **given)
    assert [row["outcome"] for row in broken["guests"]] == ["held", "held", "failed"], broken
    story += broken["report"]
    sites = {"vienna": unused, "munich": away}
    for _number in range(2):
        found = moved(unused, given)
        story += found["report"]
        unlock(sites, found["commands"])
    assert [row["outcome"] for row in found["guests"]] == ["held"] * 3
    for vmid in guests.values():
        assert (state(unused, vmid), state(away, vmid)) == ("stopped migrate", "running")
    due = moved(unused, {**given, "hold": "0s"})
    story += due["report"]
    unlock(sites, due["commands"])
    story += moved(unused, given)["report"]
    for vmid in guests.values():
        assert (state(unused, vmid), state(away, vmid)) == ("gone", "running")
    print("\n".join(story))


def test_no_error_shows_the_token_of_the_target(
    unused: Lab, away: Lab, web: dict[str, Any], tmp_path: Path
) -> None:
    """Proxmox VE gets it as a parameter of the migration."""
    token = away.client.write(
        "POST", "access", "users", "root@pam", "token", "move", data={"privsep": 0}
    )
    login = {"token_id": "root@pam!move", "token_secret": token["value"]}
    sites = [
        {"name": "vienna", **unused.connection},
        {"name": "munich", **away.connection, **login},
    ]
    (tmp_path / "sites.yml").write_text(json.dumps({"sites": sites}), encoding="utf-8")
    given = options(unused, away, vms=["web"], storage_map={"ceph": "local-lvm"})
    given |= {"sites": None, "sites_file": str(tmp_path / "sites.yml")}
    text = f"target-endpoint: invalid format - apitoken={token['value']}"
    rule = {"method": "POST", "path": "/remote_migrate$", "status": 500, "message": text}
    unused.simulator.fault(**rule)
    found = unused.run("relocate", **given)
    assert "invalid format" in found["msg"], found
    assert token["value"] not in json.dumps(found)


def refused_lines(lab: Lab, given: dict[str, Any]) -> str:
    """Return the lines of a task that is refused in check mode and in a run, without a write."""
    lab.simulator.reset_log()
    for check in (True, False):
        found = lab.run("relocate", check=check, **given)
        assert found["error"]["reason"] == "refused move", found
    assert lab.simulator.writes() == []
    return str(found["report"])


def test_a_taken_vmid_and_too_little_room_are_refused(unused: Lab, away: Lab) -> None:
    vmid = make_guest(unused, "online")
    given = options(unused, away, vms=["mover"], storage="local-lvm")
    away.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": vmid, "name": "other"})
    assert f"{vmid} is taken at site munich" in refused_lines(unused, given)
    given["vmid_range"] = [700, 701]
    row = {"volid": "local-lvm:vm-9999-disk-0", "new": True, "size": 1 << 50}
    away.simulator.steer("/volumes/pve1", row)
    assert "local-lvm" in refused_lines(unused, given)
    away.simulator.steer("/volumes/pve1", {"volid": row["volid"], "gone": True})
    away.simulator.steer("/nodes/pve1", {"memory": 1 << 28})
    assert "memory" in refused_lines(unused, given)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_running_machine_with_the_cpu_of_its_node_needs_the_same_one(
    unused: Lab, away: Lab, is_same: bool
) -> None:
    vmid = make_guest(unused, "offline")
    path = ("nodes", "pve1", "qemu", vmid)
    unused.client.write("PUT", *path, "config", data={"cpu": "host"})
    unused.client.task("POST", *path, "status", "start")
    real, port = ProxmoxerTransport.send, away.simulator.port

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        answer = real(transport, request)
        is_there = transport.endpoint.port == port
        if is_there and not is_same and request.path == ("nodes", "pve1", "status"):
            answer["cpuinfo"]["model"] = "another CPU"
        return answer

    given = options(unused, away, vms=["mover"], storage="local-lvm")
    with mock.patch.object(ProxmoxerTransport, "send", send):
        if not is_same:
            lines = refused_lines(unused, given)
            assert "and node pve1 has another CPU" in lines
            return
        assert not unused.run("relocate", check=True, **given).get("failed")


MODELS = ("cluster", "qemu", "custom-cpu-models")


@pytest.mark.parametrize(
    ("there", "text"),
    [
        (None, "site munich has no CPU model custom-mine, or its login may not see it"),
        ("Haswell", "site munich has another CPU model custom-mine"),
        ("Skylake-Client", ""),
    ],
)
def test_a_machine_with_a_custom_cpu_model_needs_the_same_one(
    unused: Lab, away: Lab, there: str | None, text: str
) -> None:
    """CPUConfig.pm, assert_custom_model_compatibility. The models are read for such a VM only."""
    for lab, base in ((unused, "Skylake-Client"), (away, there)):
        if base is not None:
            data = {"cputype": "custom-mine", "reported-model": base}
            lab.client.write("POST", *MODELS, data=data)
    for number in range(2):
        vmid = make_guest(unused, "offline", 20300 + number, f"w{number}")
    given = options(unused, away, tenant="acme", storage="local-lvm")
    away.simulator.reset_log()
    assert not unused.run("relocate", check=True, **given).get("failed")
    assert f"GET /{'/'.join(MODELS)}" not in requests(away)
    for number in range(2):
        path = ("nodes", "pve1", "qemu", vmid - number, "config")
        unused.client.write("PUT", *path, data={"cpu": "custom-mine,flags=+aes"})
    if text:
        assert refused_lines(unused, given).count(text) == 2
        return
    away.simulator.reset_log()
    assert not unused.run("relocate", check=True, **given).get("failed")
    assert requests(away).count(f"GET /{'/'.join(MODELS)}") == 1
    moved(unused, given)


def test_a_site_with_an_older_version_is_refused(unused: Lab, old: Lab) -> None:
    """Its CPU models have another request."""
    vmid = make_guest(unused, "offline")
    unused.client.write("POST", *MODELS, data={"cputype": "custom-mine", "reported-model": "max"})
    config = ("nodes", "pve1", "qemu", vmid, "config")
    unused.client.write("PUT", *config, data={"cpu": "custom-mine"})
    given = options(unused, old, vms=["mover"], storage="local-lvm")
    lines = refused_lines(unused, given)
    assert "site munich has the older Proxmox VE 8" in lines
    assert "site munich has no CPU model custom-mine" in lines


@pytest.mark.usefixtures("fast")
def test_guests_are_chosen_by_tag_and_get_the_pool_and_the_rate_of_the_task(
    unused: Lab, away: Lab
) -> None:
    """Notes, tags, NIC and address come along."""
    first, second = (make_guest(unused, "restart", 20300 + i, f"w{i}") for i in range(2))
    path = ("nodes", "pve1", "lxc", first, "config")
    nic = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.0.0.7/24,tag=7,type=veth"
    notes = {"tags": "tenant_acme;edge", "description": "mail", "net0": nic}
    unused.client.write("PUT", *path, data=notes)
    away.client.write("POST", "pools", data={"poolid": "front"})
    given = options(unused, away, tags=["edge"], pools={"acme": "front"}, bwlimit=1048576)
    unused.client.task("POST", *path[:-1], "status", "stop")
    unused.simulator.reset_log()
    found = moved(unused, {**given, "storage": "local-lvm"})
    assert [row["vmid"] for row in found["guests"]] == [first]
    (sent,) = [one for one in unused.simulator.writes() if one["path"].endswith("remote_migrate")]
    assert int(sent["params"]["bwlimit"]) == 1048576
    assert [one["vmid"] for one in away.client.get("pools", "front")["members"]] == [first]
    config = away.client.get(*path)
    assert config["net0"] == nic
    assert config["tags"].split(";") == ["edge", "tenant_acme"]
    assert config["description"].startswith("mail\n")
    assert (state(unused, second), state(away, second)) == ("running", "gone")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("mode", ["offline", "restart"])
def test_a_guest_moves_from_an_older_version(old: Lab, away: Lab, mode: str) -> None:
    vmid = make_guest(old, mode)
    given = options(old, away, vms=["mover"], storage="local-lvm", hold="0s")
    unlock({"vienna": old}, moved(old, given)["commands"])
    moved(old, given)
    power = "stopped" if mode == "offline" else "running"
    assert (state(old, vmid), state(away, vmid)) == ("gone", power)
