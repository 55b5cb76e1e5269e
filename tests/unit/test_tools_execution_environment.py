# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CI builds an execution environment with the collection of its clone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.tools.publish.execution_environment import SOURCE, builder, write_definition

pytest.importorskip("ansible_builder")


def test_the_image_installs_the_artifact_of_the_clone(tmp_path: Path) -> None:
    definition = write_definition(tmp_path / "home")
    context = tmp_path / "context"
    written = ("--context", str(context), "--output-filename", "Containerfile")
    assert builder("create", "--file", str(definition), *written) == 0

    build = context / "_build"
    required = yaml.safe_load((build / "requirements.yml").read_text("utf-8"))["collections"]
    released = yaml.safe_load((SOURCE / "requirements.yml").read_text("utf-8"))["collections"]
    assert required[1:] == released[1:]
    assert required[0]["type"] == "file"
    # The image's WORKDIR is /build, into which _build is copied.
    assert (build / required[0]["name"]).is_file()
    text = (context / "Containerfile").read_text("utf-8")
    assert "WORKDIR /build" in text
    assert re.search(r"^(COPY|ADD) _build /build$", text, re.MULTILINE)
    wanted = yaml.safe_load((SOURCE / "execution-environment.yml").read_text("utf-8"))
    found = yaml.safe_load(definition.read_text("utf-8"))
    assert found.pop("additional_build_files")
    assert found == wanted
