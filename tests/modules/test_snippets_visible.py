# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snippet that the node does not see is refused before anything is written: the VM would not
start any more.

PVE takes any cicustom and reads the file when it writes the cloud-init drive (qemu-server,
Cloudinit.pm).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.snippets import visible
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.snippets.files import (
    LocalDirectory,
)
from tests.modules.estate_lab import Lab

CONTENT = "#cloud-config\npackages: [vim]\n"
NODES = ("pve1", "pve2", "pve3")


def cloud_init(directory: Path, file: str = "user.yml") -> dict[str, Any]:
    """Return cloud-init options that write full user data into that directory."""
    volume = f"local:snippets/{file}"
    return {"user_data": CONTENT, "snippets": {"user": volume}, "snippet_directory": str(directory)}


def forget_snippets(lab: Lab) -> None:
    """Leave no snippet on any node."""
    for node in NODES:
        for row in lab.client.get("nodes", node, "storage", "local", "content", content="snippets"):
            lab.simulator.steer(f"volumes/{node}", {"volid": row["volid"], "gone": True})


@pytest.fixture
def mounted(quiet: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the storage's snippets: what is written there is seen by every node."""
    write: Callable[[LocalDirectory, str, bytes], None] = LocalDirectory.write

    def write_and_show(files: LocalDirectory, name: str, data: bytes) -> None:
        write(files, name, data)
        for node in NODES:
            volume = f"local:snippets/{name}"
            quiet.simulator.steer(f"volumes/{node}", {"volid": volume, "new": True})

    monkeypatch.setattr(LocalDirectory, "write", write_and_show)
    (tmp_path / "user.yml").write_text("seed")  # as the demo cluster's storage
    return tmp_path


@pytest.mark.parametrize("file", ["user.yml", "new.yml"])
@pytest.mark.parametrize("others", [[], ["foreign.yml"]])
def test_another_directory_is_refused(
    lab: Lab, name: str, tmp_path: Path, file: str, others: list[str]
) -> None:
    for other in others:
        (tmp_path / other).write_text("x")
    for check in (True, False):
        result = lab.refused(
            name=name, source="debian-13", cloud_init=cloud_init(tmp_path, file), check=check
        )
        assert (result["error"]["category"], result["error"]["reason"]) == (
            "ConfigurationError",
            "snippet not visible",
        )
        assert "snippet_directory" in result["msg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == others


def test_a_file_that_only_the_directory_has_is_refused(lab: Lab, name: str, tmp_path: Path) -> None:
    (tmp_path / "user.yml").write_text("seed")
    (tmp_path / "mine.yml").write_text("older")
    result = lab.refused(name=name, source="debian-13", cloud_init=cloud_init(tmp_path, "mine.yml"))
    assert "the directory has mine.yml, and the storage does not" in result["msg"]


def test_an_existing_vm_is_left_as_it_is(lab: Lab, name: str, tmp_path: Path) -> None:
    vm = lab.vm(name=name, source="debian-13", state="started")["vm"]
    assert (
        lab.refused(name=name, cloud_init=cloud_init(tmp_path))["error"]["reason"]
        == "snippet not visible"
    )
    assert "cicustom" not in lab.config(vm)


def test_a_new_file_in_the_right_directory_is_used(quiet: Lab, name: str, mounted: Path) -> None:
    options: dict[str, Any] = {
        "name": name,
        "source": "debian-13",
        "state": "started",
        "cloud_init": cloud_init(mounted, "new.yml"),
    }
    foreseen = quiet.vm(**options, check=True)
    done = quiet.vm(**options)
    assert done["diff"] == foreseen["diff"]
    assert done["warnings"] == []
    assert quiet.config(done["vm"])["cicustom"] == "user=local:snippets/new.yml"
    assert not quiet.vm(**options)["changed"]


def test_where_both_are_empty_the_written_file_decides(
    quiet: Lab, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_snippets(quiet)
    monkeypatch.setattr(visible, "_APPEARANCE", 0.3)
    result = quiet.refused(name=name, source="debian-13", cloud_init=cloud_init(tmp_path))
    assert result["error"]["reason"] == "snippet not visible"
    assert list(tmp_path.iterdir()) == []


def test_the_first_file_of_a_storage_is_used(quiet: Lab, name: str, mounted: Path) -> None:
    forget_snippets(quiet)
    (mounted / "user.yml").unlink()
    vm = quiet.vm(name=name, source="debian-13", cloud_init=cloud_init(mounted))["vm"]
    assert quiet.config(vm)["cicustom"] == "user=local:snippets/user.yml"
    vm = quiet.vm(
        name=f"{name[:30]}-2", disks=[{"size": 1}], cloud_init=cloud_init(mounted, "2.yml")
    )["vm"]
    assert quiet.vm(vmid=vm["vmid"], cloud_init=cloud_init(mounted, "3.yml"))["changed"]


def test_a_snippet_that_is_not_there_is_refused(lab: Lab, name: str) -> None:
    options = {"snippets": {"vendor": "local:snippets/none.yml", "user": "local:snippets/user.yml"}}
    result = lab.refused(name=name, source="debian-13", cloud_init=options)
    assert "local:snippets/none.yml" in result["msg"]
    lab.vm(
        name=name, source="debian-13", cloud_init={"snippets": {"user": "local:snippets/user.yml"}}
    )


def test_a_storage_without_snippets_is_refused(lab: Lab, name: str, tmp_path: Path) -> None:
    options = {**cloud_init(tmp_path), "snippets": {"user": "local-lvm:snippets/user.yml"}}
    assert "not snippets" in lab.refused(name=name, source="debian-13", cloud_init=options)["msg"]


def test_who_may_not_see_snippets_is_warned(quiet: Lab, name: str, tmp_path: Path) -> None:
    """PVE lists snippets to who has Datastore.Allocate only (pve-storage, Storage.pm,
    check_volume_access).
    """
    for path, role in (
        ("/", "PVEVMAdmin"),
        ("/storage", "PVEDatastoreUser"),
        ("/sdn", "PVESDNUser"),
    ):
        quiet.client.write(
            "PUT", "access", "acl", data={"path": path, "users": "ops@pve", "roles": role}
        )
    quiet.client.write(
        "PUT", "access", "acl", data={"path": "/nodes", "users": "ops@pve", "roles": "PVEAuditor"}
    )
    stranger = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}
    options: dict[str, Any] = {
        "name": name,
        "source": "debian-13",
        "cloud_init": cloud_init(tmp_path),
        **stranger,
    }
    done = quiet.vm(**options)
    assert any("Datastore.Allocate" in text for text in done["warnings"]), done["warnings"]
    again = quiet.vm(**options)
    assert not again["changed"]
    assert again["warnings"] == []
