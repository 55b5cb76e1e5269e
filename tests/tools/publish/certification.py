# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the checks that Automation Hub makes of a collection: ``make certification``.

They are the steps of https://github.com/ansible-collections/partner-certification-checker, in the
staged copy of the collection: galaxy-importer imports an artifact, and ansible-lint checks roles
and playbooks by its profile for production. The third step, the sanity tests, is ``make matrix``.
"""

from __future__ import annotations

import subprocess
import sys

from tests.tools.environments import NotBuilt, Requirements, build
from tests.tools.stage import COPY, REPO, tool_environment

HOME = REPO / "build" / "certification"
REQUIREMENTS = Requirements("tests/requirements-certification.txt")
SETTINGS = "[galaxy-importer]\nCHECK_REQUIRED_TAGS=True\nRUN_ANSIBLE_LINT=False\n"


def main() -> int:
    """Run both checks, also if the first one fails; return the exit status."""
    try:
        python = build(HOME, [REQUIREMENTS])
    except NotBuilt as error:
        print(f"The tools of the certification cannot be installed: {error}", file=sys.stderr)
        return 2
    settings = HOME / "galaxy-importer.cfg"
    settings.write_text(SETTINGS, encoding="utf-8")
    environment = tool_environment(COPY, str(python))
    environment["GALAXY_IMPORTER_CONFIG"] = str(settings)
    importer = ["-m", "galaxy_importer.main", "--git-clone-path", ".", "--output-path", str(HOME)]
    commands = (
        [str(python), *importer],
        ["ansible-lint", "--nocolor", "--profile=production", "-x", "sanity"],
    )
    statuses = [
        subprocess.run(command, cwd=COPY, env=environment, check=False).returncode
        for command in commands
    ]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
