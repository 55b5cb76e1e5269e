"""The environment of the peer and of the plot: `.venvs/bench`, built when it is missing or its pins
changed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.tools.environments import NotBuilt, Requirements, build
from tests.tools.stage import REPO, stage

REQUIREMENTS = (
    Requirements("tests/requirements-bench.txt"),
    Requirements("tests/requirements-bench-peer.txt", ("--no-deps", "--ignore-requires-python")),
)
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
    try:
        return build(HOME, REQUIREMENTS)
    except NotBuilt as error:
        raise NotMeasured(f"the environment of community.proxmox: {error}") from None


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
