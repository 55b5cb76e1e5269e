# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook export, run by ansible-playbook against the simulated Proxmox VE: what it writes is
provisioned without a write.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.demo.lab import Lab
from tests.plays.commands import run
from tests.plays.provision_helpers import PROVISION, Player, writes

EXPORT = "pve.fleet.export"


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    return Player(tmp_path, lab.environment)


def export(player: Player, *arguments: str, status: int = 0) -> tuple[str, str]:
    """Return the estate that the playbook wrote, and its output."""
    output = player.play(EXPORT, "-e", "export_directory=.", *arguments).expect(status).output
    assert "Traceback" not in output
    return (player.directory / "estate.yml").read_text(encoding="utf-8"), output


def provision(lab: Lab, player: Player, *arguments: str) -> str:
    """Return the output of a run with the exported file, which must cost no write."""
    mark = lab.mark()
    outcome = player.play(PROVISION, "-e", "@estate.yml", *arguments).expect()
    assert writes(lab, mark) == []
    assert "Traceback" not in outcome.output
    return outcome.output


def test_an_exported_estate_is_provisioned_without_a_write(lab: Lab, player: Player) -> None:
    text = "{{ lookup('pipe', 'touch pwned') }}\n{% raw %}\nyes: 0123 # \u2603"
    lab.make_vm("web1", tags="tenant_acme", description=text, net0="virtio,bridge=vmbr0,tag=7")
    lab.make_vm(
        "no",
        description="0123\x1b[31m \u2028\U0001f600",
        net0="virtio,bridge=vmbr0,tag=7",
        ciuser="{{ x }}",
    )
    estate, output = export(player)
    assert "exported 4 VMs" in output
    file = player.directory / "estate.yml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "4 unchanged" in provision(lab, player)
    assert "4 unchanged" in provision(lab, player, "--check", "--diff")
    assert not (player.directory / "pwned").exists()
    assert [name.name for name in player.directory.glob("pwn*")] == []
    again, output = export(player)
    assert again == estate
    assert "changed=0" in output
    # The next command can be copied from the output.
    file = player.directory / "estate.yml"
    assert (
        f"  ansible-playbook pve.fleet.provision -e @{file} --check --diff" in output.splitlines()
    )
    assert f"Wrote {file}. Next:" in output.splitlines()


def test_filters_and_choices(lab: Lab, player: Player) -> None:
    lab.make_vm("web1", tags="tenant_acme;web")
    lab.make_vm("web2", tags="tenant_acme;web")
    lab.make_vm("db1", tags="tenant_globex")
    estate, _output = export(player, "-e", "export_tenant=acme", "-e", "export_tags=web")
    assert "name: web1" in estate
    assert "globex" not in estate
    provision(lab, player)
    estate, _output = export(player, "-e", "export_vms=db1,web2", "-e", "export_power=false")
    assert "name: db1" in estate
    assert "web1" not in estate
    assert "provision_state: present" in estate
    provision(lab, player)
    refused = player.play(EXPORT, "-e", "export_directory=.", "-e", "export_tenant=").expect(2)
    assert "without a value" in refused.output


def test_adoption_adds_one_tag(lab: Lab, player: Player) -> None:
    vmid = lab.make_vm("free", tags="web")
    export(player, "-e", "export_adopt=acme")
    play = ("-e", "@estate.yml")
    output = player.play(PROVISION, *play, "--check", "--diff").expect().output
    assert "Plan: 1 to change, 2 unchanged" in output
    assert '+        "tenant_acme",' in output
    mark = lab.mark()
    assert "Done: 1 changed, 2 unchanged" in player.play(PROVISION, *play).expect().output
    (written,) = [one for one in lab.requests_since(mark) if one.is_write]
    assert (written.vmid, written.params["tags"]) == (vmid, "tenant_acme;web")
    assert written.params.keys() <= {"tags", "digest"}
    assert "3 unchanged" in provision(lab, player)


def test_what_could_not_be_read_is_in_the_file_and_the_exit_status(
    lab: Lab, player: Player
) -> None:
    lab.make_vm("web1", tags="tenant_acme")
    lab.simulator.steer("/nodes/pve2", {"online": False})
    try:
        estate, output = export(player, status=2)
    finally:
        lab.simulator.steer("/nodes/pve2", {"online": True})
    assert "is not complete. node pve2 is offline." in output
    assert "# NOT COMPLETE" in estate
    assert "# unknown: node pve2 is offline" in estate
    provision(lab, player)


@pytest.mark.parametrize(
    ("directory", "cause"), [("file", "is not a directory"), ("", "export_directory has no value")]
)
def test_a_place_that_cannot_be_written_is_refused_first(
    lab: Lab, player: Player, directory: str, cause: str
) -> None:
    (player.directory / "file").touch()
    mark = lab.mark()
    output = player.play(EXPORT, "-e", f"export_directory={directory}").expect(2).output
    assert cause in output
    assert "Nothing was exported" in output
    assert lab.requests_since(mark) == []


def test_a_missing_directory_is_created(lab: Lab, player: Player) -> None:
    play = ("-e", "export_directory=new/estate")
    output = player.play(EXPORT, *play, "--check").expect().output
    assert "changed=1" in output
    assert not (player.directory / "new").exists()
    player.play(EXPORT, *play).expect()
    directory = player.directory / "new" / "estate"
    assert (directory / "estate.yml").is_file()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o750
    assert "changed=0" in player.play(EXPORT, *play).expect().output


def test_an_edited_file_is_replaced_only_on_demand(lab: Lab, player: Player) -> None:
    estate, _output = export(player)
    file = player.directory / "estate.yml"
    lab.make_vm("web1", tags="tenant_acme")
    # Ends of lines are not an edit.
    file.write_bytes(estate.replace("\n", "\r\n").encode())
    exported, _output = export(player)
    assert "name: web1" in exported
    edited = exported.replace("name: web1", "name: web1 # by hand")
    file.write_text(edited, encoding="utf-8")
    mark = lab.mark()
    for arguments in ((), ("--check", "--diff")):
        kept, output = export(player, *arguments, status=2)
        assert kept == edited
        assert "Nothing was written." in output
        assert f"{file} exists, and it was edited after export wrote it" in output
        assert "export_replace=true" in output
    assert lab.requests_since(mark) == []
    kept, output = export(player, "-e", "export_replace=true", "--check", "--diff")
    assert kept == edited
    assert "web1 # by hand" in output
    replaced, output = export(player, "-e", "export_replace=true")
    assert replaced == exported
    (copy,) = player.directory.glob("estate.yml.*")
    assert copy.read_text(encoding="utf-8") == edited
    assert copy.name in output
    again, _output = export(player)
    assert again == exported


def test_a_link_is_followed(lab: Lab, player: Player) -> None:
    target = player.directory / "kept.yml"
    (player.directory / "estate.yml").symlink_to(target)
    output = player.play(EXPORT, "-e", "export_directory=.").expect(2).output
    assert f"is a link to {target}, which does not exist" in output
    (player.directory / "estate.yml").unlink()
    export(player)
    (player.directory / "estate.yml").rename(target)
    (player.directory / "estate.yml").symlink_to(target)
    lab.make_vm("web1", tags="tenant_acme")
    export(player)
    assert (player.directory / "estate.yml").is_symlink()
    assert "name: web1" in target.read_text(encoding="utf-8")
    with target.open("a", encoding="utf-8") as stream:
        stream.write("# by hand\n")
    export(player, status=2)
    assert target.read_text(encoding="utf-8").endswith("# by hand\n")


def test_an_edit_during_the_export_is_kept(lab: Lab, player: Player) -> None:
    estate, _output = export(player)
    lab.make_vm("web1", tags="tenant_acme")
    file = player.directory / "estate.yml"
    edit = "{{ {} if lookup('pipe', 'echo ' ~ '# by hand' | quote ~ ' >> FILE') else {} }}"
    connection = edit.replace("FILE", str(file))
    played = player.play(EXPORT, "-e", "export_directory=.", export_connection=connection)
    output = played.expect(2).output
    assert "it was edited after export wrote it" in output
    assert file.read_text(encoding="utf-8").startswith(estate)


@pytest.mark.slow
def test_adoption_as_getting_started_says(lab: Lab, player: Player, repo: Path) -> None:
    text = (repo / "docs" / "getting-started.md").read_text(encoding="utf-8")
    section = text.partition("## A cluster that runs already")[2]
    lines = section.partition("```shell\n")[2].partition("```")[0]
    assert len(lines.splitlines()) == 5
    free = [lab.make_vm(name, tags="web", net0="virtio,bridge=vmbr0") for name in ("a", "b")]
    before = {machine.vmid: lab.config(machine) for machine in lab.machines()}
    mark = lab.mark()
    done = run(["bash", "-e", "-c", lines], player.directory, player.environment, usual=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Plan: 2 to change, 2 unchanged" in done.stdout
    assert "No drift: in_sync 4" in done.stdout
    written = [one for one in lab.requests_since(mark) if one.is_write]
    assert sorted(one.vmid or 0 for one in written) == sorted(free)
    for machine in lab.machines():
        after = lab.config(machine)
        assert {**after, "tags": "web"} | {"digest": ""} == {
            **before[machine.vmid],
            "tags": "web",
        } | {"digest": ""}
        assert machine.tenant == "acme"
