"""The simulator as a package of its own: its metadata, its pytest plugin, and an installation from
this directory.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.simulator.process import CLUSTERS, ROOT

SIMULATOR = ROOT / "tests" / "simulator"

# What a user of the installed package would write. The tests depend on their order: each spoils
# something for the next.
USERS_TESTS = """
import json
import ssl
import urllib.error
import urllib.request

import pytest


def ask(simulator, path, method="GET"):
    request = urllib.request.Request(f"{simulator.url}/api2/json{path}", method=method)
    request.add_header("Authorization", f"PVEAPIToken={simulator.token}")
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=simulator.ca)),
    )
    with opener.open(request, timeout=300) as answer:
        return json.load(answer)["data"]


def test_the_demo_cluster_answers(pve_simulator):
    assert ask(pve_simulator, "/version")["release"] == "9.2"
    assert len(ask(pve_simulator, "/nodes")) == 3


def test_a_fault_is_injected(pve_simulator):
    pve_simulator.fault(
        method="GET", path="/version$", times=None, status=500, message="out of order"
    )
    with pytest.raises(urllib.error.HTTPError) as refusal:
        ask(pve_simulator, "/version")
    assert refusal.value.code == 500


def test_the_fault_of_an_earlier_test_is_gone(pve_simulator):
    assert pve_simulator.log() == []
    assert ask(pve_simulator, "/version")["release"] == "9.2"
    ask(pve_simulator, "/pools?poolid=tenant", "POST")
    assert [entry["path"] for entry in pve_simulator.writes()] == ["/pools"]


def test_the_change_of_an_earlier_test_is_gone(pve_simulator):
    assert "tenant" not in [pool["poolid"] for pool in ask(pve_simulator, "/pools")]


def test_a_second_server(pve_simulator, pve_simulator_factory):
    other = pve_simulator_factory("--nodes", 2, "--vms", 5)
    assert other.url != pve_simulator.url
    assert len(ask(other, "/nodes")) == 2
"""


def run(*command: str, cwd: Path, **environment: str) -> str:
    """The output of a program that must succeed, away from this repository."""
    own = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("PYTEST_") and key != "PYTHONPATH"
    }
    result = subprocess.run(
        command, cwd=cwd, env={**own, **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def users_project(directory: Path, settings: str = "") -> Path:
    """A directory with the tests of a user."""
    directory.mkdir()
    (directory / "test_mine.py").write_text(USERS_TESTS, encoding="utf-8")
    (directory / "pytest.ini").write_text(f"[pytest]\n{settings}", encoding="utf-8")
    return directory


def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    loaded: dict[str, Any] = tomllib.loads(
        (SIMULATOR / "pyproject.toml").read_text(encoding="utf-8")
    )
    return loaded


def test_every_room_is_packaged() -> None:
    rooms = sorted(path.parent.name for path in SIMULATOR.glob("*/__init__.py"))
    assert project()["tool"]["setuptools"]["packages"] == [
        "pve_simulator",
        *(f"pve_simulator.{room}" for room in rooms),
    ]


def test_every_data_file_is_packaged() -> None:
    patterns = project()["tool"]["setuptools"]["package-data"]["pve_simulator"]
    packaged = {path for pattern in patterns for path in SIMULATOR.glob(pattern)}
    wanted = {*(SIMULATOR / "clusters").iterdir(), *(SIMULATOR / "data").iterdir()} - {
        SIMULATOR / "data" / "README.md"
    }
    assert wanted <= packaged


def test_the_command_and_the_plugin_exist() -> None:
    settings = project()["project"]
    for target in (
        settings["scripts"]["pve-simulator"],
        settings["entry-points"]["pytest11"]["pve_simulator"],
    ):
        module, _colon, function = target.partition(":")
        loaded = importlib.import_module(module.replace("pve_simulator", "tests.simulator"))
        assert not function or callable(getattr(loaded, function))


def test_the_plugin_works_from_the_clone(tmp_path: Path) -> None:
    mine = users_project(tmp_path / "mine")
    pytest_run = (sys.executable, "-m", "pytest", "-q", "-p", "tests.simulator.pytest_plugin")
    assert "5 passed" in run(*pytest_run, cwd=mine, PYTHONPATH=str(ROOT))


def test_the_package_works_under_its_own_name(tmp_path: Path) -> None:
    """As installed, but without pip: nothing in it may name the package it lies in here."""
    shutil.copytree(
        SIMULATOR,
        tmp_path / "site" / "pve_simulator",
        ignore=shutil.ignore_patterns("__pycache__", "build"),
    )
    arguments = f"pve_simulator_args = --cluster {CLUSTERS / 'demo.yml'} --lag-s 0\n"
    mine = users_project(tmp_path / "mine", arguments)
    path = str(tmp_path / "site")
    pytest_run = (sys.executable, "-m", "pytest", "-q", "-p", "pve_simulator.pytest_plugin")
    assert "5 passed" in run(*pytest_run, cwd=mine, PYTHONPATH=path)
    text = run(sys.executable, "-m", "pve_simulator", "--help", cwd=mine, PYTHONPATH=path)
    assert text.startswith("usage: pve-simulator ")


@pytest.mark.long
def test_pip_installs_the_command_and_the_plugin(tmp_path: Path) -> None:
    """Into an empty environment, with nothing but a package index: pip fetches setuptools and the
    dependencies.
    """
    source = tmp_path / "source"
    shutil.copytree(
        SIMULATOR, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        str(source),
        "pytest",
        cwd=tmp_path,
    )
    shutil.rmtree(source)
    mine = users_project(tmp_path / "mine")
    assert "5 passed" in run(python, "-m", "pytest", "-q", cwd=mine)
    command = str(tmp_path / "venv" / "bin" / "pve-simulator")
    process = subprocess.Popen(
        [command, "--port", "0"], cwd=mine, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready https://127.0.0.1:")
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert run(command, "--help", cwd=mine).startswith("usage: pve-simulator ")
