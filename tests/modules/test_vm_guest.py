"""What the guest tells, waiting for it, and user data that reaches it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.modules.estate_lab import Lab

STATIC: dict[str, Any] = {"nics": [{"ip": "10.9.8.7/24", "gateway": "10.9.8.1"}]}


def test_addresses_come_from_the_agent(lab: Lab, name: str) -> None:
    vm = lab.vm(name=name, source="debian-13", state="started", addresses=True, **STATIC)["vm"]
    assert vm["address"] == "10.9.8.7"
    assert vm["address_source"] == "agent"
    assert vm["agent_problem"] is None
    assert not any(one["address"].startswith(("127.", "fe80")) for one in vm["addresses"])
    assert lab.vm(name=name, addresses=True, address_family="ipv6")["vm"]["address"] != "10.9.8.7"
    assert (
        lab.vm(name=name, addresses=True, address_subnets=["192.0.2.0/24"])["vm"]["address"] is None
    )
    shown = lab.run("vm_info", name=name, addresses=True)["vms"][0]
    assert shown["address"] == "10.9.8.7"


def test_without_agent_they_come_from_cloud_init_and_say_so(lab: Lab, name: str) -> None:
    vm = lab.vm(
        name=name, source="debian-13", state="started", agent=False, addresses=True, **STATIC
    )["vm"]
    assert (vm["address"], vm["address_source"]) == ("10.9.8.7", "cloud-init")
    assert vm["agent_problem"] == "agent not configured"
    stopped = lab.vm(name=name, state="stopped", shutdown_timeout=0, addresses=True)["vm"]
    assert stopped["address_source"] == "cloud-init"
    assert "stopped" in stopped["agent_problem"]


def may_look(lab: Lab, *agents: int) -> dict[str, Any]:
    """Return the login of a user who may see all VMs, and ask the agents of some."""
    write = lab.client.write
    write("POST", "access", "roles", data={"roleid": "Look", "privs": "VM.Audit"})
    write(
        "POST", "access", "roles", data={"roleid": "Ask", "privs": "VM.Audit,VM.GuestAgent.Audit"}
    )
    write("POST", "access", "users", data={"userid": "auditor@pve"})
    write("PUT", "access", "acl", data={"path": "/", "users": "auditor@pve", "roles": "Look"})
    for vmid in agents:
        write(
            "PUT",
            "access",
            "acl",
            data={"path": f"/vms/{vmid}", "users": "auditor@pve", "roles": "Ask"},
        )
    made = write("POST", "access", "users", "auditor@pve", "token", "look", data={"privsep": 0})
    return {"token_id": made["full-tokenid"], "token_secret": made["value"]}


def test_an_agent_that_may_not_be_asked_hides_no_other(quiet: Lab) -> None:
    one, two = (
        quiet.vm(name=n, source="debian-13", state="started", **STATIC)["vm"]
        for n in ("may", "may-not")
    )
    login = may_look(quiet, one["vmid"])
    found = quiet.run("vm_info", **login, addresses=True)
    assert not found.get("failed"), found
    seen = {vm["name"]: vm for vm in found["vms"]}
    assert (seen["may"]["address_source"], seen["may"]["agent_problem"]) == ("agent", None)
    assert seen["may-not"]["address_source"] == "cloud-init"
    assert "VM.GuestAgent.Audit" in seen["may-not"]["agent_problem"]
    alone = quiet.run("vm_info", **login, vmid=two["vmid"], addresses=True)["vms"][0]
    assert "VM.GuestAgent.Audit" in alone["agent_problem"]
    waiting = quiet.run("vm", **login, vmid=two["vmid"], wait_for="address", wait_timeout=30)
    assert waiting["error"]["category"] == "PermissionDenied"


def test_the_agent_is_not_asked_unless_wanted(lab: Lab, name: str) -> None:
    lab.simulator.reset_log()
    vm = lab.vm(name=name, source="debian-13", state="started")["vm"]
    assert vm["addresses"] is None
    assert not any("agent" in row["path"] for row in lab.simulator.log())
    assert f"vmid={vm['vmid']}" in vm["console_url"]
    assert vm["console_url"].startswith(f"{lab.simulator.url}/?console=kvm&")
    (listed,) = lab.run("vm_info", vmid=vm["vmid"])["vms"]
    assert listed["console_url"] == vm["console_url"]


def test_waiting_for_an_address(lab: Lab, name: str) -> None:
    vm = lab.vm(name=name, source="debian-13", state="started", **STATIC)["vm"]
    lab.simulator.steer(f"vms/{vm['vmid']}", {"agent": "silent"})
    timer = threading.Timer(1.0, lab.simulator.steer, (f"vms/{vm['vmid']}", {"agent": "running"}))
    timer.start()
    try:
        done = lab.vm(name=name, wait_for="address", wait_timeout=20)
    finally:
        timer.join()
    assert done["vm"]["address_source"] == "agent"
    assert not done["changed"]


@pytest.mark.parametrize(
    ("options", "category", "word"),
    [
        ({"wait_for": "agent", "agent": False}, "NotSupported", "agent"),
        (
            {"wait_for": "address", "address_subnets": ["192.0.2.0/24"], "wait_timeout": 1},
            "TaskTimeout",
            "address",
        ),
        ({"addresses": True, "address_subnets": ["nosuch"]}, "ConfigurationError", "nosuch"),
    ],
    ids=str,
)
def test_waiting_in_vain_is_reported(
    lab: Lab, name: str, options: dict[str, Any], category: str, word: str
) -> None:
    result = lab.run("vm", name=name, source="debian-13", state="started", **options)
    assert result["error"]["category"] == category
    assert word in result["msg"]


PLACE = {"snippets": {"user": "local:snippets/a.yml"}, "snippet_directory": "/tmp"}
USER_DATA = "#cloud-config\npackages: [nginx]\nchpasswd: {list: 'root:topsecret'}\n"


def test_user_data_is_written_once_and_reaches_the_guest(
    lab: Lab, name: str, tmp_path: Path
) -> None:
    cloud_init = {
        "user_data": USER_DATA,
        "snippet_directory": str(tmp_path),
        "snippets": {"user": "local:snippets/user.yml"},
    }
    file = tmp_path / "user.yml"
    file.write_text("older")  # the demo cluster's storage has this file
    options: dict[str, Any] = {
        "name": name,
        "source": "debian-13",
        "state": "started",
        "cloud_init": cloud_init,
    }
    lab.simulator.reset_log()
    foreseen = lab.vm(check=True, **options)
    assert lab.simulator.writes() == []
    assert file.read_text() == "older"
    made = lab.vm(**options)
    assert made["diff"] == foreseen["diff"]
    assert made["plan"] == foreseen["plan"] == made["done"]
    assert "topsecret" not in str(made)
    assert file.read_text() == USER_DATA
    assert made["vm"]["config"]["cicustom"] == {"user": "local:snippets/user.yml"}
    assert not lab.vm(**options)["changed"]

    changed: dict[str, Any] = {
        **options,
        "cloud_init": {**cloud_init, "user_data": USER_DATA + "runcmd: [ls]\n"},
    }
    foreseen = lab.vm(check=True, **changed)
    assert file.read_text() == USER_DATA
    lab.simulator.reset_log()
    made = lab.vm(**changed)
    assert made["diff"] == foreseen["diff"]
    assert [row["path"].rpartition("/")[2] for row in lab.simulator.writes()] == [
        "config",
        "cloudinit",
        "config",
    ]
    assert not lab.vm(**changed)["changed"]


@pytest.mark.parametrize(
    ("cloud_init", "word"),
    [
        ({"user_data": USER_DATA}, "snippets.user"),
        (
            {"user_data": USER_DATA, "snippets": {"user": "local:snippets/a.yml"}},
            "snippet_directory",
        ),
        ({"user_data": "packages: []", **PLACE}, "#cloud"),
        ({"user_data": "#cloud-config\na: [", **PLACE}, "YAML"),
        (
            {
                "user_data": USER_DATA,
                "snippets": {"user": "local:iso/a.iso"},
                "snippet_directory": "/tmp",
            },
            "snippet",
        ),
        (
            {
                "user_data": USER_DATA,
                "snippets": {"user": "local:snippets/a.yml"},
                "snippet_directory": "/nonexistent",
            },
            "/nonexistent",
        ),
    ],
    ids=str,
)
def test_user_data_that_cannot_work_is_refused(
    lab: Lab, cloud_init: dict[str, Any], word: str
) -> None:
    result = lab.refused(name="refused", source="debian-13", cloud_init=cloud_init)
    assert word in result["msg"]
    assert "topsecret" not in str(result)
