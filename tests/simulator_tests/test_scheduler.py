"""Backup jobs that run by the clock, and the calendar events of their schedules."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.simulator.process import Simulator
from tests.simulator.schema.calendar_event import BadEvent, next_event, parse_event
from tests.simulator_tests.client import Client

MINUTE, HOUR, DAY = 60, 3600, 86400
# The daily time of a job, far from the time of the test.
AT = time.strftime("%H:%M", time.localtime(time.time() + 6 * HOUR))
# Friday and Thursday, both at midnight UTC. The epoch is a Thursday.
JUL_31_2020, DEC_31_2020 = 1596153600, 1609372800

EVENTS: list[tuple[str, int, int | None]] = [
    # pve-common: test/calendar_event_test.pl
    ("*", 0, 60),
    ("*", 59, 60),
    ("*/10", 599, 600),
    ("*/10", 600, 1200),
    ("*/12:0", 13 * HOUR, 24 * HOUR),
    ("1/12:0/15", HOUR + 45 * MINUTE, 13 * HOUR),
    ("1/12:0/15", 13 * HOUR + 45 * MINUTE, 25 * HOUR),
    ("1,4,6", 6 * MINUTE, HOUR + MINUTE),
    ("Mon", 4 * DAY, 11 * DAY),
    ("sat..sun", 3 * DAY, 9 * DAY),
    ("22/1:0", 22 * HOUR, 23 * HOUR),
    ("*/2:*", HOUR, 2 * HOUR),
    ("20..22:*/30", 22 * HOUR + 30 * MINUTE, 44 * HOUR),
    ("2,4:0,1,3..5", 2 * HOUR + 5 * MINUTE, 4 * HOUR),
    # proxmox-time: src/test.rs
    ("0", 0, HOUR),
    ("*:*:*", 0, 1),
    ("*:3:5", 0, 3 * MINUTE + 5),
    ("mon 2:50", 0, 4 * DAY + 2 * HOUR + 50 * MINUTE),
    ("wed", 0, 6 * DAY),
    ("thu", 0, 7 * DAY),
    ("4..10/2:0", 5 * HOUR, 6 * HOUR),
    ("4..10/2:0", 11 * HOUR, DAY + 4 * HOUR),
    ("10,5:8,4", 0, 5 * HOUR + 4 * MINUTE),
    ("4..10,6:5/5,23", 0, 4 * HOUR + 5 * MINUTE),
    ("sat", JUL_31_2020, JUL_31_2020 + DAY),
    ("fri", DEC_31_2020, DEC_31_2020 + DAY),
    ("daily", 1, DAY),
    ("1:0", 15 * HOUR, DAY + HOUR),
    ("2020-07-31", 0, JUL_31_2020),
    ("02-28", 0, (31 + 27) * DAY),
    ("02-29", 0, 2 * 365 * DAY + (31 + 28) * DAY),
    ("1965/5-01-01", -1, 0),
    ("2020-7..9-2/2", JUL_31_2020, JUL_31_2020 + 2 * DAY),
    ("2020,2021-12-31", JUL_31_2020, DEC_31_2020),
    ("minutely", 0, MINUTE),
    ("hourly", 0, HOUR),
    ("weekly", 0, 4 * DAY),
    ("monthly", 0, 31 * DAY),
    ("quarterly", 0, (31 + 28 + 31) * DAY),
    ("semi-annually", 0, (31 + 28 + 31 + 30 + 31 + 30) * DAY),
    ("annually", 0, 365 * DAY),
    ("2021-02-29", 0, None),
    ("02-30", 0, None),
]


@pytest.mark.parametrize(("schedule", "last", "expected"), EVENTS)
def test_next_time_of_an_event(schedule: str, last: int, expected: int | None) -> None:
    """The tables of pve-common's and of proxmox-time's own tests, in UTC as they are there."""
    assert next_event(parse_event(f"{schedule} UTC"), last) == expected


@pytest.mark.parametrize("schedule", ["mon,wed..fri", "fri..mon", "monDay", "mon,tue..wednesday"])
def test_days_of_the_week(schedule: str) -> None:
    """proxmox-time: src/test.rs, test_calendar_event_weekday."""
    assert parse_event(schedule).days


@pytest.mark.parametrize(
    "schedule",
    ["61", "*/61", "0..80", " mon 0 0 0", "", " mon 0 0", "5..3", "moon", "24:00", "*/0"],
)
def test_events_that_are_refused(schedule: str) -> None:
    """pve-common: test/calendar_event_test.pl; proxmox-time: src/calendar_event.rs."""
    with pytest.raises(BadEvent):
        parse_event(schedule)


# -- jobs -------------------------------------------------------------------------------------


@pytest.fixture
def guests(pve: Client) -> tuple[int, int]:
    """Two VMs, on two nodes."""
    pve.create(400, node="pve1")
    pve.create(401, node="pve2")
    pve.post(
        "/storage", storage="nas", type="dir", path="/mnt/nas", shared=1, content="backup,images"
    )
    return 400, 401


def add_job(pve: Client, **options: Any) -> None:
    pve.post("/cluster/backup", id="nightly", storage="nas", **{"schedule": AT, **options})


def archives(pve: Client, vmid: int) -> list[str]:
    """Return the times of the archives of a VM, the oldest first."""
    rows = pve.get("/nodes/pve1/storage/nas/content", content="backup", vmid=vmid)
    return [time.strftime("%H:%M", time.localtime(row["ctime"])) for row in rows]


def wait(sim: Simulator, seconds: float) -> None:
    sim.steer("/clock", {"seconds": seconds})


def test_a_job_backs_up_the_guests_of_each_node_when_it_is_due(
    sim: Simulator, pve: Client, guests: tuple[int, int]
) -> None:
    """pve-manager: PVE/Jobs.pm, run_jobs, which every node calls for itself; API2/VZDump.pm."""
    add_job(pve, vmid="400,401")
    (job,) = pve.get("/cluster/backup")
    assert time.strftime("%H:%M", time.localtime(job["next-run"])) == AT
    wait(sim, 2 * DAY)
    assert [archives(pve, vmid) for vmid in guests] == [[AT, AT]] * 2
    for node, vmid in zip(("pve1", "pve2"), guests, strict=True):
        tasks = [row for row in pve.get(f"/nodes/{node}/tasks") if row["type"] == "vzdump"]
        assert [(row["user"], row["id"], row["status"]) for row in tasks] == [
            ("root@pam", str(vmid), "OK")
        ] * 2
    assert [row for row in pve.get("/nodes/pve3/tasks") if row["type"] == "vzdump"] == []


def test_a_job_prunes_by_its_own_retention(
    sim: Simulator, pve: Client, guests: tuple[int, int]
) -> None:
    """pve-manager: VZDump.pm, exec_backup_task; a protected archive is not counted."""
    pve.ok("POST", "/nodes/pve1/vzdump", vmid=400, storage="nas", protected=1)
    add_job(pve, vmid="400", **{"prune-backups": "keep-daily=2"})
    wait(sim, 5 * DAY)
    assert len(archives(pve, 400)) == 1 + 2
    (newest, *_rest) = [row for row in pve.get("/nodes/pve1/tasks") if row["type"] == "vzdump"]
    log = pve.task_log(newest["upid"])
    assert "INFO: prune older backups with retention: keep-daily=2" in log
    assert "INFO: pruned 1 backup(s) not covered by keep-retention policy" in log


@pytest.mark.parametrize(("repeats", "expected"), [(1, 1), (0, 0)])
def test_a_missed_job_runs_later_only_with_repeat_missed(
    sim: Simulator, pve: Client, guests: tuple[int, int], repeats: int, expected: int
) -> None:
    """pve-manager: PVE/Jobs.pm, run_jobs with $first_run; three missed times are one run."""
    add_job(pve, vmid="401", **{"repeat-missed": repeats})
    sim.steer("/nodes/pve2", {"online": False})
    wait(sim, 3 * DAY)
    assert archives(pve, 401) == []
    sim.steer("/nodes/pve2", {"online": True})
    wait(sim, 2 * MINUTE)
    assert len(archives(pve, 401)) == expected


def test_which_jobs_do_not_run(sim: Simulator, pve: Client, guests: tuple[int, int]) -> None:
    """pve-manager: PVE/Jobs.pm, run_jobs: disabled, of another node, and without a quorum.

    A scheduler that has waited for a quorum was not started again: it runs the missed job at once.
    """
    add_job(pve, vmid="400,401", node="pve2", enabled=0)
    wait(sim, DAY)
    pve.put("/cluster/backup/nightly", enabled=1)
    sim.steer("/cluster", {"quorate": False})
    wait(sim, DAY)
    assert [archives(pve, vmid) for vmid in guests] == [[], []]
    sim.steer("/cluster", {"quorate": True})
    wait(sim, DAY)
    assert [len(archives(pve, vmid)) for vmid in guests] == [0, 2]


def test_a_new_schedule_starts_the_waiting_again(
    sim: Simulator, pve: Client, guests: tuple[int, int]
) -> None:
    """pve-manager: PVE/Jobs.pm, detect_changed_runtime_props."""
    add_job(pve, vmid="400", schedule="*:0/10")
    pve.put("/cluster/backup/nightly", schedule="*/12:0")
    wait(sim, DAY)
    assert sorted(archives(pve, 400)) == ["00:00", "12:00"]
    pve.delete("/cluster/backup/nightly")
    wait(sim, DAY)
    assert len(archives(pve, 400)) == 2


def test_a_job_runs_by_the_real_clock(sim: Simulator, pve: Client, guests: tuple[int, int]) -> None:
    """The clock is put to the last second of a minute, and the job runs when it is over."""
    left = MINUTE - time.time() % MINUTE
    if left < 10:  # too late in this minute: begin in the next one
        wait(sim, left)
        left = MINUTE
    add_job(pve, vmid="400", schedule="*")
    wait(sim, left - 1)
    # On a busy machine, that minute may be over when the clock is put: the next one comes.
    pve.until(lambda: archives(pve, 400) != [], timeout=MINUTE + 30)


def test_a_schedule_is_checked_and_analyzed(pve: Client) -> None:
    """pve-common: CalendarEvent.pm, pve_verify_calendar_event; API2/Cluster/Jobs.pm."""
    refused = pve.call("POST", "/cluster/backup", {"schedule": "25:00", "vmid": "100"})
    assert refused.status == 400
    assert refused.errors["schedule"].startswith("invalid format - invalid calendar event '25:00'")
    rows = pve.get(
        "/cluster/jobs/schedule-analyze", schedule="mon 2:30 UTC", starttime=0, iterations=2
    )
    assert [row["timestamp"] for row in rows] == [4 * DAY + 9000, 11 * DAY + 9000]
    assert rows[0]["utc"] == "Mon Jan  5 02:30:00 1970"
