"""The directories of the API: the entries below a path."""

from __future__ import annotations

from typing import Any

from ..core.api import HANDLERS, Ctx, api

_SUBDIRS = {
    "/": "version cluster nodes storage access pools",
    "/nodes/{node}/qemu/{vmid}": (
        "config cloudinit pending status unlink vncproxy termproxy migrate resize move rrd"
        " rrddata monitor agent snapshot spiceproxy sendkey firewall mtunnel remote_migrate"
    ),
    "/nodes/{node}/lxc/{vmid}/status": "current start stop shutdown reboot migrate",
    "/nodes/{node}/qemu/{vmid}/status": "current start stop reset shutdown suspend reboot",
    "/nodes/{node}/storage/{storage}": (
        "content download-url file-restore import-metadata identity oci-registry-pull"
        " prunebackups rrd rrddata status upload"
    ),
}
_NAMES = {
    "/cluster": (
        "acme backup backup-info bulk-action ceph config firewall ha jobs log mapping metrics"
        " notifications nextid options qemu replication resources status tasks sdn"
    ),
    "/nodes/{node}": (
        "aplinfo apt capabilities ceph certificates config disks dns firewall hardware hosts"
        " journal lxc migrateall netstat network qemu query-oci-repo-tags query-url-metadata"
        " replication report rrd rrddata scan sdn services spiceshell startall status stopall"
        " storage subscription suspendall syslog tasks termproxy time version vncshell vzdump"
        " wakeonlan"
    ),
    "/nodes/{node}/capabilities": "qemu",
    "/nodes/{node}/capabilities/qemu": "cpu cpu-flags machines migration",
    "/cluster/mapping": "dir pci usb",
}


def _register(path: str, key: str, names: str) -> None:
    entries = [{key: name} for name in names.split()]

    def listing(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
        return entries

    HANDLERS[("GET", path)] = listing


for _path, _words in _SUBDIRS.items():
    _register(_path, "subdir", _words)
for _path, _words in _NAMES.items():
    _register(_path, "name", _words)


@api("GET /nodes/{node}/hardware")
def hardware(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The kinds of hardware that can be passed on."""
    return [{"type": "pci"}, {"type": "usb"}]


@api("GET /nodes/{node}/capabilities/qemu/migration")
def migration_capabilities(ctx: Ctx, p: dict[str, Any]) -> dict[str, bool]:
    """Data that can move along with a running machine (qemu-server:
    API2/NodeCapabilities/Qemu/Migration.pm).
    """
    return {"has-dbus-vmstate": ctx.cluster.nodes[p["node"]].dbus_vmstate}
