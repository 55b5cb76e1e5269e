"""Files on their way to a storage: uploads, and downloads from URLs, which are really fetched when
they are local.
"""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
from typing import Any
from urllib.parse import urlsplit

from ..config.checks import check_volume_access
from ..core.api import Ctx, api
from ..core.contents import QCOW2, Contents, Described, Received, virtual_size
from ..core.state import Storage, Volume
from ..core.tasks import Task
from ..errors import NotImplementedHere, ParamError, PermError, PveError
from ..volumes.volumes import check_enabled, is_path_based, parse_volname, storage_path

_EXTENSIONS = {
    "iso": re.compile(r".+\.(?:iso|img)\Z", re.IGNORECASE),
    "vztmpl": re.compile(r".+\.tar\.(?:gz|xz|zst|bz2)\Z", re.IGNORECASE),
    "import": re.compile(r".+\.(?:ova|qcow2|raw|vmdk)\Z", re.IGNORECASE),
}
_LOCAL = ("127.0.0.1", "localhost", "::1")
_TYPES = {"iso": "application/x-iso9660-image"}
# Bytes of a download that are in memory at once.
_PIECE = 1 << 18


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


def file_name(name: str) -> str:
    """The name that a file gets: without directories, odd characters made underscores.

    Source: pve-storage, Storage.pm, normalize_content_filename.
    """
    return re.sub(r"[^-a-zA-Z0-9_.]", "_", re.split(r"[/\\]", name.removesuffix("\n"))[-1])


def put_file(
    ctx: Ctx, storage: Storage, node: str, content: str, name: str, contents: Contents
) -> Volume:
    """Store the file; one of the same name is replaced."""
    fmt = _format(content, name)
    key = f"{content}/{name}"
    volume = Volume(
        key,
        content,
        fmt,
        contents.size,
        int(ctx.cluster.now()),
        virtual_size=virtual_size(contents, fmt),
        contents=contents,
    )
    storage.on(node)[key] = volume
    return volume


def check_image(contents: Contents, name: str, path: str, task: Task) -> None:
    """Refuse an image to import that is not an image. Raises PveError."""
    if name.lower().endswith(".qcow2") and contents.head[:4] != QCOW2:
        task.say(
            f"command '/usr/bin/qemu-img info '--output=json' {path} -f qcow2' failed: exit code 1"
        )
        raise PveError(f"qemu-img: Could not open '{path}': Image is not in qcow2 format")


def _check_file_based(storage: Storage, suffix: str = "") -> None:
    if not is_path_based(storage):
        raise PveError(f"can't upload to storage type '{storage.kind}'{suffix}")


async def _check_sum(contents: Contents, p: dict[str, Any], task: Task) -> None:
    """Verify the checksum that a request has (pve-common, Tools.pm, download_file_from_url)."""
    if not p.get("checksum"):
        return
    found = await asyncio.to_thread(contents.digest, p["checksum-algorithm"])
    if found != p["checksum"].lower():
        task.say("calculating checksum...")
        raise PveError(f"checksum mismatch: got '{found}' != expect '{p['checksum']}'")
    task.say("calculating checksum...OK, checksum verified")


@api("POST /nodes/{node}/storage/{storage}/upload")
def upload(ctx: Ctx, p: dict[str, Any]) -> str:
    """Store an uploaded file (pve-storage, API2/Storage/Status.pm, upload)."""
    node, content = p["node"], p["content"]
    storage = check_enabled(ctx.cluster, p["storage"], node)
    _check_file_based(storage)
    contents = p.get("tmpfilename")
    if not contents:
        raise PveError("missing temporary file name")
    if not isinstance(contents, Received):
        raise PveError(f"temporary file '{contents}' does not exist")
    name = file_name(p["filename"])
    _check_name(content, name)
    if content not in storage.content:
        raise PveError(f"storage '{storage.name}' does not support '{content}' content")
    path = storage_path(storage, f"{content}/{name}")
    temporary = f"/var/tmp/pveupload-{ctx.cluster.random.getrandbits(128):032x}"

    async def work(task: Task) -> None:
        task.say(f"starting file import from: {temporary}")
        await task.work()
        await asyncio.to_thread(contents.seal)
        await _check_sum(contents, p, task)
        if content == "import":
            check_image(contents, name, temporary, task)
        task.say(f"target node: {node}")
        task.say(f"target file: {path}")
        task.say(f"file size is: {contents.size}")
        task.say(f"command: {_copy_command(ctx, node, temporary, path)}")
        put_file(ctx, storage, node, content, name, contents)
        task.say("finished file import successfully")

    return ctx.task(ctx.cluster.local, "imgcopy", "", work)


def _copy_command(ctx: Ctx, node: str, temporary: str, path: str) -> str:
    if node == ctx.cluster.local:
        return f"cp -- {temporary} {path}"
    return (
        f"/usr/bin/scp -o BatchMode=yes -o HostKeyAlias={node}"
        f" -o UserKnownHostsFile=/etc/pve/nodes/{node}/ssh_known_hosts"
        f" -o GlobalKnownHostsFile=none -p -- {temporary} [{ctx.cluster.nodes[node].ip}]:{path}"
    )


# -- URLs ----------------------------------------------------------------------------------------


class Fetched:
    """The answer of a server."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.reason = answer.reason
        self.kind = answer.headers.get("Content-Type", "application/octet-stream")
        self.size = int(answer.headers.get("Content-Length") or 0)
        self.contents = Received()
        while data := answer.read(_PIECE):
            self.contents.add(data)


def fetch(url: str, method: str = "GET") -> Fetched:
    """Ask a server on the loopback interface; any other host is unknown here. Raises OSError."""
    parts = urlsplit(url)
    if parts.hostname not in _LOCAL:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=10)
    try:
        connection.request(method, parts.path or "/")
        return Fetched(connection.getresponse())
    finally:
        connection.close()


def _known_url(ctx: Ctx, url: str) -> dict[str, Any] | None:
    return ctx.cluster.web.get(url)


@api("GET /nodes/{node}/query-url-metadata")
async def query_url(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Name, size and type of the file at a URL."""
    if not ctx.may("/", "Sys.Audit", "Sys.Modify") and not ctx.may(
        f"/nodes/{p['node']}", "Sys.AccessNetwork"
    ):
        raise PermError
    url = p["url"]
    parts = urlsplit(url)
    name = file_name(parts.path)
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
    return {"filename": name, "size": found.size, "mimetype": found.kind}


@api("POST /nodes/{node}/storage/{storage}/download-url")
def download_url(ctx: Ctx, p: dict[str, Any]) -> str:
    """Fetch a file into a storage with a task."""
    node, content, url = p["node"], p["content"], p["url"]
    name = file_name(p["filename"])
    storage = check_enabled(ctx.cluster, p["storage"], node)
    _check_file_based(storage, ", not a file based storage!")
    if content not in storage.content:
        raise PveError(f"storage '{storage.name}' is not configured for content-type '{content}'")
    _check_name(content, name)
    path = storage_path(storage, f"{content}/{name}")

    async def work(task: Task) -> None:
        if p.get("compression") and content != "iso":
            raise PveError(f"decompression not supported for {content}")
        task.say(f"downloading {url} to {path}")
        await task.work()
        held = storage.on(node).get(f"{content}/{name}")
        if held is not None:
            await _check_existing(held, path, p, task)
            return
        known = _known_url(ctx, url)
        contents = known["contents"] if known is not None else await _download(url, task)
        temporary = f"{path}.tmp_dwnl.{task.pid}"
        unpacked = await asyncio.to_thread(_unpacked, contents, p.get("compression"))
        await _check_sum(contents, p, task)  # of the compressed file
        if p.get("compression"):
            task.say(f"decompressing {temporary} to {path}.tmp_dcom.{task.pid}")
        if unpacked is None:
            tool = _DECOMPRESSORS[p["compression"]]
            raise PveError(f"command '{tool} {temporary}' failed: exit code 1")
        contents = unpacked
        if content == "import" and known is None:
            try:
                check_image(contents, name, temporary, task)
            except PveError as error:
                raise PveError(f"failed to verify file: {error.message}") from None
        volume = put_file(ctx, storage, node, content, name, contents)
        if known is not None and known.get("virtual_size"):
            volume.virtual_size = known["virtual_size"]
        task.say(f"download of '{url}' to '{path}' finished")

    return ctx.task(node, "download", name, work)


# Storage.pm, decompressor_info
_DECOMPRESSORS = {"gz": "zcat", "zst": "zstd -q -d -c", "lzo": "lzop -d -c", "bz2": "bzcat -q"}


def _unpacked(contents: Contents, compression: str | None) -> Contents | None:
    """The contents without their compression, None if they have another form."""
    if not isinstance(contents, Received):
        return contents
    unpacked: Contents | None = contents
    if compression is not None:
        try:
            unpacked = contents.decompressed(compression)
        except ValueError:
            unpacked = None
    contents.seal()
    return unpacked


async def _check_existing(held: Volume, path: str, p: dict[str, Any], task: Task) -> None:
    if not p.get("checksum"):
        raise PveError(f"refusing to override existing file '{path}'")
    contents = held.contents or Described(held.size)
    found = await asyncio.to_thread(contents.digest, p["checksum-algorithm"])
    if found != p["checksum"].lower():
        task.say("calculating checksum of existing file...")
        raise PveError(f"checksum mismatch: got '{found}' != expect '{p['checksum']}', aborting")
    task.say(
        "calculating checksum of existing file...OK, got correct file already, no need to download"
    )


async def _download(url: str, task: Task) -> Received:
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
    task.say(f"Length: {found.contents.size} [{found.kind}]")
    return found.contents


@api("GET /nodes/{node}/storage/{storage}/import-metadata")
def import_metadata(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The machine that an OVA would become; its parts are not simulated, other files are
    refused.
    """
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
