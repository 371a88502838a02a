"""Expands gzip files below a folder, also as `python -m windrow.compat.data_forager.unzip_files --help`."""

from __future__ import annotations

import argparse
import gzip
import logging
import os
import shutil
import zlib

import windrow

from ...failure import failure
from .files import find_files, natural_order

SUFFIXES = (".gz", ".gzip", ".GZ", ".GZIP")


def unzip_files(input_files_path: str | os.PathLike[str], output_path: str | os.PathLike[str] | None = None) -> None:
    """Expands every gzip file below `input_files_path` into `output_path`, by default `<input_files_path>/unzipped`.

    Raises `windrow.ExistsError`, before anything is written, when two of them would get one name.
    """
    if not os.path.isdir(input_files_path):
        raise failure(windrow.NotFoundError, "there is no such folder", path=input_files_path)
    target = os.path.join(input_files_path, "unzipped") if output_path is None else os.fspath(output_path)
    paths = find_zipped_files(input_files_path)
    taken: dict[str, str] = {}
    for path in paths:
        other = taken.setdefault(get_unzipped_file_name(path), path)
        if other != path:
            raise failure(windrow.ExistsError, f"would be expanded to the same name as {other}", path=path)
    os.makedirs(target, exist_ok=True)
    for path in paths:
        unzip_file(path, target)


def unzip_file(
    input_file_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str] | None = None,
    logger: logging.Logger | None = None,
) -> None:
    """Expands one file into the folder `output_path`, by default its own; visible when it is complete.

    Raises `windrow.CorruptError` for a damaged or cut file.
    """
    source = os.fspath(input_file_path)
    folder = os.path.dirname(source) if output_path is None else os.fspath(output_path)
    target = os.path.join(folder, get_unzipped_file_name(source))
    (logger or logging.getLogger(__name__)).debug("expanding %s to %s", source, target)
    work = f"{target}.tmp-{os.getpid()}"
    try:
        with gzip.open(source, "rb") as zipped, open(work, "wb") as file:
            shutil.copyfileobj(zipped, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())
        os.replace(work, target)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise failure(windrow.CorruptError, f"the gzip stream is damaged: {error}", path=source) from error
    finally:
        if os.path.exists(work):
            os.remove(work)


def find_zipped_files(input_path: str | os.PathLike[str]) -> list[str]:
    """The gzip files below a folder, in natural order."""
    return natural_order(find_files(input_path, [f"*{suffix}" for suffix in SUFFIXES]))


def get_unzipped_file_name(zipped_file_path: str | os.PathLike[str]) -> str:
    """The file's name without its gzip suffix.

    >>> get_unzipped_file_name("in/a.jsonl.gz"), get_unzipped_file_name("b")
    ('a.jsonl', 'b-unzipped')
    """
    name = os.path.basename(zipped_file_path)
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return f"{name}-unzipped"


def create_arg_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description="Expand gzip files")
    parser.add_argument("--input-files-path", required=True, help="folder with the gzip files, searched recursively")
    parser.add_argument("--output-path", help='where to put what they hold; default: "unzipped" below the input folder')
    return parser


if __name__ == "__main__":
    unzip_files(**vars(create_arg_parser().parse_args()))
