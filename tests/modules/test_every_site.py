# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every module at a site that is misspelt, dark, closed or draining: the site is named, and nothing
is done elsewhere instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import repeated
from tests.declared import MODULES, minimal_tasks, module_sample
from tests.labs.sites import DARK
from tests.modules.estate_lab import Lab, run_module

TASKS = minimal_tasks()
READING = [name for name in MODULES if name.endswith("_info")] + ["firewall_check"]
# They read sites, and write files.
READING += ["metrics", "usage"]
# The same code refuses the others: the dark site is in their own requests.
SAMPLE = dict.fromkeys((*module_sample(), "vms", "metrics"))
EACH = repeated(dict.fromkeys((*SAMPLE, *MODULES)), first=len(SAMPLE))
CREATING = ("clone", "container", "failover", "vm", "vms")


def at(lab: Lab, place: Path, module: str, site: str, **state: Any) -> dict[str, Any]:
    """Run the task of a module in check mode at a site: berlin is the lab, munich does not answer."""
    berlin = {"name": "berlin", **lab.connection, **state}
    sites = [berlin, {"name": "munich", **DARK}]
    task = {**TASKS[module], "sites": sites, "site": site, "retries": 1}
    if "{{ playbook_dir }}" in str(task.get("path")):
        task["path"] = str(place / "file.prom")
    lab.simulator.reset_log()
    found = run_module(module, task, check=True)
    assert "Traceback" not in str(found)
    return found


@pytest.mark.parametrize("module", EACH)
def test_a_misspelt_site_is_refused_before_any_request(
    lab: Lab, tmp_path: Path, module: str
) -> None:
    failed = at(lab, tmp_path, module, "berlni")
    assert failed["failed"]
    assert "there is no site 'berlni' (did you mean 'berlin'?)" in failed["msg"]
    assert lab.simulator.log() == []


@pytest.mark.parametrize("module", MODULES)
def test_a_dark_site_is_named(lab: Lab, tmp_path: Path, module: str) -> None:
    found = at(lab, tmp_path, module, "munich")
    assert "(site munich)" in str({**found, "invocation": None}), found
    assert lab.simulator.log() == []


@pytest.mark.parametrize("module", EACH)
def test_nothing_is_written_at_a_closed_site(lab: Lab, tmp_path: Path, module: str) -> None:
    found = at(lab, tmp_path, module, "berlin", state="closed")
    if module in READING:
        assert found.get("msg") == at(lab, tmp_path, module, "berlin").get("msg")
    else:
        assert "site berlin is closed, so nothing is written there" in found["msg"]
        assert lab.simulator.log() == []


@pytest.mark.parametrize("module", EACH)
def test_a_draining_site_is_managed_and_gets_no_guest(
    lab: Lab, tmp_path: Path, module: str
) -> None:
    """A task that fails at the active site, too, fails for the same reason."""
    found = at(lab, tmp_path, module, "berlin", state="draining")
    if module in CREATING:
        assert "site berlin is draining, so it gets no new guest" in str(found)
    else:
        assert found.get("msg") == at(lab, tmp_path, module, "berlin").get("msg")
