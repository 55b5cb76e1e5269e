"""The firewall of the cluster, nodes, networks and guests: options, rules, aliases, address sets;
kept, not enforced.

Source: pve-firewall, API2/Firewall and Firewall.pm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from ..core.api import HANDLERS, Ctx, Handler, Result, api
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from .firewall_rules import MACROS, Environment, check_rule, clean_cidr, ip_version, with_faults

CLUSTER = "/cluster/firewall"
NODE = "/nodes/{node}/firewall"
VNET = "/cluster/sdn/vnets/{vnet}/firewall"
GUESTS = ("/nodes/{node}/qemu/{vmid}/firewall", "/nodes/{node}/lxc/{vmid}/firewall")
WITH_NAMES = (CLUSTER, *GUESTS)
ALL = (CLUSTER, NODE, VNET, *GUESTS)
# The rules of a security group lie right below it.
_GROUP = f"{CLUSTER}/groups/{{group}}"
RULES = (_GROUP, *(f"{base}/rules" for base in ALL))
_PLACE = ("node", "vmid", "vnet", "delete", "digest")
_RULE = (
    "type",
    "action",
    "enable",
    "iface",
    "macro",
    "proto",
    "source",
    "dest",
    "sport",
    "dport",
    "log",
    "comment",
    "icmp-type",
)
_MODIFIED = "detected modified configuration - file changed by other user? Try again."


def at(verb: str, bases: Iterable[str], rest: str = "") -> Callable[[Handler], Handler]:
    """Register a handler below several paths."""
    return api(*(f"{verb} {base}{rest}" for base in bases))


def _empty() -> dict[str, Any]:
    return {
        "options": {},
        "rules": [],
        "aliases": {},
        "ipset": {},
        "comments": {},
        "groups": {},
        "group_comments": {},
    }


def _firewall(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The settings of the place that the path names; those of a guest need no guest."""
    key: int | str = "cluster"
    if p.get("vmid"):
        key = p["vmid"]
    elif p.get("vnet"):
        sdn = ctx.cluster.sections.get("sdn")
        vnet = sdn.running.get("vnets", {}).get(p["vnet"]) if sdn else None
        if vnet is None:
            raise PveError("invalid vnet specified")  # Helpers.pm, check_vnet_access
        reads = ["SDN.Audit"] if ctx.method.verb == "GET" else []
        path = f"/sdn/zones/{vnet['zone']}/{p['vnet']}"
        ctx.need(path, *reads, "SDN.Allocate", any_of=True)
        key = f"vnet/{p['vnet']}"
    elif p.get("node"):
        key = f"node/{p['node']}"
    return ctx.cluster.firewalls.setdefault(key, _empty())


def _environment(ctx: Ctx, p: dict[str, Any]) -> Environment:
    """What a rule at that place may say, and the names that it may use."""
    kind = "cluster"
    if p.get("group"):
        kind = "group"
    elif p.get("vmid"):
        kind = "ct" if "/lxc/" in ctx.method.path else "vm"
    elif p.get("vnet"):
        kind = "vnet"
    elif p.get("node"):
        kind = "host"
    return Environment(kind, _firewall(ctx, {}), _firewall(ctx, p), _network_sets(ctx))


def _network_sets(ctx: Ctx, *, visible: bool = False) -> dict[str, str]:
    """The IP sets of SDN and their comments; with `visible`, those that the caller may use
    (proxmox-ve-rs: sdn/config.rs and sdn/ipam.rs, ipsets; pve-firewall: API2/Firewall/Helpers.pm).
    """
    sdn = ctx.cluster.sections.get("sdn")
    found: dict[str, str] = {}
    if sdn is None:
        return found
    for name, vnet in sdn.running.get("vnets", {}).items():
        path = f"/sdn/zones/{vnet['zone']}/{name}"
        if visible and not ctx.may(path, "SDN.Audit", "SDN.Allocate", any_of=True):
            continue
        found[f"{name}-all"] = f"All subnets of VNet {name}"
        found[f"{name}-gateway"] = f"All gateways of VNet {name}"
        found[f"{name}-no-gateway"] = f"All subnets of VNet {name}, excluding gateways"
        found[f"{name}-dhcp"] = f"DHCP ranges of VNet {name}"
    for networks in sdn.addresses.values():
        for addresses in networks.values():
            for entry in addresses.values():
                vmid = entry.get("vmid")
                if vmid and not (visible and not ctx.may(f"/vms/{vmid}", "VM.Audit")):
                    found[f"guest-ipam-{vmid}"] = ""
    return found


def _sum(entries: list[dict[str, Any]]) -> str:
    text = "".join(f"{key}:{entry[key]}\n" for entry in entries for key in sorted(entry))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _stamped(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    digest = _sum(entries)
    return [{**entry, "digest": digest} for entry in entries]


def _check_digest(p: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    if p.get("digest") and p["digest"] != _sum(entries):
        raise PveError(_MODIFIED)


def _index(base: str, words: str) -> None:
    entries = [{"name": name} for name in words.split()]
    HANDLERS[("GET", base)] = lambda _ctx, _p: entries


_index(CLUSTER, "aliases rules options groups ipset macros refs")
_index(NODE, "rules options log")
_index(VNET, "rules options")
for _base in GUESTS:
    _index(_base, "rules aliases ipset refs options")


@at("GET", ALL, "/options")
def get_options(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The options."""
    options = _firewall(ctx, p)["options"]
    return {**options, "digest": _sum([options])}


@at("PUT", ALL, "/options")
def put_options(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the options."""
    options = _firewall(ctx, p)["options"]
    _check_digest(p, [options])
    known = [name for name in ctx.method.props if name not in _PLACE]
    gone = split_list(p.get("delete") or "")
    for name in gone:
        if name not in known:
            raise ParamError({"delete": f"no such option '{name}'"})
    for name in gone:
        options.pop(name, None)
    options.update({name: p[name] for name in known if p.get(name) is not None})


@at("GET", (CLUSTER,), "/macros")
def macros(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The macros that rules can name; their descriptions are left out."""
    return [{"macro": name, "descr": name} for name in MACROS.values()]


@at("GET", (NODE, *GUESTS), "/log")
def log(_ctx: Ctx, _p: dict[str, Any]) -> Result:
    """Nothing is enforced, so nothing is logged."""
    return Result([{"n": 1, "t": "no content"}], {"total": 1})


@at("GET", WITH_NAMES, "/refs")
def refs(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The address sets and aliases that a rule can name."""
    kind = p.get("type")
    found = _refs_of(_firewall(ctx, {}), kind, "dc")
    networks = _network_sets(ctx, visible=True)
    found += _refs_of({"ipset": networks, "comments": networks, "aliases": {}}, kind, "sdn")
    if p.get("vmid"):
        found += _refs_of(_firewall(ctx, p), kind, "guest")
    return found


def _refs_of(held: dict[str, Any], kind: str | None, scope: str) -> list[dict[str, Any]]:
    found: list[tuple[str, str, str, str | None]] = []
    if kind in (None, "ipset"):
        found += [("ipset", name, f"+{name}", held["comments"].get(name)) for name in held["ipset"]]
    if kind in (None, "alias"):
        for item in held["aliases"].values():
            found.append(("alias", item["name"], item["name"], item.get("comment")))
    rows = []
    for type_, name, ref, comment in found:
        row = {"type": type_, "name": name, "ref": ref, "scope": scope}
        if comment:
            row["comment"] = comment
        rows.append(row)
    return rows


# -- rules ---------------------------------------------------------------------------------------


@at("GET", RULES)
def rules(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules in order, with what is wrong with them by now."""
    return [{**rule, "pos": pos} for pos, rule in enumerate(_shown(ctx, p))]


def _held(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of the place, or of a security group."""
    firewall = _firewall(ctx, p)
    if not p.get("group"):
        rules: list[dict[str, Any]] = firewall["rules"]
        return rules
    group: list[dict[str, Any]] | None = firewall["groups"].get(p["group"])
    if group is None:
        raise PveError(f"no such security group '{p['group']}'")
    return group


def _shown(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    environment = _environment(ctx, p)
    return [with_faults(rule, environment) for rule in _stamped(_held(ctx, p))]


def _copy(rule: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
    """The rule with the requested changes; an empty value or a dash removes a property."""
    fresh = dict(rule)
    for key in _RULE:
        value = p.get(key)
        if value is not None and value in ("", "-"):
            fresh.pop(key, None)
        elif value is not None:
            fresh[key] = value
    if "comment" in fresh and not _comment(fresh):
        del fresh["comment"]
    return {**fresh, **_comment(fresh)}


def _comment(p: dict[str, Any]) -> dict[str, str]:
    """The comment as the file keeps it: without blanks at its ends, and none if it is empty or 0
    (Firewall.pm, format_rules, format_aliases, format_ipsets and generic_fw_config_parser).
    """
    text = str(p.get("comment") or "").strip()
    return {"comment": text} if text not in ("", "0") else {}


@at("POST", RULES)
def create_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a rule on top; the given position is ignored."""
    held = _held(ctx, p)
    rule = _copy({}, p)
    check_rule(rule, _environment(ctx, p))
    rule["enable"] = 1 if p.get("enable") else 0
    held.insert(0, rule)


def _rule(ctx: Ctx, p: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    held = _held(ctx, p)
    if p["pos"] >= len(held):
        raise PveError(f"no rule at position {p['pos']}")
    return held, p["pos"]


@at("GET", RULES, "/{pos}")
def read_rule(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One rule."""
    _rules, pos = _rule(ctx, p)
    return {**_shown(ctx, p)[pos], "pos": str(pos)}


@at("PUT", RULES, "/{pos}")
def update_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change or move a rule."""
    _check_digest(p, _held(ctx, p))
    held, pos = _rule(ctx, p)
    goal = p.get("moveto")
    if goal is not None and goal != pos:
        rule = held.pop(pos)
        held.insert(goal - 1 if pos < goal <= len(held) else goal, rule)
        return
    rule = _copy(held[pos], p)
    for name in split_list(p.get("delete") or ""):
        if name not in (*_RULE, "pos", "digest"):
            raise ParamError({"delete": f"no such property ('{name}')"})
        if name in ("type", "action"):
            raise ParamError({"delete": f"unable to delete required property '{name}'"})
        rule.pop(name, None)
    check_rule(rule, _environment(ctx, p))
    rule["enable"] = 1 if rule.get("enable") else 0
    held[pos] = rule


@at("DELETE", RULES, "/{pos}")
def delete_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a rule."""
    _check_digest(p, _held(ctx, p))
    held, pos = _rule(ctx, p)
    del held[pos]


# -- aliases -------------------------------------------------------------------------------------


def _alias(p: dict[str, Any], name: str) -> dict[str, Any]:
    alias = {"name": name, "cidr": p["cidr"].removesuffix("/32").removesuffix("/128")}
    return {**alias, "ipversion": ip_version(p["cidr"]), **_comment(p)}


def _aliases(ctx: Ctx, p: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _firewall(ctx, p)["aliases"]
    return found


def _sorted(held: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [held[name] for name in sorted(held)]


@at("GET", WITH_NAMES, "/aliases")
def aliases(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The aliases."""
    return _stamped(_sorted(_aliases(ctx, p)))


@at("POST", WITH_NAMES, "/aliases")
def create_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add an alias."""
    held = _aliases(ctx, p)
    if p["name"].lower() in held:
        raise ParamError({"name": f"alias '{p['name']}' already exists"})
    held[p["name"].lower()] = _alias(p, p["name"])


@at("GET", WITH_NAMES, "/aliases/{name}")
def read_alias(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One alias."""
    found = _aliases(ctx, p).get(p["name"].lower())
    if found is None:
        raise ParamError({"name": "no such alias"})
    return dict(found)


@at("PUT", WITH_NAMES, "/aliases/{name}")
def update_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change an alias, or its name."""
    held, name = _aliases(ctx, p), p["name"].lower()
    _check_digest(p, _sorted(held))
    if name not in held:
        raise ParamError({"name": "no such alias"})
    new = (p.get("rename") or p["name"]).lower()
    if new != name and new in held:
        raise ParamError({"name": f"alias '{p['rename']}' already exists"})
    del held[name]
    held[new] = _alias(p, p["rename"] if new != name else p["name"])


@at("DELETE", WITH_NAMES, "/aliases/{name}")
def delete_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an alias; a missing alias is not an error."""
    held = _aliases(ctx, p)
    _check_digest(p, _sorted(held))
    held.pop(p["name"].lower(), None)


# -- address sets --------------------------------------------------------------------------------


def _sets(firewall: dict[str, Any]) -> list[dict[str, Any]]:
    comments = firewall["comments"]
    return [
        {"name": name, **({"comment": comments[name]} if comments.get(name) else {})}
        for name in sorted(firewall["ipset"])
    ]


@at("GET", WITH_NAMES, "/ipset")
def ipsets(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The address sets."""
    return _stamped(_sets(_firewall(ctx, p)))


@at("POST", WITH_NAMES, "/ipset")
def create_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add an address set, or give one another name and comment."""
    firewall, name, old = _firewall(ctx, p), p["name"], p.get("rename")
    held, comments = firewall["ipset"], firewall["comments"]
    if old:
        _check_digest(p, _sets(firewall))
        if old not in held:
            raise ParamError({"name": f"IPSet '{old}' does not exist"})
        if name in held and name != old:
            raise ParamError({"name": f"IPSet '{name}' does already exist"})
        held[name] = held.pop(old)
        if old in comments:
            comments[name] = comments.pop(old)
    elif name in held:
        raise ParamError({"name": f"IPSet '{name}' already exists"})
    else:
        held[name] = []
    if p.get("comment") is not None:
        comments[name] = _comment(p).get("comment", "")
    _reread(held, comments, name)


def _reread(held: dict[str, Any], comments: dict[str, str], name: str) -> None:
    """The file is read with names of sets and groups in lower case: a set of the same name in lower
    case comes later in the file and replaces it (Firewall.pm, generic_fw_config_parser).
    """
    lower = name.lower()
    if lower == name or name not in held:
        return
    entries, comment = held.pop(name), comments.pop(name, None)
    held.setdefault(lower, entries)
    if comment:
        comments.setdefault(lower, comment)


def _members(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] | None = _firewall(ctx, p)["ipset"].get(p["name"])
    if held is None:
        raise PveError(f"no such IPSet '{p['name']}'")
    return held


def _as_in_file(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The members sorted, as the file has them and as the digest counts them (format_ipsets)."""
    return sorted(members, key=lambda entry: str(entry["cidr"]))


@at("GET", WITH_NAMES, "/ipset/{name}")
def read_ipset(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of an address set, in the order of the file."""
    members = _stamped(_as_in_file(_members(ctx, p)))
    return [_with_member_faults(ctx, p, member) for member in members]


def _with_member_faults(ctx: Ctx, p: dict[str, Any], member: dict[str, Any]) -> dict[str, Any]:
    """The member with its errors: the set does not contain an alias that does not exist
    (Firewall.pm, generic_fw_config_parser and generate_ipset_chains).
    """
    alias = _missing_alias(ctx, p, member["cidr"])
    if alias is None:
        return member
    return {**member, "errors": {"cidr": f"no such alias '{alias}'"}}


def _missing_alias(ctx: Ctx, p: dict[str, Any], cidr: str) -> str | None:
    """The alias that a member names and that does not exist."""
    if not _is_alias(cidr):
        return None
    scope, _slash, alias = cidr.rpartition("/")
    own, shared = _aliases(ctx, p), _firewall(ctx, {})["aliases"]
    known = {"dc": shared, "guest": own}.get(scope, {**shared, **own})
    return None if alias.lower() in known else alias


def _is_alias(cidr: str) -> bool:
    scope, _slash, alias = cidr.rpartition("/")
    return scope in ("", "dc", "guest") and alias[:1].isalpha() and ":" not in alias


@at("POST", WITH_NAMES, "/ipset/{name}")
def add_to_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a member to an address set, before the others."""
    held, cidr = _members(ctx, p), p["cidr"]
    alias = _missing_alias(ctx, p, cidr)
    if alias is not None:
        raise PveError(f"no such alias '{alias}'")
    if not _is_alias(cidr):
        cidr = clean_cidr(cidr)
    if any(entry["cidr"] == cidr for entry in held):
        raise ParamError({"cidr": f"address '{cidr}' already exists"})
    if cidr.endswith("/0"):
        raise ParamError({"cidr": "a zero prefix is not allowed in ipset entries"})
    entry: dict[str, Any] = {"cidr": cidr}
    if p.get("nomatch"):
        entry["nomatch"] = 1
    held.insert(0, {**entry, **_comment(p)})


@at("DELETE", WITH_NAMES, "/ipset/{name}")
def delete_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an address set."""
    if _members(ctx, p) and not p.get("force"):
        raise PveError(f"IPSet '{p['name']}' is not empty")
    del _firewall(ctx, p)["ipset"][p["name"]]


def _member(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    for entry in _members(ctx, p):
        if entry["cidr"] == p["cidr"]:
            return entry
    raise ParamError({"cidr": "no such IP/Network"})


@at("GET", WITH_NAMES, "/ipset/{name}/{cidr}")
def read_member(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One member."""
    return {**_member(ctx, p), "digest": _sum(_as_in_file(_members(ctx, p)))}


@at("PUT", WITH_NAMES, "/ipset/{name}/{cidr}")
def update_member(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the properties of an address; omitted properties are removed."""
    _check_digest(p, _as_in_file(_members(ctx, p)))
    entry = _member(ctx, p)
    for key in ("nomatch", "comment"):
        entry.pop(key, None)
        if p.get(key):
            entry[key] = p[key]


@at("DELETE", WITH_NAMES, "/ipset/{name}/{cidr}")
def delete_member(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an address; a missing address is not an error."""
    held = _members(ctx, p)
    _check_digest(p, _as_in_file(held))
    held[:] = [entry for entry in held if entry["cidr"] != p["cidr"]]


# -- security groups -----------------------------------------------------------------------------


def _groups(firewall: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name in sorted(firewall["groups"]):
        row = {"group": name}
        if firewall["group_comments"].get(name):
            row["comment"] = firewall["group_comments"][name]
        rows.append(row)
    return rows


@api(f"GET {CLUSTER}/groups")
def groups(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The security groups."""
    return _stamped(_groups(_firewall(ctx, p)))


@api(f"POST {CLUSTER}/groups")
def create_group(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a security group, or give one another name and comment."""
    firewall, name, old = _firewall(ctx, {}), p["group"], p.get("rename")
    held, comments = firewall["groups"], firewall["group_comments"]
    if old:
        _check_digest(p, _groups(firewall))
        if old not in held:
            raise ParamError({"group": f"Security group '{old}' does not exist"})
        if name in held and name != old:
            raise ParamError({"group": f"Security group '{name}' does already exist"})
        held[name] = held.pop(old)
        if old in comments:
            comments[name] = comments.pop(old)
        _rename_group(ctx, old, name)
    elif name in held:
        raise ParamError({"group": f"Security group '{name}' already exists"})
    else:
        held[name] = []
    if p.get("comment") is not None:
        comments[name] = _comment(p).get("comment", "")
    _reread(held, comments, name)


def _rename_group(ctx: Ctx, old: str, new: str) -> None:
    """Rules of every place follow a new name."""
    for firewall in ctx.cluster.firewalls.values():
        for rule in firewall["rules"]:
            if rule["type"] == "group" and rule["action"] == old:
                rule["action"] = new


@api(f"DELETE {_GROUP}")
def delete_group(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an empty security group; rules that name it stay."""
    if _held(ctx, p):
        raise PveError(f"Security group '{p['group']}' is not empty")
    firewall = _firewall(ctx, {})
    del firewall["groups"][p["group"]]
    firewall["group_comments"].pop(p["group"], None)
