"""The parts of the simulated cluster: nodes, storages with volumes, virtual machines, accounts,
settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import PveError

if TYPE_CHECKING:
    from ..schema.definition import Schema
    from .contents import Contents
    from .tasks import TaskBoard

SHARED = ""  # the key of the volumes of a shared storage; local storages use the node's name


@dataclass(frozen=True, slots=True)
class ArchivedDisk:
    """A disk in an archive, with the storage and the format that it came from."""

    storage: str
    fmt: str
    size: int


@dataclass(frozen=True, slots=True)
class Archive:
    """The content of a guest's backup: its configuration without snapshots, its disks by their
    names, and its firewall.
    """

    kind: str  # qemu or lxc
    conf: dict[str, str]
    disks: dict[str, ArchivedDisk]
    firewall: dict[str, Any] | None = None


@dataclass(slots=True)
class Volume:
    """A file or block volume on a storage."""

    name: str
    content: str
    fmt: str
    size: int
    ctime: int
    vmid: int | None = None
    used: int | None = None
    parent: str | None = None
    virtual_size: int | None = None
    notes: str | None = None
    protected: bool = False
    snapshots: dict[str, int] = field(default_factory=dict)
    # the node on which a logical volume that holds a qcow2 image is active
    active: str | None = None
    archive: Archive | None = None
    contents: Contents | None = None
    # of a snapshot on a backup server: the fingerprint of its key, and the result of a verification
    encrypted: str | None = None
    verification: dict[str, str] | None = None


@dataclass(slots=True)
class Storage:
    """A storage definition and, per node or once for all, its volumes."""

    name: str
    kind: str
    config: dict[str, str]
    total: int
    base_used: int
    volumes: dict[str, dict[str, Volume]] = field(default_factory=dict)

    @property
    def content(self) -> list[str]:
        """The content types, as configured."""
        return [
            item for item in self.config.get("content", "").split(",") if item and item != "none"
        ]

    @property
    def shared(self) -> bool:
        """Whether every node sees the same volumes."""
        return self.config.get("shared") == "1" or self.kind in SHARED_KINDS

    @property
    def disabled(self) -> bool:
        """Whether it is switched off."""
        return self.config.get("disable") == "1"

    def on(self, node: str) -> dict[str, Volume]:
        """The volumes that the node sees, by name."""
        return self.volumes.setdefault(SHARED if self.shared else node, {})

    def available_on(self, node: str) -> bool:
        """Whether the definition covers the node."""
        nodes = self.config.get("nodes")
        return not nodes or node in nodes.split(",")


SHARED_KINDS = frozenset(
    {"nfs", "cifs", "cephfs", "rbd", "iscsi", "pbs", "zfs", "iscsidirect", "glusterfs"}
)
PATH_KINDS = frozenset({"dir", "nfs", "cifs", "cephfs", "btrfs", "glusterfs"})


@dataclass(slots=True)
class Run:
    """The QEMU process of a running guest."""

    pid: int
    started: float
    qmpstatus: str = "running"
    machine: str = "pc-i440fx-10.1"
    cpu: str = "kvm64,+kvm_pv_eoi,+kvm_pv_unhalt,+lahf_lm,+sep"
    frozen: bool = False
    cards: frozenset[str] = frozenset()  # PCI devices that it holds
    # drives that QEMU has let go of and the configuration still names
    lost: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Filed:
    """A guest; the configuration is kept as text, as in PVE's file."""

    vmid: int
    node: str
    conf: dict[str, str]
    pending: dict[str, str] = field(default_factory=dict)
    pending_delete: dict[str, bool] = field(default_factory=dict)
    snapshots: dict[str, dict[str, str]] = field(default_factory=dict)
    run: Run | None = None
    digest: str | None = None
    filed: tuple[dict[str, Any], ...] | None = None

    def file(self) -> None:
        """Note the content of the guest's file."""
        snapshots = {name: dict(kept) for name, kept in self.snapshots.items()}
        self.filed = (dict(self.conf), dict(self.pending), dict(self.pending_delete), snapshots)

    def read_again(self) -> None:
        """Forget changes that did not get into the file."""
        if self.filed is not None:
            self.conf, self.pending, self.pending_delete, self.snapshots = self.filed
            self.digest = None
            self.file()

    @property
    def template(self) -> bool:
        """Whether it is a template."""
        return self.conf.get("template") == "1"


@dataclass(slots=True, eq=False)
class Vm(Filed):
    """A virtual machine."""

    kind: ClassVar[str] = "qemu"
    directory: ClassVar[str] = "qemu-server"
    cloudinit: dict[str, str] | None = None
    agent: str = "running"
    acpi: bool | None = None
    quit_at: float = 0.0
    execs: dict[int, dict[str, Any]] | None = None
    # the directory in which the commands of the guest run as processes of this machine
    processes_in: str | None = None
    stuck: set[str] | None = None
    system: bool | None = None

    # data that a restore of the control plane has put aside
    aside: tuple[Any, ...] | None = None


@dataclass(slots=True, eq=False)
class Container(Filed):
    """A container."""

    kind: ClassVar[str] = "lxc"
    directory: ClassVar[str] = "lxc"
    cloudinit: ClassVar[None] = None


Guest = Vm | Container


@dataclass(slots=True)
class Report:
    """The last report of a node's status daemon about a guest.

    Pmxcfs keeps it by VMID, the guest may be gone.
    """

    name: str
    status: str
    template: int
    maxcpu: int
    maxmem: int
    maxdisk: int
    started: float
    guest_gone: float = 0.0


@dataclass(slots=True)
class NodeInfo:
    """A cluster member."""

    name: str
    nodeid: int
    ip: str
    arch: str = "x86_64"
    dbus_vmstate: bool = True  # whether it has the helper that moves tracked connections
    cpus: int = 2
    sockets: int = 1
    memory: int = 25276502016
    disk: int = 270553174016
    online: bool = True
    maintenance: bool = False
    down_at: float = 0.0
    ifaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_ifaces: dict[str, dict[str, Any]] | None = None
    # When the files with both were written.
    ifaces_written: str = "2026-01-01 00:00:00"
    new_ifaces_written: str = ""
    dns: dict[str, str] = field(default_factory=dict)
    hosts: str | None = None  # the file of hosts, if it was replaced
    timezone: str = "UTC"
    # entries of package repositories by file, as soon as they were read
    sources: dict[str, list[dict[str, Any]]] | None = None
    config: dict[str, str] = field(default_factory=dict)
    next_pid: int = 1000
    # the virtual networks that run on the node, with their zones
    vnets: dict[str, dict[str, Any]] = field(default_factory=dict)
    fingerprint: str = ""
    booted_at: float = 0.0  # 0 until its first reboot: since the cluster's own boot
    services: dict[str, str] = field(default_factory=dict)  # states of systemd by service
    version: dict[str, str] | None = None  # if it differs from the cluster's
    lost_storages: set[str] = field(default_factory=set)  # that it cannot activate
    pci: list[dict[str, Any]] = field(default_factory=list)  # as the API lists them
    usb: list[dict[str, Any]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)  # pending, as the API lists them
    disks: dict[str, dict[str, Any]] = field(default_factory=dict)  # by device path
    # pools, volume groups, thin pools and directories on disks: by kind, then by name
    on_disks: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    backup_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # /var/run/vzdump.lock
    # how it comes back from its next reboot: version, lost_storages, services, stays_down
    after_reboot: dict[str, Any] = field(default_factory=dict)

    def has_bridge(self, name: str) -> bool:
        """Whether a guest can be connected to that bridge or virtual network here."""
        return name in self.ifaces or name in self.vnets

    def mtu_of(self, name: str) -> int:
        """The MTU of a bridge: its own, or the smallest of its ports, as Linux sets it. A virtual
        network has the one of its zone (pve-network: SDN/Zones/SimplePlugin.pm, get_mtu).
        """
        if name in self.vnets:
            return int(self.vnets[name].get("mtu") or 1500)
        bridge = self.ifaces.get(name, {})
        ports = str(bridge.get("bridge_ports") or "").split()
        of_ports = [int(self.ifaces.get(port, {}).get("mtu") or 1500) for port in ports]
        return int(bridge.get("mtu") or min(of_ports, default=1500))


class Cluster:
    """The whole picture, changed by handlers and tasks."""

    def __init__(self, schema: Schema, seed: int = 0) -> None:
        self.schema = schema
        self.random = random.Random(seed)
        self.order = random.Random(seed)
        self.name = "pve"
        self.config_version = 1
        self.quorate = True
        self.quorum_lost = 0.0
        self.version = {"release": "9.2", "version": "9.2.11", "repoid": "14a22df3"}
        self.nodes: dict[str, NodeInfo] = {}
        self.local = ""
        self.storages: dict[str, Storage] = {}
        self.vms: dict[int, Vm] = {}
        self.containers: dict[int, Container] = {}
        self.pools: dict[str, dict[str, Any]] = {}
        self.options: dict[str, str] = {}
        self.acpi = True
        self.system = True
        self.ha_resources: dict[str, dict[str, Any]] = {}
        self.ha_rules: dict[str, dict[str, Any]] = {}
        self.ha_groups: dict[str, dict[str, Any]] = {}
        self.ha_awake = False
        # the mode and the state of the HA manager while it is disarmed or on its way to that
        self.ha_disarm: dict[str, str] | None = None
        # the home nodes of machines that the manager moved away for a maintenance
        self.ha_homes: dict[int, str] = {}
        # the states of machines whose moves by the HA manager have not started yet
        self.ha_moving: dict[int, str] = {}
        self.pool_of: dict[int, str] = {}
        # by VMID, and of the cluster, of nodes and of networks by their names
        self.firewalls: dict[int | str, dict[str, Any]] = {}
        self.web: dict[str, dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self.clock_ahead = 0.0  # seconds by which the control plane has put the clock forward
        self.boot_time = time.time() - 3226
        self.firmware = True
        self.kernel = "6.14.11-4-pve"
        self.qemu = "7.2.22"  # of the cluster that the facts were observed on
        self.lag = 0.0
        self.processes_in: str | None = None  # where commands of all guests run as processes
        self.list_time = 0.0
        self.cleanup = 0.0
        self.due: dict[int, float] = {}
        self.reports: dict[int, Report] = {}
        self.revision = 0
        self.loads: tuple[tuple[int, int], dict[str, tuple[float, int]]] | None = None
        self.ifupdown2 = True
        self.ha_active = True
        self.timedatectl = True
        self.realms: dict[str, dict[str, Any]] = {}
        # by realm: users with their properties, and groups with the names of their users
        self.directories: dict[str, dict[str, Any]] = {}
        # files of sections by name, such as mappings
        self.sections: dict[str, Any] = {}
        self.sync_jobs: dict[str, dict[str, Any]] = {}
        # the rows of GET /access/tfa by user
        self.second_factors: dict[str, dict[str, Any]] = {}
        # health and the flags that are set; None if Ceph is not installed
        self.ceph: dict[str, Any] | None = None
        self.servers: set[str] = set()
        # what servers offer to a scan: rows by type of storage and address
        self.offers: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.thin_pools: set[str] = set()
        self.tasks: TaskBoard

    # -- time and chance -------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the epoch, by the clock of the cluster."""
        return time.time() + self.clock_ahead

    def uuid(self) -> str:
        """A random UUID from the seeded source."""
        bits = self.random.getrandbits(128)
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[bits & 3]}{text[17:20]}-{text[20:]}"

    def mac(self) -> str:
        """A random MAC address under the cluster's prefix, which may end within an octet.

        Source: pve-common, Tools.pm, random_ether_addr.
        """
        prefix = self.options.get("mac_prefix", "BC:24:11").upper()
        whole = (len(prefix) + 1) // 3
        octets = ["00"] * whole
        octets += [f"{self.random.getrandbits(8):02X}" for _dummy in range(6 - whole)]
        return prefix + ":".join(octets)[len(prefix) :]

    # -- virtual machines ------------------------------------------------------------------------

    def vm_at(self, node: str, vmid: int) -> Vm:
        """The machine, if its configuration lies on that node."""
        vm = self.vms.get(vmid)
        if vm is None or vm.node != node:
            raise PveError(
                f"Configuration file 'nodes/{node}/qemu-server/{vmid}.conf' does not exist"
            )
        return vm

    def guest(self, vmid: int) -> Guest | None:
        """The machine or container that has the number: they share the numbers of the cluster."""
        return self.vms.get(vmid) or self.containers.get(vmid)

    def guests(self) -> list[Guest]:
        """All machines and containers."""
        return [*self.vms.values(), *self.containers.values()]

    def container_at(self, node: str, vmid: int) -> Container:
        """The container, if its configuration lies on that node.

        Source of the text: pve-guest-common, AbstractConfig.pm, load_config.
        """
        container = self.containers.get(vmid)
        if container is None or container.node != node:
            raise PveError(f"Configuration file 'nodes/{node}/lxc/{vmid}.conf' does not exist")
        return container

    def vm_found(self, node: str, vmid: int) -> Vm:
        """The machine, with the refusal of the calls that look for the file themselves."""
        vm = self.vms.get(vmid)
        if vm is None or vm.node != node:
            raise PveError(f"unable to find configuration file for VM {vmid} on node '{node}'")
        return vm

    def write(self, vm: Guest) -> None:
        """Note that the configuration changed.

        Refused without quorum, as /etc/pve is read-only then.
        """
        if not self.quorate:
            vm.read_again()
            file = f"/etc/pve/nodes/{vm.node}/{vm.directory}/{vm.vmid}.conf.tmp.1"
            raise PveError(f"unable to open file '{file}' - Permission denied")
        for conf in (vm.conf, vm.pending, *vm.snapshots.values()):
            _as_filed(conf)
        vm.file()
        vm.digest = None
        self.touch(vm.vmid)

    def touch(self, vmid: int) -> None:
        """The machine changed: listings show it when they are refreshed next."""
        self.revision += 1
        self.due.setdefault(vmid, self.now() + self.lag)

    def remove_guest(self, vmid: int, *, leaves_pool: bool = True) -> None:
        """Remove the machine or container from the cluster; its last report stays, under its
        VMID.
        """
        self.vms.pop(vmid, None)
        self.containers.pop(vmid, None)
        self.firewalls.pop(vmid, None)
        self.due.pop(vmid, None)
        report = self.reports.get(vmid)
        if report is not None and not report.guest_gone:
            report.guest_gone = self.now()
        pool = self.pool_of.pop(vmid, None) if leaves_pool else None
        if pool in self.pools:
            self.pools[pool]["vms"].pop(vmid, None)
        self.revision += 1

    def digest(self, vm: Guest) -> str:
        """SHA1 over the configuration as PVE's file would have it."""
        if vm.digest is None:
            vm.digest = hashlib.sha1(config_text(vm).encode(), usedforsecurity=False).hexdigest()
        return vm.digest

    def check_quorum(self) -> None:
        """Refuse an operation that needs a writable cluster filesystem."""
        if not self.quorate:
            raise PveError("cluster not ready - no quorum?")

    def check_cfs(self, file: str, prefix: str = "") -> None:
        """Refuse a change of a cluster-wide file without quorum."""
        if not self.quorate:
            raise PveError(f"{prefix}cfs-lock 'file-{file}' error: no quorum!")

    def storage(self, name: str) -> Storage:
        """The storage definition."""
        storage = self.storages.get(name)
        if storage is None:
            raise PveError(f"storage '{name}' does not exist")
        return storage

    def vms_on(self, node: str) -> Iterator[Vm]:
        """The machines whose configuration lies on the node."""
        return (vm for vm in self.vms.values() if vm.node == node)


def _as_filed(conf: dict[str, str]) -> None:
    """Change the settings as if they were read again from a file with one line for each of them."""
    for key, value in list(conf.items()):
        if key == "description":
            kept = value.rstrip()
            if kept or value:
                conf[key] = kept
            else:
                del conf[key]
        elif "\n" in value or "\r" in value:
            raise PveError(f"unable to parse value of '{key}' - property contains a line feed")
        elif not value or value[0].isspace() or value[-1].isspace():
            conf[key] = value.strip() or " "


def config_lines(values: dict[str, str]) -> str:
    """The lines of one section of a configuration file."""
    lines = []
    description = values.get("description")
    if description and description != " ":
        lines += ["#" + line for line in description.split("\n")]
    lines += [f"{key}: {values[key]}" for key in sorted(values) if key != "description"]
    return "".join(line + "\n" for line in lines)


def config_text(vm: Guest) -> str:
    """The configuration file of the guest."""
    text = config_lines(vm.conf)
    if vm.pending or vm.pending_delete:
        pending = dict(vm.pending)
        if vm.pending_delete:
            pending["delete"] = ",".join(
                ("!" if force else "") + name for name, force in sorted(vm.pending_delete.items())
            )
        section = "PENDING" if vm.kind == "qemu" else "pve:pending"
        text += f"\n[{section}]\n" + config_lines(pending)
    if vm.cloudinit:
        text += "\n[special:cloudinit]\n" + config_lines(vm.cloudinit)
    for name in sorted(vm.snapshots):
        text += f"\n[{name}]\n" + config_lines(vm.snapshots[name])
    return text
