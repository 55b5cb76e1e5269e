"""The firewall of machines: options, rules, aliases, address sets; kept, not enforced."""

from __future__ import annotations

from typing import Any

from .api import Ctx, api
from .errors import ParamError, PveError
from .formats import split_list

BASE = "/nodes/{node}/qemu/{vmid}/firewall"
_CALL = ("node", "vmid", "pos", "digest", "delete", "moveto", "name", "cidr", "rename")


def _firewall(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    vm = ctx.cluster.vms.get(p["vmid"])
    if vm is None:
        return {"options": {}, "rules": [], "aliases": {}, "ipset": {}}
    if vm.firewall is None:
        vm.firewall = {"options": {}, "rules": [], "aliases": {}, "ipset": {}}
    return vm.firewall


@api(f"GET {BASE}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts."""
    return [{"name": name} for name in ("rules", "aliases", "ipset", "refs", "options")]


@api(f"GET {BASE}/options")
def get_options(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The options."""
    return dict(_firewall(ctx, p)["options"])


@api(f"PUT {BASE}/options")
def put_options(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the options."""
    options = _firewall(ctx, p)["options"]
    for name in split_list(p.get("delete") or ""):
        options.pop(name, None)
    options.update({name: value for name, value in p.items() if name not in _CALL})


@api(f"GET {BASE}/rules")
def rules(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules in order."""
    return [{**rule, "pos": pos} for pos, rule in enumerate(_firewall(ctx, p)["rules"])]


@api(f"POST {BASE}/rules")
def create_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a rule, on top unless a position is given."""
    held = _firewall(ctx, p)["rules"]
    held.insert(min(p.get("pos", 0), len(held)), {k: v for k, v in p.items() if k not in _CALL})


def _rule(ctx: Ctx, p: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    held = _firewall(ctx, p)["rules"]
    if p["pos"] >= len(held):
        raise PveError(f"no rule at position {p['pos']}")
    return held, p["pos"]


@api(f"GET {BASE}/rules/{{pos}}")
def read_rule(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One rule."""
    held, pos = _rule(ctx, p)
    return {**held[pos], "pos": pos}


@api(f"PUT {BASE}/rules/{{pos}}")
def update_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change or move a rule."""
    held, pos = _rule(ctx, p)
    if p.get("moveto") is not None:
        held.insert(min(p["moveto"], len(held) - 1), held.pop(pos))
        return
    for name in split_list(p.get("delete") or ""):
        held[pos].pop(name, None)
    held[pos].update({name: value for name, value in p.items() if name not in _CALL})


@api(f"DELETE {BASE}/rules/{{pos}}")
def delete_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a rule."""
    held, pos = _rule(ctx, p)
    del held[pos]


@api(f"GET {BASE}/aliases")
def aliases(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The aliases."""
    return [{"name": name, **item} for name, item in _firewall(ctx, p)["aliases"].items()]


@api(f"POST {BASE}/aliases")
def create_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add an alias."""
    held = _firewall(ctx, p)["aliases"]
    if p["name"] in held:
        raise ParamError({"name": f"alias '{p['name']}' already exists"})
    held[p["name"]] = {"cidr": p["cidr"], **({"comment": p["comment"]} if p.get("comment") else {})}


@api(f"DELETE {BASE}/aliases/{{name}}")
def delete_alias(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an alias."""
    _firewall(ctx, p)["aliases"].pop(p["name"], None)


@api(f"GET {BASE}/ipset")
def ipsets(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The address sets."""
    return [{"name": name, "digest": ""} for name in _firewall(ctx, p)["ipset"]]


@api(f"POST {BASE}/ipset")
def create_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add an address set."""
    held = _firewall(ctx, p)["ipset"]
    if p["name"] in held:
        raise ParamError({"name": f"IPSet '{p['name']}' already exists"})
    held[p["name"]] = []


@api(f"GET {BASE}/ipset/{{name}}")
def read_ipset(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of an address set."""
    return list(_firewall(ctx, p)["ipset"].get(p["name"], []))


@api(f"POST {BASE}/ipset/{{name}}")
def add_to_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a member to an address set."""
    held = _firewall(ctx, p)["ipset"]
    if p["name"] not in held:
        raise PveError(f"no such IPSet '{p['name']}'")
    held[p["name"]].append({"cidr": p["cidr"], **({"comment": p["comment"]} if p.get("comment") else {})})


@api(f"DELETE {BASE}/ipset/{{name}}")
def delete_ipset(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an address set."""
    held = _firewall(ctx, p)["ipset"]
    if held.get(p["name"]) and not p.get("force"):
        raise PveError(f"IPSet '{p['name']}' is not empty")
    held.pop(p["name"], None)
