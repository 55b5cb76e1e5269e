"""Makes up a cluster with many machines, the same for the same seed."""

from __future__ import annotations

import random
from typing import Any

from ..cluster.pools import add_to_pool
from ..core.api import Simulation
from ..core.state import Run, Vm, Volume
from .clusterfile import Builder

ROLES = ("web", "db", "cache", "queue", "app", "batch", "monitor", "proxy")
TENANTS = 5
_STORAGES = [
    {
        "storage": "local",
        "path": "/var/lib/vz",
        "content": ["iso", "vztmpl", "import", "snippets", "backup", "images"],
    },
    {
        "storage": "local-lvm",
        "type": "lvmthin",
        "vgname": "pve",
        "thinpool": "data",
        "content": ["images", "rootdir"],
        "size": "20TiB",
        "used": "20GiB",
    },
    {
        "storage": "ceph",
        "type": "rbd",
        "pool": "vms",
        "content": ["images", "rootdir"],
        "size": "400TiB",
        "used": "200GiB",
    },
]


def document(nodes: int, vms: int = 0) -> dict[str, Any]:
    """The frame of a made-up cluster, in the form of a cluster file.

    The nodes are big enough for the machines.
    """
    each = -(-vms // nodes)
    size = {"cpus": max(16, 4 * each), "sockets": 2, "memory": f"{max(64, 5 * each)}GiB"}
    return {
        "cluster": {"name": "seeded", "config_version": nodes},
        "nodes": [
            {"name": f"pve{n}", "nodeid": n, "ip": f"10.99.0.{10 + n}", **size}
            for n in range(1, nodes + 1)
        ],
        "bridges": [
            {"iface": "vmbr0", "cidr": "NODE_IP/24", "vlan_aware": True},
            {"iface": "vmbr1"},
            {"iface": "vmbr2"},
        ],
        "storages": [dict(item) for item in _STORAGES],
        "users": [{"userid": "root@pam", "password": "fleetpw123"}],
        "tokens": [
            {
                "id": "root@pam!fleet",
                "secret": "00000000-0000-4000-8000-0000000000f1",
                "privsep": False,
            },
            {
                "id": "root@pam!test",
                "secret": "00000000-0000-4000-8000-000000000001",
                "privsep": False,
            },
        ],
        "pools": [{"poolid": f"t{n}", "comment": f"Tenant t{n}"} for n in range(1, TENANTS + 1)],
        "volumes": [{"volid": "local:iso/debian-13-netinst.iso", "size": 702545920}],
        "options": {"mac_prefix": "BC:24:11"},
        "host": {"qemu": "10.1.2", "kernel": "6.17.2-1-pve"},
        "vms": [
            {
                "vmid": 9000,
                "node": "pve1",
                "name": "debian-13",
                "template": True,
                "tags": ["image", "shared"],
                "config": {
                    "agent": "1",
                    "cores": 2,
                    "memory": 2048,
                    "ostype": "l26",
                    "scsihw": "virtio-scsi-single",
                    "scsi0": "ceph:base-9000-disk-0,size=3G",
                    "ide2": "ceph:vm-9000-cloudinit,media=cdrom",
                    "net0": "virtio,bridge=vmbr0",
                },
            }
        ],
    }


def build(sim: Simulation, nodes: int, vms: int, seed: int) -> None:
    """Fill the simulation."""
    Builder(sim, document(nodes, vms)).build()
    make_vms(sim, vms, seed)


def make_vms(sim: Simulation, count: int, seed: int) -> None:
    """Add machines from VMID 10000 on: five tenants, one in ten stopped."""
    chance = random.Random(seed)
    cluster = sim.cluster
    names = list(cluster.nodes)
    now = cluster.now()
    storage = cluster.storages.get("ceph") or next(iter(cluster.storages.values()))
    lvm = cluster.storages.get("local-lvm")
    vmid = 10000
    for number in range(count):
        while vmid in cluster.vms:
            vmid += 1
        node = names[number % len(names)]
        tenant = f"t{1 + chance.randrange(TENANTS)}"
        role = chance.choice(ROLES)
        size = chance.choice((8, 16, 20, 32, 64, 100))
        store = lvm if lvm is not None and chance.random() < 0.3 else storage
        volume = f"vm-{vmid}-disk-0"
        conf = {
            "agent": "1",
            "boot": "order=scsi0;net0",
            "cores": str(chance.choice((1, 2, 2, 4, 8))),
            "cpu": "x86-64-v2-AES",
            "ipconfig0": "ip=dhcp",
            "memory": str(chance.choice((512, 1024, 2048, 2048, 4096, 8192))),
            "meta": f"creation-qemu={cluster.qemu},ctime={int(now)}",
            "name": f"{role}-{tenant}-{number:05d}",
            "net0": f"virtio={cluster.mac()},bridge=vmbr0,tag={100 + int(tenant[1:])}",
            "onboot": "1",
            "ostype": "l26",
            "scsi0": f"{store.name}:{volume},iothread=1,size={size}G",
            "scsihw": "virtio-scsi-single",
            "smbios1": f"uuid={cluster.uuid()}",
            "tags": ";".join(
                sorted((f"tenant_{tenant}", role, chance.choice(("dev", "prod", "stage"))))
            ),
            "vmgenid": cluster.uuid(),
        }
        vm = Vm(vmid, node, conf)
        if chance.random() >= 0.1:
            info = cluster.nodes[node]
            info.next_pid += 1
            vm.run = Run(info.next_pid, now - chance.randrange(60, 8_000_000))
        store.on(node)[volume] = Volume(
            volume, "images", "raw", size << 30, int(now), vmid, used=(size << 30) // 4
        )
        vm.file()
        cluster.vms[vmid] = vm
        cluster.due[vmid] = 0.0
        if tenant in cluster.pools and chance.random() < 0.8:
            add_to_pool(cluster, tenant, vmid)
        vmid += 1
