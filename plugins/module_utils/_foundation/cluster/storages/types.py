# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts about the types of storages (pure). Source: pve-storage 9.1.7, the plugins in PVE/Storage.

PVE silently drops a content type that the type of a storage cannot hold (Plugin.pm, decode_value).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Types with a directory that holds files of several content types.
FILES = ("btrfs", "cephfs", "cifs", "dir", "nfs")
# Types whose directories of content types can have other names.
OVERRIDES = ("cephfs", "cifs", "dir", "nfs")
NETWORKED = ("cephfs", "cifs", "nfs")  # PVE mounts these at /mnt/pve/NAME by default

_EVERYTHING = frozenset({"backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl"})
_GUESTS = frozenset({"images", "rootdir"})
CONTENT: Mapping[str, frozenset[str]] = {
    "btrfs": _EVERYTHING,
    "cephfs": _EVERYTHING - _GUESTS,
    "cifs": _EVERYTHING,
    "dir": _EVERYTHING,
    "esxi": frozenset({"import"}),
    "iscsi": frozenset({"images"}),
    "iscsidirect": frozenset({"images"}),
    "lvm": _GUESTS,
    "lvmthin": _GUESTS,
    "nfs": _EVERYTHING,
    "pbs": frozenset({"backup"}),
    "rbd": _GUESTS,
    "zfs": frozenset({"images"}),
    "zfspool": _GUESTS,
}
# Types that can be defined without any content.
MAY_BE_EMPTY = ("btrfs", "dir", "iscsi", "iscsidirect", "pbs")
# PVE has this storage on every node, even if storage.cfg does not define it (Plugin.pm,
# parse_config).
LOCAL = "local"
# The version of PVE that introduced each option.
SINCE: Mapping[str, tuple[int, int]] = {
    "snapshot_as_volume_chain": (9, 0),
    "saferemove_stepsize": (9, 1),
    "zfs_base_path": (9, 0),
}

# Storages whose disks are raw (plugindata and get_formats of each plugin).
RAW_ONLY = frozenset("lvmthin zfspool zfs rbd btrfs iscsi iscsidirect".split())
# The formats of new disks (alloc_image of each plugin). A logical volume can have qcow2 with
# snapshot-as-volume-chain. Storages of other types allocate no disks.
FORMATS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cifs", "dir", "nfs"), ("raw", "qcow2", "vmdk")),
    **dict.fromkeys(("btrfs", "lvm", "lvmthin", "rbd", "zfs"), ("raw",)),
    "zfspool": ("raw", "subvol"),
}
# Storages whose volumes PVE does not delete (free_image).
READ_ONLY = ("esxi", "iscsi", "iscsidirect")
# The names of disks by type (parse_volname of each plugin), and the name of a new disk. The name of
# a linked clone can begin with its base.
_IN_DIRECTORIES = re.compile(
    r"(?:\d+/[^/\s]+/)?\d+/(?!snap-.*\.qcow2$)[^/\s]+\.(?:raw|qcow2|vmdk|subvol)"
)
_LVM = r"[A-Za-z0-9._-]*[A-Za-z0-9]"  # Plugin.pm, parse_lvm_name
_ZFS = re.compile(r"(?:base(?:vol)?-\d+-[^/\s]+/)?(?:base|basevol|vm|subvol)-\d+-[^/\s]+")
DISK_NAMES: Mapping[str, tuple[re.Pattern[str], str]] = {
    **dict.fromkeys(("btrfs", "cifs", "dir", "nfs"), (_IN_DIRECTORIES, "VMID/vm-VMID-NAME.raw")),
    "esxi": (re.compile(r"[^/]+/[^/]+/.+"), "DATACENTER/DATASTORE/PATH"),
    "iscsi": (re.compile(r"\d+\.\d+\.\d+\.[^/\s]+"), "CHANNEL.ID.LUN.NAME"),
    "iscsidirect": (re.compile(r"lun\d+"), "lunN"),
    "lvm": (re.compile(rf"vm-\d+-{_LVM}"), "vm-VMID-NAME"),
    "lvmthin": (re.compile(rf"(?:vm|base)-\d+-{_LVM}"), "vm-VMID-NAME"),
    "rbd": (re.compile(r"(?:base-\d+-[^/\s]+/)?(?:vm|base)-\d+-[^/\s]+"), "vm-VMID-NAME"),
    "zfs": (_ZFS, "vm-VMID-NAME"),
    "zfspool": (_ZFS, "vm-VMID-NAME, or subvol-VMID-NAME with format=subvol"),
}
# The names of backups on a backup server (PBSPlugin.pm, parse_volname).
PBS_BACKUP = re.compile(r"backup/[^\s_/]+/[^\s_/]+/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
