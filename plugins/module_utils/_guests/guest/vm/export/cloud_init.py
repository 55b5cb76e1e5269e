# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cloud-init of a VM as options of module vms (pure).

A VM without a cloud-init drive has its settings under PVE's own names: the option C(cloud_init)
would add the drive. Passwords are left out, because PVE does not return them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....._foundation.schema.formats import rule_of
from ....._foundation.spec.generated.vm_rules import SCALARS
from ....kinds.vm.config.actual import DRIVE, is_cloud_init, storage_of
from ....kinds.vm.config.view import decode_keys
from ...export.settings import (
    Config,
    InexpressibleSetting,
    SettingAlternative,
    SettingGroup,
    parsed,
    piece,
    typed,
)
from .hardware import is_default

_PASSWORD = "cipassword"
_DEFAULT_DRIVE = "ide2"
_NAMED_SLOTS = ("ide", "sata", "scsi")
_NO_DRIVE = "without a cloud-init drive there is no option for it"


def secrets_of(config: Config) -> tuple[str, ...]:
    """Return the options whose values PVE does not return."""
    return ("cloud_init.password",) if _PASSWORD in config else ()


def cloud_init_pieces(config: Config) -> Iterator[SettingGroup]:
    """Yield the pieces of a VM with this configuration."""
    slots: list[str] = []
    for slot in sorted(filter(DRIVE.match, config)):
        if is_cloud_init(parsed(slot, config[slot])):
            slots.append(slot)
    for slot in slots[:1]:
        yield _drive(slot, config[slot])
    for slot in slots[1:]:
        yield piece(slot, config[slot], reason="a second cloud-init drive")
    has_drive = bool(slots)
    yield from _settings(config, has_drive=has_drive)
    yield from _keys(config, has_drive=has_drive)
    yield from _snippets(config, has_drive=has_drive)


def _drive(slot: str, text: str) -> SettingGroup:
    storage = storage_of(parsed(slot, text))
    options: dict[str, Any] = {"storage": storage}
    is_named = slot.startswith(_NAMED_SLOTS)
    if slot != _DEFAULT_DRIVE and is_named:
        options["drive"] = slot
    return piece(slot, text, {"cloud_init": options})


def _settings(config: Config, *, has_drive: bool) -> Iterator[SettingGroup]:
    """Yield the options of cloud-init that are scalars in PVE."""
    for option, key in SCALARS["cloud_init"].items():
        if key not in config or is_default(key, config[key]):
            continue
        text = config[key]
        value = typed(text, rule_of(key) or {})
        raw = {"options": {key: value}}
        if option == "nameservers":
            value = text.replace(",", " ").split()
        yield _either(key, text, {option: value}, raw, has_drive=has_drive)


def _either(
    key: str, text: str, own: Mapping[str, Any], raw: Mapping[str, Any], *, has_drive: bool
) -> SettingGroup:
    """Return a setting as an option of cloud-init; without a drive only under PVE's own name."""
    if has_drive:
        return piece(key, text, {"cloud_init": own}, raw)
    return piece(key, text, raw)


def _keys(config: Config, *, has_drive: bool) -> Iterator[SettingGroup]:
    """Yield the SSH keys, without comments between them."""
    if "sshkeys" not in config:
        return
    keys: list[str] = []
    all_lost: list[InexpressibleSetting] = []
    comments: list[InexpressibleSetting] = []
    for line in decode_keys(config["sshkeys"]):
        all_lost.append(InexpressibleSetting("sshkeys", line, _NO_DRIVE))
        if line.startswith("#"):
            comments.append(InexpressibleSetting("sshkeys", line, "a comment"))
        else:
            keys.append(line)
    if not has_drive:
        yield SettingGroup((), tuple(all_lost))
        return
    options = {"cloud_init": {"ssh_keys": keys}}
    with_keys = SettingAlternative(options, tuple(comments))
    without = InexpressibleSetting("sshkeys", config["sshkeys"], "not each line is a public key")
    yield SettingGroup((with_keys,), (without,))


def _snippets(config: Config, *, has_drive: bool) -> Iterator[SettingGroup]:
    if "cicustom" not in config:
        return
    text = config["cicustom"]
    volumes = parsed("cicustom", text)
    yield _either(
        "cicustom",
        text,
        {"snippets": volumes},
        {"options": {"cicustom": text}},
        has_drive=has_drive,
    )
