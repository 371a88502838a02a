"""Indexes text files line by line, by way of a sample generator."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

import windrow

from ....failure import failure
from ..index_stores.common import IndexStoreInterface
from ..sample_generators.common import NOOPSampleGenerator, SampleGeneratorInterface


class FileTextLinesIndexer:
    """Called, it feeds every line of the files to the generator and adds the samples that come out to the store.

    Lines end at `\\n`, which belongs to them. Without a generator each line is a sample where it is. When anything
    goes wrong, the store is told to forget what it got. `description` and `name` go to the log.
    """

    def __init__(
        self,
        input_file_paths: Sequence[str],
        index_store: IndexStoreInterface,
        sample_generator: SampleGeneratorInterface | None = None,
        description: str | None = None,
        name: str | None = None,
    ) -> None:
        self._log = logging.getLogger(name or type(self).__name__)
        self._input_file_paths = list(input_file_paths)
        self._index_store = index_store
        self._sample_generator = NOOPSampleGenerator() if sample_generator is None else sample_generator
        self._description = "Indexing" if description is None else description

    def __call__(self) -> None:
        """Makes the index; where the store can say that it holds just this one already, there is nothing to do.

        Raises what the store, the generator and the functions in it raise; `windrow.NotFoundError` for an input that is
        not there; `windrow.ConfigError` for one that is given twice and holds the samples itself.
        """
        store, generator = self._index_store, self._sample_generator
        options = self._options()
        if options and hasattr(store, "holds") and store.holds(self._input_file_paths, options):
            self._log.info("%s: there is nothing to do", self._description)
            return
        store.init_store()
        try:
            if options and hasattr(store, "set_origin"):
                store.set_origin(self._input_file_paths, options, getattr(generator, "token_dtype", None))
            schema = generator.get_sample_schema()
            if schema is not None:
                store.set_sample_schema(schema)  # type: ignore[attr-defined]
            if hasattr(generator, "prepare_all"):
                generator.prepare_all(self._input_file_paths)
            self._add_samples()
            store.close()
        except BaseException:
            for part, undo in ((generator, "abort"), (store, "discard")):
                getattr(part, undo, lambda: None)()
            raise

    def _options(self) -> dict[str, Any]:
        if not hasattr(self._sample_generator, "describe"):
            return {}
        options: dict[str, Any] = self._sample_generator.describe(self._first_line())
        return options

    def _first_line(self) -> bytes:
        return next((line for path in self._input_file_paths for line in _lines(path)), b"")

    def _add_samples(self) -> None:
        next_byte: dict[str, int] = {}
        for number, path in enumerate(self._input_file_paths):
            self._log.info("%s: %s", self._description, path)
            if os.fspath(path) in next_byte:
                # The offsets of its samples would go on behind its end.
                raise failure(
                    windrow.ConfigError,
                    f"input_file_paths[{number}] is given before, and its samples are in the index; expected each file once",
                    path=path,
                    hint="give each path once, as list(dict.fromkeys(input_file_paths)) has them",
                )
            self._sample_generator.prepare(path)
            for line in _lines(path):
                for sample in self._sample_generator.create_samples(line):
                    place = os.fspath(sample.file_path)
                    first, size = next_byte.get(place, 0), len(sample.sample_bytes)
                    self._index_store.add_sample(file_location=sample.file_path, byte_offset=first, num_bytes=size)
                    next_byte[place] = first + size
            self._sample_generator.finish(is_last_file=number + 1 == len(self._input_file_paths))


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from file
    except FileNotFoundError as error:
        raise failure(windrow.NotFoundError, "an input file is not there", path=path) from error
