"""Two simulated clusters between which guests move."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    NetworkError,
    NodeUnhealthy,
    NotFound,
)
from tests.modules.estate_lab import Lab

ROOT = {"user": "root@pam", "password": "fleetpw123"}
NO_LOCK = {"config": {"lock": None}}
MARK = "[pve.fleet: tenant=tenant_acme]"


def prepare(away: Lab) -> None:
    """Give the other site the pool of the tenant."""
    away.simulator.clear_faults()
    away.simulator.reset()
    away.client.write("PUT", "pools", data={"poolid": "acme", "comment": MARK})


def options(here: Lab, away: Lab, **more: Any) -> dict[str, Any]:
    """Return the options of a move from Vienna to Munich, to the node that answers."""
    sites = [{"name": "vienna", **here.connection}, {"name": "munich", **away.connection}]
    connection: dict[str, Any] = {"sites": sites, "site": "vienna", "to_site": "munich"}
    connection |= dict.fromkeys(here.connection)
    return {**connection, "node": "pve1", "settle": 0, "hold": "1h", **more}


def identity(lab: Lab) -> str:
    """Return the identity of a cluster in a record: the beginning of its CA's fingerprint."""
    rows = lab.client.get("nodes", "pve1", "certificates", "info")
    (found,) = [row["fingerprint"] for row in rows if row["filename"] == "pve-root-ca.pem"]
    return str(found).replace(":", "")[:16].lower()


def moved(here: Lab, given: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a run that must not fail."""
    result: dict[str, Any] = here.run("relocate", **given)
    assert not result.get("failed"), result
    return result


def state(lab: Lab, vmid: int) -> str:
    """Return the power state and the lock of a guest, or `gone`. A machine that waits for memory,
    or has handed it over, does not run.
    """
    for kind in ("qemu", "lxc"):
        row = lab.simulator.ask("GET", f"/{'vms' if kind == 'qemu' else 'containers'}")
        node = next((one["node"] for one in row if int(one["vmid"]) == vmid), None)
        if node is None:
            continue
        try:
            now = lab.client.get("nodes", node, kind, vmid, "status", "current", tries=1)
        except (NotFound, NodeUnhealthy, NetworkError):
            return "unknown"  # it has just moved, or its node reboots
        power = now.get("qmpstatus", now["status"])
        power = power if power == "running" else "stopped"
        return f"{power} {now['lock']}" if now.get("lock") else str(power)
    return "gone"


def both_states(here: Lab, away: Lab, vmid: int) -> tuple[str, str]:
    """Return the states of both sides. The source is read again if both seem to run: it may have
    handed over between the two readings.
    """
    found = state(here, vmid), state(away, vmid)
    if [one.split()[0] for one in found].count("running") == 2:
        found = state(here, vmid), found[1]
    return found


def unlock(sites: Mapping[str, Lab], commands: Iterable[Mapping[str, Any]]) -> None:
    """Do what root does with the commands of a result."""
    for row in commands:
        words = shlex.split(row["command"])
        texts = words[2].split(" && ") if words[:2] == ["sh", "-c"] else [row["command"]]
        for text in texts:
            do_as_root(sites[row["site"]], text)


def do_as_root(lab: Lab, command: str) -> None:
    """Run a command of a node: `unlock` has no request, `set` is the request of the same options
    (qemu-server: CLI/qm.pm, pve-container: CLI/pct.pm).
    """
    tool, what, vmid, *words = shlex.split(command)
    kind, key = ("qemu", "/vms") if tool == "qm" else ("lxc", "/containers")
    if what == "unlock":
        assert not words
        lab.simulator.steer(f"{key}/{vmid}", {"lock": None} if tool == "qm" else NO_LOCK)
        return
    assert what == "set"
    data = dict(zip([word.removeprefix("--") for word in words[::2]], words[1::2], strict=True))
    node = next(row["node"] for row in lab.simulator.ask("GET", key) if str(row["vmid"]) == vmid)
    login = {"host": lab.simulator.url, "ca_path": str(lab.simulator.ca), **ROOT}
    with connect(login, {}) as root:
        root.write("PUT", "nodes", node, kind, vmid, "config", data=data)


NFS = {"type": "nfs", "server": "10.99.0.6", "export": "/backup"}
PBS = {"type": "pbs", "server": "10.99.0.6", "datastore": "main"}
PBS |= {"username": "backup@pbs", "password": "pbs-password"}


def add_vaults(here: Lab, away: Lab, place: Mapping[str, str] | None = None) -> None:
    """Give both sites the same storage for backups, under two names."""
    for lab, name in ((here, "nas"), (away, "vault")):
        data = {"storage": name, "content": "backup", **(place or NFS)}
        lab.client.write("POST", "storage", data=data)


def share_vaults(here: Lab, away: Lab) -> None:
    """Show the archives in the storage `nas` of a site to the other one, which calls it `vault`."""
    known = {row["volid"] for row in away.simulator.ask("GET", "/volumes")}
    for row in here.simulator.ask("GET", "/volumes"):
        storage, _colon, name = row["volid"].partition(":")
        if storage == "nas" and f"vault:{name}" not in known:
            away.simulator.steer("/volumes/pve1", {**row, "volid": f"vault:{name}", "new": True})


def make_guest(
    lab: Lab, mode: str, vmid: int = 20300, name: str = "mover", storage: str = "ceph"
) -> int:
    """Make the guest of a test on node pve1, and return its VMID."""
    if mode == "restart":
        template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
        rest = {"hostname": name, "rootfs": f"{storage}:4", "net0": "name=eth0,bridge=vmbr0"}
        data = {"vmid": vmid, "ostemplate": template, "tags": "tenant_acme", **rest}
        lab.client.task("POST", "nodes", "pve1", "lxc", data=data)
        lab.client.task("POST", "nodes", "pve1", "lxc", vmid, "status", "start")
        return vmid
    config: dict[str, Any] = {
        "name": name,
        "scsi0": f"{storage}:4",
        "net0": "virtio,bridge=vmbr0",
        "memory": 512,
    }
    lab.client.task(
        "POST", "nodes", "pve1", "qemu", data={"vmid": vmid, "tags": "tenant_acme", **config}
    )
    if mode == "online":
        lab.client.task("POST", "nodes", "pve1", "qemu", vmid, "status", "start")
    return vmid


def make_managed(lab: Lab, vmid: int, kind: str = "vm") -> None:
    """Make a guest an HA resource that is alone in a rule."""
    sid, power = f"{kind}:{vmid}", "started" if state(lab, vmid) == "running" else "stopped"
    data = {"sid": sid, "state": power, "max_restart": 2}
    lab.client.write("POST", "cluster", "ha", "resources", data=data)
    rule = {"rule": "front", "type": "node-affinity", "resources": sid, "nodes": "pve1"}
    lab.client.write("POST", "cluster", "ha", "rules", data=rule)


def make_replicated(here: Lab, away: Lab, vmid: int) -> None:
    """Give a guest on the storage `tank` a replication job and a backup job that the other site has
    for another guest.
    """
    data = {"id": f"{vmid}-0", "type": "local", "target": "pve2", "comment": "a copy"}
    here.client.write("POST", "cluster", "replication", data=data)
    for lab, guest in ((here, vmid), (away, 9000)):
        data = {"id": "nightly", "vmid": str(guest), "schedule": "02:00", "storage": "local"}
        lab.client.write("POST", "cluster", "backup", data=data)


def remove_marked(lab: Lab) -> None:
    """Do what the nodes do each minute with replication jobs that are marked for removal."""
    for row in lab.client.get("cluster", "replication"):
        if row.get("remove_job"):
            lab.simulator.ask("PUT", f"/replication/{row['id']}", {"synced": 0})


def managed_in(lab: Lab) -> dict[str, Any]:
    """Return the HA resources of a site by their IDs."""
    return {str(row["sid"]): row for row in lab.client.get("cluster", "ha", "resources")}
