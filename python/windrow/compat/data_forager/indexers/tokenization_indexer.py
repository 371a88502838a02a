"""Tokenises the lines of JSONL files into samples, and indexes these."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import windrow

from ....failure import failure
from ..files import find_jsonl_files
from ..index_stores.common import IndexStoreInterface
from ..index_stores.fs_based import IndexStore
from ..sample_generators.aux.common import AuxDataGenerator, Part
from ..sample_generators.sample_files import SAMPLES_FOLDER
from ..sample_generators.tokenization import (
    ProcessTextLineFunc,
    TokenizedSampleGenerator,
    TokenizerFunc,
    get_text_from_jsonl,
)
from ..sample_generators.tokenization_with_aux import ProcessPartsFunc, TokenizedSampleWithAuxGenerator
from .text_lines import FileTextLinesIndexer

__all__ = [
    "Part",
    "create_tokenize_and_index_jsonl_text_func",
    "create_tokenize_and_index_with_aux_func",
    "get_text_from_jsonl",
]


def create_tokenize_and_index_jsonl_text_func(
    tokenizer_func: TokenizerFunc,
    eos_idx: int,
    input_base_path: str | os.PathLike[str] | None = None,
    input_file_paths: Sequence[str] | None = None,
    output_base_path: str | os.PathLike[str] | None = None,
    index_store: IndexStoreInterface | None = None,
    process_text_line_func: ProcessTextLineFunc | None = None,
    logger: logging.Logger | None = None,
    name: str | None = None,
    **sample_generator_kwargs: Any,
) -> FileTextLinesIndexer:
    """What, called, tokenises the texts of JSONL lines into samples of one size, and indexes these.

    Inputs: the `*.jsonl` and `*.JSONL` files below `input_base_path`, or `input_file_paths`. Samples go to
    `<output_base_path>/tokenized-samples/`, the index to `<output_base_path>/index/`; both are by default below
    `input_base_path`. `sample_generator_kwargs` are those of `TokenizedSampleGenerator`: `sample_size` (None: one
    sample per line, without `eos_idx`), `token_dtype` (default uint16), `base_output_path`, `file_name_postfix`.

    The same run again has nothing to do; an interrupted one leaves nothing visible. Raises ValueError when there is no
    input or no destination; when called, errors that are ValueErrors or KeyErrors for a line without text and for an id
    that does not fit, and a FileExistsError when there is an index already.
    """
    log = logging.getLogger(__name__) if logger is None else logger
    inputs, store, samples = _places(
        input_base_path, input_file_paths, output_base_path, index_store, sample_generator_kwargs
    )
    text_func = get_text_from_jsonl if process_text_line_func is None else process_text_line_func
    generator = TokenizedSampleGenerator(text_func, tokenizer_func, eos_idx, **sample_generator_kwargs)
    log.debug("tokenising %d files into %s", len(inputs), samples)
    return _TextIndexer(inputs, store, generator, "Tokenizing and indexing", name)


def create_tokenize_and_index_with_aux_func(
    process_parts_func: ProcessPartsFunc,
    tokenizer_func: TokenizerFunc,
    eos_idx: int,
    aux_generators: Mapping[str, AuxDataGenerator],
    input_base_path: str | os.PathLike[str] | None = None,
    input_file_paths: Sequence[str] | None = None,
    output_base_path: str | os.PathLike[str] | None = None,
    index_store: IndexStoreInterface | None = None,
    logger: logging.Logger | None = None,
    name: str | None = None,
    **sample_generator_kwargs: Any,
) -> FileTextLinesIndexer:
    """What, called, tokenises documents of typed parts, with arrays such as a loss mask beside the tokens, and indexes
    the samples.

    `process_parts_func` gives the `Part`s of a line, `aux_generators` name and make the arrays.
    `sample_generator_kwargs` are those of `TokenizedSampleWithAuxGenerator`: `sample_size` (default 4096),
    `token_dtype` (default uint32), `base_output_path`, `file_name_postfix`. Inputs, outputs and errors as in
    `create_tokenize_and_index_jsonl_text_func`; `TokensWithAuxDataset` reads the result.
    """
    log = logging.getLogger(__name__) if logger is None else logger
    inputs, store, samples = _places(
        input_base_path, input_file_paths, output_base_path, index_store, sample_generator_kwargs
    )
    generator = TokenizedSampleWithAuxGenerator(
        process_parts_func, tokenizer_func, eos_idx, aux_generators, **sample_generator_kwargs
    )
    log.debug("tokenising %d files into %s", len(inputs), samples)
    return FileTextLinesIndexer(inputs, store, generator, "Tokenizing with aux data and indexing", name)


class _TextIndexer(FileTextLinesIndexer):
    """Runs in the core where the core writes samples and index to the same places and gives the same."""

    def __call__(self) -> None:
        store, generator = self._index_store, self._sample_generator
        assert isinstance(generator, TokenizedSampleGenerator)
        samples = os.path.abspath(generator.base_output_path or "")
        if type(store) is not IndexStore or os.path.dirname(samples) != store.base_path or not generator.in_core:
            super().__call__()
            return
        generator.run_in_core(
            [os.fspath(path) for path in self._input_file_paths],
            self._first_line(),
            store.base_path,
            samples_folder=os.path.basename(samples),
            index_folder=store.index_data_folder,
        )


def _places(
    input_base_path: str | os.PathLike[str] | None,
    input_file_paths: Sequence[str] | None,
    output_base_path: str | os.PathLike[str] | None,
    index_store: IndexStoreInterface | None,
    generator_options: dict[str, Any],
) -> tuple[list[str], IndexStoreInterface, str]:
    """The inputs, the store and the folder of samples, which is also set among the generator's options."""
    output = output_base_path or input_base_path
    if input_file_paths is None:
        if input_base_path is None:
            raise failure(windrow.ConfigError, "no input: give input_base_path or input_file_paths")
        input_file_paths = find_jsonl_files(input_base_path)
    if index_store is None:
        if output is None:
            raise failure(windrow.ConfigError, "no destination: give output_base_path, input_base_path or index_store")
        index_store = IndexStore(output)
    if "base_output_path" not in generator_options and output is not None:
        generator_options["base_output_path"] = os.path.join(output, SAMPLES_FOLDER)
    samples = generator_options.get("base_output_path")
    return (
        list(input_file_paths),
        index_store,
        f"{SAMPLES_FOLDER} beside each input" if samples is None else str(samples),
    )
