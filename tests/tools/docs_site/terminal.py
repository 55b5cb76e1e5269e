# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the terminals in docs/, each from commands on a new simulated Proxmox VE:
``python -m tests.tools.docs_site.terminal``, with names of pictures for some of them.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.demo.__main__ import environment
from tests.demo.lab import Lab
from tests.tools.stage import COPY, REPO, stage

WIDE, NARROW = 104, 54
PROVISION = ("ansible-playbook", "pve.fleet.provision", "-e", "@estate.yml")
EDIT = ("cores: 1", "cores: 2")

# The tasks whose output is shown; the others check the input.
_SHOWN = (
    "Create and update the virtual machines]",
    "Compare the virtual machines]",
    "Write the estate]",
    "Read the virtual machines]",
    "Write the metrics]",
)
_RECAP = "PLAY RECAP"
_COLOURS = {"changed": "yellow", "ok": "green", "+": "green", "-": "red", "$": "bold"}


class Screen:
    """A terminal in an empty directory, with the estate of the first page of the site."""

    def __init__(self, directory: Path, lab: Lab, parts: Sequence[str]) -> None:
        self.directory = directory
        self.lab = lab
        self.parts = parts
        self.lines: list[str] = []
        collections = str(COPY.parents[2])
        seen = environment(directory, lab)
        # The guests of a run finish in any order.
        settings = {"ANSIBLE_COLLECTIONS_PATH": collections, "PVE_FLEET_PROGRESS": "false"}
        self._environment = {**seen, **settings}
        (directory / "ansible.cfg").touch()
        self.write_estate(estate())

    def write_estate(self, text: str) -> None:
        (self.directory / "estate.yml").write_text(text, encoding="utf-8")

    def play(self, *command: str, status: int = 0, shown: bool = True) -> None:
        """Run a playbook, and show the tasks that do something."""
        output = self._run(command, status)
        if shown:
            self.lines += [f"$ {' '.join(command)}", *_shortened(output, self.parts), ""]

    def show(self, command: str) -> None:
        """Run a command of the shell, and show its output."""
        output = self._run(("sh", "-c", command), 0)
        self.lines += [f"$ {command}", *output.splitlines(), ""]

    def _run(self, command: Sequence[str], status: int) -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode != status:
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stdout}")
        return done.stdout


def first_page(screen: Screen) -> None:
    screen.play(*PROVISION)
    screen.play(*PROVISION)
    screen.write_estate(estate().replace(*EDIT))
    screen.lines += [f"$ sed -i 's/{EDIT[0]}/{EDIT[1]}/' estate.yml", ""]
    screen.play(*PROVISION, "--check", "--diff")


def drift(screen: Screen) -> None:
    screen.play(*PROVISION, shown=False)
    machine = screen.lab.machines()[0]
    path = f"/nodes/{machine.node}/qemu/{machine.vmid}"
    screen.lab.call("PUT", f"{path}/config", memory=4096)
    screen.lab.call("POST", f"/nodes/{machine.node}/qemu", vmid=105, name="test")
    screen.play("ansible-playbook", "pve.fleet.drift", "-e", "@estate.yml", status=2)


def export(screen: Screen) -> None:
    screen.play(*PROVISION, shown=False)
    (screen.directory / "estate.yml").unlink()
    screen.play("ansible-playbook", "pve.fleet.export", "-e", "export_directory=.")
    screen.show("sed -n '/^provision_vms/,$p' estate.yml")
    screen.play(*PROVISION)


def metrics(screen: Screen) -> None:
    screen.play(*PROVISION, shown=False)
    path = screen.directory / "proxmox.prom"
    command = ("ansible-playbook", "pve.fleet.metrics", "-e", "@estate.yml", "-e")
    screen.play(*command, f"metrics_path={path}", shown=False)
    screen.lines.append(f"$ {' '.join(command)} metrics_path=$PWD/proxmox.prom")
    screen.lines.append("")
    screen.show("grep -E '^proxmox_(machines|tenant|cluster|drift)' proxmox.prom")


@dataclass(frozen=True)
class Picture:
    """The title of a picture for people who do not see it, and the commands that it records.

    `parts` are texts in the headings of the plays and tasks whose output is shown.
    """

    title: str
    record: Callable[[Screen], None]
    columns: int = WIDE
    parts: Sequence[str] = (*_SHOWN, _RECAP)


PICTURES = {
    "terminal": Picture(
        "Two VMs are created, a second run changes nothing, a preview shows what an edit changes",
        first_page,
    ),
    "terminal-narrow": Picture(
        "Two VMs are created, a second run changes nothing, a preview shows what an edit changes",
        first_page,
        columns=NARROW,
        parts=_SHOWN,
    ),
    "drift": Picture("A VM has other memory than the estate says, and one is not in it", drift),
    "export": Picture("Two VMs become an estate, and a run with it changes nothing", export),
    "metrics": Picture(
        "Figures of VMs, tenants and the cluster in the format of Prometheus", metrics
    ),
}


def main(names: Sequence[str]) -> int:
    """Draw the pictures of these names, or all; return the exit status."""
    stage()
    for name in names or PICTURES:
        file = place_of(name)
        file.write_text(drawn(name, recorded(name)), encoding="utf-8")
        print(f"{file.relative_to(REPO)} is drawn")
    return 0


def place_of(name: str) -> Path:
    """Return the file of a picture."""
    return REPO / "docs" / f"{name}.svg"


def estate() -> str:
    """Return the estate on the first page of the site."""
    page = (Path(__file__).parent / "index.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def recorded(name: str) -> list[str]:
    """Return the lines of a terminal."""
    with tempfile.TemporaryDirectory() as directory, Lab() as lab:
        screen = Screen(Path(directory), lab, PICTURES[name].parts)
        PICTURES[name].record(screen)
    return screen.lines[:-1]


def _shortened(output: str, parts: Sequence[str]) -> list[str]:
    """Return the lines of the plays and tasks whose heading contains one of the parts."""
    lines: list[str] = []
    shown = False
    for line in output.splitlines():
        if line.startswith(("PLAY", "TASK")):
            shown = any(part in line for part in parts)
        if shown and line.strip():
            lines.append(line.rstrip("* ").replace("    rescued=0    ignored=0", ""))
    return lines


def drawn(name: str, lines: list[str]) -> str:
    """Return the picture of a terminal with these lines."""
    width = PICTURES[name].columns
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text(line, style=_style(line)), soft_wrap=False)
    picture = console.export_svg(title="pve.fleet", theme=MONOKAI, unique_id=name)
    # The font of the reader: rich asks for one from another server.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    first, rest = picture.split(">", 1)
    return f'{first} role="img">\n    <title>{PICTURES[name].title}</title>{rest}'


def _style(line: str) -> str:
    for start, colour in _COLOURS.items():
        if line.startswith(start):
            return colour
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
