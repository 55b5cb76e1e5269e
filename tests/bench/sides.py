"""The two sides: how each runs a playbook and an inventory against the same simulated cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.command import Ran, run
from tests.bench.environment import NotMeasured
from tests.bench.figures import OURS, PEER
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

CALLBACKS = Path(__file__).resolve().parent / "callbacks"
Task = dict[str, Any]


@dataclass(frozen=True)
class Played:
    """A play that ended well: how long the command, the play and its tasks took, in seconds."""

    ran: Ran
    play_seconds: float
    requests: int
    tasks: tuple[dict[str, Any], ...]

    @property
    def seconds(self) -> float:
        """The time of the tasks, each from its announcement to its last result."""
        return sum(task["ended"] - task["began"] for task in self.tasks)

    @property
    def changed(self) -> int:
        """How many results, or items where a task is a loop, say that something was changed."""
        return sum(
            task["items_changed"] if task["items"] else task["changed"] for task in self.tasks
        )

    def expect(self, changed: int) -> Played:
        """Return itself.

        Raises NotMeasured where something else was done than what is to be measured.
        """
        if self.changed != changed:
            raise NotMeasured(
                f"{changed} changes were expected, {self.changed} were reported: {self.tasks}"
            )
        return self


@dataclass(frozen=True)
class Listed:
    """An inventory that was listed, and the requests that took, by method and route."""

    ran: Ran
    counts: dict[str, int]
    data: dict[str, Any]

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        """The variables of each host."""
        found: dict[str, dict[str, Any]] = self.data["_meta"]["hostvars"]
        return found

    @property
    def requests(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class Side:
    """One of the two, with the tools of its environment."""

    name: str
    python: Path
    collections: Path | None
    place: Path

    @property
    def is_ours(self) -> bool:
        return self.name == OURS

    def environment(self, simulator: Simulator, **more: str) -> dict[str, str]:
        """Return what its commands see: its own tools, nothing of the caller's Ansible, and no
        proxy.
        """
        dropped = (
            "ANSIBLE_",
            "PROXMOX_",
            "PVE_",
            "PYTHON",
            "VIRTUAL_ENV",
            "REQUESTS_CA",
            "CURL_CA",
        )
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(dropped) and not name.lower().endswith("_proxy")
        }
        config = self.place / "ansible.cfg"
        config.touch()
        found = {
            **kept,
            "PATH": os.pathsep.join([str(self.python.parent), os.environ.get("PATH", os.defpath)]),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(config),
            "ANSIBLE_HOME": str(self.place / "home"),
            "XDG_CACHE_HOME": str(self.place / "cache"),
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "REQUESTS_CA_BUNDLE": simulator.ca,  # the CA for the peer before 2.0; ours ignores it
            **more,
        }
        if self.collections is not None:
            found["ANSIBLE_COLLECTIONS_PATH"] = str(self.collections)
        return found

    def module_defaults(self, simulator: Simulator) -> dict[str, Any]:
        """Return how this side's modules reach the simulator with its token, by the group of its
        modules.
        """
        if self.is_ours:
            ours = {
                "host": simulator.url,
                "token_id": TOKEN_ID,
                "token_secret": TOKEN_SECRET,
                "ca_path": simulator.ca,
            }
            return {"group/pve.fleet.all": ours}
        user, _bang, token = TOKEN_ID.partition("!")
        peers = {
            "api_host": simulator.host,
            "api_port": simulator.port,
            "api_user": user,
            "api_token_id": token,
            "api_token_secret": TOKEN_SECRET,
            "validate_certs": True,
        }
        return {"group/community.proxmox.proxmox": peers}

    def play(
        self,
        simulator: Simulator,
        tasks: Sequence[Task],
        *,
        hosts: Sequence[str] = (),
        variables: Mapping[str, Any] | None = None,
        watch_memory: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Played:
        """Run the tasks for these hosts, all on this machine, or for localhost.

        Raises NotMeasured where one fails.
        """
        inventory, times = self.place / "hosts.json", self.place / "times.json"
        local = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        inventory.write_text(
            json.dumps({"all": {"vars": local, "hosts": dict.fromkeys(hosts or ["localhost"], {})}})
        )
        play = {
            "name": "Measured",
            "hosts": "all",
            "gather_facts": False,
            "module_defaults": self.module_defaults(simulator),
            "tasks": list(tasks),
        }
        (self.place / "play.json").write_text(json.dumps([play]))
        (self.place / "variables.json").write_text(json.dumps(dict(variables or {})))
        times.unlink(missing_ok=True)
        seen = self.environment(
            simulator,
            ANSIBLE_CALLBACK_PLUGINS=str(CALLBACKS),
            ANSIBLE_CALLBACKS_ENABLED="bench_times",
            ANSIBLE_INVENTORY_ENABLED="yaml",
            BENCH_TIMES=str(times),
            **(environment or {}),
        )
        command = [str(self.python.parent / "ansible-playbook"), "-i", str(inventory)]
        command += ["-e", "@variables.json", "play.json"]
        simulator.reset_log()
        ran = run(command, self.place, seen, watch_memory=watch_memory)
        requests = sum(simulator.counts().values())
        found = json.loads(times.read_text(encoding="utf-8"))
        if any(task["failed"] or task["failure"] for task in found["tasks"]):
            raise NotMeasured(
                f"a task of {self.name} failed:\n{ran.output.read_text(encoding='utf-8')[-3000:]}"
            )
        return Played(ran, found["ended"] - found["began"], requests, tuple(found["tasks"]))

    def list_inventory(
        self, simulator: Simulator, options: Mapping[str, Any], *, hosts: int, **more: str
    ) -> Listed:
        """Run `ansible-inventory --list` with these options of the plugin, and `more` in the
        environment.

        Raises NotMeasured where it lists another number of hosts.
        """
        if self.is_ours:
            connection = {
                "plugin": "pve.fleet.proxmox",
                "host": simulator.url,
                "ca_path": simulator.ca,
            }
            secret = {"token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}
        else:
            user, _bang, token = TOKEN_ID.partition("!")
            connection = {"plugin": "community.proxmox.proxmox", "url": simulator.url, "user": user}
            secret = {"token_id": token, "token_secret": TOKEN_SECRET}
        file = self.place / "bench.proxmox.yml"
        file.write_text(json.dumps({**connection, **secret, **options}))
        seen = self.environment(simulator, ANSIBLE_INVENTORY_ENABLED=connection["plugin"], **more)
        command = [str(self.python.parent / "ansible-inventory"), "-i", str(file), "--list"]
        simulator.reset_log()
        ran = run(command, self.place, seen)
        found = Listed(ran, simulator.counts(), json.loads(ran.output.read_text(encoding="utf-8")))
        if len(found.hosts) != hosts:
            raise NotMeasured(f"{self.name} listed {len(found.hosts)} hosts instead of {hosts}")
        return found


def both(ours: tuple[Path, Path], peer: Path, place: Path) -> tuple[Side, Side]:
    """Return the two sides.

    `ours` is the Python of its environment and the directory of its collection.
    """
    sides = (Side(OURS, ours[0], ours[1], place / "ours"), Side(PEER, peer, None, place / "peer"))
    for side in sides:
        side.place.mkdir(parents=True, exist_ok=True)
    return sides
