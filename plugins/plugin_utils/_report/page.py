# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report, and a record of drills, as one page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ...module_utils._foundation.core.formatting import printable
from .formatting import FILTERS
from .view import spark, view_of

_TEMPLATES = Path(__file__).resolve().parent


def page_of(report: Mapping[str, Any], title: str) -> str:
    """Return the page. It needs neither network nor script, and every text in it is escaped."""
    page = _template("page.html.j2").render(report=report, view=view_of(report), title=title)
    return printable(page)


def drill_page_of(record: Mapping[str, Any], title: str) -> str:
    """Return the page of a record of drills, with the properties of `page_of`."""
    page = _template("drill.html.j2").render(record=record, title=title)
    return printable(page)


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(FILTERS)
    environment.filters["spark"] = spark
    return environment.get_template(name)
