"""Workers of pytest-xdist are forks of one process, and report as others do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers import HOME_VARIABLE, fork_workers

SUITE = "tests/unit/test_tools_nesting.py"
# Loaded by each worker: it notes its parent, and whether the tests were there before it collected.
NOTES = f"""
import os, sys
from pathlib import Path

def pytest_sessionstart(session):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        loaded = {SUITE.removesuffix(".py").replace("/", ".")!r} in sys.modules
        Path(os.environ["NOTES"], worker).write_text(f"{{os.getppid()}} {{loaded}}")

def pytest_runtest_call(item):
    if os.environ["END"] == "crash":
        os.kill(os.getpid(), 9)
    if os.environ["END"] == "failure":
        raise AssertionError("this test fails")
"""


def test_only_local_workers_are_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    first, second = fork_workers(["popen", "ssh=there"], ["tests"])
    assert first == f"popen//python={sys.executable} -m tests.workers"
    assert second == "ssh=there"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status", "text"),
    [
        ("success", 0, " passed in "),
        ("failure", 1, "this test fails"),
        ("crash", 1, "crashed while running"),
    ],
)
def test_workers_are_forks_that_report_as_usual(
    tmp_path: Path, repo: Path, end: str, status: int, text: str
) -> None:
    """A process of its own that dies is replaced and reported by pytest-xdist; a fork too."""
    (tmp_path / "noted.py").write_text(NOTES, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    kept.pop(HOME_VARIABLE)
    environment = {**kept, "PYTHONPATH": str(tmp_path), "NOTES": str(tmp_path), "END": end}
    command = [sys.executable, "-m", "pytest", "-p", "noted", "-n", "2", SUITE]
    done = subprocess.run(
        command, cwd=repo, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout
    assert text in done.stdout
    parents = {(tmp_path / f"gw{number}").read_text(encoding="utf-8") for number in (0, 1)}
    assert len(parents) == 1
    assert parents.pop().endswith(" True")
