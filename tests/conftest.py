# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the working tree importable and runnable as the collection ``pve.fleet``, for this process
and its children.

Ansible finds collections below a directory named ``ansible_collections``. A temporary directory
that links to the repository is enough; nothing is installed or copied, so an edit is tested at
once. This happens when the file is imported, before any test module is collected, because test
modules import ``ansible_collections.pve.fleet`` at their top.
"""

from __future__ import annotations

import atexit
import gc
import locale
import os
import shutil
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

REPO = Path(__file__).resolve().parent.parent
# Also in tests/workers: nothing of the repository can be imported yet.
HOME_VARIABLE = "PVE_FLEET_TEST_HOME"


def _test_home() -> Path:
    """Return the directory with the link, made by the first process and shared with its
    pytest-xdist workers.
    """
    known = os.environ.get(HOME_VARIABLE)
    if known and Path(known).is_dir():
        return Path(known)
    home = Path(tempfile.mkdtemp(prefix="pve-fleet-test-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    namespace = home / "collections" / "ansible_collections" / "pve"
    namespace.mkdir(parents=True)
    (namespace / "fleet").symlink_to(REPO, target_is_directory=True)
    # Ansible looks each millisecond whether a task has ended, which takes processor time from it.
    (home / "ansible.cfg").write_text("[defaults]\ninternal_poll_interval = 0.005\n")
    os.environ[HOME_VARIABLE] = str(home)
    return home


def _prepare_environment(home: Path) -> None:
    """Set the configuration of Ansible, here and in subprocesses, and drop the developer's own
    variables.
    """
    for name in list(os.environ):
        if name.startswith(("PROXMOX_", "PVE_", "ANSIBLE_")) and not name.startswith("PVE_FLEET_"):
            del os.environ[name]
    os.environ.update(
        ANSIBLE_ACTION_PLUGINS=str(REPO / "tests" / "plays" / "action_plugins"),
        ANSIBLE_COLLECTIONS_PATH=str(home / "collections"),
        ANSIBLE_CONFIG=str(home / "ansible.cfg"),
        ANSIBLE_DEPRECATION_WARNINGS="true",
        ANSIBLE_HOME=str(home / "ansible"),
        ANSIBLE_LOCALHOST_WARNING="false",
        ANSIBLE_NOCOLOR="true",
        ANSIBLE_RETRY_FILES_ENABLED="false",
        # Tests leave the cache of the user unchanged.
        XDG_CACHE_HOME=str(home / "cache"),
    )
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if locale.getpreferredencoding(False).upper() != "UTF-8":
        os.environ["LC_ALL"] = "C.UTF-8"
    # Command line tools of the same environment (ansible-playbook ...) come first, without
    # activating it.
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    )


def _load_collections(home: Path) -> None:
    """Make ``import ansible_collections.pve.fleet`` work in this process, the way Ansible itself
    does it.
    """
    from ansible.plugins.loader import init_plugin_loader

    from tests.compiled import keep_compiled

    keep_compiled(home)
    init_plugin_loader([str(home / "collections")])


_home = _test_home()
_prepare_environment(_home)
if str(REPO) not in sys.path:
    sys.path.insert(0, str(REPO))  # `import tests.simulator` works from any current directory
_load_collections(_home)


# A busy machine is slow now and then; that is not a finding of a property test. The examples are
# the same in each run, so that only a change of the code changes a result; `make test-long` draws
# new ones.
hypothesis.settings.register_profile(
    "fleet", deadline=None, derandomize="PVE_FLEET_CASES" not in os.environ
)
hypothesis.settings.load_profile("fleet")

# Compiled tests are kept in `__pycache__`, which Git ignores. Otherwise each of many workers
# compiles all of it in each run: twice the time of everything else before the first test.
sys.dont_write_bytecode = False


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository, which is the root of the collection."""
    return REPO


@pytest.fixture(scope="session")
def shared(repo: Path) -> Path:
    """The reference material beside the repository (recordings, schemas).

    Tests that read it are skipped without it.
    """
    path = repo.parent / "shared"
    if not path.is_dir():
        pytest.skip("the reference material is not beside this repository: ../shared is absent")
    return path


def pytest_configure(config: pytest.Config) -> None:
    """Start the simulated clusters from a process that has the simulator loaded, and the workers
    from one that has the tests loaded: both once for all workers of a run.
    """
    from tests.simulator.process import start_from_one_process
    from tests.workers import fork_workers

    start_from_one_process(_home)
    kinds = config.getoption("tx", [])
    # Coverage counts the lines that a worker executes while it imports them.
    is_measured = bool(config.getoption("cov_source", []))
    if kinds and not is_measured and config.invocation_params.dir == REPO and hasattr(os, "fork"):
        config.option.tx = fork_workers(kinds, config.args)


def pytest_collection_finish() -> None:
    """Exclude loaded objects from later collections of garbage: they live to the end, and forked
    processes need not copy them.
    """
    gc.collect()
    gc.freeze()
