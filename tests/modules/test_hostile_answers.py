# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers that are broken, hostile or of a newer version: each task that reads them ends with a
right result or with an error of a category, never with a traceback.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.answers.generated.answers import (
    READS,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.answers.typed import form_of
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from tests.cases import cases, repeated
from tests.faults.table import open_table
from tests.hostile.mutants import (
    NASTY,
    PARTS,
    WRONG,
    Spot,
    as_number,
    as_text,
    everywhere,
    replaced,
    route_of,
    spots,
    with_more,
)
from tests.hostile.recordings import Recording, replaying
from tests.hostile.subjects import SUBJECTS
from tests.metrics_text import TIMED, TIMED_LINE
from tests.modules.estate_lab import Lab
from tests.modules.test_fault_table import calls

# The same behaviour with many answers.
pytestmark = pytest.mark.slow

Place = tuple[str, str]
# Each part takes seconds on an idle machine: on a busy one it must end within the limit of a test.
PARTS_OF_VALUES = 40

# Readers that need a race, a fault or a slow task to come by, with the calls they read: other tasks
# read the answers to these.
READ_BY_OTHERS: Mapping[Place, tuple[str, ...]] = {
    ("_foundation/resource/engine.py", "read_privileges"): ("cluster/sdn/vnets",),
    # The rights on a pool, which module acl reads as well.
    ("_guests/guest/flow/reads.py", "owner_of_pool"): ("access/acl",),
    # Readers of other sites and servers: test_relocate.py, test_relocate_archive.py, test_remotes.py.
    ("_protection/relocate/archive.py", "read_last_state"): (),
    ("_foundation/entry/remotes.py", "_hosts"): (),
    ("_protection/relocate/places.py", "_fingerprint"): (),
    ("_protection/relocate/places.py", "_read_cpu_models"): (),
    ("_protection/relocate/places.py", "_require_same_cpu"): (),
    ("_protection/relocate/places.py", "read"): (),
    ("_protection/relocate/places.py", "read_source_facts"): (),
    ("_protection/relocate/read.py", "_replication_jobs"): (),
    ("_protection/relocate/read.py", "read_identity"): (),
    ("_protection/relocate/read.py", "read_objects"): (),
    ("_foundation/cluster/bridges.py", "_entries"): (),  # test_hardware_of_nodes.py
    ("_foundation/cluster/bridges.py", "_cards_of"): ("nodes/*/qemu/*/config",),  # test_cards.py
    ("_infrastructure/storage/volume/run.py", "_has_chains"): ("storage/*",),
    ("_tenants/access/own_loss.py", "_loss"): ("access/roles",),
    ("_tenants/access/own_loss.py", "_own_row"): ("access/users",),
    ("_tenants/access/login/token.py", "_is_missing"): ("access/users",),
    ("_tenants/access/run_token.py", "read_rights"): ("access/acl",),
    ("_foundation/api/task_poller.py", "_read"): ("nodes/*/tasks",),
    ("_foundation/api/tasks.py", "find_task"): ("nodes/*/tasks",),
    ("_foundation/api/tasks.py", "find_worker"): ("nodes/*/tasks",),
    ("_protection/backup/create/run.py", "_read_maximum"): (),  # without Datastore.Allocate only
    ("_foundation/cluster/storages/allocation.py", "with_allocations"): ("storage",),
    ("_foundation/cluster/find/restoring.py", "_find_restore"): (
        "nodes/*/tasks",
        "access/permissions",
    ),
    ("_foundation/cluster/state.py", "_placed_again"): ("cluster/resources",),
    ("_foundation/cluster/state.py", "read_config"): ("nodes/*/qemu/*/config",),
    ("_operation/cluster_file/read.py", "_tags_with_roles"): ("pools",),
    ("_tenants/firewall/find_scope.py", "require_same_guest"): ("nodes/*/qemu/*/config",),
    ("_tenants/firewall/owners.py", "read_owner"): ("cluster/sdn/vnets",),
    ("_tenants/firewall/read.py", "read_aliases"): ("cluster/firewall/aliases",),
    ("_guests/guest/flow/reads.py", "mtus_on"): ("nodes/*/network",),
    ("_foundation/cluster/find/names.py", "_find_unknown_tenant"): ("pools",),
    ("_foundation/cluster/find/names.py", "read_listed"): ("cluster/acme/plugins", "access/users"),
    ("_foundation/cluster/find/visible.py", "is_in_use"): (),  # whether it is refused is all
    ("_foundation/cluster/find/visible.py", "hidden_storages"): ("access/permissions",),
    ("_tenants/estate/read.py", "_hidden"): ("pools",),
    ("_guests/fleet/execute.py", "_is_running"): ("nodes/*/qemu/*/status/current",),
    ("_infrastructure/datacenter/replication.py", "precheck"): ("cluster/resources",),
    ("_infrastructure/datacenter/ha/keep.py", "read_state"): (
        "cluster/ha/rules",
        "cluster/ha/resources",
    ),
    ("_infrastructure/node/service.py", "run"): ("cluster/status",),
    # The record of a move, which module relocate reads as well: test_evacuation.py.
    ("_operation/maintenance/evacuate.py", "_held_by_moves"): ("nodes/*/qemu/*/config",),
    (
        "_infrastructure/datacenter/ha/checks.py",
        "precheck_resource",
    ): (),  # groups of Proxmox VE 8 only
    ("_protection/snapshot/read.py", "chained_storages"): ("storage",),
    ("_protection/snapshot/resource.py", "_is_done"): ("nodes/*/qemu/*/snapshot",),
    ("_protection/snapshot/resource.py", "is_rolled_back"): ("nodes/*/qemu/*/config",),
    ("_protection/snapshot/resource.py", "wait_for_unlocked"): ("nodes/*/qemu/*/config",),
    ("_foundation/cluster/storages/volume_users.py", "read_volume_users"): (
        "cluster/resources",
        "cluster/replication",
    ),
    ("_foundation/cluster/storages/volume_users.py", "_held"): ("nodes/*/qemu/*/snapshot",),
    ("_foundation/cluster/find/visible.py", "sees_all_guests"): ("access/permissions",),
    ("_infrastructure/storage/volume/run.py", "_files_of"): ("cluster/status", "storage"),
    ("_tenants/tenant/checks.py", "bridges_of_templates"): ("nodes/*/qemu/*/config",),
    ("_tenants/tenant/leaving/unreferenced.py", "without_snapshots"): (
        "nodes/*/qemu/*/snapshot",
        "nodes/*/qemu/*/config",
    ),
    ("_guests/guest/create/orphan.py", "is_orphan"): ("nodes/*/tasks",),
    ("_guests/guest/live/creation.py", "_is_other_finished"): ("nodes/*/qemu/*/config",),
    ("_guests/guest/live/creation.py", "read_other_kind"): ("nodes/*/qemu/*/config",),
    ("_infrastructure/sdn/read.py", "_users"): ("nodes/*/qemu/*/config",),
    ("_infrastructure/sdn/read.py", "read_configured"): ("cluster/sdn/zones",),
    ("_infrastructure/sdn/read.py", "read_outdated"): ("cluster/resources",),
    ("_guests/guest/flow/create.py", "_is_created"): ("nodes/*/qemu/*/config",),
    ("_guests/guest/live/ha.py", "_arrived"): ("nodes/*/qemu/*/config",),
    ("_guests/guest/live/ha.py", "_current"): ("nodes/*/qemu/*/status/current",),
    ("_guests/guest/live/linked_clones.py", "_clones_on"): ("nodes/*/storage/*/content",),
    ("_guests/guest/vm/run.py", "_volumes_of"): ("nodes/*/qemu/*/config",),
    ("connection/pct.py", "_address"): ("cluster/status",),
    ("_tenants/access/own_loss.py", "_other_pools"): ("cluster/resources",),
    ("_tenants/tenant/network/work.py", "_used_by"): ("cluster/firewall/groups/*",),
    ("_protection/restore/drill/create.py", "_require_running"): ("nodes/*/qemu/*/status/current",),
    ("_operation/maintenance/execute.py", "_has_noout"): (),  # of a cluster with Ceph only
    # Threads of their own make these reads.
    ("_operation/maintenance/read.py", "read_facts"): ("cluster/options",),
    ("_operation/maintenance/read.py", "read_ha"): (
        "cluster/ha/status/manager_status",
        "cluster/ha/status/current",
        "cluster/ha/resources",
        "cluster/ha/rules",
    ),
    ("_operation/maintenance/read.py", "read_node"): (
        "nodes/*/services",
        "nodes/*/version",
        "nodes/*/status",
    ),
    ("_protection/backup/create/guest.py", "_foreign_reason"): (),  # the text of a configuration
    ("_protection/backup/create/run.py", "_offsets"): ("nodes/*/time",),
    ("_foundation/entry/connection/agent.py", "_run"): (),  # tests/plays/test_connections.py
    ("_foundation/entry/connection/place.py", "_checked"): ("nodes/*/qemu/*/config",),
    ("_foundation/entry/connection/place.py", "find_place"): ("cluster/resources",),
    ("_guests/guest/container/live.py", "read_addresses"): (),  # the guest's own answer
    ("_guests/guest/container/live.py", "_why_not"): ("nodes/*/qemu/*/status/current",),
    ("_tenants/firewall/find_scope.py", "find_scope"): ("nodes/*/qemu/*/config",),
    ("_tenants/firewall/reach/read.py", "read_cluster"): (),  # tests/modules/test_firewall_check.py
    ("_tenants/firewall/read.py", "read_known"): ("nodes/*/network",),
    ("_tenants/firewall/read.py", "read_one"): (),  # by no subject yet
    ("_tenants/firewall/resource.py", "confirm"): ("cluster/firewall/options",),
    ("_guests/guest/flow/reads.py", "pools"): ("pools",),
    ("_guests/guest/live/steps.py", "await_config"): ("nodes/*/qemu/*/config",),
    ("_guests/guest/create/placement_race.py", "_owners_of"): ("nodes/*/qemu/*/config",),
    # after a creation by another login at the same time only
    ("_guests/guest/create/placement_race.py", "await_visible"): ("cluster/resources",),
    ("_infrastructure/storage/volume/run.py", "_with_template"): (),  # by no subject yet
    ("_foundation/cluster/snippets/visible.py", "list_snippets"): (
        "nodes/*/storage/*/content",
        "access/permissions",
    ),
    ("plugin_utils/_progress.py", "_new_lines"): ("nodes/*/tasks/*/log",),
}


@dataclass(frozen=True)
class Change:
    """A value in the place of another one, in the answer to one request of a task."""

    number: int  # of the subject
    method: str
    path: tuple[str, ...]
    spot: Spot
    value: Any

    def __repr__(self) -> str:
        where = "/".join(map(str, self.spot))
        return f"{SUBJECTS[self.number].key}: {route_of(self.path)}: {where} = {self.value!r:.60}"

    @property
    def kind(self) -> tuple[Any, ...]:
        """What two changes share that meet the same reader in the same way."""
        spot = tuple("*" if isinstance(key, int) else key for key in self.spot)
        return SUBJECTS[self.number].kind, self.method, route_of(self.path), spot


@dataclass
class Recorded:
    """What all subjects were answered, and the places in the source that read it."""

    lab: Lab
    place: Path
    recordings: list[Recording]
    readers: set[Place]
    spots: list[tuple[int, str, tuple[str, ...], Spot]]

    def run(self, change: Change) -> dict[str, Any]:
        """Return the result of the task with a changed answer."""

        def changed(method: str, path: tuple[str, ...], answer: Any) -> Any:
            if (method, path) != (change.method, change.path):
                return answer
            return replaced(answer, change.spot, change.value)

        return self.replay(change.number, changed)

    def replay(self, number: int, change: Any) -> dict[str, Any]:
        """Return the result of a subject with its answers changed."""
        with replaying(self.recordings[number], change):
            return SUBJECTS[number].run(self.lab, self.place)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    place = tmp_path_factory.mktemp("hostile")
    readers: set[Place] = set()
    get = Client.get

    def noted(*args: Any, **keywords: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_code.co_name.startswith("<") and frame.f_back is not None:
            frame = frame.f_back  # out of a comprehension
        name = frame.f_code.co_filename.replace(os.sep, "/")
        readers.add(
            (name.partition("/plugins/")[2].removeprefix("module_utils/"), frame.f_code.co_name)
        )
        return get(*args, **keywords)

    with open_table() as lab, mock.patch.object(Client, "get", noted):
        recordings = [subject.record(lab, place) for subject in SUBJECTS]
        yield Recorded(lab, place, recordings, readers, list(all_spots(recordings)))


def all_spots(recordings: list[Recording]) -> Iterator[tuple[int, str, tuple[str, ...], Spot]]:
    """Return each place in each answer: subject, method, path, keys."""
    for number, recording in enumerate(recordings):
        for (method, path, _values), answers in recording.answers.items():
            known = next((one for one in answers if not isinstance(one, Exception)), None)
            for spot in spots(known):
                yield number, method, path, spot


def judge(result: Mapping[str, Any], context: object) -> None:
    """Fail the test unless the result is right in form, or an error of a category."""
    text = json.dumps(result)
    text.encode("utf-8")
    assert "Traceback" not in text, context
    assert "exception" not in result, context
    if not result.get("failed"):
        return
    assert result["msg"], context
    category = result["error"]["category"] if "error" in result else result["msg"]
    assert "InternalError" not in category, (context, result["msg"])


# -- what must be an error or a right result -----------------------------------------------------


# As test_anything_in_any_place, for each answer.
@pytest.mark.long
def test_each_answer_as_a_whole(recorded: Recorded) -> None:
    """Every reader of every task: the whole answer is something else."""
    values = cases(full=WRONG, short=(None, {}))
    seen = set()
    for number, method, path, spot in recorded.spots:
        kind = Change(number, method, path, spot, None).kind
        if spot or kind in seen:
            continue
        seen.add(kind)
        for value in values:
            one = Change(number, method, path, spot, value)
            judge(recorded.run(one), one)
    assert len(seen) > 100


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS_OF_VALUES))
def test_each_value(recorded: Recorded, part: int) -> None:
    """Every value of every answer that a task reads, replaced by each wrong one."""
    places = {Change(*place, None).kind: place for place in reversed(recorded.spots)}
    runs = 0
    for place in list(places.values())[part::PARTS_OF_VALUES]:
        number, method, path, spot = place
        for value in wrong_at(recorded.recordings[number], method, path, spot):
            runs += 1
            one = Change(number, method, path, spot, value)
            judge(recorded.run(one), one)
    assert runs > 100


def wrong_at(
    recording: Recording, method: str, path: tuple[str, ...], spot: Spot
) -> tuple[Any, ...]:
    """Return what may stand in a place of an answer; a text may also be wrong in a part of it."""
    is_text = False
    for (asked, where, _values), answers in recording.answers.items():
        if (asked, where) == (method, path):
            is_text |= any(isinstance(value_at(answer, spot), str) for answer in answers)
    return (*WRONG, *PARTS) if is_text else WRONG


def value_at(answer: Any, spot: Spot) -> Any:
    """Return what is at a place of an answer, None where it has no such place."""
    try:
        for key in spot:
            answer = answer[key]
    except (LookupError, TypeError):
        return None
    return answer


def nasty(number: int) -> Any:
    """Return one of the values; hypothesis keeps texts that name what it samples from, megabytes
    each.
    """
    return NASTY[number]


HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=40)
    | st.integers(0, len(NASTY) - 1).map(nasty),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(
    max_examples=int(os.environ.get("PVE_FLEET_CASES", 200)),
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_anything_in_any_place(recorded: Recorded, data: st.DataObject) -> None:
    number, method, path, spot = data.draw(st.sampled_from(recorded.spots))
    value = data.draw(HOSTILE | st.sampled_from(PARTS) | st.sampled_from(WRONG))
    change = Change(number, method, path, spot, value)
    judge(recorded.run(change), change)


@pytest.mark.parametrize("kind", repeated(["openvz", "qemu,future-key=1"], more=0))
def test_a_guest_of_an_unknown_kind(recorded: Recorded, kind: str) -> None:
    """Each row of the listing that is read first, as a guest that this collection cannot name."""
    rows = [place for place in recorded.spots if is_kind_in_listing(*place[2:])]
    assert len(rows) > 100
    for place in rows:
        change = Change(*place, kind)
        judge(recorded.run(change), change)


def is_kind_in_listing(path: tuple[str, ...], spot: Spot) -> bool:
    """Return whether a place is the kind of an object in the listing of the cluster."""
    return path == ("cluster", "resources") and spot[1:] == ("type",)


# -- what must be a right result -----------------------------------------------------------------


def results(recorded: Recorded, number: int, change: Any) -> tuple[Any, Any]:
    """Return what a task comes to with the recorded answers, and with changed ones."""
    plain = recorded.replay(number, lambda _method, _path, answer: answer)
    assert bool(plain.get("failed")) is SUBJECTS[number].fails, plain["msg"]
    return comparable(plain), comparable(recorded.replay(number, change))


def comparable(value: Any) -> Any:
    """Return a result without times, and without what is shown as PVE sent it: the same number is
    2 or "2".
    """
    if isinstance(value, dict):
        drops = {
            "age",
            "archive_age",
            "began",  # the time of a drill's run, which each run takes from its own clock
            "boot_seconds",
            "checked",
            "last",  # the time of a sample of usage, likewise
            "master_age",
            "recovery_point",
            "restore_seconds",
            "tries",
        }
        if "labels" in value and TIMED.search(value["name"]):
            drops.add("value")
        if isinstance(value.get("samples"), dict):  # the times of samples of usage, by site
            drops.add("samples")
        return {
            key: comparable(one)
            for key, one in value.items()
            if key not in drops and not str(key).startswith("future")
        }
    if isinstance(value, list):
        return [comparable(one) for one in value if one != "future-option"]
    return re.sub(r"\b\d+ s old", "old", TIMED_LINE.sub(r"\1", str(value)))


@pytest.mark.parametrize("form", repeated([as_text, as_number], more=0), ids=["texts", "numbers"])
def test_numbers_may_be_texts(recorded: Recorded, form: Any) -> None:
    for number, subject in enumerate(SUBJECTS):
        right, found = results(
            recorded, number, lambda _method, _path, answer: everywhere(answer, form)
        )
        assert found == right, subject.key


def test_a_newer_version_may_tell_more(recorded: Recorded) -> None:
    """Keys, sub-keys and options that no schema has."""

    def newer(method: str, path: tuple[str, ...], answer: Any) -> Any:
        if path[-1] in ("permissions", "options") or path[:2] == ("access", "roles"):
            return answer  # objects whose keys are privileges or options
        if path[-2:] in (("ceph", "pool"), ("ceph", "status")):
            return answer  # objects whose keys are names of applications and of checks
        more = with_option(method, path, answer)
        return with_more(answer) if more is answer else more

    for number, subject in enumerate(SUBJECTS):
        if subject.kind in ("inventory", "vm_info", "estate_info"):
            continue  # they show such options: test_new_options_are_shown, test_estate_info
        right, found = results(recorded, number, newer)
        assert found == right, subject.key


def with_option(method: str, path: tuple[str, ...], answer: Any, **more: str) -> Any:
    """Return the configuration of a VM with another option; any other answer as it is."""
    options = more or {"future-option": "a=1,b=2"}
    if method == "GET" and path[-1] == "pending":
        kept = [row for row in answer if row["key"] not in options]
        return [*kept, *({"key": key, "value": value} for key, value in options.items())]
    if method == "GET" and path[-1] == "config":
        return {**answer, **options}
    return answer


def test_new_options_are_shown(recorded: Recorded) -> None:
    for number, subject in enumerate(SUBJECTS):
        if subject.key in ("facts of a VM", "hosts"):
            result = recorded.replay(number, with_option)
            assert not result.get("failed"), result
            assert "future-option" in json.dumps(result)


def test_a_long_description_is_kept(recorded: Recorded) -> None:
    """A megabyte of notes does not make a task fail."""
    long = "{{ 1 }} ü\n" * 100_000

    def longer(method: str, path: tuple[str, ...], answer: Any) -> Any:
        return with_option(method, path, answer, description=long)

    for number, subject in enumerate(SUBJECTS):
        if subject.kind in ("vm_info", "inventory", "snapshot_info"):
            result = recorded.replay(number, longer)
            assert not result.get("failed"), (subject.key, result["msg"])


# -- the list of readers -------------------------------------------------------------------------


def reading_places(repo: Path) -> set[Place]:
    """Return where the source asks with a client: file and function."""
    base = repo / "plugins"
    found: set[Place] = set()
    for path in sorted(base.rglob("*.py")):
        file = path.relative_to(base).as_posix().removeprefix("module_utils/")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(map(is_read, calls(function))):
                found.add((file, function.name))
    return found


def is_read(call: ast.Call) -> bool:
    """Return whether a call is `get` of a client."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "get":
        return False
    owner: ast.AST = call.func.value
    if isinstance(owner, ast.Call):
        owner = owner.func
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name in ("client", "_client", "reader", "_reader", "direct", "api")


def test_every_reader_meets_them(recorded: Recorded, repo: Path) -> None:
    """A place in the source that reads is passed by a task, or reads what another place reads."""
    places = reading_places(repo)
    missing = sorted(places - recorded.readers - set(READ_BY_OTHERS))
    assert not missing, "\n".join(map(str, missing))
    gone = set(READ_BY_OTHERS) - places
    assert gone == set()
    read = {
        path
        for recording in recorded.recordings
        for method, segments in recording.paths()
        for path in READS
        if method == "GET" and form_of("GET", segments) is READS[path]
    }
    for place, paths in READ_BY_OTHERS.items():
        assert set(paths) <= read, place


def test_every_answer_has_a_form(recorded: Recorded) -> None:
    unknown = {
        route_of(path)
        for recording in recorded.recordings
        for method, path in recording.paths()
        if method == "GET" and form_of(method, path) is None
    }
    assert unknown == set()


def test_every_module_is_a_subject(repo: Path) -> None:
    modules = {file.stem for file in (repo / "plugins" / "modules").glob("*.py")}
    of_two_sites = {"relocate"}  # a recording has one site: test_relocate_faults.py
    assert modules - {"__init__"} - of_two_sites == {subject.kind for subject in SUBJECTS} & modules
