# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that Proxmox VE stores as a property string is compared by its keys.

Proxmox VE prints the keys of some property strings in another order than they were sent
(pve-access-control: API2/Domains.pm; pve-cluster: DataCenterConfig.pm; pve-common: JSONSchema.pm,
print_property_string). Here every property string of a request is sent with its keys in the
opposite order, as another program may have written it: the next run changes nothing. The
configuration of a guest is stored with the keys of each option in the opposite order.
"""

from __future__ import annotations

import re
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.formats import (
    QEMU,
    Schema,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.generated.requests import (
    OTHERS,
    PARAMETERS,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.lxc import LXC
from tests.modules.access_lab import ROOT
from tests.modules.estate_lab import Lab
from tests.modules.test_notations import TASKS
from tests.simulator.schema.named_hashes import HASHES

# Property strings with a single key, without an option, or of an action that nothing stores.
UNUSED = {"acme", "draid-config", "erasure-coding", "ha", "machine"}


def property_strings() -> dict[str, list[Any]]:
    """Return the formats of parameters that are property strings, alone or as items of a list."""
    rules = {name: [rule] for name, rule in PARAMETERS.items()}
    for name, of_paths in OTHERS.items():
        rules.setdefault(name, []).extend(of_paths.values())
    found: dict[str, list[Any]] = {}
    for name, own in rules.items():
        formats = [rule.get("items", rule).get("format") for rule in own]
        strings = [one for one in formats if isinstance(one, dict) or one in HASHES]
        if strings:
            found[name] = strings
    return found


STRINGS = property_strings()
reversed_names: set[str] = set()


def turned(name: str, value: Any) -> Any:
    """Return a property string with its keys in the opposite order, other values unchanged."""
    if isinstance(value, (list, tuple)):
        return [turned(name, item) for item in value]
    name = re.sub("^(acmedomain)[0-9]$", r"\1[n]", name)
    if name not in STRINGS or not isinstance(value, str) or "," not in value:
        return value
    reversed_names.add(name)
    return ",".join(value.split(",")[::-1])


def turning(send: Any) -> Any:
    def write(self: Client, *path: Any, data: Any = None, **more: Any) -> Any:
        sent = {name: turned(name, value) for name, value in (data or {}).items()}
        return send(self, *path, data=sent, **more)

    return write


def test_the_keys_of_a_property_string_have_no_order(unused: Lab) -> None:
    """The list of `STRINGS` is complete: an option for each of them is in a task."""
    differing = {}
    for base, (module, task) in TASKS.items():
        unused.simulator.reset()
        with mock.patch.object(Client, "write", turning(Client.write)):
            first = unused.run(module, **task)
        assert not first.get("failed"), first["msg"]
        again = unused.run(module, **task)
        if again["changed"]:
            differing[base] = again["diff"]
    assert differing == {}
    assert reversed_names == STRINGS.keys() - UNUSED


# Each option of a guest that is a property string has a value of two keys and more here.
VM_TEXTS = {
    "agent": "enabled=1,fstrim_cloned_disks=1,type=virtio",
    "amd-sev": "type=std,no-debug=1,no-key-sharing=1,kernel-hashes=1",
    "audio0": "device=ich9-intel-hda,driver=none",
    "cicustom": "user=local:snippets/user.yml,vendor=local:snippets/user.yml",
    "cpu": "cputype=host,flags=+aes;-pcid,hidden=1",
    "hostpci0": "host=0000:01:00.0,pcie=1,rombar=0,romfile=a.rom",
    "intel-tdx": "type=tdx,attestation=1,vsock-cid=2,vsock-port=4050",
    "ivshmem": "size=32,name=shared",
    "machine": "type=q35,viommu=virtio",
    "numa0": "cpus=0,hostnodes=0,memory=512,policy=bind",
    "rng0": "source=/dev/urandom,max_bytes=512,period=2000",
    "smbios1": "uuid=f3e4b7f2-6f5c-4a2b-9d0c-0a0b0c0d0e0f,base64=1,serial=YWJj",
    "spice_enhancements": "foldersharing=1,videostreaming=all",
    "startup": "order=2,up=30,down=60",
    "usb0": "host=1d6b:0002,usb3=1",
    "vga": "type=virtio,memory=64",
    "virtiofs0": "dirid=share,cache=always,expose-acl=1",
    "watchdog": "model=ib700,action=reset",
}
DISK = {
    "size": 1,
    "storage": "ceph",
    "options": {"backup": False, "discard": "on", "cache": "none"},
}
HARDWARE: dict[str, Any] = {
    "bios": "ovmf",
    "disks": [
        *({**DISK, "name": f"{bus}1"} for bus in ("ide", "sata", "scsi", "virtio")),
        {"name": "efidisk0", "storage": "ceph", "options": {"efitype": "4m"}},
        {"name": "tpmstate0", "storage": "ceph", "options": {"version": "v2.0"}},
    ],
    "nics": [
        {
            "name": "net0",
            "bridge": "vmbr0",
            "firewall": True,
            "vlan": 7,
            "ip": "10.0.0.9/24",
            "gateway": "10.0.0.1",
        }
    ],
}
VM_TASKS = [HARDWARE, *({"options": {key: text}} for key, text in VM_TEXTS.items())]
CONTAINER_TASKS: list[dict[str, Any]] = [
    {
        "rootfs": {"storage": "ceph", "size": 1, "mount_options": ["noatime"], "replicate": False},
        "mounts": [{"storage": "ceph", "size": 1, "path": "/srv", "backup": True}],
        "nics": [{"name": "net0", "bridge": "vmbr0", "ip": "10.0.0.9/24", "gateway": "10.0.0.1"}],
        "features": {"nesting": True, "keyctl": True},
        "devices": [{"path": "/dev/null", "uid": 7, "mode": "0660"}],
        "startup": "order=2,up=30",
    }
]
# These have one key.
WITHOUT_KEYS = {"boot", "memory", "unused[n]"}
KINDS: list[tuple[str, str, Schema, list[dict[str, Any]]]] = [
    ("vm", "vms", QEMU, VM_TASKS),
    ("container", "containers", LXC, CONTAINER_TASKS),
]


def strings_of(schema: Schema) -> set[str]:
    """Return the options of a guest that are property strings, with an index as in the schema."""
    formats = {key: rule.get("format") for key, rule in schema.options.items()}
    return {key for key, one in formats.items() if isinstance(one, dict) or one in HASHES}


def option_of(key: str, schema: Schema) -> str:
    """Return the name of an option in the schema."""
    return key if key in schema.options else re.sub(r"\d+$", "[n]", key)


@pytest.mark.parametrize(("module", "path", "schema", "tasks"), KINDS, ids=["vm", "container"])
def test_the_keys_of_an_option_of_a_guest_have_no_order(
    unused: Lab, module: str, path: str, schema: Schema, tasks: list[dict[str, Any]]
) -> None:
    unused.client.write(
        "POST",
        "cluster",
        "mapping",
        "dir",
        data={"id": "share", "map": "node=pve1,path=/var/lib/vz"},
    )
    known = strings_of(schema)
    differing, stored = {}, set()
    for number, task in enumerate(tasks):
        guest: dict[str, Any] = {"name": f"g{number}", "node": "pve1", **task, **ROOT}
        guest |= {"source": "debian-13-standard"} if module == "container" else {"blank": True}
        first = unused.run(module, **guest)
        assert not first.get("failed"), first["msg"]
        vmid = first[module]["vmid"]
        kind = {"vm": "qemu", "container": "lxc"}[module]
        config = unused.client.get("nodes", "pve1", kind, vmid, "config")
        strings = {key: name for key in config if (name := option_of(key, schema)) in known}
        texts = {key: ",".join(config[key].split(",")[::-1]) for key in strings}
        unused.simulator.steer(f"/{path}/{vmid}", {"config": texts})
        stored |= {name for key, name in strings.items() if "," in config[key]}
        again = unused.run(module, **guest)
        if again.get("failed") or again["changed"]:
            differing[str(task)] = again.get("diff") or again["msg"]
    assert differing == {}
    assert stored == known - WITHOUT_KEYS
