"""The official API schema: paths and methods, their parameters and the callers' rights."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ParamError
from .older import containers_of_8_4, networks_of_8_4, nodes_of_8_4
from .validate import MISSING, UNKNOWN, Errors, Prop, add_error, check_prop

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("9.2", "8.4")

# How many of the options that the schema names NAME[n] there are.
_COUNTS = {
    "net": 32,
    "scsi": 31,
    "ide": 4,
    "sata": 6,
    "virtio": 16,
    "usb": 14,
    "hostpci": 16,
    "serial": 4,
    "parallel": 3,
    "numa": 8,
    "ipconfig": 32,
    "unused": 256,
    "virtiofs": 10,
    "link": 8,
    "mp": 256,
    "dev": 256,
    "acmedomain": 6,
}

# Calls without `additionalProperties`, which PVE's own check reads as "allowed" (pve-common:
# JSONSchema.pm, check_object). They read `lock-token` and `digest`, which their schema lacks
# (pve-network: API2/Network/SDN/Fabrics/Fabric.pm and FabricNode.pm).
_OPEN = {
    ("DELETE", "/cluster/sdn/fabrics/fabric/{id}"),
    ("DELETE", "/cluster/sdn/fabrics/node/{fabric_id}/{node_id}"),
}

# Parameters of path segments that swallow the rest of the path.
_REST = {"{volume}", "{cidr}"}


@dataclass(slots=True)
class Method:
    """One method of one path."""

    name: str
    verb: str
    path: str
    props: dict[str, Prop]
    required: tuple[str, ...]
    allow_token: bool
    protected: bool
    perm: list[Any] | None
    user: str | None
    returns: Prop
    lists: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()
    typed: bool = False
    additional: bool = False


@dataclass(slots=True)
class Node:
    """A segment of the path tree."""

    children: dict[str, Node] = field(default_factory=dict)
    param: Node | None = None
    name: str = ""
    rest: bool = False
    path: str = ""
    methods: dict[str, Method] = field(default_factory=dict)


def _expand(props: dict[str, Prop]) -> dict[str, Prop]:
    result: dict[str, Prop] = {}
    for name, prop in props.items():
        if name.endswith("[n]"):
            base = name[:-3]
            for index in range(_COUNTS.get(base, 8)):
                result[f"{base}{index}"] = prop
        else:
            result[name] = prop
    return result


def _resolve(value: Any, defs: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _resolve(defs[value["$ref"]], defs)
        return {key: _resolve(item, defs) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, defs) for item in value]
    return value


def load_paths(version: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The paths of that version of the API.

    Raises FileNotFoundError for a version that is not in the data.

    The calls of VMs come from 9.2.11, which knows more than the first 9.2.
    """
    packed = _packed(f"schema-{version}")
    if packed is None:
        raise FileNotFoundError(
            f"the data of the simulator has no API schema of Proxmox VE {version}"
        )
    paths = _resolve(packed["paths"], packed["defs"])
    if version == "8.4":
        newer = load_paths("9.2")
        paths |= containers_of_8_4(newer, paths)
        return paths | networks_of_8_4(newer) | nodes_of_8_4(newer)
    of_vms = _packed(f"vm-{version}")
    return paths if of_vms is None else paths | _resolve(of_vms["paths"], of_vms["defs"])


def load_formats(version: str) -> dict[str, dict[str, Prop]]:
    """The property strings that the API only names, as far as the data beside this file has
    them.
    """
    packed = _packed(f"vm-{version}")
    return {} if packed is None else packed["formats"]


def load_release(version: str) -> str:
    """The complete number of the version that the calls of VMs are from."""
    packed = _packed(f"vm-{version}") or _packed(f"schema-{version}")
    return version if packed is None else str(packed["meta"]["pve_version"])


def _packed(name: str) -> dict[str, Any] | None:
    file = DATA / f"{name}.json.gz"
    return json.loads(gzip.decompress(file.read_bytes())) if file.exists() else None


class Schema:
    """The compiled schema of one version."""

    def __init__(self, version: str = "9.2") -> None:
        self.version = version
        self.root = Node()
        self.methods: dict[tuple[str, str], Method] = {}
        for path, verbs in load_paths(version).items():
            for verb, info in verbs.items():
                self._add(path, verb, info)
        for path in ("/", "/nodes/{node}", "/cluster"):
            if ("GET", path) not in self.methods:
                params = (
                    {"node": {"type": "string", "format": "pve-node"}} if "{node}" in path else {}
                )
                self._add(
                    path,
                    "GET",
                    {
                        "name": "index",
                        "params": params,
                        "user": "all",
                        "returns": {"type": "array"},
                    },
                )
        config = self.methods[("PUT", "/nodes/{node}/qemu/{vmid}/config")].props
        self.vm_options = {name: prop for name, prop in config.items() if name not in _NOT_OPTIONS}
        containers = self.methods[("PUT", "/nodes/{node}/lxc/{vmid}/config")].props
        self.container_options = {
            name: prop for name, prop in containers.items() if name not in _NOT_OPTIONS
        }
        self.int_options = frozenset(
            name
            for name, prop in self.vm_options.items()
            if prop.get("type") in ("integer", "boolean")
        ) | {"snaptime"}

    @property
    def is_8(self) -> bool:
        """Whether it is that of Proxmox VE 8."""
        return self.version.startswith("8")

    def _add(self, path: str, verb: str, info: dict[str, Any]) -> None:
        props = _expand(info["params"])
        method = Method(
            name=info["name"],
            verb=verb,
            path=path,
            props=props,
            required=tuple(
                name
                for name, prop in props.items()
                if not _is_optional(prop) and not prop.get("alias") and prop.get("type") != "null"
            ),
            allow_token=not info.get("notoken"),
            protected=bool(info.get("protected")),
            perm=info.get("perm"),
            user=info.get("user"),
            returns=info.get("returns") or {},
            lists=frozenset(
                name
                for name, prop in props.items()
                if prop.get("type") == "string" and str(prop.get("format", "")).endswith("-list")
            ),
            arrays=frozenset(name for name, prop in props.items() if prop.get("type") == "array"),
            typed=any("instance-types" in prop for prop in props.values()),
            additional=bool(info.get("additional")) or (verb, path) in _OPEN,
        )
        self.methods[(verb, path)] = method
        node = self.root
        for segment in filter(None, path.split("/")):
            if segment.startswith("{"):
                if node.param is None:
                    node.param = Node(name=segment[1:-1], rest=segment in _REST)
                node = node.param
            else:
                node = node.children.setdefault(segment, Node())
        node.path = path
        node.methods[verb] = method

    def find(self, verb: str, path: str) -> tuple[Method, dict[str, str]] | None:
        """The method that answers to the path, with the values of its path parameters."""
        node = self.root
        values: dict[str, str] = {}
        segments = [segment for segment in path.split("/") if segment]
        for index, segment in enumerate(segments):
            below = node.children.get(segment)
            if below is None:
                below = node.param
                if below is None:
                    return None
                if below.rest:
                    values[below.name] = "/".join(segments[index:])
                    node = below
                    break
                values[below.name] = segment
            node = below
        method = node.methods.get(verb)
        return None if method is None else (method, values)

    def check(self, method: Method, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters as the handler takes them.

        Raises ParamError with PVE's text for each bad one.
        """
        errors: Errors = {}
        props = method.props
        _check_missing(method, params, errors)
        result: dict[str, Any] = {}
        for name, value in params.items():
            prop = props.get(name)
            if prop is None:
                if method.additional:
                    result[name] = value
                else:
                    add_error(errors, name, UNKNOWN)
                continue
            prop = _variant(prop, params)
            value = _scalar(value, name in method.arrays, name in method.lists)
            if value is not None and name not in errors:
                check_prop(value, prop, name, errors)
            required = prop.get("requires")
            if isinstance(required, str) and params.get(required) is None:
                add_error(errors, required, f"missing property required by '{name}'")
            result[name] = value
        if errors:
            raise ParamError({name: text for name, text in errors.items() if text})
        return {name: _converted(value, props.get(name, {})) for name, value in result.items()}


def _is_optional(prop: Prop) -> bool:
    """Whether a parameter can be missing; one with variants is optional if each of them is."""
    if prop.get("optional"):
        return True
    variants = prop.get("oneOf", []) if "type-property" in prop else []
    return bool(variants) and all(one.get("optional") for one in variants)


def _variant(prop: Prop, params: dict[str, Any]) -> Prop:
    """The schema of a parameter for the type that the request names (JSONSchema.pm, check_prop)."""
    chosen = params.get(prop.get("type-property", ""))
    for one in prop.get("oneOf", ()):
        if chosen in one.get("instance-types", ()):
            return {**prop, **one}
    return prop


def _check_missing(method: Method, params: dict[str, Any], errors: Errors) -> None:
    if method.typed and method.path.startswith("/cluster/ha/rules"):
        _check_variant(method, params, errors)
        return
    for name in method.required:
        if params.get(name) is None:
            add_error(errors, name, MISSING)


def _converted(value: Any, prop: Prop) -> Any:
    if isinstance(value, str) and prop.get("type") in ("integer", "boolean"):
        return int(value)
    return value


def _scalar(value: Any, is_array: bool, is_list: bool) -> Any:
    """The value as PVE's own code sees it: everything but lists, objects and null is text."""
    if isinstance(value, bool):
        value = "1" if value else "0"
    elif isinstance(value, (int, float)):
        value = repr(value)
    if isinstance(value, list):
        value = [_scalar(item, False, False) for item in value]
        if is_list:
            return ",".join(str(item) for item in value)
        return value
    if is_array and value is not None:
        return [value]
    return value


def _check_variant(method: Method, params: dict[str, Any], errors: Errors) -> None:
    """HA rules: the allowed options depend on the type, and PVE names the variant in the error.

    The document flattens the variants into one list of options; every rule has the identifier and
    the options that manage the section itself.
    """
    common = {"rule", "type", "digest", "delete", "order"}
    kind = params.get("type")
    kinds = method.props["type"].get("enum", [])
    if kind is None:
        add_error(errors, "type", MISSING)
    if kind is None or kind not in kinds:
        for name in params:
            if name not in common and name in method.props:
                add_error(errors, name, UNKNOWN)
    else:
        given = params.keys() - common
        _check_options(method, {name: params[name] for name in given}, kind, errors)
    if method.verb == "POST" and params.get("rule") is None:
        add_error(errors, "rule", MISSING)


def _check_options(method: Method, given: dict[str, Any], kind: str, errors: Errors) -> None:
    """The options of a rule of this kind."""
    variant = f"oneOf[{kind}]"
    for name, prop in method.props.items():
        if name not in given:
            continue
        inner: Errors = {}
        value = _scalar(given[name], False, name in method.lists)
        if value is not None:
            check_prop(value, prop, f"{variant}.{name}", inner)
        if inner:
            errors.update(inner)
            errors[name] = ""
    if method.verb == "POST":
        for name in sorted(("resources", "nodes" if kind == "node-affinity" else "affinity")):
            if given.get(name) is None:
                add_error(errors, f"{variant}.{name}", MISSING)


_NOT_OPTIONS = frozenset(
    {
        "node",
        "vmid",
        "digest",
        "delete",
        "revert",
        "force",
        "skiplock",
        "background_delay",
        "import-working-storage",
        "cdrom",
        "skip_cloud_init",
    }
)
