"""Puts a simulation together from the options."""

from __future__ import annotations

import random
from functools import lru_cache

from ..core.api import Simulation
from ..core.state import Cluster
from ..core.tasks import TaskBoard
from ..options import Options, UsageError
from ..schema.definition import Schema
from ..upkeep.scheduler import Scheduler
from . import clusterfile, seed


@lru_cache(maxsize=2)
def load_schema(version: str) -> Schema:
    """The API schema of that version, loaded once."""
    try:
        return Schema(version)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"cannot load the API schema {version}: {error}") from None


def simulation(options: Options) -> Simulation:
    """A fresh simulation; raises UsageError when the cluster file is broken."""
    schema = load_schema(options.pve_version)
    cluster = Cluster(schema, options.seed)
    key = random.Random(f"key-{options.seed}").randbytes(32)
    sim = Simulation(cluster, schema, options.pve_version, key)
    sim.proxy_timeout = options.proxy_delay_s
    sim.scheduler = Scheduler(sim)
    cluster.tasks = TaskBoard(cluster, dict(options.task_ms), options.task_slots)
    if options.pve_version.startswith("8"):
        cluster.version = {"release": "8.4", "version": "8.4.5", "repoid": "57892e8e686cb35b"}
        cluster.qemu = "9.2.0"
        cluster.kernel = "6.8.12-11-pve"
    if options.cluster is not None:
        document = clusterfile.load(options.cluster)
        if options.pve_version.startswith("8"):
            document.pop("version", None)
        clusterfile.Builder(sim, document).build()
        seed.make_vms(sim, options.vms, options.seed)
    else:
        seed.build(sim, options.nodes or 3, options.vms, options.seed)
    cluster.lag = options.lag_s
    cluster.list_time = options.list_ms / 1000
    cluster.cleanup = options.cleanup_s
    cluster.due = dict.fromkeys((*cluster.vms, *cluster.containers), 0.0)
    return sim
