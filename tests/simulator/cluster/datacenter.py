"""The cluster: status, options, the next free ID, tasks and log."""

from __future__ import annotations

import hashlib
from typing import Any

from ..config.checks import allowed_tags
from ..core.api import Ctx, api
from ..core.state import NodeInfo
from ..errors import ApiError, ParamError, PveError
from ..schema.formats import split_list
from ..schema.validate import split_property_string

_TEXT_OPTIONS = ("bwlimit",)  # given as they stand, not taken apart


@api("GET /cluster/status")
def status(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The cluster and its members."""
    cluster = ctx.cluster
    result: list[dict[str, Any]] = [
        {
            "type": "cluster",
            "id": "cluster",
            "name": cluster.name,
            "nodes": len(cluster.nodes),
            "quorate": 1 if cluster.quorate else 0,
            "version": cluster.config_version,
        }
    ]
    for node in cluster.nodes.values():
        result.append(
            {
                "type": "node",
                "id": f"node/{node.name}",
                "name": node.name,
                "nodeid": node.nodeid,
                "ip": node.ip,
                "local": 1 if node.name == cluster.local else 0,
                "online": 1 if node.online else 0,
                "level": "",
            }
        )
    return result


@api("GET /cluster/config/nodes")
def config_nodes(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The members as corosync knows them."""
    return [{"node": node.name, **_member(node)} for node in ctx.cluster.nodes.values()]


def _member(node: NodeInfo) -> dict[str, str]:
    """The section of a node in corosync.conf."""
    return {
        "name": node.name,
        "nodeid": str(node.nodeid),
        "quorum_votes": "1",
        "ring0_addr": node.ip,
    }


@api("GET /cluster/config/join")
def join_info(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """What a new node needs (pve-cluster: PVE/API2/ClusterConfig.pm, join_info)."""
    cluster = ctx.cluster
    if len(cluster.nodes) == 1:
        raise ApiError(424, "node is not in a cluster, no join info available!")
    name = p.get("node") or cluster.local
    if name not in cluster.nodes:
        raise PveError(f"unknown node '{name}'")
    members = [
        {**_member(node), "pve_addr": node.ip, "pve_fp": node.fingerprint}
        for node in cluster.nodes.values()
    ]
    totem = {
        "cluster_name": cluster.name,
        "config_version": str(cluster.config_version),
        "interface": {"0": {"linknumber": "0"}},
        "ip_version": "ipv4-6",
        "link_mode": "passive",
        "secauth": "on",
        "version": "2",
    }
    digest = hashlib.sha1(repr((members, totem)).encode(), usedforsecurity=False).hexdigest()
    return {"nodelist": members, "preferred_node": name, "totem": totem, "config_digest": digest}


@api("GET /cluster/nextid")
def nextid(ctx: Ctx, p: dict[str, Any]) -> str:
    """The lowest free ID in the range that is set, or the one asked for if it is free.

    Nothing is reserved.
    """
    cluster = ctx.cluster
    if p.get("vmid") is not None:
        if cluster.guest(p["vmid"]) is not None:
            raise ParamError({"vmid": f"VM {p['vmid']} already exists"})
        return str(p["vmid"])
    limits = _parts(cluster.options.get("next-id", ""))
    lower, upper = int(limits.get("lower", 100)), int(limits.get("upper", 1000000))
    for vmid in range(lower, upper):
        if cluster.guest(vmid) is None:
            return str(vmid)
    raise PveError(f"unable to get any free VMID in range [{lower}, {upper}]")


def _parts(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


# -- options -------------------------------------------------------------------------------------


@api("GET /cluster/options")
def get_options(ctx: Ctx, _p: dict[str, Any]) -> dict[str, Any]:
    """The datacenter's options; without Sys.Audit only the options about tags and consoles."""
    cluster = ctx.cluster
    audit = ctx.may("/", "Sys.Audit")
    names = list(cluster.options) if audit else [n for n in _PUBLIC if n in cluster.options]
    result: dict[str, Any] = {name: _shown(ctx, name, cluster.options[name]) for name in names}
    if audit:
        result["description"] = cluster.options.get("description", "")
        result.setdefault("mac_prefix", "BC:24:11")
    allowed, _registered, _free = allowed_tags(ctx, privileged=ctx.may("/", "Sys.Modify"))
    result["allowed-tags"] = sorted(allowed)
    return result


_PUBLIC = ("console", "tag-style")


def _shown(ctx: Ctx, name: str, text: str) -> Any:
    if name == "registered-tags":
        return sorted(split_list(text), key=split_list(text).index)
    method = ctx.sim.schema.methods.get(("PUT", "/cluster/options"))
    prop = method.props.get(name, {}) if method else {}
    keys = prop.get("format")
    if not isinstance(keys, dict) or name in _TEXT_OPTIONS:
        return text
    parts: dict[str, Any] = dict(split_property_string(keys, text))
    for key, value in parts.items():
        if keys.get(key, {}).get("type") == "boolean":
            parts[key] = int(value)
        elif key == "user-allow-list":
            parts[key] = split_list(value)
    return parts


@api("PUT /cluster/options")
def put_options(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the datacenter's options."""
    cluster = ctx.cluster
    cluster.check_cfs("datacenter_cfg")
    delete = split_list(p.pop("delete", None) or "")
    written = {**cluster.options, **p}
    if "next-id" in written and "next-id" not in delete:
        limits = _parts(written["next-id"])
        lower, upper = int(limits.get("lower", 100)), int(limits.get("upper", 1000000))
        if lower > upper:
            raise PveError(f"lower ({lower}) <= upper ({upper}) boundary rule broken")
    for name in cluster.options.keys() - p.keys():
        cluster.options[name] = _written_again(name, cluster.options[name])
    for name, value in p.items():
        text = str(value)
        if name == "description" and text and not text.endswith("\n"):
            text += "\n"
        if name == "registered-tags":
            text = ";".join(split_list(text))
        cluster.options[name] = text
    for name in delete:
        cluster.options.pop(name, None)
    cluster.revision += 1


def _written_again(name: str, text: str) -> str:
    """An option after the file was written because of another option: lists of tags are sorted
    then.

    Source: DataCenterConfig.pm, write_datacenter_config.
    """
    if name == "registered-tags":
        return ";".join(sorted(split_list(text)))
    if name == "user-tag-access":
        parts = _parts(text)
        if "user-allow-list" in parts:
            parts["user-allow-list"] = ";".join(sorted(split_list(parts["user-allow-list"])))
        return ",".join(f"{key}={parts[key]}" for key in sorted(parts))
    return text


# -- tasks and log -------------------------------------------------------------------------------


@api("GET /cluster/tasks")
def tasks(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The recent tasks of every node, running ones first.

    A token without rights gets none.
    """
    found = []
    audit = ctx.may("/", "Sys.Audit")
    for node in ctx.cluster.nodes:
        newest = ctx.cluster.tasks.newest(node)[:25]
        found += [task for task in newest if audit or task.owner.partition("!")[0] == ctx.who]
    found.sort(key=lambda task: (not task.running, -task.start))
    result: list[dict[str, Any]] = []
    for task in found:
        entry = task.as_dict()
        entry.pop("pstart")
        if not task.running:
            entry.pop("pid")
        if task.running:
            entry["saved"] = "0"
            entry["user"] = task.owner
            entry.pop("tokenid", None)
        else:
            entry["endtime"] = int(task.end or 0)
            entry["saved"] = "1"
            entry["status"] = task.status
        result.append(entry)
    return result


@api("GET /cluster/log")
def log(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The newest lines of the cluster log."""
    lines = ctx.cluster.log
    total = len(lines)
    result: list[dict[str, Any]] = []
    for index, line in enumerate(reversed(lines)):
        if len(result) >= p.get("max", 50):
            break
        if not ctx.may("/", "Sys.Syslog") and line["user"] != ctx.who:
            continue
        number = str(total - index)
        result.append(
            {
                **line,
                "id": f"{number}:{line['node']}",
                "uid": number,
                "pid": 203,
                "tag": "pvedaemon",
            }
        )
    return result
