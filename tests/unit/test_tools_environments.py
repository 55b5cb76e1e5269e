# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments: the progress of their construction, and failures with a next step in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools import environments
from tests.tools.environments import NotBuilt, Requirements, build, install

Pip = Callable[[str], Path]

RETRY = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by"
    " 'NewConnectionError: Name or service not known': /simple/aiohttp/"
)
NOTHING = "ERROR: No matching distribution found for aiohttp==3.14.5"


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    """Makes a Python whose pip is a shell script."""
    monkeypatch.setattr(environments, "REPO", tmp_path)
    monkeypatch.setattr(environments, "_PACE", 0.05)

    def write(script: str) -> Path:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        python.chmod(0o755)
        return python

    return write


def test_a_long_installation_shows_its_steps(pip: Pip, capsys: pytest.CaptureFixture[str]) -> None:
    script = "echo 'Collecting aiohttp'; echo 'WARNING: a location is ignored'; sleep 0.5"
    install(pip(script), ["-r", "some.txt"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert all(line.endswith(" s: Collecting aiohttp") for line in lines[1:])


@pytest.mark.parametrize(
    ("output", "named"),
    [
        ((RETRY, NOTHING), "Check the network and the settings of pip"),
        ((NOTHING,), "No matching distribution found for aiohttp==3.14.5"),
        ((), "pip did not start"),
    ],
)
def test_a_failure_tells_the_next_step_in_one_line(
    pip: Pip, tmp_path: Path, output: tuple[str, ...], named: str
) -> None:
    (tmp_path / "out.txt").write_text("\n".join(output), encoding="utf-8")
    with pytest.raises(NotBuilt) as failure:
        install(pip(f"cat {tmp_path}/out.txt; exit 1"), [])
    assert named in str(failure.value)
    assert str(tmp_path / "build" / "pip.log") in str(failure.value)
    assert "\n" not in str(failure.value)


def test_an_environment_is_built_again_when_an_included_file_changes(
    pip: Pip, tmp_path: Path
) -> None:
    """The stand-in counts the environments that it makes."""
    (tmp_path / "outer.txt").write_text("-r inner.txt\n", encoding="utf-8")
    made = tmp_path / "made"
    script = 'if [ "$2" = venv ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; echo 1 >>{}; fi'
    base = str(pip(script.format(made)))
    counts = []
    for version in ("1", "1", "2"):
        (tmp_path / "inner.txt").write_text(f"some=={version}\n", encoding="utf-8")
        build(tmp_path / "home", (Requirements("outer.txt"),), base)
        counts.append(len(made.read_text(encoding="utf-8").splitlines()))
    assert counts == [1, 1, 2]


def test_a_python_without_venv_is_refused_in_one_line(repo: Path, tmp_path: Path) -> None:
    command = ["make", "demo", "PYTHON=/bin/false", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(command, cwd=repo, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    message, *rest = done.stderr.splitlines()
    assert "'/bin/false' is not that. Name one: make PYTHON=/path/to/python3 env" in message
    assert [line for line in rest if not line.startswith("make")] == []
    assert not (tmp_path / "venv").exists()


def test_the_demo_imports_nothing_that_only_developers_have(repo: Path) -> None:
    """The packages of the simulator and the demo are in the small environment."""
    wanted = (repo / "tests/integration/requirements.txt").read_text(encoding="utf-8")
    forbidden = ("pytest", "hypothesis", "jsonschema", "selenium", "OpenSSL", "prometheus_client")
    assert [name for name in forbidden if f"{name}==" in wanted] == []
    block = "; ".join(f"sys.modules[{name!r}] = None" for name in forbidden)
    modules = "tests.demo.__main__, tests.simulator.__main__, tests.simulator.fidelity.run"
    code = f"import sys; {block}; import {modules}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
