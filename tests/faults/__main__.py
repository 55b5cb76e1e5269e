"""`python -m tests.faults [--jobs N] [WORD ...]`: the whole table, or the scenarios with a word."""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":
    # Only with this the collection can be imported by its own name.
    importlib.import_module("tests.conftest")
    sys.exit(importlib.import_module("tests.faults.cli").main())
