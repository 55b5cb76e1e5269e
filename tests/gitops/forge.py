# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stand-ins for GitHub and GitLab have in common: a repository, requests to merge a branch,
comments, approvals and artifacts. The recipes of docs/examples/gitops run in them.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.gitops import play_program
from tests.plays.commands import run

RECIPES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "gitops"
_OWN = {key: value for key, value in os.environ.items() if not key.startswith("PROXMOX_")}
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.com"))
}


@dataclass(frozen=True)
class Ended:
    """A job that has ended."""

    status: int
    output: str
    directory: Path

    def expect(self, status: int = 0) -> Ended:
        assert self.status == status, self.output
        return self


@dataclass
class Comment:
    """A comment, with the author's number and the time of its last change."""

    number: int
    author: str
    body: str
    updated: str


@dataclass
class Proposal:
    """A pull request or merge request: its branch, and what people and jobs added to it."""

    number: int
    branch: str
    head: str
    is_from_fork: bool = False
    merged: str = ""
    comments: list[Comment] = field(default_factory=list)
    approvals: list[tuple[str, str]] = field(default_factory=list)  # commit and time


@dataclass(frozen=True)
class Artifact:
    """A file that a job has kept, with the run of the job."""

    name: str
    run: int
    content: bytes
    is_expired: bool = False


class Forge:
    """A repository with its proposals. Its clock advances with each change."""

    def __init__(self, directory: Path, files: Mapping[str, str]) -> None:
        self.directory = directory
        self.work = directory / "work"
        self.proposals: list[Proposal] = []
        self.artifacts: list[Artifact] = []
        self._numbers = itertools.count(1)
        self._seconds = itertools.count(1)
        self.server = Server(self.answer)
        self.work.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit(files)

    def git(self, *arguments: str, directory: Path | None = None) -> str:
        """Run git without the configuration of the user, and return its output."""
        nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=directory or self.work,
            env={**os.environ, **_AUTHOR, **nothing},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def number(self) -> int:
        """Return a number that nothing else has."""
        return next(self._numbers)

    def now(self) -> str:
        """Return a time after every earlier time."""
        return f"2026-11-29T10:{next(self._seconds):02}:00Z"

    def commit(self, files: Mapping[str, str]) -> str:
        """Commit files to the branch that is checked out, and return the commit."""
        for name, content in files.items():
            (self.work / name).write_text(content, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Change the estate")
        return self.git("rev-parse", "HEAD")

    def propose(
        self, branch: str, files: Mapping[str, str], *, is_from_fork: bool = False
    ) -> Proposal:
        """Push a branch with changed files, and open a request to merge it."""
        self.git("checkout", "--quiet", "-b", branch, "main")
        head = self.commit(files)
        proposal = Proposal(self.number(), branch, head, is_from_fork)
        self.proposals.append(proposal)
        return proposal

    def push(self, proposal: Proposal, files: Mapping[str, str]) -> None:
        """Push another commit to the branch of a proposal."""
        self.git("checkout", "--quiet", proposal.branch)
        proposal.head = self.commit(files)

    def approve(self, proposal: Proposal) -> None:
        """Approve the newest commit of a proposal."""
        proposal.approvals.append((proposal.head, self.now()))

    def merge(self, proposal: Proposal) -> None:
        """Merge a proposal with a merge commit."""
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", proposal.branch)
        proposal.merged = self.git("rev-parse", "HEAD")

    def clone(self, ref: str) -> Path:
        """Return a new directory with the files of a commit or a branch."""
        directory = self.directory / f"job-{self.number()}"
        self.git("clone", "--quiet", str(self.work), str(directory), directory=self.directory)
        self.git("checkout", "--quiet", "--detach", ref, directory=directory)
        return directory

    def merged_tree(self, proposal: Proposal) -> Path:
        """Return a new directory with the result of a merge, as GitHub keeps it for each proposal."""
        directory = self.clone("origin/main")
        merge = ("merge", "--quiet", "--no-ff", "--message", "Merge", f"origin/{proposal.branch}")
        self.git(*merge, directory=directory)
        return directory

    def comment(self, proposal: Proposal, author: str, body: str) -> Comment:
        """Add a comment."""
        made = Comment(self.number(), author, body, self.now())
        proposal.comments.append(made)
        return made

    def run_script(
        self, script: str, directory: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a script with bash as a runner does. What a runner installs is installed already."""
        programs = self.directory / "programs"
        if not programs.exists():
            programs.mkdir()
            self.add_programs(programs)
        file = self.directory / f"script-{self.number()}.sh"
        file.write_text(script, encoding="utf-8")
        place = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(file)],
            cwd=directory,
            env={**_OWN, **environment, "PATH": place, "FORGE": self.server.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def add_programs(self, directory: Path) -> None:
        """Write the programs that the scripts find before those of the system."""
        for name in ("pip", "ansible-galaxy", "apt-get"):
            add_program(directory / name, "#!/bin/sh\nexit 0\n")
        play = f'#!/bin/sh\nexec {sys.executable} -S -E {play_program.__file__} "$@"\n'
        add_program(directory / "ansible-playbook", play)

    def answer(self, call: Call) -> tuple[int, Any]:
        """Return the status and the value of a request."""
        if call.path == "/ansible-playbook":
            return 200, _play(json.loads(call.form["command"]))
        return self.answer_api(call)

    def answer_api(self, call: Call) -> tuple[int, Any]:
        """Return the status and the value of a request to the API."""
        raise NotImplementedError


def _play(command: Mapping[str, Any]) -> dict[str, Any]:
    """Run ansible-playbook with the login of a job, in the quick way of the tests."""
    given = {key: value for key, value in command["environment"].items() if "PROXMOX" in key}
    directory = Path(command["directory"])
    quiet = {"PWD": str(directory), "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}
    done = run(["ansible-playbook", *command["arguments"]], directory, {**_OWN, **quiet, **given})
    return {"status": done.returncode, "output": done.stdout + done.stderr}


def add_program(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)


class Server:
    """Serves the API of a forge on a free port. `answer` returns the status and the value."""

    def __init__(self, answer: Callable[[Call], tuple[int, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def handle_call(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                place = urlsplit(self.path)
                call = Call(
                    self.command,
                    place.path,
                    dict(parse_qsl(place.query)),
                    dict(parse_qsl(self.rfile.read(length).decode())),
                    {name.lower(): value for name, value in self.headers.items()},
                )
                status, value = answer(call)
                headers = {}
                if isinstance(value, Page):
                    headers = value.headers
                    value = value.rows
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = handle_call

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass(frozen=True)
class Page:
    """A page of a list, with the headers that lead to the next one."""

    rows: list[Any]
    headers: dict[str, str]


@dataclass(frozen=True)
class Call:
    """A request to the API of a forge."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]

    def page_of(self, rows: list[Any], default: int) -> tuple[list[Any], int]:
        """Return the page of a list that the request asks for, and the number of the next page, 0
        if it is the last one. Both forges have pages of at most 100.
        """
        size = min(int(self.query.get("per_page", default)), 100)
        number = int(self.query.get("page", 1))
        end = number * size
        return rows[end - size : end], number + 1 if end < len(rows) else 0
