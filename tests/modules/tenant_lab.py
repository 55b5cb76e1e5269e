# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenants in the demo cluster, and all that the cluster shows of its state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from ansible.parsing.vault import VaultLib, VaultSecret

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.tenant import (
    tenant_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.login import credentials
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.run import run
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

# What changes by itself, or says when something happened.
_MOVING = {"uptime", "cpu", "mem", "disk", "maxdisk", "netin", "netout", "diskread", "diskwrite"}
RIGHTS: dict[str, Any] = {
    "templates": ["debian-13"],
    "storages": ["ceph"],
    "bridges": ["vmbr0", "vmbr1"],
    "nodes": ["pve1", "pve2"],
}


def state_of(lab: Lab) -> dict[str, Any]:
    """Return the whole state of a cluster as root sees it: access, pools, options, guests with
    their configurations, and the volumes of all storages.
    """
    get = lab.client.get
    found: dict[str, Any] = {
        "users": get("access", "users", full=1),
        "groups": get("access", "groups"),
        "roles": get("access", "roles"),
        "acl": get("access", "acl"),
        "domains": get("access", "domains"),
        "options": get("cluster", "options"),
        "pools": {
            row["poolid"]: get("pools", params={"poolid": row["poolid"]}) for row in get("pools")
        },
        "ha": get("cluster", "ha", "resources"),
        "mappings": get("cluster", "mapping", "pci"),
    }
    listed = get("cluster", "resources")
    for row in listed:
        if row["type"] == "qemu":
            path = ("nodes", row["node"], "qemu", row["vmid"])
            found[f"vm {row['vmid']}"] = get(*path, "config")
            found[f"snapshots {row['vmid']}"] = get(*path, "snapshot")
        if row["type"] == "lxc":
            path = ("nodes", row["node"], "lxc", row["vmid"])
            found[f"container {row['vmid']}"] = get(*path, "config")
        if row["type"] == "storage":
            path = ("nodes", row["node"], "storage", row["storage"])
            found[f"volumes {row['node']} {row['storage']}"] = get(*path, "content")
    found["resources"] = [
        {key: value for key, value in row.items() if row["type"] != "pool" or key == "pool"}
        for row in listed  # the figures of a pool are those of its running guests, a little late
    ]
    return {key: _sorted(value) for key, value in found.items()}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(one) for key, one in sorted(value.items()) if key not in _MOVING}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=str)
    return value


def made(lab: Lab, name: str, **options: Any) -> dict[str, Any]:
    """Create a tenant and return the connection options of its token."""
    result = do(lab, "tenant", name=name, **{**RIGHTS, **options})
    (site,) = result["credentials"]["sites"]
    return {key: site[key] for key in ("host", "ca_path", "token_id", "token_secret")}


def login_of(file: Path, password: str | None = None) -> dict[str, Any]:
    """Return the token in the file of a tenant, as connection options; with a password, of a file
    that ansible-vault decrypts.
    """
    text = file.read_text(encoding="utf-8").partition("\n")[2]
    if password:
        text = VaultLib([("default", VaultSecret(password.encode()))]).decrypt(file.read_bytes())
    site = json.loads(text)["sites"][0]
    return {key: site[key] for key in ("token_id", "token_secret")}


class Interrupted(BaseException):
    """The process was ended."""


class _Steps(ProxmoxerTransport):
    """Calls `step` before and after each write."""

    step: Callable[[], None]

    def send(self, request: Request) -> Any:
        if request.method == "GET":
            return super().send(request)
        self.step()
        answer = super().send(request)
        self.step()
        return answer


def options_of(**given: Any) -> dict[str, Any]:
    """Return the options of module tenant with their defaults."""
    spec = tenant_spec()
    return {**dict.fromkeys(spec), **parse_options(spec, given)}


class _After(ProxmoxerTransport):
    """Calls `other` once, after the request with this number, the first of which is 1."""

    number: int
    other: Callable[[], object]

    def send(self, request: Request) -> Any:
        answer = super().send(request)
        self.number -= 1
        if self.number == 0:
            self.other()
        return answer


def run_with(lab: Lab, number: int, other: Callable[[], object], **given: Any) -> bool:
    """Run module tenant, and do `other` after the request with this number.

    Return whether the run had that many requests. Raises FleetError.
    """
    transport = _After(lab.client.connection, Clock())
    transport.number, transport.other = number, other
    with Client(lab.client.connection, transport=transport) as client:
        run(options_of(**given), client)
    return transport.number <= 0


def run_in_steps(lab: Lab, step: Callable[[], None], **given: Any) -> Result:
    """Run module tenant, and call `step` before and after each write, and before and after each
    time that the file with the login is reserved, written or removed.
    """
    write, remove = credentials.write, credentials.remove

    def hand_over(*arguments: Any) -> None:
        step()
        write(*arguments)
        step()

    def take_away(*arguments: Any) -> None:
        step()
        remove(*arguments)
        step()

    transport = _Steps(lab.client.connection, Clock())
    transport.step = step
    with (
        Client(lab.client.connection, transport=transport) as client,
        mock.patch.object(credentials, "write", hand_over),
        mock.patch.object(credentials, "remove", take_away),
    ):
        return run(options_of(**given), client)


def run_until(lab: Lab, point: int, **given: Any) -> bool:
    """Run module tenant, and end it at this point of `run_in_steps`, the first of which is 1.

    Return whether it was ended.
    """
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            raise Interrupted

    try:
        run_in_steps(lab, step, **given)
    except Interrupted:
        return True
    return False


def run_around(
    lab: Lab, point: int, other: Callable[[], object], **given: Any
) -> tuple[Result | FleetError, bool]:
    """Run module tenant, and do `other` at this point of `run_in_steps`.

    Return what came of the run, and whether it had that many points.
    """
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            other()

    try:
        came: Result | FleetError = run_in_steps(lab, step, **given)
    except FleetError as error:
        came = error
    return came, passed >= point
