# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the pictures of the guides from their sources: ``python -m tests.tools.pictures``.

`tests/tools/pictures/NAME.yml` becomes `docs/NAME.svg`. A test fails while one differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

from tests.tools.pictures.layout import WIDTH, Arrow, Picture, laid_out
from tests.tools.stage import REPO

HERE = Path(__file__).resolve().parent
DOCS = REPO / "docs"
SOURCES = sorted(HERE.glob("*.yml"))
# The width of a picture on a wide screen. Its own coordinates fit a narrow screen.
SHOWN_WIDTH = 600


def main() -> int:
    """Write every picture; return the exit status."""
    for source in SOURCES:
        place_of(source).write_text(drawn(load(source)), encoding="utf-8")
        print(f"{place_of(source).relative_to(REPO)} is drawn")
    return 0


def place_of(source: Path) -> Path:
    """Return the file of the picture of a source."""
    return DOCS / f"{source.stem}.svg"


def load(source: Path) -> Mapping[str, Any]:
    """Return a source."""
    loaded: Mapping[str, Any] = yaml.safe_load(source.read_text(encoding="utf-8"))
    return loaded


def drawn(source: Mapping[str, Any]) -> str:
    """Return the picture of a source as SVG."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = number
    environment.filters["path"] = path
    picture: Picture = laid_out(source)
    template = environment.get_template("picture.svg.j2")
    shown_height = picture.height * SHOWN_WIDTH / WIDTH
    return template.render(
        picture=picture, width=WIDTH, shown_width=SHOWN_WIDTH, shown_height=shown_height
    )


def number(value: float) -> str:
    """Return a number with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def path(arrow: Arrow) -> str:
    """Return the way of an arrow as SVG has it."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in arrow.points)


if __name__ == "__main__":
    raise SystemExit(main())
