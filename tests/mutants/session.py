# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One session of pytest that collects the tests once, and runs them in forks."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop

from tests.mutants import live
from tests.mutants.sample import Mutant

# A mutant can make a loop endless, and each round of it larger.
SECONDS, BYTES = 240, 6 << 30


class Session:
    """A plugin of pytest: `work` has the session in place of its tests.

    `found` says for each test which files and lines it executes.
    """

    def __init__(self, root: Path, folder: str, jobs: int, work: Callable[[Session], None]) -> None:
        self.root, self.folder, self.jobs, self.work = root, folder, jobs, work
        self.found: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        self.functions = live.loaded(self.folder)
        self.work(self)
        return True

    def probe(self, mutants: Sequence[Mutant]) -> list[str]:
        """Find what each test executes; return the tests that fail in a fork without a mutant."""
        for file in sorted((self.root / self.folder).rglob("*.py")):
            name = str(file.relative_to(self.root))
            text = file.read_text(encoding="utf-8")
            lines = {mutant.line for mutant in mutants if mutant.file == name}
            pairs = live.replaced(live.compiled(text), live.probed(name, text, lines)) or []
            live.put(name, pairs, self.functions)
        by_file: dict[str, list[str]] = {}
        for nodeid in self.items:
            by_file.setdefault(nodeid.partition("::")[0], []).append(nodeid)
        with tempfile.TemporaryDirectory() as folder:
            answers = [Path(folder, str(number)) for number in range(len(by_file))]
            calls = [
                lambda names=names, answer=answer: self._heard(names, answer)
                for names, answer in zip(by_file.values(), answers, strict=True)
            ]
            for _number, _status in in_forks(calls, self.jobs, 5 * SECONDS):
                pass
            for answer in filter(Path.exists, answers):
                for nodeid, passed, seconds, heard in json.loads(answer.read_text("utf-8")):
                    if passed:
                        self.found[nodeid], self.seconds[nodeid] = heard, seconds
        live.restore(self.functions)
        return sorted(self.items.keys() - self.found.keys())

    def _heard(self, names: Sequence[str], answer: Path) -> int:
        """Run tests and write what they execute."""
        heard: set[str] = set()
        rows: list[Any] = []

        class Ear:
            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
                heard.clear()
                begin, failed = time.perf_counter(), item.session.testsfailed
                result = yield
                passed = item.session.testsfailed == failed
                row = [item.nodeid, passed, time.perf_counter() - begin, sorted(heard)]
                rows.append(row)
                return result

        live.listen(heard.add)
        self.session.config.pluginmanager.register(Ear())
        self.session.config.option.maxfail = 0
        status = self._run(names)
        answer.write_text(json.dumps(rows), encoding="utf-8")
        return status

    def meet(self, mutant: Mutant, pairs: Sequence[live.Pair], names: Sequence[str]) -> int:
        """Run tests with a mutant in this process until one fails."""
        live.listen(lambda _text: None)
        live.put(mutant.file, pairs, self.functions)
        return self._run(names)

    def _run(self, names: Sequence[str]) -> int:
        session = self.session
        session.items = [self.items[name] for name in names]
        with contextlib.suppress(session.Failed):
            pytest_runtestloop(session)
        session._setupstate.teardown_exact(None)
        return int(session.testsfailed > 0)

    def tests_of(self, *places: str) -> list[str]:
        """Return the tests that execute one of these files or lines; the cheapest files first, so
        that most mutants are met soon.
        """
        wanted = set(places)
        names = [name for name, heard in self.found.items() if wanted.intersection(heard)]
        costs: dict[str, float] = {}
        for name in names:
            file = name.partition("::")[0]
            costs[file] = costs.get(file, 0.0) + self.seconds[name]
        return sorted(names, key=lambda name: costs[name.partition("::")[0]])


def in_forks(
    calls: Sequence[Callable[[], int]], jobs: int, seconds: float
) -> Iterator[tuple[int, int]]:
    """Call functions in processes of their own, some at once; yield the number of each with its
    status as it ends. One that takes too long is killed.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        yield from _in_forks(calls, jobs, seconds, Path(folder))


def _in_forks(
    calls: Sequence[Callable[[], int]], jobs: int, seconds: float, folder: Path
) -> Iterator[tuple[int, int]]:
    running: dict[int, tuple[int, float]] = {}
    todo = iter(enumerate(calls))
    while True:
        for number, call in itertools.islice(todo, jobs - len(running)):
            pid = _fork(call, folder / str(number), seconds)
            running[pid] = number, time.monotonic() + 4 * seconds
        if not running:
            return
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in running:
            number, _end = running.pop(pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what its tests have left
            shutil.rmtree(folder / str(number), ignore_errors=True)
            yield number, status
        elif not pid:
            _kill_late(running)
            time.sleep(0.02)


def _kill_late(running: dict[int, tuple[int, float]]) -> None:
    for pid, (_number, end) in running.items():
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)


def _fork(call: Callable[[], int], place: Path, seconds: float) -> int:
    place.mkdir()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        tempfile.tempdir = os.environ["TMPDIR"] = str(place)
        status = call()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
