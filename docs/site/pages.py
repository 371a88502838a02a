"""What the site adds to the pages of docs/, which stay plain Markdown: a hook of mkdocs.

- `<!-- tabs -->` … `<!-- /tabs -->`: the sections between them, by their headings, become tabs.
- `<!-- cards -->` before a list makes it a grid of cards.
- Links to files of the repository lead to pages that show them.
- The reference of Python, the benchmarks, the notebooks, and the documents at the root of the repository are pages.
- The pages of `cargo doc` lie in rust/.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import benchmarks
import notebooks
import reference

ROOT = Path(__file__).resolve().parents[2]
LOG = logging.getLogger("mkdocs.hooks.pages")
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")
TABS = re.compile(r"^<!-- tabs -->\n(.*?)^<!-- /tabs -->\n", re.MULTILINE | re.DOTALL)
CARDS = re.compile(r"^<!-- cards -->\n\n?((?:[-* ].*\n|\n(?=[-* ]))+)", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".rs": "rust", ".toml": "toml", ".json": "json", ".sh": "bash", ".yaml": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in docs/."""
    if missing := reference.missing():
        LOG.warning("no page of docs/site/reference.py has %s", ", ".join(missing))
    made = {path: reference.page(path) for path in reference.PAGES}
    made |= {"benchmarks.md": benchmarks.page(), **notebooks.pages()}
    texts = [*made.values(), *(file.content_string for file in files.documentation_pages())]
    of_root = {name: (ROOT / name).read_text(encoding="utf-8") for name in ROOT_PAGES}
    made |= of_root
    linked_files = {target for text in texts for target in _links_out(text)}
    linked_files |= {link[1] for text in of_root.values() for link in LINK.finditer(text) if _is_source(link[1])}
    for linked in sorted(linked_files):
        made[_source_page(linked)] = _source(linked)
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Makes links and blocks what the site has for them."""
    path = page.file.src_uri
    if path.startswith(("source/", "reference/", "notebooks/")):
        return markdown
    if path in ROOT_PAGES:
        return LINK.sub(_link_of_root, markdown)
    markdown = _outside_fences(markdown, lambda text: LINK.sub(_link, text))
    return CARDS.sub(_cards, TABS.sub(_tabs, markdown))


def on_post_build(config: MkDocsConfig) -> None:
    """Adds what `cargo doc` wrote."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "doc"
    if (built / "windrow" / "index.html").is_file():
        shutil.copytree(built, Path(config.site_dir) / "rust", dirs_exist_ok=True)
    else:
        LOG.warning("%s has no pages of Rust: run `cargo doc --workspace --no-deps`", built)


def _outside_fences(markdown: str, change: Any) -> str:
    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(markdown[at:])])


def _links_out(markdown: str) -> list[str]:
    """Files of the repository, outside docs/, that a page links."""
    found = (link[1].removeprefix("../") for link in LINK.finditer(markdown) if link[1].startswith("../"))
    return [target for target in found if target not in ROOT_PAGES and (ROOT / target).is_file()]


def _link(found: re.Match[str]) -> str:
    target, part = found[1], found[2] or ""
    if not target.startswith("../"):
        # A notebook is a page, on which its file is to be had.
        return f"]({target.removesuffix('.ipynb')}.md{part})" if target.endswith(".ipynb") else found[0]
    inside = target.removeprefix("../")
    return f"]({inside if inside in ROOT_PAGES else _source_page(inside)}{part})"


def _link_of_root(found: re.Match[str]) -> str:
    target = found[1]
    return f"]({_source_page(target) if _is_source(target) else target.removeprefix('docs/')}{found[2] or ''})"


def _is_source(target: str) -> bool:
    """Whether a document at the root links a file by it that is no page of its own."""
    return target not in ROOT_PAGES and not target.startswith("docs/") and (ROOT / target).is_file()


def _source_page(path: str) -> str:
    return f"source/{path}.md"


def _source(path: str) -> str:
    name = PurePosixPath(path)
    text = (ROOT / path).read_text(encoding="utf-8")
    head = f"---\ntitle: {name.name}\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# {path}\n\n"
    if name.suffix == ".md":
        return head + text
    return f"{head}````` {{.{LANGUAGES.get(name.suffix, 'text')} linenums=1}}\n{text.rstrip()}\n`````\n"


def _tabs(found: re.Match[str]) -> str:
    """Each section as a tab of its heading's words."""
    parts = re.split(r"^#{2,4} (.+)\n", _hidden(found[1]), flags=re.MULTILINE)
    if parts[0].strip():
        LOG.warning("text between <!-- tabs --> and the first heading: %s", parts[0].strip()[:60])
    tabs = []
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines = _shown(body).strip("\n").splitlines()
        tabs.append("\n".join([f'=== "{title}"', "", *(f"    {line}" if line else "" for line in lines)]))
    return "\n\n".join(tabs) + "\n\n"


def _cards(found: re.Match[str]) -> str:
    return f'<div class="grid cards" markdown>\n\n{found[1]}\n</div>\n'


# A comment in a shell script looks like a heading.
def _hidden(text: str) -> str:
    return FENCE.sub(lambda fence: re.sub(r"^#", "\0#", fence[0], flags=re.MULTILINE), text)


def _shown(text: str) -> str:
    return text.replace("\0", "")
