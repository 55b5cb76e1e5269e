"""Templates of containers: appliances of Proxmox, and images of OCI registries.

Source: pve-manager, API2/Nodes.pm (aplinfo, apl_download, query_oci_repo_tags); pve-storage,
API2/Storage/Status.pm (oci_registry_pull). The lists are examples; nothing is fetched.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ..core.api import Ctx, api
from ..core.contents import Described
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..volumes.volumes import check_enabled, is_path_based
from .upload import file_name, put_file

_SYSTEM = ("alpine-3.22-default_20250617", "debian-12-standard_12.7-1", "debian-13-standard_13.1-2")
_MIRROR = "http://download.proxmox.com/images/system"
_SIZE = 120 << 20
# Tags by repository.
REGISTRY: dict[str, tuple[str, ...]] = {
    "registry.example.com/library/nginx": ("1.28", "1.29", "latest"),
    "nginx": ("1.28", "1.29", "latest"),
}


def _appliance(name: str) -> dict[str, Any]:
    package, _underscore, version = name.partition("_")
    template = f"{name}_amd64.tar.zst"
    system, _dash, rest = package.partition("-")
    return {
        "architecture": "amd64",
        "description": f"{package} (a container template)",
        "headline": package,
        "infopage": f"https://pve.proxmox.com/wiki/Linux_Container#{package}",
        "location": f"{_MIRROR}/{template}",
        "maintainer": "Proxmox Support Team <support@proxmox.com>",
        "os": f"{system}-{rest.partition('-')[0]}",
        "package": package,
        "section": "system",
        "sha512sum": hashlib.sha512(template.encode()).hexdigest(),
        "source": "https://mirror",
        "template": template,
        "type": "lxc",
        "version": version,
    }


APPLIANCES = {one["template"]: one for one in map(_appliance, _SYSTEM)}


@api("GET /nodes/{node}/aplinfo")
def appliances(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The appliances that a node can download."""
    return [dict(one) for one in APPLIANCES.values()]


@api("POST /nodes/{node}/aplinfo")
def download_appliance(ctx: Ctx, p: dict[str, Any]) -> str:
    """Fetch an appliance into a storage; one that is there already is left as it is."""
    node, template = p["node"], p["template"]
    if template not in APPLIANCES:
        raise ParamError({"template": "no such template"})
    storage = check_enabled(ctx.cluster, p["storage"], node)
    if "vztmpl" not in storage.content:
        raise PveError(f"storage '{storage.name}' does not support templates")

    async def work(task: Task) -> None:
        task.say(f"downloading {APPLIANCES[template]['location']}")
        await task.work()
        if f"vztmpl/{template}" in storage.on(node):
            task.say("OK, got correct file already, no need to download")
            return
        put_file(ctx, storage, node, "vztmpl", template, Described(_SIZE))

    return ctx.task(node, "download", template, work)


@api("GET /nodes/{node}/query-oci-repo-tags")
def repository_tags(ctx: Ctx, p: dict[str, Any]) -> list[str]:
    """The tags of a repository."""
    tags = REGISTRY.get(p["reference"])
    if tags is None:
        raise PveError(f"command 'skopeo list-tags docker://{p['reference']}' failed: exit code 1")
    return list(tags)


@api("POST /nodes/{node}/storage/{storage}/oci-registry-pull")
def pull_image(ctx: Ctx, p: dict[str, Any]) -> str:
    """Fetch an image from a registry into a storage."""
    node, reference = p["node"], p["reference"]
    storage = check_enabled(ctx.cluster, p["storage"], node)
    if not is_path_based(storage):
        raise PveError(f"can't upload to storage type '{storage.kind}', not a file based storage!")
    if "vztmpl" not in storage.content:
        raise PveError(f"storage '{storage.name}' is not configured for content-type 'vztmpl'")
    name = file_name(p.get("filename") or reference) + ".tar"
    if f"vztmpl/{name}" in storage.on(node):
        raise PveError(f"refusing to override existing file '{name}'")
    repository, _colon, tag = reference.rpartition(":")

    async def work(task: Task) -> None:
        await task.work()
        if tag not in REGISTRY.get(repository, ()):
            raise PveError(
                f"command 'skopeo copy docker://{reference} oci-archive:{name}' failed: exit code 1"
            )
        put_file(ctx, storage, node, "vztmpl", name, Described(_SIZE))

    return ctx.task(node, "ociregistrypull", name, work)
