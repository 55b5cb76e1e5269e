# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hypothesis strategies: configurations of containers with every option."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.modules.vm_strategies import BRIDGES, STORAGES, TAGS, WORDS, said

FLAG = st.integers(0, 1).map(str)
WORD = st.sampled_from(["web", "db", "proxy"])
OPTIONS_OF_MOUNT = {
    "ro": FLAG,
    "acl": FLAG,
    "quota": FLAG,
    "replicate": FLAG,
    "shared": FLAG,
    "mountoptions": st.sampled_from(["noatime", "noatime;nosuid"]),
    "idmap": st.sampled_from(["passthrough", "u:0:0:10;g:0:0:10"]),
}
# Of mount points that are not the root file system.
OPTIONS_OF_MORE = {"backup": FLAG, "keepattrs": FLAG}
OPTIONS_OF_NIC: dict[str, Any] = {
    "bridge": BRIDGES,
    "tag": st.integers(1, 4094),
    "trunks": st.sampled_from(["5", "5;7;9"]),
    "firewall": FLAG,
    "host-managed": FLAG,
    "link_down": FLAG,
    "mtu": st.integers(1280, 9000),
    "rate": st.sampled_from(["5", "2.5"]),
    "ip": st.sampled_from(["dhcp", "manual", "10.0.0.5/24", "10.0.0.5/24,gw=10.0.0.1"]),
    "ip6": st.sampled_from(["auto", "dhcp", "fd00::5/64", "fd00::5/64,gw6=fd00::1"]),
}
OPTIONS_OF_DEVICE = {
    "deny-write": FLAG,
    "gid": st.integers(0, 200),
    "mode": st.sampled_from(["0660", "0600"]),
    "uid": st.integers(0, 200),
}


def _pairs(values: dict[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in values.items())


@st.composite
def volumes(draw: st.DrawFn, vmid: int, slot: str, number: int) -> str:
    """Return the root file system, or a mount point: a volume or a path of the node."""
    options = draw(said(**OPTIONS_OF_MOUNT))
    storage, size = draw(STORAGES), draw(st.integers(1, 9))
    head = f"{storage}:vm-{vmid}-disk-{number}"
    if slot != "rootfs":
        options = {"mp": f"/srv/{slot}", **options, **draw(said(**OPTIONS_OF_MORE))}
        if draw(st.booleans()):
            return f"/mnt/{slot},{_pairs(options)}"
    return f"{head},{_pairs({**options, 'size': f'{size}G'})}"


@st.composite
def nics(draw: st.DrawFn, vmid: int, number: int) -> str:
    """Return a NIC with any of its sub-keys."""
    more = draw(said(**OPTIONS_OF_NIC))
    mac = f"BC:24:11:00:{vmid % 256:02X}:{number:02X}"
    values = {"name": f"eth{number}", "hwaddr": mac, **more, "type": "veth"}
    return _pairs({key: values[key] for key in sorted(values)})


OPTIONS_OF_FEATURES: dict[str, Any] = {
    "nesting": FLAG,
    "keyctl": FLAG,
    "fuse": FLAG,
    "mknod": FLAG,
    "force_rw_sys": FLAG,
    "mount": st.sampled_from(["nfs", "nfs;cifs"]),
}
PLAIN: dict[str, Any] = {
    "hostname": WORD,
    "memory": st.integers(16, 8192).map(str),
    "swap": st.sampled_from(["0", "256", "1000"]),
    "cores": st.integers(1, 8).map(str),
    "cpulimit": st.sampled_from(["0", "2", "0.5"]),
    "cpuunits": st.sampled_from(["100", "500"]),
    "onboot": FLAG,
    "protection": FLAG,
    "unprivileged": FLAG,
    "debug": FLAG,
    "tty": st.integers(0, 6).map(str),
    "console": FLAG,
    "cmode": st.sampled_from(["console", "shell", "tty"]),
    "ostype": st.sampled_from(["debian", "alpine", "unmanaged"]),
    "arch": st.sampled_from(["amd64", "arm64"]),
    "timezone": st.sampled_from(["host", "Europe/Berlin"]),
    "nameserver": st.sampled_from(["10.0.0.1", "10.0.0.1 10.0.0.2"]),
    "searchdomain": st.sampled_from(["example.com", "example.com example.org"]),
    "startup": st.sampled_from(["order=1", "order=2,up=30"]),
    "description": WORDS.filter(bool),
    "tags": st.tuples(
        st.sampled_from(["", "tenant_acme;", "tenant_globex;"]), TAGS.map(";".join)
    ).map("".join),
    "hookscript": st.just("local:snippets/hook.pl"),
    "entrypoint": st.sampled_from(["/sbin/init", "/bin/sh -c 'sleep 1'"]),
    "env": st.sampled_from(["A=1", "A=1\0SECRET=hunter2"]),
    "features": said(**OPTIONS_OF_FEATURES).filter(bool).map(_pairs),
}
DEVICE = said(**OPTIONS_OF_DEVICE).map(lambda values: _pairs({"path": "/dev/kvm", **values}))


@st.composite
def configurations(draw: st.DrawFn, vmid: int) -> dict[str, str]:
    """Return a configuration with any of the options."""
    config: dict[str, str] = draw(said(**PLAIN))
    if "hostname" in config:
        config["hostname"] += str(vmid)  # a second one of a name is exported without it
    config["rootfs"] = draw(volumes(vmid, "rootfs", 0))
    for number in range(draw(st.integers(0, 3))):
        config[f"mp{number}"] = draw(volumes(vmid, f"mp{number}", number + 1))
    for number in range(draw(st.integers(0, 2))):
        config[f"dev{number}"] = draw(DEVICE)
    for number in range(draw(st.integers(0, 1))):
        config[f"unused{number}"] = f"ceph:vm-{vmid}-disk-{9 + number}"
    for number in range(draw(st.integers(0, 2))):
        config[f"net{number}"] = draw(nics(vmid, number))
    if draw(st.integers(0, 5)) == 0:
        config["template"] = "1"
    return config


@st.composite
def containers(draw: st.DrawFn, most: int) -> dict[int, dict[str, str]]:
    """Return configurations of containers by VMID."""
    found: dict[int, dict[str, str]] = {}
    for vmid in range(700, 700 + draw(st.integers(1, most))):
        found[vmid] = draw(configurations(vmid))
    return found
