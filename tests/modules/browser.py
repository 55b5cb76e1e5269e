# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real browser for tests of pages: Debian's Chromium, without a window and without a network."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

# What is expected to be here, as Debian's packages chromium and chromium-driver install it.
CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    # whatever the page asks of a network fails at once
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver

    def open(
        self,
        page: Path | str,
        *,
        width: int,
        height: int = 900,
        dark: bool = False,
        media: str = "screen",
    ) -> None:
        """Open a file or an address as a person with such a screen, such colours or such a printer sees it."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)
        colors = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", {"media": media, "features": [colors]})
        self._driver.get(page.as_uri() if isinstance(page, Path) else page)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression on the page."""
        return self._driver.execute_script(f"return ({expression})")

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Wait until an expression is true."""
        WebDriverWait(self._driver, seconds).until(lambda _driver: self.evaluate(condition))

    def complaints(self) -> list[str]:
        """Return what the browser wrote to its console since the last call."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the URLs that were asked for since the last call."""
        found: list[str] = []
        for entry in self._driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(str(message["params"]["request"]["url"]))
        return found

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Write what is shown as PNG."""
        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self._command("Page.getLayoutMetrics", {})["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        answer = self._command("Page.captureScreenshot", options)
        file.write_bytes(base64.b64decode(answer["data"]))

    def printed(self) -> bytes:
        """Return the page as it is printed, a PDF."""
        answer = self._command("Page.printToPDF", {"preferCSSPageSize": True})
        return base64.b64decode(answer["data"])

    def _command(self, name: str, options: Mapping[str, Any]) -> Any:
        return self._driver.execute_cdp_cmd(name, dict(options))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser with an empty profile. Skips the test where there is none."""
    if not (CHROMIUM.exists() and DRIVER.exists()):
        pytest.skip("there is no browser: apt-get install chromium chromium-driver")
    profile = tempfile.mkdtemp(prefix="pve-fleet-browser-")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = None
    try:
        service = webdriver.ChromeService(executable_path=str(DRIVER))
        driver = webdriver.Chrome(options=options, service=service)
        driver.get("about:blank")
        browser = Browser(driver)
        browser.requests()  # those of its own first page
        yield browser
    finally:
        if driver is not None:
            driver.quit()
        shutil.rmtree(profile, ignore_errors=True)
