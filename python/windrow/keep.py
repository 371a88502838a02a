"""What keeps data: the manifest that lists its files, and the cache of what was made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow import _native
from windrow._options import checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from windrow._native import _Path

__all__ = ["cache", "manifest"]


@checked
def manifest(
    path: _Path,
    *,
    out: _Path | None = None,
    overwrite: bool = False,
    format: str | None = None,
    index_folder: str | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Writes the manifest of data that has none: ``windrow.json``, which lists the files of a folder.

    A folder in a store is listed each time it is opened, with a request for each 1,000 objects; with the manifest it is opened by one
    or two. Of raw token IDs, series files and JSON Lines each object is opened once here, and what was found is declared: opening the folder asks
    for none of them. Sizes, versions and what is declared are compared with the objects when they are read. Files that come later are
    not in it: call it again.

    Args:
        path: a folder, or its URL.
        out: write it there instead of beside the data, as for a web server, which lists nothing.
        overwrite: with ``out``, replace an existing file.
        format: the name of a format, where it is not recognised.
        index_folder: name of the folder of a byte-offset index.
        store_options, timeout: of URLs, as for ``open``.

    Returns:
        A dict: out (the manifest), files and bytes (how many it lists), format.

    Raises:
        NotFoundError: nothing there.
        ExistsError: the data has a manifest that was written with it; another file is in the place of ``out``, and no ``overwrite``.
        ConfigError: a file, which needs no manifest; an ``out`` that is one of the files listed.
        UnsupportedError: a web server, which lists nothing.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"n": 1}\\n')
    >>> listed = wr.manifest(folder)
    >>> listed["files"], listed["bytes"], listed["format"]
    (1, 9, 'jsonl')
    """
    return _native._manifest(locals())


@checked
def cache(*, clear: bool = False) -> dict[str, Any]:
    """What is kept in the cache: what was expanded, converted, computed once or fetched.

    The cache is the folder ``WINDROW_CACHE``, else ``XDG_CACHE_HOME/windrow``, else ``~/.cache/windrow``. All of it takes at most
    ``WINDROW_CACHE_LIMIT``, else half of the free space on its disk and what it holds already; data opened with ``cache_limit=`` has it
    keep to that instead. What was used least recently is removed first, and nothing that is open.

    Args:
        clear: remove all that no process has open.

    Returns:
        A dict: folder, bytes, limit_bytes, and entries, a list of dicts of name, source, kind, bytes, last_used_ns and is_open, the last
        used first. With ``clear`` folder and cleared, a dict of removed, removed_bytes and left, the entries that are open.

    >>> import windrow as wr
    >>> held = wr.cache()
    >>> held["bytes"] == sum(entry["bytes"] for entry in held["entries"])
    True
    """
    return _native._cache(locals())
