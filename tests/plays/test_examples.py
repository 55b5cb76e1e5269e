# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples in the documentation of modules and roles, played as they stand there, in the order
of the page.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from tests.declared import MODULES
from tests.demo.lab import Lab
from tests.modules.access_lab import with_directory
from tests.modules.estate_lab import first_number
from tests.plays.provision_helpers import Player
from tests.simulator.process import DEMO, Simulator

pytestmark = pytest.mark.slow

ISO = "https://cdimage.debian.org/debian-cd/current/amd64/iso-cd/debian-13.2.0-amd64-netinst.iso"


# A container as the examples of clone find it.
CONTAINER = {
    "ostemplate": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
    "rootfs": "ceph:1",
    "unprivileged": 1,
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A demo cluster that can also download the ISO of the examples."""
    document: dict[str, Any] = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    document["web"].append({"url": ISO, "size": "700MiB", "sha256": checksum_in_the_example()})
    file = tmp_path_factory.mktemp("cluster") / "cluster.yml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    lab = Lab(lag_s=0)
    lab.simulator = Simulator("--cluster", file, "--task-ms", "default=10", "--lag-s", 0)
    with lab:
        yield lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    lab.reset()
    return Player(tmp_path, {**lab.environment, "PVE_ROOT_PASSWORD": "fleetpw123"})


def examples(module: str) -> list[dict[str, Any]]:
    text = (Path(__file__).resolve().parents[2] / "plugins" / "modules" / f"{module}.py").read_text(
        encoding="utf-8"
    )
    found = re.search(r'^EXAMPLES = r"""\n(.*?)^"""', text, re.M | re.S)
    assert found
    tasks: list[dict[str, Any]] = yaml.safe_load(found[1])
    return [task for task in tasks if not needs_ssh(task)]


def needs_ssh(task: dict[str, Any]) -> bool:
    """Return whether a task connects to a node: test_volume.py of the modules runs such a task."""
    return "ssh" in (task.get("pve.fleet.volume") or {})


def checksum_in_the_example() -> str:
    said = [
        task["pve.fleet.storage_download"].get("checksum")
        for task in examples("storage_download")[:2]
    ]
    digest: str = said[1].removeprefix("sha256:")
    assert len(digest) == hashlib.sha256().digest_size * 2
    return digest


def prepare(lab: Lab, player: Player) -> None:
    """Make web1 by the first example of clone, as tenant acme's, and another VM.

    Modules that are about VMs find these.
    """
    play(player, examples("clone")[:1])
    (web1,) = [machine for machine in lab.machines() if machine.name == "web1"]
    assert web1.vmid == first_number("web1", "acme") == 15046
    lab.call("POST", f"/nodes/{web1.node}/qemu/{web1.vmid}/snapshot", snapname="before-upgrade")
    lab.call("POST", "/nodes/pve2/qemu", vmid=10001, name="other")
    lab.call("POST", "/nodes/pve1/lxc", vmid=10002, hostname="proxy1", **CONTAINER)


def published(version: int) -> list[dict[str, Any]]:
    """Return the tasks that publish a version of the image that the examples name."""
    new = {"name": f"new-{version}", "node": "pve1", "source": CONTAINER["ostemplate"]}
    image = {"name": "debian-13-ct", "tags": [f"version-{version}"], "state": "template"}
    return [
        {"pve.fleet.container": {**new, "rootfs": {"size": "1G"}}, "register": "new"},
        {"pve.fleet.container": {"vmid": "{{ new.container.vmid }}", **image}},
    ]


def make_older_container(player: Player) -> None:
    """Create container proxy1 of tenant acme from an image that has a newer version."""
    proxy: dict[str, Any] = {"name": "proxy1", "tenant": "acme", "source": "debian-13-ct"}
    proxy |= {"node": "pve1", "rootfs": {"size": "1G"}}
    play(player, [*published(1), {"pve.fleet.container": proxy}, *published(2)])


def make_archives_of_lost_guests(player: Player) -> None:
    """Back up guest old1, which the example excludes, and remove it and web1."""
    old = {"name": "old1", "tenant": "acme", "pool": "acme", "source": "debian-13"}
    tasks: list[dict[str, Any]] = [
        {"pve.fleet.vm": old},
        {"pve.fleet.backup": {"name": "old1", "storage": "local"}},
    ]
    for name in ("old1", "web1"):
        tasks.append({"pve.fleet.vm": {"name": name, "state": "absent", "force": True}})
    play(player, tasks)


def make_realm(lab: Lab) -> None:
    with connect(lab.connection, {}) as client:
        with_directory(client, lab.simulator)


def play(player: Player, tasks: list[dict[str, Any]], **variables: str) -> str:
    written = [{"name": "Examples", "hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (player.directory / "examples.yml").write_text(
        yaml.safe_dump(written, sort_keys=False), encoding="utf-8"
    )
    return player.play("examples.yml", **variables).expect().output


def test_examples_of_a_move(lab: Lab, player: Player) -> None:
    """Guest web1 moves from this cluster to another one, and back. The page relocation.md has these
    examples too.
    """
    disk = {"name": "scsi0", "size": 1, "storage": "ceph"}
    web = {"name": "web1", "tenant": "acme", "state": "started", "disks": [disk]}
    play(player, [{"pve.fleet.vm": web}])
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as munich:
        sites = [
            {"name": "vienna", **lab.connection},
            {"name": "munich", **munich.connection, "nodes": ["pve1"]},
        ]
        file = player.directory / "sites.yml"
        file.write_text(json.dumps({"sites": sites}, default=str), encoding="utf-8")
        tasks = examples("relocate")
        for task in tasks:
            if "pve.fleet.relocate" in task:
                task["pve.fleet.relocate"] |= {"sites_file": str(file), "pools": {"acme": "acme"}}
        assert "Traceback" not in play(player, tasks)


@pytest.mark.parametrize("module", [one for one in MODULES if one != "relocate"])
def test_examples_of_a_module(lab: Lab, player: Player, module: str) -> None:
    tasks = examples(module)
    if module in (
        "backup",
        "backup_info",
        "clone",
        "drill",
        "drill_info",
        "failover",
        "restore",
        "snapshot",
        "snapshot_info",
        "task",
        "task_info",
        "vm_info",
    ):
        prepare(lab, player)
    if module in ("drill", "drill_info", "failover"):
        play(player, [{"pve.fleet.backup": {"name": "web1", "storage": "local"}}])
    if module == "failover":
        make_archives_of_lost_guests(player)
    if module == "realm_sync":
        make_realm(lab)
    if module == "container_image":
        make_older_container(player)
    if module == "restore":
        gone = {"name": "web1", "snapshot": "before-upgrade", "state": "absent"}
        backup = {"name": "web1", "storage": "local"}
        play(player, [{"pve.fleet.snapshot": gone}, {"pve.fleet.backup": backup}])
        tasks[1]["pve.fleet.restore"]["before"] = "2100-01-01"  # the archive is from now
    # the example does not wait for these at its end, and the cluster goes away
    for task in tasks:
        if task.get("poll") == 0:
            task["poll"] = 1
    if module == "metrics":
        tasks[0]["pve.fleet.metrics"]["path"] = str(player.directory / "proxmox.prom")
    assert "Traceback" not in play(player, tasks)


def test_the_examples_of_every_module_are_played(repo: Path) -> None:
    assert list(MODULES) == sorted(file.stem for file in (repo / "plugins/modules").glob("*.py"))


def test_what_the_examples_of_clone_have_made(lab: Lab, player: Player) -> None:
    prepare(lab, player)
    play(player, [task for task in examples("clone") if "async" not in task])
    names = {machine.name: machine for machine in lab.machines()}
    assert names["db1"].node == "pve2"
    assert lab.config(names["db1"])["scsi0"].startswith("local-lvm:")
    assert names["web1-before"].vmid not in (9000, 15046)


def tasks_of(page: str) -> list[dict[str, Any]]:
    """Return all tasks of a page, in its order."""
    text = (Path(__file__).resolve().parents[2] / "docs" / page).read_text(encoding="utf-8")
    return [
        task
        for block in re.findall(r"```yaml\n(.*?)```", text, re.S)
        for task in yaml.safe_load(block)
        if not needs_ssh(task)
    ]


@pytest.mark.parametrize(
    "page",
    [
        "access.md",
        "backup.md",
        "drift.md",
        "drill.md",
        "failover.md",
        "export.md",
        "pools.md",
        "storage.md",
        "cluster.md",
        "cluster-options.md",
        "datacenter.md",
        "firewall.md",
        "networks.md",
        "ha.md",
        "containers.md",
        "nodes.md",
        "maintenance.md",
        "tenants.md",
        "report.md",
    ],
)
def test_a_page_about_resources(lab: Lab, player: Player, page: str) -> None:
    make_realm(lab)
    assert "Traceback" not in play(player, tasks_of(page))


def test_the_page_about_clones_and_snapshots(lab: Lab, player: Player) -> None:
    tasks = tasks_of("snapshots-and-clones.md")
    shown = {module for module in MODULES for task in tasks if f"pve.fleet.{module}" in task}
    assert shown == {
        "clone",
        "snapshot",
        "snapshot_info",
        "node_info",
        "cluster_info",
        "preflight_info",
        "storage_download",
    }
    play(player, tasks)
    machines = {machine.name: machine for machine in lab.machines() if machine.tenant}
    assert {name: machine.status for name, machine in machines.items()} == {
        "web1": "running",
        "db1": "stopped",
        "web1-before": "stopped",
    }
    assert machines["db1"].node == "pve2"
    assert lab.config(machines["db1"])["scsi0"].startswith("local-lvm:")


def test_the_page_about_cloud_init(lab: Lab, player: Player) -> None:
    """What cloud-init.md writes into a directory is seen by the nodes: the storage is mounted."""
    directory = player.directory / "snippets"
    directory.mkdir()
    for name in ("user.yml", "web2.yml"):
        (directory / name).write_text("#cloud-config\n", encoding="utf-8")
    volume = {"volid": "local:snippets/web2.yml", "new": True}
    for node in ("pve1", "pve2", "pve3"):
        lab.simulator.steer(f"/volumes/{node}", volume)
    play(player, tasks_of("cloud-init.md"), snippet_directory=str(directory))
    machines = {machine.name: machine for machine in lab.machines() if machine.tenant}
    assert {name: machine.status for name, machine in machines.items()} == {
        "web1": "running",
        "web2": "stopped",
    }
    config = lab.config(machines["web1"])
    assert config["nameserver"] == "10.20.0.2"
    assert config["ipconfig0"] == "gw=10.20.0.1,ip=10.20.0.11/24"
    assert "cipassword" in config
    assert "nginx" in (directory / "web2.yml").read_text(encoding="utf-8")


def test_the_page_about_fleets(lab: Lab, player: Player) -> None:
    tasks = tasks_of("fleet.md")
    fleets = [task["pve.fleet.vms"] for task in tasks if "pve.fleet.vms" in task]
    assert len(fleets) == 8
    output = play(player, tasks)
    assert "Traceback" not in output
    assert '["batch1","batch2"]' in re.sub(r"\s+", "", output)  # what prune removed
    assert "odd1: NotFound: " in output
    machines = {machine.name: machine for machine in lab.machines() if machine.tenant}
    assert machines.keys() == {"web1", "web2", "db1", "web4", "app1"}
    assert int(lab.config(machines["db1"])["cores"]) == 4
    assert {"prod", "tenant_acme", "web"} <= set(lab.config(machines["web1"])["tags"].split(";"))


@pytest.mark.parametrize("role", ["image", "preflight", "snapshot_policy"])
def test_first_example_of_a_role(lab: Lab, player: Player, role: str) -> None:
    readme = Path(__file__).resolve().parents[2] / "roles" / role / "README.md"
    (player.directory / "play.yml").write_text(
        re.findall(r"```yaml\n(.*?)```", readme.read_text(encoding="utf-8"), re.S)[0],
        encoding="utf-8",
    )
    (player.directory / "upgrade.yml").write_text(
        "- name: Nothing to upgrade\n  ansible.builtin.debug: {msg: upgraded}\n", encoding="utf-8"
    )
    prepare(lab, player)
    lab.simulator.steer("/vms/15046", {"config": {"tags": "tenant_acme;web"}})
    said = {"debian_13_sha512": "0" * 128} if role == "image" else {}
    # The template of the example is there already: nothing is to be done for it.
    assert player.play("play.yml", **said).expect().changed == (
        1 if role == "snapshot_policy" else 0
    )
