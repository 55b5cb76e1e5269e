# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules for mappings, metric servers and replication jobs against the simulator, which follows
pve-manager and pve-guest-common.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused, requests_of

GPU: dict[str, Any] = {"type": "pci", "name": "gpu"}
CARD = {"path": "0000:01:00.0", "id": "10de:2204", "subsystem_id": "10de:1467"}
CARDS = [
    {"node": "pve1", "iommugroup": 1, **CARD},
    {"node": "pve2", "iommugroup": 4, **CARD, "path": "0000:02:00.0"},
]
GRAPHITE: dict[str, Any] = {"name": "graphite", "type": "graphite", "server": "10.99.0.50"}
INFLUX: dict[str, Any] = {
    "name": "influx",
    "type": "influxdb",
    "server": "10.99.0.51",
    "server_port": 8086,
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def test_mapping(lab: Lab) -> None:
    made = done(lab, "mapping", **GPU, map=CARDS[:1])
    assert made["mapping"]["map"] == CARDS[:1]
    grown = done(lab, "mapping", **GPU, map=CARDS[1:], mdev=True)
    assert [one["node"] for one in grown["mapping"]["map"]] == ["pve1", "pve2"]
    moved = done(lab, "mapping", **GPU, map=[{**CARDS[1], "path": "0000:02:00"}])
    assert [one["path"] for one in moved["mapping"]["map"]] == ["0000:01:00.0", "0000:02:00"]
    exact = done(lab, "mapping", **GPU, map=CARDS[1:], exact=True, mdev=False)
    assert exact["mapping"]["map"] == CARDS[1:]
    assert done(lab, "mapping", **GPU, description="cards")["mapping"]["description"] == "cards"
    done(lab, "mapping", **GPU, description="")
    done(lab, "mapping", type="usb", name="key", map=[{"node": "pve1", "id": "0529:0001"}])
    done(lab, "mapping", type="dir", name="data", map=[{"node": "pve2", "path": "/srv/data"}])
    listed = lab.run("mapping_info")["mappings"]
    assert [(one["type"], one["name"]) for one in listed] == [
        ("dir", "data"),
        ("pci", "gpu"),
        ("usb", "key"),
    ]
    for one in listed:
        assert not lab.run("mapping", **one)["changed"]
    assert len(lab.run("mapping_info", type="usb", name="key")["mappings"]) == 1
    assert done(lab, "mapping", **GPU, state="absent")["mapping"] is None


def test_devices_are_entries_of_a_mapping(lab: Lab) -> None:
    found = lab.run("hardware_info", type="pci")
    cards = [one["map"] for one in found["devices"] if one["map"]["id"] == CARD["id"]]
    assert [one["node"] for one in cards] == ["pve1", "pve2", "pve3"]
    assert cards[:2] == CARDS
    assert found["devices"][0]["vendor_name"] == "NVIDIA Corporation"
    assert done(lab, "mapping", **GPU, map=cards)["mapping"]["map"] == cards
    bridges = lab.run("hardware_info", type="pci", node="pve1", pci_class_blacklist=["03"])
    assert [one["class"] for one in bridges["devices"]] == ["0x060000"]
    ports = lab.run("hardware_info", type="usb", node="pve1")["devices"]
    assert [one["map"].get("path") for one in ports] == [None, "1-2"]
    key = {"type": "usb", "name": "key", "map": [ports[1]["map"]]}
    assert done(lab, "mapping", **key)["mapping"]["map"] == [
        {"node": "pve1", "path": "1-2", "id": "0529:0001"}
    ]


def test_devices_of_a_node_that_cannot_be_read(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve3", {"online": False})
    found = lab.run("hardware_info", type="pci")
    assert {one["node"] for one in found["devices"]} == {"pve1", "pve2"}
    assert [(one["node"], one["category"]) for one in found["missing"]] == [
        ("pve3", "NetworkError")
    ]
    assert "pve3 is not online" in found["warnings"][0]
    alone = lab.run("hardware_info", type="pci", node="pve3")
    assert alone["error"]["category"] == "NetworkError"
    unknown = lab.run("hardware_info", type="pci", node="pve9")
    assert unknown["error"]["reason"] == "unknown node"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"type": "usb", "pci_class_blacklist": ["06"]}, "is about PCI devices"),
        ({"type": "pci", "pci_class_blacklist": ["("]}, "is not a class"),
    ],
)
def test_classes_that_are_refused(lab: Lab, options: dict[str, Any], text: str) -> None:
    lab.simulator.reset_log()
    result = lab.run("hardware_info", **options)
    assert (result["error"]["category"], lab.simulator.log()) == ("ValidationFailed", [])
    assert text in result["msg"]


DATA: dict[str, Any] = {"type": "dir", "name": "data"}
MAPPINGS_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**GPU}, "map", "map is required"),
    ({**GPU, "map": [{"node": "pve1", "id": "10de:2204"}]}, "map", "node pve1 has no path"),
    ({**GPU, "map": [{"node": "pve1", **CARD, "id": "10de"}]}, "id", "Write it as 8086:10fb"),
    (
        {
            "type": "usb",
            "name": "key",
            "map": [{"node": "pve1", "id": "0529:0001", "iommugroup": 1}],
        },
        "map",
        "has iommugroup, and a mapping of type usb has description, id, node, path",
    ),
    ({"type": "usb", "name": "key", "map": [], "mdev": True}, "mdev", "option of type pci"),
    ({**DATA, "map": [{"node": "pve1", "path": "srv"}]}, "path", "is not an absolute path"),
    ({**DATA, "map": [{"node": "", "path": "/srv"}]}, "map", "an entry has no node"),
]


@pytest.mark.parametrize(("options", "reason", "word"), MAPPINGS_REFUSED, ids=str)
def test_mapping_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, "mapping", **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


DEVICES_REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {**GPU, "map": [{**CARDS[0], "path": "0000:05:00"}]},
        "node pve1 has no PCI device 0000:05:00.0. Correct map: node pve1 has path=0000:01:00.0",
    ),
    (
        {**GPU, "map": [CARDS[0], {**CARDS[1], "id": "10de:2205"}]},
        "PCI device 0000:02:00.0 of node pve2 has id 10de:2204, not 10de:2205",
    ),
    (
        {"type": "usb", "name": "key", "map": [{"node": "pve1", "id": "0529:0002"}]},
        "node pve1 has no USB device 0529:0002. Correct map: node pve1 has",
    ),
]


@pytest.mark.parametrize(("options", "text"), DEVICES_REFUSED, ids=str)
def test_mapping_of_a_missing_device_is_refused(
    lab: Lab, options: dict[str, Any], text: str
) -> None:
    result = refused(lab, "mapping", **options)
    assert result["error"]["reason"] == "missing device", result["msg"]
    assert text in result["msg"]


@pytest.mark.parametrize(
    "options",
    [
        {**GPU, "map": [{**CARDS[0], "node": "pve9"}]},
        {"type": "usb", "name": "key", "map": [{"node": "pve9", "id": "0529:0001"}]},
        {"type": "dir", "name": "data", "map": [{"node": "pve9", "path": "/srv"}]},
    ],
    ids=str,
)
def test_a_mapping_of_a_node_that_does_not_exist_is_refused(
    lab: Lab, options: dict[str, Any]
) -> None:
    """Proxmox VE accepts the node (pve-manager: PVE/API2/Cluster/Mapping; pve-guest-common:
    PVE/Mapping/Dir.pm, PCI.pm and USB.pm check only its form).
    """
    result = refused(lab, "mapping", **options)
    assert "there is no node 'pve9'" in result["msg"]
    assert "visible nodes: pve1, pve2, pve3" in result["msg"]


def test_devices_of_new_entries_take_a_request_for_each_node_and_one_more(lab: Lab) -> None:
    done(lab, "mapping", **GPU, map=CARDS[:1])
    lab.simulator.reset_log()
    lab.run("mapping", **GPU, map=CARDS, check=True)
    paths = [entry["path"] for entry in requests_of(lab)]
    read = ["/cluster/mapping/pci/gpu", "/nodes", "/nodes/pve2/hardware/pci"]
    assert paths == [*read, "/access/permissions"]  # the last one in check mode only
    lab.simulator.reset_log()
    lab.run("mapping", **GPU, map=CARDS[:1], description="cards", check=True)
    assert len(requests_of(lab)) == 2


def test_mdev_is_compared_with_the_devices(lab: Lab) -> None:
    """PVE refuses the start of a VM if they differ (qemu-server: PCI.pm, parse_hostpci)."""
    done(lab, "mapping", **GPU, map=CARDS)
    preview = lab.run("mapping", **GPU, mdev=True, check=True)
    assert [text.split()[5] for text in preview["warnings"]] == ["pve1", "pve2"]
    assert lab.run("mapping", **GPU, mdev=True)["warnings"] == preview["warnings"]
    again = lab.run("mapping", **GPU, mdev=True)
    assert (again["changed"], again["mapping"]["mdev"]) == (False, True)
    assert lab.run("mapping", **GPU, mdev=False)["warnings"] == []


def test_mapping_info_shows_the_check_of_a_node(lab: Lab) -> None:
    """pve-manager: API2/Cluster/Mapping/PCI.pm and USB.pm, check-node."""
    done(lab, "mapping", **GPU, map=CARDS[:1], mdev=True)
    done(lab, "mapping", type="usb", name="key", map=[{"node": "pve1", "id": "0529:0001"}])
    lab.simulator.reset_log()
    gpu, key = lab.run("mapping_info", check_node="pve1")["mappings"]
    assert len(requests_of(lab)) == 3
    text = "Invalid configuration: 'mdev' does not match for 'gpu' (0 != 1)"
    assert gpu["checks"] == [{"severity": "error", "message": text}]
    assert key["checks"] == []
    (key,) = lab.run("mapping_info", check_node="pve2", name="key")["mappings"]
    assert key["checks"] == [{"severity": "warning", "message": "No mapping for node pve2."}]


def test_a_node_that_is_not_online_is_not_compared(lab: Lab) -> None:
    lab.simulator.steer("nodes/pve2", {"online": False})
    result = lab.run("mapping", **GPU, map=[CARDS[0], {**CARDS[1], "id": "10de:2205"}])
    text = "The devices of node pve2 were not compared: the node is not online"
    assert (result["changed"], result["warnings"]) == (True, [text])


def test_mapping_of_a_missing_directory(lab: Lab) -> None:
    """The node that answers looks for its directory (pve-guest-common: PVE/Mapping/Dir.pm)."""
    result = lab.run(
        "mapping", type="dir", name="data", map=[{"node": "pve1", "path": "/srv/missing"}]
    )
    assert "/srv/missing does not exist" in result["msg"]


def test_metric_server(lab: Lab) -> None:
    made = done(lab, "metric_server", **GRAPHITE, server_port=2003)
    assert made["metric_server"] == {
        **GRAPHITE,
        "server_port": 2003,
        "disable": False,
        "mtu": 1500,
        "timeout_seconds": 1,
        "proto": "udp",
        "path": "proxmox",
    }
    changed = done(lab, "metric_server", name="graphite", path="cluster", mtu=9000, disable=True)
    assert changed["diff"]["after"] == {"disable": True, "mtu": 9000, "path": "cluster"}
    assert (
        done(lab, "metric_server", name="graphite", path="")["metric_server"]["path"] == "proxmox"
    )
    (listed,) = lab.run("metric_server_info")["metric_servers"]
    assert not lab.run("metric_server", **listed)["changed"]
    assert done(lab, "metric_server", name="graphite", state="absent")["changed"]


def test_secret_of_a_metric_server_is_written_only_when_asked(lab: Lab) -> None:
    made = done(lab, "metric_server", **INFLUX, token="first-secret")
    assert "first-secret" not in str(made)
    lab.simulator.reset_log()
    assert not lab.run("metric_server", name="influx", token="second-secret")["changed"]
    result = lab.run("metric_server", name="influx", token="second", update_secrets="always")
    assert result["done"] == ["Set token of metric server 'influx'"]
    (write,) = lab.simulator.writes()
    assert write["method"] == "PUT"


METRICS_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**GRAPHITE}, "server_port", "server_port is required"),
    ({**GRAPHITE, "server_port": 2003, "bucket": "b"}, "bucket", "option of type influxdb"),
    ({**GRAPHITE, "server_port": 2003, "token": "hush-hush"}, "token", "option of type influxdb"),
]


@pytest.mark.parametrize(("options", "reason", "word"), METRICS_REFUSED, ids=str)
def test_metric_server_is_refused(
    lab: Lab, options: dict[str, Any], reason: str, word: str
) -> None:
    result = refused(lab, "metric_server", **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_metric_server_that_does_not_answer(lab: Lab) -> None:
    result = lab.run("metric_server", **GRAPHITE, server_port=2003, proto="tcp")
    assert "Connection refused" in result["msg"]
    assert not result["changed"]


@pytest.fixture
def guest(lab: Lab) -> str:
    """The VMID of a VM of tenant acme on pve1 whose disk is on ZFS."""
    data = {"storage": "tank", "type": "zfspool", "pool": "tank", "content": "images"}
    lab.client.write("POST", "storage", data=data)
    disks = [{"size": 1, "storage": "tank"}]
    made = lab.vm(name="zfs", vmid=400, node="pve1", tenant="acme", memory="128M", disks=disks)
    return str(made["vm"]["vmid"])


def test_replication(lab: Lab, guest: str) -> None:
    job = f"{guest}-0"
    made = done(lab, "replication", id=job, target="pve2", schedule="*/30", rate="10")
    assert made["replication"] == {
        "id": job,
        "vmid": 400,
        "target": "pve2",
        "source": "pve1",
        "schedule": "*/30",
        "rate": "10",
        "disable": False,
        "comment": "",
    }
    changed = done(lab, "replication", id=job, schedule="", rate="", disable=True, tenant="acme")
    assert changed["replication"]["schedule"] == "*/15"
    done(lab, "replication", id=job, disable=False, comment="night")
    (listed,) = lab.run("replication_info")["replications"]
    pasted = {key: value for key, value in listed.items() if key not in ("vmid", "source")}
    assert not lab.run("replication", **pasted)["changed"]
    result = refused(lab, "replication", id=f"{guest}-1", target="pve2")
    assert f"job {job} replicates this guest to pve2" in result["msg"]
    assert done(lab, "replication", id=job, state="absent")["replication"] is None
    assert lab.run("replication_info")["replications"] == []
    result = refused(lab, "replication", id=job, target="pve2")
    assert result["error"]["reason"] == "being deleted"
    done(lab, "replication", id=f"{guest}-1", target="pve3")
    done(lab, "replication", id=f"{guest}-1", state="absent", force=True)
    done(lab, "replication", id=f"{guest}-1", target="pve3")


REPLICATION_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"id": "400", "target": "pve2"}, "id", "Write it as VMID-NUMBER"),
    ({"id": "999-0", "target": "pve2"}, "unknown VM", "there is no guest 999"),
    ({"id": "400-0", "target": "pve1"}, "target", "the guest runs on pve1 itself"),
    ({"id": "400-0", "target": "pve9"}, "target", "pve1, pve2, pve3"),
    ({"id": "400-0", "target": "pve2", "tenant": "globex"}, "another tenant", "globex"),
    ({"id": "400-0", "target": "pve2", "rate": "fast"}, "rate", "MB/s"),
    ({"id": "400-0"}, "target", "target is required"),
]


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(("options", "reason", "word"), REPLICATION_REFUSED, ids=str)
def test_replication_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, "replication", **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_volumes_that_cannot_be_replicated_are_refused(lab: Lab) -> None:
    """Only volumes of ZFS pools have the feature (pve-storage: ZFSPoolPlugin.pm)."""
    disks = [{"size": 1, "storage": "local-lvm"}]
    lab.vm(name="plain", vmid=401, node="pve1", memory="128M", disks=disks)
    result = refused(lab, "replication", id="401-0", target="pve2")
    assert "scsi0 is on storage local-lvm of type lvmthin" in result["msg"]
    disks = [{"size": 1, "storage": "local-lvm", "replicate": False}]
    lab.vm(name="excluded", vmid=402, node="pve1", memory="128M", disks=disks)
    result = refused(lab, "replication", id="402-0", target="pve2")
    assert "has no volume that can be replicated" in result["msg"]


def test_a_disabled_metric_server_that_pve_connects_to_is_a_warning(lab: Lab) -> None:
    """PVE/Status/OpenTelemetry.pm: test_connection does not look at C(disable)."""
    otel = {"name": "otel", "type": "opentelemetry", "server": "10.99.0.50", "server_port": 4318}
    result = lab.run("metric_server", check=True, **otel, disable=True)
    assert "even if it is disabled" in result["warnings"][0]
    assert lab.run("metric_server", check=True, **otel)["warnings"] == []


MODEL: dict[str, Any] = {"name": "common", "reported_model": "Skylake-Server"}


def test_cpu_model(lab: Lab) -> None:
    made = done(lab, "cpu_model", **MODEL, flags=["-hle", "+aes"], level="30")
    assert made["cpu_model"] == {
        **MODEL,
        "flags": ["+aes", "-hle"],
        "hidden": False,
        "hv_vendor_id": "",
        "phys_bits": "",
        "guest_phys_bits": "",
        "level": "30",
    }
    done(lab, "cpu_model", name="custom-common", hidden=True, phys_bits="host", flags=["+aes"])
    done(lab, "cpu_model", name="common", flags=[], hidden=False, phys_bits="", level="")
    (listed,) = lab.run("cpu_model_info")["cpu_models"]
    assert not lab.run("cpu_model", **listed)["changed"]
    assert lab.run("cpu_model_info", name="custom-common")["cpu_models"] == [listed]
    gone = done(lab, "cpu_model", name="common", state="absent")
    assert gone["cpu_model"] is None
    assert "cpu custom-common cannot start" in gone["warnings"][0]


@pytest.mark.parametrize(
    ("options", "reason", "word"),
    [
        ({"name": "x1"}, "reported_model", "reported_model is required"),
        ({"name": "1x", "reported_model": "host"}, "name", "1x"),
        ({**MODEL, "flags": ["aes"]}, "flags", "Write it as +aes"),
        ({**MODEL, "hv_vendor_id": "a-b"}, "hv_vendor_id", "12 letters"),
        ({**MODEL, "phys_bits": "7"}, "phys_bits", "64"),
        ({**MODEL, "level": "x"}, "level", "x"),
    ],
    ids=str,
)
def test_cpu_model_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, "cpu_model", **options)
    assert result["error"]["reason"] == reason
    assert word in result["msg"]


def test_an_older_version_has_no_cpu_models(old: Lab) -> None:
    result = old.run("cpu_model", check=True, **MODEL)
    assert result["error"]["category"] == "NotSupported"
    assert "9.2" in result["msg"]
    assert old.run("cpu_model_info")["error"]["category"] == "NotSupported"
