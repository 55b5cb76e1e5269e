"""The environment of the peer and of the plot: `.venvs/bench`, built when it is missing or its pins
changed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from tests.tools.stage import REPO, stage

REQUIREMENTS = ("tests/requirements-bench.txt", "tests/requirements-bench-peer.txt")
HOME = REPO / ".venvs" / "bench"
# a copy of its own: a linter that runs at the same time changes nothing here
STAGED = REPO / "build" / "bench"

_VERSIONS = """
import json, platform
from importlib.metadata import PackageNotFoundError, version
found = {"python": platform.python_version()}
for name in ("ansible", "ansible-core", "proxmoxer", "requests", "jinja2"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class NotMeasured(Exception):
    """A part cannot be measured here; the text says why."""


def bench_python() -> Path:
    """Return the Python of the peer's environment.

    Builds it first where needed. Raises NotMeasured.
    """
    python, stamp = HOME / "bin" / "python", HOME / ".built"
    pins = [(REPO / name).read_bytes() for name in REQUIREMENTS]
    wanted = hashlib.sha256(b"".join(pins) + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"Building {HOME.relative_to(REPO)}; this takes a few minutes", flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    peer = ["--no-deps", "--ignore-requires-python"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(HOME)], check=True)
        subprocess.run([*install, "-r", REQUIREMENTS[0]], cwd=REPO, check=True)
        subprocess.run([*install, *peer, "-r", REQUIREMENTS[1]], cwd=REPO, check=True)
    except subprocess.CalledProcessError as error:
        text = (
            f"the environment of community.proxmox cannot be built (exit status {error.returncode})"
        )
        raise NotMeasured(text) from None
    stamp.write_text(wanted, encoding="utf-8")
    return python


def stage_ours() -> Path:
    """Return the collections directory that holds this collection as it is now, as an installation
    would.
    """
    stage(copy=STAGED / "ansible_collections" / "pve" / "fleet")
    return STAGED


def versions(python: Path) -> dict[str, str]:
    """Return the versions of Python and of what counts in an environment, and of community.proxmox
    where it is.
    """
    done = subprocess.run(
        [str(python), "-c", _VERSIONS], capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    manifests = python.parent.parent.glob(
        "lib/python*/site-packages/ansible_collections/community/proxmox/MANIFEST.json"
    )
    for manifest in manifests:
        information = json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]
        found["community.proxmox"] = information["version"]
    return found
