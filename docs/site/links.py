"""Checks a built site: every link and anchor leads somewhere, and no page loads anything from another host.

The pages in rust/ are those of rustdoc, which checks their links itself.

    python docs/site/links.py target/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, in contrast to what a reader may follow.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("audio", "src")}


class Page(HTMLParser):
    """The IDs of a page, what it links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        given = dict(attrs)
        is_named = tag == "link" and given.get("rel") in ("canonical", "next", "prev")
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.ids.add(value or "")
            if name in ("href", "src") and value:
                self.links.append(value)
                if (tag, name) in LOADED and not is_named:
                    self.loaded.append(value)


def dead(site: Path) -> list[str]:
    """What is wrong with the links of a site, one line each."""
    paths = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html" and site / "rust" not in path.parents]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: loads {value} from another host" for value in page.loaded if urlsplit(value).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{name}: {link}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                # A page begins at its top.
                if parts.fragment != "__top":
                    found.append(f"{name}: {link}: no such anchor")
    return [*found, *([] if pages else [f"{site}: no pages"])]


if __name__ == "__main__":
    problems = dead(Path(sys.argv[1]).resolve())
    print("\n".join(problems) or "every link leads somewhere")
    sys.exit(bool(problems))
