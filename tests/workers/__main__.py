# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for the interpreter of a pytest-xdist worker; see starter.py for the worker itself.

execnet starts it with the options of an interpreter: `-u -c LINE`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.simulator.forks import Starter
from tests.workers import HOME_VARIABLE


def main() -> int:
    """Connect a worker to the streams of this process, and return its exit status."""
    # An interrupt is for the worker, as for one without a stand-in.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    home = Path(os.environ[HOME_VARIABLE])
    starter = Starter("tests.workers.starter", os.environ, os.getcwd(), place=home)
    worker = starter.attach(sys.argv[1:], os.environ, (0, 1, 2))
    return worker.wait()


if __name__ == "__main__":
    sys.exit(main())
