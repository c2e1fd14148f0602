"""Makes pages that are written for GitHub fit for MkDocs, or fails where it could not render them as GitHub does."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(((?!https?:|mailto:|#)[^()\s#]+)(#[^()\s]*)?\)")
FENCE = re.compile(r"^( *)```")
ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) ")


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    shape(markdown, source)

    def link(found):
        """A link to a file beside docs/ leads to the repository."""
        target = normpath(join("docs", dirname(source), found[1]))
        if target.startswith("docs/"):
            return found[0]
        if not (ROOT / target).exists():
            raise PluginError(f"{source}: {found[1]} is no file of the repository")
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"]({config.repo_url}/{kind}/main/{target}{found[2] or ''})"

    return LINK.sub(link, markdown)


def shape(markdown, source):
    """GitHub needs neither a blank line before a list nor four spaces within one; Python-Markdown does."""
    before, within = "", False
    for number, line in enumerate(markdown.splitlines(), 1):
        if fence := FENCE.match(line):
            if not within and len(fence[1]) % 4:
                raise PluginError(f"{source}:{number}: a block of code in a list is indented by 4 spaces")
            within = not within
        elif not within and (item := ITEM.match(line)):
            if len(item[1]) % 4:
                raise PluginError(f"{source}:{number}: a list in a list is indented by 4 spaces")
            if before.strip() and not ITEM.match(before) and not before.startswith(" "):
                raise PluginError(f"{source}:{number}: a list begins after a blank line")
        before = line
