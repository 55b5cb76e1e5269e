# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PVE's texts and what they mean, and the shape of a failure."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import errors
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.failures.classify import (
    classify,
    classify_task,
)

CONFIG = "/nodes/pve1/qemu/100/config"
PARAMETERS = "Parameter verification failed."

ANSWERS: list[tuple[int, str, str, str]] = [
    (500, "VM is locked (backup)", "Locked", "locked (backup)"),
    (
        500,
        "can't lock file '/var/lock/qemu-server/lock-400.conf' - got timeout",
        "Locked",
        "lock timeout",
    ),
    (
        500,
        "create pool failed: cfs-lock 'file-user_cfg' error: got lock request timeout",
        "Locked",
        "lock timeout",
    ),
    (
        500,
        "create pool failed: cfs-lock 'file-user_cfg' error: no quorum!",
        "NodeUnhealthy",
        "no quorum",
    ),
    (500, "cluster not ready - no quorum?", "NodeUnhealthy", "no quorum"),
    (
        500,
        (
            "unable to open file '/etc/pve/nodes/pve1/qemu-server/301.conf.tmp.196' - Permission"
            " denied"
        ),
        "NodeUnhealthy",
        "no quorum",
    ),
    (500, "got no worker upid - start worker failed", "NetworkError", "no worker"),
    (
        500,
        "VM 100 qmp command 'query-status' failed - got timeout",
        "NetworkError",
        "timeout in PVE",
    ),
    (
        500,
        "VM 100 qmp command 'guest-network-get-interfaces' failed - got timeout",
        "NotSupported",
        "agent timeout",
    ),
    (500, "No QEMU guest agent configured", "NotSupported", "agent not configured"),
    (500, "QEMU guest agent is not running", "NotSupported", "agent not running"),
    (500, "VM 200 is not running", "Conflict", "not running"),
    # pve-container, API2/LXC/Status.pm
    (500, "CT 200 not running", "Conflict", "not running"),
    (500, "CT 200 already running", "Conflict", "already running"),
    (
        500,
        "hostname lookup 'x' failed - failed to get address info for: x: Name or service not known",
        "ConfigurationError",
        "unknown node",
    ),
    (500, "no such cluster node 'nosuch'", "ConfigurationError", "unknown node"),
    (
        403,
        "Permission check failed (pool 'nosuch' does not exist)",
        "ConfigurationError",
        "unknown pool",
    ),
    (500, "storage 'nosuch' does not exist", "ConfigurationError", "unknown storage"),
    (
        500,
        "storage 't2' is not available on node 'pve3'",
        "ConfigurationError",
        "storage not available",
    ),
    (
        500,
        "storage 'images' is not configured for content-type 'iso'",
        "NotSupported",
        "storage content",
    ),
    (
        500,
        "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
        "NotFound",
        "unknown VM",
    ),
    (500, "unable to find configuration file for VM 999 on node 'pve1'", "NotFound", "unknown VM"),
    (500, "could not find CT 999", "NotFound", "unknown VM"),
    (500, "snapshot 'x' does not exist", "NotFound", "unknown snapshot"),
    (500, "volume 'local:iso/missing.iso' does not exist", "NotFound", "unknown volume"),
    (500, "no such user ('nosuch@pve')", "NotFound", "does not exist"),
    (500, "update pools failed: pool 'nosuch' does not exist", "NotFound", "does not exist"),
    (
        500,
        (
            "update pools failed: 403 Permission check failed (/vms/100,"
            " Permissions.Modify|VM.Allocate)"
        ),
        "PermissionDenied",
        "lacks Permissions.Modify or VM.Allocate on /vms/100",
    ),
    (500, "resource 'vm:799' is not HA managed", "NotFound", "does not exist"),
    (
        500,
        "unable to create VM 200 - VM 200 already exists on node 'pve1'",
        "Conflict",
        "vmid taken",
    ),
    (500, "unable to create VM 410: config file already exists", "Conflict", "vmid taken"),
    (500, "create pool failed: pool 'p1' already exists", "Conflict", "exists"),
    (500, "checksum mismatch (file change by other user?)", "Conflict", "digest"),
    (
        500,
        "detected modified configuration - file changed by other user? Try again.",
        "Conflict",
        "digest",
    ),
    (500, "can't remove VM 200 - protection mode enabled", "Conflict", "protected"),
    (500, "VM 300 is running - destroy failed", "Conflict", "running"),
    (
        500,
        "unable to remove VM 400 - used in HA resources and purge parameter not set.",
        "Conflict",
        "HA managed",
    ),
    (500, "you can't convert a template to a template", "Conflict", "is a template"),
    (500, "unable to create template, because VM contains snapshots", "Conflict", "has snapshots"),
    (500, "delete pool failed: pool 'p2' is not empty (contains VM 1)", "Conflict", "not empty"),
    (500, "parameter 'storage' not allowed for linked clones", "NotSupported", "no linked clone"),
    (
        500,
        "Linked clone feature is not supported for 'a:1/b' (scsi0)",
        "NotSupported",
        "no linked clone",
    ),
    (500, "can't clone VM to node 'pve2' (VM uses local storage)", "NotSupported", "local storage"),
    (500, "unable to get any free VMID in range [5000, 5003]", "QuotaExceeded", "no free VMID"),
    (500, "can't find any free ip in zone z1 for IPv4 at x", "QuotaExceeded", "no free address"),
    (500, "only root can set 'args' config", "PermissionDenied", "root only"),
    (500, "Only root can pass arbitrary filesystem paths.", "PermissionDenied", "root only"),
    (501, "Method 'GET /nope' not implemented", "NotSupported", "unknown call"),
    (502, "Bad Gateway", "NetworkError", "bad gateway"),
    (596, "Broken pipe", "NetworkError", "broken connection"),
    (599, "Too many redirections", "NetworkError", "proxy failure"),
    (595, "No route to host", "NetworkError", "node unreachable"),
    (404, "Not Found", "ConfigurationError", "not the API"),
    (500, "no options specified", "ApiError", "no options specified"),
    (401, "No ticket", "AuthenticationError", "no credentials sent"),
    (401, "Authentication failed!", "AuthenticationError", "token or ticket"),
    (401, "Permission denied - invalid csrf token", "AuthenticationError", "csrf token"),
    (401, "permission denied - invalid PVE ticket", "AuthenticationError", "ticket"),
    (
        403,
        "Permission check failed (/vms/200, VM.Config.CPU)",
        "PermissionDenied",
        "lacks VM.Config.CPU on /vms/200",
    ),
    (403, "Permission check failed (, Sys.Audit)", "PermissionDenied", "lacks Sys.Audit on /"),
    (403, "Permission check failed", "PermissionDenied", "permission"),
    (
        403,
        (
            "Permission check failed (URI '/access/ticket' not available with API token, need"
            " proper ticket.\n)"
        ),
        "PermissionDenied",
        "needs a password login",
    ),
]

REFUSED_PARAMETERS: list[tuple[dict[str, str], str, str]] = [
    ({"cores": "value must have a minimum value of 1"}, "ValidationFailed", "refused parameter"),
    ({"vmid": "VM 100 already exists"}, "Conflict", "vmid taken"),
    ({"skiplock": "Only root may use this option."}, "PermissionDenied", "root only"),
    ({"upid": "no such task"}, "NotFound", "unknown task"),
    ({"storage": "No such storage."}, "ConfigurationError", "unknown storage"),
    ({"scsi0": "hotplug problem - can't unplug bootdisk 'scsi0'\n"}, "Conflict", "hotplug"),
    (
        {"vmid": "duplicate parameter (already defined in URI) with conflicting values!"},
        "ValidationFailed",
        "contradic",
    ),
    ({"tokenid": "Token already exists."}, "Conflict", "exists"),
]

TASKS: list[tuple[str, str, str]] = [
    (
        "can't lock file '/var/lock/qemu-server/lock-300.conf' - got timeout",
        "Locked",
        "lock timeout",
    ),
    ("VM is locked (snapshot)", "Locked", "locked (snapshot)"),
    (
        "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
        "NotFound",
        "unknown VM",
    ),
    ("unable to create VM 410: config file already exists", "Conflict", "vmid taken"),
    ("unable to create VM 402 - link '/a/402.conf' failed: File exists", "Conflict", "vmid taken"),
    ("snapshot name 's1' already used", "Conflict", "exists"),
    ("VM 300 already running", "Conflict", "already running"),
    ("checksum mismatch (file change by other user?)", "Conflict", "digest"),
    ("checksum mismatch: got 'a' != expect 'b', aborting", "ValidationFailed", "checksum"),
    (
        "unable to create image: qemu-img: error: No space left on device",
        "QuotaExceeded",
        "storage full",
    ),
    (
        "lvcreate 'pve/vm-1' error: insufficient free space: 5 extents needed",
        "QuotaExceeded",
        "storage full",
    ),
    (
        (
            "lvcreate 'pve/vm-1' error: Cannot create new thin volume, free space in thin pool"
            " pve/data reached threshold."
        ),
        "QuotaExceeded",
        "storage full",
    ),
    (
        "zfs error: cannot set property for 'rpool/vm-1': size is greater than available space",
        "QuotaExceeded",
        "storage full",
    ),
    ("snapshot feature is not available", "NotSupported", "no snapshots"),
    ("shrinking disks is not supported", "NotSupported", "shrink"),
    ("you can't start a vm if it's a template", "Conflict", "is a template"),
    ("base volume 'i:310/b.qcow2' is still in use by linked cloned", "Conflict", "in use"),
    ("VM quit/powerdown failed - got timeout", "TaskFailed", "shutdown timeout"),
    (
        "start failed: something - got timeout",
        "TaskFailed",
        "start failed: something - got timeout",
    ),
    ("received interrupt", "TaskFailed", "stopped by hand"),
    ("clone failed: mirroring error", "TaskFailed", "clone failed: mirroring error"),
    ("", "TaskFailed", "no exit status"),
]


@pytest.mark.parametrize(("status", "text", "category", "reason"), ANSWERS)
def test_answers(status: int, text: str, category: str, reason: str) -> None:
    error = classify("POST", CONFIG, status, text.splitlines()[0], text + "\n")
    assert (error.category, error.reason) == (category, reason)
    assert error.status == status
    assert error.answer
    assert error.next_step or category in ("ApiError", "NotFound", "Conflict")


VANISHED = "Configuration file 'nodes/pve1/qemu-server/22013.conf' does not exist"


@pytest.mark.parametrize(
    ("method", "path", "category", "retryable"),
    [
        ("GET", "/nodes/pve1/qemu", "NetworkError", True),
        ("GET", "/nodes/pve1/lxc", "NetworkError", True),
        ("GET", "/cluster/ha/resources", "NetworkError", True),
        ("GET", "/pools/acme", "NetworkError", True),
        ("GET", "/nodes/pve1/qemu/22013/config", "NotFound", False),
        ("GET", "/nodes/pve1/lxc/22013/status/current", "NotFound", False),
        ("POST", "/nodes/pve1/qemu/22013/clone", "NotFound", False),
        ("PUT", "/pools/acme", "NotFound", False),
    ],
)
def test_a_guest_that_is_removed_while_others_are_listed(
    method: str, path: str, category: str, retryable: bool
) -> None:
    """BEHAVIOUR.md, seen on PVE 9.2.11: a listing reads every configuration, and one can be gone by
    then.
    """
    error = classify(method, path, 500, VANISHED, f"{VANISHED}\n")
    assert (error.category, error.retryable) == (category, retryable)


@pytest.mark.parametrize(("parameters", "category", "reason"), REFUSED_PARAMETERS)
def test_refused_parameters(parameters: dict[str, str], category: str, reason: str) -> None:
    error = classify("PUT", CONFIG, 400, PARAMETERS, PARAMETERS, parameters)
    assert error.category == category
    assert error.reason.startswith(reason)
    assert list(error.parameters) == list(parameters)


@pytest.mark.parametrize(("exitstatus", "category", "reason"), TASKS)
def test_tasks(exitstatus: str, category: str, reason: str) -> None:
    log = [str(number) for number in range(20)]
    error = classify_task(exitstatus, log, upid="UPID:x")
    assert (error.category, error.reason, error.upid) == (category, reason, "UPID:x")
    assert error.log == tuple(log[-10:])


_CREATE = (
    "unable to create image: command '/usr/bin/qemu-img create -f qcow2 /a/vm-1-disk-0.qcow2 9G'"
    " failed: exit code 1"
)


@pytest.mark.parametrize(
    ("exitstatus", "line", "reason"),
    [
        (_CREATE, "qemu-img: /a/vm-1-disk-0.qcow2: No space left on device", "storage full"),
        (
            "unable to create VM 100 - exit code 5",
            "not enough free space (1024 < 2048)",
            "storage full",
        ),
        (
            "start failed: QEMU exited with code 1",
            "kvm: cannot set up guest memory: Cannot allocate memory",
            "node memory",
        ),
    ],
)
def test_the_log_of_a_failed_task_shows_missing_room(
    exitstatus: str, line: str, reason: str
) -> None:
    """Seen on PVE 9.2.11: the exit status is the whole failed command, the log has the cause."""
    error = classify_task(
        exitstatus, ["create full clone", line, f"TASK ERROR: {exitstatus}"], upid="UPID:x"
    )
    assert (error.category, error.reason, error.upid) == ("QuotaExceeded", reason, "UPID:x")
    assert exitstatus in error.answer
    assert line in error.answer


@pytest.mark.parametrize(
    "line",
    [
        "  WARNING: Sum of all thin volume sizes exceeds the free space in volume group",
        "  WARNING: You have not turned on protection against thin pools running out of space.",
        "zero out finished (note: 'No space left on device' is ok here): 1",
        "VM 100 already running",
    ],
)
def test_other_lines_of_a_log_do_not_change_the_category(line: str) -> None:
    error = classify_task("clone failed: mirroring error", [line, "TASK ERROR: clone failed"])
    assert (error.category, error.answer) == ("TaskFailed", "clone failed: mirroring error")


def test_the_exit_status_of_a_task_goes_before_its_log() -> None:
    assert classify_task("VM is locked (backup)", ["No space left on device"]).category == "Locked"


@pytest.mark.parametrize(
    ("path", "category"),
    [("/storage/nosuch", "NotFound"), ("/nodes/pve1/qemu", "ConfigurationError")],
)
def test_the_path_decides_about_a_storage(path: str, category: str) -> None:
    assert classify("GET", path, 500, "", "storage 'nosuch' does not exist\n").category == category


@pytest.mark.parametrize(
    ("path", "reason"), [("/access/ticket", "user or password"), ("/version", "token or ticket")]
)
def test_the_path_decides_about_a_login(path: str, reason: str) -> None:
    assert (
        classify("POST", path, 401, "authentication failure", "authentication failure\n").reason
        == reason
    )


@pytest.mark.parametrize(
    ("status", "path", "dispatched"),
    [
        (595, "/nodes/pve3/qemu", False),
        (596, "/nodes/pve3/qemu", None),
        (503, "/x", None),
        (500, "/x", True),
    ],
)
def test_whether_it_was_dispatched(status: int, path: str, dispatched: bool | None) -> None:
    assert classify("POST", path, status, "x").dispatched is dispatched


def test_an_unreachable_node_is_named() -> None:
    error = classify("GET", "/nodes/pve3/status", 595, "No route to host")
    assert "node pve3 is offline or unreachable" in error.message
    assert error.details == {"node": "pve3"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("unable to create VM 100 - VM 100 already exists on node 'pve1'", errors.VmidTaken),
        ("unable to create VM 100 - CT 100 already exists on node 'pve1'", errors.VmidTaken),
        ("snapshot name 'daily' already used", errors.AlreadyExists),
        ("pool 'acme' already exists", errors.AlreadyExists),
        ("checksum mismatch (file change by other user?)", errors.DigestChanged),
        ("hotplug problem - adding a device failed", errors.HotplugRefused),
        ("VM 100 already running", errors.AlreadyRunning),
        ("Configuration file 'nodes/pve1/qemu-server/1.conf' does not exist", errors.UnknownVm),
        ("snapshot 'daily' does not exist", errors.UnknownSnapshot),
    ],
)
def test_what_the_code_acts_upon_has_a_class_of_its_own(
    text: str, kind: type[errors.FleetError]
) -> None:
    for error in (classify("POST", CONFIG, 500, text), classify_task(text)):
        assert error.__class__ is kind
        assert error.category == kind.__bases__[0].__name__
        assert error.on(attempted="Could not start").__class__ is kind
        assert pickle.loads(pickle.dumps(error)).__class__ is kind


def test_a_node_that_is_not_reached_and_a_failed_download_have_classes_of_their_own() -> None:
    unreachable = classify("GET", "/nodes/pve3/status", 595, "No route to host")
    assert (type(unreachable), unreachable.category) == (errors.NodeUnreachable, "NetworkError")
    assert unreachable.retryable
    failed = classify_task("download failed: exit code 8")
    assert (type(failed), failed.category) == (errors.DownloadFailed, "TaskFailed")
    full = classify_task("download failed: exit code 3", ["write: No space left on device"])
    assert full.category == "QuotaExceeded"


def test_a_missing_privilege_is_named() -> None:
    text = "Permission check failed (/, Sys.Modify for modifying tag 'db')"
    error = classify("PUT", CONFIG, 403, text, text)
    assert error.details == {"privilege": "Sys.Modify", "acl_path": "/"}
    assert "Sys.Modify on /, which PVE asks for modifying tag 'db'" in error.message
    either = classify(
        "PUT", CONFIG, 403, "", "Permission check failed (/vms/1, Permissions.Modify|VM.Allocate)"
    )
    assert "Permissions.Modify or VM.Allocate on /vms/1" in either.message


def test_every_recorded_refusal_has_an_answer(shared: Path) -> None:
    """No recorded answer is left without a category, and none is an ApiError by accident where a
    row says more.
    """
    unknown: set[str] = set()
    for file in sorted(
        [*(shared / "pve/recordings").glob("*.jsonl"), *(shared / "pve/stories").glob("*.jsonl")]
    ):
        for line in file.read_text().splitlines():
            exchange: dict[str, Any] = json.loads(line)
            status = exchange.get("status")
            if not isinstance(status, int) or status < 400:
                continue
            body = exchange.get("body") if isinstance(exchange.get("body"), dict) else {}
            error = classify(
                exchange["method"],
                exchange["path"],
                status,
                exchange.get("reason") or "",
                (body or {}).get("message") or "",
                (body or {}).get("errors"),
            )
            assert isinstance(error, errors.FleetError)
            assert error.message
            if error.category == "ApiError":
                unknown.add(error.reason)
    assert not [text for text in unknown if "lock" in text.lower() or "does not exist" in text]


class TestShape:
    def test_message(self) -> None:
        error = errors.Conflict(
            attempted="Could not create VM 'web1'",
            answer="it exists.\n",
            next_step="Choose another",
        )
        assert (
            error.message == str(error) == "Could not create VM 'web1': it exists. Choose another."
        )

    def test_result(self) -> None:
        error = errors.TaskFailed(
            answer="x",
            status=500,
            method="POST",
            path="/a",
            upid="U",
            tries=2,
            log=("l",),
            details={"node": "pve1"},
        )
        assert error.as_result() == {
            "msg": "x.",
            "error": {
                "category": "TaskFailed",
                "reason": "x",
                "status": 500,
                "path": "/a",
                "upid": "U",
                "retryable": False,
                "tries": 2,
                "method": "POST",
                "log": ["l"],
                "node": "pve1",
            },
        }

    def test_more_context(self) -> None:
        error = errors.Locked(answer="VM is locked (backup)", status=500).on(
            attempted="Could not start VM 1"
        )
        assert isinstance(error, errors.Locked)
        assert (error.message, error.status) == (
            "Could not start VM 1: VM is locked (backup).",
            500,
        )

    def test_it_travels_between_processes(self) -> None:
        error = pickle.loads(pickle.dumps(errors.NotFound(answer="gone", path="/x")))
        assert (error.category, error.message, error.path) == ("NotFound", "gone.", "/x")
