"""The named figures, each with its meaning and its goal (pure)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """A named figure; `limit` is its minimum (`at_least`) or its maximum."""

    part: str
    meaning: str
    limit: float | None = None
    at_least: bool = False
    unit: str = ""

    def reached(self, value: float) -> bool | None:
        """Return whether the value meets the limit, or None if there is no limit."""
        if self.limit is None:
            return None
        return value >= self.limit if self.at_least else value <= self.limit

    @property
    def reach(self) -> str:
        """The limit in words."""
        if self.limit is None:
            return "-"
        return (
            f"{'at least' if self.at_least else 'at most'}"
            f" {self.limit:g}{f' {self.unit}' if self.unit else ''}"
        )


# Number of changed VMs in a sync of 5,000 VMs; one request lists all of them.
CHANGED = 50

KEYS: dict[str, Key] = {
    "noop_loop_ratio": Key(
        "noop_loop",
        "No change, a loop over 20 VMs: the peer's time for each VM divided by ours",
        10,
        at_least=True,
    ),
    "process_loop_ratio": Key(
        "process_loop",
        "No change, a loop over 20 VMs as processes: the peer's time divided by ours",
        0.6,
        at_least=True,
    ),
    "noop_forks_ratio": Key(
        "noop_forks",
        "No change, 60 hosts with 10 forks: the peer's time divided by ours",
        7,
        at_least=True,
    ),
    "clone_start_over_server": Key(
        "clone_start",
        "Clone, configure and start one VM: our time divided by the time of the server's own tasks",
        1.15,
    ),
    "fleet20_vs_peer": Key(
        "fleet20",
        "20 VMs created: the time of the peer's loop divided by the time of one task vms",
        8,
        at_least=True,
    ),
    "fleet20_over_bound": Key(
        "fleet20", "20 VMs created by one task vms: its time divided by the bound of the slots", 1.3
    ),
    "fleet100_over_bound": Key(
        "fleet100",
        "100 VMs cloned, configured and started by one task vms: its time divided by the bound of"
        " the slots",
        1.25,
    ),
    "evacuate60_over_bound": Key(
        "evacuate60",
        "60 VMs moved off a node by one task evacuation: its time divided by the bound of the"
        " migration slots",
        1.2,
    ),
    "relocate40_over_bound": Key(
        "relocate40",
        "40 VMs moved to another cluster by one task relocate: its time divided by the bound of the"
        " links",
        1.2,
    ),
    "clones_local_image_ratio": Key(
        "local_images",
        "100 clones on five nodes without shared storage: the time with one template on one node,"
        " divided by the time with an image on each node",
        3,
        at_least=True,
    ),
    "fleet1000_noop_requests": Key(
        "fleet1000", "1,000 VMs unchanged in one task vms: requests", 1010
    ),
    "fleet1000_noop_seconds": Key(
        "fleet1000", "1,000 VMs unchanged in one task vms: time", unit="s"
    ),
    "fleet1000_peak_mib": Key(
        "fleet1000",
        "1,000 VMs unchanged in one task vms: memory of the controller",
        300,
        unit="MiB",
    ),
    "drift1000_over_noop": Key(
        "drift1000",
        "1,000 VMs compared with their estate: the time divided by the time of an unchanged task"
        " vms",
        1.2,
    ),
    "drift1000_second_requests": Key(
        "drift1000",
        "1,000 VMs compared with their estate a second time, without a change: requests; see"
        " `docs/decisions/0037-no-change-signal.md`",
        25,
    ),
    "sites100_drift_peak_mib": Key(
        "sites100",
        "Drift of 100 sites with 1,000 guests each: memory of the largest job, of a site or of the"
        " merge",
        1000,
        unit="MiB",
    ),
    "sites100_merge_peak_mib": Key(
        "sites100", "The results of 100 sites merged: memory of the job", 1000, unit="MiB"
    ),
    "sites100_report_peak_mib": Key(
        "sites100",
        "Reports on sites with 1,000 guests, a job for each: memory of the largest job",
        1000,
        unit="MiB",
    ),
    "sites100_inventory_peak_mib": Key(
        "sites100",
        "A playbook with the inventory of 100 sites with 1,000 guests each: memory of the"
        " controller",
        1000,
        unit="MiB",
    ),
    "sites100_drift_over_slowest": Key(
        "sites100",
        "Drift of 100 sites with 1,000 guests each: the time of the slowest site and of the merge,"
        " divided by the time of the slowest site",
    ),
    "export1000_over_noop": Key(
        "export1000",
        "1,000 VMs exported as an estate: the time divided by the time of an unchanged task vms",
        1.5,
    ),
    "report1000_over_noop": Key(
        "report1000",
        "A report on 1,000 VMs with the drift from their estate, gathered and written: the time"
        " divided by the time of an unchanged run",
        1.5,
    ),
    "plan1000_mib": Key(
        "plan1000", "A change of 1,000 VMs planned into a file: its size", 5, unit="MiB"
    ),
    "plan1000_check_requests_ratio": Key(
        "plan1000",
        "A change of 1,000 VMs planned into a file: requests, divided by the requests of an"
        " unchanged run",
        1,
    ),
    "apply_over_run": Key(
        "plan1000",
        "A change of 1,000 VMs applied from a plan file: the time divided by the time without one",
        1.05,
    ),
    "container_loop_ratio": Key(
        "container_loop",
        "No change, a loop over 20 containers: the peer's time divided by ours",
        10,
        at_least=True,
    ),
    "container_create_ratio": Key(
        "container_create",
        "20 containers created: the time of the peer's loop divided by the time of one task vms",
        10,
        at_least=True,
    ),
    "mixed1000_over_vms": Key(
        "mixed1000",
        "500 VMs and 500 containers unchanged in one task vms: the time divided by the time for"
        " 1,000 VMs",
        1.1,
    ),
    **{
        f"slices{number}_{what}_over_list": Key(
            "slices",
            f"60 VMs {meaning} as 60 hosts in {of}: the time of the jobs divided by the time of a"
            " list",
        )
        for what, meaning in (("create", "created"), ("noop", "unchanged"))
        for number, of in ((1, "1 slice"), (2, "2 slices"), (4, "4 slices"))
    },
    "hosts_create_requests_over_list": Key(
        "slices", "60 VMs created as 60 hosts: requests divided by the requests of a list"
    ),
    "hosts_noop_requests_over_list": Key(
        "slices", "60 VMs unchanged as 60 hosts: requests divided by the requests of a list"
    ),
    "inv1000_requests": Key("inv1000", "Inventory of 1,000 VMs: requests", 2),
    "inv1000_vs_peer": Key(
        "inv1000", "Inventory of 1,000 VMs: the peer's time divided by ours", 1, at_least=True
    ),
    "inv5000_tags_vs_peer": Key(
        "inv5000_tags",
        "Inventory of 5,000 VMs with groups by tag: the peer's time divided by ours",
        2,
        at_least=True,
    ),
    "inv1000_addr_seconds": Key(
        "inv1000_addr", "Inventory of 1,000 VMs with addresses: time", 5, unit="s"
    ),
    "inv5000_addr_seconds": Key(
        "inv5000_addr", "Inventory of 5,000 VMs with addresses: time", 20, unit="s"
    ),
    "inv5000_incremental_requests": Key(
        "inv5000_incremental",
        f"Next sync after {CHANGED} of 5,000 VMs changed: requests",
        1 + 1.2 * CHANGED,
    ),
    "inv5000_incremental_seconds": Key(
        "inv5000_incremental", f"Next sync after {CHANGED} of 5,000 VMs changed: time", 4, unit="s"
    ),
    "inv10000_seconds": Key("inv10000", "Inventory of 10,000 VMs with groups: time", 10, unit="s"),
    "inv10000_peak_mib": Key(
        "inv10000", "Inventory of 10,000 VMs with groups: memory", 500, unit="MiB"
    ),
    "cluster120_noop_requests": Key(
        "cluster120", "A cluster file of 120 resources unchanged: requests", 30
    ),
    "cluster120_noop_seconds": Key(
        "cluster120", "A cluster file of 120 resources unchanged: time", 1.5, unit="s"
    ),
    "upload1g_over_curl": Key(
        "upload1g", "1 GiB uploaded: our time divided by the time of curl", 1.1
    ),
    "upload1g_grown_mib": Key(
        "upload1g",
        "1 GiB uploaded: memory of the controller beyond an upload of 1 MiB",
        16,
        unit="MiB",
    ),
    "backup100_over_bound": Key(
        "backup100",
        "100 guests backed up by one task backup: its time divided by the bound of one"
        " backup at a time on each node",
        1.2,
    ),
    "restore20_over_bound": Key(
        "restore20",
        "20 VMs restored by one task vms: its time divided by the bound of the slots",
        1.2,
    ),
    "backup_info20000_seconds": Key(
        "backup_info20000", "20,000 archives on 5 storages listed: time", 2, unit="s"
    ),
    "backup_info20000_requests": Key(
        "backup_info20000",
        "20,000 archives on 5 storages listed: requests (one for each storage, and two)",
        7,
    ),
    "firewall300_writes": Key("firewall300", "300 rules of which 3 changed: writes", 3),
    "sdn50_noop_requests": Key(
        "sdn50", "50 VNets on three nodes unchanged in one task sdn: requests", 8
    ),
    "isolation1000_seconds": Key(
        "isolation1000", "Evaluation of the isolation of 1,000 guests: time", 3, unit="s"
    ),
    "soak_grown_mib": Key(
        "soak", "2,000 tasks in one process: growth of its memory", 2, unit="MiB"
    ),
    "soak_more_sockets": Key("soak", "2,000 tasks in one process: additional open sockets", 0),
    "mutants_killed_percent": Key(
        "mutants",
        "Small faults in a random sample of lines of `plugins/module_utils` that the tests of units"
        " and modules detect (`make mutants`)",
        95,
        at_least=True,
        unit="%",
    ),
}
