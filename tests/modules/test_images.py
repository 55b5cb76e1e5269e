# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: the newest version on the node of a new guest is cloned, and guests of older ones are
reported.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made
from tests.modules.test_template_copies import FIRST, NAME, template

OLD, NEW = "2026.9.30", "2026.10.1"
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"


def image(lab: Lab, node: str, number: int, version: str, **config: Any) -> int:
    """Make a version of the image below the modules, and return its VMID."""
    return template(lab, node, number, tags=f"image;version-{version}", **config)


@pytest.fixture
def images(quiet: Lab) -> Lab:
    """The demo cluster with two versions on pve1, the older one on pve2, and none on pve3."""
    image(quiet, "pve1", 0, OLD)
    image(quiet, "pve1", 1, NEW, scsi0="local-lvm:3")
    image(quiet, "pve2", 2, OLD)
    return quiet


def test_the_newest_version_on_the_node_is_cloned(images: Lab, name: str) -> None:
    for node, vmid, version in (("pve1", FIRST + 1, NEW), ("pve2", FIRST + 2, OLD)):
        options: dict[str, Any] = {"name": f"{name[:30]}-{node}", "source": NAME, "node": node}
        foreseen = images.vm(**options, check=True)
        made = images.vm(**options)
        assert (made["diff"], made["done"]) == (foreseen["diff"], foreseen["plan"])
        assert made["vm"]["cloned_from"] == vmid
        notes = images.config(made["vm"])["description"]
        assert f"origin={vmid} image={NAME}:{version} -->" in notes
        assert "version-" not in images.config(made["vm"]).get("tags", "")
        assert not images.vm(**options)["changed"]
    reason = made["placement"]["reasons"][-1]
    assert reason.endswith(f"; this node has no newer version, others have {NEW}")


@pytest.mark.parametrize("module", ["vm", "clone"])
def test_a_named_version_is_cloned(images: Lab, name: str, module: str) -> None:
    source = f"{NAME}@{OLD}"
    made = images.run(module, name=name, source=source, node="pve1")
    assert made["vm"]["cloned_from"] == FIRST, made
    assert not images.run(module, name=name, source=source)["changed"]
    result = images.run(module, name=f"{name[:30]}-2", source=f"{NAME}@1")
    assert f"there are {OLD}, {NEW}" in result["msg"]


@pytest.mark.parametrize("module", ["vm", "clone"])
def test_a_node_without_the_image(images: Lab, name: str, module: str) -> None:
    images.simulator.reset_log()
    refused = images.run(module, name=name, source=NAME, node="pve3")
    assert f"Image '{NAME}' could not be cloned on node pve3: the node has none" in refused["msg"]
    assert images.simulator.writes() == []
    made = images.run(module, name=name, source=NAME)
    assert made["vm"]["node"] in ("pve1", "pve2"), made
    if module == "vm":
        assert made["placement"]["refused"]["pve3"] == "the source is only on pve1, pve2"


def test_a_list_gets_the_image_of_each_node(images: Lab, name: str) -> None:
    wanted = [{"name": f"{name[:30]}-{number}", "source": NAME} for number in range(4)]
    result = images.run("vms", vms=wanted, placement={"strategy": "round_robin"})
    assert not result.get("failed"), result
    places = {(row["vm"]["node"], row["vm"]["cloned_from"]) for row in result["vms"]}
    assert places == {("pve1", FIRST + 1), ("pve2", FIRST + 2)}


def test_an_image_on_a_shared_storage_is_on_every_node(images: Lab, name: str) -> None:
    image(images, "pve1", 3, "2026.12.1", scsi0="ceph:2")
    for node in ("pve2", "pve3"):
        made = images.vm(name=f"{name[:30]}-{node}", source=NAME, node=node)
        assert (made["vm"]["cloned_from"], made["vm"]["node"]) == (FIRST + 3, node)


def test_two_of_one_version_on_a_node_are_refused(images: Lab, name: str) -> None:
    image(images, "pve1", 3, NEW)
    result = images.refused(name=name, source=NAME)
    assert f"Template '{NAME}@{NEW}' could not be chosen" in result["msg"]


def test_guests_of_an_older_image_are_reported(images: Lab, name: str) -> None:
    wanted: dict[str, Any] = {"vms": [{"name": name, "source": NAME, "node": "pve2"}]}
    made = images.run("vms", **wanted)
    assert made["vms"][0]["older_image"] is None, made
    image(images, "pve2", 3, NEW)
    images.client.task("DELETE", "nodes", "pve2", "qemu", FIRST + 2, attempted="x")
    template(images, "pve2", 2, tags="other")  # its VMID is used again
    drift = images.run("drift_info", **wanted, unlisted=False)
    older = {"wanted": f"{NAME}@{NEW}", "actual": f"{NAME}@{OLD}"}
    assert drift["drift"]["vms"][0]["status"] == "outdated"
    assert drift["drift"]["vms"][0]["options"] == [{"option": "source", "pending": None, **older}]
    fact = f"it was cloned from image {NAME}@{OLD}, and the source is {NAME}@{NEW} now"
    assert fact in drift["report"][2]
    images.simulator.reset_log()
    again = images.run("vms", **wanted)
    assert (again["changed"], images.simulator.writes()) == (False, [])
    assert again["vms"][0]["older_image"] == older
    line = f"  of an older image (from {NAME}@{OLD}, the source is {NAME}@{NEW} now): {name}"
    assert line in again["report"]
    pinned: dict[str, Any] = {"vms": [{"name": name, "source": f"{NAME}@{OLD}", "node": "pve2"}]}
    image(images, "pve2", 4, OLD)
    assert images.run("vms", **pinned)["vms"][0]["older_image"] is None


def test_a_container_gets_the_image_of_its_node(images: Lab, name: str) -> None:
    wanted: dict[str, Any] = {"source": "base", "memory": "512M"}
    for number, (node, version) in enumerate((("pve1", OLD), ("pve1", NEW), ("pve2", OLD))):
        vmid = FIRST + 10 + number
        data = {"vmid": vmid, "hostname": "base", "ostemplate": TEMPLATE, "memory": 512}
        tags = {"tags": f"version-{version}", "rootfs": "local-lvm:1"}
        images.client.task("POST", "nodes", node, "lxc", data={**data, **tags}, attempted="x")
        images.client.write("POST", "nodes", node, "lxc", vmid, "template")
    for node, vmid, version in (("pve1", FIRST + 11, NEW), ("pve2", FIRST + 12, OLD)):
        options = {"name": f"{name[:30]}-{node}", "node": node, **wanted}
        foreseen = images.run("container", **options, check=True)
        made = images.run("container", **options)
        assert made["done"] == foreseen["plan"], made
        config = images.client.get("nodes", node, "lxc", made["container"]["vmid"], "config")
        assert f"origin={vmid} image=base:{version} -->" in config["description"]
    refused = images.run("container", name=name, node="pve3", **wanted)
    assert "Image 'base' could not be cloned on node pve3" in refused["msg"]
    made = images.run("vms", containers=[{"name": name, **wanted, "source": f"base@{NEW}"}])
    assert made["vms"][0]["node"] == "pve1", made
    newer = images.run("vms", containers=[{"name": name, **wanted, "source": f"base@{OLD}"}])
    assert newer["vms"][0]["older_image"] == {"wanted": f"base@{OLD}", "actual": f"base@{NEW}"}
    line = f"  of an older image (from base@{NEW}, the source is base@{OLD} now): {name}"
    assert line in newer["report"]


def test_a_newer_image_replaces_the_system_disk(images: Lab, name: str) -> None:
    """PVE keeps a volume that another one replaces as an unused disk (qemu-server:
    API2/Qemu.pm, update_vm_api).
    """
    data = {"name": "scsi1", "size": "5G", "storage": "local-lvm"}
    disks = [{"name": "scsi0", "size": "4G", "options": {"discard": "on"}}, data]
    wanted: dict[str, Any] = {"name": name, "source": NAME, "node": "pve2", "disks": disks}
    made = images.vm(**wanted, state="started", full=True)["vm"]
    before = images.config(made)
    image(images, "pve2", 3, NEW, scsi0="local-lvm:3")
    refused = images.refused(**wanted, state="present", replace_image=True)
    assert "Set state=stopped" in refused["msg"]
    unsized = {**wanted, "disks": [], "state": "stopped", "replace_image": True}
    assert "scsi0 has 4G, the image has 3G" in images.refused(**unsized)["msg"]
    foreseen = images.vm(**wanted, state="stopped", replace_image=True, check=True)
    done = images.vm(**wanted, state="stopped", replace_image=True)
    assert (done["done"], done["diff"]) == (foreseen["plan"], foreseen["diff"])
    config = images.config(made)
    assert config["scsi1"] == before["scsi1"]
    assert config["unused0"] == before["scsi0"].partition(",")[0]
    assert config["scsi0"].partition(",")[0] != before["scsi0"].partition(",")[0]
    assert "size=4G" in config["scsi0"]
    assert "discard=on" in config["scsi0"]
    assert config["smbios1"] == before["smbios1"]
    assert f"origin={FIRST + 3} image={NAME}:{NEW} -->" in config["description"]
    images.simulator.reset_log()
    assert not images.vm(**wanted, state="stopped", replace_image=True)["changed"]
    assert images.simulator.writes() == []
    # Back to the version before, by its name.
    images.vm(**{**wanted, "source": f"{NAME}@{OLD}"}, state="stopped", replace_image=True)
    config = images.config(made)
    assert f"image={NAME}:{OLD} -->" in config["description"]
    assert config["scsi1"] == before["scsi1"]
    assert {"unused0", "unused1"} < config.keys()


def test_a_running_vm_is_stopped_for_another_image_and_started_again(
    images: Lab, name: str
) -> None:
    wanted: dict[str, Any] = {"name": name, "source": NAME, "node": "pve2", "state": "started"}
    images.vm(**wanted, full=True)
    image(images, "pve2", 3, NEW, scsi0="local-lvm:3")
    foreseen = images.vm(**wanted, replace_image=True, check=True)
    images.simulator.fault(method="POST", path="/status/start$", status=500, message="broken")
    assert images.run("vm", **wanted, replace_image=True)["failed"]
    images.simulator.clear_faults()
    done = images.vm(**wanted, replace_image=True)
    assert done["vm"]["status"] == "running"
    first, *_others, last = foreseen["plan"]
    assert (first.split()[0], done["done"][-1]) == ("Shut", last)
    assert not images.vm(**wanted, replace_image=True)["changed"]


def test_a_vm_whose_notes_were_not_written_is_not_stopped_again(images: Lab, name: str) -> None:
    """The run ended after the start and before the note of the image."""
    wanted: dict[str, Any] = {"name": name, "source": NAME, "node": "pve2", "state": "started"}
    images.vm(**wanted, full=True)
    image(images, "pve2", 3, NEW, scsi0="local-lvm:3")
    images.simulator.fault(method="PUT", path="/config$", status=500, message="broken")
    assert images.run("vm", **wanted, replace_image=True)["failed"]
    images.simulator.clear_faults()
    images.simulator.reset_log()
    assert images.vm(**wanted, replace_image=True)["changed"]
    assert {row["path"].rpartition("/")[2] for row in images.simulator.writes()} == {"config"}
    assert not images.vm(**wanted, replace_image=True)["changed"]


def test_an_image_whose_templates_cannot_be_cloned_is_refused(images: Lab, name: str) -> None:
    """They belong to another tenant, or their nodes are offline."""
    wanted: dict[str, Any] = {"name": name, "tenant": "acme", "node": "pve2", "state": "stopped"}
    images.vm(**wanted, source=f"{NAME}@{OLD}")
    image(images, "pve2", 3, NEW, scsi0="local-lvm:3")
    for row in images.client.get("cluster", "resources", type="vm"):
        if row.get("template") and row["name"] == NAME:
            path = ("nodes", row["node"], "qemu", row["vmid"], "config")
            images.client.write("PUT", *path, data={"tags": f"{row['tags']};tenant_globex"})
    refused = images.refused(**wanted, source=NAME, replace_image=True)
    assert refused["error"]["category"] == "NotFound"
    assert f"Image '{NAME}' could not be used: no template of that name" in refused["msg"]


def test_a_disk_of_an_interrupted_replacement_is_recognized(images: Lab, name: str) -> None:
    """Nothing in PVE shows the source of a disk; one request writes its options one after the other
    (qemu-server: API2/Qemu.pm, update_vm_api).
    """
    wanted: dict[str, Any] = {"name": name, "source": NAME, "node": "pve2", "state": "stopped"}
    made = images.vm(**wanted)["vm"]
    before = images.config(made)
    image(images, "pve2", 3, NEW, scsi0="local-lvm:3")
    path = f"^/nodes/pve2/qemu/{made['vmid']}/config$"
    images.simulator.fault(method="PUT", path=path, status=500, message="gone", times=None)
    failed = images.run("vm", **wanted, replace_image=True)
    assert failed["failed"], failed

    images.simulator.clear_faults()
    left = images.config(made)
    assert left["scsi0"] != before["scsi0"]
    assert left["unused0"] == before["scsi0"].partition(",")[0]
    done = images.vm(**wanted, replace_image=True)
    config = images.config(made)
    assert done["changed"]
    assert config["scsi0"] == left["scsi0"]
    assert "unused1" not in config
    assert config["description"].endswith(f"origin={FIRST + 3} image={NAME}:{NEW} -->")
    assert not images.vm(**wanted, replace_image=True)["changed"]


def test_a_tenant_replaces_an_image_with_its_own_token(images: Lab, name: str) -> None:
    """PVE wants VM.Clone on the template whose disk is imported (qemu-server: API2/Qemu.pm,
    check_storage_access).
    """
    own = {**made(images, "initech"), "tenant": "initech", "pool": "initech"}
    wanted: dict[str, Any] = {**own, "name": name, "source": NAME, "node": "pve2"}
    image(images, "pve2", 3, NEW)
    roles = {"/storage/local-lvm": "PVEDatastoreUser"}
    roles |= {f"/vms/{vmid}": "PVETemplateUser" for vmid in (FIRST + 2, FIRST + 3)}
    for path, role in roles.items():
        acl = {"path": path, "roles": role, "users": "tenant_initech@pve"}
        images.client.write("PUT", "access", "acl", data=acl)
    clone = images.vm(**{**wanted, "source": f"{NAME}@{OLD}"}, state="stopped")["vm"]
    done = images.vm(**wanted, state="stopped", replace_image=True)
    assert done["changed"]
    config = images.config(clone)
    assert f"image={NAME}:{NEW} -->" in config["description"]
    assert "unused0" in config


def test_a_tenant_may_clone_every_version_of_a_named_image(images: Lab) -> None:
    """The template of that name of another tenant is not an image of this one."""
    template(images, "pve3", 3, tags=f"tenant_hooli;version-{NEW}")
    wanted: dict[str, Any] = {"name": "umbrella", "templates": [NAME], "storages": ["local-lvm"]}
    rights = images.run("tenant", **wanted)["tenant"]["rights"]
    vmids = [path for path in rights if path.startswith("/vms/")]
    assert vmids == [f"/vms/{FIRST + number}" for number in range(3)]
    image(images, "pve2", 4, NEW)
    published = images.run("tenant", **wanted)
    assert published["changed"]
    assert f"/vms/{FIRST + 4}" in published["tenant"]["rights"]
    assert not images.run("tenant", **wanted)["changed"]
