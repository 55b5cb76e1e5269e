# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One template name on several nodes, as is usual with local storages: the copy on the node of the
new VM is cloned.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab

NAME = "golden"
FIRST = 9100


def template(lab: Lab, node: str, number: int, **config: Any) -> int:
    """Make a template of that name below the modules, as other tools do, and return its VMID."""
    vmid = FIRST + number
    options = {"scsi0": "local-lvm:2", "boot": "order=scsi0", **config}
    lab.client.task(
        "POST", "nodes", node, "qemu", data={"vmid": vmid, "name": NAME, **options}, attempted="x"
    )
    lab.client.task("POST", "nodes", node, "qemu", vmid, "template", attempted="x")
    return vmid


@pytest.fixture
def copies(quiet: Lab) -> Lab:
    """The demo cluster with a copy of the template on the local storage of each node."""
    for number, node in enumerate(("pve1", "pve2", "pve3")):
        template(quiet, node, number)
    return quiet


@pytest.mark.parametrize("full", [None, True])
@pytest.mark.parametrize("node", ["pve1", "pve2", "pve3"])
def test_the_copy_on_the_named_node_is_cloned(
    copies: Lab, name: str, node: str, full: bool | None
) -> None:
    options: dict[str, Any] = {
        "name": name,
        "source": NAME,
        "node": node,
        **({} if full is None else {"full": full}),
    }
    foreseen = copies.vm(**options, check=True)
    made = copies.vm(**options)
    assert made["diff"] == foreseen["diff"]
    assert made["done"] == foreseen["plan"]
    assert made["vm"]["cloned_from"] == FIRST + int(node[-1]) - 1
    assert not any("Migrate" in step for step in made["done"])
    assert any(
        f"on {node} is cloned, of the copies 9100 on pve1" in text
        for text in made["placement"]["reasons"]
    )
    assert not copies.vm(**options)["changed"]


@pytest.mark.parametrize("node", ["pve1", "pve2"])
def test_module_clone_takes_the_copy_on_the_node(copies: Lab, name: str, node: str) -> None:
    options: dict[str, Any] = {"name": name, "source": NAME, "node": node}
    made = copies.run("clone", **options)
    assert made["vm"]["cloned_from"] == FIRST + int(node[-1]) - 1, made
    for again in (options, {"name": name, "source": NAME}):
        result = copies.run("clone", **again)
        assert not result.get("failed"), result
        assert not result["changed"]


def test_placement_considers_every_node_with_a_copy(copies: Lab, name: str) -> None:
    wanted: dict[str, Any] = {
        "name": name,
        "source": NAME,
        "placement": {"nodes": ["pve3"], "strategy": "first"},
    }
    made = copies.vm(**wanted)
    assert (made["vm"]["node"], made["vm"]["cloned_from"]) == ("pve3", FIRST + 2)
    made = copies.vm(name=f"{name[:30]}-2", source=NAME, placement={"exclude": ["pve1", "pve3"]})
    assert (made["vm"]["node"], made["vm"]["cloned_from"]) == ("pve2", FIRST + 1)


def test_a_node_without_a_copy_gets_the_nearest(quiet: Lab, name: str) -> None:
    template(quiet, "pve1", 0)
    template(quiet, "pve2", 1)
    made = quiet.vm(name=name, source=NAME, node="pve3")
    assert made["vm"]["cloned_from"] == FIRST
    assert [step.split()[0] for step in made["done"] if not step.startswith("Set")] == [
        "Clone",
        "Migrate",
        "Remove",
    ]
    template(quiet, "pve3", 2, scsi0="ceph:2")
    quiet.client.task("DELETE", "nodes", "pve2", "qemu", FIRST + 1, attempted="x")
    made = quiet.vm(name=f"{name[:30]}-2", source=NAME, node="pve2")
    assert made["vm"]["cloned_from"] == FIRST + 2  # its disk is on a shared storage
    assert made["vm"]["node"] == "pve2"


def test_a_list_is_spread_over_the_copies(copies: Lab, name: str) -> None:
    all_wanted = [{"name": f"{name[:30]}-{number}", "source": NAME} for number in range(6)]
    result = copies.run("vms", vms=all_wanted, placement={"strategy": "round_robin"})
    assert not result.get("failed"), result
    places = {(row["vm"]["node"], row["vm"]["cloned_from"]) for row in result["vms"]}
    assert places == {("pve1", FIRST), ("pve2", FIRST + 1), ("pve3", FIRST + 2)}


def test_a_tenant_clones_the_copies_that_it_may(quiet: Lab, name: str) -> None:
    template(quiet, "pve1", 0, tags="tenant_globex")
    template(quiet, "pve2", 1)
    made = quiet.vm(name=name, source=NAME, tenant="acme")
    assert (made["vm"]["node"], made["vm"]["cloned_from"]) == ("pve2", FIRST + 1)


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        (({"scsi0": "local-lvm:2"}, {"scsi0": "local-lvm:3"}), "their disks differ"),
        (
            (
                {"description": "Template golden, made from debian-13.qcow2"},
                {"description": "Template golden, made from debian-12.qcow2"},
            ),
            "they were made from different images",
        ),
    ],
)
def test_different_contents_are_reported(
    quiet: Lab, name: str, configs: tuple[Any, ...], why: str
) -> None:
    for number, config in enumerate(configs):
        template(quiet, f"pve{number + 1}", number, **config)
    result = quiet.refused(name=name, source=NAME)
    assert result["error"]["category"] == "Conflict"
    assert why in result["msg"]
    assert quiet.vm(name=name, source=str(FIRST + 1))["vm"]["cloned_from"] == FIRST + 1


def test_two_on_one_node_are_not_copies(quiet: Lab, name: str) -> None:
    template(quiet, "pve1", 0)
    template(quiet, "pve1", 1)
    assert "2 templates have that name" in quiet.refused(name=name, source=NAME)["msg"]
