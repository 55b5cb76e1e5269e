# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States of sites, and the lists of nodes, storages and bridges that a site may use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module


def at(lab: Lab, module: str, site: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Run a module at the only site, which is this cluster with these settings."""
    sites = [{"name": "berlin", **lab.connection, **site}]
    return run_module(module, {"sites": sites, **options})


VM = {"name": "web1", "tenant": "acme", "blank": True, "memory": "256M"}


def test_a_draining_site_gets_no_new_guest(unused: Lab) -> None:
    made = at(unused, "vm", {}, **VM)["vm"]
    unused.simulator.reset_log()
    draining = {"state": "draining"}
    for new in (
        at(unused, "vm", draining, **{**VM, "name": "web2"}),
        at(unused, "vms", draining, vms=[{**VM, "name": "web2"}]),
        at(unused, "clone", draining, source="web1", name="web2", tenant="acme"),
    ):
        assert new["failed"]
        assert "site berlin is draining, so it gets no new guest" in new["msg"]
    assert unused.simulator.writes() == []
    assert at(unused, "vm", draining, **{**VM, "memory": "512M"})["changed"]
    removed = at(unused, "vm", draining, name="web1", tenant="acme", state="absent", force=True)
    assert removed["changed"], made


def test_nothing_is_written_at_a_closed_site(unused: Lab) -> None:
    for module, options in (("vm", VM), ("vms", {"vms": [VM]}), ("pool", {"name": "acme"})):
        refused = at(unused, module, {"state": "closed"}, **options)
        assert refused["failed"]
        assert "site berlin is closed, so nothing is written there" in refused["msg"]
    assert unused.simulator.log() == []
    assert not at(unused, "vm_info", {"state": "closed"}).get("failed")


@pytest.mark.parametrize(
    ("site", "words"),
    [
        ({"nodes": ["pve1", "pve7"]}, "nodes of site berlin was refused: there is no node 'pve7'"),
        ({"storages": ["ceph", "cehp"]}, "storages of site berlin was refused"),
        ({"bridges": ["vmbr0", "vmbr00"]}, "bridges of site berlin was refused"),
    ],
)
def test_a_list_of_a_site_names_something(unused: Lab, site: dict[str, Any], words: str) -> None:
    refused = at(unused, "vm", site, **VM)
    assert refused["failed"]
    assert words in refused["msg"]
    assert unused.simulator.writes() == []
    report = at(unused, "report_info", site)
    assert words in str(report)
