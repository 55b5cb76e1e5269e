"""Shared by the tests of the VM rooms: a running VM, a template, a desired state and a plan."""

from __future__ import annotations

from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.placement import (
    NodeChoice,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.versions import RELEASE
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.intent import (
    Intent,
    Source,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired.parse import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import VM_FLOW
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.config.change import (
    ConfigChange,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.hardware import DesiredVm
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM

CONFIG = {
    "name": "web1",
    "cores": "2",
    "memory": "2048",
    "ostype": "l26",
    "scsihw": "virtio-scsi-single",
    "boot": "order=scsi0;net0",
    "agent": "1",
    "description": "front end",
    "tags": "blue;tenant_acme",
    "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1",
    "scsi0": "ceph:vm-100-disk-0,discard=on,size=20G",
    "scsi1": "local-lvm:vm-100-disk-1,size=8G",
    "ide2": "ceph:vm-100-cloudinit,media=cdrom",
    "ciuser": "ops",
    "sshkeys": "ssh-ed25519%20AAAA%20ops",
    "ipconfig0": "ip=10.0.0.5/24,gw=10.0.0.1",
    "smbios1": "uuid=11111111-2222-3333-4444-555555555555",
    "vmgenid": "11111111-2222-3333-4444-666666666666",
    "meta": "creation-qemu=10.0.2,ctime=1700000000",
}

TEMPLATE = {
    "name": "debian-13",
    "template": "1",
    "cores": "1",
    "memory": "1024",
    "ostype": "l26",
    "scsihw": "virtio-scsi-single",
    "agent": "1",
    "boot": "order=scsi0",
    "tags": "linux",
    "description": "Debian 13",
    "net0": "virtio=BC:24:11:00:00:09,bridge=vmbr0",
    "scsi0": "ceph:base-9000-disk-0,size=3G",
    "ide2": "ceph:vm-9000-cloudinit,media=cdrom",
    "vmgenid": "11111111-2222-3333-4444-777777777777",
}


def actual(
    *, status: str = "stopped", target: dict[str, str] | None = None, **changes: str | None
) -> Actual:
    """Return VM 100 on pve1 with CONFIG; keywords change options, None takes one away."""
    live = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
    return Actual(VM, 100, "pve1", status, live, {**live, **(target or {})}, digest="d1")


def new_vm(
    desired: DesiredVm,
    source: Source | None = None,
    change: ConfigChange | None = None,
    *,
    node: str = "pve1",
    identity: str = "",
) -> Intent[DesiredVm]:
    """Return a VM that run r1 creates with VMID 10000."""
    return Intent(
        desired,
        Actual(VM, 0, "", "stopped", live={}, target={}),
        change or ConfigChange(),
        {},
        source or Source(),
        NodeChoice(node),
        vmid=10000,
        run="r1",
        identity=identity,
    )


def template() -> Actual:
    """Return template 9000 on pve1."""
    return Actual(VM, 9000, "pve1", "stopped", dict(TEMPLATE), dict(TEMPLATE), digest="d9")


def desired_vm(**options: Any) -> DesiredVm:
    """Return the desired state for VM web1 with these module options."""
    return read_options({"name": "web1", **options}).desired


class Judge:
    """A client that is asked for its version only."""

    def __init__(self, *release: int) -> None:
        self._release = release

    def release(self) -> tuple[int, ...]:
        return self._release


def judged(desired: DesiredVm, *release: int) -> tuple[str, ...]:
    """Return the names that only a server of that release can judge, by default the schema's.

    Raises FleetError for a name that is refused without it.
    """
    judge: Any = Judge(*(release or RELEASE))
    return VM_FLOW.require_names(judge, desired)
