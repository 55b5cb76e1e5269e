"""Agreement with what a real Proxmox VE answered; needs the recordings in ../shared."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulator import fidelity
from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.stories import Story
from tests.simulator_tests.vectors import disagreements


def test_the_verdicts_on_parameters_agree(shared: Path) -> None:
    total, found = disagreements(shared / "pve" / "vectors.json")
    assert found == []
    assert total >= 141


def test_the_figures_are_read_from_the_scorer() -> None:
    output = "#1 GET /x\n     status 200\nstatus  9/10 = 0.900\nerrors  1/1 = 1.000\n"
    assert fidelity.shares(output) == {"status": (9, 10), "errors": (1, 1)}


@pytest.mark.long
def test_the_recordings_agree(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = fidelity.main([])
    assert result == 0, capsys.readouterr().out


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
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 8099), functools.partial(Quiet, directory=str(tmp_path)))
    except OSError:
        pytest.skip("port 8099, which the story downloads from, is in use")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:8099"
    server.shutdown()
    server.server_close()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_story_of_an_estate_is_followed(shared: Path, files: str) -> None:
    """Most of what differs is random (names, process IDs, order) or took place outside the API."""
    path = shared / "pve" / "stories" / "estate.jsonl"
    options = ("--cluster", CLUSTERS / "lab.yml", "--proxy-delay-s", "0", "--auth-delay-s", "0.1")
    with Simulator(*options) as sim:
        story = Story(sim.url, sim.control, path)
        verdicts = [(line["seq"], line["method"], line["path"], story.judge(line)) for line in story.lines()]
    different = [verdict for verdict in verdicts if verdict[3]]
    assert len(verdicts) > 800
    assert len(different) <= 0.05 * len(verdicts), different
