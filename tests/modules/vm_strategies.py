"""Hypothesis strategies: a VM to start from, and a desired state for it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TAGS = st.lists(
    st.sampled_from(["web", "db", "blue", "green", "Prod", "x.y", "a+b"]), max_size=4, unique=True
)
BRIDGES = st.sampled_from(["vmbr0", "vmbr1", "vmbr2"])
STORAGES = st.sampled_from(["local-lvm", "ceph"])
MODELS = st.sampled_from(["virtio", "e1000", "rtl8139", "vmxnet3"])
CACHES = st.sampled_from(["none", "writethrough", "writeback", "directsync", "unsafe"])
KEYS = [
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9kL2cSGZ9Y7wqGm5y7qGmM4bqXy9t6v4kq3Yx0JmPz"
        " ops@example.com"
    ),
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx5bnV4LWtleS1vZi1hbm90aGVyLXBlcnNvbi0wMDAx"
        " dev@example.com"
    ),
]
ADDRESSES = ["10.0.0.5/24", "10.0.9.7/22", "dhcp"]
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30).map(
    str.strip
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return the strategy, or nothing said."""
    return st.one_of(st.none(), strategy)


def said(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return dictionaries with any of these keys: what is not said is not there."""
    return st.fixed_dictionaries({}, optional=parts)


def _net(values: dict[str, Any]) -> str:
    text = f"{values.pop('model', 'virtio')},bridge={values.pop('bridge', 'vmbr0')}"
    return text + "".join(f",{key}={value}" for key, value in sorted(values.items()))


def _drive(values: dict[str, Any]) -> str:
    text = f"{values.pop('storage', 'local-lvm')}:{values.pop('size', 2)}"
    return text + "".join(f",{key}={value}" for key, value in sorted(values.items()))


NET = said(
    model=MODELS,
    bridge=BRIDGES,
    tag=st.integers(1, 4094),
    firewall=st.integers(0, 1),
    rate=st.integers(1, 99),
    link_down=st.integers(0, 1),
    mtu=st.integers(576, 1500),
).map(_net)
DRIVE = said(
    storage=STORAGES,
    size=st.integers(1, 4),
    ssd=st.integers(0, 1),
    discard=st.sampled_from(["on", "ignore"]),
    cache=CACHES,
    backup=st.integers(0, 1),
    iothread=st.integers(0, 1),
).map(_drive)

# What PVE itself is asked to make: the parameters of POST /nodes/{node}/qemu.
START = said(
    cores=st.integers(1, 8),
    sockets=st.integers(1, 2),
    memory=st.integers(64, 8192),
    balloon=st.sampled_from([0, 64]),
    cpu=st.sampled_from(["host", "kvm64", "x86-64-v2-AES,flags=+aes"]),
    agent=st.sampled_from(["0", "1", "1,fstrim_cloned_disks=1"]),
    onboot=st.integers(0, 1),
    tablet=st.integers(0, 1),
    numa=st.integers(0, 1),
    ostype=st.sampled_from(["l26", "win11", "other"]),
    description=WORDS.filter(bool),
    tags=TAGS.map(";".join),
    scsihw=st.sampled_from(["virtio-scsi-single", "virtio-scsi-pci"]),
    net0=NET,
    net1=NET,
    scsi0=DRIVE,
    scsi1=DRIVE,
    ciuser=st.sampled_from(["ops", "root"]),
    ipconfig0=st.sampled_from(["ip=10.0.0.5/24,gw=10.0.0.1", "ip=dhcp", "ip=dhcp,ip6=auto"]),
    nameserver=st.sampled_from(["10.0.0.1", "10.0.0.1 10.0.0.2"]),
    hotplug=st.sampled_from(["0", "1", "network,disk"]),
    startup=st.sampled_from(["order=1", "order=2,up=30"]),
    watchdog=st.sampled_from(["i6300esb", "model=ib700,action=reset"]),
)

NIC_CHANGE = said(
    model=MODELS,
    bridge=BRIDGES,
    vlan=st.integers(0, 4094),
    firewall=st.booleans(),
    link_down=st.booleans(),
    rate=st.integers(1, 99),
    mtu=st.integers(576, 1500),
    ip=st.sampled_from(ADDRESSES),
    state=st.sampled_from(["present", "present", "present", "absent"]),
)
DISK_CHANGE = said(
    storage=STORAGES,
    cache=CACHES,
    ssd=st.booleans(),
    discard=st.booleans(),
    iothread=st.booleans(),
    backup=st.booleans(),
)


@st.composite
def disks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return changes of disks; sizes never shrink what START makes (at most 4 GiB)."""
    all_wanted = []
    for slot in draw(
        st.lists(st.sampled_from(["scsi0", "scsi1", "scsi2", "virtio0"]), unique=True, max_size=3)
    ):
        wanted = {"name": slot, **draw(DISK_CHANGE)}
        if slot.startswith("virtio"):
            wanted.pop("ssd", None)  # virtio disks have no such option
        if draw(st.integers(0, 9)) == 0:
            wanted = {"name": slot, "state": draw(st.sampled_from(["detached", "absent"]))}
        else:
            wanted["size"] = draw(st.sampled_from(["4G", "5G", "6144M", 7]))
        all_wanted.append(wanted)
    return all_wanted


@st.composite
def nics(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return changes of NICs by name."""
    names = draw(st.lists(st.sampled_from(["net0", "net1", "net2"]), unique=True, max_size=3))
    return [{"name": name, **draw(NIC_CHANGE)} for name in names]


WANTED = said(
    cores=st.integers(1, 8),
    sockets=st.integers(1, 2),
    memory=st.sampled_from(["64M", "1G", "2048M", "2Gi", 4096, "1.5G"]),
    cpu=st.sampled_from(["host", "kvm64", "x86-64-v2-AES"]),
    cpulimit=st.sampled_from([0.0, 1.5, 2.0]),
    numa=st.booleans(),
    agent=st.sampled_from([True, False, "1,fstrim_cloned_disks=1"]),
    onboot=st.booleans(),
    protection=st.just(False),
    ostype=st.sampled_from(["linux", "windows", "l26", "other"]),
    description=WORDS,
    tags=TAGS,
    tags_exact=st.booleans(),
    startup=st.sampled_from(["order=1", "order=3,down=5"]),
    serial_console=st.booleans(),
    nics=nics(),
    disks=disks(),
    boot=st.just(["disk", "network"]),
    hotplug=st.sampled_from(["1", "network,disk", "disk,network,usb"]),
    cloud_init=said(
        user=st.sampled_from(["ops", "dev"]),
        ssh_keys=st.lists(st.sampled_from(KEYS), unique=True),
        upgrade=st.booleans(),
        nameservers=st.just(["10.0.0.1", "10.0.0.2"]),
        search_domain=st.just("example.com"),
    ),
    options=said(
        tablet=st.booleans(),
        shares=st.integers(0, 2000),
        watchdog=st.sampled_from(["i6300esb", {"action": "reset"}]),
        smbios1=st.just({"serial": "abc"}),
        hookscript=st.none(),
        rng0=st.just("/dev/urandom"),
    ),
    state=st.sampled_from(["present", "present", "started", "stopped"]),
    tenant=st.just("acme"),
    reboot=st.sampled_from(["never", "never", "if_needed"]),
)
