"""The origin of each write: the cluster before, and the task that makes the write.

Every place in the collection that makes a write request has at least one scenario whose fault-free
run uses it; a test compares (`test_fault_table.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.certificates import some_certificate
from tests.modules.access_lab import with_directory
from tests.modules.estate_lab import Lab
from tests.own_files import OWN_FILES, own_file
from tests.simulator.identity.acme_accounts import TERMS
from tests.tools.declarations import load
from tests.tools.sections import sections_of

NAME, TENANT = "subject", "acme"
MINE = f"tenant_{TENANT}"
VMID = 20100  # of a subject that is there before
# A virtual second costs nothing, but a test must end.
LIMITS = {"task_timeout": 60, "lock_timeout": 20}

ISO_URL = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
_GRANT = {"user": "ops@pve", "role": "PVEVMUser"}
_SID = "vm:20101"
_RESOURCE = ("ha_resource", {"sid": _SID, "request_state": "stopped"})
_PLACE = {"name": "faulty", "type": "node-affinity", "nodes": ["pve1"], "resources": [_SID]}
_RULE = ("ha_rule", _PLACE)
_UPLOAD = {"storage": "local", "node": "pve1", "src": __file__, "filename": "faulty.iso"}
_COPY = {
    "source_volume": "local:iso/faulty.iso",
    "source_node": "pve1",
    "node": "pve2",
    "token_id": None,  # Proxmox VE copies for root@pam with a password only
    "token_secret": None,
    "user": "root@pam",
    "password": "fleetpw123",
}
_DATA = {"volume": f"ceph:vm-{VMID}-kept", "node": "pve1", "vmid": VMID, "size": "2G"}
_DISK: Mapping[str, Any] = {"volume": "local-lvm:vm-20999-faulty", "node": "pve1"}
_CT_SOURCE = "debian-13-standard"
_CT_NEW: Mapping[str, Any] = {"default_storage": "ceph", "cores": 1}
# A template of containers, and the options of a mount point beside the root file system.
CT_TEMPLATE = 9010
_CT_MOUNT = f"ceph:vm-{VMID}-disk-1,mp=/data,size=1G"
_ON_PVE2 = {"node": "pve2"}
_CEPH_POOL = {"name": "faulty", "node": "pve1"}
_STORAGE = {"name": "faulty", "type": "dir", "path": "/srv/faulty"}
_JOB = {"name": "faulty", "schedule": "02:30", "all": True, "storage": "local"}
_SAVED = {"vms": [{"name": "neighbour"}], "tenant": TENANT}
_SERVER = {"name": "faulty", "type": "graphite", "server": "10.99.0.50", "server_port": 2003}
_INFLUX = {**_SERVER, "type": "influxdb", "token": "first"}
_CERTIFICATE = {
    "node": "pve1",
    "certificates": some_certificate(),
    "private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
}
ROOT = {"token_id": "", "token_secret": "", "user": "root@pam", "password": "fleetpw123"}
_SERVICE = {"node": "pve1", "name": "postfix"}
_TANK = {
    "node": "pve1",
    "type": "zfs",
    "name": "tank",
    "raidlevel": "mirror",
    "disks": ["/dev/sdb", "/dev/sdc"],
}
_NO_TANK = {"node": "pve1", "type": "zfs", "name": "tank", "state": "absent", "confirm": "tank"}
_UNUSED = {"node": "pve1", "disk": "/dev/sdb"}
_WIPED = {**ROOT, "state": "wiped"}
_OSD = {**ROOT, "node": "pve1", "dev": "/dev/sdb"}
_STOPPED = {"in": False, "running": False}
_ACCOUNT = {**ROOT, "name": "faulty", "contact": ["ops@example.com"], "tos_url": TERMS}
_DOMAIN = {"node": "pve1", "acme": {"domains": [{"domain": "pve1.lab.example.com"}]}}
_SUBSCRIPTION = {"node": "pve1", "key": "pve1c-0123456789"}
_MAIL = {"type": "sendmail", "name": "faulty", "mailto": ["ops@example.com"]}
_RESTORE = {"vmid": 20101, "tenant": TENANT, "new_name": NAME}
_SUBJECT = {"vmid": VMID, "tenant": TENANT}
_IN_PLACE = {**_SUBJECT, "confirm": NAME, **LIMITS, "options": {"cores": 2}}
_BACKED_UP = (("backup", {**_SUBJECT, "storage": "local"}),)
# An archive with a fixed name: the name of an archive of `before` has the second of its backup.
_ARCHIVE = f"local:backup/vzdump-qemu-{VMID}-2026_11_20-12_00_00.vma.zst"
_ARCHIVED = {
    "kind": "qemu",
    "conf": {
        "name": NAME,
        "tags": MINE,
        "memory": "512",
        "scsi0": f"ceph:vm-{VMID}-disk-0,size=2G",
        "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
    },
    "disks": {"scsi0": {"storage": "ceph", "fmt": "raw", "size": 2 << 30}},
}
_RUN = "00ff00"
_DRILL = {
    "run": _RUN,
    "guests": [{"vmid": VMID, "archive": _ARCHIVE}],
    "node": "pve1",
    "settle": 0,
    "task_timeout": LIMITS["task_timeout"],
}
_FAILOVER = {
    "storages": ["local"],
    "vms": [NAME],
    "lost": True,
    "pools": {TENANT: "acme"},
    "node": "pve2",
    "vmid_range": [20150, 20199],
    "settle": 0,
    "task_timeout": LIMITS["task_timeout"],
}
_EVACUATION = {"node": "pve2", "wait_timeout": 30, **LIMITS}
_STOP = {"state": "stopped", "tenants": [TENANT], "shutdown_timeout": 30, "task_timeout": 60}
_TENANT = {"name": "initech", "credentials_file": f"{OWN_FILES}.sites.yml"}
_NETWORK = {
    "zones": [{"name": "faulty", "type": "simple"}],
    "vnets": [{"name": "faulty0", "zone": "faulty"}],
    "subnets": [{"cidr": "10.77.0.0/24", "vnet": "faulty0", "gateway": "10.77.0.1"}],
}
_FABRIC = {
    "fabrics": [{"name": "faulty", "protocol": "openfabric", "ip_prefix": "10.78.0.0/24"}],
    "fabric_nodes": [{"fabric": "faulty", "node": "pve1", "ip": "10.78.0.1"}],
}
_NO_NETWORK = {
    "zones": [{"name": "faulty", "state": "absent"}],
    "vnets": [{"name": "faulty0", "state": "absent"}],
    "subnets": [{"cidr": "10.77.0.0/24", "vnet": "faulty0", "state": "absent"}],
}
_GROUP = {"scope": "group", "group": "faulty"}
_SSH = {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22"}
_WEB = {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "443"}
_NAMES = {
    "aliases": [{"name": "faultyhost", "cidr": "192.0.2.1"}],
    "ip_sets": [{"name": "faultyset", "members": [{"cidr": "192.0.2.2"}]}],
}
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
    """A task and the cluster before it.

    `there` are VMs, as entries of a cluster file, by VMID, and `containers` are containers.
    `before` are tasks done by our own modules. `name` and `tenant` identify the guest of the task;
    without a name it concerns none. `archives` has the content of archives by volume. `ending` are
    options that the task has in the run after the fault, by default none: then it is the same task.
    """

    key: str
    module: str
    options: Mapping[str, Any]
    there: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    before: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    name: str | None = NAME
    tenant: str | None = TENANT
    containers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    archives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ending: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last_options(self) -> dict[str, Any]:
        """The options of the run after the fault."""
        return {**self.options, **self.ending}

    def prepare(self, lab: Lab) -> None:
        """Create the VMs and run the tasks that come before."""
        for vmid, entry in {**BYSTANDERS, **self.there}.items():
            lab.simulator.ask("POST", f"/vms/{vmid}", dict(entry))
        for vmid, entry in self.containers.items():
            lab.simulator.ask("POST", f"/containers/{vmid}", dict(entry))
        for volume, content in self.archives.items():
            data = {"volid": volume, "new": True, "size": 1 << 30, "archive": content}
            lab.simulator.ask("PUT", "/volumes/pve1", data)
        if self.module in ("realm_sync", "realm_sync_job"):
            with_directory(lab.client, lab.simulator)
        if self.module.startswith("ceph_") and not self.module.endswith("_info"):
            lab.simulator.ask("PUT", "/cluster", {"ceph": {}})
        for module, options in self.before:
            if "credentials_file" in options:  # of another run on a cluster that is reset
                own_file(options["credentials_file"]).unlink(missing_ok=True)
            result = lab.run(module, **options)
            assert not result.get("failed"), (self.key, result)
        if "apply_plan" in self.options:
            task = {**self.options, "plan_file": self.options["apply_plan"]}
            del task["apply_plan"]
            own_file(task["plan_file"]).unlink(missing_ok=True)
            result = lab.run(self.module, check=True, **task)
            assert not result.get("failed"), (self.key, result)


def plan_of(key: str) -> dict[str, str]:
    """Return the option that applies a plan, which `prepare` makes: a file of this process."""
    return {"apply_plan": f"{OWN_FILES}-{key}.json"}


def machine(running: bool = False, **config: Any) -> dict[int, dict[str, Any]]:
    """Return the VM of the task in its first state, with other options; None removes an option."""
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


_LARGE = bystander(20103, TENANT, "large", "pve2")
_LARGE = {**_LARGE, "running": True, "config": {**_LARGE["config"], "memory": "16384"}}


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


def container(running: bool = False, **config: Any) -> dict[int, dict[str, Any]]:
    """Return the container of the task in its first state, with other options."""
    whole = {
        "hostname": NAME,
        "tags": MINE,
        "cores": 1,
        "memory": 512,
        "rootfs": f"ceph:vm-{VMID}-disk-0,size=2G",
        "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,type=veth",
        "unprivileged": 1,
        **config,
    }
    return {VMID: {"node": "pve2", "running": running, "config": whole}}


def container_template(**config: Any) -> dict[int, dict[str, Any]]:
    """Return a template that new containers are cloned from, with other options."""
    whole = {
        "hostname": "ct-base",
        "cores": 1,
        "memory": 512,
        "rootfs": f"ceph:base-{CT_TEMPLATE}-disk-0,size=2G",
        "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,type=veth",
        "unprivileged": 1,
        "template": 1,
        **config,
    }
    return {CT_TEMPLATE: {"node": "pve1", "config": whole}}


def root(
    key: str, *before: str, running: bool = False, state: str = "replaced", **options: Any
) -> Scenario:
    """Return a scenario of module container_image for the subject, which is of an older image;
    `before` are the states that the module has brought it to.
    """
    choice = {"name": NAME, "tenant": TENANT, "source": "golden", **LIMITS}
    there = container(running, description="<!-- pve.fleet: image=golden:1 -->")
    smaller = f"ceph:base-{CT_TEMPLATE}-disk-0,size=1G"  # the root of the holder grows
    there |= container_template(hostname="golden", tags="version-2", rootfs=smaller)
    tasks = tuple(("container_image", {**choice, "state": one}) for one in before)
    whole = {**choice, "state": state, **options}
    return Scenario(key, "container_image", whole, before=tasks, containers=there)


def of_container(
    key: str, there: Mapping[int, Mapping[str, Any]] | None = None, **options: Any
) -> Scenario:
    """Return a scenario of module container for the subject."""
    whole = {"name": NAME, "tenant": TENANT, **LIMITS, **options}
    return Scenario(key, "container", whole, containers=there or {})


def snapshot_of_container(
    key: str, *before: str, running: bool = False, **options: Any
) -> Scenario:
    """Return a scenario of module snapshot for the subject, a container."""
    choice = {"name": NAME, "tenant": TENANT, **LIMITS}
    taken = tuple(("snapshot", {**choice, "snapshot": name}) for name in before)
    there = container(running)
    return Scenario(key, "snapshot", {**choice, **options}, before=taken, containers=there)


def pool(key: str, *before: Mapping[str, Any], **options: Any) -> Scenario:
    """Return a scenario of module pool."""
    tasks = tuple(("pool", {"name": "faulty", **one}) for one in before)
    return Scenario(key, "pool", {"name": "faulty", **options}, before=tasks, name=None)


def access(subject: str, module: str, /, *before: Mapping[str, Any], **options: Any) -> Scenario:
    """Return a scenario of a module for users and rights; `before` are tasks of that module."""
    tasks = tuple((module, one) for one in before)
    return Scenario(subject, module, options, before=tasks, name=None)


def ha(key: str, module: str, *before: tuple[str, Mapping[str, Any]], **options: Any) -> Scenario:
    """Return a scenario of a module for the HA manager, or for backup jobs."""
    return Scenario(key, module, options, before=before, name=None)


def download(key: str, *before: Mapping[str, Any], **options: Any) -> Scenario:
    """Return a scenario of module storage_download."""
    tasks = tuple(("storage_download", {**_DOWNLOAD, **one}) for one in before)
    whole = {**_DOWNLOAD, "task_timeout": 60, **options}
    return Scenario(key, "storage_download", whole, before=tasks, name=None)


def declared(sections: Iterable[Mapping[str, Any]]) -> Iterator[Scenario]:
    """Yield the scenarios that follow from the key `faults` of sections."""
    for section in sections:
        if "faults" in section:
            module, faults = section["module"], section["faults"]
            noun, item = faults["noun"], faults["item"]
            keys = {key: item[key] for key in faults.get("keys", ("name",))}
            yield access(f"create {noun}", module, **item)
            yield access(f"change {noun}", module, item, **keys, **faults["change"])
            yield access(f"delete {noun}", module, item, **keys, state="absent")


GOLDEN: Mapping[str, Any] = {
    "node": "pve2",
    "name": "golden",
    "template": True,
    "tags": ["version-2"],
    "config": {"scsi0": "ceph:base-9020-disk-0,size=1G"},
}
_OLD_IMAGE = "kept\n<!-- pve.fleet: origin=9019 image=golden:1 -->"

SCENARIOS: tuple[Scenario, ...] = (
    vm(
        "replace the image",
        {9020: GOLDEN, **machine(running=True, description=_OLD_IMAGE)},
        source="golden",
        replace_image=True,
        disks=[{"name": "scsi0", "size": "2G"}],
        state="stopped",
        force=True,
    ),
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
    Scenario(
        "restore",
        "restore",
        {**_RESTORE, **LIMITS, "options": {"node": "pve1", "cores": 2, "state": "started"}},
        before=(("backup", {"vmid": 20101, "tenant": TENANT, "storage": "local"}),),
    ),
    Scenario("restore in place", "restore", _IN_PLACE, machine(), before=_BACKED_UP),
    Scenario(
        "restore in place while it runs", "restore", _IN_PLACE, machine(True), before=_BACKED_UP
    ),
    Scenario(
        "restore in place with a copy",
        "restore",
        {**_IN_PLACE, "keep": "copy", "keep_name": "faulty-before"},
        machine(),
        before=_BACKED_UP,
    ),
    Scenario(
        "drill",
        "drill",
        _DRILL,
        machine(),
        archives={_ARCHIVE: _ARCHIVED},
        name=f"drill-{VMID}-{_RUN}-{NAME}",
        tenant=None,
        ending={"state": "absent"},
    ),
    Scenario(
        "failover",
        "failover",
        _FAILOVER,
        machine(),
        before=(*_BACKED_UP, ("vm", {**_SUBJECT, "state": "absent"})),
    ),
    Scenario(
        "restore a container in place",
        "restore",
        _IN_PLACE,
        containers=container(),
        before=_BACKED_UP,
    ),
    Scenario(
        "restore a container",
        "restore",
        {**_RESTORE, "vmid": 30777, **LIMITS, "storage": "ceph", "options": {"cores": 2}},
        containers={
            30777: container(hostname="other", rootfs="ceph:vm-30777-disk-0,size=2G")[VMID]
        },
        before=(("backup", {"vmid": 30777, "tenant": TENANT, "storage": "local"}),),
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
    vm(
        "move a disk to another VM",
        {**machine(), 20110: bystander(20110, TENANT, "receiver", "pve2")},
        disks=[{"name": "scsi1", "state": "moved", "target_vmid": 20110}],
    ),
    replace(
        vm("attach a volume", machine(), disks=[{"name": "scsi5", "volume": _DATA["volume"]}]),
        before=(("volume", _DATA),),
    ),
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
    replace(
        vm(
            "migrate to a node with another storage",
            machine(),
            node="pve1",
            migrate=True,
            disks=[{"name": "scsi5", "storage": "there"}],
        ),
        before=(
            ("storage", {"name": "here", "type": "dir", "path": "/srv/here", "nodes": ["pve2"]}),
            ("storage", {"name": "there", "type": "dir", "path": "/srv/there", "nodes": ["pve1"]}),
            ("vm", {**_SUBJECT, "disks": [{"name": "scsi5", "storage": "here", "size": 1}]}),
        ),
    ),
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
    vm(
        "move the cloud-init drive to another slot",
        machine(ide2="ceph:vm-20100-cloudinit,media=cdrom", ciuser="ops"),
        cloud_init={"drive": "sata1"},
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
        "clone a container by module clone",
        "clone",
        {"name": NAME, "source": "ct-base", "tenant": TENANT, "memory": "1G", **LIMITS},
        containers=container_template(),
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
        "an approved list",
        "vms",
        {
            "vms": [
                {"name": NAME, "source": "debian-13", "node": "pve1", "cores": 3},
                {"name": "neighbour", "cores": 2},
            ],
            "tenant": TENANT,
            **plan_of("list"),
            **LIMITS,
        },
    ),
    ha(
        "an approved tenant",
        "tenant",
        ("tenant", _TENANT),
        **_TENANT,
        comment="of the plan",
        storages=["ceph"],
        **plan_of("tenant"),
    ),
    Scenario(
        "an approved evacuation",
        "evacuation",
        {**_EVACUATION, **plan_of("evacuation")},
        machine(True),
    ),
    Scenario(
        "an approved image",
        "vms",
        {
            "vms": [
                {
                    "name": NAME,
                    "source": "golden",
                    "replace_image": True,
                    "disks": [{"name": "scsi0", "size": "2G"}],
                    "state": "started",
                    "force": True,
                }
            ],
            "tenant": TENANT,
            **plan_of("image"),
            **LIMITS,
        },
        {9020: GOLDEN, **machine(running=True, description=_OLD_IMAGE)},
    ),
    root("an approved image of a container", running=True, start=True, **plan_of("root")),
    Scenario(
        "an approved return",
        "evacuation",
        {**_EVACUATION, "state": "returned", **plan_of("return")},
        machine(True),
        before=(("evacuation", _EVACUATION),),
    ),
    Scenario(
        "an approved failover",
        "failover",
        {**_FAILOVER, **plan_of("failover")},
        machine(),
        before=(*_BACKED_UP, ("vm", {**_SUBJECT, "state": "absent"})),
    ),
    Scenario("an approved stop", "power", {**_STOP, **plan_of("power")}, machine(True)),
    ha(
        "an approved cluster file",
        "cluster",
        groups=[{"name": "faultygroup", "comment": "of the plan"}],
        pools=[{"name": "faultypool"}],
        **plan_of("cluster"),
    ),
    Scenario(
        "a list that prunes",
        "vms",
        {"vms": [{"name": "neighbour"}], "tenant": TENANT, "prune": True, **LIMITS},
        machine(),
    ),
    ha(
        "backup jobs of an estate",
        "vms",
        ("vms", {**_SAVED, "backup": {"schedule": "*/6:00", "storage": "local"}}),
        **_SAVED,
        backup={"schedule": "02:30", "storage": "local"},
        **LIMITS,
    ),
    Scenario(
        "remove an abandoned VM",
        "tidy",
        {"tenant": TENANT, **LIMITS},
        machine(description="<!-- pve.fleet: origin=9000 run=gone tenant=tenant_acme -->"),
    ),
    Scenario("evacuate a node", "evacuation", _EVACUATION, machine(True)),
    Scenario(
        "return to a node",
        "evacuation",
        {**_EVACUATION, "state": "returned"},
        machine(True),
        before=(("evacuation", _EVACUATION),),
    ),
    Scenario("name the next node", "evacuation", {**_EVACUATION, "state": "next"}, machine()),
    Scenario(
        "move a guest to use the nodes evenly",
        "rebalance",
        {"max_moves": 1, "threshold": 0, **LIMITS},
        {**machine(True, memory="4096"), 20103: _LARGE},
        ending={"task_timeout": 600},  # it waits for the move that a killed run has left
    ),
    Scenario("stop a tenant's guests", "power", _STOP, machine(True)),
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
    access("create networks", "sdn", **_NETWORK),
    access("change a network", "sdn", _NETWORK, vnets=[{"name": "faulty0", "alias": "new"}]),
    access("remove networks", "sdn", _NETWORK, **_NO_NETWORK),
    access("create a fabric", "sdn", **_FABRIC),
    access("change a fabric", "sdn", _FABRIC, fabrics=[{"name": "faulty", "hello_interval": 5}]),
    access("remove a fabric", "sdn", _FABRIC, fabrics=[{"name": "faulty", "state": "absent"}]),
    root("replace the root of a container", running=True, state="replaced"),
    root("take the root of a container back", "replaced", state="returned"),
    root("confirm the root of a container", "replaced", state="confirmed"),
    of_container("create a container", source=_CT_SOURCE, **_CT_NEW),
    of_container("create a running container", source=_CT_SOURCE, state="started", **_CT_NEW),
    of_container("change a container", container(), cores=2, memory="1G", description="another"),
    of_container("grow a container", container(), rootfs={"size": "3G"}),
    of_container("start a container", container(), state="started"),
    of_container("stop a container", container(running=True), state="stopped"),
    of_container(
        "restart a container for a change",
        container(running=True),
        features={"nesting": True},
        reboot="if_needed",
    ),
    of_container("restart a container", container(running=True), state="restarted"),
    of_container(
        "restart a container by force", container(running=True), state="restarted", force=True
    ),
    of_container("migrate a container", container(), node="pve1", migrate=True),
    of_container(
        "migrate a container while it runs", container(running=True), node="pve1", migrate=True
    ),
    Scenario(
        "move a volume to another container",
        "container",
        {
            "name": NAME,
            "tenant": TENANT,
            "mounts": [{"name": "mp0", "state": "moved", "target_vmid": 20111}],
            **LIMITS,
        },
        containers={
            **container(mp0=_CT_MOUNT),
            20111: container(hostname="receiver", rootfs="ceph:vm-20111-disk-0,size=1G")[VMID],
        },
    ),
    of_container("move a root file system", container(), rootfs={"storage": "local-lvm"}),
    of_container(
        "move and grow a mount point",
        container(mp0=_CT_MOUNT),
        mounts=[{"name": "mp0", "storage": "local-lvm", "size": "3G"}],
    ),
    of_container(
        "remove a mount point",
        container(mp0=_CT_MOUNT),
        mounts=[{"name": "mp0", "state": "absent"}],
    ),
    of_container("convert a container into a template", container(), state="template"),
    of_container("clone a container", container_template(), source="ct-base", cores=2),
    of_container(
        "clone a container in full",
        container_template(),
        source="ct-base",
        full=True,
        node="pve2",
        state="started",
    ),
    of_container("remove a container", container(running=True), state="absent", force=True),
    snapshot_of_container("take a snapshot of a container", snapshot="one"),
    snapshot_of_container("remove a container's snapshot", "one", snapshot="one", state="absent"),
    snapshot_of_container(
        "roll a container back", "one", running=True, snapshot="one", state="rolled_back"
    ),
    Scenario(
        "a list of both kinds",
        "vms",
        {
            "vms": [{"name": "neighbour", "cores": 2}],
            "containers": [{"name": NAME, "source": _CT_SOURCE, "node": "pve1", **_CT_NEW}],
            "tenant": TENANT,
            **LIMITS,
        },
    ),
    access("create a security group", "firewall", **_GROUP, comment="c", rules=[_SSH]),
    access(
        "change a security group", "firewall", {**_GROUP, "rules": [_SSH]}, **_GROUP, rules=[_WEB]
    ),
    access(
        "remove a security group", "firewall", {**_GROUP, "rules": [_SSH]}, **_GROUP, state="absent"
    ),
    access("create aliases and sets", "firewall", scope="cluster", **_NAMES),
    access(
        "remove aliases and sets",
        "firewall",
        {"scope": "cluster", **_NAMES},
        scope="cluster",
        aliases=[],
        ip_sets=[],
        exact=True,
    ),
    access("set options of a firewall", "firewall", scope="cluster", options={"ebtables": False}),
    pool("create a pool", comment="c", storages=["ceph"]),
    pool("change a pool", {"comment": "a"}, comment="b", vms=[20101]),
    pool("take out of a pool", {"storages": ["ceph", "local"]}, storages=["local"], exact=True),
    pool("delete a pool", {"storages": ["ceph"]}, state="absent", force=True),
    access("upload a file", "volume", **_UPLOAD, task_timeout=60),
    access("copy a file", "volume", _UPLOAD, **_COPY, task_timeout=60),
    access(
        "delete a file",
        "volume",
        _UPLOAD,
        volume="local:iso/faulty.iso",
        node="pve1",
        state="absent",
    ),
    access("allocate a disk", "volume", **_DISK, vmid=20999, size="1G"),
    access(
        "delete a disk", "volume", {**_DISK, "vmid": 20999, "size": "1G"}, **_DISK, state="absent"
    ),
    access("define a storage", "storage", **_STORAGE, content=["iso"], nodes=["pve1"]),
    access("change a storage", "storage", _STORAGE, name="faulty", content=["iso"]),
    access("remove a storage", "storage", _STORAGE, name="faulty", state="absent"),
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
    ha("create an HA resource", "ha_resource", sid=_SID, request_state="stopped"),
    ha("change an HA resource", "ha_resource", _RESOURCE, sid=_SID, max_restart=2),
    ha("remove an HA resource", "ha_resource", _RESOURCE, sid=_SID, state="absent"),
    ha("create an HA rule", "ha_rule", _RESOURCE, **_PLACE),
    ha("change an HA rule", "ha_rule", _RESOURCE, _RULE, name="faulty", comment="c"),
    ha("delete an HA rule", "ha_rule", _RESOURCE, _RULE, name="faulty", state="absent"),
    access("disarm the HA manager", "ha_state", armed_state="disarmed", resource_mode="freeze"),
    access(
        "arm the HA manager",
        "ha_state",
        {"armed_state": "disarmed", "resource_mode": "ignore"},
        armed_state="armed",
    ),
    access("create a Ceph monitor", "ceph_mon", node="pve2"),
    access("delete a Ceph manager", "ceph_mgr", _ON_PVE2, **_ON_PVE2, state="absent"),
    access("create a Ceph metadata server", "ceph_mds", node="pve2"),
    access("create a Ceph OSD", "ceph_osd", **_OSD),
    access("change a Ceph OSD", "ceph_osd", _OSD, **_OSD, **_STOPPED),
    access("delete a Ceph OSD", "ceph_osd", {**_OSD, **_STOPPED}, **_OSD, state="absent"),
    access("change the flags of Ceph", "ceph_flag", flags=["noout", "noup"], exact=True),
    access("create a Ceph pool", "ceph_pool", **_CEPH_POOL, size=5, min_size=2),
    access("change a Ceph pool", "ceph_pool", _CEPH_POOL, **_CEPH_POOL, pg_num=64),
    access("delete a Ceph pool", "ceph_pool", _CEPH_POOL, **_CEPH_POOL, state="absent"),
    access("restart a service", "node_service", **_SERVICE, state="restarted"),
    access("stop a service", "node_service", **_SERVICE, state="stopped"),
    access("create a ZFS pool on disks", "disk_storage", **_TANK, add_storage=True),
    access("define the storage of a ZFS pool", "disk_storage", _TANK, **_TANK, add_storage=True),
    access("remove a ZFS pool on disks", "disk_storage", _TANK, **_NO_TANK),
    access("initialize a disk", "disk", **_UNUSED, state="initialized"),
    access("wipe a disk", "disk", **{**_UNUSED, "disk": "/dev/sde", "confirm": "E1"}, **_WIPED),
    access(
        "change the network of a node",
        "node_network",
        {"node": "pve1", "interfaces": [{"name": "vmbr7", "type": "bridge"}]},
        node="pve1",
        interfaces=[
            {"name": "vmbr8", "type": "bridge"},
            {"name": "vmbr2", "comments": "c"},
            {"name": "vmbr7", "state": "absent"},
        ],
    ),
    ha("create a backup job", "backup_job", **_JOB),
    ha("change a backup job", "backup_job", ("backup_job", _JOB), name="faulty", comment="c"),
    ha("delete a backup job", "backup_job", ("backup_job", _JOB), name="faulty", state="absent"),
    access(
        "write a token",
        "metric_server",
        _INFLUX,
        name="faulty",
        token="second",
        update_secrets="always",
    ),
    access("upload a certificate", "node_certificate", **_CERTIFICATE),
    access(
        "replace a certificate",
        "node_certificate",
        _CERTIFICATE,
        **{**_CERTIFICATE, "certificates": some_certificate()},
    ),
    access("remove a certificate", "node_certificate", _CERTIFICATE, node="pve1", state="absent"),
    access("register an account", "acme_account", **_ACCOUNT),
    access("change an account", "acme_account", _ACCOUNT, **{**_ACCOUNT, "contact": ["b@c.de"]}),
    access(
        "deactivate an account", "acme_account", _ACCOUNT, **ROOT, name="faulty", state="absent"
    ),
    ha("order a certificate", "acme_certificate", ("node", _DOMAIN), node="pve1"),
    ha(
        "revoke a certificate",
        "acme_certificate",
        ("node", _DOMAIN),
        ("acme_certificate", {"node": "pve1"}),
        node="pve1",
        state="absent",
    ),
    access("set a subscription", "subscription", **_SUBSCRIPTION),
    access(
        "replace a subscription",
        "subscription",
        _SUBSCRIPTION,
        node="pve1",
        key="pve2s-abcdef0123",
        update_secrets="always",
    ),
    access("remove a subscription", "subscription", _SUBSCRIPTION, node="pve1", state="absent"),
    access("create an endpoint", "notification_endpoint", **_MAIL),
    access("change an endpoint", "notification_endpoint", _MAIL, **_MAIL, comment="c", test=True),
    access("delete an endpoint", "notification_endpoint", _MAIL, **_MAIL, state="absent"),
    access("enable a repository", "apt_repository", node="pve1", handle="test"),
    access(
        "disable a repository", "apt_repository", node="pve1", handle="enterprise", state="disabled"
    ),
    access(
        "disable a repository by its URI",
        "apt_repository",
        node="pve1",
        uri="http://deb.debian.org/debian",
        state="disabled",
    ),
    access(
        "change the settings of a node",
        "node",
        node="pve1",
        description="d",
        dns={"search": "lab.test", "servers": ["10.99.0.53"]},
        hosts=[{"address": "10.99.0.60", "names": ["backup"]}],
        timezone="Europe/Vienna",
    ),
    download("download", filename="f.qcow2"),
    download("remove a download", {"filename": "f.qcow2"}, filename="f.qcow2", state="absent"),
    *declared(sections_of(load())),
)
