# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for GitHub: it runs the workflows of docs/examples/gitops/github as a runner does.

A job sees the secrets and variables of its environment only, and a pull request from a fork has no
secrets. The token of a job may do what `permissions` of its workflow says. Sources: "Workflow syntax
for GitHub Actions" (concurrency: one job waits, a newer one takes its place), "Events that trigger
workflows" (pull_request: the result of the merge is checked out, no secrets for forks), and the REST
API's pages about artifacts, commits, issue comments and pull request reviews on docs.github.com.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.gitops import gh
from tests.gitops.forge import RECIPES, Artifact, Call, Ended, Forge, Page, Proposal, add_program

_REPOSITORY = "example/estate"
_BOT = "github-actions[bot]"
_EXPRESSION = re.compile(r"\$\{\{ ([\w.]+) \}\}")
_TOKEN = "job-token"
# The longest body of a comment, and the answer to a longer one.
_LONGEST = 65536
_TOO_LONG = (
    422,
    {
        "message": "Validation Failed",
        "errors": [
            {
                "resource": "IssueComment",
                "code": "unprocessable",
                "field": "data",
                "message": f"Body is too long (maximum is {_LONGEST} characters)",
            }
        ],
    },
)
_ROWS = 30  # of a page, unless the request says another number


class GitHub(Forge):
    """A repository at GitHub with the two workflows. `environments` has the values of `secrets` and
    `vars` by the name of an environment.
    """

    def __init__(
        self,
        directory: Path,
        files: Mapping[str, str],
        environments: Mapping[str, Mapping[str, Mapping[str, str]]],
    ) -> None:
        super().__init__(directory, files)
        self.environments = environments
        self.permissions: Mapping[str, str] = {}

    def add_programs(self, directory: Path) -> None:
        super().add_programs(directory)
        add_program(directory / "gh", f'#!/bin/sh\nexec {sys.executable} {gh.__file__} "$@"\n')

    def plan(self, proposal: Proposal) -> Ended | None:
        """Run plan.yml for a pull request; None if its job is skipped."""
        repository = "another/estate" if proposal.is_from_fork else _REPOSITORY
        event = {"number": proposal.number, "head": {"repo": {"full_name": repository}}}
        directory = self.merged_tree(proposal)
        context = {"event": {"pull_request": event}}
        return self._run("plan", directory, context, with_secrets=not proposal.is_from_fork)

    def apply_waiting(self, refs: Sequence[str]) -> list[Ended | None]:
        """Run apply.yml for pushes that come while the job of the first one runs; None for a job
        that is cancelled: one job of a concurrency group waits, and a newer one takes its place.
        """
        group = _workflow("apply")["concurrency"]
        assert (group["group"], group["cancel-in-progress"]) == ("apply", False)
        waiting = {refs[0], refs[-1]}
        return [self.apply(ref) if ref in waiting else None for ref in refs]

    def apply(self, ref: str = "origin/main") -> Ended:
        """Run apply.yml for a push to main."""
        done = self._run("apply", self.clone(ref), {})
        assert done is not None
        return done

    def _run(
        self, name: str, directory: Path, context: dict[str, Any], *, with_secrets: bool = True
    ) -> Ended | None:
        workflow = _workflow(name)
        job = workflow["jobs"][name]
        settings = self.environments[job["environment"]]
        known = {
            "github": {
                **context,
                "repository": _REPOSITORY,
                "token": _TOKEN,
                "workspace": str(directory),
            },
            "secrets": settings["secrets"] if with_secrets else {},
            "vars": settings["vars"],
            "steps": {},
        }
        if "if" in job and not _is_true(job["if"], known):
            return None
        self.permissions = workflow["permissions"]
        run = self.number()
        output = ""
        for step in job["steps"]:
            if "uses" in step:
                self._use(step, known, directory, run)
                continue
            status, text = self._run_step(step, known, directory)
            output += text
            if status:
                return Ended(status, output, directory)
        return Ended(0, output, directory)

    def _run_step(
        self, step: Mapping[str, Any], known: dict[str, Any], directory: Path
    ) -> tuple[int, str]:
        assert "${{" not in step["run"], "an expression in a script can contain commands"
        place = self.directory / f"step-{self.number()}"
        place.mkdir()
        outputs = place / "outputs"
        outputs.touch()
        environment = {
            "CI": "true",
            "GITHUB_API_URL": self.server.url,
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_REPOSITORY": _REPOSITORY,
            "GITHUB_SHA": self.git("rev-parse", "HEAD", directory=directory),
            "RUNNER_TEMP": str(place),
            **{name: _value(text, known) for name, text in step.get("env", {}).items()},
        }
        done = self.run_script(step["run"], directory, environment)
        if "id" in step:
            lines = outputs.read_text(encoding="utf-8").splitlines()
            values = dict(line.split("=", 1) for line in lines)
            known["steps"][step["id"]] = {"outputs": values}
        left = {one.name for one in place.iterdir()} - {"outputs", "plan.pub"}
        assert not left, "a runner keeps its files for the next jobs"
        return done.returncode, done.stdout

    def _use(
        self, step: Mapping[str, Any], known: Mapping[str, Any], directory: Path, run: int
    ) -> None:
        if step["uses"].startswith("actions/upload-artifact@"):
            content = (directory / step["with"]["path"]).read_bytes()
            name = _value(step["with"]["name"], known)
            self.artifacts.append(Artifact(name, run, content))
            return
        assert step["uses"].startswith(("actions/checkout@", "actions/setup-python@"))

    def answer_api(self, call: Call) -> tuple[int, Any]:
        if call.headers.get("authorization") != f"token {_TOKEN}":
            return 401, {"message": "Bad credentials"}
        path = call.path.removeprefix(f"/repos/{_REPOSITORY}")
        for method, pattern, permission, answer in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match is None or method != call.method:
                continue
            name, level = permission.split(": ")
            if self.permissions.get(name) not in (level, "write"):
                return 403, {"message": "Resource not accessible by integration"}
            found: tuple[int, Any] = answer(self, call, *match.groups())
            return found
        return 404, {"message": "Not Found"}

    def _proposal(self, number: str) -> Proposal:
        (found,) = [one for one in self.proposals if one.number == int(number)]
        return found

    def _pulls(self, _call: Call, sha: str) -> tuple[int, Any]:
        rows = [
            {
                "number": one.number,
                "merged_at": "2026-11-29T11:00:00Z",
                "merge_commit_sha": one.merged,
                "head": {"sha": one.head},
                "base": {"ref": "main"},
            }
            for one in self.proposals
            if one.merged == sha
        ]
        return 200, rows

    def _comments(self, call: Call, number: str) -> tuple[int, Any]:
        rows = [
            {
                "id": one.number,
                "user": {"login": one.author},
                "body": one.body,
                "updated_at": one.updated,
            }
            for one in self._proposal(number).comments
        ]
        return _page(call, rows)

    def _add_comment(self, call: Call, number: str) -> tuple[int, Any]:
        if len(call.form["body"]) > _LONGEST:
            return _TOO_LONG
        self.comment(self._proposal(number), _BOT, call.form["body"])
        return 201, {}

    def _change_comment(self, call: Call, number: str) -> tuple[int, Any]:
        if len(call.form["body"]) > _LONGEST:
            return _TOO_LONG
        comments = [one for proposal in self.proposals for one in proposal.comments]
        (comment,) = [one for one in comments if one.number == int(number)]
        comment.body, comment.updated = call.form["body"], self.now()
        return 200, {}

    def _reviews(self, call: Call, number: str) -> tuple[int, Any]:
        rows = [
            {
                "user": {"login": "bob"},
                "state": "APPROVED",
                "commit_id": commit,
                "submitted_at": time,
            }
            for commit, time in self._proposal(number).approvals
        ]
        return _page(call, rows)

    def _artifacts(self, call: Call) -> tuple[int, Any]:
        rows = [
            {"name": one.name, "expired": one.is_expired, "workflow_run": {"id": one.run}}
            for one in reversed(self.artifacts)
            if one.name == call.query["name"]
        ]
        return 200, {"total_count": len(rows), "artifacts": rows}

    def _download(self, _call: Call, run: str, name: str) -> tuple[int, Any]:
        found = [one for one in self.artifacts if (one.run, one.name) == (int(run), name)]
        return 200, found[-1].content


_ROUTES: tuple[tuple[str, str, str, Any], ...] = (
    ("GET", r"/commits/(\w+)/pulls", "pull-requests: read", GitHub._pulls),
    ("GET", r"/issues/(\d+)/comments", "pull-requests: read", GitHub._comments),
    ("POST", r"/issues/(\d+)/comments", "pull-requests: write", GitHub._add_comment),
    ("PATCH", r"/issues/comments/(\d+)", "pull-requests: write", GitHub._change_comment),
    ("GET", r"/pulls/(\d+)/reviews", "pull-requests: read", GitHub._reviews),
    ("GET", r"/actions/artifacts", "actions: read", GitHub._artifacts),
    ("GET", r"/download/(\d+)/([\w-]+)", "actions: read", GitHub._download),
)


def _workflow(name: str) -> dict[str, Any]:
    text = (RECIPES / "github" / f"{name}.yml").read_text(encoding="utf-8")
    workflow: dict[str, Any] = yaml.safe_load(text)
    return workflow


def _page(call: Call, rows: list[Any]) -> tuple[int, Page]:
    """Return a page of a list, with a link to the next one ("Using pagination in the REST API")."""
    found, following = call.page_of(rows, _ROWS)
    path = call.path.lstrip("/")
    headers = {"Link": f'<{path}?page={following}>; rel="next"'} if following else {}
    return 200, Page(found, headers)


def _value(text: str, known: Mapping[str, Any]) -> str:
    return _EXPRESSION.sub(lambda match: _look_up(match[1], known), text)


def _look_up(name: str, known: Mapping[str, Any]) -> str:
    value: Any = known
    for part in name.split("."):
        value = value.get(part, "")
        if value == "":
            return ""
    return str(value)


def _is_true(condition: str, known: Mapping[str, Any]) -> bool:
    left, right = condition.split(" == ")
    return _look_up(left, known) == _look_up(right, known)
