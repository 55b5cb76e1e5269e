# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo keeps its promises, and fails when one is broken."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.__main__ import EDITS, EXAMPLES
from tests.demo.shell import DemoFailed, Output, Shell


@pytest.mark.long
def test_demo_ends_well_and_in_time(repo: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    demo = subprocess.run(
        [sys.executable, "-m", "tests.demo"], cwd=repo, capture_output=True, text=True, check=False
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""
    assert "Every check passed" in demo.stdout
    assert "\x1b" not in demo.stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 90, (
        "seconds of the processor, which do not depend on the load"
    )


@pytest.mark.slow
def test_interrupted_demo_leaves_nothing_behind(repo: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests.demo"]
    with subprocess.Popen(
        command, cwd=repo, env=environment, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("$ ansible-playbook"):
                demo.send_signal(signal.SIGTERM)
                break
        rest = demo.stdout.read()
    assert demo.returncode == 130
    assert "interrupted" in rest
    assert list(tmp_path.iterdir()) == []


def test_every_edit_of_the_demo_occurs_once_in_the_example() -> None:
    estate = (EXAMPLES / "estate.yml").read_text(encoding="utf-8")
    assert [estate.count(old) for old, new in EDITS] == [1] * len(EDITS)


def test_command_that_fails_fails_the_demo(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path, os.environ)
    with pytest.raises(DemoFailed, match="exit status 3"):
        shell.run(sys.executable, "-c", "print('why'); raise SystemExit(3)", quiet=True)
    assert "why" in capfd.readouterr().out


def test_claim_that_does_not_hold_fails_the_demo(tmp_path: Path) -> None:
    with pytest.raises(DemoFailed, match="nothing was written.*POST /nodes"):
        Shell(tmp_path, {}).check(False, "nothing was written", "POST /nodes")


def test_recap_is_the_sum_over_all_hosts() -> None:
    text = (
        "changed=9\nPLAY RECAP ***\na : ok=2 changed=1 unreachable=0 failed=0\nb : ok=3 changed=1"
        " failed=1\n"
    )
    assert Output(text, 1.0).recap() == {"ok": 5, "changed": 2, "unreachable": 0, "failed": 1}
    with pytest.raises(DemoFailed):
        Output("nothing", 1.0).recap()
