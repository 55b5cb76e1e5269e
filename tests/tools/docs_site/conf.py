# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx makes the documentation site, see __main__.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
GALAXY = yaml.safe_load((HERE.parents[2] / "galaxy.yml").read_text(encoding="utf-8"))
REPOSITORY = GALAXY["repository"]
OWNER, NAME = REPOSITORY.rsplit("/", 2)[1:]

project = "pve.fleet"
release = version = GALAXY["version"]
author = "the pve.fleet authors"
project_copyright = "2026, the pve.fleet authors"

extensions = [
    "myst_parser",
    "sphinx_antsibull_ext",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxext.opengraph",
]
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "linkify"]
myst_heading_anchors = 4  # as in the repository
# A page that begins with a level below the first, or YAML that has Jinja in it, is not a mistake.
suppress_warnings = ["misc.highlighting_failure"]
exclude_patterns: list[str] = []
templates_path = ["_templates"]

html_theme = "furo"
html_title = "pve.fleet"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_search_scorer = str(HERE / "scorer.js")
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_context = {"repository": REPOSITORY}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "facts.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
_SHARED_COLOURS = {
    "sidebar-item-spacing-vertical": "0.3rem",
    "color-sidebar-link-text--top-level": "var(--color-foreground-primary)",
}
html_theme_options = {
    "navigation_with_keys": True,
    "top_of_page_buttons": ["edit"],
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "",
    "light_css_variables": {
        **_SHARED_COLOURS,
        "color-brand-primary": "#a24300",
        "color-brand-content": "#a24300",
    },
    "dark_css_variables": {
        **_SHARED_COLOURS,
        "color-brand-primary": "#ffb37a",
        "color-brand-content": "#ffb37a",
    },
}

# Links that other sites show as a card need full addresses.
html_baseurl = os.environ.get("PVE_FLEET_DOCS_URL", f"https://{OWNER}.github.io/{NAME}/")
ogp_site_url = html_baseurl
ogp_site_name = "pve.fleet"
ogp_image = "_images/report.png"
ogp_image_alt = "A report of a cluster with two tenants"
ogp_social_cards = {"enable": False}
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
    app.connect("html-page-context", link_source)
    app.connect("html-page-context", weigh_headings)


# Pagefind counts a heading seven times, whatever the weight of its page, unless the heading has its own weight.
_HEADING = re.compile(r"<h[1-6]\b")
_WEIGHTS = {"docs/decisions/": "0.05", "docs/architecture": "0.2", "reference/": "4", "": "10"}


def weigh_headings(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object
) -> None:
    """Set the weight of a page's headings in the search: guides before reference and decisions."""
    weight = next(weight for start, weight in _WEIGHTS.items() if page.startswith(start))
    body = context.get("body", "")
    context["body"] = _HEADING.sub(rf'\g<0> data-pagefind-weight="{weight}"', body)


# The source of a page that is not in the repository under the name that it has on the site.
_PLUGIN_PAGE = re.compile(
    r"reference/(?P<name>\w+)_(?P<kind>module|inventory|callback|lookup|filter)"
)
_ROLE_PAGE = re.compile(r"reference/(?P<name>\w+)_role")


def link_source(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object
) -> None:
    """Set the address of "Edit this page" for pages that are generated."""
    source = source_of(page)
    if source is None:
        context["page_source_suffix"] = ""
    elif source != page:
        context["theme_source_edit_link"] = f"{REPOSITORY}/edit/main/{source}"


def source_of(page: str) -> str | None:
    """Return the file that a page of the site is made of, as a path in the repository.

    Returns the page itself if it has the same path, and None if it has no single source.
    """
    if page == "index":
        return "tests/tools/docs_site/index.md"
    plugin = _PLUGIN_PAGE.fullmatch(page)
    if plugin is not None:
        folder = "modules" if plugin["kind"] == "module" else plugin["kind"]
        return f"plugins/{folder}/{plugin['name']}.py"
    role = _ROLE_PAGE.fullmatch(page)
    if role is not None:
        return f"roles/{role['name']}/meta/argument_specs.yml"
    return page if page.startswith(("docs/", "roles/", "CO")) else None


def ansible_page(
    _app: Sphinx, _environment: Any, wanted: Any, shown: nodes.TextElement
) -> nodes.reference | None:
    """Return a reference to a page of Ansible's documentation, or None for any other target."""
    page = ANSIBLE_PAGES.get(wanted.get("reftarget", ""))
    if page is None:
        return None
    return nodes.reference("", "", shown, internal=False, refuri=f"{ANSIBLE}/{page}")
