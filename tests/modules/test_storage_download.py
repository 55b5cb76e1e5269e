"""Module storage_download against the simulator: files that the node really fetches from a server
of the test.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.estate_lab import Lab, open_lab

IMAGE = b"QFI\xfb" + bytes(20) + (1 << 30).to_bytes(8, "big") + bytes(200)
ISO = b"an ISO" * 100
FILES = {
    "/disk.qcow2": IMAGE,
    "/noble.img": IMAGE,
    "/disk.iso": ISO,
    "/broken.qcow2": ISO,
    "/packed.iso.gz": gzip.compress(ISO),
    "/packed2.iso.bz2": bz2.compress(ISO),
}


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = FILES.get(self.path.partition("?")[0])
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """The address of a server with a few files."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def rough(lab: Lab) -> Iterator[Lab]:
    yield lab
    lab.simulator.clear_faults()


def download(lab: Lab, **options: Any) -> dict[str, Any]:
    result = lab.run("storage_download", storage="local", node="pve1", **options)
    assert not result.get("failed"), result
    return result


def refused(lab: Lab, *, writes: int = 0, **options: Any) -> dict[str, Any]:
    lab.simulator.reset_log()
    result = lab.run("storage_download", **{"storage": "local", "node": "pve1", **options})
    assert result.get("failed"), result
    assert len(lab.simulator.writes()) == writes
    assert "Traceback" not in str(result)
    return result


def volumes(lab: Lab) -> set[str]:
    return {row["volid"] for row in lab.client.get("nodes", "pve1", "storage", "local", "content")}


CASES: list[tuple[dict[str, Any], str]] = [
    ({"source_url": "/disk.qcow2", "filename": "a.qcow2"}, "local:import/a.qcow2"),
    ({"source_url": "/noble.img", "content": "import"}, "local:import/noble.qcow2"),
    (
        {"source_url": "/disk.iso", "checksum": f"sha256:{hashlib.sha256(ISO).hexdigest()}"},
        "local:iso/disk.iso",
    ),
    (
        {
            "source_url": "/disk.iso?sig=secret",
            "filename": "b.iso",
            "checksum": hashlib.md5(ISO).hexdigest(),
        },
        "local:iso/b.iso",
    ),
    (
        {
            "source_url": "/disk.iso",
            "filename": "c.iso",
            "checksum": hashlib.sha512(ISO).hexdigest().upper(),
        },
        "local:iso/c.iso",
    ),
    (
        {
            "source_url": "/packed.iso.gz",
            "compression": "gz",
            "checksum": hashlib.sha256(FILES["/packed.iso.gz"]).hexdigest(),
        },
        "local:iso/packed.iso",
    ),
    ({"source_url": "/packed2.iso.bz2", "compression": "bz2"}, "local:iso/packed2.iso"),
]


@pytest.mark.parametrize(("options", "volume"), CASES, ids=[volume for _options, volume in CASES])
def test_downloaded_as_foreseen_left_alone_and_removed(
    lab: Lab, web: str, options: dict[str, Any], volume: str
) -> None:
    said = {**options, "source_url": web + options["source_url"]}
    lab.simulator.reset_log()
    foreseen = lab.run("storage_download", check=True, storage="local", node="pve1", **said)
    assert foreseen["changed"]
    assert lab.simulator.writes() == []
    made = download(lab, **said)
    assert made["changed"]
    assert made["diff"] == foreseen["diff"]
    assert made["plan"] == foreseen["plan"] == made["done"]
    assert "secret" not in str(made["diff"]) + str(made["plan"])
    assert made["volume"]["volid"] == foreseen["volume"]["volid"] == volume
    assert made["volume"]["size"] in (len(IMAGE), len(ISO))
    assert volume in volumes(lab)

    lab.simulator.reset_log()
    again = download(lab, **said)
    assert not again["changed"]
    assert again["diff"] == {"before": {}, "after": {}}
    assert again["volume"] == made["volume"]
    assert not download(
        lab, filename=made["volume"]["filename"], content=made["volume"]["content"]
    )["changed"]
    assert lab.simulator.writes() == []

    foreseen = lab.run(
        "storage_download", check=True, storage="local", node="pve1", state="absent", **said
    )
    assert foreseen["changed"]
    assert volume in volumes(lab)
    gone = download(lab, state="absent", **said)
    assert gone["changed"]
    assert gone["diff"] == foreseen["diff"]
    assert gone["volume"] is None
    assert volume not in volumes(lab)
    nothing = download(lab, state="absent", **said)
    assert (nothing["changed"], nothing["volume"]) == (False, None)
    foreseen = lab.run(
        "storage_download", check=True, storage="local", node="pve1", state="absent", **said
    )
    assert (foreseen["changed"], foreseen["volume"]) == (False, None)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"source_url": "ftp://x/y.iso"}, "ValidationFailed", "https://"),
    ({"source_url": "http://127.0.0.1/x.txt"}, "ValidationFailed", "x.txt"),
    ({"source_url": "http://127.0.0.1/x.iso", "content": "import"}, "ValidationFailed", ".qcow2"),
    (
        {"source_url": "http://127.0.0.1/x.iso", "filename": "../x.iso"},
        "ValidationFailed",
        "../x.iso",
    ),
    (
        {"source_url": "http://127.0.0.1/x.iso", "checksum": "sha256:12"},
        "ValidationFailed",
        "sha256:12",
    ),
    ({"source_url": "http://127.0.0.1/x.iso", "checksum": "crc:12"}, "ValidationFailed", "crc"),
    ({"source_url": "http://127.0.0.1/x.iso", "storage": "nosuch"}, "ConfigurationError", "nosuch"),
    ({"source_url": "http://127.0.0.1/x.iso", "storage": "ceph"}, "ConfigurationError", "iso"),
    (
        {"source_url": "http://127.0.0.1/x.iso", "storage": "ceph", "node": None},
        "ConfigurationError",
        "iso",
    ),
    ({"source_url": "http://127.0.0.1/x.iso", "node": "pve9"}, "ConfigurationError", "pve9"),
    ({"filename": "missing.iso"}, "NotFound", "Give source_url"),
    ({"filename": "missing.iso", "task_timeout": -1}, "ValidationFailed", "task_timeout"),
]


@pytest.mark.parametrize(
    ("options", "category", "word"), REFUSED, ids=lambda value: str(value)[:60]
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, word: str
) -> None:
    result = refused(lab, **options)
    assert result["error"]["category"] == category, result["msg"]
    assert word in result["msg"]


FAILS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"source_url": "/disk.iso", "checksum": "sha256:" + "0" * 64},
        "ValidationFailed",
        "checksum mismatch",
    ),
    ({"source_url": "/nope.iso"}, "TaskFailed", "Check the URL"),
    ({"source_url": "/broken.qcow2"}, "TaskFailed", "not in qcow2 format"),
]


@pytest.mark.parametrize(("options", "category", "word"), FAILS, ids=lambda value: str(value)[:60])
def test_what_pve_says_of_a_bad_file_is_reported(
    lab: Lab, web: str, options: dict[str, Any], category: str, word: str
) -> None:
    said = {
        **options,
        "source_url": web + options["source_url"],
        "filename": f"bad{options['source_url'][1:]}",
    }
    result = refused(lab, writes=1, **said)
    assert result["error"]["category"] == category, result["msg"]
    assert word in result["msg"]
    assert result["error"]["upid"].startswith("UPID:pve1:")
    assert result["error"]["log"]
    assert not any("bad" in volume for volume in volumes(lab))


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_answer_makes_one_file(rough: Lab, web: str, moment: str) -> None:
    rough.simulator.fault(method="POST", path="/download-url$", drop=moment)
    name = f"lost-{moment}.iso"
    assert download(rough, source_url=f"{web}/disk.iso", filename=name)["changed"]
    assert f"local:iso/{name}" in volumes(rough)
    assert not download(rough, source_url=f"{web}/disk.iso", filename=name)["changed"]


def test_a_file_without_a_checksum_is_warned_of(lab: Lab, web: str) -> None:
    said = {"source_url": f"{web}/disk.iso", "filename": "unchecked.iso"}
    for check in (True, False):
        warned = lab.run("storage_download", check=check, storage="local", node="pve1", **said)[
            "warnings"
        ]
        assert len(warned) == 1
        assert "downloaded without a checksum" in warned[0]
        assert "set checksum" in warned[0]
    assert download(lab, **said)["warnings"] == []


@pytest.mark.parametrize(("kind", "options"), [("download", {}), ("imgdel", {"state": "absent"})])
def test_a_task_that_ends_with_warnings(
    rough: Lab, web: str, kind: str, options: dict[str, Any]
) -> None:
    said = {"source_url": f"{web}/disk.iso", "filename": f"warned-{kind}.iso"}
    if options:
        download(rough, **said)
    rough.simulator.fault(task=kind, warn="the storage is nearly full", times=1)
    done = download(rough, **said, **options)
    assert done["changed"]
    assert done["warnings"][-1] == f"{done['done'][0]}: the storage is nearly full"
    assert not download(rough, **said, **options)["changed"]


def test_a_download_that_outlasts_its_time_is_picked_up(web: str) -> None:
    with open_lab("--task-ms", "download=2500", "--lag-s", "0") as slow:
        said: dict[str, Any] = {"storage": "local", "node": "pve1", "source_url": f"{web}/disk.iso"}
        late = slow.run("storage_download", task_timeout=1, **said)
        assert late["error"]["category"] == "TaskTimeout"
        upid = late["error"]["upid"]
        assert upid.startswith("UPID:pve1:")
        slow.simulator.reset_log()
        made = slow.run("storage_download", **said)
        assert made["changed"]
        assert made["volume"]["size"] == len(ISO)
        assert slow.simulator.writes() == []
        assert not slow.run("storage_download", **said)["changed"]


def test_the_node_is_chosen_where_the_storage_is(lab: Lab, web: str) -> None:
    made = lab.run(
        "storage_download", storage="local", source_url=f"{web}/disk.iso", filename="chosen.iso"
    )
    assert made["changed"], made
    assert made["volume"]["node"] == "pve1"
    elsewhere = lab.run(
        "storage_download",
        storage="local",
        node="pve3",
        source_url=f"{web}/disk.iso",
        filename="chosen.iso",
    )
    assert elsewhere["changed"]


def test_a_file_that_is_not_compressed_is_not_decompressed(rough: Lab, web: str) -> None:
    """pve-common: Tools.pm, download_file_from_url: the command must succeed."""
    options: dict[str, Any] = {
        "source_url": f"{web}/disk.iso",
        "filename": "x.iso",
        "compression": "gz",
    }
    result = refused(rough, writes=1, **options)
    assert "zcat" in result["msg"]
    assert "local:iso/x.iso" not in volumes(rough)


def test_only_isos_are_decompressed(lab: Lab, web: str) -> None:
    """pve-storage: API2/Storage/Status.pm, download_url."""
    options: dict[str, Any] = {"source_url": f"{web}/disk.qcow2", "compression": "gz"}
    assert "PVE decompresses ISOs only" in refused(lab, **options)["msg"]


def test_an_iso_in_a_drive_is_not_removed(lab: Lab, web: str) -> None:
    """PVE removes it (pve-storage: API2/Storage/Content.pm, delete)."""
    file: dict[str, Any] = {"filename": "used.iso"}
    download(lab, source_url=f"{web}/disk.iso", **file)
    disks = [{"name": "ide2", "iso": "local:iso/used.iso"}]
    lab.vm(name="reads-it", node="pve1", memory="128M", disks=[{"size": "1G"}, *disks])
    assert "reads-it) as ide2" in refused(lab, state="absent", **file)["msg"]
    assert download(lab, state="absent", force=True, **file)["changed"]
    lab.run("vm", name="reads-it", state="absent")
