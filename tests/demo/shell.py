# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands where everybody can see them, and says which checks passed."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class DemoFailed(Exception):
    """A command or a check did not end as it must."""


@dataclass(frozen=True)
class Output:
    """What a command printed, and how long it took."""

    text: str
    seconds: float

    def recap(self) -> dict[str, int]:
        """Return the figures of Ansible's play recap, over all hosts."""
        figures: dict[str, int] = {}
        for name, value in re.findall(
            r"\b(ok|changed|unreachable|failed)=(\d+)", self.text.rpartition("PLAY RECAP")[2]
        ):
            figures[name] = figures.get(name, 0) + int(value)
        if not figures:
            raise DemoFailed("the command printed no play recap")
        return figures


class Shell:
    """A directory and an environment in which commands run, each shown before its output."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], started: float | None = None
    ) -> None:
        self.directory = directory
        self.environment = dict(environment)
        self.started = time.monotonic() if started is None else started

    def heading(self, text: str) -> None:
        """Say what comes next, and how many seconds have passed."""
        print(f"\n=== {text} [{time.monotonic() - self.started:.0f} s]\n", flush=True)

    def run(self, *command: str, quiet: bool = False) -> Output:
        """Run a command to its end.

        Raises DemoFailed when it fails. With `quiet` its output is shown only then.
        """
        print(f"$ {shlex.join(command)}", flush=True)
        began = time.monotonic()
        lines: list[str] = []
        with self._started(command) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if not quiet:
                    print(line, end="", flush=True)
        output = Output("".join(lines), time.monotonic() - began)
        if process.returncode != 0:
            if quiet:
                print(output.text, end="", flush=True)
            raise DemoFailed(f"exit status {process.returncode} of: {shlex.join(command)}")
        return output

    @contextmanager
    def _started(self, command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        """Start a command, and wait for its end; it is ended where the demo is interrupted."""
        process: subprocess.Popen[str] | None = None
        try:
            # A signal between the start and its return would leave a command that none waits for.
            with _held_back(signal.SIGINT, signal.SIGTERM):
                process = subprocess.Popen(
                    command,
                    cwd=self.directory,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                )
            yield process
        except BaseException:
            if process is not None:
                process.terminate()
            raise
        finally:
            if process is not None:
                process.communicate()

    def check(self, passed: bool, claim: str, otherwise: str = "") -> None:
        """Print a check that passed; raises DemoFailed for one that did not."""
        if not passed:
            raise DemoFailed(
                f"this must hold and does not: {claim}" + (f" ({otherwise})" if otherwise else "")
            )
        print(f"[checked] {claim}", flush=True)


@contextmanager
def _held_back(*numbers: signal.Signals) -> Iterator[None]:
    """Let a signal that arrives within the block take effect after it."""
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda given, _frame: arrived.append(given))
        for number in numbers
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for given in arrived:
            signal.raise_signal(given)
