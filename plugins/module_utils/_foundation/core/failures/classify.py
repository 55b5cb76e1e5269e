# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maps answers of PVE to categories of failure: the only module that interprets PVE's texts.

The texts come from PVE's own source (Qemu.pm, AbstractConfig.pm, QemuServer.pm, RPCEnvironment.pm,
AnyEvent.pm) and were observed on PVE 9.2. If one text can mean two things, the path of the request
decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import (
    AlreadyExists,
    AlreadyGrown,
    AlreadyMoved,
    AlreadyRunning,
    AlreadyTemplate,
    ApiError,
    AuthenticationError,
    ConfigurationError,
    Conflict,
    DigestChanged,
    DownloadFailed,
    FleetError,
    HotplugRefused,
    Locked,
    NetworkError,
    NodeUnhealthy,
    NodeUnreachable,
    NotFound,
    NotRunning,
    NotSupported,
    PermissionDenied,
    QuotaExceeded,
    TaskFailed,
    UnknownSnapshot,
    UnknownTask,
    UnknownVm,
    ValidationFailed,
    VmidTaken,
)

LOG_LINES = 10
_LONGEST = 4000  # characters of a text that are searched


@dataclass(frozen=True)
class _Text:
    """One row: a text of PVE and its meaning.

    `reason` and `next_step` may use the pattern's named groups.

    `path` is a pattern for the request's path; `where` is "any", "answer" (a synchronous answer),
    "read" (the answer to a GET) or "task" (an exit status).
    """

    pattern: str
    category: type[FleetError]
    reason: str
    next_step: str = ""
    path: str = ""
    where: str = "any"


# A request that is not about one guest, such as the listing of a node: /nodes/pve1/qemu,
# /pools/acme.
_NO_GUEST = r"^(?!.*/nodes/[^/]+/[^/]+/\d)"
_LOCK = re.compile(r"locked \((.+)\)")
_NODE_OF_GUEST = re.compile(r"already exists on node '([^']+)'")
_STATE_UNKNOWN = "Look at the state before it is done again"
_WAIT_FOR_LOCK = "Wait for what holds the lock, or raise lock_timeout"
CHECK_NODE = "Check the name of the node: pve.fleet.node_info lists the nodes"
_CHECK_STORAGE = "Check the name of the storage: pve.fleet.storage_info lists the storages"
_STORAGES = r"^/storage(?:/|$)"  # definitions of storages
_CHECK_POOL = "Check the pool's name, or create the pool first"

# The first row that matches wins.
_TEXTS: tuple[_Text, ...] = (
    # Locks: PVE did nothing.
    _Text(
        r"VM is locked \((?P<lock>[^)]+)\)",
        Locked,
        "locked ({lock})",
        "Wait until the running {lock} is over. If no task of it runs, it failed: read its log, and"
        " remove the lock with 'qm unlock' on its node",
    ),
    _Text(
        r"CT is locked \((?P<lock>[^)]+)\)",
        Locked,
        "locked ({lock})",
        "Wait until the running {lock} is over. If no task of it runs, it failed: read its log, and"
        " remove the lock with 'pct unlock' on its node",
    ),
    _Text(r"can't lock file '(?P<file>[^']+)'", Locked, "lock timeout", _WAIT_FOR_LOCK),
    _Text(r"got lock (?:request )?timeout", Locked, "lock timeout", _WAIT_FOR_LOCK),
    _Text(
        r"(?:unable to (?:acquire|create|get)|can't (?:acquire|get)) .*\block\b",
        Locked,
        "lock timeout",
        _WAIT_FOR_LOCK,
    ),
    # Quorum: /etc/pve is read-only without it.
    _Text(
        r"no quorum|cluster not ready|\.conf(?:\.tmp\.\d+)?' - Permission denied",
        NodeUnhealthy,
        "no quorum",
        "Bring back enough nodes for a quorum; until then PVE accepts no change",
    ),
    # The agent: never retried, because the guest is slow or has no agent.
    _Text(
        r"No QEMU guest agent configured",
        NotSupported,
        "agent not configured",
        "Switch the agent on in the VM's configuration (agent: 1) and install qemu-guest-agent in"
        " the guest",
    ),
    _Text(
        r"QEMU guest agent is not running",
        NotSupported,
        "agent not running",
        "Install and start qemu-guest-agent in the guest, or wait until it has booted",
    ),
    _Text(
        r"qmp command 'guest-.*got timeout|qga socket|guest agent.*time(?:d )?out",
        NotSupported,
        "agent timeout",
        "Look into the guest: its agent does not answer in time",
    ),
    # The version (pve-ha-manager: API2/HA/Groups.pm).
    _Text(
        r"ha groups have been migrated to rules",
        NotSupported,
        "HA groups",
        "Use a rule of type node-affinity instead: pve.fleet.ha_rule; in a cluster file, replace"
        " ha_groups, and group in ha_resources, by ha_rules, see docs/ha.md",
    ),
    # Ceph (pve-manager: PVE/Ceph/Tools.pm, check_ceph_installed, check_ceph_inited).
    _Text(
        r"binary not installed: \S*ceph|pveceph configuration not initialized|ceph not fully conf",
        NotSupported,
        "no Ceph",
        "Set Ceph up on this node: pveceph install, pveceph init",
    ),
    # Requests for root only.
    _Text(
        r"only root (?:can|may)",
        PermissionDenied,
        "root only",
        "PVE allows this to root@pam with a password only, never to a token",
    ),
    # Rights: a caller without Permissions.Modify can only give and remove rights that it has
    # (API2/ACL.pm).
    _Text(
        r"Cannot (?:add|remove) role '[^']+'",
        PermissionDenied,
        "more than own rights",
        "Use a user or token with Permissions.Modify on the path",
    ),
    # Names from the caller.
    _Text(
        r"hostname lookup '(?P<node>[^']+)' failed", ConfigurationError, "unknown node", CHECK_NODE
    ),
    _Text(
        r"no such cluster node '(?P<node>[^']+)'", ConfigurationError, "unknown node", CHECK_NODE
    ),
    _Text(r"non-existent node", ConfigurationError, "unknown node", CHECK_NODE),
    _Text(
        r"storage '[^']+' does not exist",
        NotFound,
        "unknown storage",
        _CHECK_STORAGE,
        path=r"^/storage/",
    ),
    _Text(
        r"storage '[^']+' does not exist|No such storage",
        ConfigurationError,
        "unknown storage",
        _CHECK_STORAGE,
    ),
    _Text(r"storage ID '[^']+' already defined", AlreadyExists, "exists", path=_STORAGES),
    _Text(
        r"storage '[^']+' is not online|error fetching datastores",
        ConfigurationError,
        "server not reachable",
        "Check the server, and that this node reaches it; with disable=true the storage is defined"
        " without a look at it",
        path=_STORAGES,
    ),
    _Text(
        r"no such logical volume|could not activate storage|volume group .* not found",
        ConfigurationError,
        "storage not available",
        "Check the names on the node, or limit the storage to the nodes that have it with nodes",
        path=_STORAGES,
    ),
    _Text(
        r"storage '[^']+' is (?:disabled|not available|not online)",
        ConfigurationError,
        "storage not available",
        "Choose a storage that is enabled and active on that node",
    ),
    _Text(
        r"storage '[^']+' (?:does not support '[^']+' content|is not configured for content-type)",
        NotSupported,
        "storage content",
        "Allow that content on the storage, or choose another storage",
    ),
    _Text(
        r"Permission check failed \(pool '[^']+' does not exist\)",
        ConfigurationError,
        "unknown pool",
        _CHECK_POOL,
    ),
    _Text(
        r"bridge '[^']+' does not exist",
        ConfigurationError,
        "unknown bridge",
        "Check the bridge's name on that node",
    ),
    # A guest was removed while PVE read the configurations of all guests for a listing
    # (AbstractConfig.pm, load_config).
    _Text(
        r"Configuration file '[^']+' does not exist|unable to find configuration file for VM",
        NetworkError,
        "guest removed while listing",
        "Try again: the listing is complete as soon as the guest is gone",
        path=_NO_GUEST,
        where="read",
    ),
    # VMs, their snapshots and disks. Moving a volume to another container has its own texts
    # (pve-container: API2/LXC.pm, move_volume).
    _Text(
        r"Configuration file '[^']+' does not exist|unable to find configuration file for VM"
        r"|could not find CT \d+",
        UnknownVm,
        "unknown VM",
        "Check the VMID and the node; the VM may have been moved or removed",
    ),
    _Text(
        r"no such task",
        UnknownTask,
        "unknown task",
        "The task's record is gone or belongs to another node",
    ),
    _Text(
        r"snapshot '[^']+' does not exist",
        UnknownSnapshot,
        "unknown snapshot",
        "Check the snapshot's name",
    ),
    _Text(r"volume '[^']+' does not exist", NotFound, "unknown volume", "Check the volume's ID"),
    _Text(
        r"disk '[^']+' does not exist",
        NotFound,
        "unknown disk",
        "Check the disk's name in the VM's configuration",
    ),
    # Changed by someone else since it was read.
    _Text(
        r"checksum mismatch \(file change|detected modified configuration",
        DigestChanged,
        "digest",
        "Someone else has changed it since it was read: run again",
    ),
    _Text(
        r"checksum mismatch: got",
        ValidationFailed,
        "checksum",
        "The downloaded file is not the expected one: check the URL and the checksum",
    ),
    # Taken.
    _Text(
        r"(?:VM|CT) \d+ already exists|config file already exists|\.conf' failed: File exists",
        VmidTaken,
        "vmid taken",
        "Choose another VMID",
    ),
    _Text(
        r"snapshot name '[^']+' already used",
        AlreadyExists,
        "exists",
        "Choose another snapshot name",
    ),
    _Text(r"(?:VM|CT) \d+ already running", AlreadyRunning, "already running"),
    _Text(r"(?:VM|CT) \d+ (?:is )?not running", NotRunning, "not running", "Start the guest first"),
    _Text(
        r"is running - destroy failed|if VM is running", Conflict, "running", "Stop the VM first"
    ),
    _Text(
        r"without --online", Conflict, "running", "Allow an online migration, or stop the VM first"
    ),
    _Text(
        r"protection mode enabled", Conflict, "protected", "Switch the VM's protection off first"
    ),
    _Text(
        r"used in HA resources",
        Conflict,
        "HA managed",
        "Remove the VM from HA first, or delete with purge",
    ),
    _Text(r"still in use", Conflict, "in use", "Remove what uses it first"),
    _Text(r"is not empty", Conflict, "not empty", "Remove its members first"),
    _Text(r"contains snapshots", Conflict, "has snapshots", "Delete the VM's snapshots first"),
    _Text(
        r"belongs already to pool|already a pool member",
        Conflict,
        "in a pool",
        "Remove it from its pool first",
    ),
    _Text(
        r"convert a template to a template",
        AlreadyTemplate,
        "is a template",
        "Use a VM, not a template",
    ),
    # qemu-server: API2/Qemu.pm, move_vm_disk.
    _Text(r"can't move to the same storage", AlreadyMoved, "moved", "Run this again"),
    _Text(r"if it's a template", Conflict, "is a template", "Use a VM, not a template"),
    _Text(r"already defined in URI", ValidationFailed, "contradiction", "Give the parameter once"),
    _Text(
        r"hotplug problem",
        HotplugRefused,
        "hotplug",
        "The change is pending: restart the VM to apply it",
    ),
    _Text(
        r"already (?:exists|defined|used|attached)|File exists|override existing",
        AlreadyExists,
        "exists",
    ),
    # No room.
    _Text(
        r"No space left|not enough (?:free )?space|out of space|insufficient free space|quota"
        r" exceeded|"
        r"no free space|exceeds? (?:the )?(?:available|free) space|data space exhausted|"
        r"greater than available space|free space in (?:thin )?(?:pool|volume group)",
        QuotaExceeded,
        "storage full",
        "Free some space on the storage, or choose another storage",
    ),
    _Text(r"unable to get any free VMID", QuotaExceeded, "no free VMID", "Widen the VMID range"),
    _Text(
        r"can't find (?:any )?free ip in",
        QuotaExceeded,
        "no free address",
        "Release an address, or add a DHCP range to a subnet of the network",
    ),
    _Text(
        r"cannot allocate memory",
        QuotaExceeded,
        "node memory",
        "Choose a node with more free memory",
    ),
    # Unsupported by PVE or the storage.
    _Text(
        r"snapshot feature is not available",
        NotSupported,
        "no snapshots",
        "Move the disks to a storage and format that can take snapshots (qcow2, LVM-thin, ZFS,"
        " Ceph)",
    ),
    _Text(
        r"Linked clone feature is not supported",
        NotSupported,
        "no linked clone",
        "Make a full clone, or convert the source to a template first",
    ),
    _Text(
        r"parameter '(?P<name>\w+)' not allowed for linked clones",
        NotSupported,
        "no linked clone",
        "Leave out {name}, or make a full clone",
    ),
    _Text(
        r"VM uses local storage",
        NotSupported,
        "local storage",
        "Clone on the source's node, or use a shared storage",
    ),
    _Text(
        r"shrinking disks is not supported",
        NotSupported,
        "shrink",
        "PVE can only make a disk larger",
    ),
    _Text(
        r"disk is already at specified size",
        AlreadyGrown,
        "size of the volume",
        "The volume has this size, its configuration an older one: run 'pct rescan' on the node",
    ),
    _Text(r"can't resize a cdrom", NotSupported, "resize", "Name a disk, not a CD-ROM drive"),
    _Text(r"is not supported|not implemented", NotSupported, "not supported"),
    # Waits within PVE that timed out.
    _Text(
        r"VM quit/powerdown failed",
        TaskFailed,
        "shutdown timeout",
        "The guest did not shut down in time: allow a forced stop, or give it longer",
    ),
    _Text(r"got no worker upid", NetworkError, "no worker", _STATE_UNKNOWN, where="answer"),
    _Text(r"got timeout", NetworkError, "timeout in PVE", _STATE_UNKNOWN, where="answer"),
    _Text(
        r"received interrupt",
        TaskFailed,
        "stopped by hand",
        "Someone stopped the task",
        where="task",
    ),
    # Anything else that is missing.
    _Text(r"mapping '[^']+' not found", NotFound, "does not exist"),
    _Text(
        r"(?:endpoint|matcher) '[^']+' not found",
        NotFound,
        "does not exist",
        path=r"^/cluster/notifications/",
    ),
    _Text(r"ACME plugin '[^']+' not defined", NotFound, "does not exist"),
    _Text(r"no such group", NotFound, "unknown group", "Create the group first"),
    _Text(
        r"does not exist|\bno such\b|is not HA managed|not a pool member",
        NotFound,
        "does not exist",
    ),
)

# The sources to which a row of the table applies: a task's exit status, the answer to a write, the
# answer to a read.
_PLACES = {
    "any": ("task", "answer", "read"),
    "answer": ("answer", "read"),
    "read": ("read",),
    "task": ("task",),
}

_CHECK_FAILED = re.compile(
    r"Permission check failed(?: \((?P<path>[^,()]*), (?P<privilege>[^)]+)\))?", re.IGNORECASE
)
_NO_FAILURE = re.compile(r"^\s*warning\b|is ok here", re.IGNORECASE)
# The text for a URL that a node could not download (pve-common: Tools.pm, download_file_from_url).
_DOWNLOAD_FAILED = "download failed"
_NEEDS_TICKET = re.compile(r"URI '(?P<uri>[^']+)' not available with API token", re.IGNORECASE)
_NODE_IN_PATH = re.compile(r"^/nodes/(?P<node>[^/]+)(?:/|$)")

# Statuses of a request that PVE or a proxy could not forward. 595: no connection (AnyEvent::HTTP).
_GATEWAY: Mapping[int, tuple[str, bool | None]] = {
    502: ("bad gateway", None),
    503: ("service unavailable", None),
    504: ("gateway timeout", None),
    595: ("no connection", False),
    596: ("broken connection", None),
    597: ("broken answer", None),
    598: ("aborted", None),
    599: ("proxy failure", None),
}


def classify(
    method: str,
    path: str,
    status: int,
    reason: str,
    message: str = "",
    errors: Mapping[str, Any] | None = None,
) -> FleetError:
    """Return the error for an answer with that status, reason phrase, `message` and `errors` (both
    from the body).

    `path` is the path below `/api2/json`, for example `/nodes/pve1/qemu/100/config`.
    """
    parameters = {str(key): " ".join(str(value).split()) for key, value in (errors or {}).items()}
    error_text = message.strip() or reason.strip()
    common: dict[str, Any] = {
        "status": status,
        "method": method,
        "path": path,
        "answer": error_text,
        "dispatched": True,
    }
    if status == 401:
        return _unauthenticated(error_text, common)
    if status in _GATEWAY:
        return _not_passed_on(status, path, error_text, common)
    if parameters:
        common["parameters"] = parameters
        common["answer"] = "; ".join(f"{key}: {text}" for key, text in parameters.items())
        error_text = f"{error_text}\n" + "\n".join(parameters.values())
    if status == 501:
        return NotSupported(
            **common,
            reason="unknown call",
            next_step="Check the version of PVE: it does not know this call",
        )
    where = "read" if method == "GET" else "answer"
    found = (
        _from_table(error_text, path, where, common)
        if status != 403 or "(pool '" in error_text
        else None
    )
    if found is not None:
        return found
    # while it holds a lock, PVE wraps the refusal into a 500
    if status == 403 or _CHECK_FAILED.search(error_text):
        return _forbidden(error_text, common)
    if status == 400:
        return ValidationFailed(
            **common,
            reason="refused parameter" if parameters else "bad request",
            next_step=f"Correct {', '.join(sorted(parameters))}"
            if parameters
            else "Check the input",
        )
    if status == 404:
        return ConfigurationError(
            **common,
            reason="not the API",
            next_step="Check the endpoint: this is not the API of Proxmox VE",
        )
    return ApiError(
        **common, reason=error_text.splitlines()[0] if error_text else f"status {status}"
    )


def classify_task(
    exitstatus: str, log: Sequence[str] = (), *, upid: str = "", path: str = ""
) -> FleetError:
    """Return the error for a task that ended with that exit status.

    `log` are the lines of its log; the error contains the last ones.
    """
    error_text = exitstatus.strip()
    common: dict[str, Any] = {
        "answer": error_text or "the task ended without an exit status",
        "upid": upid,
        "path": path,
        "log": tuple(log[-LOG_LINES:]),
        "dispatched": True,
    }
    found = _from_table(error_text, path, "task", common) or _no_room(log, path, common)
    if found is not None:
        return found
    step = "The log of the task tells more: error.log has the end of it"
    failed = DownloadFailed if _DOWNLOAD_FAILED in error_text else TaskFailed
    return failed(
        **common,
        reason=error_text.splitlines()[0] if error_text else "no exit status",
        next_step=step,
    )


def _no_room(log: Sequence[str], path: str, common: Mapping[str, Any]) -> FleetError | None:
    """Return the error of a task if only its log shows that a storage or a node has no room.

    The exit status is then the whole failed command, or "QEMU exited with code 1". Two lines do not
    count as errors: LVM warns of thin pools that could become full, and pve-storage (LVMPlugin.pm)
    notes a full device that it tried to use.
    """
    for line in reversed(log):
        if _NO_FAILURE.search(line):
            continue
        found = _from_table(line, path, "task", common)
        if isinstance(found, QuotaExceeded):
            return found.on(answer=f"{common['answer']} ({line.strip()})")
    return None


def _from_table(
    error_text: str, path: str, where: str, common: Mapping[str, Any]
) -> FleetError | None:
    """Return the error of the first row of the table that matches."""
    error_text = error_text[:_LONGEST]
    for row in _TEXTS:
        if where not in _PLACES[row.where] or not re.search(row.path, path):
            continue
        # compiled when first needed: most runs have no error
        match = re.search(row.pattern, error_text, re.IGNORECASE)
        if match is None:
            continue
        names = {key: value or "" for key, value in match.groupdict().items()}
        more = dict(common)
        if issubclass(row.category, NetworkError):
            more["dispatched"] = None
        return row.category(
            **more, reason=row.reason.format(**names), next_step=row.next_step.format(**names)
        )
    return None


def _unauthenticated(error_text: str, common: Mapping[str, Any]) -> FleetError:
    """Return the error for a 401; PVE checks credentials first, so nothing was done."""
    text = error_text.lower()
    if "csrf" in text:
        reason, step = "csrf token", "Log in again: the CSRF token does not belong to the ticket"
    elif "no ticket" in text:
        reason, step = "no credentials sent", "Give token_id and token_secret, or user and password"
    elif "ticket" in text:
        reason, step = "ticket", "Log in again: the ticket is wrong or older than two hours"
    elif common["path"] == "/access/ticket":
        reason, step = (
            "user or password",
            "Check user (with its realm, as in root@pam) and password",
        )
    elif "expired" in text:
        reason, step = "expired", "Renew the token or the user's account"
    else:
        reason, step = (
            "token or ticket",
            "Check that the token exists, its secret is right and it has not expired",
        )
    return AuthenticationError(**common, reason=reason, next_step=step)


def _forbidden(error_text: str, common: Mapping[str, Any]) -> FleetError:
    """Return the error for a 403, which names the privilege and the path."""
    ticket = _NEEDS_TICKET.search(error_text)
    if ticket is not None:
        return PermissionDenied(
            **common,
            reason="needs a password login",
            next_step="Use user and password: PVE allows no token here",
        )
    match = _CHECK_FAILED.search(error_text)
    if match is None or not match.group("privilege"):
        return PermissionDenied(
            **common,
            reason="permission",
            next_step="Ask for a role that allows this, on the path of the object",
        )
    where = match.group("path") or "/"
    privilege, _unused, purpose = match.group("privilege").partition(" for ")
    names = " or ".join(privilege.split("|"))
    details = {"privilege": privilege, "acl_path": where}
    step = f"Give the user (and the token, if its privileges are separated) {names} on {where}"
    if purpose:
        step += f", which PVE asks for {purpose}"
    return PermissionDenied(
        **common, reason=f"lacks {names} on {where}", next_step=step, details=details
    )


def _not_passed_on(
    status: int, path: str, error_text: str, common: Mapping[str, Any]
) -> FleetError:
    """Return the error for a request that did not reach the node that should answer it."""
    reason, dispatched = _GATEWAY[status]
    node = _NODE_IN_PATH.match(path)
    more = {**common, "dispatched": dispatched, "answer": f"{error_text or reason} ({status})"}
    if status == 595 and node is not None:
        name = node.group("node")
        return NodeUnreachable(
            **{**more, "answer": f"node {name} is offline or unreachable: {more['answer']}"},
            reason="node unreachable",
            next_step=f"Check node {name}, or work on another node",
            details={"node": name},
        )
    return NetworkError(
        **more, reason=reason, next_step="Check the node and the proxies on the way, then try again"
    )


def lock_in(error: Locked) -> str:
    """Return the lock of a guest that this error names, or an empty text (pure)."""
    found = _LOCK.fullmatch(error.reason)
    return found[1] if found else ""


def node_in(error: FleetError) -> str:
    """Return the node that has the guest with a taken VMID, or an empty text: PVE names it for
    creations and restores, but not for clones (pure).
    """
    found = _NODE_OF_GUEST.search(error.answer)
    return found[1] if found else ""
