# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module entry: what a process prints for every way a run can end."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    Run,
)
from tests.scripted import Reply, Scripted

testing = pytest.importorskip(
    "ansible.module_utils.testing", reason="ansible-core 2.17 and older have no such help"
)

Ran = Callable[..., dict[str, Any]]
SPEC: dict[str, Any] = {"name": {"type": "str"}}


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str]) -> Ran:
    """Run an entry as a module process does and return the JSON it prints."""

    def _ran(run: Run, arguments: dict[str, Any]) -> dict[str, Any]:
        with testing.patch_module_args(arguments), pytest.raises(SystemExit):
            ModuleEntry(run, SPEC).main()
        return json.loads(capsys.readouterr().out)

    return _ran


def read_version(params: dict[str, Any], client: Client, check_mode: bool) -> Result:
    return Result(
        not check_mode,
        {"vm": {"name": params["name"], "version": client.version()}},
        {"before": "", "after": "x"},
        ("careful",),
    )


@pytest.mark.parametrize("arguments", [{}, {"naem": "x"}], ids=["done", "refused"])
def test_secrets_within_free_options_are_hidden(
    script: Scripted, capsys: pytest.CaptureFixture[str], arguments: dict[str, Any]
) -> None:
    script.replies = [Reply({"version": "9.2.11"})]
    given = {**script.options, "name": "a", "notes": {"secret": "hunter2"}, **arguments}
    spec = {**SPEC, "notes": {"type": "dict"}}
    with testing.patch_module_args(given), pytest.raises(SystemExit):
        ModuleEntry(read_version, spec, secrets=lambda said: [said["notes"]["secret"]]).main()
    found = json.loads(capsys.readouterr().out)
    assert found.get("failed", False) == bool(arguments)
    # Since ansible-core 2.21 results repeat the arguments only where that is asked for.
    repeated = found.get("invocation", {"module_args": given})
    assert "notes" in repeated["module_args"]
    assert "hunter2" not in json.dumps(found)


def test_result(ran: Ran, script: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda self, text: warnings.append(text))
    script.replies = [Reply({"version": "9.2.11"})]
    found = ran(read_version, {**script.options, "name": "web1"})
    assert found["changed"] is True
    assert found["vm"] == {"name": "web1", "version": [9, 2]}
    assert warnings == ["careful"]
    assert "diff" not in found
    assert "requests" not in found
    assert "very-secret-token" not in json.dumps(found)


def test_diff_check_mode_and_record(ran: Ran, script: Scripted) -> None:
    script.replies = [Reply({"version": "9.2.11"})]
    more = {"_ansible_check_mode": True, "_ansible_diff": True, "_ansible_verbosity": 3}
    found = ran(read_version, {**script.options, **more})
    assert found["changed"] is False
    assert found["diff"] == {"before": "", "after": "x"}
    assert [(row["method"], row["path"], row["status"]) for row in found["requests"]] == [
        ("GET", "/version", 200)
    ]


def test_failure(ran: Ran, script: Scripted) -> None:
    def run(params: dict[str, Any], client: Client, check_mode: bool) -> Result:
        raise Conflict(
            attempted="Could not create VM 'web1'",
            answer="taken by very-secret-token",
            reason="vmid taken",
        )

    found = ran(run, script.options)
    assert found["failed"] is True
    assert found["error"]["category"] == "Conflict"
    assert found["msg"].startswith("Could not create VM 'web1'")
    assert "very-secret-token" not in json.dumps(found)


@pytest.mark.parametrize(
    ("details", "changed"),
    [
        ({}, False),
        ({"done": []}, False),
        ({"done": ["Clone VM 'web1'"]}, True),
        ({"vms": [{"changed": False}, {"changed": True}]}, True),
        ({"vms": [{"changed": False}]}, False),
    ],
    ids=str,
)
def test_a_failure_reports_whether_something_was_changed(
    ran: Ran, script: Scripted, details: dict[str, Any], changed: bool
) -> None:
    def run(params: dict[str, Any], client: Client, check_mode: bool) -> Result:
        raise Conflict(attempted="Could not start VM 'web1'", details=details)

    assert ran(run, script.options)["changed"] is changed


def test_missing_endpoint(ran: Ran) -> None:
    found = ran(read_version, {})
    assert (found["error"]["category"], found["error"]["reason"]) == (
        "ConfigurationError",
        "missing endpoint",
    )


def test_a_bug_of_the_collection(ran: Ran, script: Scripted) -> None:
    def run(params: dict[str, Any], client: Client, check_mode: bool) -> Result:
        raise ZeroDivisionError("division by zero")

    found = ran(run, script.options)
    assert found["error"]["category"] == "InternalError"
    assert "report" in found["msg"]
    assert "Traceback" not in found["msg"]


def test_a_missing_library(ran: Ran, script: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "proxmoxer" else find_spec(name)
    )
    found = ran(read_version, script.options)
    assert "proxmoxer" in found["msg"]
    assert found["error"]["category"] == "ConfigurationError"


def test_a_sites_file(ran: Ran, script: Scripted, tmp_path: Any) -> None:
    script.replies = [Reply({"version": "9.2.11"})]
    file = tmp_path / "sites.yml"
    file.write_text(json.dumps([{"name": "north", **script.options}]))
    assert ran(read_version, {"sites_file": str(file)})["vm"]["version"] == [9, 2]
    file.write_text("- name: [")
    assert (
        ran(read_version, {"sites_file": str(file)})["error"]["reason"] == "unreadable sites file"
    )
    assert (
        ran(read_version, {"sites_file": "/nowhere"})["error"]["reason"] == "unreadable sites file"
    )
    encrypted = "$ANSIBLE_VAULT;1.1;AES256\n"
    for text in (encrypted, f"- name: north\n  password: !vault |\n    {encrypted}"):
        file.write_text(text)
        assert "ansible-vault encrypted it" in ran(read_version, {"sites_file": str(file)})["msg"]
