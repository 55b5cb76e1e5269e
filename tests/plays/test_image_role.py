# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role image and its playbook, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import repeated
from tests.demo.lab import Lab
from tests.plays.provision_helpers import Played, Player, diffs

IMAGE = "pve.fleet.image"
# The head of a qcow2 file that says the disk has 1 GiB.
QCOW2 = b"QFI\xfb" + bytes(20) + (1 << 30).to_bytes(8, "big") + bytes(200)
ISO = b"an ISO" * 100


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = ISO if self.path.endswith(".iso") else QCOW2
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """The address of a server with an image and an ISO."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(task_ms="default=10", auth_delay_s=0.1, lag_s=0.1) as lab:
        yield lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    return Player(tmp_path, lab.environment)


def writes(lab: Lab, mark: int) -> list[str]:
    return [str(one) for one in lab.requests_since(mark) if one.is_write]


def volumes(lab: Lab) -> set[str]:
    return {row["volid"] for row in lab.call("GET", "/nodes/pve1/storage/local/content")}


def templates(lab: Lab, name: str) -> list[int]:
    rows = [
        row for node in ("pve1", "pve2", "pve3") for row in lab.call("GET", f"/nodes/{node}/qemu")
    ]
    return [row["vmid"] for row in rows if row.get("template") and row.get("name") == name]


def in_check_mode_then_twice(
    lab: Lab, player: Player, changed: int, said: dict[str, Any]
) -> Played:
    """Play in check mode without a write, then for real, then again without a change.

    Return the real run.
    """
    mark = lab.mark()
    foreseen = player.play(IMAGE, "--check", "--diff", **said).expect()
    assert foreseen.changed == changed
    assert writes(lab, mark) == []
    made = player.play(IMAGE, "--diff", **said).expect()
    assert made.changed == changed
    assert diffs(made.output)[: len(diffs(foreseen.output))] == diffs(foreseen.output) != []
    mark = lab.mark()
    assert player.play(IMAGE, **said).expect().changed == 0
    assert writes(lab, mark) == []
    return made


def test_a_cloud_image_becomes_a_template(lab: Lab, player: Player, web: str) -> None:
    said: dict[str, Any] = {
        "image_name": "noble",
        "image_url": f"{web}/noble-amd64.img",
        "image_checksum": f"sha256:{hashlib.sha256(QCOW2).hexdigest()}",
        "image_disk_storage": "ceph",
        "image_disk_size": "4G",
        "image_cloud_init": {"user": "ops"},
        "image_vm": {"cores": 2, "memory": "1G", "tags": ["image"]},
    }
    in_check_mode_then_twice(lab, player, 2, said)
    (vmid,) = templates(lab, "noble")
    assert 100 <= vmid <= 999
    config = lab.call("GET", f"/nodes/pve1/qemu/{vmid}/config")
    assert config["template"] == 1
    assert "size=4G" in config["scsi0"]
    assert "cloudinit" in config["ide2"]
    assert config["agent"] == "1"
    assert config["tags"] == "image"
    assert "local:import/noble-amd64.qcow2" in volumes(lab)
    # A template that is there is left alone, whatever it was made from.
    other = {**said, "image_url": f"{web}/other.qcow2", "image_vm": {"cores": 4}}
    mark = lab.mark()
    assert player.play(IMAGE, **other).expect().changed == 0
    assert writes(lab, mark) == []


def test_the_file_can_go_when_the_template_is_made(lab: Lab, player: Player, web: str) -> None:
    said = {
        "image_name": "lean",
        "image_url": f"{web}/lean.qcow2",
        "image_keep_file": False,
        "image_vmid": 555,
    }
    made = player.play(IMAGE, **said).expect()
    assert made.changed == 3
    assert templates(lab, "lean") == [555]
    assert "local:import/lean.qcow2" not in volumes(lab)
    assert player.play(IMAGE, **said).expect().changed == 0


def test_an_iso_is_brought(lab: Lab, player: Player, web: str) -> None:
    digest = hashlib.sha512(ISO).hexdigest()
    said = {
        "image_url": f"{web}/debian.iso",
        "image_checksum": f"sha512:{digest}",
        "image_node": "pve1",
    }
    in_check_mode_then_twice(lab, player, 1, said)
    assert "local:iso/debian.iso" in volumes(lab)
    assert player.play(IMAGE, image_filename="debian.iso", image_ensure=True).expect().changed == 0


def test_an_image_that_only_has_to_exist(lab: Lab, player: Player) -> None:
    mark = lab.mark()
    assert player.play(IMAGE, image_name="debian-13", image_ensure=True).expect().changed == 0
    missing = player.play(IMAGE, image_name="nosuch", image_ensure=True).expect(2)
    assert "There is no template 'nosuch'" in missing.output
    missing = player.play(IMAGE, image_filename="nosuch.iso", image_ensure=True).expect(2)
    assert "Give source_url" in missing.output
    said = {
        "image_url": "http://127.0.0.1:9/nosuch.img",
        "image_content": "import",
        "image_ensure": True,
    }
    assert (
        "There is no file local:import/nosuch.qcow2" in player.play(IMAGE, **said).expect(2).output
    )
    assert writes(lab, mark) == []


def test_what_is_refused(lab: Lab, player: Player, web: str) -> None:
    vmid = lab.make_vm("busy")
    mark = lab.mark()
    assert "No image is given" in player.play(IMAGE).expect(2).output
    assert "image_url" in player.play(IMAGE, image_name="x").expect(2).output
    said = {"image_name": "x", "image_url": f"{web}/x.iso"}
    assert "can only be made" in player.play(IMAGE, **said, image_content="iso").expect(2).output
    assert ".qcow2" in player.play(IMAGE, **said).expect(2).output
    taken = player.play(IMAGE, image_name="busy", image_url=f"{web}/busy.qcow2").expect(2)
    assert f"is the name of VM {vmid}" in taken.output
    assert writes(lab, mark) == []


def test_the_environment_limits_the_tasks(lab: Lab, player: Player, web: str) -> None:
    """The download, and the import of the image, for which module vm has a shorter default."""
    said: dict[str, Any] = {"image_name": "slow", "image_url": f"{web}/slow.qcow2"}
    player.environment["PROXMOX_TASK_TIMEOUT"] = "1"
    for task, step in (
        ("download", "Download the file"),
        ("qmcreate", "Change the virtual machine"),
    ):
        lab.simulator.steer("/settings", {"task_ms": {task: 8000}})
        try:
            played = player.play(IMAGE, **said).expect(2)
        finally:
            lab.simulator.steer("/settings", {"task_ms": {task: 10}})
        output = re.sub(r"\s+", " ", played.output)
        assert "after 1 s" in output
        failed = output[: output.index("after 1 s")].rpartition("TASK [")[2]
        assert step in failed
        # A variable wins over the environment; the next run waits for the task that still runs.
        if task == "download":
            player.play(IMAGE, **said, image_ensure=False, image_task_timeout=60).expect()
            lab.call("DELETE", f"/nodes/pve1/qemu/{templates(lab, 'slow')[0]}")
            # the file stays, so that the second turn is about the import alone


REFUSED_EARLY: list[tuple[dict[str, Any], str]] = [
    ({"image_name": "un_fit"}, "un_fit"),
    ({"image_disk_storage": "nosuch"}, "nosuch"),
    ({"image_vm": {"nics": [{"bridge": "vmbr77"}]}}, "vmbr77"),
    ({"image_vm": {"memory": "12X"}}, "12X"),
    ({"image_node": "pve9"}, "pve9"),
]


def test_what_cannot_be_made_is_refused_before_the_download(
    lab: Lab, player: Player, web: str
) -> None:
    mark = lab.mark()
    for number, (options, word) in enumerate(REFUSED_EARLY):
        said = {"image_name": f"early{number}", "image_url": f"{web}/early.qcow2", **options}
        played = player.play(IMAGE, **said).expect(2)
        assert "Check the options of the template before the download" in played.output
        assert word in played.output
    assert writes(lab, mark) == []
    assert "local:import/early.qcow2" not in volumes(lab)


@pytest.mark.parametrize("how", [{}, {"in_vm": True}], ids=str)
def test_the_number_of_another_vm_is_refused(
    lab: Lab, player: Player, web: str, how: dict[str, bool]
) -> None:
    """With its number, the VM would be stopped, renamed and converted."""
    theirs = lab.make_vm(f"theirs{len(how)}", scsi0="ceph:1", tags="tenant_acme")
    said: dict[str, Any] = {
        "image_name": "numbered",
        "image_url": f"{web}/numbered.qcow2",
        "image_disk_size": "4G",
    }
    said |= {"image_vm": {"vmid": theirs}} if how else {"image_vmid": theirs}
    mark = lab.mark()
    refused = player.play(IMAGE, **said).expect(2)
    assert (
        f"The VMID {theirs} belongs to VM theirs{len(how)}. It was not changed." in refused.output
    )
    assert (
        "belongs to VM debian-13"
        in player.play(IMAGE, **said | {"image_vm": {"vmid": 9000}}).expect(2).output
    )
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_each_node_can_have_a_copy(lab: Lab, player: Player, web: str) -> None:
    said: dict[str, Any] = {
        "image_name": "copied",
        "image_url": f"{web}/copied.qcow2",
        "image_disk_storage": "local-lvm",
        "image_disk_size": "4G",
    }
    in_check_mode_then_twice(lab, player, 2, {**said, "image_node": "pve1", "image_vmid": 801})
    mark = lab.mark()
    refused = player.play(IMAGE, **said, image_node="pve2").expect(2)
    assert "Give image_vmid for a copy on node pve2" in refused.output
    assert writes(lab, mark) == []
    in_check_mode_then_twice(lab, player, 2, {**said, "image_node": "pve2", "image_vmid": 802})
    assert sorted(templates(lab, "copied")) == [801, 802]
    assert player.play(IMAGE, image_name="copied", image_ensure=True).expect().changed == 0
    assert "Name the node in image_node" in player.play(IMAGE, **said).expect(2).output


def test_a_wrong_checksum_leaves_nothing(lab: Lab, player: Player, web: str) -> None:
    said = {
        "image_name": "bad",
        "image_url": f"{web}/bad.qcow2",
        "image_checksum": "sha256:" + "0" * 64,
    }
    assert "checksum mismatch" in player.play(IMAGE, **said).expect(2).output
    assert templates(lab, "bad") == []
    assert "local:import/bad.qcow2" not in volumes(lab)


def test_an_interrupted_run_is_completed(lab: Lab, player: Player, web: str) -> None:
    """What a run leaves that ended before the VM became a template."""
    said: dict[str, Any] = {"image_name": "half", "image_url": f"{web}/half.qcow2"}
    said["image_vmid"] = lab.make_vm(
        "half", scsi0="local-lvm:1", description="Template half, made from half.qcow2"
    )
    player.play(IMAGE, **said).expect()
    assert len(templates(lab, "half")) == 1
    assert player.play(IMAGE, **said).expect().changed == 0


@pytest.mark.parametrize("in_process", repeated(["true", "false"]))
def test_a_misspelt_option_of_the_template_is_named_and_nothing_else(
    player: Player, web: str, in_process: str
) -> None:
    said: dict[str, Any] = {
        "image_name": "gold",
        "image_url": f"{web}/gold.qcow2",
        "image_vm": {"coers": 2},
    }
    refused = player.play(IMAGE, **said, pve_fleet_in_process=in_process).expect(2).output
    assert "coers (did you mean 'cores'?)" in refused
    assert "Supported parameters" not in refused
    assert "argument_spec_data" not in refused
