# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A site whose first host does not answer: what is said about it, and sent to others, is the host
that does.
"""

from __future__ import annotations

from typing import Any

from tests.labs.relocate import make_guest, options, prepare
from tests.labs.sites import DARK
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab, run_module


def behind_dark(name: str, lab: Lab) -> dict[str, Any]:
    """Return a site with a host that does not answer, before the one of the lab."""
    host = lab.connection["host"]
    return {"name": name, **lab.connection, "host": DARK["host"], "other_hosts": [host]}


def test_guests_and_preflight_name_the_host_that_answers(unused: Lab) -> None:
    do(unused, "vm", name="web", tenant="acme", memory=256, blank=True)
    given = {"sites": [behind_dark("vienna", unused)], "retries": 1}
    (found,) = run_module("vm_info", {**given, "name": "web", "tenant": "acme"})["vms"]
    host = unused.connection["host"]
    assert found["console_url"].startswith(host)
    changed = run_module("vm", {**given, "name": "web", "tenant": "acme", "cores": 2})
    assert changed["vm"]["console_url"] == found["console_url"]
    checks = run_module("preflight_info", given)["checks"]
    (endpoint,) = [row for row in checks if row["check"] == "endpoint"]
    assert (endpoint["subject"], endpoint["status"]) == (f"{host}/api2/json", "pass")


def test_a_move_goes_to_the_host_of_the_target_that_answers(unused: Lab, munich: Lab) -> None:
    """The node of the source connects to it: `target-endpoint` of `remote_migrate`."""
    prepare(munich)
    make_guest(unused, "offline")
    given = options(unused, munich, vms=["mover"], storage_map={"ceph": "local-lvm"})
    given["sites"] = [given["sites"][0], behind_dark("munich", munich)]
    given["retries"] = 1
    moved = unused.run("relocate", **given)
    assert not moved.get("failed"), moved
    sent = [row for row in unused.simulator.writes() if row["path"].endswith("remote_migrate")]
    port = munich.connection["host"].rpartition(":")[2]
    assert [f"port={port}" in row["params"]["target-endpoint"] for row in sent] == [True]
