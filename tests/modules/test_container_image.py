# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root file system of a container is replaced by that of another version of its image.

Rules of PVE: pve-container, API2/LXC.pm (move_volume), LXC/Config.pm (update_pct_config,
vmconfig_apply_pending: a rootfs is written as it is given) and LXC.pm (destroy_lxc_container).
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import ApiError
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.replace.run import (
    Replacement,
)
from tests.cases import repeated
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

FILE = "debian-13-standard"
STEPS = 7  # clone, grow, add a volume, exchange, move, note, swap


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def publish(lab: Lab, version: str, **options: Any) -> int:
    """Create a template of a version of image golden, and return its VMID."""
    wanted = {"rootfs": {"size": "1G"}, "memory": "512M", "source": FILE, **options}
    made = do(lab, "container", name=f"new-{version}", node="pve1", **wanted)["container"]
    tags = [f"version-{version}"]
    do(lab, "container", vmid=made["vmid"], name="golden", tags=tags, state="template")
    return int(made["vmid"])


def container(lab: Lab, **options: Any) -> int:
    """Create container web of the older image with a volume for data."""
    mounts = [{"name": "mp0", "path": "/data", "size": "1G"}]
    wanted = {"rootfs": {"size": "2G"}, "mounts": mounts, "description": "A proxy", **options}
    return int(do(lab, "container", name="web", source="golden", **wanted)["container"]["vmid"])


def config(lab: Lab, vmid: int) -> dict[str, Any]:
    return dict(lab.client.get("nodes", "pve1", "lxc", vmid, "config"))


def holders(lab: Lab) -> list[str]:
    rows = lab.client.get("nodes", "pve1", "lxc")
    return [row["name"] for row in rows if row["name"].startswith("replace-")]


def replaced(lab: Lab, **options: Any) -> dict[str, Any]:
    return dict(do(lab, "container_image", name="web", source="golden", **options))


def volume(text: str) -> str:
    return text.partition(",")[0]


def test_the_root_is_replaced_and_everything_else_stays(lab: Lab) -> None:
    publish(lab, "1")
    vmid = container(lab)
    before = config(lab, vmid)
    newer = publish(lab, "2")
    lab.simulator.reset_log()
    foreseen = replaced(lab, check=True)
    assert lab.simulator.writes() == []
    result = replaced(lab)
    assert result["done"] == result["plan"] == foreseen["plan"]
    assert result["diff"] == foreseen["diff"]
    assert result["container"]["image"] == foreseen["container"]["image"] == "golden@2"
    after = config(lab, vmid)
    # The new root has the size of the old one, which is an unused volume.
    assert after["rootfs"].endswith("size=2G")
    assert volume(after["rootfs"]) != volume(before["rootfs"])
    assert f"vm-{vmid}-" in after["rootfs"]
    assert after["unused1"] == volume(before["rootfs"])
    assert after["description"].startswith("A proxy\n")
    assert f"origin={newer} image=golden:2" in after["description"]
    changed = {"rootfs", "unused1", "description", "digest"}
    assert {key: value for key, value in after.items() if key not in changed} == {
        key: value for key, value in before.items() if key not in changed
    }
    assert not replaced(lab)["changed"]
    # The holder remembers the way back until the new root is confirmed.
    assert holders(lab) == [f"replace-{vmid}"]
    do(lab, "container_image", name="web", state="confirmed")
    assert holders(lab) == []
    assert config(lab, vmid)["unused1"] == volume(before["rootfs"])
    assert not do(lab, "container_image", name="web", state="confirmed")["changed"]
    assert not do(lab, "container_image", name="web", state="returned")["changed"]


def test_a_container_of_an_older_image_is_reported(lab: Lab) -> None:
    """By drift and by a run, neither of which changes it; after the replacement it is in sync."""
    publish(lab, "1")
    vmid = container(lab)
    entry = {"name": "web", "source": "golden", "rootfs": {"size": "2G"}}
    estate: dict[str, Any] = {"containers": [entry], "unlisted": False}
    assert do(lab, "drift_info", **estate)["drift"]["summary"]["in_sync"] == 1
    publish(lab, "2")
    result = do(lab, "drift_info", **estate)
    (found,) = result["drift"]["vms"]
    older = {"wanted": "golden@2", "actual": "golden@1"}
    assert (found["status"], found["steps"]) == ("outdated", [])
    assert found["options"] == [{"option": "source", "pending": None, **older}]
    assert result["drift"]["summary"]["outdated"] == 1
    reason = "it was cloned from image golden@1, and the source is golden@2 now"
    assert reason in "\n".join(result["report"])
    before = config(lab, vmid)
    again = do(lab, "vms", containers=[entry])
    assert again["vms"][0]["older_image"] == older
    assert (again["changed"], config(lab, vmid)) == (False, before)
    replaced(lab)
    assert do(lab, "drift_info", **estate)["drift"]["summary"]["in_sync"] == 1


def test_the_old_root_comes_back(lab: Lab) -> None:
    publish(lab, "1")
    vmid = container(lab)
    before = config(lab, vmid)
    publish(lab, "2")
    replaced(lab)
    foreseen = do(lab, "container_image", name="web", state="returned", check=True)
    result = do(lab, "container_image", name="web", state="returned")
    assert result["plan"] == foreseen["plan"]
    after = config(lab, vmid)
    assert after["rootfs"] == before["rootfs"]
    assert after["description"] == before["description"]
    assert holders(lab) == []
    # The image is cloned again: the volume that was booted is not used a second time.
    assert len(replaced(lab)["done"]) == STEPS


@pytest.mark.parametrize("number", repeated([5, 6, 0, 1, 2, 3, 4]))
def test_a_run_that_is_killed_before_a_step_is_completed_by_the_next(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    publish(lab, "1")
    vmid = container(lab)
    before = config(lab, vmid)
    publish(lab, "2")
    sent: list[str] = []

    def die(_self: Replacement, step: Any) -> None:
        if len(sent) == number:
            raise ApiError(attempted="The run", answer="was killed", next_step="Run it again")
        sent.append(step.summary)

    with monkeypatch.context() as patch:
        patch.setattr(Replacement, "guard", die)
        assert lab.run("container_image", name="web", source="golden")["failed"]
    assert config(lab, vmid)["rootfs"] == before["rootfs"]
    assert len(replaced(lab)["done"]) == STEPS - number
    after = config(lab, vmid)
    assert after["mp0"] == before["mp0"]
    assert [value for key, value in after.items() if "unused" in key] == [volume(before["rootfs"])]
    assert holders(lab) == [f"replace-{vmid}"]


def test_a_running_container_is_stopped_last(lab: Lab) -> None:
    publish(lab, "1")
    vmid = container(lab, state="started")
    publish(lab, "2")
    plan = replaced(lab, check=True)["plan"]
    assert replaced(lab)["done"] == plan
    assert plan[-2].startswith("Shut down container 'web'")
    status = lab.client.get("nodes", "pve1", "lxc", vmid, "status", "current")
    assert status["status"] == "stopped"


def refusal(lab: Lab, **options: Any) -> str:
    """Return the message of a replacement that is refused without a write."""
    lab.simulator.reset_log()
    wanted = {"name": "web", "source": "golden", **options}
    for check in (True, False):
        result = lab.run("container_image", check=check, **wanted)
        assert result.get("failed"), result
    assert lab.simulator.writes() == []
    return str(result["msg"])


def test_refusals(lab: Lab) -> None:
    publish(lab, "1")
    vmid = container(lab)
    publish(lab, "2", unprivileged=False)
    assert "one of both is privileged" in refusal(lab)
    publish(lab, "3", mounts=[{"name": "mp0", "path": "/x", "size": "1G"}])
    assert "the volumes of the template are mp0, rootfs" in refusal(lab)
    publish(lab, "4")
    do(lab, "container", name="web", protection=True)
    assert "it is protected" in refusal(lab)
    do(lab, "container", name="web", protection=False)
    do(lab, "container", name=f"replace-{vmid}", source=FILE, rootfs={"size": "1G"}, node="pve1")
    assert f"the name replace-{vmid} belongs to container" in refusal(lab)
    assert "there is no such container" in refusal(lab, vmid=999)
    assert "no template of that name can be cloned" in refusal(lab, source="nosuch")
    assert "source names no image" in refusal(lab, source="9000")


def test_a_tenant_replaces_a_root_with_its_own_token(lab: Lab) -> None:
    """The holder is cloned into the pool of the tenant, where its token has VM.Allocate."""
    older, newer = publish(lab, "1"), publish(lab, "2")
    images = {"templates": [str(older), str(newer)], "storages": ["ceph", "local-lvm"]}
    own, other = made(lab, "initech", **images), made(lab, "hooli", **images)
    mine, theirs = {"tenant": "initech", **own}, {"tenant": "hooli", **other}
    wanted: dict[str, Any] = {"source": "golden@1", "rootfs": {"size": "1G"}, "node": "pve1"}
    vmid = do(lab, "container", name="web", pool="initech", **wanted, **mine)["container"]["vmid"]
    before = config(lab, vmid)
    # Another tenant does not get at it, by its name or by its VMID.
    for options in ({}, {"vmid": vmid}):
        assert "container" in refusal(lab, **options, **theirs)
    assert config(lab, vmid) == before
    assert len(replaced(lab, **mine)["done"]) == STEPS - 1  # nothing to grow
    assert volume(config(lab, vmid)["unused1"]) == volume(before["rootfs"])
    for state in ("returned", "confirmed"):
        failure = lab.run("container_image", name="web", vmid=vmid, state=state, **theirs)
        assert failure["failed"]
    do(lab, "container_image", name="web", state="returned", **mine)
    assert config(lab, vmid)["rootfs"] == before["rootfs"]
    assert holders(lab) == []
