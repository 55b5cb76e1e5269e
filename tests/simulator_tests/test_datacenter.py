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
