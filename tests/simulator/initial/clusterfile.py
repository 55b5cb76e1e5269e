"""Reads the YAML file that describes a cluster."""

from __future__ import annotations

import pickle
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ..access.login import REALMS
from ..cluster.apt import with_defaults
from ..cluster.pools import add_to_pool
from ..config.devices import add_devices
from ..core.api import Simulation
from ..core.contents import SUMS, Described
from ..core.state import Cluster, Container, NodeInfo, Run, Vm, Volume
from ..errors import ApiError
from ..ha.records import add_resource
from ..network.interfaces import make_bridge, physical
from ..options import UsageError
from ..schema.units import format_size, parse_size
from ..schema.validate import check_prop
from ..storage.definitions import make_storage
from ..storage.kinds import DEFAULT_CONTENT, REQUIRED
from ..storage.scan import SCANNED
from ..upkeep.disks import add_disks
from ..volumes.activation import server_of, thin_pool_of
from ..volumes.drives import (
    default_boot,
    drives_of,
    is_cdrom,
    is_net,
    print_boot,
    split_volid,
    with_mac,
)
from ..volumes.mounts import is_mount
from ..volumes.volumes import formats, own_key, parse_volname, set_active

DISK = 270553174016
USED = 30928461824
DEFAULT_ROOT = 4 * 1024**3
# The parser in C is ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEYS = {
    "version",
    "cluster",
    "nodes",
    "bridges",
    "storages",
    "volumes",
    "users",
    "groups",
    "roles",
    "tokens",
    "acl",
    "options",
    "guests",
    "vms",
    "containers",
    "pools",
    "web",
    "host",
    "ha",
    "servers",
    "thin_pools",
    "tfa",
}
_ITEM_KEYS = {
    "nodes": {
        "name",
        "nodeid",
        "ip",
        "local",
        "online",
        "cpus",
        "sockets",
        "memory",
        "disk",
        "pci",
        "usb",
        "updates",
        "disks",
        "services",
    },
    "bridges": {"iface", "nodes", "cidr", "gateway", "ports", "vlan_aware"},
    "volumes": {"volid", "size", "virtual_size", "data", "nodes", *SUMS},
    "users": {
        "userid",
        "password",
        "enable",
        "expire",
        "comment",
        "email",
        "firstname",
        "lastname",
    },
    "groups": {"groupid", "comment", "users"},
    "roles": {"roleid", "privs"},
    "tokens": {"id", "secret", "privsep", "expire", "comment"},
    "acl": {"path", "user", "group", "token", "role", "propagate"},
    "vms": {
        "vmid",
        "node",
        "name",
        "template",
        "running",
        "pool",
        "tags",
        "lock",
        "agent",
        "config",
    },
    "containers": {"vmid", "node", "running", "pool", "config"},
    "pools": {"poolid", "comment", "storage", "vms"},
    "web": {"url", "size", "virtual_size", "type", "data", *SUMS},
}
_HOST = {"ifupdown2", "firmware", "timedatectl", "ha_manager", "qemu", "kernel"}


def broken(where: str, what: str) -> UsageError:
    """A fault in the cluster file, in one line."""
    return UsageError(f"cluster file: {where}: {what}")


def _web_item(item: dict[str, Any]) -> dict[str, Any]:
    sizes = {
        key: size_of(item[key], f"web.{item['url']}.{key}")
        for key in ("size", "virtual_size")
        if item.get(key)
    }
    return {**item, **sizes, "contents": _described(item, sizes.get("size", 0))}


def _described(item: dict[str, Any], size: int) -> Described:
    sums = {name: str(item[name]).lower() for name in SUMS if name in item}
    return Described(size, str(item.get("data", "")).encode(), sums)


def size_of(value: Any, where: str) -> int:
    """Bytes, given as a number or as text with a unit such as 64GiB."""
    if isinstance(value, int):
        return value
    text = re.sub(r"B\Z", "", str(value).strip())
    size = parse_size(text.replace("i", ""))
    if size is None:
        raise broken(where, f"'{value}' is not a size")
    return size


@lru_cache(maxsize=4)
def _parsed(text: str) -> bytes:
    """The document, pickled: each reset reads it again, and changes it."""
    return pickle.dumps(yaml.load(text, _LOADER))


def load(path: Path) -> dict[str, Any]:
    """The document; raises UsageError."""
    try:
        document = pickle.loads(_parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read the cluster file {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"cluster file {path} is not valid YAML: {first}") from None
    if not isinstance(document, dict):
        raise UsageError(f"cluster file {path}: a mapping is expected")
    unknown = sorted(set(map(str, document)) - _KEYS)
    if unknown:
        raise broken(unknown[0], f"unknown section; known are {', '.join(sorted(_KEYS))}")
    if not document.get("nodes"):
        raise broken("nodes", "at least one is needed")
    return document


def _items(document: dict[str, Any], section: str, *needed: str) -> list[dict[str, Any]]:
    found = document.get(section) or []
    if not isinstance(found, list):
        raise broken(section, "a list is expected")
    for index, item in enumerate(found):
        if not isinstance(item, dict):
            raise broken(f"{section}[{index}]", "a mapping is expected")
        unknown = sorted(set(map(str, item)) - _ITEM_KEYS.get(section, set(map(str, item))))
        if unknown:
            raise broken(f"{section}[{index}]", f"unknown key '{unknown[0]}'")
        for key in needed:
            if key not in item:
                raise broken(f"{section}[{index}]", f"'{key}' is missing")
    return found


class Builder:
    """Fills a simulation with the content of the document."""

    def __init__(self, sim: Simulation, document: dict[str, Any]) -> None:
        self.sim = sim
        self.document = document

    @property
    def cluster(self) -> Cluster:
        """The cluster that is being filled."""
        return self.sim.cluster

    def build(self) -> None:
        """Read every section; raises UsageError."""
        try:
            self._settings()
            self._nodes()
            self._bridges()
            self._storages()
            self._volumes()
            self._access()
            self._pools()
            for index, item in enumerate(_items(self.document, "vms", "vmid", "node")):
                self.add_vm(item, f"vms[{index}]")
            for index, item in enumerate(_items(self.document, "containers", "vmid", "node")):
                self.add_container(item, f"containers[{index}]")
            self._pool_members()
            for item in _items(self.document, "ha", "sid"):
                options = {key: value for key, value in item.items() if key != "sid"}
                add_resource(self.cluster, str(item["sid"]), options)
        except ApiError as error:
            raise broken("vms", error.text.replace("\n", " ")) from None
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise broken("contents", f"{type(error).__name__}: {error}") from None
        self.sim.acl.changed()

    def _settings(self) -> None:
        cluster, document = self.cluster, self.document
        version = document.get("version") or {}
        cluster.version = {key: str(value) for key, value in {**cluster.version, **version}.items()}
        info = document.get("cluster") or {}
        cluster.name = str(info.get("name", "pve"))
        cluster.quorate = bool(info.get("quorate", True))
        cluster.config_version = int(info.get("config_version", 1))
        cluster.options = {
            key: str(value) for key, value in (document.get("options") or {}).items()
        }
        guests = document.get("guests") or {}
        cluster.acpi = bool(guests.get("acpi", True))
        cluster.system = bool(guests.get("system", True))
        cluster.realms = {name: dict(realm) for name, realm in REALMS.items()}
        cluster.web = {
            item["url"]: _web_item(item) for item in _items(document, "web", "url", "size")
        }
        self._servers(document.get("servers") or [])
        cluster.thin_pools = set(document.get("thin_pools") or [])
        host = document.get("host") or {}
        unknown = sorted(set(host) - _HOST)
        if unknown:
            raise broken(f"host.{unknown[0]}", "unknown key")
        cluster.ifupdown2 = bool(host.get("ifupdown2", True))
        cluster.firmware = bool(host.get("firmware", True))
        cluster.timedatectl = bool(host.get("timedatectl", True))
        cluster.ha_active = bool(host.get("ha_manager", True))
        cluster.qemu = str(host.get("qemu", cluster.qemu))
        cluster.kernel = str(host.get("kernel", cluster.kernel))

    def _servers(self, items: list[Any]) -> None:
        """Take the servers: an address, or a mapping with what the server offers to a scan."""
        for index, item in enumerate(items):
            offers = dict(item) if isinstance(item, dict) else {"address": item}
            address = str(offers.pop("address"))
            self.cluster.servers.add(address)
            for kind, rows in offers.items():
                if kind not in SCANNED:
                    raise broken(f"servers[{index}]", f"unknown key '{kind}'")
                self.cluster.offers[kind, address] = [dict(row) for row in rows]

    def _nodes(self) -> None:
        cluster = self.cluster
        for index, item in enumerate(_items(self.document, "nodes", "name"), 1):
            name = str(item["name"])
            where = f"nodes[{index - 1}]"
            if name in cluster.nodes:
                raise broken(where, f"'{name}' is there twice")
            digest = cluster.random.getrandbits(256)
            pairs = f"{digest:064X}"
            cluster.nodes[name] = NodeInfo(
                name=name,
                nodeid=int(item.get("nodeid", index)),
                ip=str(item.get("ip", f"10.99.0.{10 + index}")),
                cpus=int(item.get("cpus", 2)),
                sockets=int(item.get("sockets", 1)),
                memory=size_of(item.get("memory", 25276502016), f"{where}.memory"),
                disk=size_of(item.get("disk", DISK), f"{where}.disk"),
                online=bool(item.get("online", True)),
                dns={"dns1": "10.99.0.1", "search": "lab.test"},
                services=dict(item.get("services", {})),
                fingerprint=":".join(pairs[i : i + 2] for i in range(0, 64, 2)),
            )
            add_devices(
                cluster.nodes[name],
                _items(item, "pci", "id", "vendor", "device"),
                _items(item, "usb", "busnum", "vendid", "prodid"),
            )
            cluster.nodes[name].updates = with_defaults(
                _items(item, "updates", "Package", "Version")
            )
            add_disks(cluster.nodes[name], _items(item, "disks", "devpath", "size"))
            if item.get("local") or not cluster.local:
                cluster.local = name

    def _bridges(self) -> None:
        for index, item in enumerate(_items(self.document, "bridges", "iface")):
            for node in self._nodes_of(item, f"bridges[{index}]"):
                info = self.cluster.nodes[node]
                cidr = str(item["cidr"]).replace("NODE_IP", info.ip) if item.get("cidr") else None
                more: dict[str, Any] = (
                    {"bridge_ports": str(item["ports"])} if item.get("ports") else {}
                )
                if item.get("vlan_aware"):
                    more.update(bridge_vlan_aware=1, bridge_vids="2-4094")
                for port in str(item.get("ports", "")).split():
                    info.ifaces.setdefault(port, physical(len(info.ifaces) + 3))
                if item.get("gateway"):
                    more["gateway"] = str(item["gateway"])
                info.ifaces[str(item["iface"])] = make_bridge(
                    str(item["iface"]), len(info.ifaces) + 3, cidr, **more
                )

    def _nodes_of(self, item: dict[str, Any], where: str) -> list[str]:
        nodes = item.get("nodes")
        if nodes is None:
            return list(self.cluster.nodes)
        for node in nodes:
            if node not in self.cluster.nodes:
                raise broken(where, f"there is no node '{node}'")
        return list(nodes)

    def _storages(self) -> None:
        for index, item in enumerate(_items(self.document, "storages", "storage")):
            where = f"storages[{index}]"
            values = dict(item)
            name, kind = str(values.pop("storage")), str(values.pop("type", "dir"))
            if kind not in REQUIRED and kind not in DEFAULT_CONTENT:
                raise broken(where, f"unknown type '{kind}'")
            total = size_of(values.pop("size", DISK), where)
            used = size_of(values.pop("used", USED), where)
            config: dict[str, str] = {}
            for key, value in values.items():
                if key in ("shared", "disable") and not value:
                    continue
                if isinstance(value, bool):
                    config[key] = "1" if value else "0"
                else:
                    config[key] = (
                        ",".join(map(str, value)) if isinstance(value, list) else str(value)
                    )
            for key in REQUIRED.get(kind, ()):
                if key not in config:
                    raise broken(where, f"'{key}' is missing")
            if name == "local" and kind == "dir":
                # The definition that every installation has comes with this setting.
                config.setdefault("prune-backups", "keep-all=1")
            storage = make_storage(name, kind, config, total, min(used, total))
            self.cluster.storages[name] = storage
            server = server_of(kind, config)
            if server is not None:
                self.cluster.servers.add(server)
            self.cluster.thin_pools.add(thin_pool_of(config))

    def _volumes(self) -> None:
        for index, item in enumerate(_items(self.document, "volumes", "volid", "size")):
            where = f"volumes[{index}]"
            parts = split_volid(str(item["volid"]))
            if parts is None or parts[0] not in self.cluster.storages:
                raise broken(where, f"'{item['volid']}' is on no storage that is defined")
            storage = self.cluster.storages[parts[0]]
            parsed = parse_volname(storage, parts[1])
            virtual = item.get("virtual_size")
            size = size_of(item["size"], where)
            for node in self._nodes_of(item, where):
                storage.on(node)[parts[1]] = Volume(
                    parts[1],
                    parsed.content,
                    parsed.fmt,
                    size,
                    int(self.cluster.now()),
                    parsed.vmid,
                    virtual_size=size_of(virtual, where) if virtual else None,
                    contents=_described(item, size),
                )

    def _access(self) -> None:
        acl, authority = self.sim.acl, self.sim.authority
        acl.users["root@pam"] = {"enable": 1, "expire": 0, "tokens": {}}
        for item in _items(self.document, "users", "userid"):
            userid = str(item["userid"])
            fields = {
                key: value
                for key, value in item.items()
                if key not in ("userid", "password", "groups")
            }
            acl.users[userid] = {"enable": 1, "expire": 0, "tokens": {}, **fields}
            if item.get("password") is not None:
                authority.passwords[userid] = str(item["password"])
        for item in _items(self.document, "tfa", "userid", "entries"):
            self.cluster.second_factors[str(item["userid"])] = dict(item)
        for item in _items(self.document, "groups", "groupid"):
            acl.groups[str(item["groupid"])] = {
                "comment": item.get("comment", ""),
                "users": set(item.get("users", [])),
            }
        for item in _items(self.document, "roles", "roleid", "privs"):
            privs = (
                item["privs"] if isinstance(item["privs"], list) else str(item["privs"]).split(",")
            )
            acl.roles[str(item["roleid"])] = frozenset(privs)
        for index, item in enumerate(_items(self.document, "tokens", "id", "secret")):
            user, bang, name = str(item["id"]).partition("!")
            if not bang or user not in acl.users:
                raise broken(
                    f"tokens[{index}]", f"'{item['id']}' belongs to no user that is defined"
                )
            acl.users[user]["tokens"][name] = {
                "secret": str(item["secret"]),
                "privsep": 1 if item.get("privsep", True) else 0,
                "expire": int(item.get("expire", 0)),
                **({"comment": item["comment"]} if item.get("comment") else {}),
            }
        for index, item in enumerate(_items(self.document, "acl", "path", "role")):
            kinds = [kind for kind in ("user", "group", "token") if item.get(kind)]
            if len(kinds) != 1 or item["role"] not in acl.roles:
                raise broken(
                    f"acl[{index}]", "one of user, group, token and a role that exists are needed"
                )
            propagate = 1 if item.get("propagate", True) else 0
            acl.put(str(item["path"]), kinds[0], str(item[kinds[0]]), str(item["role"]), propagate)

    def _pools(self) -> None:
        for item in _items(self.document, "pools", "poolid"):
            self.cluster.pools[str(item["poolid"])] = {
                "comment": item.get("comment", ""),
                "vms": {},
                "storage": dict.fromkeys(item.get("storage", []), 1),
            }

    def _pool_members(self) -> None:
        for index, item in enumerate(_items(self.document, "pools", "poolid")):
            for vmid in item.get("vms", []):
                if self.cluster.guest(vmid) is None:
                    raise broken(f"pools[{index}]", f"there is no VM or container {vmid}")
                add_to_pool(self.cluster, str(item["poolid"]), vmid)

    def add_vm(self, item: dict[str, Any], where: str) -> None:
        """Make a machine with its disks from an entry of `vms`."""
        cluster, schema = self.cluster, self.sim.schema
        vmid, node = self._place(item, where)
        conf = self._config(item, where)
        vm = Vm(vmid, node, conf)
        self._disks(vm, where)
        conf.setdefault("boot", print_boot(default_boot(schema, conf)) or " ")
        conf.setdefault("smbios1", f"uuid={cluster.uuid()}")
        conf.setdefault("vmgenid", cluster.uuid())
        conf.setdefault("meta", f"creation-qemu={cluster.qemu},ctime={int(cluster.now())}")
        if item.get("running"):
            info = cluster.nodes[node]
            info.next_pid += 1
            vm.run = Run(info.next_pid, cluster.now() - 600)
            set_active(cluster, schema, vm, node)
        if item.get("agent"):
            vm.agent = str(item["agent"])
        vm.file()
        cluster.vms[vmid] = vm
        self._list(item)

    def add_container(self, item: dict[str, Any], where: str) -> None:
        """Make a container with its volumes from an entry of `containers`."""
        cluster = self.cluster
        vmid, node = self._place(item, where)
        options = self.sim.schema.methods[("PUT", "/nodes/{node}/lxc/{vmid}/config")].props
        # Defaults that PVE's API writes for omitted options (observed).
        conf = {"hostname": f"CT{vmid}", "memory": "512", "swap": "512", "unprivileged": "1"}
        conf.update(self._checked(item, options, where))
        container = Container(vmid, node, conf)
        for option in filter(is_mount, conf):
            self._fill(container, option, where)
        container.file()
        if item.get("running"):
            info = cluster.nodes[node]
            info.next_pid += 1
            container.run = Run(info.next_pid, cluster.now() - 600)
        cluster.containers[vmid] = container
        self._list(item)

    def _fill(self, container: Container, option: str, where: str) -> None:
        """Make the volume of the root file system or of a mount point."""
        value = container.conf[option]
        parts = split_volid(value.partition(",")[0])
        if parts is None:
            return
        if parts[0] not in self.cluster.storages:
            raise broken(where, f"{option}: there is no storage '{parts[0]}'")
        storage = self.cluster.storages[parts[0]]
        size = parse_size(value.partition("size=")[2].partition(",")[0])
        key = own_key(storage, parts[1])
        # Listed as `rootdir`: its number is a container's (pve-storage, Plugin.pm, list_volumes).
        storage.on(container.node)[key] = Volume(
            key, "rootdir", "raw", size or DEFAULT_ROOT, int(self.cluster.now()), container.vmid
        )

    def _place(self, item: dict[str, Any], where: str) -> tuple[int, str]:
        """The number and the node of a machine or container that is not there yet."""
        vmid, node = int(item["vmid"]), str(item["node"])
        if node not in self.cluster.nodes:
            raise broken(where, f"there is no node '{node}'")
        if self.cluster.guest(vmid) is not None:
            raise broken(where, f"VM {vmid} is there twice")
        if item.get("pool") and item["pool"] not in self.cluster.pools:
            raise broken(where, f"there is no pool '{item['pool']}'")
        return vmid, node

    def _list(self, item: dict[str, Any]) -> None:
        """Let the listings show it, in its pool."""
        cluster, vmid = self.cluster, int(item["vmid"])
        cluster.due[vmid] = 0.0
        if item.get("pool"):
            add_to_pool(cluster, str(item["pool"]), vmid)

    def _checked(
        self, item: dict[str, Any], options: dict[str, dict[str, Any]], where: str
    ) -> dict[str, str]:
        """The options of `config`, as text and as the schema wants them."""
        conf: dict[str, str] = {}
        for key, value in (item.get("config") or {}).items():
            text = str(int(value)) if isinstance(value, bool) else str(value)
            if key not in options:
                raise broken(where, f"unknown option '{key}'")
            errors: dict[str, str] = {}
            check_prop(text, options[key], key, errors)
            if errors:
                raise broken(where, f"{key}: {errors[key]}".replace("\n", " ").strip())
            conf[key] = text
        return conf

    def _config(self, item: dict[str, Any], where: str) -> dict[str, str]:
        """The configuration of a machine, as far as the file has it."""
        conf = self._checked(item, self.sim.schema.vm_options, where)
        for key, text in conf.items():
            if is_net(key):
                conf[key] = with_mac(self.cluster, text)
        if item.get("name"):
            conf["name"] = str(item["name"])
        if item.get("tags"):
            tags = item["tags"]
            conf["tags"] = ";".join(tags) if isinstance(tags, list) else str(tags)
        if item.get("template"):
            conf["template"] = "1"
        if item.get("lock"):
            conf["lock"] = str(item["lock"])
        return conf

    def _disks(self, vm: Vm, where: str) -> None:
        """Make the volumes that the drives name."""
        for name, drive in drives_of(self.sim.schema, vm.conf, unused=True):
            parts = split_volid(drive.get("file", ""))
            if parts is None:
                continue
            if parts[0] not in self.cluster.storages:
                raise broken(where, f"{name}: there is no storage '{parts[0]}'")
            storage = self.cluster.storages[parts[0]]
            parsed = parse_volname(storage, parts[1])
            if parsed.content != "images":
                continue
            size = parse_size(drive.get("size", "")) or (4 << 20 if is_cdrom(drive) else 1 << 30)
            if is_cdrom(drive) is False and "size" not in drive and not name.startswith("unused"):
                vm.conf[name] += f",size={format_size(size)}"
            key = own_key(storage, parts[1])
            fmt = parsed.fmt if parsed.fmt in formats(storage) else "raw"
            storage.on(vm.node).setdefault(
                key,
                Volume(
                    key,
                    "images",
                    fmt,
                    size,
                    int(self.cluster.now()),
                    parsed.vmid,
                    used=size // 4,
                    parent=parsed.base,
                ),
            )
