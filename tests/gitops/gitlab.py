# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for GitLab: it runs the pipelines of docs/examples/gitops/gitlab as a runner does.

A job sees the variables of its environment only. A merge is a fast-forward, as the recipe requires.
Sources: "CI/CD YAML syntax reference", "Predefined CI/CD variables reference", and the REST API's pages
about notes, commits, merge request approvals, pipelines, jobs and job artifacts on docs.gitlab.com.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.gitops.forge import RECIPES, Artifact, Call, Ended, Forge, Page, Proposal

_PROJECT = "7"
_BOT = "99"
_KEYWORDS = {"workflow", "stages", "variables", "default"}
_TOKEN = "project-token"
# The longest comment (app/models/note.rb: MAX_TEXT_SIZE_LIMIT), and the answer to a longer one.
_LONGEST = 1_000_000
_TOO_LONG = (400, {"message": {"note": [f"is too long (maximum is {_LONGEST} characters)"]}})
_ROWS = 20  # of a page, unless the request says another number


class GitLab(Forge):
    """A project at GitLab with the pipeline. `environments` has the variables by environment."""

    def __init__(
        self,
        directory: Path,
        files: Mapping[str, str],
        environments: Mapping[str, Mapping[str, str]],
    ) -> None:
        super().__init__(directory, files)
        self.environments = environments
        self.pipelines: list[tuple[int, int, int]] = []  # proposal, pipeline, job
        text = (RECIPES / "gitlab" / "gitlab-ci.yml").read_text(encoding="utf-8")
        self.recipe: dict[str, Any] = yaml.safe_load(text)

    def merge(self, proposal: Proposal) -> None:
        """Merge a proposal by a fast-forward."""
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--ff-only", proposal.branch)
        proposal.merged = proposal.head

    def plan(self, proposal: Proposal) -> Ended | None:
        """Run the pipeline of a merge request; None if it is not created."""
        about = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_IID": str(proposal.number),
            "CI_MERGE_REQUEST_PROJECT_ID": _PROJECT,
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8" if proposal.is_from_fork else _PROJECT,
        }
        pipeline = self.number()
        found = self._run(f"origin/{proposal.branch}", about, pipeline)
        for artifact in self.artifacts:
            if artifact.run == pipeline:
                self.pipelines.append((proposal.number, pipeline, self.number()))
        return found[0] if found else None

    def apply(self, ref: str = "origin/main") -> Ended:
        """Run the pipeline of main."""
        about = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main"}
        return self._run(ref, about, self.number())[-1]

    def apply_waiting(self, refs: Sequence[str]) -> list[Ended | None]:
        """Run the pipelines of pushes that come while the first one runs: jobs of a resource group
        run one at a time, and those that wait in any order (process mode unordered, the default).
        """
        assert self.recipe["apply"]["resource_group"] == "production"
        first, *rest = refs
        ended = {ref: self.apply(ref) for ref in (first, *reversed(rest))}
        return [ended[ref] for ref in refs]

    def _run(self, ref: str, about: Mapping[str, str], pipeline: int) -> list[Ended]:
        """Run the jobs of a pipeline until one fails."""
        known = {**about, "CI_PROJECT_ID": _PROJECT, "CI_DEFAULT_BRANCH": "main"}
        if not _matches(self.recipe["workflow"]["rules"], known):
            return []
        jobs = {name: job for name, job in self.recipe.items() if name not in _KEYWORDS}
        order = self.recipe["stages"]
        ended: list[Ended] = []
        kept: dict[str, bytes] = {}
        for name, job in sorted(jobs.items(), key=lambda item: order.index(item[1]["stage"])):
            if not _matches(job["rules"], known):
                continue
            directory = self.clone(ref)
            if "needs" in job:
                for file, content in kept.items():
                    (directory / file).write_bytes(content)
            ended.append(self._run_job(job, directory, known))
            if ended[-1].status:
                break
            for file in job.get("artifacts", {}).get("paths", []):
                if (directory / file).exists():
                    kept[file] = (directory / file).read_bytes()
                    self.artifacts.append(Artifact(name, pipeline, kept[file]))
        return ended

    def _run_job(self, job: Mapping[str, Any], directory: Path, known: Mapping[str, str]) -> Ended:
        lines = [*self.recipe["default"]["before_script"], *job["script"]]
        environment = {
            **known,
            "CI_API_V4_URL": self.server.url,
            "CI_COMMIT_SHA": self.git("rev-parse", "HEAD", directory=directory),
            "CI_PROJECT_DIR": str(directory),
            "PLAN_API_TOKEN": _TOKEN,
            **self.environments.get(job.get("environment", {}).get("name", ""), {}),
        }
        for name, value in self.recipe["variables"].items():
            environment[name] = value.replace("$CI_PROJECT_DIR", str(directory))
        done = self.run_script("\n".join(lines), directory, environment)
        return Ended(done.returncode, done.stdout, directory)

    def answer_api(self, call: Call) -> tuple[int, Any]:
        if call.headers.get("private-token") != _TOKEN:
            return 401, {"message": "401 Unauthorized"}
        path = call.path.removeprefix(f"/projects/{_PROJECT}")
        for method, pattern, answer in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match is not None and method == call.method:
                found: tuple[int, Any] = answer(self, call, *match.groups())
                return found
        return 404, {"message": "404 Not Found"}

    def _proposal(self, number: str) -> Proposal:
        (found,) = [one for one in self.proposals if one.number == int(number)]
        return found

    def _user(self, _call: Call) -> tuple[int, Any]:
        return 200, {"id": int(_BOT)}

    def _merge_requests(self, _call: Call, sha: str) -> tuple[int, Any]:
        rows = [
            {
                "iid": one.number,
                "state": "merged",
                "sha": one.head,
                "merge_commit_sha": None,
                "squash_commit_sha": None,
            }
            for one in self.proposals
            if one.merged == sha
        ]
        return 200, rows

    def _notes(self, call: Call, number: str) -> tuple[int, Any]:
        rows = [
            {
                "id": one.number,
                "author": {"id": int(one.author)},
                "body": one.body,
                "updated_at": one.updated,
            }
            for one in self._proposal(number).comments
        ]
        return _page(call, rows)

    def _add_note(self, call: Call, number: str) -> tuple[int, Any]:
        if len(call.form["body"]) > _LONGEST:
            return _TOO_LONG
        self.comment(self._proposal(number), _BOT, call.form["body"])
        return 201, {}

    def _change_note(self, call: Call, number: str, note: str) -> tuple[int, Any]:
        if len(call.form["body"]) > _LONGEST:
            return _TOO_LONG
        comments = self._proposal(number).comments
        (comment,) = [one for one in comments if one.number == int(note)]
        comment.body, comment.updated = call.form["body"], self.now()
        return 200, {}

    def _approvals(self, _call: Call, number: str) -> tuple[int, Any]:
        proposal = self._proposal(number)
        rows = [
            {"user": {"username": "bob"}, "approved_at": time}
            for _commit, time in proposal.approvals
        ]
        return 200, {"approved_by": rows}

    def _pipelines(self, call: Call, number: str) -> tuple[int, Any]:
        rows = [
            {"id": pipeline}
            for proposal, pipeline, _job in reversed(self.pipelines)
            if proposal == int(number)
        ]
        return _page(call, rows)

    def _jobs(self, _call: Call, pipeline: str) -> tuple[int, Any]:
        rows = [
            {"id": job, "name": "plan"} for _one, run, job in self.pipelines if run == int(pipeline)
        ]
        return 200, rows

    def _file(self, _call: Call, job: str) -> tuple[int, Any]:
        (run,) = [run for _one, run, number in self.pipelines if number == int(job)]
        (file,) = [one for one in self.artifacts if one.run == run]
        return (404, {"message": "404 Not Found"}) if file.is_expired else (200, file.content)


_ROUTES: tuple[tuple[str, str, Any], ...] = (
    ("GET", r"/user", GitLab._user),
    ("GET", r"/repository/commits/(\w+)/merge_requests", GitLab._merge_requests),
    ("GET", r"/merge_requests/(\d+)/notes", GitLab._notes),
    ("POST", r"/merge_requests/(\d+)/notes", GitLab._add_note),
    ("PUT", r"/merge_requests/(\d+)/notes/(\d+)", GitLab._change_note),
    ("GET", r"/merge_requests/(\d+)/approvals", GitLab._approvals),
    ("GET", r"/merge_requests/(\d+)/pipelines", GitLab._pipelines),
    ("GET", r"/pipelines/(\d+)/jobs", GitLab._jobs),
    ("GET", r"/jobs/(\d+)/artifacts/plan.json", GitLab._file),
)


def _page(call: Call, rows: list[Any]) -> tuple[int, Page]:
    """Return a page of a list, with the number of the next one ("REST API pagination")."""
    found, following = call.page_of(rows, _ROWS)
    return 200, Page(found, {"x-next-page": str(following or "")})


def _matches(rules: list[dict[str, str]], known: Mapping[str, str]) -> bool:
    return any(all(_is_equal(part, known) for part in one["if"].split(" && ")) for one in rules)


def _is_equal(comparison: str, known: Mapping[str, str]) -> bool:
    left, right = (
        known.get(side[1:], "") if side.startswith("$") else side.strip('"')
        for side in comparison.split(" == ")
    )
    return left == right
