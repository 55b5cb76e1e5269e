# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role tenant and its playbooks: made, used with its own login, rotated and removed."""

from __future__ import annotations

import json
import re
import signal
import stat
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import group_name
from tests.cases import repeated
from tests.demo.lab import Lab
from tests.modules.module_runner import run_module
from tests.plays.commands import run, start
from tests.plays.interrupting import End, await_that, end
from tests.plays.provision_helpers import PROVISION, Player, writes

REPO = Path(__file__).resolve().parents[2]
TENANT, ROTATE, DRIFT = "pve.fleet.tenant", "pve.fleet.rotate", "pve.fleet.drift"
ESTATE: dict[str, Any] = {
    "tenants": {
        "initech": {
            "pool": "initech",
            "quota": {"vms": 3},
            "tags": ["prod"],
            "networks": {"lan": "vmbr1"},
            "access": {
                "templates": ["debian-13"],
                "storages": ["ceph", "local"],
                "bridges": ["vmbr0", "vmbr1"],
                "nodes": ["pve1", "pve2", "pve3"],
            },
        }
    },
    "provision_defaults": {"source": "debian-13"},
    "provision_vms": [
        {"name": "app1", "tenant": "initech", "nics": [{"network": "lan", "ip": "dhcp"}]},
        {"name": "app2", "tenant": "initech"},
    ],
    "provision_containers": [
        {
            "name": "box1",
            "tenant": "initech",
            "source": "debian-13-standard",
            "rootfs": {"storage": "ceph"},
        }
    ],
    "tenant_name": "initech",
}


def secrets_in(text: str) -> list[str]:
    return re.findall(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", text)


def token_secret(lab: Lab) -> str:
    """Return the secret of the demo's own token, which the output may show nowhere either."""
    return str(lab.connection["token_secret"])


def tenant_player(tmp_path: Path, lab: Lab, file: Path) -> Player:
    """Return a player with nothing but the login of the tenant."""
    directory = tmp_path / "tenant"
    directory.mkdir(exist_ok=True)
    return Player(directory, {"PROXMOX_SITES_FILE": str(file)})


@pytest.mark.slow
def test_tenant_is_made_used_rotated_and_removed(lab: Lab, player: Player, tmp_path: Path) -> None:
    before = lab.state()
    mark = lab.mark()
    foreseen = player.play(TENANT, "--check", "--diff", **ESTATE).expect()
    assert writes(lab, mark) == []
    assert "+ pool 'initech'" in foreseen.output
    made = player.play(TENANT, "--diff", "-vvv", **ESTATE).expect()
    assert made.changed == 1
    file = tmp_path / "initech.sites.yml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = json.loads(file.read_text(encoding="utf-8").partition("\n")[2])["sites"][0]
    assert first["token_secret"] not in made.output
    assert token_secret(lab) not in made.output
    again = player.play(TENANT, **ESTATE).expect()
    assert again.changed == 0
    assert len(again.lines) <= 12

    tenant = tenant_player(tmp_path, lab, file)
    assert tenant.play(PROVISION, **ESTATE).expect().changed == 1
    assert tenant.play(PROVISION, **ESTATE).expect().changed == 0
    (tmp_path / "tenant" / "own.proxmox.yml").write_text(
        "plugin: pve.fleet.proxmox\ntemplates: false\n"
    )
    graph = run(
        ["ansible-inventory", "-i", "own.proxmox.yml", "--graph"],
        tmp_path / "tenant",
        tenant.environment,
    )
    assert "--app1" in graph.stdout
    lookup = {
        "name": "x",
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {
                "name": "Show",
                "ansible.builtin.debug": {
                    "msg": "{{ lookup('pve.fleet.vm', 'app1', tenant='initech').vmid }}"
                },
            }
        ],
    }
    (tmp_path / "tenant" / "lookup.yml").write_text(yaml.safe_dump([lookup]))
    tenant.play("lookup.yml").expect()

    (tmp_path / "handover.yml").write_text(
        "- name: Note it\n  ansible.builtin.copy: {content: x, dest: '{{ noted }}', mode: '0600'}\n"
    )
    previewed = player.play(ROTATE, "--check", **ESTATE).expect()
    assert any(line.startswith("Then the new login is handed") for line in previewed.lines)
    rotated = player.play(
        ROTATE,
        "--diff",
        "-vvv",
        **ESTATE,
        tenant_handover=str(tmp_path / "handover.yml"),
        noted=str(tmp_path / "noted"),
    ).expect()
    second = json.loads(file.read_text(encoding="utf-8").partition("\n")[2])["sites"][0]
    assert second["token_id"] == "tenant_initech@pve!fleet-2"
    for secret in (first["token_secret"], second["token_secret"]):
        assert secret not in rotated.output
    assert (tmp_path / "noted").exists()
    assert tenant.play(PROVISION, **ESTATE).expect().changed == 0

    gone = {**ESTATE, "tenant_state": "absent"}
    mark = lab.mark()
    listed = player.play(TENANT, "--check", **gone).expect()
    assert writes(lab, mark) == []
    for line in (
        "- VM 'app1' (",
        "- VM 'app2' (",
        "- container 'box1' (",
        "- user 'tenant_initech@pve'",
        "- pool 'initech'",
    ):
        assert line in listed.output
    refused = player.play(TENANT, **gone).expect(2)
    assert "confirm=initech" in refused.output
    assert writes(lab, mark) == []
    player.play(TENANT, **gone, tenant_confirm="initech").expect()
    assert lab.state() == before
    assert lab.machines() == []
    assert not file.exists()
    assert player.play(TENANT, **gone, tenant_confirm="initech").expect().changed == 0


@pytest.mark.slow
def test_networks_are_used_with_the_login_of_the_tenant(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Role tenant creates the networks, role provision uses them with the tenant's own login, and
    the playbook for drift compares them, for the tenant as far as its login may read them.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    zone = {"name": "teams", "type": "vlan", "bridge": "vmbr0"}
    for module, options in (
        ("sdn", {"zones": [zone]}),
        ("firewall", {"scope": "cluster", "options": {"enable": True}}),
    ):
        assert not run_module(module, {**lab.connection, **options}).get("failed")
    front = {"zone": "teams", "tag_range": [100, 199], "subnet": "10.1.0.0/24"}
    initech = {**ESTATE["tenants"]["initech"], "networks": {"front": front}}
    nics = [{"network": "front", "ip": "10.1.0.20/24"}]
    machine = {"name": "app1", "tenant": "initech", "nics": nics}
    estate = {**ESTATE, "tenants": {"initech": initech}, "provision_vms": [machine]}
    player = Player(tmp_path, {**lab.environment, "XDG_STATE_HOME": str(tmp_path)})
    player.play(TENANT, **estate).expect()
    tenant = tenant_player(tmp_path, lab, tmp_path / "initech.sites.yml")
    tenant.play(PROVISION, **estate).expect()
    rows = lab.call("GET", "/cluster/resources", type="vm")
    (app1,) = [row for row in rows if row.get("name") == "app1"]
    (rule,) = lab.call("GET", f"/nodes/{app1['node']}/{app1['id']}/firewall/rules")
    assert (rule["type"], rule["action"]) == ("group", group_name("tenant_initech"))
    assert tenant.play(PROVISION, **estate).expect().changed == 0
    assert player.play(TENANT, **estate).expect().changed == 0
    assert "No drift" in player.play(DRIFT, **estate).expect().output
    assert "were not compared" in tenant.play(DRIFT, **estate).expect().output
    group = f"/cluster/firewall/groups/{group_name('tenant_initech')}"
    lab.call("DELETE", f"{group}/1")
    assert "~ tenants initech " in player.play(DRIFT, **estate).expect(2).output


def test_first_steps_of_the_getting_started_page(lab: Lab, tmp_path: Path) -> None:
    """The files of the page, from an administrator's password to the first VM of the tenant."""
    text = (REPO / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (tenant_file,) = re.findall(r"^```text\n(tenants:\n.*?)^```", text, re.M | re.S)
    (estate_file,) = re.findall(r"^```yaml\n(provision_vms:\n.*?)^```", text, re.M | re.S)
    (tmp_path / "tenant.yml").write_text(tenant_file, encoding="utf-8")
    (tmp_path / "estate.yml").write_text(estate_file, encoding="utf-8")
    where = {name: lab.environment[name] for name in ("PROXMOX_HOST", "PROXMOX_CA_PATH")}
    login = {"PROXMOX_USER": "root@pam", "PROXMOX_PASSWORD": "fleetpw123"}
    administrator = Player(tmp_path, {**where, **login})
    made = administrator.play(TENANT, "-e", "@tenant.yml", "-e", "tenant_name=acme").expect()
    assert "fleetpw123" not in made.output
    tenant = Player(tmp_path, {**where, "PROXMOX_SITES_FILE": str(tmp_path / "acme.sites.yml")})
    both = ("-e", "@tenant.yml", "-e", "@estate.yml")
    assert tenant.play(PROVISION, *both).expect().changed == 1
    assert tenant.play(PROVISION, *both).expect().changed == 0
    (vm,) = lab.machines()
    assert (vm.name, vm.tenant, vm.status) == ("acme-web1", "acme", "running")


def test_the_role_itself_removes_a_tenant_that_is_absent(lab: Lab, player: Player) -> None:
    player.play("pve.fleet.tenant", **ESTATE).expect()
    include = {"name": "Remove", "ansible.builtin.include_role": {"name": TENANT}}
    play = {"name": "Tenant", "hosts": "localhost", "gather_facts": False, "tasks": [include]}
    text = yaml.safe_dump([play], sort_keys=False)
    (player.directory / "play.yml").write_text(text, encoding="utf-8")
    gone = {**ESTATE, "tenant_state": "absent"}
    assert "confirm" in player.play("play.yml", **gone).expect(2).output
    assert "initech" in str(lab.call("GET", "/pools"))
    player.play("play.yml", **gone, tenant_confirm="initech").expect()
    assert "initech" not in str(lab.call("GET", "/pools"))


@pytest.mark.parametrize("kind", repeated(["vault", "variable"]))
def test_login_is_never_shown(lab: Lab, player: Player, tmp_path: Path, kind: str) -> None:
    options = {**ESTATE, "tenant_credentials": kind, "tenant_vault_password": "open sesame"}
    play = [
        {
            "name": "Tenant",
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [
                {"name": "Make", "ansible.builtin.include_role": {"name": TENANT}},
                {
                    "name": "Rotate",
                    "ansible.builtin.include_role": {"name": TENANT, "tasks_from": "rotate"},
                },
                {
                    "name": "Keep",
                    "no_log": True,
                    "when": "tenant_login is defined",
                    "ansible.builtin.copy": {
                        "content": "{{ tenant_login | to_json }}",
                        "dest": "kept",
                        "mode": "0600",
                    },
                },
            ],
        }
    ]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play, sort_keys=False), encoding="utf-8")
    made = player.play("play.yml", "-vvv", "--diff", **options).expect()
    if kind == "vault":
        vaulted = tmp_path / "initech.sites.yml"
        assert stat.S_IMODE(vaulted.stat().st_mode) == 0o600
        text = vaulted.read_bytes()
        assert text.startswith(b"$ANSIBLE_VAULT;")
        content = VaultLib([("default", VaultSecret(b"open sesame"))]).decrypt(text)
    else:
        content = (tmp_path / "kept").read_bytes()
    site = json.loads(content)["sites"][0]
    assert site["token_id"] == "tenant_initech@pve!fleet-2"
    assert site["token_secret"] not in made.output
    assert [found for found in secrets_in(made.output) if "VALUE" not in found] == []
    names = lab.call("GET", "/access/users/tenant_initech@pve/token")
    assert [row["tokenid"] for row in names] == ["fleet-2"]


def test_login_as_an_extra_variable_is_refused(lab: Lab, player: Player) -> None:
    """It outranks every fact, so that the old login would be handed over, and kept in use."""
    given = {"sites": [{"name": "initech", "token_id": "tenant_initech@pve!fleet"}]}
    options = {**ESTATE, "tenant_credentials": "variable", "tenant_login": given}
    for playbook in (TENANT, ROTATE):
        mark = lab.mark()
        assert "is an extra variable" in player.play(playbook, **options).expect(2).output
        assert lab.requests_since(mark) == []


@pytest.mark.slow
def test_login_of_the_tenant_before_is_not_taken_for_this_ones(
    lab: Lab, player: Player, tmp_path: Path
) -> None:
    rotate = {"ansible.builtin.include_role": {"name": TENANT, "tasks_from": "rotate"}}
    make = {"ansible.builtin.include_role": {"name": TENANT}}
    hooli = {"vars": {"tenant_name": "hooli"}}
    tasks = [
        {"name": "Make hooli", **make, **hooli},
        {"name": "Make initech", **make},
        {"name": "Rotate initech", **rotate},
        {"name": "Rotate hooli", **rotate, **hooli},
    ]
    options = {name: value for name, value in ESTATE.items() if name != "tenant_name"}
    tenants = {**ESTATE["tenants"], "hooli": {}}
    variables = {**options, "tenants": tenants, "tenant_credentials": "variable"}
    play = {"name": "Tenants", "hosts": "localhost", "gather_facts": False, "tasks": tasks}
    play["vars"] = {**variables, "tenant_name": "initech"}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    player.play("play.yml").expect()
    for name in ("initech", "hooli"):
        tokens = lab.call("GET", f"/access/users/tenant_{name}@pve/token")
        assert [row["tokenid"] for row in tokens] == ["fleet-2"]


VAULT = VaultLib([("default", VaultSecret(b"open sesame"))])
LOGIN = '{"sites": [{"name": "%s"}]}'
HEAD = "# Login of tenant %s, written by pve.fleet.tenant. Use it as sites_file.\n"


@pytest.mark.parametrize("kind", repeated(["vault", "file"]))
@pytest.mark.slow
def test_run_that_was_killed_before_the_login_was_written_is_completed_by_the_next(
    lab: Lab, player: Player, tmp_path: Path, kind: str
) -> None:
    """SIGKILL while the token exists and its file has no login; see tests/modules for the rest."""
    options = {**ESTATE, "tenant_credentials": kind, "tenant_vault_password": "open sesame"}
    (tmp_path / "all.yml").write_text(yaml.safe_dump(options), encoding="utf-8")
    lab.simulator.fault(method="GET", path="/token/fleet$", delay_ms=60000, nth=2)
    process = start(["ansible-playbook", TENANT, "-e", "@all.yml"], tmp_path, player.environment)
    await_that(lambda: "fleet" in tokens_of(lab))
    end(process, End(signal.SIGKILL, worker_too=True))
    process.communicate()
    lab.simulator.clear_faults()
    file = tmp_path / "initech.sites.yml"
    reserved = file.read_bytes()
    done = player.play(TENANT, **options).expect()
    assert "~ token 'tenant_initech@pve!fleet'" in done.output
    assert file.read_bytes() != reserved
    assert player.play(TENANT, **options).expect().changed == 0
    assert player.play(ROTATE, **options).expect().changed == 2
    assert tokens_of(lab) == ["fleet-2"]


def tokens_of(lab: Lab) -> list[str]:
    users = lab.call("GET", "/access/users", full=1)
    found: list[str] = []
    for row in users:
        if row["userid"] == "tenant_initech@pve":
            found += [token["tokenid"] for token in row.get("tokens") or []]
    return found


@pytest.mark.parametrize("playbook", repeated([TENANT, ROTATE, "absent"]))
def test_wrong_vault_password_is_shown_and_nothing_is_changed(
    lab: Lab, player: Player, tmp_path: Path, playbook: str
) -> None:
    file = tmp_path / "initech.sites.yml"
    text = VAULT.encrypt(LOGIN % "initech").decode()
    file.write_text(text, encoding="utf-8")
    options = {**ESTATE, "tenant_credentials": "vault", "tenant_vault_password": "simsim"}
    if playbook == "absent":
        playbook = TENANT
        options |= {"tenant_state": "absent", "tenant_confirm": "initech"}
    mark = lab.mark()
    output = player.play(playbook, **options).expect(2).output
    assert "the vault password is wrong, or the file is damaged" in output
    assert "nothing was changed" in output
    assert lab.requests_since(mark) == []
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("kind", repeated(["file", "vault"]))
@pytest.mark.slow
def test_lost_file_is_written_again_by_a_rotation(
    lab: Lab, player: Player, tmp_path: Path, kind: str
) -> None:
    options = {**ESTATE, "tenant_credentials": kind, "tenant_vault_password": "open sesame"}
    file = tmp_path / "initech.sites.yml"
    player.play(TENANT, **options).expect()
    file.unlink()
    assert "the playbook rotate" in player.play(TENANT, **options).expect(2).output
    player.play(ROTATE, **options).expect()
    assert file.exists()
    assert player.play(TENANT, **options).expect().changed == 0


@pytest.mark.parametrize("whose", ["hooli", "initech"])
@pytest.mark.parametrize("kind", repeated(["vault", "file"]))
@pytest.mark.slow
def test_removal_takes_the_login_of_no_other_tenant(
    lab: Lab, player: Player, tmp_path: Path, kind: str, whose: str
) -> None:
    """The tenant does not exist: it was removed before, or its name is a mistake."""
    file = tmp_path / "login.yml"
    text = (HEAD + LOGIN) % (whose, whose)
    if kind == "vault":
        text = VAULT.encrypt(LOGIN % whose).decode()
    file.write_text(text, encoding="utf-8")
    gone = {**ESTATE, "tenant_state": "absent", "tenant_confirm": "initech"}
    options = {**gone, "tenant_credentials": kind, "tenant_vault_password": "open sesame"}
    options["tenant_credentials_file"] = str(file)
    foreseen = player.play(TENANT, "--check", **options).expect()
    assert file.read_text(encoding="utf-8") == text
    done = player.play(TENANT, **options).expect()
    assert file.exists() == (whose == "hooli")
    assert done.changed == foreseen.changed == int(whose == "initech")
    assert ("login.yml stays" in done.output) == (whose == "hooli")


def test_a_tenant_with_site_auto_is_managed_at_the_site_of_the_connection(
    lab: Lab, player: Player
) -> None:
    settings = {**ESTATE["tenants"]["initech"], "sites": ["berlin", "munich"], "site": "auto"}
    dark = {**lab.connection, "host": "https://127.0.0.1:9"}
    sites = [{"name": "munich", **dark}, {"name": "berlin", **lab.connection}]
    options = {
        **ESTATE,
        "tenants": {"initech": settings},
        "tenant_connection": {"sites": sites, "site": "berlin"},
    }
    foreseen = player.play(TENANT, "--check", "--diff", **options).expect()
    assert "+ pool 'initech'" in foreseen.output


def test_the_sites_of_an_estate_are_chosen(lab: Lab, player: Player) -> None:
    sites = [{"name": name, **lab.connection} for name in ("berlin", "munich")]
    rules = {"sites": ["munich"], "strategy": "first"}
    options = {
        "tenants": {"acme": {"sites": ["berlin", "munich"], "site_placement": rules}},
        "provision_vms": [{"name": "auto1", "tenant": "acme", "site": "auto", "blank": True}],
        "provision_connection": {"sites": sites},
    }
    assert (
        "acme/auto1 (site munich)" in player.play(PROVISION, "--check", **options).expect().output
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tenant_name": ""}, "No tenant is named"),
        ({"tenant_name": "hooli"}, "There is no tenant hooli"),
        (
            {"tenants": {"initech": {"sites": ["berlin", "munich"]}}},
            "Tenant initech has the sites berlin, munich",
        ),
        ({"tenant_credentials": "vault"}, "tenant_vault_password is empty"),
        (
            {"tenant_settings": {"acess": {"nodes": ["pve1"]}}},
            "unknown option 'acess' (did you mean 'access'?)",
        ),
        (
            {"tenant_settings": {"access": {"bridge": "vmbr0"}}},
            "unknown option 'access.bridge' (did you mean 'bridges'?)",
        ),
    ],
    ids=str,
)
def test_mistakes_stop_before_the_first_request(
    lab: Lab, player: Player, options: dict[str, Any], words: str
) -> None:
    mark = lab.mark()
    assert words in player.play(TENANT, **{**ESTATE, **options}).expect(2).output
    assert lab.requests_since(mark) == []


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ({"owner": "x@nowhere"}, "there is no realm nowhere; the cluster has pam, pve"),
        ({"expire": "2001-01-01"}, "'2001-01-01T00:00:00Z' has passed"),
        ({"group": "staff", "members": ["ghost@pve"]}, "there is no user ghost@pve"),
    ],
    ids=str,
)
def test_bad_input_stops_before_the_first_write(
    lab: Lab, player: Player, access: dict[str, Any], words: str
) -> None:
    mark = lab.mark()
    output = (
        player.play(TENANT, **{**ESTATE, "tenant_settings": {"access": access}}).expect(2).output
    )
    assert words in output
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_group_that_vanished_is_created_again(lab: Lab, player: Player) -> None:
    options = {**ESTATE, "tenant_settings": {"access": {"group": "staff", "members": ["ops@pve"]}}}
    player.play(TENANT, **options).expect()
    lab.call("DELETE", "/access/groups/staff")
    assert "+ group 'staff'" in player.play(TENANT, **options).expect().output
    assert player.play(TENANT, **options).expect().changed == 0
    assert "ops@pve" in lab.call("GET", "/access/groups/staff")["members"]


def test_login_that_may_not_give_a_right(lab: Lab, player: Player) -> None:
    reads = ["Datastore.Audit", "Pool.Audit", "SDN.Audit", "Sys.Audit", "VM.Audit"]
    privileges = [*reads, "Pool.Allocate", "Realm.AllocateUser", "Sys.Modify", "User.Modify"]
    login = lab.make_token("helper@pve", "tt", privileges)
    mark = lab.mark()
    output = player.play(TENANT, **ESTATE, tenant_connection=login).expect(2).output
    assert output.count("fatal: ") == 1  # a refusal is printed once
    assert "Permissions.Modify" in output
    assert login["token_secret"] not in output
    assert writes(lab, mark) == []


def test_cause_is_shown_where_the_output_is_hidden(lab: Lab, player: Player) -> None:
    settings = {"access": {"storages": ["tape"]}}
    options = {**ESTATE, "tenant_settings": settings, "tenant_credentials": "variable"}
    output = player.play(TENANT, **options).expect(2).output
    assert "there is no storage tape" in output


@pytest.mark.slow
def test_prefix_of_the_estate_holds_for_its_tenants(
    lab: Lab, player: Player, tmp_path: Path
) -> None:
    defaults = {"source": "debian-13", "tenant_prefix": "kunde_"}
    options = {**ESTATE, "provision_defaults": defaults}
    player.play(TENANT, **options).expect()
    users = {str(row["userid"]) for row in lab.call("GET", "/access/users")}
    assert "kunde_initech@pve" in users
    assert "tenant_initech@pve" not in users
    assert player.play(TENANT, **options).expect().changed == 0
    player.play(PROVISION, **options).expect()
    output = player.play("pve.fleet.audit", **options).expect(2).output
    assert "app1" not in output
    assert "no_tenant" in player.play("pve.fleet.audit", **ESTATE).expect(2).output
    output = player.play("pve.fleet.tidy", **options, tidy_tenant="initech").expect().output
    assert "app1" not in output
    foreseen = player.play(ROTATE, "--check", **options).expect()
    assert "the token that is in use now is removed" in foreseen.output
    player.play(ROTATE, **options).expect()
    gone = {**options, "tenant_state": "absent", "tenant_confirm": "initech"}
    player.play(TENANT, **gone).expect()
    users = {str(row["userid"]) for row in lab.call("GET", "/access/users")}
    assert "kunde_initech@pve" not in users


def test_audit_has_an_exit_status_and_writes_json(lab: Lab, player: Player, tmp_path: Path) -> None:
    options = {**ESTATE, "audit_json": str(tmp_path / "findings.json")}
    output = player.play("pve.fleet.audit", **options).expect(2).output
    assert "no_expiry: Token root@pam!fleet never expires" in output
    written = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    schema = json.loads((REPO / "docs" / "audit.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, schema)
    assert not written["passed"]
    assert {one["kind"] for one in written["findings"]} == {"no_expiry"}
    for user, name in (("root@pam", "fleet"), ("ops@pve", "auto")):
        lab.call("PUT", f"/access/users/{user}/token/{name}", expire=4102444800)
    assert "Findings: 0" in player.play("pve.fleet.audit", **options).expect().output


@pytest.mark.slow
def test_new_and_rotated_tenants_pass_the_audit(lab: Lab, player: Player) -> None:
    """With the administrators' tokens named, as they have no expiry."""
    options = {**ESTATE, "audit_lasting_tokens": ["root@pam!fleet", "ops@pve!auto"]}
    player.play(TENANT, **options).expect()
    assert "Findings: 0" in player.play("pve.fleet.audit", **options).expect().output
    not_due = player.play(ROTATE, **options, tenant_expires_within=30).expect()
    assert not_due.changed == 0
    assert player.play(ROTATE, **options, tenant_expires_within=92).expect().changed == 2
    assert "Findings: 0" in player.play("pve.fleet.audit", **options).expect().output
    assert player.play(TENANT, **options).expect().changed == 0
