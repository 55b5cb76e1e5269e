# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that seals an image, run in a directory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SEAL = Path(__file__).parents[3] / "roles" / "image" / "files" / "seal.sh"
UNIT = "etc/systemd/system/multi-user.target.wants/pve-fleet-host-keys.service"


def files(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
        path.chmod(0o755)


def seal(root: Path) -> set[str]:
    """Seal a directory, and return the files in it."""
    subprocess.run(["sh", str(SEAL), str(root)], check=True)
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


def test_traces_of_one_machine_are_removed(tmp_path: Path) -> None:
    kept = {"etc/ssh/sshd_config", "etc/hosts", "var/lib/cloud/seed/user-data", "root/.bashrc"}
    emptied = {"etc/machine-id", "var/log/syslog", "var/log/apt/term.log"}
    removed = (
        "var/lib/dbus/machine-id",
        "var/lib/systemd/random-seed",
        "etc/ssh/ssh_host_ed25519_key",
        "etc/ssh/ssh_host_ed25519_key.pub",
        "var/lib/cloud/instances/i-1/user-data.txt",
        "etc/netplan/50-cloud-init.yaml",
        "var/lib/dhcp/dhclient.leases",
        "var/log/syslog.1",
        "var/log/apt/term.log.1.gz",
        "var/log/journal/0123/system.journal",
        "root/.bash_history",
        "home/ops/.python_history",
        "tmp/left/behind",
        "var/lib/apt/lists/debian.org",
    )
    connection = "tmp/.pve-fleet.0123456789/input"
    files(tmp_path, *kept, *emptied, *removed, connection, "usr/bin/cloud-init")
    assert seal(tmp_path) == kept | emptied | {connection, "usr/bin/cloud-init"}
    assert all(not (tmp_path / name).read_text(encoding="utf-8") for name in emptied)
    # A second run finds nothing to do.
    assert seal(tmp_path) == kept | emptied | {connection, "usr/bin/cloud-init"}


@pytest.mark.parametrize("with_cloud_init", [True, False])
def test_host_keys_come_back_without_cloud_init(tmp_path: Path, with_cloud_init: bool) -> None:
    """A clone of a container keeps the host keys of its template: only the creation from a file
    makes new ones (pve-container: LXC/Setup.pm, post_clone_hook and post_create_hook).
    """
    files(tmp_path, "usr/bin/ssh-keygen", "etc/systemd/system/ssh.service")
    if with_cloud_init:
        files(tmp_path, "usr/bin/cloud-init")
    left = seal(tmp_path)
    assert (UNIT in left) is not with_cloud_init
    if not with_cloud_init:
        unit = (tmp_path / UNIT).read_text(encoding="utf-8")
        assert "ConditionPathExistsGlob=!/etc/ssh/ssh_host_*_key" in unit
        assert "ExecStart=/usr/bin/ssh-keygen -A" in unit
