"""Uploads of any size, interrupted ones, and bodies that Proxmox VE refuses.

Sources: pve-http-server, AnyEvent.pm (file_upload_multipart, authenticate_and_handle_request);
pve-storage, API2/Storage/Status.pm (upload).
"""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client

LOCAL = "/nodes/pve1/storage/local"
CALL = f"{LOCAL}/upload"
BOUNDARY = "----------------edge"
MIB = bytes(1 << 20)


def form(fields: list[tuple[str, str]], file: str | None = "a.iso") -> tuple[bytes, bytes]:
    """The bytes before and after the file."""
    text = "".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    )
    if file is not None:
        text += (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="filename"; filename="{file}"'
            "\r\nContent-Type: application/octet-stream\r\n\r\n"
        )
    return text.encode(), f"\r\n--{BOUNDARY}--\r\n".encode()


def line_to(sim: Simulator) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=sim.ca)
    parts = urlsplit(sim.url)
    return http.client.HTTPSConnection(
        parts.hostname or "", parts.port, timeout=60, context=context
    )


def begin(sim: Simulator, length: int) -> http.client.HTTPSConnection:
    """A connection on which the head of an upload of that length was sent."""
    line = line_to(sim)
    line.putrequest("POST", f"/api2/json{CALL}")
    line.putheader("Authorization", f"PVEAPIToken={sim.token}")
    line.putheader("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")
    line.putheader("Content-Length", str(length))
    line.endheaders()
    return line


def peak(sim: Simulator) -> int:
    """The most memory that the server has had, in bytes."""
    text = Path(f"/proc/{sim.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_large_upload_takes_no_memory_and_its_checksum_is_verified(pve: Client) -> None:
    size = 24
    right = hashlib.sha256(MIB * size).hexdigest().upper()
    fields = [("content", "iso"), ("checksum-algorithm", "sha256"), ("checksum", right)]
    before, after = form(fields, "large.iso")
    memory = peak(pve.sim)
    line = begin(pve.sim, len(before) + size * len(MIB) + len(after))
    line.send(before)
    for _dummy in range(size):
        line.send(MIB)
    line.send(after)
    answer = line.getresponse()
    assert answer.status == 200, answer.read()
    upid = answer.read().decode().split('"')[3]
    line.close()
    assert pve.wait(upid) == "OK"
    assert "calculating checksum...OK, checksum verified" in pve.task_log(upid)
    sizes = {item["volid"]: item["size"] for item in pve.get(f"{LOCAL}/content")}
    assert sizes["local:iso/large.iso"] == size << 20
    assert peak(pve.sim) - memory < 10 << 20
    # A download under the same name compares the checksum of the file that is there.
    known = {"content": "iso", "filename": "large.iso", "url": "https://example.org/large.iso"}
    sha1 = hashlib.sha1(MIB * size, usedforsecurity=False).hexdigest()
    pve.ok(
        "POST", f"{LOCAL}/download-url", **known, **{"checksum-algorithm": "sha1", "checksum": sha1}
    )


def test_an_interrupted_upload_leaves_nothing(pve: Client) -> None:
    volumes = pve.volumes("local")
    before, _after = form([("content", "iso")])
    line = begin(pve.sim, 1 << 30)
    line.send(before + MIB)
    assert line.sock is not None
    line.sock.shutdown(socket.SHUT_RDWR)
    line.close()
    Client.until(lambda: any(entry["path"] == CALL for entry in pve.sim.log()))
    entry = next(entry for entry in pve.sim.log() if entry["path"] == CALL)
    assert entry["status"] == 0
    assert pve.volumes("local") == volumes
    assert "imgcopy" not in {task["type"] for task in pve.get("/nodes/pve1/tasks")}


def send(client: Client, fields: list[tuple[str, str]], file: str | None = "a.iso") -> str:
    """Upload a small file: status and reason, or how the task ended."""
    before, after = form(fields, file)
    body = before + (b"x" if file else b"").join((b"", after))
    head = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    answer = client.call("POST", CALL, data=body, headers=head)
    if answer.status == 200:
        return client.wait(answer.data)
    return f"{answer.status} {answer.errors if answer.body else answer.reason}"


@pytest.mark.parametrize(
    ("fields", "file", "result"),
    [
        ([("content", "iso")], "a.iso", "OK"),
        ([("content", "vztmpl")], "sub/a b.tar.gz", "OK"),
        ([("content", "iso")], "a.exe", "400 {'filename': 'wrong file extension'}"),
        (
            [("content", "import")],
            "a.iso",
            "400 {'filename': 'invalid filename or wrong extension'}",
        ),
        (
            [("content", "snippets")],
            "a.iso",
            (
                "400 {'content': \"value 'snippets' does not have a value in the enumeration"
                " 'iso, vztmpl, import'\"}"
            ),
        ),
        ([], "a.iso", "400 {'content': 'property is missing and it is not optional'}"),
        (
            [("content", "iso")],
            None,
            "500 upload failed at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1370.",
        ),
        ([("content", "iso"), ("note", "1")], "a.iso", "400 Bad Request"),
        ([("checksum", "0"), ("content", "iso")], "a.iso", "400 Bad Request"),
    ],
)
def test_what_an_upload_has_to_be(
    pve: Client, fields: list[tuple[str, str]], file: str | None, result: str
) -> None:
    assert send(pve, fields, file) == result


def test_the_end_of_the_file_is_the_closing_delimiter(pve: Client) -> None:
    """A part behind the file belongs to the file, as does half a delimiter."""
    data = f"\r\n--{BOUNDARY}\r\n--{BOUNDARY}-".encode()
    before, after = form([("content", "iso")], "odd.iso")
    line = begin(pve.sim, len(before + data + after))
    for byte in range(len(before + data + after)):
        line.send((before + data + after)[byte : byte + 1])
    answer = line.getresponse()
    assert pve.wait(answer.read().decode().split('"')[3]) == "OK"
    line.close()
    sizes = {item["volid"]: item["size"] for item in pve.get("/nodes/pve1/storage/local/content")}
    assert sizes["local:iso/odd.iso"] == len(data)


def test_uploads_go_to_storages_of_files(pve: Client) -> None:
    answer = pve.call(
        "POST",
        "/nodes/pve1/storage/ceph/upload",
        files=[("content", (None, "iso")), ("filename", ("a.iso", b"x"))],
    )
    assert answer.reason == "can't upload to storage type 'rbd'"
    assert pve.call("POST", CALL, {}).errors["filename"].startswith("property is missing")


def test_an_upload_without_multipart_gets_no_answer(pve: Client) -> None:
    with pytest.raises(requests.ConnectionError):
        pve.call("POST", CALL, {"content": "iso"})


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        (None, b"x" * ((512 << 10) + 1), "501 for data too large"),
        ("text/xml", b"<x/>", "506 upload 'Content-Type 'text/xml' not implemented"),
        (None, iter([b"x"]), "501 chunked transfer encoding not supported"),
    ],
)
def test_bodies_that_are_refused(pve: Client, kind: str | None, data: Any, reason: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = pve.call("POST", "/nodes/pve1/qemu", data=data, headers=headers)
    assert f"{answer.status} {answer.reason}" == reason


def test_the_control_plane_takes_long_bodies(sim: Simulator) -> None:
    sim.steer("/directories/pam", {"users": {"u": {"comment": "x" * (2 << 20)}}})
