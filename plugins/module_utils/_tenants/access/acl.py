# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the rights on a path (pve-access-control: API2/ACL.pm)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.resource.change import DesiredResource
from ..._foundation.resource.table import Call, Key, Members, Table
from .checks.acl_check import precheck_acl
from .grants import SUBJECTS, Grant, batches, read_grant, want_grant, want_path
from .own_loss import find_acl_loss


def read_grants(answer: Mapping[str, Any]) -> frozenset[Grant]:
    """Return the entries of one path."""
    return frozenset(read_grant(row) for row in answer["entries"])


def show_grant(grant: Grant) -> dict[str, Any]:
    """Return an entry in the form of the option; its other kinds of subjects are null."""
    subject = {kind: grant.who if kind == grant.kind else None for kind in SUBJECTS}
    return {**subject, "role": grant.role, "propagate": grant.propagate}


def _require_no_contradiction(_client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises ValidationFailed for exact with state=absent."""
    if desired.exact and not desired.present:
        raise ValidationFailed(
            attempted="exact was refused",
            answer="with state=absent the grants that are listed are taken away, not the others",
            next_step="Leave out exact, or set state=present",
            reason="exact",
        )
    return desired


def _of_path(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any]:
    rows = [row for row in answer or [] if row["path"] == keys["path"]]
    return {"path": keys["path"], "entries": rows}


def _by_path(answer: Any, _keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    paths = {str(row["path"]) for row in answer or []}
    return [_of_path(answer, {"path": path}) for path in sorted(paths)]


ACL = Table(
    kind="acl",
    label_as="the rights on '{path}'",
    keys=(Key("path", "path", want_path),),
    fields=(),
    members=(
        Members(
            "grants",
            "roles",
            "role",
            want_grant,
            read_grants,
            identity=lambda grant: grant[:3],
            show=show_grant,
            text=Grant.text,
            batches=batches,
        ),
    ),
    permanent=True,
    read_call=Call(("access", "acl")),
    update_call=Call(("access", "acl"), {"path": "{path}"}),
    pick=_of_path,
    rows=_by_path,
    resolve=_require_no_contradiction,
    precheck=precheck_acl,
    guard=find_acl_loss,
)
