"""The HA manager's resources and rules: what is kept, what is refused, and what a move takes
along.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator_tests.client import Client

RESOURCES, RULES = "/cluster/ha/resources", "/cluster/ha/rules"
MOVED = "ha groups have been migrated to rules"


@pytest.fixture
def ha(pve: Client) -> Client:
    """A cluster with three machines under HA that are to be stopped."""
    for vmid in (100, 101, 102):
        pve.create(vmid)
        pve.post(RESOURCES, sid=str(vmid), state="stopped")
    return pve


def place(ha: Client, name: str, nodes: str, *vmids: int, **more: Any) -> Any:
    """Add a rule that says where machines belong."""
    resources = ",".join(f"vm:{vmid}" for vmid in vmids)
    return ha.call(
        "POST",
        RULES,
        {"rule": name, "type": "node-affinity", "nodes": nodes, "resources": resources, **more},
    )


def group(ha: Client, name: str, affinity: str, *vmids: int) -> Any:
    """Add a rule that keeps machines together or apart."""
    resources = ",".join(f"vm:{vmid}" for vmid in vmids)
    params = {
        "rule": name,
        "type": "resource-affinity",
        "affinity": affinity,
        "resources": resources,
    }
    return ha.call("POST", RULES, params)


@pytest.mark.parametrize(
    ("sid", "text"),
    [
        ("199", "unable to detect SID from VMID - VM/CT 199 does not exist"),
        ("vm:199", "resource 'vm:199' does not exist in cluster"),
        ("vm:abc", "invalid VMID"),
        ("fa:100", "unknown section type 'fa'"),
        ("ct:100", "resource 'ct:100' - guest with ID 100 is not a container"),
        ("100", "create resource failed: resource ID 'vm:100' already defined"),
    ],
)
def test_resources_that_cannot_be(ha: Client, sid: str, text: str) -> None:
    assert ha.call("POST", RESOURCES, {"sid": sid}).reason == text


def test_a_resource_changes(ha: Client) -> None:
    path = f"{RESOURCES}/vm:100"
    before = ha.get(path)
    ha.put(path, comment="c", failback=0, digest=before["digest"])
    answer = ha.call("PUT", path, {"comment": "d", "digest": before["digest"]})
    assert answer.reason.startswith(
        "update resources config failed: detected modified configuration"
    )
    assert (
        ha.call("PUT", path, {"delete": "sid"}).reason
        == "update resources config failed: no such option 'sid'"
    )
    assert ha.call("PUT", path, {"group": "gone"}).reason == f"invalid parameter 'group': {MOVED}"
    ha.put(path, delete="state,failback")
    assert {key: value for key, value in ha.get(path).items() if key != "digest"} == {
        "sid": "vm:100",
        "type": "vm",
        "comment": "c",
    }
    rows = ha.get("/cluster/ha/status/current")
    assert next(row for row in rows if row.get("sid") == "vm:100")["comment"] == "c"


@pytest.mark.parametrize(
    ("verb", "path", "word"),
    [("GET", "", "index groups"), ("POST", "", "create group"), ("GET", "/gg", "read group")]
    + [("PUT", "/gg", "update group"), ("DELETE", "/gg", "delete group")],
)
def test_groups_are_rules_now(lab: Client, verb: str, path: str, word: str) -> None:
    params = {"group": "gg", "nodes": "pve1"} if verb == "POST" else None
    assert lab.call(verb, f"/cluster/ha/groups{path}", params).reason == f"cannot {word}: {MOVED}"


def test_a_rule_is_written_in_order(ha: Client) -> None:
    assert place(ha, "r1", "pve2:0,pve1:5", 101, 100, disable=0).status == 200
    rule = ha.get(f"{RULES}/r1")
    assert (rule["nodes"], rule["resources"], rule["order"]) == ("pve1:5,pve2", "vm:100,vm:101", 1)
    assert "disable" not in rule
    assert [row["rule"] for row in ha.get(RULES, resource="vm:101")] == ["r1"]
    assert ha.get(RULES, resource="vm:102") == []


def test_an_option_of_the_other_type_is_not_in_the_schema_of_a_new_rule(ha: Client) -> None:
    """The form of a recording: cluster-misc.jsonl, POST /cluster/ha/rules with rule r4."""
    params = {"type": "resource-affinity", "affinity": "positive", "resources": "vm:100,vm:101"}
    answer = ha.call("POST", RULES, {"rule": "r1", **params, "strict": 1})
    assert (answer.status, list(answer.errors)) == (400, ["strict"])
    assert ha.get(RULES) == []


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ("pve1,pve2,pve3", "negative node affinity rule must not specify all cluster nodes"),
        ("pve1:1", "negative node affinity rule must not specify node priorities"),
    ],
)
def test_a_rule_that_avoids_nodes(ha: Client, nodes: str, text: str) -> None:
    """pve-ha-manager 5.2.5, HA/Rules/NodeAffinity.pm. pve-manager 9.2.6 and newer need it
    (debian/control); the cluster of the recordings had 5.2.0 beside pve-manager 9.2.11.
    """
    assert text in place(ha, "r1", nodes, 100, affinity="negative").body["message"]
    assert place(ha, "r1", "pve1", 100, affinity="negative").status == 200
    assert ha.get(f"{RULES}/r1")["affinity"] == "negative"
    assert place(ha, "r2", "pve1", 101).status == 200
    assert "affinity" not in ha.get(f"{RULES}/r2")


def test_a_rule_changes(ha: Client) -> None:
    place(ha, "r1", "pve1", 100, strict=1, disable=1)
    path, kind = f"{RULES}/r1", {"type": "node-affinity"}
    for params, text in (
        ({"delete": "nodes"}, "unable to delete required option 'nodes'"),
        ({"delete": "group"}, "no such option 'group'"),
        (
            {"strict": 0, "delete": "strict"},
            "cannot set and delete property 'strict' at the same time!",
        ),
        ({"nodes": "gone"}, "cannot use non-existent node(s) gone."),
        ({"resources": "vm:109"}, "cannot use unmanaged resource(s) vm:109."),
        ({"type": "resource-affinity"}, "unexpected property 'type'"),
    ):
        assert ha.call("PUT", path, {**kind, **params}).reason == f"update HA rules failed: {text}"
    ha.put(path, **kind, disable=0)
    assert ha.get(path)["disable"] == 1
    ha.put(path, **kind, delete="disable")
    assert "disable" not in ha.get(path)


def test_rules_that_cannot_be_kept(ha: Client) -> None:
    place(ha, "one", "pve1", 100)
    answer = place(ha, "two", "pve2", 100)
    assert answer.body["message"] == (
        "create ha rule failed: 400 Rule 'two' is invalid.\n"
        "resources: resource 'vm:100' is already used in another node affinity rule\n"
    )
    assert "already used" not in place(ha, "off", "pve2", 100, disable=1).body.get("message", "")
    assert "less than two resources" in group(ha, "alone", "positive", 100).body["message"]
    assert group(ha, "apart", "negative", 100, 101).status == 200
    answer = group(ha, "together", "positive", 100, 101, 102)
    assert (
        "rule shares two or more resources with a negative resource affinity rule"
        in answer.body["message"]
    )
    answer = place(ha, "both", "pve1", 101, strict=1)
    assert (
        "would restrict these to less nodes than available to the resources"
        in answer.body["message"]
    )
    answer = place(ha, "ranks", "pve1:2,pve2:1", 101)
    assert "cannot be in a node affinity rule with multiple priorities" in answer.body["message"]


def test_a_move_takes_along_and_is_kept_away(ha: Client) -> None:
    group(ha, "together", "positive", 100, 101)
    assert ha.get("/nodes/pve1/qemu/100/migrate")["dependent-ha-resources"] == ["vm:101"]
    group(ha, "apart", "negative", 100, 102)
    answer = ha.post(f"{RESOURCES}/vm:101/migrate", node="pve1")
    assert answer == {
        "sid": "vm:101",
        "requested-node": "pve1",
        "comigrated-resources": ["vm:100"],
        "blocking-resources": [{"sid": "vm:102", "cause": "resource-affinity"}],
    }
    assert ha.post(f"{RESOURCES}/vm:102/migrate", node="gone") == {
        "sid": "vm:102",
        "requested-node": "gone",
    }
    ha.delete(f"{RESOURCES}/vm:101", purge=0)
    assert ha.get(f"{RULES}/together")["resources"] == "vm:100,vm:101"
    ha.delete(f"{RESOURCES}/vm:100")
    assert ha.get(f"{RULES}/together")["errors"] == {
        "resources": ["rule is ineffective as there are less than two resources"]
    }
