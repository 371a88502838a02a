"""Token samples from lines of text."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import windrow
from windrow._function import word

from .common import SampleData, SampleGeneratorInterface
from .packing import Packer, exact, stored_in_core
from .place import LinePlace, find_line
from .probe import WatchedFunction, probe
from .sample_files import SampleFiles
from .schema import SampleSchema

TokenizerFunc = Callable[[str], list[int]]
ProcessTextLineFunc = Callable[[bytes], str]


def get_text_from_jsonl(jsonl_bytes: bytes, text_key: str = "text", text_encoding: str = "utf-8") -> str:
    """The string at `text_key` of a JSON line; KeyError when there is none, ValueError when the line is not JSON.

    >>> get_text_from_jsonl(b'{"text": "hello"}')
    'hello'
    """
    text: str = json.loads(jsonl_bytes.decode(text_encoding))[text_key]
    return text


class TokenizedSampleGenerator(SampleGeneratorInterface):
    """Samples of `sample_size` tokens over all documents in a row, each followed by `eos_idx`; what is left at the end
    is dropped.

    With `sample_size=None` each document is a sample of its own length, without `eos_idx`. `process_text_line_func`
    gives the text of a line, `tokenizer_func` its ids, which must fit `token_dtype`. The samples are written into
    `<base_output_path>/<input's stem>-<file_name_postfix>.bin`.
    """

    def __init__(
        self,
        process_text_line_func: ProcessTextLineFunc,
        tokenizer_func: TokenizerFunc,
        eos_idx: int,
        token_dtype: npt.DTypeLike = np.uint16,
        sample_size: int | None = None,
        base_output_path: str | os.PathLike[str] | None = None,
        file_name_postfix: str = "tokenized-samples",
        name: str | None = None,
    ) -> None:
        self._log = logging.getLogger(name or type(self).__name__)
        self._process_text_line_func = process_text_line_func
        self._tokenizer_func = tokenizer_func
        self._eos_idx = eos_idx
        self.token_dtype = np.dtype(token_dtype)
        self._sample_size = sample_size
        self._packer = None if sample_size is None else Packer(sample_size, {"tokens": self.token_dtype})
        self._postfix = file_name_postfix
        self._files = SampleFiles(base_output_path, file_name_postfix)
        self.base_output_path = base_output_path
        self._place = LinePlace()

    @property
    def in_core(self) -> bool:
        """Whether the core gives the same: for the default text function (others get lines with their ends) and ids it
        can store.
        """
        return self._process_text_line_func is get_text_from_jsonl and stored_in_core(self.token_dtype)

    def run_in_core(
        self, inputs: Sequence[str], first_line: bytes, output: str, *, samples_folder: str, index_folder: str
    ) -> None:
        """Does for all inputs at once what the line indexer does with the other methods: the same bytes."""
        described = f"{word(self._tokenizer_func)} {probe(lambda: self._ids(first_line))}"
        watched = WatchedFunction(self._tokenizer_func, described)
        try:
            windrow.tokenize(
                inputs,
                output,
                tokenizer=watched,
                to="forager",
                sample_size=self._sample_size,
                eos=None if self._sample_size is None else self._eos_idx,
                dtype=self.token_dtype,
                samples_folder=samples_folder,
                postfix=self._postfix,
                index_folder=index_folder,
                # The folders hold what the original writes, and the manifest.
                block_sums=False,
                allow_empty=True,
            )
        except Exception as error:
            if watched.failed_at is None:
                raise
            with find_line(inputs, lambda line: get_text_from_jsonl(line) == watched.failed_at):
                raise error

    def describe(self, first_line: bytes) -> dict[str, Any]:
        """What decides the samples; the functions by their names, their code and by what they make of the first line."""
        return {
            "task": "tokenize text",
            "text_function": word(self._process_text_line_func),
            "tokenizer": word(self._tokenizer_func),
            "first_line": probe(lambda: self._ids(first_line)),
            "eos": self._eos_idx,
            "dtype": str(self.token_dtype),
            "sample_size": self._sample_size,
            "samples_folder": None if self.base_output_path is None else os.path.abspath(self.base_output_path),
            "postfix": self._postfix,
        }

    def prepare_all(self, text_file_paths: Sequence[str]) -> None:
        """Chooses the names of all sample files before anything is written; refuses an `eos_idx` that the dtype cannot
        hold.
        """
        if self._packer is not None:
            exact("tokens", [self._eos_idx], self.token_dtype)
        self._files.plan(text_file_paths)

    def prepare(self, text_file_path: str) -> None:
        """A new input file begins."""
        self._files.begin(text_file_path)
        self._place = LinePlace(text_file_path)

    def create_samples(self, text_line: bytes) -> list[SampleData]:
        """The samples that this line completes. Errors are those of the two functions, and ValueErrors, with file and
        line.
        """
        with self._place.line(text_line):
            ids = self._ids(text_line)
            if self._packer is None:
                samples = [exact("tokens", ids, self.token_dtype).tobytes()]
            else:
                samples = self._packer.add({"tokens": [*ids, self._eos_idx]})
        for sample in samples:
            self._files.write(sample)
        return [SampleData(sample, self._files.path) for sample in samples]

    def finish(self, is_last_file: bool) -> None:
        """The input file is read to its end; after the last one all sample files become visible."""
        self._files.end()
        if is_last_file:
            self._files.show()

    def abort(self) -> None:
        """Removes what was written."""
        self._files.abort()

    def get_sample_schema(self) -> SampleSchema | None:
        """None: a sample is its tokens alone."""
        return None

    def _ids(self, text_line: bytes) -> list[int]:
        return self._tokenizer_func(self._process_text_line_func(text_line))
