# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The mark of a tenant in the comment of a pool, group, user or token (pure).

The mark is at the end of the comment: C([pve.fleet: tenant=tenant_acme]).
"""

from __future__ import annotations

import re

_MARK = re.compile(r"\[pve\.fleet: tenant=([^\s\[\]]+)\]\s*\Z")


def marked_tag(comment: object) -> str | None:
    """Return the tag of the tenant in the mark of a comment, or None."""
    found = _MARK.search(str(comment or ""))
    if found is None:
        return None
    return found[1]


def without_mark(comment: object) -> str:
    """Return a comment without the mark."""
    return _MARK.sub("", str(comment or "")).rstrip()


def with_mark(text: object, tag: str) -> str:
    """Return a comment with the mark of the tenant instead of any other mark."""
    return f"{without_mark(text)} [pve.fleet: tenant={tag}]".lstrip()


def keep_mark(known: str, wanted: str) -> str:
    """Return the comment after a change: its mark stays unless the new comment has a mark."""
    tag = marked_tag(known)
    if tag is None or marked_tag(wanted) is not None:
        return wanted
    return with_mark(wanted, tag)
