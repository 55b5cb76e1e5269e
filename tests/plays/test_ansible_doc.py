# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-doc shows first of the modules that everyone starts with.

It prints description, options by name, notes and examples, in this order (ansible/cli/doc.py,
get_man_text). An option takes four lines at least, so that the examples of a module with 84 options
cannot begin before line 336. The description therefore has a first example and the options by
purpose.
"""

from __future__ import annotations

import re

import pytest

from tests.plays.commands import run
from tests.plays.provision_helpers import Player

# The last line of each: of the first example, of the purposes, and of all options.
LINES = {"vm": (15, 30, 1265), "vms": (15, 35, 2270), "clone": (15, 35, 1265)}
PURPOSES = {
    "vm": ("Which VM:", "Power:", "Hardware:", "Guest:", "Place and limits:", "Connection:"),
    "vms": ("For the list:", "For a VM:"),
    "clone": ("Which clone:", "Copy:", "Power:", "Hardware:", "Guest:", "Connection:"),
}


@pytest.fixture(scope="module", params=LINES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the lines about a module on a terminal with 80 columns."""
    player = Player(tmp_path_factory.mktemp("doc"), {"COLUMNS": "80", "ANSIBLE_NOCOLOR": "true"})
    command = ["ansible-doc", "-t", "module", f"pve.fleet.{request.param}"]
    done = run(command, player.directory, player.environment)
    assert done.returncode == 0, done.stderr
    return [request.param, *re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()]


def line_of(page: list[str], text: str) -> int:
    """Return the number of the first line with a text, from 1."""
    return next(number for number, line in enumerate(page) if number and text in line)


def test_first_example_and_purposes_come_before_the_options(page: list[str]) -> None:
    module = page[0]
    first, purposes, options = LINES[module]
    assert line_of(page, f"pve.fleet.{module}: {{") <= first
    for purpose in PURPOSES[module]:
        assert line_of(page, purpose) <= purposes
    assert line_of(page, "OPTIONS") <= purposes + 15
    assert line_of(page, "EXAMPLES:") <= options
