# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each playbook that writes prints at most twelve lines if nothing changes.

The banners of Ansible's default callback are counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player

ROOT = Path(__file__).resolve().parents[2]
MOST = 12
ESTATE: dict[str, Any] = {
    "tenants": {},
    "provision_defaults": {"tenant": "acme", "memory": "256M", "state": "started"},
    "provision_vms": [
        {"name": name, "agent": True, "disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
        for name in ("web", "db")
    ],
}
# The variables of each playbook that has nothing to do when it runs again.
RUNS: dict[str, dict[str, Any]] = {
    "provision": ESTATE,
    "cluster": {"cluster_options": {"description": "Fleet"}},
    "tenant": {"tenant_name": "initech", "tenant_settings": {"quota": {"vms": 3}}},
    "snapshot": {"snapshot_policy_tenant": "acme", "snapshot_policy_name": "before"},
    "backup": {"backup_tenant": "acme", "backup_storage": "local", "backup_max_age": "20h"},
    "drill": {"drill_tenant": "acme", "drill_unproven_for": "30d", "drill_settle": 0},
    "rebalance": ESTATE,
    "replace_images": ESTATE,
    "tidy": {"tidy_tenant": "acme"},
    "power": {**ESTATE, "power_state": "started"},
    "image": {"image_name": "debian-13", "image_url": "https://example.com/debian-13.qcow2"},
    "deprovision": {**ESTATE, "provision_all": True},
}
# Its test counts the lines; it needs another set-up.
COUNTED_BY = {
    "failover": "test_failover.py",
    "maintenance": "test_maintenance.py",
    "relocate": "test_relocate.py",
}
# These change something in each run.
ALWAYS_CHANGE = {"rollback", "rotate"}
# Their output is a result to read, or they run in AWX.
READ = {"audit", "drift", "export", "metrics", "plan", "preflight", "report", "status", "usage"}


def test_every_playbook_is_counted() -> None:
    known = {file.stem for file in (ROOT / "playbooks").glob("*.yml")}
    others = {name for name in known if name.startswith("awx")}
    assert known - others == {*RUNS, *COUNTED_BY, *ALWAYS_CHANGE, *READ}
    for file in COUNTED_BY.values():
        assert ".lines) <= 12" in (ROOT / "tests" / "plays" / file).read_text(encoding="utf-8")


def test_a_run_without_a_change_prints_at_most_twelve_lines(
    lab: Lab, player: Player, tmp_path: Path
) -> None:
    counts: dict[str, int] = {}
    for name, variables in RUNS.items():
        more = {"drill_directory": str(tmp_path / "drill")} if name == "drill" else {}
        (tmp_path / "given.yml").write_text(yaml.safe_dump({**variables, **more}), encoding="utf-8")
        player.play(f"pve.fleet.{name}", "-e", "@given.yml").expect()
        again = player.play(f"pve.fleet.{name}", "-e", "@given.yml").expect()
        assert again.changed == 0, again.output
        counts[name] = len(again.lines)
    assert {name: count for name, count in counts.items() if count > MOST} == {}
