# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the command gh of GitHub: the parts that the recipes use."""

from __future__ import annotations

import argparse
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="gh")
    commands = parser.add_subparsers(required=True)
    api = commands.add_parser("api")
    api.add_argument("path")
    api.add_argument("--method", default="GET")
    api.add_argument("--paginate", action="store_true")
    api.add_argument("--silent", action="store_true")
    api.add_argument("--field", action="append", default=[])
    api.set_defaults(run=call_api)
    download = commands.add_parser("run").add_subparsers(required=True).add_parser("download")
    download.add_argument("run_id")
    download.add_argument("--name", required=True)
    download.set_defaults(run=download_artifact)
    given = parser.parse_args()
    given.run(given)


def call_api(given: argparse.Namespace) -> None:
    """Print the answer. A field with @FILE has the content of the file."""
    fields = dict(one.split("=", 1) for one in given.field)
    for name, value in fields.items():
        if value.startswith("@"):
            fields[name] = Path(value[1:]).read_text(encoding="utf-8")
    path: str = given.path
    while path:
        answer, following = send(given.method, path, fields)
        if not given.silent:
            sys.stdout.write(answer.decode())
        path = following if given.paginate else ""


def download_artifact(given: argparse.Namespace) -> None:
    """Write the file of an artifact, which holds one, into this directory; it must not exist."""
    content, _following = send("GET", f"download/{given.run_id}/{given.name}", {})
    with open("plan.json", "xb") as stream:
        stream.write(content)


def send(method: str, path: str, fields: dict[str, str]) -> tuple[bytes, str]:
    """Return the answer of the stand-in for GitHub and the path of the next page, or exit as gh
    does.
    """
    data = urllib.parse.urlencode(fields).encode() if fields else None
    request = urllib.request.Request(f"{os.environ['GITHUB_API_URL']}/{path}", data, method=method)
    request.add_header("Authorization", f"token {os.environ['GH_TOKEN']}")
    try:
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
            link = re.match(r'<(.+)>; rel="next"', answer.headers.get("Link", ""))
    except urllib.error.HTTPError as error:
        sys.exit(f"gh: {error.read().decode()} (HTTP {error.code})")
    return content, link[1] if link else ""


if __name__ == "__main__":
    main()
