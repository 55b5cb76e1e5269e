# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create and change the objects of an organization in AWX; only for the playbook awx_setup.

The modules of awx.awx look up each name that a task has, some 700 requests for one tenant. This
action lists the objects of an organization once, by type, and writes only the differences. It uses
the client of awx.awx, and runs on the controller, so a task does not show secrets.

Arguments: `connection`, `organization`, `objects` (in the order of their creation), `secrets`
(by type and name), `grants` and `members`. The file scope.yml has examples.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.awx.awx.plugins.module_utils.controller_api import ControllerAPIModule

ARGUMENTS = {
    "organization": {"type": "str"},
    "objects": {"type": "list", "elements": "dict", "default": []},
    "grants": {"type": "list", "elements": "dict", "default": []},
    "members": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}},
}
# The query for the objects of an organization, by type. Other types are looked up by their names.
LISTINGS = {
    "teams": "organization",
    "labels": "organization",
    "credentials": "organization",
    "notification_templates": "organization",
    "projects": "organization",
    "inventories": "organization",
    "inventory_sources": "inventory__organization",
    "job_templates": "organization",
    "workflow_job_templates": "organization",
    "workflow_job_template_nodes": "workflow_job_template__organization",
    "schedules": "unified_job_template__organization",
}
# Fields with the name of another object, and the types of this object.
REFERENCES = {
    "organization": ("organizations",),
    "credential_type": ("credential_types",),
    "credential": ("credentials",),
    "default_environment": ("execution_environments",),
    "project": ("projects",),
    "source_project": ("projects",),
    "inventory": ("inventories",),
    "workflow_job_template": ("workflow_job_templates",),
    "unified_job_template": ("job_templates", "workflow_job_templates"),
}
# The field that, with the name, identifies an object in its organization.
OWNERS = {
    "credentials": "credential_type",
    "inventory_sources": "inventory",
    "workflow_job_template_nodes": "workflow_job_template",
    "schedules": "unified_job_template",
}
IDENTITIES = {"users": "username", "workflow_job_template_nodes": "identifier"}
SECRETS = {"credentials": "inputs", "notification_templates": "notification_configuration"}
# Fields that are not set if they are empty.
OPTIONAL = ("credential", "default_environment", "timeout", "source_vars", "enabled", "inputs")
NODE_LINKS = ("success_nodes", "failure_nodes", "always_nodes")
SECONDS_OF_UPDATE = 900
CHECKED_ID = 0  # the ID of an object that check mode does not create


class ActionModule(ActionBase):  # type: ignore[misc]
    """The action awx_objects."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        given = dict(self._task.args)
        spec = {**ControllerAPIModule.AUTH_ARGSPEC, **ARGUMENTS}
        checked = ArgumentSpecValidator(spec).validate({**given.pop("connection", {}), **given})
        if checked.error_messages:
            raise AnsibleActionFail("; ".join(checked.error_messages))
        arguments = checked.validated_parameters
        setup = Setup(arguments, self._task.check_mode)
        try:
            for wanted in arguments["objects"]:
                setup.set_object(wanted)
            for team, users in arguments["members"].items():
                setup.set_members(team, users)
            for grant in arguments["grants"]:
                setup.set_grants(grant)
        finally:
            setup.client.logout()
        text = "".join(f"{change}\n" for change in setup.changes)
        diff = {"before": "", "after": text}
        return {"changed": bool(setup.changes), "changes": setup.changes, "diff": diff}


class Setup:
    """The objects of an organization: what AWX has, and the changes of this run."""

    def __init__(self, arguments: Mapping[str, Any], check_mode: bool) -> None:
        self.organization = arguments["organization"]
        self.secrets = arguments["secrets"]
        self.check_mode = check_mode
        self.changes: list[str] = []
        self.listed: dict[str, list[dict[str, Any]]] = {}
        self.named: dict[tuple[str, str], dict[str, Any]] = {}
        self.roles: dict[int, set[str]] = {}
        self.client = ControllerAPIModule(
            argument_spec={},
            direct_params={name: arguments[name] for name in ControllerAPIModule.AUTH_ARGSPEC},
            error_callback=self._fail,
            warn_callback=Display().warning,
        )

    def _fail(self, msg: object = "", **_unused: Any) -> None:
        done = "Nothing was changed in this organization"
        if self.changes and not self.check_mode:
            done = f"Done before: {', '.join(self.changes)}"
        raise AnsibleActionFail(
            f"{str(msg).rstrip('.')}. {done}. Correct the cause, and run awx_setup again"
        )

    # Reads.

    def _get_all(self, path: str, **query: object) -> list[dict[str, Any]]:
        answer = self.client.get_all_endpoint(path, data={**query, "page_size": 200})
        return list(answer["json"]["results"])

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        """Return the objects of a type in the organization, which are listed once."""
        if kind in self.listed:
            return self.listed[kind]
        rows: list[dict[str, Any]] = []
        if kind == "organizations":
            rows = self._get_all(kind, name=self.organization)
        elif kind in LISTINGS and self.organization is not None:
            owner = self._find("organizations", self.organization)
            # A new organization has no objects yet.
            if owner is not None and not owner.get("is_new"):
                rows = self._get_all(kind, **{LISTINGS[kind]: owner["id"]})
        self.listed[kind] = rows
        return rows

    def _find(self, kind: str, name: str, owner: int | None = None) -> dict[str, Any] | None:
        identity = IDENTITIES.get(kind, "name")
        for row in self._rows(kind):
            if row[identity] == name and owner in (None, row.get(OWNERS.get(kind, ""))):
                return row
        return None

    def _get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object of the organization, or the only object of this name."""
        row = self._find(kind, name) or self.named.get((kind, name))
        if row is None:
            found = self._get_all(kind, name=name)
            if len(found) != 1 and not (self.check_mode and not found):
                number = len(found) or "no"
                self._fail(f"AWX has {number} {kind} with the name '{name}', instead of one")
            row = self.named[kind, name] = found[0] if found else {"id": CHECKED_ID}
        return row

    def _id(self, kinds: Iterable[str], name: str) -> int:
        kinds = list(kinds)
        for kind in kinds:
            row = self._find(kind, name)
            if row is not None:
                return int(row["id"])
        return int(self._get(kinds[0], name)["id"])

    # Writes.

    def _write(self, method: str, path: str, data: Any, change: str) -> dict[str, Any]:
        """Send a write, unless this is check mode, and return the answer."""
        if not self.check_mode:
            answer = self.client.make_request(method, path, data=data)
            if answer["status_code"] >= 400:
                self._fail(f"{change} failed: {without_secrets(answer, data)}")
            self.changes.append(change)
            return dict(answer["json"] or {})
        self.changes.append(change)
        return {}

    def set_object(self, wanted: dict[str, Any]) -> None:
        """Create or change an object, with its links and its survey.

        A workflow keeps only the nodes that it lists.
        """
        kind, name = wanted["type"], wanted["name"]
        fields = self._fields(wanted)
        row = self._find(kind, name, fields.get(OWNERS.get(kind, "")))
        if row is None and kind not in LISTINGS and kind != "organizations":
            found = self._get_all(kind, name=name)
            row = found[0] if found else None
        word = kind.replace("inventories", "inventory").removesuffix("s").replace("_", " ")
        label = f"{word} '{name}'"
        if row is None:
            row = self._create(kind, fields, label)
        else:
            self._change(row, fields, wanted, label)
        if kind == "workflow_job_template_nodes" and wanted.get("approval"):
            self._set_approval(row, wanted["approval"], label)
        if "nodes" in wanted:
            self._remove_nodes(row, wanted["nodes"], label)
        for link, names in wanted.get("links", {}).items():
            self._set_links(row, link, names, label)
        if "survey" in wanted:
            self._set_survey(row, wanted["survey"], label)

    def _remove_nodes(self, workflow: Mapping[str, Any], kept: list[str], label: str) -> None:
        """Remove the other nodes of a workflow, as AWX removes the links to them."""
        rows = self._rows("workflow_job_template_nodes")
        own = [row for row in rows if row["workflow_job_template"] == workflow["id"]]
        for node in [row for row in own if row["identifier"] not in kept]:
            self._write("DELETE", node["url"], {}, f"Remove node '{node['identifier']}' of {label}")
            rows.remove(node)
            for other in rows:
                for link in NODE_LINKS:
                    other[link] = [one for one in other.get(link, []) if one != node["id"]]

    def _fields(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return the values to send: IDs instead of names, texts instead of variables."""
        kind, name = wanted["type"], wanted["name"]
        fields = {IDENTITIES.get(kind, "name"): name}
        given = dict(wanted.get("fields", {}))
        if name in self.secrets.get(kind, {}):
            given[SECRETS[kind]] = self.secrets[kind][name]
        for key, value in given.items():
            if key in OPTIONAL and value in (None, "", {}):
                continue
            if key in REFERENCES:
                value = self._id(REFERENCES[key], value)
            elif key == "timeout":
                value = int(value)
            elif key in ("extra_vars", "source_vars"):
                value = json.dumps(value)
            fields[key] = value
        return fields

    def _create(self, kind: str, fields: dict[str, Any], label: str) -> dict[str, Any]:
        answer = self._write("POST", kind, fields, f"Create {label}")
        if kind == "projects":
            self._await_project(answer, label)
        row = {"id": CHECKED_ID, **fields, **answer, "is_new": True}
        self._rows(kind).insert(0, row)
        return row

    def _change(
        self, row: dict[str, Any], fields: dict[str, Any], wanted: dict[str, Any], label: str
    ) -> None:
        keeps = bool(wanted.get("keep_secrets", True))
        other = [key for key, new in fields.items() if not is_same(key, row.get(key), new, keeps)]
        if not other:
            return
        change = f"Change {label}: {', '.join(sorted(other))}"
        answer = self._write("PATCH", row["url"], fields, change)
        if wanted["type"] == "projects":
            self._await_project(answer, label)
        row.update(answer)

    def _await_project(self, answer: Mapping[str, Any], label: str) -> None:
        """Wait for the update of a project: a job template needs its playbooks."""
        update = answer.get("summary_fields", {}).get("current_update")
        for _remaining in range(SECONDS_OF_UPDATE if update else 0):
            status = self.client.get_endpoint(f"project_updates/{update['id']}")["json"]["status"]
            if status == "successful":
                return
            if self.client.is_job_done(status):
                self._fail(f"The update of {label} ended as {status}: see its output in AWX")
            time.sleep(1)
        if update:
            self._fail(f"Timed out after {SECONDS_OF_UPDATE} s waiting for the update of {label}")

    def _set_approval(self, row: dict[str, Any], approval: dict[str, Any], label: str) -> None:
        """Create or change the approval of a node of a workflow."""
        fields = {**approval, "timeout": int(approval["timeout"])}
        url = row.get("related", {}).get("unified_job_template")
        if url is None:
            path = f"workflow_job_template_nodes/{row['id']}/create_approval_template"
            self._write("POST", path, fields, f"Create the approval of {label}")
            return
        found = self.client.get_endpoint(url)["json"]
        if any(found.get(key) != value for key, value in fields.items()):
            self._write("PATCH", url, fields, f"Change the approval of {label}")

    def _set_links(self, row: dict[str, Any], link: str, names: list[str], label: str) -> None:
        """Set the objects that are linked to an object: exactly these."""
        wanted = [self._linked_id(row, link, name) for name in names]
        existing = self._linked(row, link)
        is_ordered = link == "galaxy_credentials"
        if existing == wanted or (not is_ordered and set(existing) == set(wanted)):
            return
        removed = existing if is_ordered else [one for one in existing if one not in wanted]
        path = f"{row.get('url')}{link}/"
        for number in removed:
            data = {"id": number, "disassociate": True}
            self._write("POST", path, data, f"Remove one of {link} of {label}")
        for number in wanted:
            if is_ordered or number not in existing:
                self._write("POST", path, {"id": number}, f"Add one of {link} to {label}")

    def _linked_id(self, row: Mapping[str, Any], link: str, name: str) -> int:
        """Return the ID of an object to link; a node belongs to the same workflow."""
        if link in NODE_LINKS:
            node = self._find("workflow_job_template_nodes", name, row["workflow_job_template"])
            if node is None:
                self._fail(f"The workflow has no node '{name}'")
            return int((node or {})["id"])
        if link.startswith("notification_templates"):
            return self._id(["notification_templates"], name)
        return self._id(["credentials" if link == "galaxy_credentials" else link], name)

    def _linked(self, row: dict[str, Any], link: str) -> list[int]:
        """Return the IDs of the objects that are linked to an object."""
        if row.get("is_new"):
            return []
        if link in NODE_LINKS:
            return list(row[link])
        summary = row["summary_fields"].get(link)
        if link == "labels" and summary and summary["count"] != len(summary["results"]):
            summary = None  # AWX summarizes ten labels
        if summary is None:
            return [one["id"] for one in self._get_all(f"{row['url']}{link}/")]
        return [one["id"] for one in (summary["results"] if link == "labels" else summary)]

    def _set_survey(self, row: dict[str, Any], survey: dict[str, Any], label: str) -> None:
        path = f"{row.get('url')}survey_spec/"
        existing = {} if row.get("is_new") else self.client.get_endpoint(path)["json"]
        if existing == survey:
            return
        if survey:
            self._write("POST", path, survey, f"Set the survey of {label}")
        else:
            self._write("DELETE", path, {}, f"Remove the survey of {label}")

    # Rights.

    def set_members(self, team: str, users: list[str]) -> None:
        """Set the users of a team: exactly these."""
        if not users and self._find("teams", team) is None:
            return
        row = self._get("teams", team)
        existing: dict[str, int] = {}
        if row["id"] != CHECKED_ID and not row.get("is_new"):
            members = self._get_all(f"teams/{row['id']}/users")
            existing = {one["username"]: one["id"] for one in members}
        added = [name for name in users if name not in existing]
        known = self._get_all("users", username__in=",".join(added)) if added else []
        for user in known:
            change = f"Add user '{user['username']}' to team '{team}'"
            self._write("POST", f"{role_of(row, 'member')}users/", {"id": user["id"]}, change)
        for name in sorted(existing.keys() - set(users)):
            data = {"id": existing[name], "disassociate": True}
            change = f"Remove user '{name}' from team '{team}'"
            self._write("POST", f"{role_of(row, 'member')}users/", data, change)

    def set_grants(self, grant: dict[str, Any]) -> None:
        """Grant a team a role on objects of one type, or revoke it."""
        team = self._get("teams", grant["team"])
        is_present = grant.get("state") != "absent"
        for name in grant["names"]:
            row = self._get(grant["type"], name)
            path = role_of(row, grant["role"])
            if (path in self._roles_of(team)) == is_present:
                continue
            data = {"id": team["id"]} if is_present else {"id": team["id"], "disassociate": True}
            verb = "Grant" if is_present else "Revoke"
            change = f"{verb} role {grant['role']} on '{name}' for team '{grant['team']}'"
            self._write("POST", f"{path}teams/", data, change)

    def _roles_of(self, team: dict[str, Any]) -> set[str]:
        """Return the paths of the roles that a team has, which are listed once."""
        number = team["id"]
        if number not in self.roles:
            is_old = number != CHECKED_ID and not team.get("is_new")
            found = self._get_all(f"teams/{number}/roles") if is_old else []
            self.roles[number] = {f"roles/{one['id']}/" for one in found}
        return self.roles[number]


def without_secrets(answer: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return an error of AWX without the secrets of the request."""
    text = str(answer.get("json", answer.get("text")))
    for field in SECRETS.values():
        for value in (data.get(field) or {}).values():
            if value and isinstance(value, str):
                text = text.replace(value, "********")
    return text


def role_of(row: Mapping[str, Any], role: str) -> str:
    """Return the path of a role; check mode does not create the object, so the path has no ID."""
    roles = row.get("summary_fields", {}).get("object_roles", {})
    return f"roles/{roles.get(f'{role}_role', {}).get('id')}/"


def is_same(key: str, old: Any, new: Any, keeps_secrets: bool) -> bool:
    """Return whether a value is as desired: AWX hides secrets, and notifications have defaults."""
    if old == ControllerAPIModule.ENCRYPTED_STRING:
        return keeps_secrets
    if key in SECRETS.values() and isinstance(old, dict):
        if key == "inputs" and old.keys() != new.keys():
            return False
        return all(is_same("", old.get(name), new[name], keeps_secrets) for name in new)
    return bool(old == new)
