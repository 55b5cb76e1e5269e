"""The process that forks servers, see forks.py: `python -m tests.simulator.starter FD`."""

from __future__ import annotations

import contextlib

from .__main__ import main
from .forks import serve
from .initial.build import load_schema
from .options import UsageError
from .schema.definition import VERSIONS

with contextlib.suppress(ImportError):
    __import__("uvloop")


def load_schemas(args: list[str]) -> None:
    """Have the API schema that these arguments name in memory before the fork."""
    for version in (VERSIONS[0], *args):
        if version in VERSIONS:
            with contextlib.suppress(UsageError):  # the server says so itself
                load_schema(version)


if __name__ == "__main__":
    serve(main, load_schemas)
