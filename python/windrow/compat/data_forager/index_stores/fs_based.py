"""The index as files in a folder: the data files' paths, a row per sample, and the schema of what a sample holds."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from array import array
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

import windrow

from ....failure import failure
from ..sample_generators.schema import ArraySpec, SampleSchema
from ..sample_index import SampleIndex
from .side_file import SIDE_FILE, SideFile, file_row

FILE_LIST = "file_location.txt"
LOCATIONS = "sample_locations.bin"
SCHEMA = "sample_schema.json"

MOST_ROWS_CHECKED_ON_LOAD = 1_000_000
ROWS_PER_WRITE = 1 << 16


class IndexAlreadyExists(windrow.ExistsError, ValueError):
    """The index is there already: a FileExistsError and, as in the original, a ValueError."""


class IndexStore:
    """The index in `<base_path>/<index_data_folder>/`; paths in it are relative to `base_path`.

    What is written becomes visible at `close`, all at once. `name` names the logger.

    >>> import tempfile
    >>> base = tempfile.mkdtemp()
    >>> store = IndexStore(base_path=base)
    >>> store.init_store(); store.add_sample(base + "/a.jsonl", 0, 12); store.close()
    >>> store.load().sample_locations.tolist()
    [[0, 0, 12]]
    """

    def __init__(
        self, base_path: str | os.PathLike[str], index_data_folder: str = "index", name: str | None = None
    ) -> None:
        self._log = logging.getLogger(name or type(self).__name__)
        self.base_path = os.path.abspath(base_path)
        self.index_data_folder = index_data_folder
        self.index_path = os.path.join(self.base_path, index_data_folder)
        self._schema: SampleSchema | None = None
        self._side: SideFile | None = None
        self._work_path: str | None = None
        self._rows = array("Q")
        self._rows_file: BinaryIO | None = None
        self._numbers: dict[str, int] = {}
        self._records = 0

    def init_store(self) -> None:
        """Begins a new index beside its place.

        Raises an error that is both `windrow.ExistsError` and ValueError when there is one already.
        """
        self._refuse_existing()
        self.discard()
        os.makedirs(os.path.dirname(self.index_path), exist_ok=True)
        folder, name = os.path.split(self.index_path)
        self._work_path = tempfile.mkdtemp(prefix=f".{name}.tmp-", dir=folder)
        os.chmod(self._work_path, 0o777 & ~_umask())
        self._rows_file = open(os.path.join(self._work_path, LOCATIONS), "wb")

    def add_sample(self, file_location: str, byte_offset: int, num_bytes: int) -> None:
        """The next sample: `num_bytes` bytes of `file_location`, from `byte_offset` on."""
        file_location = os.fspath(file_location)
        number = self._numbers.setdefault(file_location, len(self._numbers))
        self._rows.extend((number, byte_offset, num_bytes))
        self._records += 1
        if len(self._rows) >= 3 * ROWS_PER_WRITE:
            self._write_rows()

    def set_sample_schema(self, schema: SampleSchema) -> None:
        """Which arrays every sample is made of."""
        self._schema = schema

    def holds(self, input_paths: Sequence[str], options: dict[str, Any]) -> bool:
        """Whether there is an index that was made from these files, as they are now, with these options."""
        side = SideFile.find(self.index_path)
        if side is None or not side.has_origin(self._input_rows(input_paths), options):
            return False
        side.refuse_stale(self.base_path)
        return True

    def set_origin(
        self, input_paths: Sequence[str], options: dict[str, Any], token_dtype: npt.DTypeLike | None = None
    ) -> None:
        """What the begun index is made from, and the dtype of the ids that its samples are made of: kept in the side
        file.
        """
        dtype = None if token_dtype is None else np.dtype(token_dtype)
        self._side = SideFile(dtype=dtype, inputs=self._input_rows(input_paths), options=options)

    def close(self) -> None:
        """Makes the index visible once its bytes have reached the disk; without `init_store` there is nothing to do."""
        if self._work_path is None:
            return
        self._write_rows()
        rows_file, self._rows_file = self._begun(), None
        _to_disk(rows_file)
        self._write(FILE_LIST, "".join(self._relative(path) + "\n" for path in self._numbers))
        if self._schema is not None:
            self._write(SCHEMA, json.dumps(_schema_to_json(self._schema), indent=2))
        if self._side is not None:
            self._write(SIDE_FILE, self._finished(self._side).text())
        _folder_to_disk(self._work_path)
        self._refuse_existing()
        os.rename(self._work_path, self.index_path)
        _folder_to_disk(os.path.dirname(self.index_path))
        self._work_path = None
        self._forget()

    def discard(self) -> None:
        """Forgets what was added since `init_store`; nothing of it becomes visible."""
        if self._rows_file is not None:
            self._rows_file.close()
            self._rows_file = None
        if self._work_path is not None:
            shutil.rmtree(self._work_path, ignore_errors=True)
            self._work_path = None
        self._forget()

    def load(self) -> SampleIndex:
        """Reads the index; its rows are mapped, not copied.

        Raises `windrow.NotFoundError` when there is none, `windrow.CorruptError` for rows that cannot be, and
        `windrow.StaleError` when a manifest says that the data has changed since.
        """
        paths = self._read_file_list()
        rows = self._map_rows()
        if len(rows) <= MOST_ROWS_CHECKED_ON_LOAD and len(rows) and int(rows[:, 0].max()) >= len(paths):
            row = int(rows[:, 0].argmax())
            raise failure(
                windrow.CorruptError,
                f"found file number {int(rows[row, 0])}, expected less than {len(paths)} ({FILE_LIST})",
                path=self._in_index(LOCATIONS),
                record=row,
                byte=24 * row,
            )
        side = SideFile.find(self.index_path)
        if side is not None:
            side.refuse_stale(self.base_path)
        return SampleIndex(
            [os.path.join(self.base_path, path) for path in paths],
            rows,
            self._read_schema(),
            None if side is None else side.dtype,
        )

    def exists(self) -> bool:
        """Whether both files of an index are there."""
        return all(os.path.exists(self._in_index(name)) for name in (FILE_LIST, LOCATIONS))

    def clear(self) -> None:
        """Removes the index, also a begun one."""
        self.discard()
        if os.path.exists(self.index_path):
            shutil.rmtree(self.index_path)

    def __del__(self) -> None:
        if getattr(self, "_work_path", None) is not None:
            self.discard()

    def _forget(self) -> None:
        self._rows, self._numbers, self._records = array("Q"), {}, 0
        self._schema, self._side = None, None

    def _in_index(self, name: str) -> str:
        return os.path.join(self.index_path, name)

    def _refuse_existing(self) -> None:
        if os.path.lexists(self.index_path):
            raise failure(
                IndexAlreadyExists,
                "the index exists already",
                path=self.index_path,
                hint="remove it with IndexStore.clear(), or choose another index_data_folder",
            )

    def _begun(self) -> BinaryIO:
        if self._rows_file is None:
            raise failure(windrow.ConfigError, "add_sample before init_store", path=self.index_path)
        return self._rows_file

    def _write_rows(self) -> None:
        self._begun().write(self._rows.tobytes())
        del self._rows[:]

    def _write(self, name: str, text: str) -> None:
        assert self._work_path is not None
        with open(os.path.join(self._work_path, name), "wb") as file:
            file.write(os.fsencode(text) if name == FILE_LIST else text.encode())
            _to_disk(file)

    def _relative(self, path: str) -> str:
        relative = os.path.relpath(path, self.base_path)
        if "\n" in relative or "\r" in relative:
            raise failure(windrow.UnsupportedError, "the index cannot hold a path with a line break", path=relative)
        return relative

    def _input_rows(self, paths: Sequence[str]) -> list[dict[str, Any]]:
        return [file_row(path, self._relative(path), timed=True) for path in paths]

    def _finished(self, side: SideFile) -> SideFile:
        # Lines are in the inputs, and those may change; samples are in files of our own.
        inputs = {row["name"] for row in side.inputs}
        names = {path: self._relative(path) for path in self._numbers}
        side.files = [file_row(path, name, timed=name in inputs) for path, name in names.items()]
        side.records = self._records
        return side

    def _read_file_list(self) -> list[str]:
        try:
            with open(self._in_index(FILE_LIST), "rb") as file:
                return [os.fsdecode(line.rstrip(b"\r")) for line in file.read().split(b"\n") if line.strip()]
        except FileNotFoundError as error:
            raise failure(
                windrow.NotFoundError,
                "there is no index",
                path=self._in_index(FILE_LIST),
                hint="make one with create_default_jsonl_indexer(base_path)(), or `windrow index`",
            ) from error

    def _map_rows(self) -> npt.NDArray[Any]:
        path = self._in_index(LOCATIONS)
        try:
            size = os.stat(path).st_size
            if size % 24:
                raise failure(windrow.CorruptError, f"found {size} bytes, expected a multiple of 24", path=path)
            if size == 0:
                return np.zeros((0, 3), np.uint64)
            return np.asarray(np.memmap(path, dtype="<u8", mode="r")).reshape(-1, 3)
        except FileNotFoundError as error:
            raise failure(windrow.NotFoundError, f"the index has no {LOCATIONS}", path=path) from error

    def _read_schema(self) -> SampleSchema | None:
        path = self._in_index(SCHEMA)
        if not os.path.exists(path):
            return None
        try:
            with open(path, encoding="utf-8") as file:
                return _schema_from_json(json.load(file))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise failure(windrow.CorruptError, f"the schema cannot be understood: {error!r}", path=path) from error


def _schema_to_json(schema: SampleSchema) -> dict[str, Any]:
    return {
        "sample_size": schema.sample_size,
        "arrays": [{"name": a.name, "dtype": a.dtype, "offset": a.offset} for a in schema.arrays],
        "total_bytes_per_sample": schema.total_bytes_per_sample,
    }


def _schema_from_json(found: dict[str, Any]) -> SampleSchema:
    arrays = [ArraySpec(name=a["name"], dtype=a["dtype"], offset=a["offset"]) for a in found["arrays"]]
    schema = SampleSchema(found["sample_size"], arrays, found["total_bytes_per_sample"])
    for spec in arrays:
        end = spec.offset + schema.sample_size * np.dtype(spec.dtype).itemsize
        if schema.sample_size < 1 or spec.offset < 0 or end > found["total_bytes_per_sample"]:
            raise ValueError(f"array {spec.name!r} ends at byte {end} of {schema.total_bytes_per_sample}")
    return schema


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _folder_to_disk(path: str) -> None:
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
