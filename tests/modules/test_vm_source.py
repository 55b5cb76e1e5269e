# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new VM whose source is the name of a VM, not of a template."""

from __future__ import annotations

from typing import Any

from tests.modules.access_lab import refused
from tests.modules.estate_lab import Lab


def test_a_vm_is_cloned_by_its_name(quiet: Lab, name: str) -> None:
    own: dict[str, Any] = {"tenant": "acme", "pool": "acme"}
    gold = quiet.vm(name=f"{name}-gold", source="debian-13", **own)["vm"]
    options = {"name": name, "source": f"{name}-gold", **own}
    planned = quiet.vm(check=True, **options)
    made = quiet.vm(**options)
    assert made["done"] == planned["plan"]
    assert any(f"({gold['vmid']})" in step for step in made["plan"])
    assert not quiet.vm(**options)["changed"]
    listed = {"vms": [{"name": f"{name}-2", "source": f"{name}-gold"}], **own}
    assert quiet.run("vms", **listed)["summary"]["created"] == 1


def test_a_name_that_several_vms_have_is_refused(quiet: Lab, name: str) -> None:
    for tenant in ("acme", "globex"):
        quiet.vm(name=f"{name}-gold", source="debian-13", tenant=tenant)
    failed = refused(quiet, "vm", name=name, source=f"{name}-gold")
    assert "2 guests have that name" in failed["msg"]
    assert quiet.vm(check=True, name=name, source=f"{name}-gold", tenant="acme")["changed"]


def test_the_vm_of_another_tenant_is_not_found_by_its_name(quiet: Lab, name: str) -> None:
    quiet.vm(name=f"{name}-gold", source="debian-13", tenant="globex")
    failed = refused(quiet, "vm", name=name, source=f"{name}-gold", tenant="acme")
    assert failed["error"]["reason"] == "template missing"
    assert "globex" not in failed["msg"]
    stray = f"{name}-stray"
    quiet.vm(name=stray, source="debian-13")
    failed = refused(quiet, "vm", name=name, source=stray, tenant="acme")
    assert "it is not a template, and does not have the tag tenant_acme" in failed["msg"]
