# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules sdn and sdn_info against the simulator."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import NetworkError
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn import run as sdn_run
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.model import TYPES
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.resource import (
    SdnTransaction,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.token_file import (
    token_file,
)
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.simulator.sdn import objects

ROOT = ("cluster", "sdn")
EVPN: dict[str, Any] = {"name": "ctl1", "type": "evpn", "asn": 1, "peers": ["10.0.0.1"]}
ZONE: dict[str, Any] = {"name": "teams", "type": "vlan", "bridge": "vmbr0"}
BLUE: dict[str, Any] = {"name": "blue", "zone": "teams", "tag": 110, "alias": "Team blue"}
GREEN: dict[str, Any] = {"name": "green", "zone": "teams", "tag": 120}
LAB: dict[str, Any] = {
    "name": "lab",
    "type": "simple",
    "ipam": "pve",
    "dhcp": "dnsmasq",
    "nodes": ["pve1", "pve2"],
}
NET: dict[str, Any] = {
    "cidr": "10.40.0.0/24",
    "vnet": "lab0",
    "gateway": "10.40.0.1",
    "snat": True,
    "dhcp_ranges": [{"start_address": "10.40.0.100", "end_address": "10.40.0.199"}],
}
WHOLE: dict[str, Any] = {
    "zones": [ZONE, LAB],
    "vnets": [BLUE, GREEN, {"name": "lab0", "zone": "lab"}],
    "subnets": [NET],
}


@pytest.fixture
def lab(unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A cluster without networks, and a directory for the token of its lock."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return unused


def writes(lab: Lab) -> list[str]:
    return [f"{row['method']} {row['path']}" for row in lab.simulator.writes()]


def converge(lab: Lab, **options: Any) -> dict[str, Any]:
    """Check that check mode foresees the run, and that a second run changes nothing."""
    lab.simulator.reset_log()
    foreseen = do(lab, "sdn", check=True, **options)
    assert writes(lab) == []
    result = do(lab, "sdn", **options)
    assert len(writes(lab)) == len(result["plan"])
    for key in ("plan", "changed", "sdn"):
        assert result[key] == foreseen[key], key
    assert result["done"] == result["plan"]
    lab.simulator.reset_log()
    assert not do(lab, "sdn", **options)["changed"]
    assert writes(lab) == []
    require_free(lab)
    return result


def require_free(lab: Lab) -> None:
    """Check that nothing is locked or pending."""
    token = lab.client.write("POST", *ROOT, "lock")
    lab.client.write("DELETE", *ROOT, "lock", data={"lock-token": token})


def running(lab: Lab, kind: str) -> list[str]:
    rows = lab.client.get(*ROOT, kind, params={"running": 1})
    return sorted(row[kind[:-1]] for row in rows)


def test_networks_are_created_changed_and_removed(lab: Lab) -> None:
    result = converge(lab, **WHOLE)
    assert result["plan"][0] == "Lock the SDN configuration"
    assert result["plan"][-2:] == ["Apply the SDN configuration", "Release the SDN lock"]
    assert result["nodes"]["pve1"] == {"lab": "available", "teams": "available"}
    assert result["nodes"]["pve3"] == {"teams": "available"}
    assert "vnets blue new" in result["dry_run"]["pve1"]["interfaces"]
    assert "blue" in result["diff"][1]["prepared"]
    assert running(lab, "vnets") == ["blue", "green", "lab0"]
    changed = converge(lab, vnets=[{**BLUE, "tag": 111, "alias": ""}])
    assert changed["plan"][1] == "Change VNet 'blue': tag=111, remove alias"
    gone = converge(lab, zones=[LAB], vnets=[{"name": "lab0"}], exact=["zones", "vnets"])
    assert gone["plan"][1:4] == ["Remove VNet 'blue'", "Remove VNet 'green'", "Remove zone 'teams'"]
    assert running(lab, "zones") == ["lab"]
    converge(
        lab,
        subnets=[{**NET, "state": "absent"}],
        vnets=[{"name": "lab0", "state": "absent"}],
        zones=[{"name": "lab", "state": "absent"}],
    )
    everything: dict[str, Any] = {
        "zones": [],
        "vnets": [],
        "subnets": [],
        "exact": ["zones", "vnets", "subnets"],
    }
    converge(lab, **everything)
    assert running(lab, "zones") == []


def test_the_result_of_the_info_module_changes_nothing(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    info = do(lab, "sdn_info")
    assert info["pending"] == []
    assert info["nodes"]["pve2"] == {"lab": "available", "teams": "available"}
    exact = ["zones", "vnets", "subnets", "controllers"]
    assert not do(lab, "sdn", **info["sdn"], exact=exact)["changed"]
    lab.simulator.reset_log()
    assert not do(lab, "sdn", zones=WHOLE["zones"][:1])["changed"]
    assert len(lab.simulator.log()) <= 8


def test_an_item_with_separators_is_the_list_that_pve_stores(lab: Lab) -> None:
    """PVE splits such a text (pve-common: JSONSchema.pm, check_prop and split_list)."""
    zone = {"name": "wide", "type": "vxlan", "peers": ["10.0.0.1 ", "10.0.0.3;10.0.0.2"]}
    converge(lab, zones=[{**zone, "nodes": ["pve2,pve1"]}])
    rows = lab.client.get("cluster", "sdn", "zones")
    assert [row["peers"] for row in rows] == ["10.0.0.1,10.0.0.2,10.0.0.3"]


def test_addresses_that_the_ipam_gave_out_are_listed_and_keep_their_subnet(lab: Lab) -> None:
    """The first address of the range goes to the NIC, and the gateway has its own row. Proxmox VE
    refuses the removal in the middle (pve-network: Ipams/PVEPlugin.pm, del_subnet).
    """
    do(lab, "sdn", **WHOLE)
    vmid = lab.vm(name="web", node="pve1", memory="1G", nics=[{"bridge": "lab0"}])["vm"]["vmid"]
    gateway, lease = do(lab, "sdn_info")["leases"]
    place = {"ipam": "pve", "vnet": "lab0", "subnet": "10.40.0.0/24"}
    assert {key: gateway[key] for key in place} == place
    assert (gateway["ip"], bool(gateway["gateway"])) == ("10.40.0.1", True)
    found = {key: lease[key] for key in (*place, "ip", "hostname", "vmid")}
    assert found == {**place, "ip": "10.40.0.100", "hostname": "web", "vmid": vmid}
    result = refused(lab, "sdn", subnets=[{**NET, "state": "absent"}])
    assert "10.40.0.100 of it is in use" in result["msg"]
    lab.run("vm", name="web", state="absent")
    converge(lab, subnets=[{**NET, "state": "absent"}])


def test_each_type_of_zone_is_created(lab: Lab) -> None:
    converge(
        lab,
        controllers=[{"name": "ctl", "type": "evpn", "asn": 65000, "peers": ["10.99.0.11"]}],
        zones=[
            {"name": "outer", "type": "qinq", "bridge": "vmbr0", "tag": 50},
            {"name": "over", "type": "vxlan", "peers": ["10.99.0.12", "10.99.0.11"]},
            {"name": "routed", "type": "evpn", "controller": "ctl", "vrf_vxlan": 10000},
        ],
        vnets=[
            {"name": "inner", "zone": "outer", "tag": 7},
            {"name": "wide", "zone": "over", "tag": 5000},
            {"name": "deep", "zone": "routed", "tag": 5001},
        ],
    )
    result = refused(lab, "sdn", controllers=[], exact=["controllers"])
    assert "zone 'routed' uses it" in result["msg"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"zones": [{**ZONE, "bridge": "vmbr9"}]}, "node pve1 has no bridge 'vmbr9'"),
        ({"zones": [{**LAB, "nodes": ["pve9"]}]}, "there is no node 'pve9'"),
        ({"zones": [{"name": "teams", "type": "simple"}]}, "its type is vlan"),
        ({"zones": [{"name": "teams", "state": "absent"}]}, "Zone 'teams' was not removed: VNet"),
        ({"zones": [{"name": "toolongname", "type": "simple"}]}, "2 to 8 letters"),
        ({"zones": [{"name": "a-b", "type": "simple"}]}, "2 to 8 letters"),
        ({"zones": [{"name": "new"}]}, "it is new and has no type"),
        ({"zones": [{"name": "new", "type": "qinq", "tag": 5}]}, "type qinq needs bridge"),
        ({"zones": [{**LAB, "vrf_vxlan": 5}]}, "type simple does not have vrf_vxlan"),
        ({"zones": [{**LAB, "dnszone": "lab.example.com"}]}, "dnszone needs a name server"),
        ({"controllers": [{**EVPN, "loopback": "lo"}]}, "type evpn does not have loopback"),
        ({"controllers": [{"name": "ctl1", "type": "bgp", "asn": 1}]}, "type bgp needs node"),
        ({"ipams": [{"name": "ipam1"}]}, "it is new and has no type"),
        (
            {"ipams": [{"name": "ipam1", "type": "netbox", "token": "hush-1"}]},
            "type netbox needs url",
        ),
        ({"dns": [{"name": "dns1", "type": "powerdns", "key": "hush-1"}]}, "needs url"),
        ({"zones": [{**LAB, "ipam": "gone"}]}, "there is no IPAM 'gone'"),
        ({"vnets": [{**GREEN, "tag": 110}]}, "VNet 'blue' has tag 110 too"),
        ({"vnets": [{**GREEN, "tag": 4095}]}, "not between 1 and 4094"),
        ({"vnets": [{"name": "new", "zone": "teams"}]}, "needs a tag"),
        ({"vnets": [{"name": "lab0", "tag": 3}]}, "of a simple zone has no tag"),
        ({"vnets": [{"name": "new", "zone": "gone"}]}, "there is no zone 'gone'"),
        ({"vnets": [{"name": "new"}]}, "it is new and has no zone"),
        ({"vnets": [BLUE, BLUE]}, "'blue' is listed twice"),
        ({"vnets": [{"name": "lab0", "state": "absent"}]}, "it has subnet 'lab-10.40.0.0-24'"),
        ({"vnets": [{"name": "lab0", "zone": "teams", "tag": 9}]}, "it has subnet"),
        ({"subnets": [{"cidr": "10.40.0.128/25", "vnet": "lab0"}]}, "overlaps subnet"),
        ({"subnets": [{**NET, "gateway": "10.41.0.1"}]}, "is not in 10.40.0.0/24"),
        ({"subnets": [{"cidr": "10.40.0.1/24", "vnet": "lab0"}]}, "is not a network"),
        ({"subnets": [{"cidr": "10.50.0.0/24", "vnet": "gone"}]}, "there is no VNet 'gone'"),
        (
            {
                "subnets": [
                    {
                        **NET,
                        "dhcp_ranges": [{"start_address": "10.4.0.1", "end_address": "10.4.0.2"}],
                    }
                ]
            },
            "DHCP range 10.4.0.1 to 10.4.0.2",
        ),
        (
            {
                "subnets": [
                    {
                        **NET,
                        "dhcp_ranges": [{"start_address": "10.40.0.1,a=b", "end_address": "::"}],
                    }
                ]
            },
            "is not valid for dhcp_ranges",
        ),
        ({"exact": ["dns"]}, "dns is not set"),
        ({"zones": [{"name": "teams", "mac": ""}]}, "PVE gives a zone without mac a new one"),
        ({"fabric_nodes": [{"fabric": "", "node": "pve1"}]}, "no fabric or no node"),
        ({"fabric_nodes": [{"fabric": "under", "node": ""}]}, "no fabric or no node"),
    ],
)
def test_mistakes_are_refused(lab: Lab, options: dict[str, Any], said: str) -> None:
    do(lab, "sdn", **WHOLE)
    assert said in refused(lab, "sdn", **options)["msg"]
    require_free(lab)


def test_the_types_have_the_properties_of_the_server() -> None:
    """pve-network: the options of SDN/{Zones,Controllers,Ipams,Dns}/*Plugin.pm."""
    known = {"zones": objects.ZONES, "controllers": objects.CONTROLLERS}
    for kind, types in {**known, "ipams": objects.IPAMS, "dns": objects.DNS}.items():
        assert TYPES[kind].keys() == types.keys()
        for name, (required, optional) in TYPES[kind].items():
            assert set(required.split()) == types[name].required
            assert set(optional.split()) == types[name].optional - {"reversev6mask"}


def test_a_vnet_that_a_guest_uses_is_not_removed(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    lab.vm(name="user", node="pve1", memory="1G", nics=[{"bridge": "blue"}])
    result = refused(lab, "sdn", vnets=[{"name": "blue", "state": "absent"}])
    assert "guest " in result["msg"]
    assert result["error"]["reason"] == "in use"


def test_pending_changes_of_others_are_not_applied(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    lab.client.write("PUT", *ROOT, "vnets", "green", data={"alias": "theirs"})
    result = refused(lab, "sdn", harmless="/cluster/sdn/lock", vnets=[{**BLUE, "tag": 112}])
    assert result["error"]["pending"] == ["vnet green (changed)"]
    assert do(lab, "sdn_info")["pending"] == ["vnet green (changed)"]
    assert lab.client.get(*ROOT, "vnets", "green")["alias"] == "theirs"


def test_a_vnet_that_goes_with_the_next_apply_is_pending(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    lab.client.write("DELETE", *ROOT, "vnets", "green")
    assert do(lab, "sdn_info")["pending"] == ["vnet green (deleted)"]


def test_a_lost_answer_to_the_apply_of_a_removal_is_looked_after(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    lab.simulator.fault(method="PUT", path="^/cluster/sdn$", drop="before", times=1)
    do(lab, "sdn", vnets=[{"name": "green", "state": "absent"}])
    lab.simulator.clear_faults()
    assert running(lab, "vnets") == ["blue", "lab0"]
    require_free(lab)


def test_a_lock_of_another_user_is_respected(lab: Lab) -> None:
    lab.client.write("POST", *ROOT, "lock")
    result = lab.run("sdn", **WHOLE, lock_timeout=0)
    assert result["error"]["category"] == "Locked"
    assert "force" not in result["msg"]
    assert running(lab, "zones") == []


def pending_under_a_lock(lab: Lab) -> str:
    """Another run holds the lock and has written a zone; return its token."""
    token = str(lab.client.write("POST", *ROOT, "lock"))
    zone = {"zone": "theirs", "type": "simple", "lock-token": token}
    lab.client.write("POST", *ROOT, "zones", data=zone)
    return token


def test_pending_changes_of_a_run_that_holds_the_lock_are_in_progress(lab: Lab) -> None:
    """PVE compares the token before it looks for pending changes (API2/Network/SDN.pm, lock)."""
    token = pending_under_a_lock(lab)
    result = lab.run("sdn", **WHOLE, lock_timeout=0)
    assert result["error"]["category"] == "Locked"
    assert "force" not in result["msg"]
    assert "roll" not in result["msg"]
    assert [row["zone"] for row in lab.client.get(*ROOT, "zones")] == ["theirs"]
    lab.client.write("POST", *ROOT, "rollback", data={"lock-token": token})
    do(lab, "sdn", **WHOLE)


@pytest.mark.parametrize("has_pending", [True, False])
def test_a_run_that_ends_within_lock_timeout_is_awaited(lab: Lab, has_pending: bool) -> None:
    token = pending_under_a_lock(lab) if has_pending else lab.client.write("POST", *ROOT, "lock")
    ends = threading.Timer(
        1.0, lambda: lab.client.write("POST", *ROOT, "rollback", data={"lock-token": token})
    )
    ends.start()
    result = do(lab, "sdn", **WHOLE, lock_timeout=60)
    ends.join()
    assert result["done"] == result["plan"]
    require_free(lab)


def test_pending_changes_without_a_lock_are_reported_at_once(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    lab.client.write("PUT", *ROOT, "vnets", "green", data={"alias": "theirs"})
    started = time.monotonic()
    result = lab.run("sdn", vnets=[{**BLUE, "tag": 112}], lock_timeout=600)
    assert time.monotonic() - started < 60
    assert result["error"]["category"] == "Conflict"
    foreseen = lab.run("sdn", check=True, vnets=[{**BLUE, "tag": 112}], lock_timeout=600)
    assert foreseen["error"]["reason"] == result["error"]["reason"] == "pending changes"
    assert lab.client.get(*ROOT, "vnets", "green")["alias"] == "theirs"


def test_a_lock_that_is_lost_in_the_middle_is_reported(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator breaks the lock and takes it. Proxmox VE refuses each write from then on,
    the rollback too, and the changes of this run stay pending until one of both is carried out.
    """
    do(lab, "sdn", zones=[ZONE])
    send = SdnTransaction.send
    sent: list[str] = []
    others: list[str] = []

    def send_until_lost(transaction: SdnTransaction, step: Any) -> Any:
        sent.append(step.summary)
        if len(sent) == 3:
            lab.client.write("DELETE", *ROOT, "lock", data={"force": 1})
            others.append(lab.client.write("POST", *ROOT, "lock", data={"allow-pending": 1}))
        return send(transaction, step)

    monkeypatch.setattr(SdnTransaction, "send", send_until_lost)
    result = lab.run("sdn", vnets=[BLUE, GREEN])
    monkeypatch.setattr(SdnTransaction, "send", send)
    assert "invalid lock token" in result["msg"]
    assert "It could not be rolled back" in result["msg"]
    assert running(lab, "vnets") == []
    assert do(lab, "sdn_info")["pending"] == ["vnet blue (new)"]
    lab.client.write("POST", *ROOT, "rollback", data={"lock-token": others[0]})
    assert do(lab, "sdn", vnets=[BLUE, GREEN])["changed"]
    assert running(lab, "vnets") == ["blue", "green"]
    require_free(lab)


@pytest.mark.parametrize("path", ["/sdn/vnets$", "/sdn/vnets/lab0/subnets$", "^/cluster/sdn$"])
def test_a_failed_write_is_rolled_back(lab: Lab, path: str) -> None:
    method = "PUT" if path.startswith("^") else "POST"
    lab.simulator.fault(path=path, method=method, status=500, message="the disk is on fire")
    result = lab.run("sdn", **WHOLE)
    lab.simulator.clear_faults()
    assert result.get("failed")
    assert "were rolled back, and are unchanged" in result["msg"]
    assert lab.client.get(*ROOT, "zones") == []
    require_free(lab)
    converge(lab, **WHOLE)


def test_a_node_that_does_not_reload_is_named(lab: Lab) -> None:
    lab.simulator.fault(task="srvreload", fail="ifreload failed", times=1)
    result = lab.run("sdn", **WHOLE, task_timeout=3)
    lab.simulator.clear_faults()
    assert result["error"]["reason"] == "nodes failed"
    assert "zone teams on pve1" in result["msg"]
    assert "the lock is released" in result["msg"]
    assert running(lab, "vnets") == ["blue", "green", "lab0"]
    require_free(lab)
    result = converge(lab, **WHOLE)
    assert len(result["plan"]) == 3
    assert result["nodes"]["pve1"] == {"lab": "available", "teams": "available"}


def test_a_lock_that_was_not_released_is_taken_over(lab: Lab) -> None:
    do(lab, "sdn", **WHOLE)
    token = lab.client.write("POST", *ROOT, "lock")
    token_file(lab.client).write(token)
    assert do(lab, "sdn", **WHOLE)["done"] == ["Lock the SDN configuration", "Release the SDN lock"]
    require_free(lab)


def test_the_token_of_a_lock_may_be_any_text(lab: Lab) -> None:
    file = token_file(lab.client)
    file.write("\u202eé")
    file.close()
    assert file.read() == "\u202eé"
    file.remove()


def test_a_directory_that_cannot_be_written_is_reported(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "XDG_STATE_HOME" in lab.run("sdn", **WHOLE)["msg"]
    require_free(lab)


def test_50_vnets_are_compared_with_few_requests(lab: Lab) -> None:
    vnets = [{"name": f"v{number}", "zone": "teams", "tag": 100 + number} for number in range(50)]
    do(lab, "sdn", zones=[ZONE], vnets=vnets)
    lab.simulator.reset_log()
    assert not do(lab, "sdn", zones=[ZONE], vnets=vnets)["changed"]
    assert len(lab.simulator.log()) <= 6


@pytest.mark.parametrize("drop", ["before", "after"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/sdn/zones$"), ("POST", "/subnets$"), ("PUT", "^/cluster/sdn$")]
)
def test_a_lost_answer_is_looked_after(lab: Lab, method: str, path: str, drop: str) -> None:
    lab.simulator.fault(method=method, path=path, drop=drop, times=1)
    do(lab, "sdn", **WHOLE)
    lab.simulator.clear_faults()
    require_free(lab)
    assert not do(lab, "sdn", **WHOLE)["changed"]


def test_a_node_that_does_not_reload_is_reported(lab: Lab) -> None:
    """Only the log of the task tells it (pve-network: API2/Network/SDN.pm)."""
    refusal = "you need ifupdown2 to reload networking"
    lab.simulator.fault(method="PUT", path="^/nodes/pve2/network$", message=refusal, status=500)
    result = lab.run("sdn", **WHOLE)
    assert result["failed"]
    assert f"node pve2 ({refusal})" in result["msg"]
    assert "zone teams on pve1" not in result["msg"]
    assert result["changed"]
    require_free(lab)
    lab.simulator.clear_faults()
    lab.simulator.steer("/nodes/pve3", {"online": False})
    vnets = [{"name": "green", "state": "absent"}]
    warnings = " ".join(do(lab, "sdn", vnets=vnets)["warnings"])
    assert "Node pve3 did not reload its network: ssh: connect to host port 22" in warnings


def test_an_interrupted_run_is_taken_over(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends without a rollback, as after a loss of power."""
    send = SdnTransaction.send
    count: list[Any] = []

    def interrupted(self: SdnTransaction, step: Any) -> Any:
        count.append(step)
        if len(count) == 4:
            raise NetworkError(attempted="Could not continue", answer="the power is off")
        return send(self, step)

    def ended(self: SdnTransaction, error: Any) -> Any:
        self.token_file.close()
        return error

    monkeypatch.setattr(SdnTransaction, "send", interrupted)
    monkeypatch.setattr(SdnTransaction, "roll_back", ended)
    assert lab.run("sdn", **WHOLE).get("failed")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert lab.client.get(*ROOT, "zones") != []
    other: dict[str, Any] = {"zones": [{"name": "other", "type": "simple"}]}
    result = do(lab, "sdn", **other)
    assert result["done"] == result["plan"]
    assert running(lab, "zones") == ["other"]
    require_free(lab)


def test_secrets_are_not_shown(lab: Lab) -> None:
    row = {"name": "nb", "type": "netbox", "url": "https://netbox.example.com", "token": "s3cret"}
    result = lab.run("sdn", check=True, ipams=[row])
    assert "s3cret" not in str({**result, "invocation": None})


def test_version_8_has_no_lock(old: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The former objects are written again after a failure: there is no rollback either."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    foreseen = do(old, "sdn", check=True, **WHOLE)
    result = do(old, "sdn", **WHOLE)
    assert (foreseen["plan"], foreseen["diff"]) == (result["plan"], result["diff"])
    assert result["plan"][-1] == "Apply the SDN configuration"
    assert "Lock" not in " ".join(result["plan"])
    assert not list(tmp_path.rglob("sdn-lock-*"))
    old.simulator.fault(path="^/cluster/sdn$", method="PUT", status=500, message="on fire")
    before = do(old, "sdn_info")["sdn"]
    result = old.run("sdn", vnets=[{**BLUE, "tag": 7}, {"name": "green", "state": "absent"}])
    old.simulator.clear_faults()
    assert "are unchanged" in result["msg"]
    after = do(old, "sdn_info")
    assert (after["sdn"], after["pending"]) == (before, [])
    assert do(old, "sdn", **WHOLE)["changed"] is False


def test_version_8_waits_for_pending_changes(
    old: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    do(old, "sdn", **WHOLE)
    old.client.write("PUT", *ROOT, "vnets", "green", data={"alias": "theirs"})
    old.simulator.reset_log()
    result = old.run("sdn", vnets=[{**BLUE, "tag": 112}], lock_timeout=0)
    assert result["error"]["reason"] == "pending changes"
    assert old.simulator.writes() == []
    ends = threading.Timer(1.0, lambda: old.client.task("PUT", *ROOT))
    ends.start()
    assert do(old, "sdn", vnets=[{**BLUE, "tag": 112}], lock_timeout=60)["changed"]
    ends.join()


def test_a_change_of_another_run_is_planned_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run applies a change between the reading of this run and its lock."""
    do(lab, "sdn", zones=[ZONE])
    original = sdn_run.plan_transaction
    others: list[Any] = []

    def planned_late(work: Any) -> SdnTransaction:
        transaction = original(work)
        if not others:
            others.append(GREEN)
            lab.client.write(
                "POST", *ROOT, "vnets", data={"vnet": "red", "zone": "teams", "tag": 9}
            )
            lab.client.task("PUT", *ROOT)
        return transaction

    monkeypatch.setattr(sdn_run, "plan_transaction", planned_late)
    result = do(lab, "sdn", vnets=[BLUE])
    assert result["changed"]
    assert running(lab, "vnets") == ["blue", "red"]
    require_free(lab)


def test_an_apply_that_takes_too_long_is_reported(lab: Lab) -> None:
    lab.simulator.steer("/settings", {"task_ms": {"default": 3_600_000}})
    try:
        result = lab.run("sdn", zones=[ZONE], task_timeout=1)
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"default": 0}})
    assert result["error"]["category"] == "TaskTimeout"
    assert "1 s" in result["msg"]


def test_a_vm_without_a_free_address_is_named(lab: Lab) -> None:
    """pve-network: SDN/Vnets.pm, add_next_free_cidr; qemu-server: usr/pve-bridge. The task fails
    with "QEMU exited with code 1", and only its log has the reason.
    """
    zone = {"name": "lan", "type": "simple", "ipam": "pve", "dhcp": "dnsmasq"}
    ends = {"start_address": "10.2.0.100", "end_address": "10.2.0.100"}
    subnet = {"vnet": "lan0", "cidr": "10.2.0.0/24", "dhcp_ranges": [ends]}
    do(lab, "sdn", zones=[zone], vnets=[{"name": "lan0", "zone": "lan"}], subnets=[subnet])
    nics = [{"bridge": "lan0"}]
    task: dict[str, Any] = {"memory": "128M", "disks": [], "nics": nics, "state": "started"}
    assert do(lab, "vm", name="first", node="pve1", **task)["vm"]["status"] == "running"
    failed = lab.run("vm", name="second", node="pve1", **task)
    assert failed["error"]["reason"] == "no free address"
    assert "can't find any free ip in zone lan for IPv4" in failed["msg"]
    assert "add a DHCP range" in failed["msg"]
    do(lab, "vm", name="first", state="absent", force=True)
    assert do(lab, "vm", name="second", **task)["vm"]["status"] == "running"
