# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks in the controller's process: when they run there, their connection and their progress."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.endpoint import (
    parse_endpoint,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import (
    Request,
    Upload,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ConnectionSettings,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import NetworkError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.pace import RunCounts
from ansible_collections.pve.fleet.plugins.plugin_utils import (
    _arguments,
    _clients,
    _eligibility,
    _progress,
)
from tests.fake_api import FakeApi
from tests.fake_clock import FakeClock

FITS: dict[str, Any] = {
    "switched_off": False,
    "libraries_are_here": True,
    "connection": "local",
    "becomes_another": False,
    "in_background": False,
    "interpreter": "",
    "environment": {"PROXMOX_HOST": "pve"},
}


def test_what_needs_no_process_of_its_own() -> None:
    assert _eligibility.why_a_module(_eligibility.Circumstances(**FITS)) == ""


@pytest.mark.parametrize(
    ("differs", "why"),
    [
        ({"switched_off": True}, "pve_fleet_in_process"),
        ({"libraries_are_here": False}, "proxmoxer"),
        ({"connection": "ssh"}, "ssh"),
        ({"becomes_another": True}, "another user"),
        ({"in_background": True}, "asynchronous"),
        ({"interpreter": "/opt/other/bin/python3"}, "/opt/other/bin/python3"),
        ({"environment": {"PYTHONPATH": "/x", "LD_PRELOAD": "y"}}, "LD_PRELOAD, PYTHONPATH"),
    ],
)
def test_what_needs_a_process_of_its_own(differs: dict[str, Any], why: str) -> None:
    assert why in _eligibility.why_a_module(_eligibility.Circumstances(**{**FITS, **differs}))


def test_which_interpreter_is_the_controllers_own(tmp_path: Path) -> None:
    own = tmp_path / "env" / "bin" / "python3"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    (own.parent / "python").symlink_to("python3")
    other = tmp_path / "other" / "bin" / "python3"
    other.parent.mkdir(parents=True)
    other.symlink_to(sys.executable)
    for same in ("", "auto", "auto_silent", str(own), str(own.parent / "python")):
        assert _eligibility.is_own_python(same, str(own)), same
    for different in (str(other), "/nowhere/python", "/usr/bin/env python3"):
        assert not _eligibility.is_own_python(different, str(own)), different


SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "aliases": ["title"]},
    "count": {"type": "int", "default": 3},
    "secret": {"type": "str", "no_log": True},
    "rows": {
        "type": "list",
        "elements": "dict",
        "options": {"key": {"type": "str", "no_log": True}},
    },
}
ENTRY = ModuleEntry(
    lambda params, client, check: Result(), SPEC, {"mutually_exclusive": [("name", "rows")]}
)


def test_arguments_are_those_of_a_module() -> None:
    checked = _arguments.check(ENTRY, "pve.fleet.x", {"title": "web", "count": "4", "retries": "2"})
    assert (checked.error, checked.params["name"], checked.params["count"]) == ("", "web", 4)
    assert checked.params["retries"] == 2
    assert checked.params["password"] is None
    assert "alias title" in _arguments.check(ENTRY, "x", {"title": "a", "name": "b"}).warnings[0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"nosuch": 1}, "Unsupported parameters for (pve.fleet.x) module: nosuch"),
        ({"count": "many"}, "count was refused: it is not a whole number."),
        ({"name": "a", "rows": []}, "mutually exclusive: name|rows"),
        (
            {"count": "many", "nosuch": 1},
            "whole number.; Unsupported parameters for (pve.fleet.x) module: nosuch. See",
        ),
    ],
)
def test_every_mistake_in_the_arguments_is_named(arguments: dict[str, Any], error: str) -> None:
    assert error in _arguments.check(ENTRY, "pve.fleet.x", arguments).error


def test_secrets_are_starred_everywhere() -> None:
    given = {"secret": "hush-hush", "rows": [{"key": "very-quiet"}], "token_secret": "so-silent"}
    checked = _arguments.check(ENTRY, "x", given)
    said = {
        "msg": "no hush-hush, a very-quiet one",
        "vm": {"key": ["so-silent"], "n": (1, 2)},
        "changed": False,
    }
    found = _arguments.finished(said, checked, ("a so-silent warning",))
    text = json.dumps(found)
    assert not any(secret in text for secret in ("hush-hush", "very-quiet", "so-silent"))
    assert found["changed"] is False
    assert found["vm"]["n"] == [1, 2]
    assert found["invocation"]["module_args"]["count"] == 3
    assert found["invocation"]["module_args"]["secret"] == "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    assert "hush" not in repr(checked)
    finding = ModuleEntry(ENTRY.run, SPEC, secrets=lambda said: [said["name"]])
    hidden = _arguments.finished(said, _arguments.check(finding, "x", {"name": "hush-hush"}))
    assert "hush" not in json.dumps(hidden)


class Log(FakeApi):
    """Answers with the log of a task, and counts how often it is closed."""

    def __init__(self) -> None:
        super().__init__(self._log)
        self.closed = 0
        self.lines: list[str] = []

    def close(self) -> None:
        self.closed += 1

    def _log(self, request: Request) -> Any:
        if self.lines == ["down"]:
            return NetworkError(answer="down")
        rows = [{"n": number, "t": text} for number, text in enumerate(self.lines)]
        return rows[int(request.values["start"]) :]


def closed(client: Client) -> int:
    """Return how often the connections of a client were closed."""
    return cast(Log, client._layers.transport).closed


PVE = ConnectionSettings(parse_endpoint("https://pve:8006", None), user="root@pam", password="x")
OTHER = ConnectionSettings(parse_endpoint("https://pve:8006", None), user="ops@pve", password="x")


@pytest.fixture
def clients() -> _clients.Clients:
    return _clients.Clients(
        clock=FakeClock(), create=lambda connection: Client(connection, transport=Log())
    )


def lent(
    clients: _clients.Clients, connection: ConnectionSettings = PVE, **environment: str
) -> Any:
    with clients.lend(connection, environment) as client:
        return client


def test_the_next_item_finds_the_connection_open(clients: _clients.Clients) -> None:
    first = lent(clients)
    first.requests.append(("GET", "/version", 200, 1.0, 1))
    assert lent(clients) is first
    assert first.requests == []
    assert not closed(first)
    assert lent(clients, OTHER) is not first
    assert lent(clients, SSL_CERT_FILE="/ca.pem") is not first


def test_an_idle_connection_is_opened_again(clients: _clients.Clients) -> None:
    first = lent(clients)
    clients._clock.sleep(_clients.LONGEST_IDLE + 0.1)
    assert lent(clients) is first
    assert closed(first) == 1


@pytest.mark.parametrize("error", [NetworkError(answer="x"), KeyboardInterrupt()])
def test_a_client_with_trouble_is_not_lent_again(
    clients: _clients.Clients, error: BaseException
) -> None:
    def use() -> None:
        with clients.lend(PVE, {}) as lent_now:
            kept.append(lent_now)
            raise error

    kept: list[Any] = []
    with pytest.raises(type(error)):
        use()
    assert closed(kept[0]) == 1
    assert lent(clients) is not kept[0]


def test_the_oldest_of_too_many_is_closed(clients: _clients.Clients) -> None:
    first = lent(clients)
    for number in range(_clients.MAXIMUM):
        lent(clients, NUMBER=str(number))
    assert closed(first) == 1
    clients.close()
    assert lent(clients) is not first


def test_a_forked_process_opens_its_own(clients: _clients.Clients) -> None:
    first = lent(clients)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: theirs.send(lent(clients) is first)
    )
    child.start()
    assert ours.poll(30)
    assert ours.recv() is False
    child.join(30)
    assert lent(clients) is first
    assert not closed(first)


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("transferred 1.0 GiB of 4.0 GiB (25.00%)", 25.0),
        ("drive-scsi0: transferred 0.0 B of 3.0 GiB (0.00%) in 0s", 0.0),
        ("  1024K ........ ........ ........  12% 25.1M 10s", 12.0),
        ("migration active, transferred 512.0 MiB of 1.0 GiB VM-state, 100 MiB/s", 50.0),
        # pve-qemu, vma-reader.c in 0026-PVE-Backup-add-vma-backup-format-code.patch
        ("progress 37% (read 1234567890 bytes, duration 3 sec)", 37.0),
        ("total bytes read 3221225472, sparse bytes 2147483648 (66.7%)", None),
        # proxmox-backup-qemu, src/restore.rs
        ("progress 37% (read 398 bytes, zeroes = 5% (20 bytes), duration 3 sec)", 37.0),
        ("restore image complete (bytes=3221225472, duration=3.00s, speed=1024.00MB/s)", None),
        # qemu-server, VZDump/QemuServer.pm
        ("INFO:  37% (1.1 GiB of 3.0 GiB) in 5s, read: 1 GiB/s, write: 5 MiB/s", 37.0),
        ("INFO: backup is sparse: 1.50 GiB (50%) total zero data", None),
        ("INFO: backup was done incrementally, reused 2.00 GiB (66%)", None),
        # qemu-server, QemuMigrate.pm
        ("xbzrle: send updates to 9 pages in 1 KiB, cache-miss 33.33%, overflow 0", None),
        ("mirror-scsi0: transferred 1.5 GiB of 3.0 GiB (50.00%) in 5s", 50.0),
        ("create full clone of drive scsi0", None),
        ("999% sure", None),
        ("transferred 0.0 B of 0.0 B VM-state", None),
    ],
)
def test_how_far_a_line_says(line: str, share: float | None) -> None:
    assert _progress.percent(line) == share


TERMINAL = _progress.ProgressMode(True, 1.0, 1.5)
LOG = _progress.ProgressMode(False, 30.0, 30.0)
OFTEN = _progress.ProgressMode(False, 1.0, 1.5)


@pytest.mark.parametrize(
    ("setting", "environ", "terminal", "mode"),
    [
        (None, {}, True, TERMINAL),
        (None, {}, False, LOG),
        (None, {"AWX_PRIVATE_DATA_DIR": "/runner"}, True, LOG),
        (True, {"AWX_PRIVATE_DATA_DIR": "/runner"}, False, OFTEN),
        (False, {}, True, None),
    ],
)
def test_how_progress_is_shown(
    setting: bool | None,
    environ: dict[str, str],
    terminal: bool,
    mode: _progress.ProgressMode | None,
) -> None:
    assert _progress.mode_of(setting, environ, terminal) == mode


def counts(done: int, failed: int = 0, number: int = 100, **more: Any) -> RunCounts:
    busy = [("acme/web7", 12.4), ("acme/web8", 3.0)]
    return RunCounts("created", number, done, failed, 200.0, more.pop("busy", busy), **more)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            counts(37, 1),
            "[####......] 37/100 created, 1 failed, 2 at work (acme/web7 12 s), about 5 min left",
        ),
        (
            counts(50, busy=[("acme/web7", 12.4)] * 9),
            "[#####.....] 50/100 created, 9 at work (acme/web7 12 s), about 3 min left",
        ),
        (
            counts(80, busy=[("acme/web7", 12.4)] * 10),
            "[########..] 80/100 created, 10 at work (acme/web7 12 s), about 36 s left",
        ),
        (counts(0), "[..........] 0/100 created, 2 at work (acme/web7 12 s)"),
        (counts(100, busy=[]), "[##########] 100/100 created"),
        (counts(99, 1, busy=[]), "[##########] 99/100 created, 1 failed"),
    ],
)
def test_description_of_a_run(run: RunCounts, text: str) -> None:
    assert _progress.describe_run(run) == text


def test_time_left_fits_a_narrow_terminal() -> None:
    whole = "[####......] 37/100 created, 1 failed, 2 at work (acme/web7 12 s), about 5 min left"
    short = "[####......] 37/100 created, 1 failed, 2 at work (acme... 12 s), about 5 min left"
    shortest = "[####......] 37/100 created, 1 failed, 2 at work, about 5 min left"
    assert _progress.describe_run(counts(37, 1), len(whole) + 1) == whole
    assert _progress.describe_run(counts(37, 1), len(short) + 1) == short
    assert _progress.describe_run(counts(37, 1), 70) == shortest


def shown_run(mode: _progress.ProgressMode, number: int) -> list[str]:
    """Return the output of a run whose guests finish one after the other, each in 0.1 s."""
    log, clock, output = Log(), FakeClock(), cast(list[str], [])

    def show(text: str, newline: bool = True, screen_only: bool = False) -> None:
        assert newline is not screen_only
        output.append(text)

    watcher = _progress.Watcher(log.client(), show, "", mode, _progress.Beat(), clock)
    for at in range(number):
        clock.now += 0.1
        watcher.note_run(counts(at, number=number))
        watcher.note_run(counts(at + 1, number=number, finished=f"acme/web{at}", took=0.1))
    watcher.close()
    return output


def test_a_log_has_a_line_for_each_guest_up_to_fifty() -> None:
    lines = shown_run(LOG, 50)
    assert lines[0] == "acme/web0 created in 0 s (1/50)"
    assert len(lines) == 50


def test_a_log_of_more_guests_has_a_line_for_each_tenth() -> None:
    lines = shown_run(LOG, 120)
    assert [line.split()[1] for line in lines] == [f"{12 * at}/120" for at in range(1, 11)]
    assert not any("\r" in line or "\x1b" in line for line in lines)


def test_a_log_of_a_slow_run_has_a_line_every_30_seconds() -> None:
    log, clock, lines = Log(), FakeClock(), cast(list[str], [])
    watcher = _progress.Watcher(log.client(), lines.append, "", LOG, _progress.Beat(), clock)
    for _second in range(95):
        clock.now += 1
        watcher.note_run(counts(3, number=100))
    assert len(lines) == 3


def test_a_terminal_has_one_line_that_rewrites_itself_once_a_second() -> None:
    output = shown_run(TERMINAL, 100)
    *drawn, last = output
    assert 9 <= len(drawn) <= 11
    assert all(text.startswith("\r\x1b[K[") and text.endswith("\r") for text in drawn)
    assert all("\n" not in text and len(text) < 5 + _progress.COLUMNS for text in drawn)
    assert last == "\r\x1b[K"


def test_a_line_tells_what_how_far_and_how_long() -> None:
    log, clock, lines = Log(), FakeClock(), cast(list[str], [])
    watcher = _progress.Watcher(log.client(), lines.append, "web1", OFTEN, _progress.Beat(), clock)
    upid = "UPID:pve1:0000A1B2:00C3D4E5:65A1B2C3:qmclone:9000:root@pam:"
    log.lines = ["create full clone", "transferred 0.0 B of 3.0 GiB (0.00%)"]
    for seconds in (0.5, 2.0, 2.5):  # too early, shown, too soon after it
        clock.now = 100.0 + seconds
        watcher(upid, seconds, "running")
    log.lines.append("transferred 1.0 GiB of 3.0 GiB (33.33%)")
    for seconds in (3.1, 5.2):  # the log is not asked each time
        clock.now = 100.0 + seconds
        watcher(upid, seconds, "running")
    log.lines = ["down"]
    clock.now = 110.0
    watcher(upid, 10.0, "running")
    assert lines == [
        "[web1] clone of VM 9000 on node pve1, 0 %, 2 s",
        "[web1] clone of VM 9000 on node pve1, 0 %, 3 s",
        "[web1] clone of VM 9000 on node pve1, 33 %, 5 s",
        "[web1] clone of VM 9000 on node pve1, 33 %, 10 s",
    ]
    assert [int(request.values["start"]) for request in log.asked] == [0, 2, 3]


def test_a_line_contains_no_escape_sequence() -> None:
    log, lines = Log(), cast(list[str], [])
    watcher = _progress.Watcher(log.client(), lines.append, "web\x1b[31m", OFTEN, _progress.Beat())
    upid = "UPID:pve1:0000A1B2:00C3D4E5:65A1B2C3:qmclone:9000:root@pam:"
    watcher(upid, 2.0, "io-error\x9b31m")
    (line,) = lines
    assert line.startswith("[web\ufffd[31m] clone of VM 9000 on node pve1")
    assert line.endswith("(io-error\ufffd31m)")


@pytest.mark.parametrize(
    ("sent", "size", "seconds", "text"),
    [
        (0, 6 << 30, 2.0, "0 % of 6 GiB, 0 B/s, 2 s"),
        (2640 << 20, 6 << 30, 24.0, "43 % of 6 GiB, 110 MiB/s, 24 s"),
        (6 << 30, 6 << 30, 4.0, "100 % of 6 GiB, 1.5 GiB/s, 4 s"),
        (75 << 10, 150 << 10, 50.0, "50 % of 150 KiB, 1.5 KiB/s, 50 s"),
    ],
)
def test_description_of_an_upload(sent: int, size: int, seconds: float, text: str) -> None:
    upload = Upload("/srv/debian.iso", "debian.iso", "local on node pve1")
    description = _progress.describe_upload(upload, sent, size, seconds)
    assert description == f"upload of debian.iso to local on node pve1, {text}"


def test_a_line_of_an_upload_is_shown_once_a_second() -> None:
    log, clock, lines = Log(), FakeClock(), cast(list[str], [])
    watcher = _progress.Watcher(log.client(), lines.append, "web1", OFTEN, _progress.Beat(), clock)
    upload = Upload("/srv/a.iso", "a.iso", "local on node pve1")
    for seconds in (1.0, 2.0, 2.5, 4.0):  # too early, shown, too soon after it, shown
        clock.now = 100.0 + seconds
        watcher.show_upload(upload, int(seconds) << 20, 8 << 20, seconds)
    assert lines == [
        "[web1] upload of a.iso to local on node pve1, 25 % of 8 MiB, 1 MiB/s, 2 s",
        "[web1] upload of a.iso to local on node pve1, 50 % of 8 MiB, 1 MiB/s, 4 s",
    ]
    assert log.asked == []


def test_one_line_a_second_over_all_processes() -> None:
    beat = _progress.Beat()
    assert beat.take(50.0)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: theirs.send((beat.take(50.5), beat.take(51.5)))
    )
    child.start()
    assert ours.poll(30)
    assert ours.recv() == (False, True)
    child.join(30)
    assert not beat.take(52.0)
    assert os.getpid() != child.pid
