"""Records of the HA resources: managed machines, and machines that the manager works on."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ..core.state import Cluster
from ..errors import PveError
from ..schema.formats import split_list

if TYPE_CHECKING:
    pass

_MODIFIED = "detected modified configuration - file changed by other user? Try again."


def sid_of(cluster: Cluster, vmid: int) -> str:
    """The ID that the guest has as an HA resource."""
    kind = "ct" if vmid in cluster.containers else "vm"
    return f"{kind}:{vmid}"


def is_configured(cluster: Cluster, vmid: int) -> bool:
    """Whether the guest is an HA resource, ignored ones included."""
    return sid_of(cluster, vmid) in cluster.ha_resources


def is_managed(cluster: Cluster, vmid: int) -> bool:
    """Whether other requests leave the guest to the HA manager (vm_is_ha_managed of Config.pm)."""
    disarm = cluster.ha_disarm
    return is_tracked(cluster, vmid) and not (disarm and disarm["mode"] == "ignore")


def is_tracked(cluster: Cluster, vmid: int) -> bool:
    """Whether the HA manager has a state of the guest; it keeps that while it is disarmed."""
    resource = cluster.ha_resources.get(sid_of(cluster, vmid))
    return resource is not None and resource.get("state", "started") != "ignored"


def digest_of(data: dict[str, Any]) -> str:
    """The digest of the state of a file."""
    return hashlib.sha1(
        json.dumps(data, sort_keys=True).encode(), usedforsecurity=False
    ).hexdigest()


def check_digest(data: dict[str, Any], given: str | None, prefix: str) -> None:
    """Refuse a change if the state differs from the one the caller read."""
    if given and given != digest_of(data):
        raise PveError(f"{prefix}: {_MODIFIED}")


def add_resource(cluster: Cluster, sid: str, options: dict[str, Any]) -> None:
    """Put a machine under the HA manager."""
    cluster.ha_resources[sid] = dict(options)
    cluster.ha_awake = True
    cluster.revision += 1


def drop_resource(cluster: Cluster, sid: str, *, purge: bool = True) -> None:
    """Take a machine from the HA manager and, when purging, out of its rules."""
    cluster.ha_resources.pop(sid, None)
    for name in list(cluster.ha_rules) if purge else ():
        rule = cluster.ha_rules[name]
        left = [item for item in split_list(rule["resources"]) if item != sid]
        if left:
            rule["resources"] = ",".join(left)
        else:
            del cluster.ha_rules[name]
    cluster.revision += 1


def at_work(cluster: Cluster, node: str) -> bool:
    """Whether the manager gives the node anything to do."""
    return (
        node in cluster.nodes and cluster.nodes[node].online and not cluster.nodes[node].maintenance
    )
