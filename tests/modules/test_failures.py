# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every failure of every module has the same shape, whoever finds the mistake: Ansible, this
collection or PVE.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins import modules as module_package
from ansible_collections.pve.fleet.plugins.plugin_utils import _arguments
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

MODULES = sorted(found.name for found in pkgutil.iter_modules(module_package.__path__))
SHAPE = {"category", "reason", "status", "path", "upid", "retryable", "tries"}
CONDITIONS = ["Ready", "VMCreated", "ResourcesAllocated", "NetworkConfigured"]


def status_of(conditions: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["type"]: one["status"] for one in conditions}


@pytest.mark.parametrize("arguments", [{"nosuch": 1}, {"retries": "many"}], ids=str)
@pytest.mark.parametrize("name", MODULES)
def test_an_argument_that_ansible_refuses_has_an_error(
    name: str, arguments: dict[str, Any]
) -> None:
    result = run_module(name, arguments)
    assert result["failed"]
    assert not result["changed"]
    assert result["error"].keys() >= SHAPE
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "ValidationFailed",
        "arguments",
    )
    entry = importlib.import_module(f"{module_package.__name__}.{name}").ENTRY
    here = _arguments.check(entry, "basic.py", arguments)  # what a module takes for its name here
    same = entry.refused(here.error, arguments)
    assert {key: result[key] for key in same} == same


@pytest.mark.parametrize("name", ["vm", "clone"])
def test_a_refused_argument_has_conditions(name: str) -> None:
    result = run_module(name, {"nosuch": 1})
    assert status_of(result["conditions"]) == dict.fromkeys(CONDITIONS) | {"Ready": False}
    assert {one["reason"] for one in result["conditions"]} == {"ValidationFailed"}


@pytest.mark.parametrize(
    ("rc", "category"), [(127, "ConfigurationError"), (1, "InternalError"), (None, "InternalError")]
)
def test_a_module_without_a_result_has_an_error(rc: int | None, category: str) -> None:
    entry = importlib.import_module(f"{module_package.__name__}.vm").ENTRY
    assert entry.no_result({"failed": True, "rc": rc})["error"]["category"] == category


def test_a_vm_that_does_not_start_is_there(quiet: Lab) -> None:
    quiet.simulator.fault(method="POST", path="/status/start$", status=500, message="no", times=2)
    needed: dict[str, dict[str, Any]] = {
        "vm": {"name": "dark-1"},
        "vms": {"vms": [{"name": "dark-2"}]},
    }
    for module, options in needed.items():
        result = quiet.run(module, **options, state="started")
        assert result["failed"], result
        row = result["vms"][0] if module == "vms" else result
        assert status_of(row["conditions"]) == {
            "Ready": False,
            "VMCreated": True,
            "ResourcesAllocated": None,
            "NetworkConfigured": None,
        }
        assert row["error"]["done"]


def test_parts_that_fail_are_reported_alike(quiet: Lab) -> None:
    quiet.vm(name="here")
    names = ["here", "nosuch"]
    fleet = quiet.run(
        "vms", vms=[{"name": "here", "cores": 3, "adopt": True}, {"name": "nosuch", "source": "no"}]
    )
    snapshots = quiet.run("snapshot", vms=names, snapshot="s1")
    for result in (fleet, snapshots):
        assert result["failed"]
        assert result["changed"], result
        assert "1 of 2 VMs failed" in result["msg"]
        assert result["error"].keys() == SHAPE
        assert [row["name"] for row in result["vms"]] == names
        for row in result["vms"]:
            assert row.keys() >= {
                "name",
                "vmid",
                "node",
                "changed",
                "failed",
                "plan",
                "done",
                "conditions",
            }
            assert row["conditions"][0]["type"] == "Ready"
        good, bad = result["vms"]
        assert (good["failed"], good["changed"]) == (False, True)
        assert (bad["failed"], bad["changed"]) == (True, False)
        assert bad["error"]["category"] == bad["conditions"][0]["reason"]
        assert bad["msg"] in result["msg"]
    alone = quiet.run("snapshot", vms=["nosuch"], snapshot="s1")
    assert alone["vms"][0]["error"] == alone["error"]


def test_a_secret_in_the_place_of_a_token_id_is_not_shown(lab: Lab) -> None:
    secret = lab.connection["token_secret"]
    swapped = {"token_id": secret, "token_secret": lab.connection["token_id"]}
    site = {"name": "a", "host": lab.connection["host"], **swapped}
    refused = run_module("vm_info", {**lab.connection, **swapped}, verbosity=3)
    unknown = run_module("vm_info", {**lab.connection, "api_token_id": secret, "nosuch": 1})
    of_site = run_module("vm_info", {"sites": [site]}, verbosity=3)
    for result in (refused, unknown, of_site):
        assert result["failed"]
        assert secret not in str(result)
    assert "token_id and token_secret are swapped" in refused["msg"]
    assert "token_id and token_secret are swapped" in of_site["msg"]


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vm_info", {"host": "https://root:hush-hush@127.0.0.1:1"}),
        ("vm_info", {"url": "http://root:hush-hush@127.0.0.1:1", "nosuch": 1}),
        (
            "vm_info",
            {"host": "", "sites": [{"name": "a", "host": "https://root:hush-hush@127.0.0.1"}]},
        ),
        (
            "storage_download",
            {"storage": "nosuch", "source_url": "https://me:hush-hush@mirror/a.iso"},
        ),
        (
            "storage_download",
            {
                "storage": "local",
                "source_url": "https://me:hush-hush@mirror/a.iso",
                "checksum": "x",
            },
        ),
    ],
    ids=str,
)
def test_a_login_within_a_url_is_not_shown(lab: Lab, module: str, options: dict[str, Any]) -> None:
    result = run_module(module, {**lab.connection, **options})
    assert result["failed"]
    assert "hush-hush" not in str(result)


ROOT: dict[str, Any] = {
    "user": "root@pam",
    "password": "fleetpw123",
    "token_id": None,
    "token_secret": None,
}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/access/ticket$"), ("GET", "/pools$"), ("POST", "/pools$")]
)
def test_a_connection_that_pveproxy_closes_without_an_answer(
    unused: Lab, method: str, path: str
) -> None:
    """PVE 9.2.11 closed about five connections of a root ticket, and had done nothing. A login and a
    read are sent again; before a write is sent again, its pool is looked for.
    """
    unused.simulator.fault(method=method, path=path, drop="before", times=1)
    unused.simulator.reset_log()
    result = unused.run("pool", name="front", **ROOT)
    assert not result.get("failed"), result
    assert result["changed"]
    rows = unused.simulator.log()
    sent = [f"{row['method']} {row['path'].removeprefix('/api2/json')}" for row in rows]
    assert [row["route"] for row in rows].count("(dropped)") == 1
    assert sent.count(f"{method} {path.removesuffix('$')}") >= 2
    if (method, path) == ("POST", "/pools$"):
        assert sent[-4:] == ["POST /pools", "GET /pools", "POST /pools", "GET /pools"]
    assert not unused.run("pool", name="front", **ROOT)["changed"]
