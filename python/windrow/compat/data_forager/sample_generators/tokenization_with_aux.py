"""Token samples from documents of typed parts, with arrays beside the tokens."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import windrow
from windrow._function import word

from ....failure import failure
from .aux.common import AuxDataGenerator, Part
from .common import SampleData, SampleGeneratorInterface
from .packing import Packer, exact
from .place import LinePlace
from .probe import probe
from .sample_files import SampleFiles
from .schema import ArraySpec, SampleSchema

ProcessPartsFunc = Callable[[bytes], list[Part]]
TokenizerFunc = Callable[[str], list[int]]


class TokenizedSampleWithAuxGenerator(SampleGeneratorInterface):
    """Samples of `sample_size` tokens over all documents in a row, each followed by `eos_idx`, and what the
    `aux_generators` make.

    `process_parts_func` gives the parts of a line; each is tokenised for itself. A sample is its tokens, then the other
    arrays in the order of their names. Raises ValueError when `aux_generators` is empty.
    """

    def __init__(
        self,
        process_parts_func: ProcessPartsFunc,
        tokenizer_func: TokenizerFunc,
        eos_idx: int,
        aux_generators: Mapping[str, AuxDataGenerator],
        token_dtype: npt.DTypeLike = np.uint32,
        sample_size: int = 4096,
        base_output_path: str | os.PathLike[str] | None = None,
        file_name_postfix: str = "tokenized-samples",
        name: str | None = None,
    ) -> None:
        self._log = logging.getLogger(name or type(self).__name__)
        if not aux_generators:
            raise failure(windrow.ConfigError, "aux_generators is empty; without any, use the generator for text")
        if "tokens" in aux_generators:
            raise failure(windrow.ConfigError, 'an aux generator is named "tokens", as the tokens are')
        self._process_parts_func = process_parts_func
        self._tokenizer_func = tokenizer_func
        self._eos_idx = eos_idx
        self._aux_generators = dict(sorted(aux_generators.items()))
        self._dtypes = {"tokens": np.dtype(token_dtype)}
        self._dtypes |= {name: np.dtype(aux.dtype) for name, aux in self._aux_generators.items()}
        self._sample_size = sample_size
        self._packer = Packer(sample_size, self._dtypes)
        self._postfix = file_name_postfix
        self.token_dtype = self._dtypes["tokens"]
        self._base_output_path = base_output_path
        self._files = SampleFiles(base_output_path, file_name_postfix)
        self._place = LinePlace()

    def get_sample_schema(self) -> SampleSchema:
        """The tokens and what is beside them."""
        arrays, offset = [], 0
        for name, dtype in self._dtypes.items():
            arrays.append(ArraySpec(name=name, dtype=str(dtype), offset=offset))
            offset += self._sample_size * dtype.itemsize
        return SampleSchema(self._sample_size, arrays, offset)

    def describe(self, first_line: bytes) -> dict[str, Any]:
        """What decides the samples; the functions by their names, their code and by what they make of the first line."""
        return {
            "task": "tokenize parts",
            "parts_function": word(self._process_parts_func),
            "tokenizer": word(self._tokenizer_func),
            "first_line": probe(lambda: self._document(first_line)),
            "dtypes": {name: str(dtype) for name, dtype in self._dtypes.items()},
            "sample_size": self._sample_size,
            "samples_folder": None if self._base_output_path is None else os.path.abspath(self._base_output_path),
            "postfix": self._postfix,
        }

    def prepare_all(self, text_file_paths: Sequence[str]) -> None:
        """Chooses the names of all sample files before anything is written; refuses an `eos_idx` that the dtype cannot
        hold.
        """
        exact("tokens", [self._eos_idx], self._dtypes["tokens"])
        self._files.plan(text_file_paths)

    def prepare(self, text_file_path: str) -> None:
        """A new input file begins."""
        self._files.begin(text_file_path)
        self._place = LinePlace(text_file_path)

    def create_samples(self, text_line: bytes) -> list[SampleData]:
        """The samples that this line completes. Errors: those of the functions, and ValueErrors, with file and line."""
        with self._place.line(text_line):
            samples = self._packer.add(self._document(text_line))
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

    def _document(self, text_line: bytes) -> dict[str, list[int]]:
        document: dict[str, list[int]] = {name: [] for name in self._dtypes}
        for part in self._process_parts_func(text_line):
            ids = list(self._tokenizer_func(part.text))
            document["tokens"] += ids
            for name, aux in self._aux_generators.items():
                document[name] += aux.generate(part_type=part.type, num_tokens=len(ids), part_tokens=ids)
        document["tokens"].append(self._eos_idx)
        for name, aux in self._aux_generators.items():
            document[name].append(aux.generate_for_eos())
        return document
