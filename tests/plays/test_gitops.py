# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes of docs/examples/gitops: their scripts run in bash, with a stand-in for GitHub or GitLab
and the simulated cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.demo.lab import Lab
from tests.gitops.forge import RECIPES, Artifact, Forge, Proposal
from tests.gitops.github import GitHub
from tests.gitops.gitlab import GitLab
from tests.modules.module_runner import run_module
from tests.plays.provision_helpers import machine, writes

AnyForge = GitHub | GitLab
ESTATE = """
provision_vms:
  - {name: web1, tenant: acme, pool: acme, source: debian-13, memory: %s, state: stopped}
"""


def keys() -> tuple[str, str]:
    """Return a private key and its public key, both in PEM."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def on_github(lab: Lab, directory: Path, files: dict[str, str]) -> GitHub:
    private, public = keys()
    login = {name: str(lab.environment[name]) for name in lab.environment}
    host = {"PROXMOX_HOST": login["PROXMOX_HOST"]}
    secrets = {name: login[name] for name in ("PROXMOX_TOKEN_ID", "PROXMOX_TOKEN_SECRET")}
    environments = {
        "plan": {"vars": host, "secrets": {**secrets, "PLAN_SIGNING_KEY": private}},
        "production": {"vars": {**host, "PLAN_TRUSTED_KEY": public}, "secrets": secrets},
    }
    return GitHub(directory, files, environments)


def on_gitlab(lab: Lab, directory: Path, files: dict[str, str]) -> GitLab:
    login = {name: str(value) for name, value in lab.environment.items() if "CA" not in name}
    paths = [directory / "signing.pem", directory / "trusted.pem"]
    for path, content in zip(paths, keys(), strict=True):
        path.write_text(content, encoding="utf-8")
    environments = {
        "plan": {**login, "PLAN_SIGNING_KEY": str(paths[0])},
        "production": {**login, "PLAN_TRUSTED_KEY": str(paths[1])},
    }
    return GitLab(directory, files, environments)


@pytest.fixture(params=[on_github, on_gitlab])
def forge(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path) -> Iterator[AnyForge]:
    """A repository whose estate has one VM, as it is in the cluster."""
    (tmp_path / "forge").mkdir()
    ca = Path(lab.connection["ca_path"]).read_text(encoding="utf-8")
    files = {
        "estate.yml": ESTATE % "1G",
        "pve-root-ca.pem": ca,
        "requirements.txt": "",
        "requirements.yml": "",
    }
    options = {**yaml.safe_load(ESTATE % "1G")["provision_vms"][0], "name": "web1"}
    run_module("vm", {**lab.connection, **options})
    made = request.param(lab, tmp_path / "forge", files)
    yield made
    made.server.stop()


def memory(lab: Lab) -> str:
    return str(lab.config(machine(lab, "web1"))["memory"])


def proposed(forge: AnyForge, size: str) -> Proposal:
    """Propose another memory size, and plan it."""
    proposal = forge.propose(f"size-{size}", {"estate.yml": ESTATE % size})
    planned = forge.plan(proposal)
    assert planned is not None
    planned.expect()
    return proposal


def test_the_plan_that_was_approved_is_applied(forge: AnyForge, lab: Lab) -> None:
    mark = lab.mark()
    proposal = proposed(forge, "2G")
    assert writes(lab, mark) == []
    (comment,) = proposal.comments
    assert "~ acme/web1  memory 1G -> 2G" in comment.body
    digest = json.loads(forge.artifacts[-1].content)["digest"]
    assert f"Digest: `{digest}`" in comment.body
    forge.approve(proposal)
    forge.merge(proposal)
    mark = lab.mark()
    applied = forge.apply().expect()
    assert "Done: 1 changed" in applied.output
    assert len(writes(lab, mark)) == 1
    assert memory(lab) == "2048"

    mark = lab.mark()
    again = forge.apply().expect()
    assert "Done: 1 unchanged" in again.output
    assert writes(lab, mark) == []


def test_an_estate_that_changed_after_the_approval_is_refused(forge: AnyForge, lab: Lab) -> None:
    proposal = proposed(forge, "2G")
    forge.approve(proposal)
    forge.merge(proposal)
    web = machine(lab, "web1")
    lab.call("PUT", f"/nodes/{web.node}/qemu/{web.vmid}/config", memory=4096)
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status != 0
    assert (
        "is not the approved one: changed since it was planned: memory 1G -> 4G" in refused.output
    )
    assert writes(lab, mark) == []


def test_an_unchanged_plan_has_no_comment_and_needs_no_approval(forge: AnyForge, lab: Lab) -> None:
    proposal = forge.propose("readme", {"README.md": "The estate"})
    assert "The plan changes nothing" in forge.plan(proposal).expect().output  # type: ignore[union-attr]
    assert proposal.comments == []
    forge.merge(proposal)
    mark = lab.mark()
    assert "so nothing may change" in forge.apply().expect().output or isinstance(forge, GitLab)
    web = machine(lab, "web1")
    lab.call("PUT", f"/nodes/{web.node}/qemu/{web.vmid}/config", memory=4096)
    refused = forge.apply()
    assert refused.status == 1
    assert "no plan was approved, and there are changes" in refused.output
    assert len(writes(lab, mark)) == 1  # by the test


def test_a_plan_that_is_newer_than_the_approval_is_refused(forge: AnyForge, lab: Lab) -> None:
    proposal = proposed(forge, "2G")
    forge.approve(proposal)
    forge.push(proposal, {"estate.yml": ESTATE % "3G"})
    forge.plan(proposal)
    (comment,) = proposal.comments  # the same one, with the other plan
    assert "memory 1G -> 3G" in comment.body
    forge.merge(proposal)
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status == 1
    assert "no one approved" in refused.output
    forge.approve(proposal)
    forge.apply().expect()
    assert len(writes(lab, mark)) == 1
    assert memory(lab) == "3072"


def test_a_pull_request_from_a_fork_is_not_planned(forge: AnyForge, lab: Lab) -> None:
    files = {"estate.yml": ESTATE % "8G"}
    proposal = forge.propose("fork", files, is_from_fork=True)
    assert forge.plan(proposal) is None
    forge.merge(proposal)
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status == 1
    assert "no plan was approved, and there are changes" in refused.output
    assert writes(lab, mark) == []


def test_a_file_that_was_not_reviewed_is_not_applied(forge: AnyForge, lab: Lab) -> None:
    """Neither an artifact with another content, nor a plan that a comment of another user names."""
    proposal = proposed(forge, "2G")
    reviewed = forge.artifacts[-1]
    forge.push(proposal, {"estate.yml": ESTATE % "8G"})
    other = json.loads(reviewed.content)
    forged = forge.comment(proposal, "1", proposal.comments[0].body.replace("2G", "3G"))
    forge.plan(proposal)
    forge.approve(proposal)
    forge.merge(proposal)
    assert forged.body != proposal.comments[0].body
    newest = forge.artifacts[-1]
    assert json.loads(newest.content)["digest"] != other["digest"]
    forge.artifacts[-1] = Artifact(newest.name, newest.run, reviewed.content)
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status == 1
    assert "Nothing was applied" in refused.output
    assert writes(lab, mark) == []


def test_a_plan_for_another_version_of_the_estate_is_refused(forge: AnyForge, lab: Lab) -> None:
    """A merge that GitHub allows if branches need not be up to date."""
    if isinstance(forge, GitLab):
        pytest.skip("a fast-forward cannot have another version")
    proposal = proposed(forge, "2G")
    forge.approve(proposal)
    other = forge.propose("other", {"README.md": "The estate"})
    forge.merge(other)
    forge.merge(proposal)
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status == 1
    assert "is for another version of the estate" in refused.output
    assert writes(lab, mark) == []


def test_a_plan_by_another_key_is_refused(forge: AnyForge, lab: Lab) -> None:
    proposal = proposed(forge, "2G")
    forge.approve(proposal)
    forge.merge(proposal)
    trust_another_key(forge)
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status == 2
    assert "its signature is not by the key" in refused.output
    assert lab.requests_since(mark) == []


def test_a_comment_on_a_later_page_is_found(forge: AnyForge, lab: Lab) -> None:
    """GitHub has 30 comments on a page, GitLab 20 notes or pipelines, or up to 100 if asked."""
    proposal = forge.propose("size", {"estate.yml": ESTATE % "2G"})
    for _number in range(130):
        forge.comment(proposal, "1", "What is this?")
    assert forge.plan(proposal) is not None
    forge.push(proposal, {"estate.yml": ESTATE % "3G"})
    planned = forge.plan(proposal)
    assert planned is not None
    planned.expect()
    (comment,) = proposal.comments[130:]
    assert "memory 1G -> 3G" in comment.body
    for _number in range(40):
        forge.approve(proposal)
    forge.merge(proposal)
    assert "Done: 1 changed" in forge.apply().expect().output
    assert memory(lab) == "3072"


def test_a_plan_that_is_too_long_for_a_comment_is_shortened(forge: AnyForge, lab: Lab) -> None:
    common = {"tenant": "acme", "source": "debian-13", "memory": "64M", "description": "x" * 8000}
    guests = [
        {**common, "name": f"new{number}"}
        for number in range(10 if isinstance(forge, GitHub) else 130)
    ]
    text = yaml.safe_dump({"provision_vms": guests})
    planned = forge.plan(forge.propose("many", {"estate.yml": text}))
    assert planned is not None
    planned.expect()
    (comment,) = forge.proposals[-1].comments
    assert "The plan is too long for a comment" in comment.body
    assert f"+ acme/new{len(guests) - 1}" in comment.body
    digest = json.loads(forge.artifacts[-1].content)["digest"]
    assert comment.body.endswith(f"\nDigest: `{digest}`\n")
    assert len(comment.body) < 60000


def test_a_plan_whose_file_has_expired_is_not_applied(forge: AnyForge, lab: Lab) -> None:
    """GitHub lists an expired artifact as such, and GitLab answers 404 for its file."""
    proposal = proposed(forge, "2G")
    forge.approve(proposal)
    forge.merge(proposal)
    forge.artifacts[:] = [replace(one, is_expired=True) for one in forge.artifacts]
    mark = lab.mark()
    refused = forge.apply()
    assert refused.status == 1
    assert "expired" in refused.output
    assert lab.requests_since(mark) == []


def test_merges_that_come_while_another_one_is_applied(forge: AnyForge, lab: Lab) -> None:
    """GitHub cancels the second of three jobs: the third plan, which was made after the second merge,
    has its change. GitLab may run the third before the second, whose plan then has no effect.
    """
    refs = []
    for size in ("2G", "3G", "4G"):
        proposal = proposed(forge, size)
        forge.approve(proposal)
        forge.merge(proposal)
        refs.append(proposal.merged)
    first, second, third = forge.apply_waiting(refs)
    assert first is not None
    assert third is not None
    assert "Done: 1 changed" in first.expect().output
    assert third.status == 2
    assert "changed since it was planned: memory 1G -> 2G" in third.output
    if isinstance(forge, GitHub):
        assert second is None
    else:
        assert second is not None
        assert second.status == 2
    assert memory(lab) == "2048"


def trust_another_key(forge: Forge) -> None:
    public = keys()[1]
    if isinstance(forge, GitHub):
        production = dict(forge.environments["production"])
        production["vars"] = {**production["vars"], "PLAN_TRUSTED_KEY": public}
        forge.environments = {**forge.environments, "production": production}
    else:
        (forge.directory / "trusted.pem").write_text(public, encoding="utf-8")


@pytest.mark.parametrize(
    ("recipe", "schema"),
    [
        ("github/plan.yml", "github-workflows"),
        ("github/apply.yml", "github-workflows"),
        ("gitlab/gitlab-ci.yml", "gitlab-ci"),
    ],
)
def test_a_recipe_has_the_form_that_its_forge_reads(recipe: str, schema: str) -> None:
    """The schemas of the SchemaStore and of GitLab, which the package check-jsonschema contains."""
    package = find_spec("check_jsonschema")
    if package is None or package.origin is None:
        pytest.skip("check-jsonschema is not in the environment of this Python")
    place = Path(package.origin).parent / "builtin_schemas" / "vendor" / f"{schema}.json"
    content = yaml.safe_load((RECIPES / recipe).read_text(encoding="utf-8"))
    jsonschema.validate(content, json.loads(place.read_text(encoding="utf-8")))
