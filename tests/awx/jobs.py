# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs jobs as AWX does: ansible-runner with a private data directory, the environment of a
credential, variables of a template and its survey, and an inventory that a source has filled.

`Job.send` uses the three parts that AWX connects through Receptor: transmit, worker and process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ansible_runner
import yaml

from tests.awx import rules
from tests.awx.credential import inject
from tests.awx.data import HOME, job_template, maintenance_nodes, nodes_of, read, survey_of

_SCRIPT = "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint(r'''{data}''')\n"
LOGIN_TYPE: dict[str, Any] = read("credential_types")[0]


@dataclass(frozen=True)
class Finished:
    """A job that has ended."""

    status: int
    output: str
    events: list[dict[str, Any]] = field(repr=False)

    def expect(self, status: int = 0) -> Finished:
        assert self.status == status, self.output
        return self

    def recap(self, figure: str) -> dict[str, int]:
        """Return changed, failures, ok ... by host."""
        for event in self.events:
            if event["event"] == "playbook_on_stats":
                return {k: v for k, v in event["event_data"][figure].items() if v}
        raise AssertionError(f"the job has no recap: {self.output}")

    @property
    def artifacts(self) -> dict[str, Any]:
        """Return what the job set with set_stats: AWX takes it from the last event."""
        for event in self.events:
            if event["event"] == "playbook_on_stats":
                found: dict[str, Any] = event["event_data"].get("artifact_data", {})
                return found
        return {}

    def results(self, module: str, *, failed: bool = False) -> list[tuple[str, dict[str, Any]]]:
        """Return host and result of each task with a module that did not fail, or that failed."""
        kind = "runner_on_failed" if failed else "runner_on_ok"
        return [
            (event["event_data"]["host"], event["event_data"]["res"])
            for event in self.events
            if event["event"] == kind and event["event_data"]["resolved_action"] == module
        ]


@dataclass
class Workflow:
    """A workflow that has ended: the jobs of its nodes, in the order in which they ran."""

    jobs: dict[str, Finished] = field(default_factory=dict, repr=False)
    artifacts: dict[str, Any] = field(default_factory=dict)
    failed: bool = False

    @property
    def statuses(self) -> dict[str, int]:
        return {identifier: job.status for identifier, job in self.jobs.items()}


class Job:
    """A job of a project in a directory of its own."""

    def __init__(
        self, directory: Path, login: Mapping[str, Any], kind: Mapping[str, Any] = LOGIN_TYPE
    ) -> None:
        self.directory = directory
        (directory / "env").mkdir(parents=True)
        (directory / "inventory").mkdir()
        shutil.copytree(HOME / "project", directory / "project")
        self.environment = inject(kind, login, directory / "env")
        self.set_inventory({"_meta": {"hostvars": {}}, "all": {"children": []}})

    def set_estate(self, estate: Mapping[str, Any]) -> None:
        file = self.directory / "project" / "estate" / "estate.yml"
        file.write_text(yaml.safe_dump(dict(estate)), encoding="utf-8")

    def set_inventory(self, data: Mapping[str, Any]) -> None:
        file = self.directory / "inventory" / "hosts"
        file.write_text(_SCRIPT.format(data=json.dumps(data)), encoding="utf-8")
        file.chmod(0o700)

    def sync(self, source_variables: Mapping[str, str]) -> dict[str, Any]:
        """Fill the inventory from the inventory source of the project, and return it."""
        source = self.directory / "project" / "fleet.proxmox.yml"
        command = ["ansible-inventory", "-i", str(source), "--list", "--export"]
        done = subprocess.run(
            command,
            cwd=source.parent,
            env={**_inherited(), **self.environment, **source_variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        data: dict[str, Any] = json.loads(done.stdout)
        self.set_inventory(data)
        return data

    def launch_for_all(
        self,
        name: str,
        answers: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        artifacts: Mapping[str, Any] | None = None,
    ) -> Finished:
        """Run a job template of the administrators with the `artifacts` of earlier nodes."""
        template = job_template(name, "fleet")
        survey = survey_of(template, "fleet")
        given = {**_defaults(survey), **(answers or {})}
        assert rules.answer_errors(survey or {"spec": []}, given) == []
        variables = rules.job_variables({}, survey, given) | dict(artifacts or {})
        return self.send(template["playbook"], variables, options)

    def run_maintenance(
        self, names: Sequence[str], answers: Mapping[str, Any], *, denied: str = ""
    ) -> Workflow:
        """Run the workflow of a maintenance; the approval of node `denied` is denied."""
        nodes = maintenance_nodes(names)
        done = Workflow()

        def run(identifier: str) -> bool:
            node = nodes[identifier]
            if "extra_data" not in node:
                return identifier == f"approve {denied}"
            options = ["--check"] if node.get("job_type") == "check" else []
            given = {**answers, **node["extra_data"]}
            job = self.launch_for_all("Maintain nodes", given, options, done.artifacts)
            done.jobs[identifier] = job
            done.artifacts |= job.artifacts
            return job.status != 0

        _ended, done.failed = rules.walk(nodes, run)
        return done

    def run_workflow(
        self,
        name: str,
        tenant: str,
        answers: Mapping[str, Any],
        *,
        approve: bool | None = None,
        before: Callable[[str], object] = str,
    ) -> Workflow:
        """Run a workflow as AWX does, with an approval node if `approve` is not None.

        The variables of a node are those of its job template, answers of the node, artifacts of the
        nodes before it, and the variables and answers of the workflow, each over those before.
        `before` is called with the identifier of each node before its job starts.
        """
        (workflow,) = [one for one in read("workflows") if one["name"] == name]
        survey = {"name": "", "description": "", "spec": workflow["survey"]}
        given = {**_defaults(survey), **answers}
        assert rules.answer_errors(survey, given) == []
        nodes = nodes_of(workflow, approval=approve is not None)
        required = {} if approve is None else {"fleet_plan_required": True}
        fixed = {**workflow["extra_vars"], **required, **given}
        done = Workflow()

        def run(identifier: str) -> bool:
            node = nodes[identifier]
            before(identifier)
            if "approval" in node:
                return not approve
            job = self._run_node(node, tenant, done.artifacts, fixed)
            done.jobs[identifier] = job
            done.artifacts |= job.artifacts
            return job.status != 0

        _ended, done.failed = rules.walk(nodes, run)
        return done

    def _run_node(
        self,
        node: Mapping[str, Any],
        tenant: str,
        artifacts: Mapping[str, Any],
        fixed: Mapping[str, Any],
    ) -> Finished:
        template = job_template(node["job_template"], "tenant")
        own = survey_of(template, "tenant")
        given = node.get("extra_data", {})
        asked = {one["variable"] for one in own.get("spec", [])}
        assert set(given) <= asked, "AWX ignores variables that the job template does not ask for"
        variables = {template["tenant_variable"]: tenant, "estate_tenant": tenant}
        variables = rules.job_variables(variables, own, given) | {**artifacts, **fixed}
        options = []
        if "job_type" in node:
            assert template["job_type_on_launch"], "AWX ignores what the job template does not ask"
            options = ["--check"] if node["job_type"] == "check" else []
        return self.send(template["playbook"], variables, options)

    def launch(
        self,
        name: str,
        tenant: str,
        answers: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
    ) -> Finished:
        """Run the job template of a tenant with answers to its survey.

        What has a default is answered with it, as AWX's own pages do, an empty text included.
        """
        template = job_template(name, "tenant")
        survey = survey_of(template, "tenant")
        given = {**_defaults(survey), **(answers or {})}
        assert rules.answer_errors(survey or {"spec": []}, given) == []
        fixed = {template["tenant_variable"]: tenant, "estate_tenant": tenant}
        return self.send(template["playbook"], rules.job_variables(fixed, survey, given), options)

    def send(
        self, playbook: str, variables: Mapping[str, Any], options: Sequence[str] = ()
    ) -> Finished:
        return self.start(playbook, variables, options).finish()

    def start(
        self, playbook: str, variables: Mapping[str, Any], options: Sequence[str] = ()
    ) -> Running:
        env = self.directory / "env"
        (env / "envvars").write_text(json.dumps(self.environment), encoding="utf-8")
        (env / "extravars").write_text(json.dumps(dict(variables)), encoding="utf-8")
        (env / "cmdline").write_text(" ".join(options), encoding="utf-8")
        return Running(self.directory, playbook)


def _defaults(survey: Mapping[str, Any]) -> dict[str, Any]:
    return {
        one["variable"]: one["default"]
        for one in survey.get("spec", [])
        if one.get("default") is not None
    }


class Running:
    """A job on its way through transmit, worker and process.

    As in AWX, the worker is a command, and the other two are calls of the library.
    """

    def __init__(self, directory: Path, playbook: str) -> None:
        self.directory = directory
        self._given = {"private_data_dir": str(directory), "ident": "job"}
        self._printed: list[str] = []
        shutil.rmtree(directory / "artifacts", ignore_errors=True)
        work = directory.with_name(f"{directory.name}-worker")
        shutil.rmtree(work, ignore_errors=True)
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "ansible_runner", "worker", "--private-data-dir", str(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_inherited(),
        )
        self._threads = ThreadPoolExecutor(3)
        self._sent = self._threads.submit(self._transmit, playbook)
        self._processed = self._threads.submit(self._process)
        self._errors = self._threads.submit(self._read_errors)

    def finish(self) -> Finished:
        with self._threads:
            for end in (self._sent, self._processed):
                end.result()
            errors = self._errors.result()
        self._worker.wait()
        home = self.directory / "artifacts" / "job"
        status = (home / "rc").read_text(encoding="utf-8") if (home / "rc").exists() else "-1"
        text = "\n".join(self._printed) + errors
        return Finished(int(status), text, list(_events(home / "job_events")))

    def _transmit(self, playbook: str) -> None:
        assert self._worker.stdin is not None
        with self._worker.stdin as line:
            ansible_runner.run(streamer="transmit", _output=line, playbook=playbook, **self._given)

    def _process(self) -> None:
        assert self._worker.stdout is not None
        with self._worker.stdout as line:
            ansible_runner.run(
                streamer="process", _input=line, quiet=True, event_handler=self._note, **self._given
            )

    def _note(self, event: Mapping[str, Any]) -> bool:
        """Keep what the job prints, and have the event written."""
        if "stdout" in event:
            self._printed.append(event["stdout"])
        return True

    def _read_errors(self) -> str:
        assert self._worker.stderr is not None
        with self._worker.stderr as stream:
            return stream.read().decode()


def _events(home: Path) -> list[dict[str, Any]]:
    found = [json.loads(file.read_text(encoding="utf-8")) for file in home.glob("*-*.json")]
    return sorted(found, key=lambda event: int(event["counter"]))


def _inherited() -> dict[str, str]:
    """Return the environment of the container: nothing of Proxmox VE, a path, the collection."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PROXMOX_")}
