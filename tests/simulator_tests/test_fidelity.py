"""Agreement with what a real Proxmox VE answered, in the recordings of this repository and in those
of ../shared.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.simulator.fidelity import run as fidelity
from tests.simulator.fidelity.likeness import compare, compare_refusals, normal
from tests.simulator.fidelity.replay import Answer, Verdict, figures_of, judge
from tests.simulator.fidelity.sets import PACKED, RecordedSet, load_packed, load_shared
from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.stories import Story
from tests.tools.facts import pack_recordings


@pytest.fixture(scope="module")
def packed() -> RecordedSet:
    """The recordings of this repository."""
    recorded = load_packed()
    assert recorded is not None
    return recorded


@pytest.fixture
def agreeing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every replay agrees, at once."""
    verdict = Verdict("GET /version", dict.fromkeys(fidelity.GOALS, True))
    monkeypatch.setattr(fidelity, "replay", lambda _cluster, _stories: [verdict])


# -- which recordings are used ---------------------------------------------------------------------


@pytest.mark.usefixtures("agreeing")
def test_the_recordings_beside_the_repository_are_used(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fidelity.main([]) == 0
    assert "replaying the recordings in ../shared: 12 stories" in capsys.readouterr().out


@pytest.mark.usefixtures("agreeing")
def test_without_them_those_of_the_repository_are_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fidelity, "load_shared", lambda: None)
    assert fidelity.main([]) == 0
    assert (
        "replaying the redacted recordings of this repository: 12 stories"
        in capsys.readouterr().out
    )


def test_without_any_recordings_the_comparison_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fidelity, "load_shared", lambda: None)
    monkeypatch.setattr(fidelity, "load_packed", lambda: None)
    assert fidelity.main([]) == 1
    assert capsys.readouterr().err == "fidelity: there are no recordings to compare with\n"


def test_a_set_that_is_absent_is_none(tmp_path: Path) -> None:
    assert load_shared(tmp_path) is None
    assert load_packed(tmp_path / "recordings.json.gz") is None


def test_an_empty_set_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fidelity, "load_shared", lambda: RecordedSet("nothing", "", "", [], {}, []))
    monkeypatch.setattr(fidelity, "replay", lambda _cluster, _stories: [])
    assert fidelity.main([]) == 1
    assert "TOO LOW" in capsys.readouterr().out


# -- how answers are judged ------------------------------------------------------------------------

EXCHANGE: dict[str, Any] = {
    "method": "GET",
    "path": "/version",
    "params": None,
    "status": 200,
    "reason": "OK",
}


def test_an_answer_that_agrees_has_every_mark() -> None:
    line = {**EXCHANGE, "body": {"data": {"release": "9.2", "name": "a"}}}
    verdict = judge(line, Answer(200, "OK", {"data": {"release": "8.4", "name": "a"}}))
    assert verdict.marks == {"status": True, "keys": True, "values": True}
    assert verdict.why == []


@pytest.mark.parametrize(
    ("answer", "marks"),
    [
        (Answer(500, "no", None), {"status": False, "keys": False, "values": False}),
        (
            Answer(200, "OK", {"data": {"names": "a"}}),
            {"status": True, "keys": False, "values": False},
        ),
        (
            Answer(200, "OK", {"data": {"name": 1}}),
            {"status": True, "keys": False, "values": False},
        ),
        (
            Answer(200, "OK", {"data": {"name": "b"}}),
            {"status": True, "keys": True, "values": False},
        ),
    ],
)
def test_an_answer_that_differs_loses_the_mark(answer: Answer, marks: dict[str, bool]) -> None:
    verdict = judge({**EXCHANGE, "body": {"data": {"name": "a"}}}, answer)
    assert verdict.marks == marks
    assert verdict.why


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        (Answer(400, "Parameter verification failed.", {"errors": {"vmid": "bad"}}), True),
        (Answer(400, "Parameter verification failed.", {"errors": {"vmid": "worse"}}), False),
        (Answer(400, "Parameter verification failed.", {"errors": {"name": "bad"}}), False),
        (Answer(400, "Bad Request", {"errors": {"vmid": "bad"}}), False),
    ],
)
def test_a_refusal_is_judged_by_its_texts(answer: Answer, same: bool) -> None:
    line = {
        **EXCHANGE,
        "status": 400,
        "reason": "Parameter verification failed.",
        "body": {"errors": {"vmid": "bad"}},
    }
    assert judge(line, answer).marks == {"status": True, "errors": same}


def test_elements_of_lists_are_found_in_any_order() -> None:
    one, other = {"vmid": 1, "name": "a", "lock": "x"}, {"vmid": 2, "name": "b"}
    assert compare([one, other], [other, one]) == ([], [])
    shape, value = compare([one, other], [other])
    assert (shape, value) == ([], [": 1 elements without a partner"])


def test_what_varies_is_not_compared() -> None:
    assert normal("cannot open /x at /usr/share/perl5/PVE/X.pm line 12.\n") == "cannot open /x"
    assert compare_refusals({"message": "pid 1 is gone"}, {"message": "pid 22 is gone\n"}) == []


def test_figures_count_each_mark() -> None:
    verdicts = [
        Verdict("", {"status": True, "errors": False}),
        Verdict("", {"status": True, "keys": True}),
    ]
    assert figures_of(verdicts) == {
        "status": (2, 2),
        "errors": (0, 1),
        "keys": (1, 1),
        "values": (0, 0),
    }


def test_a_share_below_the_goal_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    goals = fidelity.goals_of("access")
    assert not fidelity.passes(dict.fromkeys(fidelity.GOALS, (18, 20)), goals)
    assert "TOO LOW" in capsys.readouterr().out
    assert fidelity.passes(dict.fromkeys(fidelity.GOALS, (10, 10)), goals)


def test_a_story_without_goals_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.passes(dict.fromkeys(fidelity.GOALS, (0, 20)), fidelity.goals_of("new"))
    assert "0/20" in capsys.readouterr().out


def test_every_story_of_the_repository_has_goals(packed: RecordedSet) -> None:
    assert set(packed.around) == set(fidelity.AROUND)


# -- the recordings --------------------------------------------------------------------------------


def test_the_verdicts_on_parameters_agree(packed: RecordedSet) -> None:
    assert fidelity.disagreements(packed.vectors) == []
    assert len(packed.vectors) >= 141


def test_the_packed_recordings_are_fresh(shared: Path, packed: RecordedSet) -> None:
    recorded = load_shared()
    assert recorded is not None
    fresh = pack_recordings.document(recorded)
    assert fresh == {
        name: getattr(packed, name)
        for name in ("cluster", "cluster_around", "machines", "around", "vectors")
    }


def test_the_packed_recordings_are_small_and_tell_nothing_of_the_hosts(packed: RecordedSet) -> None:
    assert PACKED.stat().st_size < 300_000
    text = json.dumps([packed.machines, packed.around])
    assert '"ticket": ""' in text
    assert not re.search(
        r'"(?:ticket|CSRFPreventionToken|kversion|pveversion|ssl_fingerprint|cert)": "[^"]', text
    )
    assert not re.search(
        r"PVE:\w+@\w+:[0-9A-F]{8}::[A-Za-z0-9+/]{20}| at /\S+ line \d|BEGIN [A-Z"
        r" ]+KEY|Processor|GHz",
        text,
    )
    assert set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", text)) <= {
        "00000000-0000-4000-8000-000000000000"
    }


def test_what_is_not_compared_is_blank_of_the_same_type() -> None:
    answer = {
        "kversion": "Linux 6.17",
        "cpu": 0.5,
        "name": "pve1",
        "upid": "UPID:x",
        "loadavg": ["1.0"],
        "level": None,
    }
    assert pack_recordings.redacted(answer) == {
        "kversion": "",
        "cpu": 0.0,
        "name": "pve1",
        "upid": "UPID:x",
        "loadavg": [],
        "level": None,
    }
    assert compare(answer, pack_recordings.redacted(answer)) == ([], [])


def test_the_first_exchanges_agree(packed: RecordedSet) -> None:
    """A part of `make fidelity`, which replays all of them."""
    verdicts = fidelity.replay(packed.cluster, [packed.machines[0][:250]])
    assert fidelity.passes(figures_of(verdicts), fidelity.GOALS)
    assert len(verdicts) > 240


@pytest.mark.long
@pytest.mark.parametrize("which", ["packed", "shared"])
def test_the_recordings_agree(
    request: pytest.FixtureRequest, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if which == "shared":
        request.getfixturevalue("shared")
    result = fidelity.main(["--set", which])
    assert result == 0, capsys.readouterr().out


@pytest.mark.long
def test_the_scorer_beside_the_recordings_agrees_with_this_one(shared: Path) -> None:
    """Values may differ by one: what a machine shows in the moment after a task depends on the
    moment. A busy machine makes such moments longer, so that one of three replays has to agree.
    """
    recorded = load_shared()
    assert recorded is not None
    for _attempt in range(3):
        theirs = scored_beside_the_recordings(shared)
        ours = figures_of(fidelity.replay(recorded.cluster, recorded.machines))
        assert {name: total for name, (_good, total) in theirs.items()} == {
            name: total for name, (_good, total) in ours.items()
        }
        if all(abs(good - ours[name][0]) <= 1 for name, (good, _total) in theirs.items()):
            return
    pytest.fail(f"{theirs} differs from {ours}")


def scored_beside_the_recordings(shared: Path) -> dict[str, tuple[int, int]]:
    """Return good and total of each figure, as the replay program beside the recordings scores."""
    files = [str(path) for path in sorted((shared / "pve" / "recordings").glob("*.jsonl"))]
    with Simulator("--cluster", shared / "pve" / "cluster.yml", *fidelity.QUICK) as sim:
        command = [
            sys.executable,
            str(shared / "pve" / "replay.py"),
            "--url",
            sim.url,
            "--control",
            sim.control,
        ]
        output = subprocess.run(
            [*command, *files], capture_output=True, text=True, check=False
        ).stdout
    return {
        name: (int(good), int(total))
        for name, good, total in re.findall(r"^(\w+) +(\d+)/(\d+) =", output, re.M)
    }


@pytest.fixture
def files(tmp_path: Path) -> Iterator[str]:
    """The server that the story downloads from."""
    (tmp_path / "disk.iso").write_bytes(bytes(65536))
    image = bytearray(196624)
    image[:4], image[24:32] = b"QFI\xfb", (1 << 30).to_bytes(8, "big")
    (tmp_path / "disk.qcow2").write_bytes(image)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    try:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 8099), functools.partial(Quiet, directory=str(tmp_path))
        )
    except OSError:
        pytest.skip("port 8099, which the story downloads from, is in use")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:8099"
    server.shutdown()
    server.server_close()


@pytest.mark.long
def test_the_story_of_an_estate_is_followed(shared: Path, files: str) -> None:
    """Most of what differs is random (names, process IDs, order) or took place outside the API."""
    path = shared / "pve" / "stories" / "estate.jsonl"
    options = ("--cluster", CLUSTERS / "lab.yml", "--proxy-delay-s", "0", "--auth-delay-s", "0.1")
    with Simulator(*options) as sim:
        story = Story(sim.url, sim.control, path)
        verdicts = [
            (line["seq"], line["method"], line["path"], story.judge(line)) for line in story.lines()
        ]
    different = [verdict for verdict in verdicts if verdict[3]]
    assert len(verdicts) > 800
    assert len(different) <= 0.05 * len(verdicts), different
