# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that forks the workers of a run: to import all tests takes longer than most of them.

A fork collects the tests once more, with the modules that are loaded already.
"""

from __future__ import annotations

import atexit
import functools
import json
import sys

import pytest
from ansible.utils.path import cleanup_tmp_file

from tests.own_files import name_files
from tests.simulator.forks import end_as_usual, serve
from tests.simulator.schema.definition import VERSIONS
from tests.simulator.starter import load_schemas
from tests.workers import collected


class Imports:
    """A plugin with which pytest imports files and makes no tests of them: marks remember the names
    of the tests that were made of them.

    Tests of Hypothesis are made: before the first one it reads all modules.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, obj: object) -> list[pytest.Item] | None:
        from hypothesis import is_hypothesis_test  # only once pytest can rewrite its plugin

        return None if is_hypothesis_test(obj) else []


@functools.cache
def load() -> None:
    """Import the collected files. A failure happens again in each worker, which reports it."""
    given = json.loads(collected().read_text(encoding="utf-8"))
    files = dict.fromkeys(path.partition("::")[0] for path in given)
    options = ["--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"]
    pytest.main([*options, *files], plugins=[Imports()])
    load_schemas(list(VERSIONS))
    from hypothesis import strategies  # only once pytest can rewrite its plugin

    # Hypothesis has a table of all characters, which a fresh clone lacks: seconds for each worker.
    strategies.text().validate()


def run(args: list[str]) -> int:
    """Be the interpreter of a worker: the last argument is its program."""
    sys.argv = ["-c"]
    # This directory is of the starter, which removes it at its own end.
    atexit.unregister(cleanup_tmp_file)
    name_files()
    try:
        exec(args[-1], {"__name__": "__main__"})
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        end_as_usual()
    return 0


if __name__ == "__main__":
    serve(run, lambda _args: load())
