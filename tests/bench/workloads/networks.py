"""Parts about firewalls and networks: writes and requests, and the time of an evaluation.

`python -m tests.bench.workloads.networks GUESTS` prints the seconds of an evaluation.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from typing import Any

from tests.bench.environment import NotMeasured
from tests.bench.figures import Measured
from tests.bench.parts import Bench, made_up_cluster
from tests.tools.stage import REPO

RULES, CHANGED = 300, 3
VNETS = 50
GUESTS, TENANTS = 1000, 20


def _rules(shift: int = 0) -> list[dict[str, Any]]:
    """Return rules for one port each; with `shift`, three of them have another port."""
    rules = []
    for number in range(RULES):
        moved = shift if number % (RULES // CHANGED) == 0 else 0
        port = str(1000 + number + moved)
        rules.append({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": port})
    return rules


def firewall300(bench: Bench) -> Measured:
    """A security group of 300 rules, of which three change."""
    task: dict[str, Any] = {"scope": "group", "group": "many"}
    measured = Measured()
    with made_up_cluster(1) as simulator:
        first = {"name": "Create", "pve.fleet.firewall": {**task, "rules": _rules()}}
        bench.ours.play(simulator, [first]).expect(1)
        second = {"name": "Change", "pve.fleet.firewall": {**task, "rules": _rules(5000)}}
        bench.ours.play(simulator, [second]).expect(1)
        measured.key("firewall300_writes", float(len(simulator.writes())))
    return measured


def sdn50(bench: Bench) -> Measured:
    """50 unchanged VNets on three nodes; each node is queried for its status."""
    zone = {"name": "teams", "type": "vlan", "bridge": "vmbr0"}
    vnets = [
        {"name": f"net{number}", "zone": "teams", "tag": 100 + number} for number in range(VNETS)
    ]
    task = {"name": "Declare", "pve.fleet.sdn": {"zones": [zone], "vnets": vnets}}
    measured = Measured()
    with made_up_cluster(1, nodes=3) as simulator:
        bench.ours.play(simulator, [task]).expect(1)
        measured.key(
            "sdn50_noop_requests", float(bench.ours.play(simulator, [task]).expect(0).requests)
        )
    return measured


def isolation1000(bench: Bench) -> Measured:
    """The audit's evaluation of 1,000 guests of 20 tenants, without the requests."""
    measured = Measured()
    command = [sys.executable, "-m", "tests.bench.workloads.networks", str(GUESTS)]
    seconds = []
    for _turn in range(bench.few):
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout.splitlines()[-1]))
    measured.key("isolation1000_seconds", *seconds)
    return measured


def evaluate(guests: int) -> float:
    """Return the seconds of the evaluation. Raises NotMeasured for findings."""
    from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.audit import (
        find_network_faults,
    )

    view = _view(guests)
    began = time.perf_counter()
    found = list(find_network_faults(view))
    seconds = time.perf_counter() - began
    if found:
        raise NotMeasured(f"the guests are isolated, and the evaluation says {found[0]}")
    return seconds


def _view(guests: int) -> Any:
    """Return guests with ten rules each, on a VNet of their tenant."""
    from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.marks import with_mark
    from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.evaluate.model import (
        FirewallCluster,
        FirewallGuest,
        FirewallNic,
    )
    from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.model import (
        Firewall,
        IpSet,
    )
    from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.model import (
        Rule,
    )
    from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.audit import (
        NetworkView,
        TenantGuest,
    )

    tags = [f"tenant_t{number}" for number in range(TENANTS)]
    nets = {tag: f"10.{number}.0.0/16" for number, tag in enumerate(tags)}
    every = {cidr: (False, with_mark("", tag)) for tag, cidr in nets.items()}
    sets = {tag: IpSet("", {cidr: (False, "")}) for tag, cidr in nets.items()}
    firewall = Firewall({"enable": "1"}, ip_sets={**sets, "fleet-tenants": IpSet("", every)})
    drop = Rule("in", "DROP", source="+dc/fleet-tenants")
    groups = {tag: (Rule("in", "ACCEPT", source=f"+dc/{tag}"), drop) for tag in tags}
    options = {"enable": "1", "policy_in": "DROP", "ipfilter": "1"}
    own = tuple(Rule("in", "ACCEPT", proto="tcp", dport=str(port)) for port in range(80, 90))
    found = []
    for number in range(guests):
        tag = tags[number % TENANTS]
        rules = (Rule("group", tag), *own)
        nic = FirewallNic("net0", True, "BC:24:11:00:00:01")
        guest = FirewallGuest(f"VM {number}", Firewall(options, rules), (nic,))
        found.append(TenantGuest(number, f"VM {number}", tag, guest, {"net0": f"v{tag}"}))
    vnets = {f"v{tag}": tag for tag in tags}
    return NetworkView(
        FirewallCluster(firewall, groups),
        vnets,
        dict(zip(tags, tags, strict=True)),
        tuple(found),
        "tenant_",
    )


if __name__ == "__main__":
    # This makes the collection importable by its own name.
    importlib.import_module("tests.conftest")
    print(evaluate(int(sys.argv[1])))
