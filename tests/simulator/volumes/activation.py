"""Whether a storage can be used: its server answers, its thin pool is there.

Source: pve-storage, Storage.pm (activate_storage) and the plugins of each kind.
"""

from __future__ import annotations

import ipaddress

from ..core.state import Cluster, Storage
from ..errors import ApiError, PveError
from .volumes import is_path_based

PBS_PORT = "8007"
_SERVER_KEYS = {"nfs": "server", "cifs": "server", "esxi": "server", "iscsi": "portal"}


def server_of(kind: str, config: dict[str, str]) -> str | None:
    """The address of the server that must answer; None for kinds that are not asked."""
    if kind == "pbs":
        return config.get("server")
    address = config.get(_SERVER_KEYS.get(kind, ""), "")
    host, colon, port = address.rpartition(":")
    return (host if colon and port.isdigit() and kind == "iscsi" else address) or None


def thin_pool_of(config: dict[str, str]) -> str:
    """VG/POOL."""
    return f"{config.get('vgname')}/{config.get('thinpool')}"


def activate(cluster: Cluster, storage: Storage) -> None:
    """Raise PveError if the storage cannot be used."""
    kind, config = storage.kind, storage.config
    server = server_of(kind, config)
    if server is not None and server not in cluster.servers:
        if kind != "pbs":
            raise PveError(f"storage '{storage.name}' is not online")
        address = f"{server}:{config.get('port', PBS_PORT)}"
        raise PveError(
            f"{storage.name}: error fetching datastores - 500 Can't connect to {address}"
            f" ({refusal_of(server)})"
        )
    if kind == "lvmthin" and thin_pool_of(config) not in cluster.thin_pools:
        raise PveError(f"no such logical volume {thin_pool_of(config)}")
    makes_directories = "0" not in (config.get("create-subdirs"), config.get("mkdir"))
    if is_path_based(storage) and not storage.content and makes_directories:
        raise PveError("unknown vtype 'none'")


def refusal_of(server: str) -> str:
    """Why a connection to the server fails."""
    try:
        nearby = ipaddress.ip_address(server).is_loopback
    except ValueError:
        return "Name or service not known"
    return "Connection refused" if nearby else "Connection timed out"


def is_active(cluster: Cluster, storage: Storage) -> bool:
    """Whether it can be used."""
    try:
        activate(cluster, storage)
    except ApiError:
        return False
    return True
