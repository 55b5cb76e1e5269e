"""Files that come to a storage: uploads, and downloads from URLs, which are really fetched when
they are local.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import re
import socket
from typing import Any
from urllib.parse import urlsplit

from ..config.checks import check_volume_access
from ..core.api import Ctx, api
from ..core.state import Storage, Volume
from ..core.tasks import Task
from ..errors import ApiError, NotImplementedHere, ParamError, PermError, PveError
from ..volumes.volumes import check_enabled, is_path_based, parse_volname, storage_path

_EXTENSIONS = {
    "iso": re.compile(r".+\.(?:iso|img)\Z", re.IGNORECASE),
    "vztmpl": re.compile(r".+\.tar\.(?:gz|xz|zst|bz2)\Z", re.IGNORECASE),
    "import": re.compile(r".+\.(?:ova|qcow2|raw|vmdk)\Z", re.IGNORECASE),
}
SUMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
# Bigger files are kept as their size alone.
_KEPT = 1 << 24
_LOCAL = ("127.0.0.1", "localhost", "::1")
_TYPES = {"iso": "application/x-iso9660-image"}
QCOW2 = b"QFI\xfb"


def _check_name(content: str, name: str) -> None:
    if not _EXTENSIONS[content].match(name):
        text = (
            "invalid filename or wrong extension" if content == "import" else "wrong file extension"
        )
        raise ParamError({"filename": text})


def _format(content: str, name: str) -> str:
    extension = name.rpartition(".")[2].lower()
    if content == "vztmpl":
        return {"gz": "tgz", "xz": "txz", "zst": "tzst", "bz2": "tbz2"}.get(extension, extension)
    return "iso" if content == "iso" else extension


def virtual_size(data: bytes, fmt: str) -> int | None:
    """The size that a qcow2 image says the disk has."""
    if fmt == "qcow2" and data[:4] == QCOW2 and len(data) >= 32:
        return int.from_bytes(data[24:32], "big")
    return None


def put_file(
    ctx: Ctx,
    storage: Storage,
    node: str,
    content: str,
    name: str,
    data: bytes,
    size: int | None = None,
) -> None:
    """Store the file; one of the same name is replaced."""
    fmt = _format(content, name)
    key = f"{content}/{name}"
    held = len(data) if size is None else size
    blob = data if len(data) < _KEPT else None
    storage.on(node)[key] = Volume(
        key,
        content,
        fmt,
        held,
        int(ctx.cluster.now()),
        virtual_size=virtual_size(data, fmt),
        blob=blob,
    )


def check_image(data: bytes, name: str, path: str) -> str | None:
    """What is wrong with an image to import."""
    if name.lower().endswith(".qcow2") and data[:4] != QCOW2:
        return f"qemu-img: Could not open '{path}': Image is not in qcow2 format"
    return None


def _digest(algorithm: str | None, data: bytes) -> str:
    return hashlib.new(algorithm or "sha256", data, usedforsecurity=False).hexdigest()


@api("POST /nodes/{node}/storage/{storage}/upload")
def upload(ctx: Ctx, p: dict[str, Any]) -> str:
    """Store an uploaded file."""
    node, content, name = p["node"], p["content"], p["filename"]
    raw = p.get("tmpfilename")
    data = raw if isinstance(raw, bytes) else str(raw or "").encode("latin-1", "replace")
    storage = check_enabled(ctx.cluster, p["storage"], node)
    if content not in storage.content:
        raise PveError(f"storage '{storage.name}' does not support '{content}' content")
    _check_name(content, name)
    path = storage_path(storage, f"{content}/{name}")
    temporary = f"/var/tmp/pveupload-{ctx.cluster.random.getrandbits(128):032x}"

    async def work(task: Task) -> None:
        task.say(f"starting file import from: {temporary}")
        await task.work()
        if p.get("checksum"):
            found = _digest(p["checksum-algorithm"], data)
            if found != p["checksum"].lower():
                raise PveError(f"checksum mismatch: got '{found}' != expect '{p['checksum']}'")
        fault = check_image(data, name, temporary) if content == "import" else None
        if fault:
            raise PveError(fault)
        put_file(ctx, storage, node, content, name, data)
        task.say(f"target node: {node}")
        task.say(f"target file: {path}")
        task.say(f"file size is: {len(data)}")
        task.say("finished file import successfully")

    return ctx.task(ctx.cluster.local, "imgcopy", "", work)


# -- URLs ----------------------------------------------------------------------------------------


class Fetched:
    """What a server answered."""

    def __init__(self, status: int, reason: str, kind: str, data: bytes) -> None:
        self.status = status
        self.reason = reason
        self.kind = kind
        self.data = data


def fetch(url: str, method: str = "GET") -> Fetched:
    """Ask a server on the loopback interface; any other host is unknown here. Raises OSError."""
    parts = urlsplit(url)
    if parts.hostname not in _LOCAL:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=10)
    try:
        connection.request(method, parts.path or "/")
        answer = connection.getresponse()
        kind = answer.headers.get("Content-Type", "application/octet-stream")
        size = answer.headers.get("Content-Length")
        data = answer.read() if method == "GET" else bytes(0)
        fetched = Fetched(answer.status, answer.reason, kind, data)
        if method == "HEAD" and size:
            fetched.data = bytes(min(int(size), 1 << 26))
        return fetched
    finally:
        connection.close()


def _known_url(ctx: Ctx, url: str) -> dict[str, Any] | None:
    return ctx.cluster.web.get(url)


@api("GET /nodes/{node}/query-url-metadata")
async def query_url(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Name, size and type of what is behind a URL."""
    if not ctx.may("/", "Sys.Audit", "Sys.Modify") and not ctx.may(
        f"/nodes/{p['node']}", "Sys.AccessNetwork"
    ):
        raise PermError
    url = p["url"]
    parts = urlsplit(url)
    name = re.sub(r"[^-a-zA-Z0-9_.]", "_", parts.path.rpartition("/")[2])
    known = _known_url(ctx, url)
    if known is not None:
        return {
            "filename": name,
            "size": known["size"],
            "mimetype": known.get("type", "application/octet-stream"),
        }
    host = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    try:
        found = await asyncio.to_thread(fetch, url, "HEAD")
    except ConnectionRefusedError:
        raise PveError(
            f"invalid server response: '500 Can't connect to {host} (Connection refused)'"
        ) from None
    except OSError:
        raise PveError(
            f"invalid server response: '500 Can't connect to {host} (Name or service not known)'"
        ) from None
    if found.status != 200:
        raise PveError(f"invalid server response: '{found.status} {found.reason}'")
    return {"filename": name, "size": len(found.data), "mimetype": found.kind}


@api("POST /nodes/{node}/storage/{storage}/download-url")
def download_url(ctx: Ctx, p: dict[str, Any]) -> str:
    """Fetch a file into a storage with a task."""
    node, content, url = p["node"], p["content"], p["url"]
    name = re.sub(r"[^-a-zA-Z0-9_.]", "_", re.split(r"[/\\]", p["filename"])[-1])
    storage = check_enabled(ctx.cluster, p["storage"], node)
    if content not in storage.content:
        raise PveError(f"storage '{storage.name}' is not configured for content-type '{content}'")
    _check_name(content, name)
    checksum, algorithm = p.get("checksum"), p.get("checksum-algorithm")
    path = storage_path(storage, f"{content}/{name}")

    async def work(task: Task) -> None:
        task.say(f"downloading {url} to {path}")
        await task.work()
        held = storage.on(node).get(f"{content}/{name}")
        if held is not None:
            _check_existing(held, path, checksum, algorithm, task)
            return
        known = _known_url(ctx, url)
        data = b"" if known is not None else await _download(url, task)
        if checksum:
            task.say("calculating checksum...")
            found = (
                str(known.get(algorithm or "", checksum))
                if known is not None
                else _digest(algorithm, data)
            )
            if found.lower() != checksum.lower():
                raise PveError(f"checksum mismatch: got '{found}' != expect '{checksum}'")
            task.say("OK, checksum verified")
        temporary = f"{path}.tmp_dwnl.{task.pid}"
        if p.get("compression") and not p["url"].endswith((".gz", ".zst", ".lzo", ".bz2")):
            tool = {"gz": "zcat", "zst": "zstd -q -d -c", "lzo": "lzop -d -c", "bz2": "bzcat"}.get(
                p["compression"], "zcat"
            )
            raise PveError(f"command '{tool} {temporary}' failed: exit code 1")
        fault = (
            check_image(data, name, temporary) if content == "import" and known is None else None
        )
        if fault:
            raise PveError(f"failed to verify file: {fault}")
        put_file(ctx, storage, node, content, name, data, known["size"] if known else None)
        volume = storage.on(node)[f"{content}/{name}"]
        if known is not None and known.get("virtual_size"):
            volume.virtual_size = known["virtual_size"]
        volume.notes = None
        volume.sums = (
            {name: str(known[name]).lower() for name in SUMS if name in known} if known else {}
        )
        task.say(f"download of '{url}' to '{path}' finished")

    return ctx.task(node, "download", name, work)


def _check_existing(
    held: Volume, path: str, checksum: str | None, algorithm: str | None, task: Task
) -> None:
    if not checksum or not algorithm:
        raise PveError(f"refusing to override existing file '{path}'")
    task.say("calculating checksum of existing file...")
    found = held.sums.get(algorithm, "") or _digest(algorithm, held.blob or b"")
    if found != checksum.lower():
        raise PveError(f"checksum mismatch: got '{found}' != expect '{checksum}', aborting")
    task.say("OK, got correct file already, no need to download")


async def _download(url: str, task: Task) -> bytes:
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port or 80}"
    try:
        found = await asyncio.to_thread(fetch, url)
    except ConnectionRefusedError:
        raise PveError(
            f"download failed: Connecting to {host}... failed: Connection refused."
        ) from None
    except (OSError, http.client.HTTPException):
        raise PveError("download failed: exit code 4") from None
    task.say(f"HTTP request sent, awaiting response... {found.status} {found.reason}")
    if found.status != 200:
        raise PveError("download failed: exit code 8")
    task.say(f"Length: {len(found.data)} [{found.kind}]")
    return found.data


@api("GET /nodes/{node}/storage/{storage}/import-metadata")
def import_metadata(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """What an OVA would become; its parts are not simulated, what is none is refused."""
    storage = check_enabled(ctx.cluster, p["storage"], p["node"])
    check_volume_access(ctx, None, f"{storage.name}:{p['volume']}")
    if not is_path_based(storage):
        raise PveError("storage does not support the importer API")
    volume = parse_volname(storage, p["volume"])
    if volume.content != "import":
        raise PveError(f"invalid content type '{volume.content}'")
    if volume.fmt not in ("ova", "ovf"):
        raise PveError("invalid format")
    raise NotImplementedHere("GET", "/nodes/{node}/storage/{storage}/import-metadata")


__all__ = ["ApiError", "fetch", "put_file", "virtual_size"]
