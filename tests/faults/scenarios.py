"""How each write comes about: what is there before, and the task that makes the write.

Every place in the collection that makes a request which writes has at least one scenario whose
fault-free run comes by there; a test compares (`test_fault_table.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.modules.access_lab import with_directory
from tests.modules.estate_lab import Lab

NAME, TENANT = "subject", "acme"
MINE = f"tenant_{TENANT}"
VMID = 20100  # of a subject that is there before
# A virtual second costs nothing, but a test must end.
LIMITS = {"task_timeout": 60, "lock_timeout": 20}

ISO_URL = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
_GRANT = {"user": "ops@pve", "role": "PVEVMUser"}
_DOWNLOAD = {"storage": "local", "node": "pve1", "content": "import", "source_url": ISO_URL}

BLANK: Mapping[str, Any] = {
    "node": "pve2",
    "name": NAME,
    "tags": [MINE],
    "config": {
        "cores": 1,
        "memory": 512,
        "scsihw": "virtio-scsi-single",
        "scsi0": f"ceph:vm-{VMID}-disk-0,size=2G",
        "scsi1": f"ceph:vm-{VMID}-disk-1,size=1G",
        "net0": "virtio,bridge=vmbr0",
        "description": "kept",
        "ostype": "l26",
    },
}


@dataclass(frozen=True)
class Scenario:
    """A task and what is there before it.

    `there` are VMs, as entries of a cluster file, by number. `before` are tasks that are done by
    our own modules. `name` and `tenant` say whose VM it is about; without a name it is about none.
    """

    key: str
    module: str
    options: Mapping[str, Any]
    there: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    before: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    name: str | None = NAME
    tenant: str | None = TENANT

    def prepare(self, lab: Lab) -> None:
        """Make what is there before."""
        for vmid, entry in {**BYSTANDERS, **self.there}.items():
            lab.simulator.ask("POST", f"/vms/{vmid}", dict(entry))
        if self.module == "realm_sync":
            with_directory(lab.client, lab.simulator)
        for module, options in self.before:
            result = lab.run(module, **options)
            assert not result.get("failed"), (self.key, result)


def machine(running: bool = False, **config: Any) -> dict[int, dict[str, Any]]:
    """Return the subject as it is before, with other options; None takes one away."""
    merged = {**BLANK["config"], **config}
    merged = {key: value for key, value in merged.items() if value is not None}
    return {VMID: {**BLANK, "running": running, "config": merged}}


def bystander(vmid: int, tenant: str, name: str, node: str) -> dict[str, Any]:
    """Return a VM that no scenario is about."""
    config = {"cores": 1, "scsi0": f"ceph:vm-{vmid}-disk-0,size=1G", "description": f"of {tenant}"}
    return {"node": node, "name": name, "tags": [f"tenant_{tenant}"], "config": config}


# The tenant's other VM, and another tenant's VM of the subject's name.
BYSTANDERS: Mapping[int, Mapping[str, Any]] = {
    20101: bystander(20101, TENANT, "neighbour", "pve1"),
    20102: bystander(20102, "globex", NAME, "pve3"),
}


def vm(key: str, there: Mapping[int, Mapping[str, Any]] | None = None, **options: Any) -> Scenario:
    """Return a scenario of module vm for the subject."""
    whole = {"name": NAME, "tenant": TENANT, **LIMITS, **options}
    return Scenario(key, "vm", whole, there or {})


def snapshot(key: str, *before: str, running: bool = False, **options: Any) -> Scenario:
    """Return a scenario of module snapshot for the subject; `before` are snapshots it has."""
    choice = {"name": NAME, "tenant": TENANT, **LIMITS}
    taken = tuple(("snapshot", {**choice, "snapshot": name}) for name in before)
    whole = {**choice, **options}
    return Scenario(key, "snapshot", whole, machine(running), before=taken)


def pool(key: str, *before: Mapping[str, Any], **options: Any) -> Scenario:
    """Return a scenario of module pool."""
    tasks = tuple(("pool", {"name": "faulty", **one}) for one in before)
    return Scenario(key, "pool", {"name": "faulty", **options}, before=tasks, name=None)


def access(key: str, module: str, *before: Mapping[str, Any], **options: Any) -> Scenario:
    """Return a scenario of a module for users and rights; `before` are tasks of that module."""
    tasks = tuple((module, one) for one in before)
    return Scenario(key, module, options, before=tasks, name=None)


def download(key: str, *before: Mapping[str, Any], **options: Any) -> Scenario:
    """Return a scenario of module storage_download."""
    tasks = tuple(("storage_download", {**_DOWNLOAD, **one}) for one in before)
    whole = {**_DOWNLOAD, "task_timeout": 60, **options}
    return Scenario(key, "storage_download", whole, before=tasks, name=None)


SCENARIOS: tuple[Scenario, ...] = (
    vm(
        "clone",
        source="debian-13",
        node="pve1",
        cores=3,
        disks=[{"name": "scsi0", "size": "9G"}],
        cloud_init={"user": "ops"},
        pool="acme",
        state="started",
    ),
    vm("full clone elsewhere", source="debian-13", node="pve2", full=True),
    vm("create", node="pve1", disks=[{"size": 2, "storage": "ceph"}], cores=2, state="started"),
    vm("create a template", node="pve1", disks=[{"size": 2}], state="template"),
    vm("change", machine(), cores=4, description="changed", disks=[{"name": "scsi2", "size": 1}]),
    vm("change while it runs", machine(True), cores=4, nics=[{"name": "net1", "bridge": "vmbr1"}]),
    vm("change and reboot", machine(True), cpu="host", reboot="always"),
    vm("grow", machine(), disks=[{"name": "scsi0", "size": "5G"}]),
    vm("move a disk", machine(), disks=[{"name": "scsi1", "storage": "local-lvm"}]),
    vm("move and grow", machine(), disks=[{"name": "scsi1", "storage": "local-lvm", "size": "4G"}]),
    vm("remove a disk", machine(), disks=[{"name": "scsi1", "state": "absent"}]),
    vm(
        "remove a disk of a protected VM",
        machine(protection="1"),
        disks=[{"name": "scsi1", "state": "absent"}],
        protection=False,
    ),
    vm("put into a pool", machine(), pool="acme"),
    vm("migrate", machine(), node="pve1", migrate=True),
    vm("migrate while it runs", machine(True), node="pve1", migrate=True),
    vm("start", machine(), state="started"),
    vm("stop", machine(True), state="stopped", force=True),
    vm("shut down", machine(True), state="stopped"),
    vm("restart", machine(True), state="restarted"),
    vm("restart by force", machine(True), state="restarted", force=True, graceful=False),
    vm("reset", machine(True), state="reset"),
    vm("pause", machine(True), state="paused"),
    vm("hibernate", machine(True), state="hibernated"),
    vm("convert into a template", machine(), state="template"),
    vm("complete a template", machine(template="1"), state="template"),
    vm(
        "cloud-init of a running VM",
        machine(True, ide2="ceph:vm-20100-cloudinit,media=cdrom", ciuser="old"),
        cloud_init={"user": "new"},
    ),
    vm("remove", machine(), state="absent"),
    vm("remove a running VM", machine(True), state="absent", force=True),
    vm("remove a protected VM", machine(protection="1"), state="absent", protection=False),
    vm(
        "complete an unfinished VM",
        machine(description="<!-- pve.fleet: origin=9000 run=gone tenant=tenant_acme -->"),
        source="debian-13",
        cores=5,
    ),
    Scenario(
        "clone by module clone",
        "clone",
        {"name": NAME, "source": "debian-13", "tenant": TENANT, **LIMITS},
    ),
    Scenario(
        "a list",
        "vms",
        {
            "vms": [
                {"name": NAME, "source": "debian-13", "node": "pve1", "cores": 3},
                {"name": "neighbour", "cores": 2},
            ],
            "tenant": TENANT,
            **LIMITS,
        },
    ),
    Scenario(
        "a list that prunes",
        "vms",
        {"vms": [{"name": "neighbour"}], "tenant": TENANT, "prune": True, **LIMITS},
        machine(),
    ),
    Scenario(
        "remove an abandoned VM",
        "tidy",
        {"tenant": TENANT, **LIMITS},
        machine(description="<!-- pve.fleet: origin=9000 run=gone tenant=tenant_acme -->"),
    ),
    snapshot("take a snapshot", snapshot="one"),
    snapshot("take a snapshot with memory", running=True, snapshot="one", vmstate=True),
    snapshot("describe a snapshot", "one", snapshot="one", description="another"),
    snapshot("remove a snapshot", "one", snapshot="one", state="absent"),
    snapshot("roll back", "one", running=True, snapshot="one", state="rolled_back", restart=True),
    Scenario(
        "roll back to before the tenant",
        "snapshot",
        {"name": NAME, "tenant": TENANT, "snapshot": "one", "state": "rolled_back", **LIMITS},
        {VMID: {**BLANK, "tags": ["old"]}},
        before=(
            ("snapshot", {"vmid": VMID, "snapshot": "one"}),
            ("vm", {"vmid": VMID, "tenant": TENANT, "adopt": True}),
        ),
    ),
    pool("create a pool", comment="c", storages=["ceph"]),
    pool("change a pool", {"comment": "a"}, comment="b", vms=[20101]),
    pool("take out of a pool", {"storages": ["ceph", "local"]}, storages=["local"], exact=True),
    pool("delete a pool", {"storages": ["ceph"]}, state="absent", force=True),
    access("create a group", "group", name="faulty", comment="c"),
    access("change a group", "group", {"name": "faulty"}, name="faulty", comment="c"),
    access("delete a group", "group", {"name": "faulty"}, name="faulty", state="absent"),
    access("create a role", "role", name="Faulty", privileges=["VM.Audit"]),
    access(
        "change a role",
        "role",
        {"name": "Faulty", "privileges": ["VM.Audit"]},
        name="Faulty",
        privileges=["VM.Console"],
    ),
    access("create a user", "user", name="faulty@pve", comment="c"),
    access("change a user", "user", {"name": "faulty@pve"}, name="faulty@pve", enabled=False),
    access("delete a user", "user", {"name": "faulty@pve"}, name="faulty@pve", state="absent"),
    access("grant", "acl", path="/pool/acme", grants=[_GRANT]),
    access(
        "take a grant away",
        "acl",
        {"path": "/pool/acme", "grants": [_GRANT]},
        path="/pool/acme",
        grants=[_GRANT],
        state="absent",
    ),
    access(
        "register a tag",
        "cluster_options",
        {"registered_tags": ["other"], "bwlimit": {"clone": "1000"}},
        registered_tags=["faulty"],
        tag_style={"color_map": {"faulty": "ff0000"}},
        bwlimit={"clone": ""},
    ),
    access(
        "take a registered tag out",
        "cluster_options",
        {"registered_tags": ["faulty", "other"]},
        registered_tags=["faulty"],
        state="absent",
    ),
    access("synchronize a realm", "realm_sync", name="ldap", scope="both", task_timeout=60),
    access("create a token", "token", owner="ops@pve", name="faulty", comment="c"),
    access(
        "change a token",
        "token",
        {"owner": "ops@pve", "name": "faulty"},
        owner="ops@pve",
        name="faulty",
        comment="c",
    ),
    access(
        "rotate a token",
        "token",
        {"owner": "ops@pve", "name": "faulty"},
        owner="ops@pve",
        name="faulty",
        state="rotated",
    ),
    access(
        "delete a token",
        "token",
        {"owner": "ops@pve", "name": "faulty"},
        owner="ops@pve",
        name="faulty",
        state="absent",
    ),
    download("download", filename="f.qcow2"),
    download("remove a download", {"filename": "f.qcow2"}, filename="f.qcow2", state="absent"),
)
