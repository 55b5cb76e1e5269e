# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be set and deleted so that a configuration becomes the desired one (pure).

Equal is equal: tags as sets in lower case, MACs in upper case, sizes as bytes, booleans, keys decoded, property strings
by key, PVE's own default for a missing option. What is not mentioned is left alone, inside a property string too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from .._cluster.tenant import parse_tags, tenants_of
from .._core.propstring import Format, canonical, parse, render, same
from .._schema.formats import format_of, rule_of
from .actual import DRIVE, drives, is_cloud_init, is_disk
from .drives import DriveChange, change_drives
from .hotplug import hotplug_features, in_dimms
from .marker import Marker, join_notes, split_notes
from .model import Desired
from .view import decode_keys

# What a new VM gets that is not cloned and says nothing else.
NEW_VM: Mapping[str, str] = {"cores": "2", "ostype": "l26", "scsihw": "virtio-scsi-single"}
_NIC = re.compile(r"^(?:net|ipconfig)(?=\d+$)")
# The two machine types without a version, and what their names begin with when they have one.
_FAMILIES = {"pc": "pc-i440fx", "q35": "pc-q35"}
_NEW_NIC: Mapping[str, str] = {"model": "virtio", "bridge": "vmbr0"}


@dataclass
class Change:
    """What one update writes: options to set, options to delete, and what is done to drives."""

    sets: dict[str, str] = field(default_factory=dict)
    deletes: set[str] = field(default_factory=set)
    drives: DriveChange = field(default_factory=DriveChange)
    follows: dict[str, str] = field(default_factory=dict)  # what PVE changes by itself when it does this
    secret: bool = False

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.deletes, *self.drives.keys, *self.follows}

    @property
    def gone(self) -> set[str]:
        return self.deletes | self.drives.removed


def changes(desired: Desired, target: Mapping[str, str], *, new: bool = False) -> Change:
    """Return what makes `target` (empty for a VM that is created from nothing) the desired configuration."""
    change = Change()
    plain = {**NEW_VM, **desired.plain} if new else dict(desired.plain)
    for key, value in plain.items():
        if not _same_plain(key, value, target.get(key)):
            change.sets[key] = value
    if desired.name and desired.name != target.get("name"):
        change.sets["name"] = desired.name
    change.drives = change_drives(desired, target)
    change.sets.update(change.drives.sets)
    change.deletes |= change.drives.detached | (desired.drop & target.keys())
    if desired.nics_exact:
        change.deletes |= {key for key in target if _NIC.match(key) and f"net{_NIC.sub('', key)}" not in desired.parts}
    _parts(desired, target, change, new=new)
    if new and "boot" not in desired.parts:
        _first_boot(desired, change)
    elif not new and "boot" not in change.sets:
        _boot_follows(target, change)
    if not new:
        _machine_follows(target, change)
    _tags(desired, target, change)
    _notes(desired, target, change)
    _cloud_init_data(desired, target, change, new=new)
    return change


def _same_plain(key: str, wanted: str, found: str | None) -> bool:
    rule = rule_of(key) or {}
    if key == "nameserver":
        return found is not None and wanted.split() == found.replace(",", " ").split()
    if key == "hotplug":
        return _words(wanted) == _words(found if found is not None else str(rule.get("default", "")))
    if found is None:
        if "default" in rule:
            return wanted == canonical(rule["default"], rule)
        return wanted == "" or (rule.get("type") == "boolean" and wanted == "0")
    return wanted == canonical(found, rule)


def _words(text: str) -> frozenset[str]:
    return frozenset(("network,disk,usb" if text == "1" else text).replace(";", ",").split(","))


def _parts(desired: Desired, target: Mapping[str, str], change: Change, *, new: bool) -> None:
    """Property strings: only the sub-keys that are mentioned count."""
    for key, wanted in desired.parts.items():
        fmt = format_of(key) or {}
        found = parse(target.get(key, ""), fmt, what=key)
        wishes = dict(wanted)
        if key == "boot" and "legacy" in wanted:
            found.pop("order", None)
        elif key == "boot":
            there = {name: text for name, text in {**target, **change.sets}.items() if name not in change.gone}
            order = _boot_order(wanted.get("order") or "", there, desired)
            if not order:
                continue  # there is nothing to boot from
            wishes = {"order": order}
            found.pop("legacy", None)
        if key.startswith("net") and not found:
            wishes = {**_NEW_NIC, **wishes}
        merged: dict[str, str | None] = dict(found)
        differing = [name for name, value in wishes.items() if not _holds(name, value, found, fmt)]
        config = {**target, **change.sets}
        if key == "machine" and _is_pinned(wishes.get("type"), found.get("type"), config.get("ostype", "")):
            differing = [name for name in differing if name != "type"]
        if key == "memory" and differing and not new and "memory" in hotplug_features(config):
            wishes["current"] = str(in_dimms(int(wishes["current"] or 0), config))
            differing = [name for name in differing if not _holds(name, wishes[name], found, fmt)]
        if not differing:
            continue
        for name in wishes if not found else differing:
            if wishes[name] is None:
                merged.pop(name, None)
            else:
                merged[name] = canonical(wishes[name], fmt.get(name, {}))
        if merged:
            change.sets[key] = render(merged, fmt)
        else:
            change.deletes.add(key)


def _holds(name: str, value: str | None, found: Mapping[str, str], fmt: Format) -> bool:
    return name not in found if value is None else same(name, value, found.get(name), fmt)


def _is_pinned(wanted: str | None, found: str | None, ostype: str) -> bool:
    """Tell whether PVE made the machine type of a Windows guest out of the wished one by adding a version.

    It does so at creation and with a change of the kind of guest (Machine.pm, check_and_pin_machine_string).
    """
    family = _FAMILIES.get(wanted or "")
    return bool(family and found and ostype.startswith("w") and re.match(rf"^{family}-\d", found))


def _machine_follows(target: Mapping[str, str], change: Change) -> None:
    """PVE adds its newest version to the machine type of a guest that becomes a Windows one."""
    if not change.sets.get("ostype", "").startswith("w") or "machine" in change.keys:
        return
    parts = parse(target.get("machine", ""), format_of("machine") or {})
    family = _FAMILIES.get(parts.get("type", "pc"))
    if family:
        change.follows["machine"] = render({**parts, "type": f"{family}-newest"}, format_of("machine") or {})


def _first_boot(desired: Desired, change: Change) -> None:
    """A new VM boots from its first disk, then its CD, then its first NIC: said outright, so that it is foreseeable."""
    devices = _devices(change.sets, desired)
    order = [found[0] for word in ("disk", "cdrom", "network") if (found := devices[word])]
    if order:
        change.sets["boot"] = f"order={';'.join(order)}"


def _boot_follows(target: Mapping[str, str], change: Change) -> None:
    """PVE takes a device that goes out of the boot order, and appends a CD drive that is written (update_vm_api)."""
    fmt = format_of("boot") or {}
    order = parse(target.get("boot", ""), fmt).get("order")
    if not order:
        return
    old = order.split(";")
    new = [device for device in old if device not in change.gone]
    written = drives({key: text for key, text in change.sets.items() if DRIVE.match(key)})
    new += sorted(
        key for key, drive in written.items() if key not in old and not is_disk(drive) and not is_cloud_init(drive)
    )
    if new != old:
        change.follows["boot"] = f"order={';'.join(new)}" if new else ""


def _boot_order(text: str, config: Mapping[str, str], desired: Desired) -> str:
    """Return the order with the words disk, network and cdrom replaced by the VM's devices."""
    words = _devices(config, desired)
    order: list[str] = []
    for item in text.split(";"):
        order.extend(device for device in words.get(item, [item]) if device and device not in order)
    return ";".join(order)


def _devices(config: Mapping[str, str], desired: Desired) -> dict[str, list[str]]:
    """Return what a VM can boot from, by the words that stand for it."""
    known = {key: drive for key, drive in drives(config).items() if not key.startswith(("efidisk", "tpmstate"))}
    nics = {key for key in (*config, *desired.parts) if key.startswith("net") and key[3:].isdigit()} - desired.drop
    return {
        "disk": sorted((key for key, drive in known.items() if is_disk(drive)), key=_by_index),
        "cdrom": sorted(
            (key for key, drive in known.items() if not is_disk(drive) and not is_cloud_init(drive)), key=_by_index
        ),
        "network": sorted(nics, key=_by_index),
    }


def _by_index(key: str) -> tuple[str, int]:
    family = key.rstrip("0123456789")
    return family, int(key[len(family) :])


def _tags(desired: Desired, target: Mapping[str, str], change: Change) -> None:
    """Tags are a set; foreign tags stay unless the list is exact.

    A tenant's tag stays in any case, but for one that an unfinished clone has from its source.
    """
    found = parse_tags(target.get("tags", ""))
    known = {tag.lower() for tag in found}
    wanted = set(desired.tags or ())
    if desired.tenant_tag:
        wanted.add(desired.tenant_tag)
    shed = split_notes(target.get("description"))[1].shed
    keep = [tag for tag in found if tag.lower() not in shed]
    if desired.tags is not None and desired.tags_exact:
        owners = set(tenants_of(found, desired.tenant_prefix))
        keep = [tag for tag in keep if tag.lower() in wanted or tag.lower() in owners]
    new = [*keep, *sorted(wanted - known)]
    if len(keep) == len(found) and len(new) == len(found):
        return
    if new:
        change.sets["tags"] = ";".join(sorted(new))
    else:
        change.deletes.add("tags")


def _notes(desired: Desired, target: Mapping[str, str], change: Change) -> None:
    """The notes, with the marker behind them; a VM that was being built is finished by this update."""
    notes, marker = split_notes(target.get("description"))
    wanted = notes if desired.description is None else desired.description
    if wanted == notes and not marker.building:
        return
    text = join_notes(wanted, Marker(origin=marker.origin))
    if text:
        change.sets["description"] = text
    elif "description" in target:
        change.deletes.add("description")


def _cloud_init_data(desired: Desired, target: Mapping[str, str], change: Change, *, new: bool) -> None:
    """SSH keys compare decoded; a password cannot be read back, so it is written when O(update_password) says so."""
    if desired.ssh_keys is not None and list(desired.ssh_keys) != decode_keys(target.get("sshkeys", "")):
        if desired.ssh_keys:
            change.sets["sshkeys"] = quote("\n".join(desired.ssh_keys), safe="")
        else:
            change.deletes.add("sshkeys")
    if desired.password and (new or desired.update_password == "always" or "cipassword" not in target):
        change.sets["cipassword"] = desired.password
        change.secret = True


def apply_to(change: Change, target: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration that the change leads to, as PVE would show it."""
    result = {key: value for key, value in target.items() if key not in change.deletes}
    for key, value in change.sets.items():
        result[key] = change.drives.shown.get(key, value) if DRIVE.match(key) else value
    for slot in change.drives.removed:
        result.pop(slot, None)
    result.update(change.drives.after)
    result.update(change.follows)
    if "tags" in result:
        result["tags"] = ";".join(sorted(parse_tags(result["tags"])))
    return result
