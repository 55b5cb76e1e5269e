"""Mappings, metric servers and replication jobs, by rules that the recordings show only in part."""

from __future__ import annotations

from tests.simulator_tests.client import Client

MODIFIED = "detected modified configuration - file changed by other user? Try again."
GRAPHITE = "/cluster/metrics/server/g1"
JOBS = "/cluster/replication"


def test_an_old_digest_of_a_mapping_is_refused(lab: Client) -> None:
    """pve-manager: API2/Cluster/Mapping/USB.pm; the digest is that of the whole file."""
    base = "/cluster/mapping/usb"
    lab.post(base, id="aa", map="node=pve2,id=046d:c52b")
    digest = lab.get(f"{base}/aa")["digest"]
    lab.post(base, id="bb", map="node=pve2,id=046d:c52b")
    refused = lab.call("PUT", f"{base}/aa", {"map": "node=pve3,id=046d:c52b", "digest": digest})
    assert refused.reason == f"update hardware mapping failed: {MODIFIED}"


def test_a_directory_of_the_node_that_answers_must_exist(lab: Client) -> None:
    """pve-guest-common: Mapping/Dir.pm, assert_valid_map_list."""
    refused = lab.call("POST", "/cluster/mapping/dir", {"id": "aa", "map": "node=pve1,path=/srv/x"})
    assert refused.reason == "Path /srv/x does not exist"
    twice = ["node=pve2,path=/srv/x", "node=pve2,path=/srv/y"]
    refused = lab.call("POST", "/cluster/mapping/dir", {"id": "aa", "map": twice})
    assert refused.reason == "Node 'pve2' is specified 2 times."


GPU = "path=0000:01:00.0,id=10de:2204,iommugroup=1,subsystem-id=10de:1467"
PCI_FAULTS = {
    GPU: "",
    GPU.replace("01:00.0", "05:00"): "pci device '0000:05:00.0' not found",
    GPU.replace("2204", "2205"): "'id' does not match for 'gpu' (10de:2204 != 10de:2205)",
    GPU.replace("group=1", "group=2"): "'iommugroup' does not match for 'gpu' (1 != 2)",
    GPU.partition(",sub")[0]: "missing expected property 'subsystem-id' for device '0000:01:00.0'",
    GPU.replace(
        "path=", "path=0000:00:00.0;"
    ): "'id' does not match for 'gpu' (8086:29c0 != 10de:2204)",
}
USB_FAULTS = {
    "id=0529:0001": "",
    "id=0529:0001,path=1-2": "",
    "id=0529:0002": "usb device '0529:0002' not found",
    "id=0529:0001,path=1-3": "usb device '1-3' not found",
    "id=0529:0002,path=1-2": "'id' does not match for 'gpu' (0529:0001 != 0529:0002)",
}


def _check(pve: Client, kind: str, entry: str, **options: object) -> list[str]:
    base = f"/cluster/mapping/{kind}"
    pve.post(base, id="gpu", map=f"node=pve1,{entry}", **options)
    (row,) = pve.get(base, **{"check-node": "pve1"})
    pve.call("DELETE", f"{base}/gpu")
    return [one["message"] for one in row["errors" if kind == "usb" else "checks"]]


def _messages(fault: str) -> list[str]:
    return [f"Invalid configuration: {fault}\n"] if fault else []


def test_mappings_are_compared_with_the_devices_of_a_node(pve: Client) -> None:
    """pve-guest-common: Mapping/PCI.pm and USB.pm, assert_valid."""
    for entry, fault in PCI_FAULTS.items():
        assert _check(pve, "pci", entry) == _messages(fault)
    assert _check(pve, "pci", GPU, mdev=1) == _messages("'mdev' does not match for 'gpu' (0 != 1)")
    for entry, fault in USB_FAULTS.items():
        assert _check(pve, "usb", entry) == _messages(fault)


def test_devices_of_a_node(pve: Client) -> None:
    """pve-manager: API2/Hardware/PCI.pm hides bridges by default; pve-common: SysFSTools.pm."""
    base = "/nodes/pve2/hardware/pci"
    assert [row["id"] for row in pve.get(base)] == ["0000:02:00.0"]
    everything = pve.get(base, **{"pci-class-blacklist": "", "verbose": 0})
    assert [row["id"] for row in everything] == ["0000:00:00.0", "0000:02:00.0"]
    assert "subsystem_vendor" not in everything[1]
    assert [row["vendid"] for row in pve.get("/nodes/pve1/hardware/usb")] == ["1d6b", "0529"]


def test_a_metric_server_that_is_sent_datagrams_is_not_asked(lab: Client) -> None:
    """pve-manager: Status/Graphite.pm, _connect."""
    lab.post(GRAPHITE, type="graphite", server="10.9.9.9", port=2003)
    assert lab.get("/cluster/metrics/server") == [
        {"id": "g1", "disable": 0, "type": "graphite", "server": "10.9.9.9", "port": 2003}
    ]
    refused = lab.call("PUT", GRAPHITE, {"server": "10.9.9.9", "port": 2003, "proto": "tcp"})
    assert refused.reason.startswith("couldn't create carbon socket [10.9.9.9]:2003")
    lab.put(GRAPHITE, server="10.9.9.9", port=2003, proto="tcp", disable=1)
    assert lab.get(GRAPHITE)["proto"] == "tcp"
    refused = lab.call("PUT", GRAPHITE, {"server": "a", "port": 1, "delete": "server"})
    assert refused.reason == "unable to delete required option 'server'"
    lab.delete(GRAPHITE)
    assert lab.get("/cluster/metrics/server") == []


def test_a_replication_job_needs_a_zfs_pool(pve: Client) -> None:
    """pve-guest-common: ReplicationConfig.pm; the type, and so the target, cannot be changed."""
    pve.create(300, scsi0="ceph:1")
    refused = pve.call("POST", JOBS, {"id": "300-0", "type": "local", "target": "pve2"})
    assert refused.reason == "No replicatable volumes found"
    pve.create(301, scsi0="local-lvm:1")
    refused = pve.call("POST", JOBS, {"id": "301-0", "type": "local", "target": "pve2"})
    assert refused.reason == "missing replicate feature on volume 'local-lvm:vm-301-disk-0'"
    refused = pve.call("POST", JOBS, {"id": "301-0", "type": "local", "target": "pve1"})
    assert refused.reason == "Source and target must not be identical"


def test_a_replication_job_is_marked_and_removed_by_force(pve: Client) -> None:
    pve.post("/storage", storage="tank", type="zfspool", pool="tank", content="images,rootdir")
    pve.create(302, scsi0="tank:1")
    pve.post(JOBS, id="302-0", type="local", target="pve2", schedule="*/30")
    job = pve.get(f"{JOBS}/302-0")
    assert (job["guest"], job["jobnum"], job["source"], job["target"]) == (302, 0, "pve1", "pve2")
    second = pve.call("POST", JOBS, {"id": "302-1", "type": "local", "target": "pve2"})
    assert second.reason.startswith("replication job for guest '302' to target")
    pve.put(f"{JOBS}/302-0", rate=5, digest=job["digest"])
    pve.delete(f"{JOBS}/302-0")
    assert pve.get(f"{JOBS}/302-0")["remove_job"] == "full"
    pve.delete(f"{JOBS}/302-0", force=1)
    assert pve.get(JOBS) == []


def test_keys_of_datacenter_cfg_are_parsed_and_printed_again(pve: Client) -> None:
    """pve-cluster: DataCenterConfig.pm, parse_datacenter_config and write_datacenter_config. The keys
    of a property string are printed sorted and answered as an object; lists of tags are sorted by
    the next write of any option. `bwlimit` is neither parsed nor printed.
    """
    options = "/cluster/options"
    pve.put(options, **{"next-id": "upper=900,lower=500", "bwlimit": "move=5,clone=4"})
    pve.put(options, **{"tag-style": "shape=full,ordering=config", "registered-tags": "z;a"})
    pve.put(options, **{"user-tag-access": "user-allow-list=z;a,user-allow=list"})
    pve.put(options, keyboard="de")
    found = pve.get(options)
    assert found["next-id"] == {"lower": "500", "upper": "900"}
    assert found["tag-style"] == {"ordering": "config", "shape": "full"}
    assert found["user-tag-access"] == {"user-allow": "list", "user-allow-list": ["a", "z"]}
    assert found["registered-tags"] == ["a", "z"]
    assert found["bwlimit"] == "move=5,clone=4"
