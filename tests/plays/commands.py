# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands of Ansible; see ansible_starter.py for how the time to load them is saved."""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.own_files import VARIABLE
from tests.simulator.forks import Forked, Starter
from tests.simulator.process import ROOT
from tests.workers import HOME_VARIABLE

FORKED = ("ansible-playbook", "ansible-inventory")
# Variables that are different in each test or worker, and which Ansible does not read when it is
# loaded.
UNREAD = ("PROXMOX_", "PYTEST_", "CONTROLLER_", "PVE_FLEET_METRICS_", VARIABLE, "PWD")


@functools.cache
def _starter(settings: frozenset[tuple[str, str]]) -> Starter:
    home = Path(os.environ[HOME_VARIABLE])
    starter = Starter("tests.plays.ansible_starter", dict(settings), str(ROOT), place=home)
    atexit.register(starter.stop)
    return starter


def run(
    command: list[str], directory: Path, environment: Mapping[str, str], *, usual: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    `usual` says that many commands have the same environment, but for UNREAD.
    """
    if not usual or command[0] not in FORKED:
        return subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
    process = start(command, directory, environment)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.wait(), output, errors)


def start(command: list[str], directory: Path, environment: Mapping[str, str]) -> Forked:
    """Start one of the commands FORKED."""
    settings = {name: value for name, value in environment.items() if not name.startswith(UNREAD)}
    return _starter(frozenset(settings.items())).start(command, environment, str(directory))
