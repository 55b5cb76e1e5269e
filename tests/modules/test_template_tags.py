# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags of a template stay with the template.

PVE copies them to every clone (qemu-server, clone_vm).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab


def tags_of(lab: Lab, vm: dict[str, Any]) -> set[str]:
    return set(filter(None, lab.config(vm).get("tags", "").split(";")))


# the options of module vm, and the tags of the VM that it clones from debian-13, which has image
# and shared
CLONES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, set()),
    ({"tenant": "acme"}, {"tenant_acme"}),
    ({"tenant": "acme", "tags": ["web"]}, {"tenant_acme", "web"}),
    ({"tags": ["Image", "web"]}, {"image", "web"}),
    ({"tags": ["web"], "tags_exact": True}, {"web"}),
]


@pytest.mark.parametrize(("options", "expected"), CLONES, ids=lambda value: " ".join(sorted(value)))
def test_a_vm_does_not_inherit_the_tags_of_its_template(
    quiet: Lab, options: dict[str, Any], expected: set[str]
) -> None:
    template = quiet.client.get("nodes", "pve1", "qemu", 9000, "config")
    assert set(template["tags"].split(";")) == {"image", "shared"}
    wanted: dict[str, Any] = {"name": "t1", "source": "debian-13", **options}
    foreseen = quiet.vm(check=True, **wanted)
    made = quiet.vm(**wanted)
    assert tags_of(quiet, made["vm"]) == expected == set(made["vm"]["tags"])
    assert made["diff"] == foreseen["diff"]
    assert not quiet.vm(**wanted)["changed"]
    assert quiet.client.get("nodes", "pve1", "qemu", 9000, "config")["tags"] == template["tags"]


def test_module_clone_leaves_the_tags_of_a_template_behind_too(quiet: Lab) -> None:
    made = quiet.run("clone", name="t2", source="debian-13", tenant="acme")
    assert not made.get("failed"), made
    assert tags_of(quiet, made["vm"]) == {"tenant_acme"}


def test_a_clone_of_a_vm_has_its_tags(quiet: Lab) -> None:
    quiet.vm(name="t3", source="debian-13", tenant="acme", tags=["web"])
    made = quiet.run("clone", name="t3-copy", source="t3", tenant="acme")
    assert not made.get("failed"), made
    assert tags_of(quiet, made["vm"]) == {"tenant_acme", "web"}


def test_a_vm_that_has_such_tags_keeps_them(quiet: Lab) -> None:
    vm = quiet.vm(name="t4", source="debian-13")["vm"]
    quiet.client.write(
        "PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data={"tags": "image;shared"}
    )
    assert not quiet.vm(name="t4", source="debian-13")["changed"]
    assert tags_of(quiet, vm) == {"image", "shared"}
