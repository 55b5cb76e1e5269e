# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs ansible-test over the staged copy, without containers: ``python -m tests.tools.ansible_test
sanity [ARGS]`` or ``integration``.

ansible-test builds virtual environments and downloads a pip installer for each. That download is
the only thing that does not come from a package index, so the installer is provided here, from
Python's own copy (ensurepip).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from tests.tools.stage import stage

# ansible-test runs this file instead of the get-pip.py it would download. It clears PIP_* from the
# environment, so on networks with a certificate authority of their own the system's bundle must be
# named here.
_BOOTSTRAP = '''\
"""Installs pip from ensurepip, then the version that was asked for when an index offers it."""
import ensurepip
import os
import ssl
import subprocess
import sys

ensurepip.bootstrap(default_pip=True)
options = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
command = [sys.executable, "-m", "pip", "install", "--quiet"]
bundles = (
    ssl.get_default_verify_paths().cafile,
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/cert.pem",
)
for bundle in bundles:
    if bundle and os.path.exists(bundle):
        command += ["--cert", bundle]
        break
if subprocess.call(command + options):
    print("keeping the pip of ensurepip", file=sys.stderr)
'''


def wanted_pip(python_version: str) -> str:
    """Return the pip version that the installed ansible-test asks for.

    It differs between releases.
    """
    from ansible_test._internal.python_requirements import get_venv_packages

    version: str = get_venv_packages(SimpleNamespace(version=python_version))["pip"]
    return version


def provide_pip_installer(python_version: str) -> None:
    """Put the installer into the first place that ansible-test searches.

    An existing file is kept.
    """
    name = f"get_pip_{wanted_pip(python_version).replace('.', '_')}.py"
    path = Path("~/.ansible/test/cache", name).expanduser()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_BOOTSTRAP, encoding="utf-8")


def main(command: str, *arguments: str) -> int:
    """Run a command of ansible-test; return its exit status."""
    python_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    provide_pip_installer(python_version)
    bin_directory = Path(sys.executable).parent
    environment = dict(os.environ)
    # For shellcheck, which pip installed beside ansible-test.
    environment["PATH"] = os.pathsep.join([str(bin_directory), environment.get("PATH", os.defpath)])
    tool = [str(bin_directory / "ansible-test"), command, "--venv", "--python", python_version]
    done = subprocess.run([*tool, *arguments], cwd=stage(), env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
