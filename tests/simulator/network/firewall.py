"""The firewall of machines: options, rules, aliases, address sets; kept, not enforced."""

from __future__ import annotations

import hashlib
from typing import Any

from ..core.api import Ctx, Result, api
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from .firewall_rules import check_rule, clean_cidr, ip_version

BASE = "/nodes/{node}/qemu/{vmid}/firewall"
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


def _firewall(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The settings for that VMID, which need no machine."""
    return ctx.cluster.firewalls.setdefault(
        p["vmid"], {"options": {}, "rules": [], "aliases": {}, "ipset": {}, "comments": {}}
    )


def _sum(entries: list[dict[str, Any]]) -> str:
    text = "".join(f"{key}:{entry[key]}\n" for entry in entries for key in sorted(entry))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _stamped(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    digest = _sum(entries)
    return [{**entry, "digest": digest} for entry in entries]


def _check_digest(p: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    if p.get("digest") and p["digest"] != _sum(entries):
        raise PveError(_MODIFIED)


@api(f"GET {BASE}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts."""
    return [{"name": name} for name in ("rules", "aliases", "ipset", "refs", "options")]


@api(f"GET {BASE}/options")
def get_options(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The options."""
    options = _firewall(ctx, p)["options"]
    return {**options, "digest": _sum([options])}


@api(f"PUT {BASE}/options")
def put_options(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the options."""
    options = _firewall(ctx, p)["options"]
    _check_digest(p, [options])
    known = [name for name in ctx.method.props if name not in ("node", "vmid", "delete", "digest")]
    gone = split_list(p.get("delete") or "")
    for name in gone:
        if name not in known:
            raise ParamError({"delete": f"no such option '{name}'"})
    for name in gone:
        options.pop(name, None)
    options.update({name: p[name] for name in known if p.get(name) is not None})


@api(f"GET {BASE}/log")
def log(_ctx: Ctx, _p: dict[str, Any]) -> Result:
    """Nothing is enforced, so nothing is logged."""
    return Result([{"n": 1, "t": "no content"}], {"total": 1})


@api(f"GET {BASE}/refs")
def refs(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The address sets and aliases that a rule can name."""
    held = _firewall(ctx, p)
    found = []
    if p.get("type") in (None, "ipset"):
        found += [("ipset", name, f"+{name}", held["comments"].get(name)) for name in held["ipset"]]
    if p.get("type") in (None, "alias"):
        found += [
            ("alias", name, name, item.get("comment")) for name, item in held["aliases"].items()
        ]
    return [
        {
            "type": kind,
            "name": name,
            "ref": ref,
            "scope": "guest",
            **({"comment": comment} if comment else {}),
        }
        for kind, name, ref, comment in found
    ]


# -- rules ---------------------------------------------------------------------------------------


@api(f"GET {BASE}/rules")
def rules(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules in order."""
    return [{**rule, "pos": pos} for pos, rule in enumerate(_stamped(_firewall(ctx, p)["rules"]))]


def _copy(rule: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
    """The rule with what is asked for; an empty value or a dash takes a property away."""
    fresh = dict(rule)
    for key in _RULE:
        value = p.get(key)
        if value is not None and value in ("", "-"):
            fresh.pop(key, None)
        elif value is not None:
            fresh[key] = value
    return fresh


@api(f"POST {BASE}/rules")
def create_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a rule on top, whatever position is given."""
    held = _firewall(ctx, p)
    rule = _copy({}, p)
    check_rule(rule, held)
    rule["enable"] = 1 if p.get("enable") else 0
    held["rules"].insert(0, rule)


def _rule(ctx: Ctx, p: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    held = _firewall(ctx, p)["rules"]
    if p["pos"] >= len(held):
        raise PveError(f"no rule at position {p['pos']}")
    return held, p["pos"]


@api(f"GET {BASE}/rules/{{pos}}")
def read_rule(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One rule."""
    held, pos = _rule(ctx, p)
    return {**_stamped(held)[pos], "pos": pos}


@api(f"PUT {BASE}/rules/{{pos}}")
def update_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change or move a rule."""
    firewall = _firewall(ctx, p)
    _check_digest(p, firewall["rules"])
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
    check_rule(rule, firewall)
    rule["enable"] = 1 if rule.get("enable") else 0
    held[pos] = rule


@api(f"DELETE {BASE}/rules/{{pos}}")
def delete_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a rule."""
    _check_digest(p, _firewall(ctx, p)["rules"])
    held, pos = _rule(ctx, p)
    del held[pos]


# -- aliases -------------------------------------------------------------------------------------


def _alias(p: dict[str, Any], name: str) -> dict[str, Any]:
    alias = {"name": name, "cidr": p["cidr"].removesuffix("/32").removesuffix("/128")}
    return {
        **alias,
        "ipversion": ip_version(p["cidr"]),
        **({"comment": p["comment"]} if p.get("comment") else {}),
    }


def _aliases(ctx: Ctx, p: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _firewall(ctx, p)["aliases"]
    return found


def _sorted(held: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [held[name] for name in sorted(held)]


@api(f"GET {BASE}/aliases")
def aliases(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The aliases."""
    return _stamped(_sorted(_aliases(ctx, p)))


@api(f"POST {BASE}/aliases")
def create_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add an alias."""
    held = _aliases(ctx, p)
    if p["name"].lower() in held:
        raise ParamError({"name": f"alias '{p['name']}' already exists"})
    held[p["name"].lower()] = _alias(p, p["name"])


@api(f"GET {BASE}/aliases/{{name}}")
def read_alias(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One alias."""
    found = _aliases(ctx, p).get(p["name"].lower())
    if found is None:
        raise ParamError({"name": "no such alias"})
    return dict(found)


@api(f"PUT {BASE}/aliases/{{name}}")
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


@api(f"DELETE {BASE}/aliases/{{name}}")
def delete_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an alias; one that is not there is fine."""
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


@api(f"GET {BASE}/ipset")
def ipsets(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The address sets."""
    return _stamped(_sets(_firewall(ctx, p)))


@api(f"POST {BASE}/ipset")
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
        comments[name] = p["comment"]


def _members(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] | None = _firewall(ctx, p)["ipset"].get(p["name"])
    if held is None:
        raise PveError(f"no such IPSet '{p['name']}'")
    return held


@api(f"GET {BASE}/ipset/{{name}}")
def read_ipset(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of an address set."""
    return _stamped(_members(ctx, p))


@api(f"POST {BASE}/ipset/{{name}}")
def add_to_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a member to an address set, before the others."""
    held, cidr = _members(ctx, p), p["cidr"]
    alias = cidr.removeprefix("dc/").removeprefix("guest/")
    if alias[:1].isalpha() and ":" not in alias:
        if alias.lower() not in _aliases(ctx, p):
            raise PveError(f"no such alias '{cidr}'")
    else:
        cidr = clean_cidr(cidr)
    if any(entry["cidr"] == cidr for entry in held):
        raise ParamError({"cidr": f"address '{cidr}' already exists"})
    if cidr.endswith("/0"):
        raise ParamError({"cidr": "a zero prefix is not allowed in ipset entries"})
    entry: dict[str, Any] = {"cidr": cidr}
    if p.get("nomatch"):
        entry["nomatch"] = 1
    if p.get("comment"):
        entry["comment"] = p["comment"]
    held.insert(0, entry)


@api(f"DELETE {BASE}/ipset/{{name}}")
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


@api(f"GET {BASE}/ipset/{{name}}/{{cidr}}")
def read_member(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One member."""
    return {**_member(ctx, p), "digest": _sum(_members(ctx, p))}


@api(f"PUT {BASE}/ipset/{{name}}/{{cidr}}")
def update_member(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change what stands beside an address; what is not given is taken away."""
    _check_digest(p, _members(ctx, p))
    entry = _member(ctx, p)
    for key in ("nomatch", "comment"):
        entry.pop(key, None)
        if p.get(key):
            entry[key] = p[key]


@api(f"DELETE {BASE}/ipset/{{name}}/{{cidr}}")
def delete_member(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an address; one that is not there is fine."""
    held = _members(ctx, p)
    _check_digest(p, held)
    held[:] = [entry for entry in held if entry["cidr"] != p["cidr"]]
