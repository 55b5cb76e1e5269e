# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every message on docs/troubleshooting.md is one that a task prints when the symptom occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module
from tests.unit.test_docs_links import anchors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
WEB1: dict[str, Any] = {"name": "web1", "tenant": "acme"}
# The one that the name and the tenant of web1 lead to; the page shows it.
VMID = 15046
# Of a user who sees the VMs of one pool, as the demo cluster has it.
TENANTS: dict[str, Any] = {
    "token_id": "ops@pve!auto",
    "token_secret": "00000000-0000-4000-8000-0000000000f2",
}
Result = dict[str, Any]


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as lab:
        lab.vm(**WEB1, node="pve1", cores=1)
        yield lab


@pytest.fixture
def web1(running: Lab, fast: None) -> Iterator[Lab]:
    yield running
    running.simulator.clear_faults()
    running.simulator.steer("/cluster", {"quorate": True})
    running.simulator.steer("/nodes/pve1", {"online": True})
    running.simulator.steer(f"/vms/{VMID}", {"restored": False})
    running.simulator.steer(f"/vms/{VMID}", {"lock": None})


def answered(status: int, text: str, **rule: Any) -> Callable[[Lab], Result]:
    """Return a task that changes web1, and is answered so."""

    def make(lab: Lab) -> Result:
        lab.simulator.fault(
            **{"method": "PUT", "path": "/config$", "times": 1000, **rule},
            status=status,
            message=text,
        )
        return lab.run("vm", **WEB1, cores=2)

    return make


def created(status: int, text: str) -> Callable[[Lab], Result]:
    """Return a task that creates a VM, and is answered so."""

    def make(lab: Lab) -> Result:
        lab.simulator.fault(method="POST", path="/qemu$", times=1000, status=status, message=text)
        return lab.run("vm", name="new1", disks=[{"size": 1}])

    return make


def task(module: str, **options: Any) -> Callable[[Lab], Result]:
    return lambda lab: lab.run(module, **options)


def connected(**options: Any) -> Callable[[Lab], Result]:
    """Return a task with another connection; an option that is None is left out."""

    def make(lab: Lab) -> Result:
        connection = {**lab.connection, **options}
        given = {name: value for name, value in connection.items() if value is not None}
        return run_module("vm_info", given)

    return make


def steered(path: str, **state: Any) -> Callable[[Lab], Result]:
    """Return a task that changes web1 while the cluster is in this state."""

    def make(lab: Lab) -> Result:
        lab.simulator.steer(path, state)
        return lab.run("vm", **WEB1, cores=2)

    return make


def unseen(lab: Lab) -> Result:
    return run_module("vm", {**lab.connection, **TENANTS, "vmid": VMID, "cores": 2})


def without_quorum(lab: Lab) -> Result:
    lab.simulator.steer("/cluster", {"quorate": False})
    return lab.run("vm", name="new1")


def silent(lab: Lab) -> Result:
    """A guest that does not react to a shutdown."""
    lab.vm(**WEB1, state="started")
    lab.simulator.steer(f"/vms/{VMID}", {"acpi": False, "agent": "silent"})
    return lab.run("vm", **WEB1, state="stopped", shutdown_timeout=1)


def too_small(lab: Lab) -> Result:
    lab.vm(name="disk1", disks=[{"name": "scsi0", "size": 4}])
    return lab.run("vm", name="disk1", disks=[{"name": "scsi0", "size": 2}])


def protected(lab: Lab) -> Result:
    lab.vm(name="prot1", protection=True)
    return lab.run("vm", name="prot1", state="absent")


def strange(lab: Lab) -> Result:
    lab.vm(name="strange1")
    return lab.run("vm", name="strange1", tenant="acme", cores=2)


def restore_failed(lab: Lab) -> Result:
    lab.simulator.steer(f"/vms/{VMID}", {"restored": True})
    tasks = ("nodes", "pve1", "tasks")
    for row in lab.client.get(*tasks, vmid=VMID, source="active"):
        lab.client.write("DELETE", *tasks, row["upid"])
    return lab.run("vm", **WEB1, cores=2)


def without_address(lab: Lab) -> Result:
    return lab.run("vm", name="mute1", state="started", wait_for="address", wait_timeout=2)


def refused_snapshot(lab: Lab) -> Result:
    lab.simulator.fault(
        method="POST", path="/snapshot$", status=500, message="snapshot feature is not available"
    )
    return lab.run("snapshot", **WEB1, snapshot="s1")


LOCK_FILE = f"can't lock file '/var/lock/qemu-server/lock-{VMID}.conf' - got timeout"
GONE = f"unable to find configuration file for VM {VMID} on node 'pve1'"
MODIFIED = "detected modified configuration - file changed by other user? Try again."
LOOK: dict[str, Any] = {"method": "GET", "path": "/pending$"}
NO_LOGIN: dict[str, Any] = {
    "token_id": None,
    "token_secret": None,
    "user": "ops@pve",
    "password": "not-it-1",
}
SYMPTOMS: Mapping[str, Callable[[Lab], Result]] = {
    "No Proxmox VE endpoint is configured": connected(host=None),
    "Refused the connection": connected(host="https://127.0.0.1:1"),
    "Cannot be resolved": connected(host="pve1.invalid"),
    "Certificate is not signed by a trusted CA": connected(ca_path=None),
    "401, authentication failed": connected(token_secret="00000000-0000-4000-8000-000000000000"),
    "401, authentication failure for a user": connected(**NO_LOGIN),
    "Got timeout": answered(500, "got timeout"),
    "596, broken connection": answered(596, "Connection timed out", **LOOK),
    "503 and other answers of a proxy": answered(503, "Service Unavailable", **LOOK),
    "403, permission check failed": answered(
        403, f"Permission check failed (/vms/{VMID}, VM.Config.CPU)"
    ),
    "Number exists that this token may not see": unseen,
    "Only root can set": task("vm", **WEB1, options={"args": "-no-hpet"}),
    "Cluster not ready, no quorum": without_quorum,
    "Unable to open file in /etc/pve, permission denied": steered("/cluster", quorate=False),
    "The node is offline": steered("/nodes/pve1", online=False),
    "Hostname lookup failed": task("vm", name="new1", node="pve9"),
    "Storage is not online": created(500, "storage 'nas' is not online"),
    "Storage could not be used": task("vm", name="new1", disks=[{"size": 1, "storage": "nas"}]),
    "Bridge is not there": task("vm", name="new1", nics=[{"bridge": "vmbr9"}]),
    "No node could be chosen": task("vm", name="new1", memory="900G", state="started"),
    "No space left on device": created(500, "No space left on device"),
    "Can't lock file, got timeout": answered(500, LOCK_FILE),
    "VM is locked": steered(f"/vms/{VMID}", lock="backup"),
    "It is still being made": steered(f"/vms/{VMID}", lock="clone"),
    "It is being restored": steered(f"/vms/{VMID}", restored=True),
    "A restore of it has failed": restore_failed,
    "Unable to find configuration file": answered(500, GONE),
    "Detected modified configuration": answered(500, MODIFIED),
    "It does not belong to tenant": strange,
    "It is protected": protected,
    "No template or image of that name is visible": task("vm", name="new1", source="nosuch"),
    "Cannot shrink": too_small,
    "Snapshot feature is not available": refused_snapshot,
    "VM quit/powerdown failed": silent,
    "No address that fits the choice": without_address,
}


def messages() -> dict[str, str]:
    """Return the message under each heading of a symptom, as one line."""
    found = re.findall(r"^### ([^\n]+)\n\n```text\n(.*?)```", PAGE, re.M | re.S)
    return {heading: " ".join(text.split()) for heading, text in found}


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_message_of_the_page_is_printed(web1: Lab, symptom: str) -> None:
    result = SYMPTOMS[symptom](web1)
    assert result.get("failed"), result
    assert messages()[symptom] in " ".join(result["msg"].split())
    assert f"`{result['error']['category']}`" in PAGE


def test_every_symptom_of_the_page_is_made() -> None:
    headings = re.findall(r"^### (.+)$", PAGE, re.M)
    assert sorted(headings) == sorted(messages()) == sorted(SYMPTOMS)


def categories(kind: type[FleetError]) -> set[str]:
    return {kind.category}.union(*(categories(child) for child in kind.__subclasses__()))


def test_every_category_of_the_code_leads_somewhere() -> None:
    table = PAGE.partition("| `error.category` | meaning | look under |")[2].partition("\n## ")[0]
    named = re.findall(r"`([A-Z]\w+)`", table)
    assert set(named) == categories(FleetError)
    assert set(re.findall(r"\(#([^)]+)\)", table)) <= anchors(PAGE)
