# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hypothesis strategies: configurations of VMs with every option of PVE's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    StorageRow,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import validate
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.check import find_refusal
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.formats import (
    MAX_COUNTS,
    OPTIONS,
    format_of,
    rule_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.read import actual_of
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.modules.vm_strategies import KEYS

# Texts that YAML, Ansible or a terminal would take for something else.
HOSTILE = [
    "{{ lookup('pipe', 'id') }}",
    "{% for one in [] %}",
    "{# none #}",
    "yes",
    "Null",
    "~",
    "0123",
    "1e3",
    "0x1F",
    "12:30:45",
    "2026-11-20",
    "- one\n- two",
    "key: value # comment",
    "first line\n\n  indented {{ line }}\n# last",
    "line\r\nline",
    "\x1b[31mred\x1b[0m",
    "'single' \"double\" \\back",
    "&anchor *alias !tag",
    "%directive",
    "@at `tick`",
    "[a, b]",
    "{a: b}",
    "ends with colon:",
    "tab\there",
    "nul\x00bell\x07del\x7f",
    "snow ☃ and 😀 and \u2028 and \ufeff",
    "--- \n...",
    "-",
    "=",
    "<<",
]
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
)
TAGS = st.lists(
    st.sampled_from(["web", "Prod", "0815", "1.5", "yes", "null", "tenant_", "a+b", "x.y", "on"]),
    max_size=4,
    unique=True,
)
NAMES = ["web1", "yes", "0123", "1e3", "null", "db.example.com", "1.5", "on", "a-b"]
# No VM can get such a name from PVE; a hand can write it into a file.
ODD_NAMES = ["{{ x }}", "<script>", "a\n  - vmid: 1", "a # b", "x_y"]
TENANTS = ["acme", "globex", "yes", "0815"]
STORAGES = ["local-lvm", "ceph", "nfs"]
BASES = frozenset(("ceph",))
_INDEXED = {key for key in OPTIONS if key.endswith("[n]")}
_DEVICES = {"net[n]", "ipconfig[n]", "unused[n]", "ide[n]", "sata[n]", "scsi[n]", "virtio[n]"}
_APART = {
    "name",
    "tags",
    "description",
    "sshkeys",
    "cipassword",
    "template",
    "lock",
    "boot",
    "bootdisk",
    "efidisk0",
    "tpmstate0",
    "digest",
    "vmid",
    "node",
    "pool",
    "memory",
    "balloon",
    "cicustom",
    *_DEVICES,
}
# What a request has beside options of the VM.
_OF_REQUESTS = {
    "archive",
    "background_delay",
    "bwlimit",
    "delete",
    "force",
    "ha-managed",
    "import-working-storage",
    "live-restore",
    "revert",
    "skiplock",
    "start",
    "storage",
    "unique",
}
_SAMPLES: Mapping[str, list[str]] = {
    "affinity": ["0,1", "0-3"],
    "args": ["-cpu host", "-device {{ x }}"],
    "amd-sev": ["std", "type=std,no-debug=1"],
    "arch": ["x86_64", "aarch64"],
    "audio0": ["device=intel-hda", "device=AC97,driver=none"],
    "cpu": ["host", "kvm64", "x86-64-v2-AES,flags=+aes;-pcid", "cputype=EPYC,hidden=1"],
    "hookscript": ["local:snippets/hook.pl"],
    "hostpci[n]": ["0000:01:00.0", "mapping=gpu,pcie=1", "01:00,rombar=0,x-vga=1"],
    "hotplug": ["0", "1", "network,disk,usb", "network,disk", "cpu,memory,network"],
    "ivshmem": ["size=32,name=x"],
    "keyboard": ["de", "en-us"],
    "machine": ["q35", "pc-i440fx-9.2", "pc-q35-10.1,viommu=virtio", "type=q35"],
    "nameserver": ["10.0.0.1", "10.0.0.1 10.0.0.2", "10.0.0.1,fd00::1"],
    "numa[n]": ["cpus=0-1,memory=512", "cpus=0,hostnodes=0,memory=512,policy=bind"],
    "parallel[n]": ["/dev/parport0"],
    "rng0": ["/dev/urandom", "source=/dev/hwrng,max_bytes=512"],
    "searchdomain": ["example.com", "a.example b.example"],
    "serial[n]": ["socket", "/dev/ttyS1"],
    "smbios1": [
        "uuid=f3e4b7f2-6f5c-4a2b-9d0c-0a0b0c0d0e0f",
        "uuid=f3e4b7f2-6f5c-4a2b-9d0c-0a0b0c0d0e0f,base64=1,serial=YWJj",
    ],
    "spice_enhancements": ["foldersharing=1", "videostreaming=all"],
    "startdate": ["now", "2026-11-20", "2026-11-20T10:00:00"],
    "startup": ["1", "order=2,up=30", "up=10,down=20", "order=0"],
    "usb[n]": ["host=1234:5678", "spice", "mapping=stick,usb3=1", "host=1-2"],
    "vga": ["std", "serial0", "virtio,memory=64", "type=qxl2"],
    "virtiofs[n]": ["share", "dirid=share,cache=always"],
    "vmgenid": ["1", "0", "7a9e1c2d-0000-4000-8000-000000000001"],
    "vmstatestorage": ["ceph"],
    "watchdog": ["i6300esb", "model=ib700,action=reset"],
    "cicustom": ["user=local:snippets/user.yml", "meta=local:snippets/m,vendor=local:snippets/v"],
    "intel-tdx": ["type=tdx"],
}


def plain_options() -> list[str]:
    """Return the options of the schema that are neither devices nor have a strategy apart."""
    names: list[str] = []
    for key in sorted(OPTIONS):
        if key in _OF_REQUESTS or key in _APART:
            continue
        if key in _INDEXED:
            family = key.removesuffix("[n]")
            names += [f"{family}0", f"{family}{MAX_COUNTS[family] - 1}"]
        else:
            names.append(key)
    return names


@st.composite
def values(draw: st.DrawFn, key: str) -> str:
    """Return a value that PVE takes for an option; an empty text where none was found."""
    family = re.sub(r"\d+$", "[n]", key)
    samples = _SAMPLES.get(key) or _SAMPLES.get(family)
    if samples:
        return draw(st.sampled_from(samples))
    rule = rule_of(key) or {}
    fmt = format_of(key)
    text = draw(_value(rule)) if fmt is None else draw(_property_string(fmt))
    if find_refusal(key, text):
        return ""
    return text


def _value(rule: Mapping[str, Any]) -> st.SearchStrategy[str]:
    kind = rule.get("type")
    if rule.get("enum"):
        return st.sampled_from([str(word) for word in rule["enum"]])
    if kind == "boolean":
        return st.sampled_from(["0", "1"])
    low, high = rule.get("minimum"), rule.get("maximum")
    if kind == "integer":
        return st.integers(int(low or 0), int(high or 5000)).map(str)
    if kind == "number":
        return st.integers(int(low or 0) * 4, int(high or 50) * 4).map(lambda n: f"{n / 4:g}")
    return st.sampled_from(["x", "0123", "1.5", "yes"])


@st.composite
def _property_string(draw: st.DrawFn, fmt: Mapping[str, Mapping[str, Any]]) -> str:
    names = draw(st.lists(st.sampled_from(sorted(fmt)), min_size=1, max_size=3, unique=True))
    parts: dict[str, str] = {}
    for name in names:
        rule = fmt[name]
        if not rule.get("alias"):
            parts[name] = draw(_value(rule))
    return ",".join(f"{name}={value}" for name, value in parts.items())


@st.composite
def drives(draw: st.DrawFn, slot: str) -> str:
    """Return a disk or a CD drive."""
    kind = draw(st.sampled_from(["disk", "disk", "disk", "disk", "cd", "host", "path", "file"]))
    if kind == "cd":
        volume = draw(st.sampled_from(["none", "local:iso/x.iso,size=4M", "nfs:iso/yes.iso"]))
        return f"{volume},media=cdrom"
    if kind == "host":
        return draw(st.sampled_from(["cdrom,media=cdrom", "/mnt/x.iso,media=cdrom"]))
    size = draw(st.sampled_from(["2G", "32G", "2252M", "4194304K", "512M", "1T"]))
    storage = draw(st.sampled_from(STORAGES))
    number = slot.lstrip("abcdefghijklmnopqrstuvwxyz")
    volume = f"{storage}:vm-100-disk-{number}"
    if kind == "path":
        return "/dev/disk/by-id/x"
    if kind == "file":
        volume = f"nfs:100/vm-100-disk-{number}.qcow2"
    parts = [volume, f"size={size}"]
    fmt = format_of(slot) or {}
    options = {
        "aio": ["native", "threads"],
        "backup": ["0", "1"],
        "cache": ["none", "writeback"],
        "discard": ["on", "ignore"],
        "iothread": ["0", "1"],
        "replicate": ["0"],
        "ro": ["1"],
        "serial[n]": ["abc", "0123", "a%20b"],
        "ssd": ["1"],
        "mbps": ["10", "1.5"],
        "iops_rd": ["100"],
        "wwn": ["0x50014ee000000000"],
        "queues": ["2"],
        "detect_zeroes": ["1", "0"],
        "shared": ["1"],
        "werror": ["stop"],
    }
    known = sorted(options.keys() & fmt.keys())
    for name in draw(st.lists(st.sampled_from(known), max_size=4, unique=True)):
        parts.append(f"{name}={draw(st.sampled_from(options[name]))}")
    return ",".join(parts)


@st.composite
def nics(draw: st.DrawFn) -> str:
    """Return a NIC."""
    model = draw(st.sampled_from(["virtio", "e1000", "vmxnet3"]))
    octet = draw(st.integers(0, 255))
    parts = [f"{model}=BC:24:11:00:00:{octet:02X}"]
    options = {
        "bridge": ["vmbr0", "vmbr1", "vmbr0", "yes"],
        "tag": ["120", "5"],
        "trunks": ["2;3", "5-7"],
        "firewall": ["0", "1"],
        "link_down": ["0", "1"],
        "mtu": ["1", "9000"],
        "queues": ["2", "0"],
        "rate": ["10", "1.5"],
    }
    names = draw(st.lists(st.sampled_from(sorted(options)), max_size=5, unique=True))
    for name in sorted({"bridge", *names} if draw(st.integers(0, 9)) else names):
        parts.append(f"{name}={draw(st.sampled_from(options[name]))}")
    return ",".join(parts)


ADDRESSES = st.sampled_from(
    [
        "ip=dhcp",
        "ip=10.0.0.5/24,gw=10.0.0.1",
        "ip=10.0.0.6/24,gw=10.0.0.1",
        "ip=10.0.0.7/24",
        "ip=dhcp,ip6=auto",
        "ip6=fd00::5/64,gw6=fd00::1",
        "gw=10.0.0.1",
    ]
)
BOOT = st.sampled_from(
    ["order=scsi0;net0", "order=net0", "order=scsi0", "cdn", "c", "order=scsi0;ide2;net0"]
)
_SLOTS = ["scsi0", "scsi1", "virtio0", "virtio15", "sata5", "ide0", "ide2", "scsi30"]


@st.composite
def configs(draw: st.DrawFn) -> dict[str, str]:
    """Return a configuration as PVE has it."""
    config: dict[str, str] = {}
    keys = draw(st.lists(st.sampled_from(plain_options()), max_size=8, unique=True))
    for key in keys:
        text = draw(values(key))
        if text:
            config[key] = text
    for slot in draw(st.lists(st.sampled_from(_SLOTS), max_size=3, unique=True)):
        config[slot] = draw(drives(slot))
    for number in draw(st.lists(st.sampled_from([0, 1, 31]), max_size=2, unique=True)):
        config[f"net{number}"] = draw(nics())
        if draw(st.booleans()):
            config[f"ipconfig{number}"] = draw(ADDRESSES)
    config.update(draw(_others()))
    return config


@st.composite
def _others(draw: st.DrawFn) -> dict[str, str]:
    """Return what has a strategy of its own."""
    found = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from([*NAMES, *ODD_NAMES]),
                "tags": TAGS.map(";".join),
                "description": TEXTS,
                "memory": st.sampled_from(["16", "512", "2048", "current=4096", "1536", "4194304"]),
                "balloon": st.sampled_from(["0", "16", "512", "9999"]),
                "boot": BOOT,
                "bootdisk": st.just("scsi0"),
                "sshkeys": st.sampled_from([*KEYS, "\n".join(KEYS), "# none\n" + KEYS[0]]).map(
                    lambda text: quote(text, safe="")
                ),
                "cipassword": st.just("**********"),
                "cicustom": st.sampled_from(_SAMPLES["cicustom"]),
                "efidisk0": st.sampled_from(
                    [
                        "ceph:vm-100-disk-9,size=4M",
                        "ceph:vm-100-disk-9,efitype=4m,pre-enrolled-keys=1,size=4M",
                        "ceph:vm-100-disk-9,efitype=4m,ms-cert=2023k,size=4M",
                    ]
                ),
                "tpmstate0": st.sampled_from(
                    ["ceph:vm-100-disk-8,size=4M", "ceph:vm-100-disk-8,size=4M,version=v2.0"]
                ),
                "unused0": st.just("ceph:vm-100-disk-7"),
                "ipconfig7": st.just("ip=dhcp"),
                "lock": st.sampled_from(["backup", "migrate"]),
                "bios": st.sampled_from(["ovmf", "seabios"]),
                "serial0": st.just("socket"),
            },
        )
    )
    drive = draw(st.sampled_from(["", "", "ide2", "scsi1", "sata0"]))
    if drive:
        found[drive] = "ceph:vm-100-cloudinit,media=cdrom"
    if draw(st.integers(0, 9)) == 0:
        found["ide3"] = "nfs:100/vm-100-cloudinit.qcow2,media=cdrom,size=4M"
    return found


STATUSES = ["running", "running", "stopped", "paused", "hibernated"]


@st.composite
def machines(draw: st.DrawFn, vmid: int) -> Actual:
    """Return a VM of any configuration, owner, pool and power state."""
    config = draw(configs())
    owners = draw(st.sampled_from([[], ["acme"], ["acme"], ["globex"], ["yes"], ["acme", "0815"]]))
    tags = [*filter(None, config.pop("tags", "").split(";")), *(f"tenant_{one}" for one in owners)]
    if tags:
        config["tags"] = ";".join(tags)
    if draw(st.integers(0, 7)) == 0:
        config["template"] = "1"
    rows = [{"key": key, "value": text} for key, text in config.items()]
    for row in rows:
        if row["key"] in ("cores", "memory") and draw(st.booleans()):
            row["pending"] = row["value"]
            row["value"] = "1" if row["key"] == "cores" else "128"
    status = draw(st.sampled_from(STATUSES))
    if config.get("template"):
        status = "stopped"
    pool = draw(st.sampled_from([None, "acme", "acme", "globex"]))
    return actual_of(VM, vmid, "pve1", status, rows, pool=pool)


def empty_cluster() -> ClusterState:
    """Return a cluster in which no VM is."""
    row = StorageRow("ceph", "pve1", True, True, "rbd", frozenset(("images",)), 0, 1 << 40)
    return ClusterState({}, {}, (row,), frozenset(), frozenset())


def is_tag(text: str) -> bool:
    try:
        validate.tag(text)
    except FleetError:
        return False
    return True
