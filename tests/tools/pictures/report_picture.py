# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the picture of the report in the documentation, `docs/report.png`: ``python -m
tests.tools.pictures.report_picture``. It needs the browser of the tests.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from tests.tools.stage import REPO

PICTURE = REPO / "docs" / "report.png"
DAY = 86400
WIDTH, HEIGHT = 1200, 1290
TENANTS = {
    "acme": {"quota": {"vms": 5, "cores": 8, "memory": "12G", "disk": "200G"}},
    "globex": {"quota": {"vms": 4, "memory": "10G"}},
}
PRICES = {"core": "4.50", "memory": "2.00", "storage": "0.08", "currency": "EUR"}
# Days since the newest backup of each VM that has one.
BACKUPS = {"acme-web1": 0.3, "acme-db1": 0.4, "globex-web1": 12.0, "globex-worker1": 1.0}


def main() -> int:
    """Provision the example estate on a simulated cluster, change something, and report on it."""
    import tests.conftest  # noqa: F401 - makes the collection importable
    from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import page_of
    from tests.modules.browser import open_browser

    page = page_of(_report(), "Fleet report")
    with tempfile.TemporaryDirectory() as place, open_browser() as browser:
        file = Path(place) / "report.html"
        file.write_text(page, encoding="utf-8")
        browser.open(file, width=WIDTH, height=HEIGHT)
        browser.picture(PICTURE, whole=False)
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1000} kB")
    return 0


def _report() -> dict[str, Any]:
    from tests.demo.lab import Lab
    from tests.modules.module_runner import run_module

    text = (REPO / "docs" / "examples" / "estate.yml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)
    names = ("vms", "defaults", "classes", "networks", "storage_classes")
    estate = {name: given[f"provision_{name}"] for name in names}
    estate["state"] = "started"
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as lab:

        def run(module: str, **options: Any) -> dict[str, Any]:
            result = run_module(module, {**lab.connection, **options})
            if result.get("failed"):
                raise SystemExit(result["msg"])
            return result

        some = {**estate, "vms": estate["vms"][:3]}
        run("vms", **some)
        first = run("report_info")["history"]["reports"][0]
        run("vms", **estate)
        second = run("report_info")["history"]["reports"][0]
        _change(lab)
        history = {"version": 1, "reports": [_aged(first, 6), _aged(second, 5), _aged(second, 1)]}
        report: dict[str, Any] = run(
            "report_info",
            estate=estate,
            tenants=TENANTS,
            prices=PRICES,
            history=json.dumps(history),
        )["report"]
    return report


def _aged(report: dict[str, Any], days: int) -> dict[str, Any]:
    """Return a report of the history as if it were some days old."""
    when = time.gmtime(time.time() - days * DAY)
    return {**report, "checked": time.strftime("%Y-%m-%dT%H:%M:%SZ", when)}


def _change(lab: Any) -> None:
    """Change the cluster as other users do: a VM by hand, another size, a snapshot; and backups."""
    machines = {machine.name: machine for machine in lab.machines()}
    lab.make_vm("scratch", net0="virtio,bridge=vmbr0")
    web = machines["acme-web1"]
    path = f"/nodes/{web.node}/qemu/{web.vmid}"
    lab.call("POST", f"{path}/config", cores=4, memory=4096)
    base = machines["globex-db1"]
    path = f"/nodes/{base.node}/qemu/{base.vmid}"
    lab.call("POST", f"{path}/snapshot", snapname="before-upgrade")
    for name, days in BACKUPS.items():
        machine = machines[name]
        volume = f"local:backup/vzdump-qemu-{machine.vmid}-2026_11_20-01_00_00.vma.zst"
        made = int(time.time() - days * DAY)
        backup = {"volid": volume, "new": True, "size": 5 << 30, "ctime": made}
        lab.simulator.steer(f"/volumes/{machine.node}", backup)


if __name__ == "__main__":
    sys.exit(main())
