# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three tenants on a simulated Proxmox VE, with the commands for a real one: ``python -m
tests.demo``.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.demo.lab import Lab, Login
from tests.demo.shell import DemoFailed, Shell

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "docs" / "examples"

PROVISION = ("ansible-playbook", "pve.fleet.provision", "-e", "@estate.yml")
TENANT = ("ansible-playbook", "pve.fleet.tenant", "-e", "@tenant.yml")
LOGIN = "initech.sites.yml"
GRAPH = ("ansible-inventory", "-i", "fleet.proxmox.yml", "--graph")

REPORT = REPO / "build" / "demo"

FORBIDDEN = 403

# Changes to the estate: a larger class, a larger disk, more memory for one VM, one more tag.
EDITS = (
    ("    cores: 1\n", "    cores: 2\n"),
    ("size: 50G", "size: 80G"),
    ("memory: 6G", "memory: 8G"),
    ("tags: [worker]", "tags: [worker, batch]"),
)


def main() -> int:
    signal.signal(signal.SIGTERM, _stop)
    try:
        with tempfile.TemporaryDirectory(prefix="pve-fleet-demo-") as directory:
            demonstrate(Path(directory))
    except DemoFailed as failure:
        print(f"\nThe demo FAILED: {failure}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nThe demo was interrupted.", flush=True)
        return 130
    return 0


def demonstrate(directory: Path) -> None:
    """Run the demo. Raises DemoFailed at the first command or check that fails."""
    for name in ("estate.yml", "tenant.yml", "fleet.proxmox.yml"):
        shutil.copy(EXAMPLES / name, directory)
    (directory / "ansible.cfg").touch()  # so that no other configuration is read
    with Lab() as lab:
        shell = Shell(directory, environment(directory, lab))
        shell.heading(f"A simulated Proxmox VE with three nodes serves {lab.url}")
        print("The commands below use the same environment variables as for a real one:")
        for name in ("PROXMOX_HOST", "PROXMOX_TOKEN_ID", "PROXMOX_TOKEN_SECRET", "PROXMOX_CA_PATH"):
            print(f"  {name}={'(secret)' if 'SECRET' in name else shell.environment[name]}")
        install(shell)
        provision(shell, lab)
        provision_again(shell, lab)
        preview(shell, lab, directory)
        third_tenant(shell, lab)
        deprovision(shell, lab)
        report(shell, lab)
    shell.heading("Every check passed, and the simulated Proxmox VE is stopped")


def environment(directory: Path, lab: Lab) -> dict[str, str]:
    """Return this Python's tools, the simulated cluster, and no Ansible settings of the caller."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANSIBLE_", "PROXMOX_", "PVE_"))
    }
    return {
        **kept,
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(directory / "collections"),
        "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
        "ANSIBLE_HOME": str(directory / "ansible"),
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        **lab.environment,
    }


def install(shell: Shell) -> None:
    shell.heading("Build the collection and install it")
    shell.run("ansible-galaxy", "collection", "build", "--output-path", ".", str(REPO), quiet=True)
    (artifact,) = shell.directory.glob("pve-fleet-*.tar.gz")
    shell.run(
        "ansible-galaxy",
        "collection",
        "install",
        "--offline",
        "-p",
        "collections",
        artifact.name,
        quiet=True,
    )
    installed = shell.directory / "collections" / "ansible_collections" / "pve" / "fleet"
    shell.check(
        (installed / "playbooks" / "provision.yml").is_file(),
        "the installed collection has its playbooks",
    )


def provision(shell: Shell, lab: Lab) -> None:
    shell.heading("First run: six virtual machines of two tenants, on three nodes")
    output = shell.run(*PROVISION)
    recap = output.recap()
    shell.check(
        recap["failed"] == 0 and recap["changed"] == 1,
        "the first run reports changes and no failure",
    )
    shell.check("Done: 6 created" in output.text, "and reports six created VMs")
    machines = lab.machines()
    shell.check(
        Counter(vm.tenant for vm in machines) == {"acme": 3, "globex": 3}
        and {vm.node for vm in machines} == {"pve1", "pve2", "pve3"}
        and all(vm.status == "running" for vm in machines),
        "each tenant has three running VMs, and every node has at least one",
    )
    shell.heading("The inventory, by tenant")
    shown = shell.run(*GRAPH).text
    for tenant in ("acme", "globex"):
        group = shown.partition(f"@tenant_{tenant}:")[2].partition("@")[0]
        there = {name for name in (vm.name for vm in machines) if f"--{name}\n" in group}
        wanted = {vm.name for vm in machines if vm.tenant == tenant}
        shell.check(there == wanted, f"the group tenant_{tenant} has exactly the VMs of {tenant}")


def provision_again(shell: Shell, lab: Lab) -> None:
    shell.heading("Second run: no changes")
    mark = lab.mark()
    output = shell.run(*PROVISION)
    recap = output.recap()
    shell.check(recap["changed"] == 0 and recap["failed"] == 0, "the second run reports changed=0")
    shell.check("Done: 6 unchanged" in output.text, "and reports six VMs without a change")
    requests = lab.requests_since(mark)
    writes = [str(one) for one in requests if one.is_write]
    shell.check(
        bool(requests) and not writes,
        f"none of its {len(requests)} requests was a write",
        ", ".join(writes),
    )
    listed = ", ".join(map(str, requests))
    shell.check(
        len(requests) == 1 + 3 + 6,
        "one was for the cluster, one for each of 3 nodes and of 6 VMs",
        listed,
    )


def preview(shell: Shell, lab: Lab, directory: Path) -> None:
    shell.heading("Preview the changes of an edited estate")
    before = (directory / "estate.yml").read_text(encoding="utf-8")
    after = before
    for old, new in EDITS:
        if after.count(old) != 1:
            raise DemoFailed(f"{old!r} does not occur exactly once in the example estate")
        after = after.replace(old, new)
    (directory / "edited.yml").write_text(after, encoding="utf-8")
    print("$ diff -U0 estate.yml edited.yml")
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "estate.yml", "edited.yml", n=0, lineterm=""
    )
    print("\n".join(lines) + "\n")
    mark = lab.mark()
    output = shell.run(
        "ansible-playbook", "pve.fleet.provision", "-e", "@edited.yml", "--check", "--diff"
    )
    recap = output.recap()
    shell.check(recap["changed"] == 1 and recap["failed"] == 0, "check mode reports changes")
    shell.check(
        output.text.count("(waits for a reboot)") >= 3 and "Plan: 6 to change" in output.text,
        "and reports the guests that wait for a reboot",
    )
    for line in (
        '+    "cores": 2',
        '+        "size": "80G",',
        '+    "memory": 8192,',
        '+        "batch",',
    ):
        shell.check(f"{line}\n" in output.text, f"the diff shows {line[1:].strip().rstrip(',')}")
    writes = [str(one) for one in lab.requests_since(mark) if one.is_write]
    shell.check(not writes, "check mode wrote nothing", ", ".join(writes))


def third_tenant(shell: Shell, lab: Lab) -> None:
    before = lab.state()
    tenant = create_tenant(shell, lab)
    use_tenant(tenant, lab)
    remove_tenant(shell)
    shell.heading("What is left of it")
    left = sorted(name for name, value in lab.state().items() if value != before.get(name))
    shell.check(
        not left,
        "users, groups, roles, rights, pools, options, VMs and volumes are those from before",
        ", ".join(left),
    )


def create_tenant(shell: Shell, lab: Lab) -> Shell:
    """Create the tenant and return a shell that has its login and no other."""
    shell.heading("Create a third tenant: pool, roles, user, token and rights")
    output = shell.run(*TENANT)
    recap = output.recap()
    shell.check(recap["changed"] == 1 and recap["failed"] == 0, "the tenant is created")
    file = shell.directory / LOGIN
    secret = read_login(file).token_secret
    shell.check(
        stat.S_IMODE(file.stat().st_mode) == 0o600 and secret not in output.text,
        f"its login is in {LOGIN}, which only its owner can read, and was not shown",
    )
    own = {
        name: value for name, value in shell.environment.items() if not name.startswith("PROXMOX_")
    }
    return Shell(shell.directory, {**own, "PROXMOX_SITES_FILE": LOGIN}, shell.started)


def use_tenant(shell: Shell, lab: Lab) -> None:
    """Create a VM and a container with the login of the tenant, and let Proxmox VE refuse the
    rest.
    """
    shell.heading("Work with its own token")
    print(f"All that the next command has is PROXMOX_SITES_FILE={LOGIN}")
    recap = shell.run("ansible-playbook", "pve.fleet.provision", "-e", "@tenant.yml").recap()
    shell.check(recap["changed"] == 1 and recap["failed"] == 0, "the run reports a change")
    machines = lab.machines()
    own = {vm.name: vm.status for vm in machines if vm.tenant == "initech"}
    shell.check(
        own == {"initech-app1": "running", "initech-proxy1": "running"},
        "its VM and its container run, in its pool and with its tag",
    )
    shown = shell.run(*GRAPH).text
    shell.check(
        all(f"--{name}\n" in shown for name in own) and "tenant_acme" not in shown,
        "its inventory has both of them, and nothing of others",
    )
    foreign = next(vm for vm in machines if vm.tenant == "acme")
    login = read_login(shell.directory / LOGIN)
    print(f"\nRequests with the same token, for VM {foreign.name} ({foreign.vmid}) of acme:")
    path = f"/nodes/{foreign.node}/qemu/{foreign.vmid}"
    answers: list[int] = []
    for verb, resource in (
        ("GET", f"{path}/config"),
        ("POST", f"{path}/status/stop"),
        ("DELETE", path),
    ):
        status, reason = lab.attempt(login, verb, resource)
        print(f"  {verb:6} {resource}: {status} {reason}")
        answers.append(status)
    shell.check(set(answers) == {FORBIDDEN}, "Proxmox VE refused each of them")


def remove_tenant(shell: Shell) -> None:
    shell.heading("Remove it with its VM and its container")
    output = shell.run(*TENANT, "-e", "tenant_state=absent", "-e", "tenant_confirm=initech")
    shell.check(output.recap()["failed"] == 0, "the tenant is removed")
    shell.check(not (shell.directory / LOGIN).exists(), f"and so is {LOGIN}")


def read_login(file: Path) -> Login:
    """Return the login of a tenant from its file."""
    content = json.loads(file.read_text(encoding="utf-8").partition("\n")[2])
    return Login(content["sites"][0]["token_id"], content["sites"][0]["token_secret"])


def deprovision(shell: Shell, lab: Lab) -> None:
    command = (
        "ansible-playbook",
        "pve.fleet.deprovision",
        "-e",
        "@estate.yml",
        "-e",
        "provision_tenants=globex",
    )
    shell.heading("Remove one tenant")
    machines = lab.machines()
    kept = {vm.vmid: lab.config(vm) for vm in machines if vm.tenant == "acme"}
    leaving = {vm.vmid for vm in machines if vm.tenant == "globex"}
    mark = lab.mark()
    output = shell.run(*command)
    recap = output.recap()
    shell.check(recap["changed"] == 1 and recap["failed"] == 0, "the removal reports a change")
    shell.check("Done: 3 removed" in output.text, "and reports three removed VMs")
    left = lab.machines()
    shell.check(
        {vm.vmid: lab.config(vm) for vm in left} == kept
        and all(vm.status == "running" for vm in left),
        "the VMs of acme still run with the same configuration, those of globex are removed",
    )
    hit = {one.vmid for one in lab.requests_since(mark) if one.is_write}
    shell.check(hit == leaving, "every write was for a VM of globex", f"{sorted(map(str, hit))}")
    shell.heading("Remove it again: no changes")
    mark = lab.mark()
    recap = shell.run(*command).recap()
    writes = [str(one) for one in lab.requests_since(mark) if one.is_write]
    shell.check(
        recap["changed"] == 0 and recap["failed"] == 0, "the second removal reports changed=0"
    )
    shell.check(not writes, "and wrote nothing", ", ".join(writes))


def report(shell: Shell, lab: Lab) -> None:
    shell.heading("A report on what is left, beside the estate")
    shutil.rmtree(REPORT, ignore_errors=True)
    prices = {"core": "4.50", "memory": "2.00", "storage": "0.08", "currency": "EUR"}
    variables = {"report_directory": str(REPORT), "report_prices": prices}
    given = ("-e", "@estate.yml", "-e", json.dumps(variables))
    mark = lab.mark()
    output = shell.run("ansible-playbook", "pve.fleet.report", *given)
    shell.check(output.recap()["failed"] == 0, "the report is written")
    shell.check(
        "warning: Differences from the estate: 3" in output.text,
        "and says that the three VMs that were removed are in the estate",
    )
    writes = [str(one) for one in lab.requests_since(mark) if one.is_write]
    shell.check(not writes, "and it wrote nothing to the cluster", ", ".join(writes))
    print(f"Open it in a browser: {REPORT / 'report.html'}")


def _stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
