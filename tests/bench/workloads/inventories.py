"""Parts that measure the inventory: `ansible-inventory --list`, the whole command."""

from __future__ import annotations

from typing import Any

from tests.bench.environment import NotMeasured
from tests.bench.figures import Figure, Measured, ratio
from tests.bench.keys import CHANGED
from tests.bench.parts import NODES, Bench, made_up_cluster, row_of_lists
from tests.bench.sides import Listed
from tests.simulator.process import Simulator

TEMPLATES = 1  # in a made-up cluster
AT_ONCE = 10  # requests that the server serves at once when addresses are read
GROUPS: dict[str, Any] = {}  # ours groups by tenant, tag, node, pool, status and site by default
ADDRESSES: dict[str, Any] = {"fetch": ["addresses"]}
PEERS_PLAIN: dict[str, Any] = {"validate_certs": True, "exclude_nodes": True}
PEERS_ADDRESSES: dict[str, Any] = {**PEERS_PLAIN, "want_facts": True}
PEERS_TAGS: dict[str, Any] = {
    **PEERS_PLAIN,
    "keyed_groups": [{"key": "(proxmox_tags | default('')).split(';')", "prefix": "tag"}],
}


def inv1000(bench: Bench) -> Measured:
    """1,000 VMs without details."""
    measured = _beside(bench, 1000, "no details", GROUPS, PEERS_PLAIN)
    ours, peers = measured.rows
    measured.key("inv1000_requests", ours.requests)
    measured.keys["inv1000_vs_peer"] = ratio(peers.seconds, ours.seconds)
    return measured


def inv5000_tags(bench: Bench) -> Measured:
    """5,000 VMs with groups by tag."""
    measured = _beside(bench, 5000, "groups by tag", GROUPS, PEERS_TAGS)
    ours, peers = measured.rows
    measured.keys["inv5000_tags_vs_peer"] = ratio(peers.seconds, ours.seconds)
    return measured


def _beside(
    bench: Bench, vms: int, what: str, ours: dict[str, Any], peers: dict[str, Any]
) -> Measured:
    lists: dict[Any, list[Listed]] = {bench.ours: [], bench.peer: []}
    with made_up_cluster(vms) as simulator:
        for _turn in range(bench.runs):
            lists[bench.ours].append(
                bench.ours.list_inventory(simulator, ours, hosts=vms + TEMPLATES)
            )
            lists[bench.peer].append(
                bench.peer.list_inventory(simulator, peers, hosts=vms + TEMPLATES)
            )
    named = f"inventory of {vms:,} VMs, {what}"
    measured = Measured(
        [row_of_lists(named, side, found, units=vms) for side, found in lists.items()]
    )
    groups = [len(found[0].data) for found in lists.values()]
    measured.notes.append(f"Ours made {groups[0]} groups, the peer {groups[1]}.")
    return measured


def inv1000_addr(bench: Bench) -> Measured:
    """1,000 VMs with addresses; the peer reads one VM after the other, so it is measured once."""
    with made_up_cluster(1000, AT_ONCE) as simulator:
        ours = [_addressed(bench, simulator, 1000) for _turn in range(bench.runs)]
        bench.say("the peer's turn; it takes about a minute and a half")
        peers = bench.peer.list_inventory(simulator, PEERS_ADDRESSES, hosts=1000 + TEMPLATES)
        tenant = [_one_tenant(bench, simulator) for _turn in range(bench.few)]
    what = "inventory of 1,000 VMs, addresses"
    measured = Measured(
        [
            row_of_lists(what, bench.ours, ours, units=1000),
            row_of_lists(what, bench.peer, [peers], units=1000, note="one run"),
            row_of_lists(
                "inventory of one tenant of five, addresses",
                bench.ours,
                tenant,
                units=len(tenant[0].hosts),
            ),
        ]
    )
    measured.keys["inv1000_addr_seconds"] = measured.rows[0].seconds
    measured.notes.append(f"The server serves {AT_ONCE} requests at once.")
    return measured


def inv5000_addr(bench: Bench) -> Measured:
    """5,000 VMs with addresses; the peer would take many minutes."""
    with made_up_cluster(5000, AT_ONCE) as simulator:
        ours = [_addressed(bench, simulator, 5000) for _turn in range(bench.runs)]
    measured = Measured(
        [row_of_lists("inventory of 5,000 VMs, addresses", bench.ours, ours, units=5000)]
    )
    measured.keys["inv5000_addr_seconds"] = measured.rows[0].seconds
    measured.notes.append(
        f"The server serves {AT_ONCE} requests at once. The peer is not measured: it would take"
        " minutes."
    )
    return measured


def _addressed(bench: Bench, simulator: Simulator, vms: int, **options: Any) -> Listed:
    """List with addresses; raises NotMeasured if a running VM has no address."""
    found = bench.ours.list_inventory(simulator, {**ADDRESSES, **options}, hosts=vms + TEMPLATES)
    without = [
        name
        for name, one in found.hosts.items()
        if one["proxmox_status"] == "running" and not one.get("proxmox_address")
    ]
    if without:
        raise NotMeasured(f"{len(without)} running VMs have no address, for example {without[0]}")
    return found


def _one_tenant(bench: Bench, simulator: Simulator) -> Listed:
    """List one tenant with addresses; raises NotMeasured if a VM of another tenant was queried."""
    log = bench.ours.list_inventory(
        simulator, {**ADDRESSES, "tenant": "t1"}, hosts=_members(bench, simulator, "t1")
    )
    asked = {entry["path"].split("/")[4] for entry in simulator.log() if "/qemu/" in entry["path"]}
    foreign = asked - {str(one["proxmox_vmid"]) for one in log.hosts.values()}
    if foreign:
        raise NotMeasured(f"VMs of other tenants were asked: {sorted(foreign)[:5]}")
    return log


def _members(bench: Bench, simulator: Simulator, tenant: str) -> int:
    everything = bench.ours.list_inventory(simulator, GROUPS, hosts=1000 + TEMPLATES)
    return sum(one["proxmox_tenant"] == tenant for one in everything.hosts.values())


def inv5000_incremental(bench: Bench) -> Measured:
    """The next sync of 5,000 VMs with addresses, after one in a hundred changed."""
    store = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_timeout": 1}
    following = []
    with made_up_cluster(5000, AT_ONCE) as simulator:
        for turn in range(bench.runs):
            options = {**store, "cache_connection": str(bench.ours.place / f"cache-{turn}")}
            first = _addressed(bench, simulator, 5000, **options)
            _change(simulator, first, turn)
            following.append(_addressed(bench, simulator, 5000, **options))
    what = f"next sync of 5,000 VMs, addresses, {CHANGED} changed"
    measured = Measured([row_of_lists(what, bench.ours, following, units=5000)])
    measured.keys["inv5000_incremental_seconds"] = measured.rows[0].seconds
    measured.keys["inv5000_incremental_requests"] = Figure(
        tuple(float(one.requests) for one in following)
    )
    measured.notes.append(
        "Of the changed VMs, four in five were restarted and one in five is on another node."
    )
    return measured


def _change(simulator: Simulator, listed: Listed, turn: int) -> None:
    """Restart some running VMs and move others; choose different VMs in every turn."""
    running = sorted(
        one["proxmox_vmid"] for one in listed.hosts.values() if one["proxmox_status"] == "running"
    )
    nodes = {one["proxmox_vmid"]: one["proxmox_node"] for one in listed.hosts.values()}
    for place, vmid in enumerate(running[turn * CHANGED : (turn + 1) * CHANGED]):
        if place % 5 == 4:
            simulator.steer(
                f"/vms/{vmid}", {"node": "pve1" if nodes[vmid] != "pve1" else f"pve{NODES}"}
            )
        else:
            simulator.steer(f"/vms/{vmid}", {"running": False})
            simulator.steer(f"/vms/{vmid}", {"running": True})


def inv10000(bench: Bench) -> Measured:
    """10,000 VMs with groups, and smaller numbers to see how the cost grows."""
    measured = Measured()
    for vms in (2000, 5000, 10000):
        with made_up_cluster(vms) as simulator:
            runs = bench.runs if vms == 10000 else bench.few
            lists = [
                bench.ours.list_inventory(simulator, GROUPS, hosts=vms + TEMPLATES)
                for _turn in range(runs)
            ]
        measured.rows.append(
            row_of_lists(f"inventory of {vms:,} VMs, groups", bench.ours, lists, units=vms)
        )
    largest = measured.rows[-1]
    measured.keys["inv10000_seconds"] = largest.seconds
    if largest.peak_mib is not None:
        measured.keys["inv10000_peak_mib"] = largest.peak_mib
    return measured
