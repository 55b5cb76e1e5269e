# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role provision and its playbooks, run by ansible-playbook against the simulated
Proxmox VE.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import repeated
from tests.demo.__main__ import EXAMPLES
from tests.demo.lab import Lab
from tests.plays.provision_helpers import DEPROVISION, PROVISION, Player, diffs, machine, vm, writes

# The whole life of an estate; tests/plays/test_artifact.py repeats it with the installed artifact.


def test_life_of_the_example_estate(player: Player, lab: Lab) -> None:
    estate = player.directory / "estate.yml"
    estate.write_text((EXAMPLES / "estate.yml").read_text(encoding="utf-8"), encoding="utf-8")
    said = ("-e", "@estate.yml", "--diff")

    mark = lab.mark()
    predicted = player.play(PROVISION, *said, "--check").expect()
    assert predicted.changed == 1
    assert lab.requests_since(mark)
    assert writes(lab, mark) == []

    first = player.play(PROVISION, *said).expect()
    assert first.changed == 1
    assert diffs(predicted.output) == diffs(first.output)
    assert len(diffs(first.output)) == 6
    assert "Plan: 6 to create" in predicted.output
    assert "Done: 6 created" in first.output
    machines = lab.machines()
    assert Counter((one.tenant, one.status) for one in machines) == {
        ("acme", "running"): 3,
        ("globex", "running"): 3,
    }
    assert {one.name: one.node for one in machines} == {
        one["name"]: one["node"]
        for one in yaml.safe_load(estate.read_text(encoding="utf-8"))["provision_vms"]
    }

    mark = lab.mark()
    second = player.play(PROVISION, *said).expect()
    assert second.changed == 0
    assert diffs(second.output) == []
    assert "Done: 6 unchanged" in second.output
    assert writes(lab, mark) == []
    assert len(lab.requests_since(mark)) == 1 + len(machines) + len({one.node for one in machines})

    edited = (
        estate.read_text(encoding="utf-8")
        .replace("cores: 1\n", "cores: 2\n")
        .replace("size: 50G", "size: 80G")
    )
    estate.write_text(edited.replace("tags: [worker]", "tags: [worker, batch]"), encoding="utf-8")
    mark = lab.mark()
    predicted = player.play(PROVISION, *said, "--check").expect()
    assert predicted.changed == 1
    assert writes(lab, mark) == []
    made = player.play(PROVISION, *said).expect()
    assert made.changed == 1
    assert len(diffs(made.output)) == 6
    assert diffs(predicted.output) == diffs(made.output)

    mark = lab.mark()
    player.play(DEPROVISION, *said).expect(2)
    assert lab.requests_since(mark) == []
    kept = {one.vmid: lab.config(one) for one in lab.machines() if one.tenant == "acme"}
    leaving = {one.vmid for one in lab.machines() if one.tenant == "globex"}
    predicted = player.play(
        DEPROVISION, *said, "-e", "provision_tenants=globex", "--check"
    ).expect()
    assert predicted.changed == 1
    assert writes(lab, mark) == []
    removed = player.play(DEPROVISION, *said, "-e", "provision_tenants=globex").expect()
    assert removed.changed == 1
    assert diffs(removed.output) == diffs(predicted.output)
    assert {one.vmid for one in lab.requests_since(mark) if one.is_write} == leaving
    assert {one.vmid: lab.config(one) for one in lab.machines()} == kept

    mark = lab.mark()
    assert player.play(DEPROVISION, *said, "-e", "provision_tenants=globex").expect().changed == 0
    assert writes(lab, mark) == []


# The ways to say things.


def test_one_host_a_vm(repo: Path, player: Player, lab: Lab) -> None:
    hosts = ("-i", str(repo / "docs" / "examples" / "hosts.yml"), "-e", "provision_hosts=fleet")
    first = player.play(PROVISION, *hosts).expect()
    assert {host: figures["changed"] for host, figures in first.recap.items()} == {
        "initech-web1": 1,
        "initech-db1": 1,
    }
    made = {one.name: one for one in lab.machines()}
    assert {made[name].tenant for name in first.recap} == {"initech"}
    assert lab.config(made["initech-db1"])["memory"] == "4096"
    mark = lab.mark()
    assert player.play(PROVISION, *hosts).expect().changed == 0
    assert player.play(DEPROVISION, *hosts, "-e", "provision_tenants=other").expect().changed == 0
    assert writes(lab, mark) == []
    assert player.play(DEPROVISION, *hosts, "-e", "provision_tenants=initech").expect().changed == 2
    assert not {one.name for one in lab.machines()} & set(first.recap)
    failed = player.play(PROVISION, provision_vm={"node": "pve9"}).expect(2)
    assert "not changed: Node 'pve9' could not be used" in failed.output


def test_vm_wins_over_class_and_class_over_defaults(player: Player, lab: Lab) -> None:
    outcome = player.cases(
        {
            "name": "layers",
            "defaults": {
                "source": "debian-13",
                "cores": 4,
                "memory": "4G",
                "cloud_init": {"user": "ops"},
                "class": "web",
                "tags": ["all"],
            },
            "classes": {
                "web": {
                    "cores": 2,
                    "memory": "2G",
                    "cloud_init": {"search_domain": "a.test"},
                    "tags": ["web"],
                }
            },
            "state": "stopped",
            "vms": [
                {
                    "name": "layers",
                    "memory": "1G",
                    "cloud_init": {"nameservers": ["192.0.2.1"]},
                    "tags": ["own"],
                }
            ],
        }
    )["layers"]
    assert outcome.refusal == ""
    made = machine(lab, "layers")
    config = lab.config(made)
    assert made.status == "stopped"
    assert (config["cores"], config["memory"]) == (2, "1024")
    assert (config["ciuser"], config["searchdomain"], config["nameserver"]) == (
        "ops",
        "a.test",
        "192.0.2.1",
    )
    assert {"all", "own", "web"} <= set(config["tags"].split(";"))


def test_one_vm_that_fails_does_not_stop_the_others_and_a_rerun_completes(
    player: Player, lab: Lab
) -> None:
    estate = [vm("one"), vm("unfit", node="pve9"), vm("two", state="stopped")]
    mark = lab.mark()
    first = player.play(PROVISION, provision_vms=estate).expect(2)
    assert first.recap["localhost"]["failed"] == 1
    assert first.changed == 1
    assert "Done: 2 created, 1 failed" in first.output
    assert "! unfit  not changed: Node 'pve9' could not be used" in first.output
    assert "1 of 3 guests failed, see the lines above: unfit" in first.output
    # the module's result, of which the failure of a task would show all
    assert "Ready" not in first.output
    assert {one.name for one in lab.machines()} >= {"one", "two"}
    assert len([one for one in writes(lab, mark) if one.endswith("/clone")]) == 2

    again = player.cases(
        {"name": "again", "vms": estate}, {"name": "repaired", "vms": [vm("unfit"), *estate[::2]]}
    )
    assert [
        (row["name"], row["action"], row["changed"], row["status"]) for row in again["again"].result
    ] == [
        ("one", "unchanged", False, "running"),
        ("unfit", "failed", False, None),
        ("two", "unchanged", False, "stopped"),
    ]
    repaired = again["repaired"].result
    assert [(row["name"], row["action"]) for row in repaired] == [
        ("unfit", "created"),
        ("one", "unchanged"),
        ("two", "unchanged"),
    ]
    assert [(row["vmid"], row["node"]) for row in repaired] == [
        (machine(lab, row["name"]).vmid, machine(lab, row["name"]).node) for row in repaired
    ]


def test_only_the_named_tenants_are_worked_on(player: Player, lab: Lab) -> None:
    estate = [vm("t-acme", tenant="acme"), vm("t-acm", tenant="acm"), vm("t-none")]
    made = player.play(
        PROVISION, "-e", "provision_tenants=acm", provision_vms=estate, provision_state="present"
    ).expect()
    assert made.changed == 1
    assert [one.name for one in lab.machines() if one.name.startswith("t-")] == ["t-acm"]


@pytest.mark.parametrize("in_process", repeated(["true", "false"]))
def test_no_secret_is_shown(stranger: Player, lab: Lab, in_process: str) -> None:
    secret = {"user": "ops", "password": "hunter2-own"}
    estate = [
        vm("plain"),
        vm("secretive", cloud_init=secret),
        vm("failing", cloud_init=secret, node="pve9"),
    ]
    said: dict[str, Any] = {
        "provision_state": "present",
        "provision_defaults": {"cloud_init": {"password": "hunter2-all"}},
        "provision_classes": {"web": {"cloud_init": {"password": "hunter2-web"}}},
        "provision_connection": lab.connection,
        "pve_fleet_in_process": in_process,
    }
    played = stranger.play(PROVISION, "-vvv", "--diff", provision_vms=estate, **said).expect(2)
    assert played.changed == 1
    refused = stranger.play(
        PROVISION, "-vvv", provision_vms=[*estate, vm("no_name")], **said
    ).expect(2)
    for shown in (played.output, refused.output):
        assert "hunter2" not in shown
        assert lab.connection["token_secret"] not in shown.replace(lab.connection["token_id"], "")


def test_documented_privileges_suffice(repo: Path, stranger: Player, lab: Lab) -> None:
    """The role that docs/getting-started.md makes is enough for a VM's whole life."""
    text = (repo / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (privileges,) = re.findall(r'pveum role add Fleet --privs "([^"]+)"', text)
    connection = lab.make_token("fleet@pve", "ansible", privileges.split())
    nics = [{"bridge": "vmbr0", "vlan": 130, "ip": "dhcp"}]
    plain = vm("frugal", tenant="acme", pool="acme", nics=nics, cloud_init={"user": "ops"})
    grown = {
        **plain,
        "cores": 2,
        "memory": "2G",
        "node": "pve3",
        "pool": "globex",
        "state": "stopped",
    }
    grown["disks"] = [
        {"name": "scsi0", "size": "20G"},
        {"name": "scsi1", "size": "5G", "storage": "ceph"},
    ]
    outcomes = stranger.cases(
        {"name": "made", "vms": [plain], "connection": connection},
        {"name": "changed", "vms": [grown], "connection": connection},
        {
            "name": "removed",
            "vms": [grown],
            "connection": connection,
            "tasks": "absent",
            "tenants": ["acme"],
        },
    )
    assert {
        name: (outcome.refusal, outcome.result[0]["changed"]) for name, outcome in outcomes.items()
    } == {"made": ("", True), "changed": ("", True), "removed": ("", True)}
