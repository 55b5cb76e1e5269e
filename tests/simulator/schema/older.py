"""The calls of containers, SDN, the firewall and the settings of nodes in Proxmox VE 8.4, of which
the API viewer's schema has none.

The calls of containers are the calls of 9.2 without the additions since pve-container 5.2.6, the
version of the first 8.4. The history of pve-container has each addition, and the branch
stable-bookworm, which ends with 5.3.5, has none of them:

- 6.0.8: GET C(migrate), commit 5ed4af5
- 6.0.14: C(ha-managed), commit 33696bd
- 6.0.15: C(entrypoint) (7c2679b), C(env) (1657107) and C(host-managed) of a NIC (c5fefa1)
- 6.1.2: C(keepattrs) of a mount point, commit 6dccbc4
- 6.1.6: C(idmap) of a volume, commit 241925b

The calls of the firewall are the same for both kinds (pve-firewall: API2/Firewall/VM.pm).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Paths = Mapping[str, Mapping[str, Mapping[str, Any]]]

_CONTAINERS = "/nodes/{node}/lxc"
_FIREWALL = "/{vmid}/firewall"
_NEW_CALLS = frozenset((("GET", f"{_CONTAINERS}/{{vmid}}/migrate"),))
_NEW_PARAMETERS = frozenset(("entrypoint", "env", "ha-managed"))
_NEW_PARTS = {"net[n]": {"host-managed"}, "rootfs": {"idmap"}, "mp[n]": {"idmap", "keepattrs"}}

_NETWORKS = ("/cluster/sdn", "/cluster/firewall", "/nodes/{node}/firewall", "/nodes/{node}/sdn")
# Segments of paths, and parameters, that these calls have since 9.0.
_SINCE_9 = (
    *("lock", "rollback", "dry-run", "fabrics", "prefix-lists", "route-maps"),
    *("mac-vrf", "ip-vrf", "bridges"),
)
_PARAMS_SINCE_9 = ("lock-token", "release-lock", "fabric", "secondary-controllers", "location")
_NODES = (
    *("/nodes/{node}/config", "/nodes/{node}/certificates/info"),
    *("/nodes/{node}/services", "/cluster/ceph/status", "/cluster/ceph/flags"),
)


def containers_of_8_4(newer: Paths, older: Paths) -> dict[str, Any]:
    """Return the calls of containers in 8.4: the calls of `newer`, 9.2, without its additions. The
    firewall has the calls that `older`, 8.4, has for VMs.
    """
    found: dict[str, Any] = {}
    for path, verbs in newer.items():
        if not path.startswith(_CONTAINERS) or _FIREWALL in path:
            continue
        kept: dict[str, Any] = {}
        for verb, info in verbs.items():
            if (verb, path) not in _NEW_CALLS:
                kept[verb] = {**info, "params": _older_parameters(info["params"])}
        found[path] = kept
    for path, verbs in older.items():
        if _FIREWALL in path:
            found[path.replace("/qemu/", "/lxc/", 1)] = verbs
    return found


def _older_parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, prop in params.items():
        if name in _NEW_PARAMETERS:
            continue
        found[name] = prop
        if name in _NEW_PARTS and isinstance(prop.get("format"), dict):
            parts = {
                key: part for key, part in prop["format"].items() if key not in _NEW_PARTS[name]
            }
            found[name] = {**prop, "format": parts}
    return found


def networks_of_8_4(newer: Paths) -> dict[str, Any]:
    """Return the calls of SDN and the firewall in 8.4: the calls of `newer`, 9.2, without lock,
    rollback, dry run and fabrics (pve-network: src/PVE/API2/Network/SDN.pm of commit d7c1620, where
    C(PUT /cluster/sdn) has no parameters).
    """
    found: dict[str, Any] = {}
    for path, verbs in newer.items():
        is_newer = any(word in path.split("/") for word in _SINCE_9)
        if path.startswith(_NETWORKS) and not is_newer:
            found[path] = {verb: _older_call(info) for verb, info in verbs.items()}
    return found


def nodes_of_8_4(newer: Paths) -> dict[str, Any]:
    """Return the calls of settings, services and Ceph of nodes in 8.4: the calls of `newer`, 9.2,
    without the location of a node (pve-manager: PVE/NodeConfig.pm, commit bfe086ba).
    """
    found: dict[str, Any] = {}
    for path, verbs in newer.items():
        if path.startswith(_NODES):
            found[path] = {verb: _older_call(info) for verb, info in verbs.items()}
    return found


def _older_call(info: Mapping[str, Any]) -> dict[str, Any]:
    params = {name: one for name, one in info["params"].items() if name not in _PARAMS_SINCE_9}
    return {**info, "params": params}
