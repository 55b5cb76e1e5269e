# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules apt_repository and apt_repository_info against the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.apt.run import (
    is_standard,
    run,
)
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab

PATH = "/nodes/pve1/apt/repositories"
STATES = {"handle": "enterprise", "state": "disabled"}, {"handle": "test"}


@pytest.fixture
def lab(unused: Lab, fast: None) -> Lab:
    unused.simulator.reset_log()
    return unused


def states(lab: Lab) -> dict[str, str | None]:
    listed = do(lab, "apt_repository_info", node="pve1")["repositories"]
    return {one["handle"]: one["state"] for one in listed}


def test_repositories_are_enabled_and_disabled(lab: Lab) -> None:
    for handle in ("no-subscription", "ceph-squid-test"):
        as_foreseen(lab, "apt_repository", node="pve1", handle=handle)
    as_foreseen(lab, "apt_repository", node="pve1", handle="enterprise", state="disabled")
    assert states(lab) == {
        "enterprise": "disabled",
        "no-subscription": "enabled",
        "test": None,
        "ceph-squid-enterprise": "enabled",
        "ceph-squid-no-subscription": None,
        "ceph-squid-test": "enabled",
    }
    as_foreseen(lab, "apt_repository", node="pve1", handle="enterprise")


def test_a_missing_repository_is_disabled(lab: Lab) -> None:
    made = do(lab, "apt_repository", node="pve1", handle="test", state="disabled")
    assert not made["changed"]
    assert requests(lab) == [f"GET {PATH}"]


def test_a_change_by_another_client_is_kept(lab: Lab) -> None:
    path = tuple(PATH.strip("/").split("/"))
    with overtaken(lab, ("PUT", path, {"handle": "test"})) as client:
        task = {"node": "pve1", "handle": "no-subscription", "state": "enabled"}
        assert run(task, client).changed
    found = states(lab)
    assert (found["test"], found["no-subscription"]) == ("enabled", "enabled")


def test_an_unknown_handle_is_refused(lab: Lab) -> None:
    failed = refused(lab, "apt_repository", node="pve1", handle="nightly")
    assert failed["error"]["reason"] == "unknown repository"
    assert "no-subscription" in failed["msg"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("task", STATES, ids=str)
def test_a_lost_answer_is_looked_after(lab: Lab, task: dict[str, Any], when: str) -> None:
    lab.simulator.fault(method="PUT", path=PATH, drop=when)
    lab.simulator.fault(method="POST", path=PATH, drop=when)
    made = do(lab, "apt_repository", node="pve1", **task)
    assert made["done"] == made["plan"]
    assert not do(lab, "apt_repository", node="pve1", **task)["changed"]


def test_missing_privileges_are_reported(lab: Lab) -> None:
    login = limited(lab, "auditor", {"/": "PVEAuditor"})
    failed = lab.run("apt_repository", **login, node="pve1", handle="test")
    assert failed["error"]["category"] == "PermissionDenied"


def test_entries_of_other_products_are_not_standard() -> None:
    entry = {"URIs": ["http://download.proxmox.com/debian/pve/"], "Components": ["pve-test"]}
    assert is_standard("test", entry)
    assert not is_standard("enterprise", entry)
    assert not is_standard("ceph-squid-test", entry)
    assert not is_standard("test", {**entry, "URIs": ["http://example.com/debian/pve"]})


DEBIAN = "http://deb.debian.org/debian"


def test_any_repository_in_the_files_is_switched(lab: Lab) -> None:
    """POST /nodes/{node}/apt/repositories takes a path and an index (pve-manager: API2/APT.pm)."""
    task: dict[str, Any] = {"node": "pve1", "uri": DEBIAN}
    assert not do(lab, "apt_repository", **task)["changed"]
    as_foreseen(lab, "apt_repository", **task, state="disabled")
    assert not do(lab, "apt_repository", **task, state="disabled")["changed"]
    made = as_foreseen(lab, "apt_repository", **task)
    assert made["apt_repository"]["uri"] == DEBIAN
    assert states(lab)["enterprise"] == "enabled"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"uri": "http://mirror.example.com/debian"}, f"only {DEBIAN}, https://enterprise"),
        ({}, "handle or uri chooses the repository"),
        ({"uri": DEBIAN, "handle": "test"}, "not both"),
    ],
    ids=str,
)
def test_the_choice_of_a_repository(lab: Lab, task: dict[str, str], message: str) -> None:
    options: dict[str, Any] = {"node": "pve1", **task}
    assert message in refused(lab, "apt_repository", **options)["msg"]
