# Copyright (c) The pve.fleet contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role provision and its playbooks, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.demo.lab import Lab, Machine
from tests.plays.provision_helpers import Player, diffs, make_ca

PROVISION = "pve.fleet.provision"
DEPROVISION = "pve.fleet.deprovision"


@pytest.fixture(scope="module")
def running_lab() -> Iterator[Lab]:
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as lab:
        yield lab


@pytest.fixture
def lab(running_lab: Lab) -> Lab:
    """A cluster of three nodes with templates, pools and bridges, without VMs, whose tasks are quick."""
    running_lab.reset()
    return running_lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    return Player(tmp_path, lab.environment)


@pytest.fixture
def stranger(tmp_path: Path) -> Player:
    """Somebody who has no PROXMOX_* in the environment."""
    return Player(tmp_path, {})


@pytest.fixture(scope="module")
def installed(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the collection is installed from its artifact."""
    target = tmp_path_factory.mktemp("installed")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(target)}
    galaxy = ("ansible-galaxy", "collection")
    subprocess.run([*galaxy, "build", "--output-path", target, repo], check=True, env=environment)
    (artifact,) = target.glob("pve-fleet-*.tar.gz")
    subprocess.run([*galaxy, "install", "--offline", "-p", target, artifact], check=True, env=environment)
    return target


@pytest.fixture
def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def other_ca(tmp_path: Path) -> Path:
    """A CA that did not sign the certificate of the cluster."""
    return make_ca(tmp_path / "other-ca.pem")


def vm(name: str, **options: Any) -> dict[str, Any]:
    """Return a VM of an estate, a clone of the template unless the options say otherwise."""
    return {"name": name, "source": "debian-13", **options}


def machine(lab: Lab, name: str) -> Machine:
    (found,) = [one for one in lab.machines() if one.name == name]
    return found


def writes(lab: Lab, mark: int) -> list[str]:
    return [str(one) for one in lab.requests_since(mark) if one.is_write]


# The whole life of an estate, with the installed collection.


def test_life_of_the_example_estate(installed: Path, lab: Lab, tmp_path: Path) -> None:
    examples = installed / "ansible_collections" / "pve" / "fleet" / "docs" / "examples"
    estate = tmp_path / "estate.yml"
    estate.write_text((examples / "estate.yml").read_text(encoding="utf-8"), encoding="utf-8")
    player = Player(tmp_path, {**lab.environment, "ANSIBLE_COLLECTIONS_PATH": str(installed)})
    said = ("-e", "@estate.yml", "--diff")

    mark = lab.mark()
    predicted = player.play(PROVISION, *said, "--check").expect()
    assert predicted.changed == 1
    assert lab.requests_since(mark)
    assert writes(lab, mark) == []

    first = player.play(PROVISION, *said).expect()
    assert first.changed == 1
    assert without_vmids(diffs(predicted.output)) == without_vmids(diffs(first.output))
    assert len(diffs(first.output)) == 6
    machines = lab.machines()
    assert Counter((one.tenant, one.status) for one in machines) == {("acme", "running"): 3, ("globex", "running"): 3}
    assert {one.name: one.node for one in machines} == {
        one["name"]: one["node"] for one in yaml.safe_load(estate.read_text(encoding="utf-8"))["provision_vms"]
    }

    mark = lab.mark()
    second = player.play(PROVISION, *said).expect()
    assert second.changed == 0
    assert diffs(second.output) == []
    assert writes(lab, mark) == []

    edited = estate.read_text(encoding="utf-8").replace("cores: 1\n", "cores: 2\n").replace("size: 50G", "size: 80G")
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
    predicted = player.play(DEPROVISION, *said, "-e", "provision_tenants=globex", "--check").expect()
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


def without_vmids(texts: list[str]) -> list[str]:
    """A preview of several new VMs gives each the lowest free VMID, because none of them is made."""
    return [re.sub(r"\b1000\d\b", "VMID", text) for text in texts]


# What the role refuses before any request.


class Refusal(NamedTuple):
    """A case that is refused, and a part of the message."""

    case: dict[str, Any]
    text: str


REFUSED: dict[str, Refusal] = {
    "an unknown option": Refusal({"vms": [vm("a", coers=2)]}, "provision_vms.coers"),
    "no number": Refusal({"vms": [vm("a", cores="many")]}, "found in 'provision_vms'"),
    "no choice": Refusal({"vms": [vm("a", disks=[{"cache": "big"}])]}, "big found in provision_vms -> disks"),
    "an unknown option of a NIC": Refusal({"vms": [vm("a", nics=[{"brigde": "vmbr0"}])]}, "provision_vms.nics.brigde"),
    "no name": Refusal({"vms": [{"cores": 2}]}, "missing required arguments: name found in provision_vms"),
    "no list": Refusal({"vms": 7}, "option 'provision_vms'"),
    "an unknown default": Refusal({"vms": [], "defaults": {"coers": 2}}, "provision_defaults.coers"),
    "no state": Refusal(
        {"vms": [], "state": "on"}, "value of provision_state must be one of: present, started, stopped"
    ),
    "an unknown connection": Refusal({"vms": [], "connection": {"hots": "x"}}, "provision_connection.hots"),
    "a double": Refusal({"vms": [vm("a", tenant="acme"), vm("A", tenant="Acme")]}, "more than one VM acme/a"),
    "a double number": Refusal({"vms": [vm("a", vmid=200), vm("b", vmid=200)]}, "more than one VM VMID 200"),
    "an unknown tenant": Refusal(
        {"vms": [vm("a", tenant="acme")], "tenants": ["acme", "ac"]},
        "provision_tenants names ac, but no VM of provision_vms has that tenant. Its tenants are acme",
    ),
    "a removal of everything": Refusal(
        {"vms": [vm("a", tenant="acme")], "tasks": "absent"},
        "Name the tenants in provision_tenants, or set provision_all=true",
    ),
    "a removal of a part of a name": Refusal(
        {"vms": [vm("a", tenant="acme")], "tasks": "absent", "tenants": "acm"},
        "provision_tenants names acm",
    ),
}


def test_wrong_estate_is_refused_with_the_name_of_the_variable_before_any_request(player: Player, lab: Lab) -> None:
    mark = lab.mark()
    outcomes = player.cases(*({"name": name, **wrong.case} for name, wrong in REFUSED.items()))
    told = {name: outcome.refusal for name, outcome in outcomes.items()}
    missing = {name: told[name] for name, wrong in REFUSED.items() if wrong.text not in told[name]}
    assert missing == {}
    assert lab.requests_since(mark) == []


def test_estate_must_be_given_once(player: Player, lab: Lab) -> None:
    mark = lab.mark()
    assert "was the estate given with -e @FILE?" in player.play(PROVISION).expect(2).output
    both = player.play(PROVISION, provision_vms=[], provision_vm={"cores": 1}).expect(2)
    assert "Both are: remove one." in both.output
    assert lab.requests_since(mark) == []


# What the module refuses, as the role reports it.

MAPS: dict[str, Any] = {
    "classes": {"web": {"cores": 1, "memory": "1G"}},
    "networks": {"back": {"bridge": "vmbr1", "vlan": 120}},
    "storage_classes": {"fast": {"storage": "ceph"}},
}


class Failure(NamedTuple):
    """Options that cannot work, the category of the failure, and a part of the message."""

    options: dict[str, Any]
    category: str
    text: str


WRONG: dict[str, Failure] = {
    "unknown-class": Failure({"class": "wbe"}, "ConfigurationError", "known are web"),
    "unknown-network": Failure({"nics": [{"network": "backk"}]}, "ConfigurationError", "back"),
    "unknown-storage-class": Failure({"disks": [{"storage_class": "slow"}]}, "ConfigurationError", "known are fast"),
    "unknown-node": Failure({"node": "pve9"}, "ConfigurationError", "pve1"),
    "unknown-storage": Failure(
        {"disks": [{"name": "scsi1", "size": "5G", "storage": "cpeh"}]}, "ConfigurationError", "ceph"
    ),
    "unknown-bridge": Failure({"nics": [{"bridge": "vmbr9"}]}, "ConfigurationError", "vmbr0"),
    "unknown-template": Failure({"source": "debian-31"}, "NotFound", "debian-13"),
    "ambiguous-template": Failure({"source": "twin"}, "Conflict", "2 templates have that name"),
    "unknown-pool": Failure({"pool": "acne"}, "ConfigurationError", "acme"),
    "bad_name": Failure({}, "ValidationFailed", "bad_name"),
    "memory-unit": Failure({"memory": "4Q"}, "ValidationFailed", "4Q"),
    "memory-small": Failure({"memory": "1M"}, "ValidationFailed", "memory"),
    "memory-large": Failure({"memory": "3T"}, "ValidationFailed", "memory"),
    "disk-unit": Failure({"disks": [{"name": "scsi1", "size": "20X"}]}, "ValidationFailed", "20X"),
    "disk-small": Failure({"disks": [{"name": "scsi1", "size": "1M"}]}, "ValidationFailed", "size"),
    "disk-large": Failure({"disks": [{"name": "scsi1", "size": "200T"}]}, "ValidationFailed", "size"),
    "no-cpu": Failure({"cores": 0}, "ValidationFailed", "cores"),
    "many-cpus": Failure({"cores": 2000}, "ValidationFailed", "cores"),
    "wrong-vlan": Failure({"nics": [{"bridge": "vmbr0", "vlan": 5000}]}, "ValidationFailed", "5000"),
    "foreign": Failure({"tenant": "acme"}, "Conflict", "another tenant"),
}


def misfits(told: dict[str, tuple[str, str]], wanted: dict[str, Failure]) -> dict[str, tuple[str, str]]:
    """Return the failures that lack the category, the text or, as another sentence, the next step."""
    return {
        name: (category, message)
        for name, (category, message) in told.items()
        if category != wanted[name].category or wanted[name].text not in message or not re.search(r"\. \w", message)
    }


def test_each_wrong_vm_is_told_apart_and_nothing_is_written(player: Player, lab: Lab) -> None:
    lab.make_template("twin")
    lab.make_template("twin")
    lab.make_vm("foreign", tags="tenant_globex")
    mark = lab.mark()
    estate = [vm(name, **wrong.options) for name, wrong in WRONG.items()]
    outcome = player.cases({"name": "wrong", "vms": estate, **MAPS})["wrong"]
    told = {name: outcome.failure_of(name) for name in WRONG}
    assert misfits(told, WRONG) == {}
    assert writes(lab, mark) == []


def test_one_wrong_vm_does_not_stop_the_others(player: Player, lab: Lab) -> None:
    estate = [vm("one"), vm("bad_name"), vm("two", state="stopped")]
    outcome = player.cases({"name": "mixed", "vms": estate})["mixed"]
    assert [(row["name"], row["failed"], row["changed"], row["status"]) for row in outcome.result] == [
        ("one", False, True, "running"),
        ("bad_name", True, False, None),
        ("two", False, True, "stopped"),
    ]
    assert [(row["vmid"], row["node"]) for row in outcome.result if not row["failed"]] == [
        (machine(lab, name).vmid, machine(lab, name).node) for name in ("one", "two")
    ]


def test_connection_that_does_not_work(stranger: Player, lab: Lab, free_port: int, other_ca: Path) -> None:
    right = lab.connection
    wrong = "00000000-0000-4000-8000-999999999999"
    cases: dict[str, Failure] = {
        "no endpoint": Failure({}, "ConfigurationError", "PROXMOX_HOST"),
        "malformed endpoint": Failure({**right, "host": "ht!tp://x y"}, "ConfigurationError", "host"),
        "no credentials": Failure({"host": right["host"]}, "ConfigurationError", "token"),
        "wrong token": Failure(
            {**right, "token_secret": wrong},
            "AuthenticationError",
            "token",
        ),
        "wrong CA": Failure({**right, "ca_path": str(other_ca)}, "NetworkError", "ca_path"),
        "unreachable port": Failure({**right, "host": f"127.0.0.1:{free_port}", "retries": 1}, "NetworkError", "port"),
    }
    mark = lab.mark()
    outcomes = stranger.cases(
        *({"name": name, "vms": [vm("a")], "connection": case.options} for name, case in cases.items())
    )
    told = {name: outcome.failure_of("a") for name, outcome in outcomes.items()}
    assert misfits(told, cases) == {}
    assert len({message for category, message in told.values()}) == len(cases)
    assert writes(lab, mark) == []


# The ways to say things.


def test_one_host_a_vm(repo: Path, player: Player, lab: Lab) -> None:
    hosts = ("-i", str(repo / "docs" / "examples" / "hosts.yml"), "-e", "provision_hosts=fleet")
    first = player.play(PROVISION, *hosts).expect()
    assert {host: figures["changed"] for host, figures in first.recap.items()} == {"initech-web1": 1, "initech-db1": 1}
    made = {one.name: one for one in lab.machines()}
    assert {made[name].tenant for name in first.recap} == {"initech"}
    assert lab.config(made["initech-db1"])["memory"] == "4096"
    mark = lab.mark()
    assert player.play(PROVISION, *hosts).expect().changed == 0
    assert player.play(DEPROVISION, *hosts, "-e", "provision_tenants=other").expect().changed == 0
    assert writes(lab, mark) == []
    assert player.play(DEPROVISION, *hosts, "-e", "provision_tenants=initech").expect().changed == 2
    assert not {one.name for one in lab.machines()} & set(first.recap)


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
            },
            "classes": {
                "web": {"cores": 2, "memory": "2G", "cloud_init": {"search_domain": "a.test"}, "tags": ["web"]}
            },
            "state": "stopped",
            "vms": [{"name": "layers", "memory": "1G", "cloud_init": {"nameservers": ["192.0.2.1"]}, "tags": ["own"]}],
        }
    )["layers"]
    assert outcome.refusal == ""
    made = machine(lab, "layers")
    config = lab.config(made)
    assert made.status == "stopped"
    assert (config["cores"], config["memory"]) == (2, "1024")
    assert (config["ciuser"], config["searchdomain"], config["nameserver"]) == ("ops", "a.test", "192.0.2.1")
    assert {"own", "web"} <= set(config["tags"].split(";"))


def test_only_the_named_tenants_are_worked_on(player: Player, lab: Lab) -> None:
    estate = [vm("t-acme", tenant="acme"), vm("t-acm", tenant="acm"), vm("t-none")]
    made = player.play(
        PROVISION, "-e", "provision_tenants=acm", provision_vms=estate, provision_state="present"
    ).expect()
    assert made.changed == 1
    assert [one.name for one in lab.machines() if one.name.startswith("t-")] == ["t-acm"]


def test_removal_touches_no_vm_that_the_estate_does_not_mean(player: Player, lab: Lab) -> None:
    lab.make_vm("lonely", tags="tenant_globex")
    other = lab.make_vm("renamed", tags="tenant_acme")
    guarded = lab.make_vm("guarded", tags="tenant_acme", protection=1)
    mark = lab.mark()
    outcomes = player.cases(
        {"name": "no tenant", "tasks": "absent", "all": True, "vms": [vm("lonely")]},
        {"name": "other tenant", "tasks": "absent", "all": True, "vms": [vm("lonely", tenant="acme")]},
        {"name": "other name", "tasks": "absent", "all": True, "vms": [vm("mine", tenant="acme", vmid=other)]},
        {"name": "protected", "tasks": "absent", "tenants": ["acme"], "vms": [vm("guarded", tenant="acme")]},
        {"name": "gone", "tasks": "absent", "tenants": ["acme"], "vms": [vm("mine", tenant="acme")]},
    )
    assert "another tenant or name: lonely" in outcomes["no tenant"].refusal
    assert outcomes["other tenant"].failure_of("lonely")[0] == "Conflict"
    assert "another tenant or name: acme/mine" in outcomes["other name"].refusal
    assert outcomes["protected"].failure_of("guarded")[0] == "Conflict"
    assert [(row["status"], row["changed"]) for row in outcomes["gone"].result] == [("absent", False)]
    assert writes(lab, mark) == []
    lifted = player.cases(
        {"name": "lifted", "tasks": "absent", "all": "yes", "vms": [vm("guarded", tenant="acme", protection=False)]}
    )["lifted"]
    assert [(row["status"], row["changed"]) for row in lifted.result] == [("absent", True)]
    assert guarded not in {one.vmid for one in lab.machines()}


def test_no_secret_is_shown(stranger: Player, lab: Lab) -> None:
    estate = [vm("secretive", cloud_init={"user": "ops", "password": "hunter2-hunter2"}, state="present")]
    played = stranger.play(
        PROVISION, "-vvv", "--diff", provision_vms=estate, provision_connection=lab.connection
    ).expect()
    assert played.changed == 1
    shown = played.output.replace(lab.connection["token_id"], "")
    assert "hunter2" not in shown
    assert lab.connection["token_secret"] not in shown


def test_documented_privileges_suffice(repo: Path, stranger: Player, lab: Lab) -> None:
    """The role that docs/getting-started.md makes is enough for a VM's whole life."""
    text = (repo / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (privileges,) = re.findall(r'pveum role add Fleet --privs "([^"]+)"', text)
    connection = lab.make_token("fleet@pve", "ansible", privileges.split())
    nics = [{"bridge": "vmbr0", "vlan": 130, "ip": "dhcp"}]
    plain = vm("frugal", tenant="acme", pool="acme", nics=nics, cloud_init={"user": "ops"})
    grown = {**plain, "cores": 2, "memory": "2G", "node": "pve3", "pool": "globex", "state": "stopped"}
    grown["disks"] = [{"name": "scsi0", "size": "20G"}, {"name": "scsi1", "size": "5G", "storage": "ceph"}]
    outcomes = stranger.cases(
        {"name": "made", "vms": [plain], "connection": connection},
        {"name": "changed", "vms": [grown], "connection": connection},
        {"name": "removed", "vms": [grown], "connection": connection, "tasks": "absent", "tenants": ["acme"]},
    )
    assert {name: (outcome.refusal, outcome.result[0]["changed"]) for name, outcome in outcomes.items()} == {
        "made": ("", True),
        "changed": ("", True),
        "removed": ("", True),
    }
