# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What someone reads who runs the role provision: mistakes, failures, what waits for a reboot,
replaced defaults.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import repeated
from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Player, machine, vm, writes


def shown(output: str) -> str:
    """Return the output without the quotes and escapes of JSON."""
    return output.replace('\\"', '"')


@pytest.mark.parametrize("in_process", repeated(["true", "false"]))
def test_a_typing_error_names_the_vm_and_prints_nothing_else(
    player: Player, lab: Lab, in_process: str
) -> None:
    mark = lab.mark()
    estate = [vm(f"v{number}") for number in range(60)]
    estate[3] = {**vm("oops"), "clas": "web"}
    played = player.play(PROVISION, provision_vms=estate, pve_fleet_in_process=in_process).expect(2)
    assert "vms[3] (oops): unknown option 'clas' (did you mean 'class'?)" in shown(played.output)
    assert len(played.output) < 8000
    for word in ("argument_spec_data", "Supported parameters", "cpuunits", "description"):
        assert word not in played.output
    assert lab.requests_since(mark) == []


def test_a_failed_start_shows_what_is_needed_to_repair_it(player: Player, lab: Lab) -> None:
    lab.simulator.fault(task="qmstart", fail="start failed: QEMU exited with code 1", times=1)
    estate = [vm("f-one", state="stopped"), vm("f-two", tenant="acme")]
    played = player.play(PROVISION, provision_vms=estate).expect(2)
    made = machine(lab, "f-two")
    text = shown(played.output)
    before, _task, last = text.partition("TASK [pve.fleet.provision : Fail if a virtual machine")
    assert "fatal: [localhost]: FAILED!" not in before
    assert "fatal: [localhost]: FAILED!" in last
    report = text.partition("Create and update the virtual machines]")[2].partition("TASK [")[0]
    assert "Done: 1 created, 1 failed" in report
    place = f"! acme/f-two  not finished (VMID {made.vmid} on {made.node}): "
    assert f"{place}Could not start VM 'f-two'" in report
    assert "    category: TaskFailed" in report
    assert "start failed: QEMU exited with code 1" in report
    assert re.search(r"    task: UPID:pve\d:\S+:qmstart:\d+:", report)
    assert "    log: " in report
    assert "    next step: " in report
    assert played.recap["localhost"]["failed"] == 1
    assert played.changed == 1


def test_many_failed_vms_are_reported_in_bounded_length(player: Player, lab: Lab) -> None:
    estate = [vm(f"many{number}", source="no-such-template") for number in range(111)]
    played = player.play(PROVISION, "--check", provision_vms=estate).expect(2)
    assert len(played.output) < 10_000
    longest = max(len(line) for line in played.output.splitlines() if "failed: " not in line)
    assert longest < 1_000
    assert played.output.count("'no-such-template' could not be cloned") == 1
    assert "    the same: many1, many2" in played.output
    assert "Plan: 111 refused" in played.output


@pytest.mark.slow
def test_a_failed_run_shows_the_differences_of_the_other_vms(player: Player, lab: Lab) -> None:
    estate = [vm("d-one", state="present"), vm("d-two", node="pve9")]
    for arguments in (("--check", "--diff"), ("--diff",)):
        played = player.play(PROVISION, *arguments, provision_vms=estate).expect(2)
        assert played.output.count("+++ after: VM 'd-one'") == 1


def test_what_waits_for_a_reboot_is_one_section_and_not_a_warning_a_vm(
    player: Player, lab: Lab
) -> None:
    names = [f"w-{letter}" for letter in "abc"]
    estate = [vm(name, tenant="acme", cores=1) for name in names]
    player.play(PROVISION, provision_vms=estate).expect()
    grown = [{**one, "cores": 2} for one in estate]
    played = player.play(PROVISION, provision_vms=grown).expect()
    assert "Done: 3 changed" in played.output
    assert played.output.count("cores 1 -> 2 (waits for a reboot)") == 3
    waiting = player.play(PROVISION, provision_vms=grown).expect()
    assert "  waiting for a reboot (cores): acme/w-a, acme/w-b, acme/w-c" in waiting.output
    assert played.output.count("[WARNING]") == 1
    switched = player.play(
        PROVISION, "-e", "provision_reboot=if_needed", provision_vms=grown
    ).expect()
    assert "Done: 3 changed; 3 reboots" in switched.output
    assert {machine(lab, name).status for name in names} == {"running"}
    again = player.play(PROVISION, "-e", "provision_reboot=if_needed", provision_vms=grown).expect()
    assert again.changed == 0


def test_a_run_decides_about_reboots_unless_the_vm_itself_does(player: Player, lab: Lab) -> None:
    estate = [vm("r-one", cores=1), vm("r-two", cores=1, reboot="never")]
    defaults = {"reboot": "never"}
    player.play(PROVISION, provision_vms=estate, provision_defaults=defaults).expect()
    grown = [{**one, "cores": 2} for one in estate]
    said: dict[str, Any] = {"provision_vms": grown, "provision_defaults": defaults}
    played = player.play(PROVISION, "-e", "provision_reboot=if_needed", **said).expect()
    assert "~ r-one  cores 1 -> 2 (reboot)" in played.output
    assert "~ r-two  cores 1 -> 2 (waits for a reboot)" in played.output


QUOTA: dict[str, Any] = {
    "source": "debian-13",
    "tenant": "acme",
    "quotas": {"acme": {"vms": 1}},
    "state": "present",
}


@pytest.mark.slow
def test_defaults_of_a_single_run_do_not_replace_those_of_the_estate(
    player: Player, lab: Lab
) -> None:
    estate = {"provision_vms": [{"name": "q-one"}, {"name": "q-two"}], "provision_defaults": QUOTA}
    (player.directory / "estate.yml").write_text(yaml.safe_dump(estate), encoding="utf-8")
    (player.directory / "more.yml").write_text(
        yaml.safe_dump({"provision_defaults": {"memory": "2G"}}), encoding="utf-8"
    )
    mark = lab.mark()
    for more in ('{"provision_defaults": {"memory": "2G"}}', "@more.yml"):
        refused = player.play(PROVISION, "-e", "@estate.yml", "-e", more).expect(2)
        assert "every default and quota of the estate would be lost" in refused.output
    assert lab.requests_since(mark) == []
    overrides = json.dumps(
        {"provision_overrides": {"memory": "2G", "quotas": {"globex": {"vms": 9}}}}
    )
    merged = player.play(PROVISION, "-e", "@estate.yml", "-e", overrides).expect(2)
    assert "! acme/q-two  not changed: " in merged.output
    assert "    category: QuotaExceeded" in merged.output
    assert lab.config(machine(lab, "q-one"))["memory"] == "2048"


@pytest.mark.slow
def test_defaults_on_the_command_line_do_not_replace_those_of_a_play(
    player: Player, lab: Lab
) -> None:
    play = {
        "name": "Estate",
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"provision_vms": [{"name": "q-one"}], "provision_defaults": QUOTA},
        "roles": ["pve.fleet.provision"],
    }
    (player.directory / "estate.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    mark = lab.mark()
    refused = player.play(
        "estate.yml", "-e", '{"provision_defaults": {"source": "debian-13"}}'
    ).expect(2)
    assert "-e with provision_defaults" in refused.output
    assert writes(lab, mark) == []
    whole = json.dumps({"provision_defaults": QUOTA, "provision_vms": [{"name": "q-one"}]})
    assert player.play("estate.yml", "-e", whole).expect().changed == 1


def printed(output: str) -> list[str]:
    """Return the lines of an output that are not empty."""
    return [line for line in output.splitlines() if line.strip()]


def test_a_run_without_a_change_prints_at_most_twelve_lines(player: Player, lab: Lab) -> None:
    """The banners of Ansible's default callback are counted."""
    estate = [vm(f"q-{number}", tenant="acme") for number in range(12)]
    made = player.play(PROVISION, provision_vms=estate).expect()
    assert made.output.count("+ acme/q-") == 12
    again = player.play(PROVISION, provision_vms=estate).expect()
    assert "Done: 12 unchanged" in printed(again.output)
    assert len(printed(again.output)) <= 12
    assert '"' not in again.output


def test_check_mode_and_run_print_the_same_plan(player: Player, lab: Lab) -> None:
    estate = [vm("p-one", tenant="acme", cores=1, memory="2G"), vm("p-two", tenant="acme")]
    player.play(PROVISION, provision_vms=estate).expect()
    changed = [{**estate[0], "memory": "3G", "tags": ["web"]}, vm("p-three", cores=2, memory="1G")]
    options = ("-e", "provision_reboot=if_needed")
    preview = player.play(PROVISION, "--check", *options, provision_vms=changed).expect()
    run = player.play(PROVISION, *options, provision_vms=changed).expect()
    for played in (preview, run):
        lines = printed(played.output)
        assert "~ acme/p-one  memory 2G -> 3G (reboot), tag web added" in lines
        assert any(re.match(r"\+ p-three     2 cores, 1G, \S+ on pve\d$", line) for line in lines)
    assert "Plan: 1 to create, 1 to change; 1 reboot" in printed(preview.output)
    assert "Done: 1 created, 1 changed; 1 reboot" in printed(run.output)
    removal = player.play("pve.fleet.deprovision", "-e", "provision_all=true", provision_vms=estate)
    lines = printed(removal.expect().output)
    assert any(re.match(r"- acme/p-one  running on pve\d, 1 disk of ", line) for line in lines)
    assert "Done: 2 removed" in lines


def test_a_refusal_is_printed_once(player: Player, lab: Lab) -> None:
    played = player.play(PROVISION, provision_vms=[vm("r-1", node="pve9"), vm("r-2")]).expect(2)
    assert played.output.count("Node 'pve9' could not be used") == 1
    assert "! r-1  not changed: Node 'pve9' could not be used" in played.output


def test_the_lines_have_no_control_character_of_a_server(player: Player, lab: Lab) -> None:
    lab.simulator.fault(task="qmstart", fail="start failed: \x1b[2Jgone", times=1)
    played = player.play(PROVISION, provision_vms=[vm("c-1")]).expect(2)
    assert "gone" in played.output
    assert "\x1b[2J" not in played.output


def test_nothing_is_printed_for_a_task_with_no_log_or_for_a_program(
    player: Player, lab: Lab
) -> None:
    task = {"name": "Hide", "pve.fleet.vms": {"vms": [vm("h-1", state="present")]}, "no_log": True}
    play = [{"name": "A", "hosts": "localhost", "gather_facts": False, "tasks": [task]}]
    (player.directory / "hidden.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    assert "h-1" not in player.play("hidden.yml").expect().output


def test_the_example_of_settings_prints_the_banner_after_an_empty_line(
    player: Player, lab: Lab
) -> None:
    """With C(display_skipped_hosts=false), Ansible prints the banner of a task with its result."""
    example = Path(__file__).parents[2] / "docs" / "examples" / "ansible.cfg"
    (player.directory / "ansible.cfg").write_text(example.read_text("utf-8"), encoding="utf-8")
    settings = {"ANSIBLE_CONFIG": str(player.directory / "ansible.cfg")}
    quiet = Player(player.directory, {**lab.environment, **settings}, usual=False)
    played = quiet.play(PROVISION, provision_vms=[vm("e-1")]).expect()
    assert re.search(r"\n\n\+ e-1  .*\nDone: 1 created\n\nTASK ", played.output)
    assert "Fail if" not in played.output
    (player.directory / "broken.yml").write_text("all: [", encoding="utf-8")
    refused = quiet.play(PROVISION, "-i", "broken.yml", provision_vms=[vm("e-1")])
    assert refused.status != 0
    assert "Completely failed to parse inventory source" in refused.output
