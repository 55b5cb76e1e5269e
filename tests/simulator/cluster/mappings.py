"""Devices and directories of nodes under names of the cluster.

Source: pve-manager, API2/Cluster/Mapping; pve-guest-common, Mapping/PCI.pm, USB.pm and Dir.pm. The
nodes have the directory of the storage `local` only.
"""

from __future__ import annotations

from typing import Any

from ..config.devices import pci_fault, usb_fault
from ..core.api import HANDLERS, Ctx, api, unknown_host
from ..core.state import NodeInfo
from ..errors import ApiError, PermError, ProxyError, PveError
from ..schema.formats import split_list
from ..schema.validate import split_property_string
from .sections import SectionFile, SectionType

_TYPES = {
    "pci": SectionType(
        "pci", frozenset({"map"}), frozenset({"description", "mdev", "live-migration-capable"})
    ),
    "usb": SectionType("usb", frozenset({"map"}), frozenset({"description"})),
    "dir": SectionType("dir", frozenset({"map"}), frozenset({"description"})),
}
_DIRECTORIES = ("/var/lib/vz",)
_SEES = ("Mapping.Modify", "Mapping.Use", "Mapping.Audit")


class Mappings:
    """The calls for one kind of mapping."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.type = _TYPES[kind]
        self.noun = "directory" if kind == "dir" else "hardware"

    def register(self) -> None:
        """Register the handlers."""
        base = f"/cluster/mapping/{self.kind}"
        HANDLERS[("GET", base)] = self.listing
        HANDLERS[("POST", base)] = self.create
        HANDLERS[("GET", f"{base}/{{id}}")] = self.read
        HANDLERS[("PUT", f"{base}/{{id}}")] = self.update
        HANDLERS[("DELETE", f"{base}/{{id}}")] = self.delete

    def _file(self, ctx: Ctx) -> SectionFile:
        return ctx.cluster.sections.setdefault(f"mapping/{self.kind}", SectionFile())

    def _sees(self, ctx: Ctx, name: str) -> bool:
        return ctx.may(f"/mapping/{self.kind}/{name}", *_SEES, any_of=True)

    def listing(self, ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
        """The mappings that the caller may see, checked on a node on request."""
        file, rows = self._file(ctx), []
        info = _checking_node(ctx, p.get("check-node"))
        for name, entry in file.entries.items():
            if not self._sees(ctx, name):
                continue
            row = {**entry, "id": name, "digest": file.digest}
            if info is not None:
                place = "errors" if self.kind == "usb" else "checks"
                row[place] = self._faults(name, entry, info)
            rows.append(row)
        return rows

    def _maps(self, entry: dict[str, Any]) -> list[dict[str, str]]:
        return [split_property_string({}, text) for text in entry["map"]]

    def _faults(self, name: str, entry: dict[str, Any], info: NodeInfo) -> list[dict[str, str]]:
        maps = [one for one in self._maps(entry) if one.get("node") == info.name]
        if not maps:
            return [{"severity": "warning", "message": f"No mapping for node {info.name}."}]
        faults = [self._fault(name, entry, one, info) for one in maps]
        return [
            {"severity": "error", "message": f"Invalid configuration: {fault}\n"}
            for fault in faults
            if fault
        ]

    def _fault(self, name: str, entry: dict[str, Any], one: dict[str, str], info: NodeInfo) -> str:
        if self.kind == "dir":
            return _missing(one)
        if self.kind == "usb":
            return usb_fault(name, one, info)
        return pci_fault(name, one, bool(entry.get("mdev")), info)

    def read(self, ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
        """One mapping."""
        if not self._sees(ctx, p["id"]):
            raise PermError
        file = self._file(ctx)
        entry = file.entries.get(p["id"])
        if entry is None:
            raise PveError(f"mapping '{p['id']}' not found")
        return {**entry, "digest": file.digest}

    def create(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Add a mapping."""
        name = p.pop("id")
        entry = self.type.check(p, create=True)
        self._check_here(ctx, entry)
        try:
            file = self._file(ctx)
            if name in file.entries:
                raise PveError(f"{self.kind} ID '{name}' already defined")
            file.entries[name] = entry
        except ApiError as error:
            raise PveError(f"create {self.noun} mapping failed: {error.text}") from None

    def _check_here(self, ctx: Ctx, entry: dict[str, Any]) -> None:
        """Refuse directories that the node that answers lacks, and a node that is named twice."""
        if self.kind != "dir":
            return
        nodes = [one["node"] for one in self._maps(entry)]
        for one in self._maps(entry):
            fault = _missing(one)
            if one["node"] == ctx.cluster.local and fault:
                raise PveError(fault)
        for node in nodes:
            if nodes.count(node) > 1:
                raise PveError(f"Node '{node}' is specified {nodes.count(node)} times.")

    def update(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Change a mapping; every change needs its whole `map`."""
        name, digest = p.pop("id"), p.pop("digest", None)
        delete = split_list(p.pop("delete", None) or "")
        try:
            file = self._file(ctx)
            file.check_digest(digest)
            if name not in file.entries:
                raise PveError(f"{self.kind} ID '{name}' does not exist")
            options = self.type.check(p, create=True)
            self._check_here(ctx, options)
            entry = dict(file.entries[name])
            self.type.delete(entry, delete, p if "map" not in delete else {})
            file.entries[name] = {**entry, **options}
        except ApiError as error:
            raise PveError(f"update {self.noun} mapping failed: {error.text}") from None

    def delete(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Remove a mapping; a missing mapping is not an error."""
        self._file(ctx).entries.pop(p["id"], None)


def _missing(one: dict[str, str]) -> str:
    return "" if one["path"] in _DIRECTORIES else f"Path {one['path']} does not exist"


def _checking_node(ctx: Ctx, name: str | None) -> NodeInfo | None:
    """The node that the request is proxied to for a check (API2/Cluster/Mapping/PCI.pm)."""
    if not name:
        return None
    info = ctx.cluster.nodes.get(ctx.cluster.local if name == "localhost" else name)
    if info is None:
        raise unknown_host(name)
    if not info.online:
        raise ProxyError("No route to host")
    return info


for _kind in _TYPES:
    Mappings(_kind).register()


# -- custom CPU models, whose rights are those of mappings ----------------------------------------
# Source: pve-manager, API2/Cluster/Qemu/CustomCPUModels.pm; qemu-server, CPUConfig.pm.

_MODELS = "/cluster/qemu/custom-cpu-models"
_MODEL = SectionType(
    "cpu-model",
    frozenset(),
    frozenset(
        {"reported-model", "hidden", "hv-vendor-id", "flags", "guest-phys-bits", "phys-bits"}
        | {"level"}
    ),
)


def _models(ctx: Ctx) -> SectionFile:
    return ctx.cluster.sections.setdefault("cpu-models", SectionFile())


def _model_name(p: dict[str, Any]) -> str:
    return str(p.pop("cputype")).removeprefix("custom-")


def _stored(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as it is written: a model without a base has the oldest one."""
    return {"reported-model": "kvm64", **entry}


@api(f"GET {_MODELS}")
def list_models(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The models that the caller may see."""
    file = _models(ctx)
    return [
        {
            **{key: value for key, value in entry.items() if key != "type"},
            "cputype": f"custom-{name}",
            "digest": file.digest,
        }
        for name, entry in sorted(file.entries.items())
        if ctx.may(f"/mapping/cpu/{name}", *_SEES, any_of=True)
    ]


@api(f"GET {_MODELS}/{{cputype}}")
def read_model(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One model, without values that are 0."""
    file, name = _models(ctx), _model_name(p)
    if name not in file.entries:
        raise PveError(f"Custom cputype '{name}' not found")
    entry = {"cputype": f"custom-{name}", **file.entries[name], "digest": file.digest}
    return {key: value for key, value in entry.items() if value and key != "type"}


@api(f"POST {_MODELS}")
def create_model(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a model."""
    file, name = _models(ctx), _model_name(p)
    entry = _MODEL.check(p, create=True)
    if name in file.entries:
        raise PveError(f"custom CPU model '{name}' already exists")
    file.entries[name] = _stored(entry)


@api(f"PUT {_MODELS}/{{cputype}}")
def update_model(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a model."""
    file, name = _models(ctx), _model_name(p)
    digest = p.pop("digest", None)
    delete = split_list(p.pop("delete", None) or "")
    if "cputype" in delete:
        raise PveError("cannot delete 'cputype'")
    file.check_digest(digest)
    given = _MODEL.check(p, create=False)
    if name not in file.entries:
        raise PveError(f"custom CPU model '{name}' does not exist")
    entry = dict(file.entries[name])
    _MODEL.delete(entry, delete, p)
    file.entries[name] = _stored({**entry, **given})


@api(f"DELETE {_MODELS}/{{cputype}}")
def delete_model(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a model; VMs that use it are not looked for."""
    name = _model_name(p)
    if _models(ctx).entries.pop(name, None) is None:
        raise PveError(f"custom CPU model '{name}' does not exist")
