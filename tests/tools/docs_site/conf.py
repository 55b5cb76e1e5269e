# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx makes the documentation site, see __main__.py."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

project = "pve.fleet"
author = "the pve.fleet authors"
project_copyright = "2026, the pve.fleet authors"

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_antsibull_ext"]
myst_enable_extensions = ["attrs_inline", "linkify"]
myst_heading_anchors = 4  # as in the repository
# A page that begins with a level below the first, or YAML that has Jinja in it, is not a mistake.
suppress_warnings = ["misc.highlighting_failure"]
exclude_patterns: list[str] = []
templates_path: list[str] = []

html_theme = "furo"
html_title = "pve.fleet"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#a24300", "color-brand-content": "#a24300"},
    "dark_css_variables": {"color-brand-primary": "#ffb37a", "color-brand-content": "#ffb37a"},
}
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

# Pages of Ansible's own documentation, which the reference leads to.
ANSIBLE = "https://docs.ansible.com/projects/ansible/latest"
ANSIBLE_PAGES = {
    "action_plugins": "plugins/action.html",
    "ansible_collections.ansible.builtin.constructed_inventory": (
        "collections/ansible/builtin/constructed_inventory.html"
    ),
    "ansible_configuration_settings": "reference_appendices/config.html",
    "callback_plugins": "plugins/callback.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", ansible_page)


def ansible_page(
    _app: Sphinx, _environment: Any, wanted: Any, shown: nodes.TextElement
) -> nodes.reference | None:
    """Return a reference to a page of Ansible's documentation, or None where it is not one."""
    page = ANSIBLE_PAGES.get(wanted.get("reftarget", ""))
    if page is None:
        return None
    return nodes.reference("", "", shown, internal=False, refuri=f"{ANSIBLE}/{page}")
