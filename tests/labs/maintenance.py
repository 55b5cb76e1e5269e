# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with guests of each sort, and runs of module evacuation that end in the middle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.evacuation import (
    evacuation_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.run import run
from tests.modules.estate_lab import Lab

NODE = "pve2"
SERVICES = {"pveproxy": "running", "pve-cluster": "running", "ksmtuned": "dead"}
Places = dict[int, tuple[str, bool]]
Work = Callable[[dict[str, Any], Client], Result]


def populate(lab: Lab, *, stuck: bool = False) -> Places:
    """Put guests on the node, and return the place of each: VMs, a container, a VM that does not
    run and, with `stuck`, a VM with a device of the node.
    """
    sim = lab.simulator
    sim.steer(f"/nodes/{NODE}", {"services": SERVICES})
    for vmid, order in ((201, 2), (202, 1), (203, None)):
        config = {"memory": "2048", "scsi0": f"ceph:vm-{vmid}-disk-0,size=4G"}
        if order:
            config["startup"] = f"order={order}"
        put_vm(lab, vmid, config)
    put_vm(lab, 204, {"memory": "1024", "scsi0": "local-lvm:vm-204-disk-0,size=8G"})
    put_vm(lab, 205, {"memory": "512"}, running=False)
    config = {"hostname": "ct206", "memory": "512", "rootfs": "ceph:vm-206-disk-0,size=2G"}
    entry = {"node": NODE, "running": True, "tags": ["tenant_acme"], "config": config}
    sim.ask("POST", "/containers/206", entry)
    if stuck:
        put_vm(lab, 207, {"memory": "512", "hostpci0": "0000:01:00.0"})
    return places(lab)


def put_vm(lab: Lab, vmid: int, config: dict[str, Any], **entry: Any) -> None:
    """Put a running VM of tenant acme on the node."""
    named = {"node": NODE, "name": f"vm{vmid}", "running": True, "tags": ["tenant_acme"]}
    lab.simulator.ask("POST", f"/vms/{vmid}", {**named, **entry, "config": config})


def places(lab: Lab) -> Places:
    """Return the node of each guest, and whether it runs; without the templates."""
    sim = lab.simulator
    guests = [*sim.ask("GET", "/vms"), *sim.ask("GET", "/containers")]
    return {
        one["vmid"]: (one["node"], one["running"])
        for one in guests
        if one["vmid"] not in (9000, 9001)
    }


def on_node(lab: Lab, node: str = NODE) -> list[int]:
    """Return the guests that run on a node."""
    return sorted(vmid for vmid, place in places(lab).items() if place == (node, True))


def evacuate(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """Run the module for the node; containers may restart."""
    given = {"node": NODE, "restart_containers": True, "wait_timeout": 5, **options}
    return lab.run("evacuation", check=check, **given)


def do(lab: Lab, **options: Any) -> dict[str, Any]:
    """The same for a run that must not fail."""
    result = evacuate(lab, **options)
    assert not result.get("failed"), result["msg"]
    return result


class Killed(BaseException):
    """The process was killed."""


class _Dying(ProxmoxerTransport):
    """Sends writes until the process is killed, which is before or after one of them."""

    lock: threading.Lock
    left: int

    def send(self, request: Request) -> Any:
        if request.method == "GET":
            if self.left <= 0:
                raise Killed
            return super().send(request)
        self._step()
        answer = super().send(request)
        self._step()
        return answer

    def _step(self) -> None:
        with self.lock:
            self.left -= 1
            if self.left <= 0:
                raise Killed


def run_until(lab: Lab, point: int, **options: Any) -> Result | None:
    """Run module evacuation until the process is killed at a point, see `kill_at`."""
    given = {"node": NODE, "restart_containers": True, "wait_timeout": 5, **options}
    return kill_at(lab, point, run, evacuation_spec(), given)


def kill_at(
    lab: Lab, point: int, work: Work, spec: dict[str, Any], given: dict[str, Any]
) -> Result | None:
    """Run the work of a module until the process is killed at a point, and return None; or its
    result if it ends before. The points are before and after each write.
    """
    checked = {**dict.fromkeys(spec), **parse_options(spec, given)}
    transport = _Dying(lab.client.connection, Clock())
    transport.lock = threading.Lock()
    transport.left = point
    try:
        with Client(lab.client.connection, transport=transport) as client:
            return work(checked, client)
    except Killed:
        return None


def window(first: int, last: int) -> str:
    """Return a window that begins and ends this number of hours from now."""
    begin, end = (datetime.now() + timedelta(hours=number) for number in (first, last))
    return f"{begin:%H:%M}-{end:%H:%M}"
