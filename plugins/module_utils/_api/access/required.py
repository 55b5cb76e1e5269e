# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The privilege that a request needs and the caller lacks (pure).

Sources: the permission checks of the API's schema, and the order in which PVE evaluates them
(pve-access-control: PVE/RPCEnvironment.pm, exec_api2_perm_check). A call whose check is code of PVE
is checked only as far as this file says; PVE itself checks the rest during the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..generated.rights import CHECKS
from ..path_templates import template_of
from .privileges import Privileges

# The creation of a guest (qemu-server: API2/Qemu.pm, create_vm; pve-container: API2/LXC.pm).
_NEW_GUEST = (
    "or",
    ("perm", "/vms/{vmid}", ("VM.Allocate",)),
    ("perm", "/pool/{pool}", ("VM.Allocate",), "require_param", "pool"),
)
_OF_CODE: Mapping[str, Sequence[Any]] = {
    "POST /nodes/{}/qemu": _NEW_GUEST,
    "POST /nodes/{}/lxc": _NEW_GUEST,
}
# The privilege on a VM that a change of an option needs (qemu-server: API2/Qemu.pm,
# check_vm_modify_config_perm). Other options are checked by their value.
_OF_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys("cores cpu cpulimit cpuunits numa sockets vcpus".split(), "VM.Config.CPU"),
    **dict.fromkeys("memory balloon shares allow-ksm".split(), "VM.Config.Memory"),
    **dict.fromkeys(
        "acpi hotplug kvm machine scsihw smbios1 tablet vga watchdog audio0".split(),
        "VM.Config.HWType",
    ),
    **dict.fromkeys(
        "agent autostart bios description keyboard localtime name onboot ostype protection"
        " startdate startup tags tdf".split(),
        "VM.Config.Options",
    ),
    **dict.fromkeys("boot bootdisk vmstatestorage".split(), "VM.Config.Disk"),
}
_CONFIG = re.compile(r"(PUT|POST) /nodes/\{\}/qemu(/\{\}/config)?")
_NIC = re.compile(r"net\d+")
_PLACEHOLDER = re.compile(r"\{([^}]+)\}")


@dataclass(frozen=True)
class RequiredRequest:
    """A request that is checked. `pools` are the pools that the guests of its plan join."""

    method: str
    path: Sequence[str | int]
    data: Mapping[str, Any]
    pools: frozenset[str] = frozenset()

    @property
    def template(self) -> str:
        """The path with placeholders."""
        return template_of("/" + "/".join(quote(str(part), safe="") for part in self.path))

    @property
    def call(self) -> str:
        """The method, and the path with placeholders without names."""
        return _PLACEHOLDER.sub("{}", f"{self.method} {self.template}")

    @property
    def check(self) -> Sequence[Any] | None:
        """The permission check of PVE, None if it is unknown."""
        return CHECKS.get(self.call) or _OF_CODE.get(self.call)


def find_missing(request: RequiredRequest, held: Privileges) -> str | None:
    """Return the cause as PVE words it, such as C(/vms/100, VM.Clone), or None.

    The cause is empty if PVE names none.
    """
    words = zip(request.template[1:].split("/"), map(str, request.path), strict=False)
    names = {word.strip("{}"): part for word, part in words if word.startswith("{")}
    values = {**{key: str(value) for key, value in request.data.items()}, **names}
    caller = _Caller(held, request.pools, values)
    missing = caller.missing(request.check) if request.check else None
    if missing is None and _CONFIG.fullmatch(request.call):
        return caller.missing_for_options(request.data)
    return missing


@dataclass(frozen=True)
class _Caller:
    """The privileges of the caller, and the parameters of a request."""

    held: Privileges
    pools: frozenset[str]
    values: Mapping[str, str]

    def missing(self, check: Sequence[Any]) -> str | None:
        """Return the cause of a refusal, None if the request is permitted or its check unknown."""
        kind, *parts = check
        if kind == "and":
            found = (self.missing(part) for part in parts)
            return next((cause for cause in found if cause is not None), None)
        if kind == "or":
            return None if any(self.missing(part) is None for part in parts) else ""
        if kind == "perm":
            return self._missing_on(*parts)
        return None

    def _missing_on(self, path: str, privileges: Sequence[str], *options: Any) -> str | None:
        more = dict(zip(options[::2], options[1::2], strict=True))
        if more.get("require_param", "") not in ("", *self.values):
            return ""
        if any(name not in self.values for name in _PLACEHOLDER.findall(path)):
            return None
        place = _PLACEHOLDER.sub(lambda found: self.values[found[1]], path)
        effective = self._on(place)
        lacking = [name for name in privileges if name not in effective]
        if more.get("any"):
            is_enough = len(lacking) < len(privileges)
            return None if is_enough else f"{place}, {'|'.join(privileges)}"
        return f"{place}, {lacking[0]}" if lacking else None

    def missing_for_options(self, data: Mapping[str, Any]) -> str | None:
        """Return the cause of a refusal of an option of a VM, or None."""
        deleted = str(data.get("delete") or "").split(",")
        for name in sorted({*data, *filter(None, deleted)}):
            privilege = "VM.Config.Network" if _NIC.fullmatch(name) else _OF_OPTIONS.get(name)
            if privilege and "vmid" in self.values:
                cause = self._missing_on("/vms/{vmid}", (privilege,))
                if cause is not None:
                    return cause
        return None

    def _on(self, place: str) -> frozenset[str]:
        """Return the privileges on a path; a guest that joins a pool has the privileges there."""
        found = self.held.on(place)
        if place.startswith("/vms/"):
            found = found.union(*(self.held.on(f"/pool/{pool}") for pool in self.pools))
        return found
