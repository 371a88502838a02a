"""JSON records by index."""

from __future__ import annotations

import json
from typing import Any

import windrow

from ....failure import describe, place
from ..sample_index import SampleIndex
from .common import Dataset


class JsonRecordError(windrow.CorruptError, json.JSONDecodeError):
    """A record that is not JSON: a `windrow.CorruptError` and, as in the original, a `json.JSONDecodeError` (a
    ValueError).
    """

    # Without a cause where a DataLoader makes it again, from the text of a worker's error.
    def __init__(self, message: str, cause: json.JSONDecodeError | None = None) -> None:
        ValueError.__init__(self, message)
        cause = cause or json.JSONDecodeError(message, "", 0)
        self.msg, self.doc, self.pos = cause.msg, cause.doc, cause.pos
        self.lineno, self.colno = cause.lineno, cause.colno

    def __reduce__(self) -> Any:
        cause = json.JSONDecodeError(self.msg, self.doc, self.pos)
        return type(self), (str(self), cause), {key: value for key, value in self.__dict__.items()}


class JsonBatch(list[Any]):
    """A batch of JSON objects, as a list; `batch["text"]` is the column, collated as torch does it.

    >>> JsonBatch([{"text": "a"}, {"text": "b"}])[0]
    {'text': 'a'}
    """

    def __getitem__(self, idx: Any) -> Any:
        if not isinstance(idx, str):
            return super().__getitem__(idx)
        from torch.utils.data import default_collate

        return default_collate([sample[idx] for sample in self])


class JsonlDataset(Dataset):
    """The parsed lines of JSONL files: `dataset[i]` is the JSON value of line i.

    A default `torch.utils.data.DataLoader` delivers batches of objects as a list of dicts.

    Reading a line that is not JSON (blank, with a byte order mark, not in `text_encoding`) raises an error that is a
    ValueError and names file, sample and byte.

    >>> import pathlib, tempfile
    >>> from windrow.compat.data_forager.indexers.jsonl_indexer import create_default_jsonl_indexer
    >>> base = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (base / "a.jsonl").write_text('{"text": "hello"}\\n')
    >>> create_default_jsonl_indexer(str(base))()
    >>> JsonlDataset.create_from_index_on_filesystem(str(base))[0]
    {'text': 'hello'}
    """

    def __init__(
        self, sample_index: SampleIndex, text_encoding: str = "utf-8", name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(sample_index, name=name, **kwargs)
        self._text_encoding = text_encoding

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """What torch's DataLoader fetches a batch with: marks objects, so that they are collated to a list."""
        import torch.utils.data._utils.collate as collate

        collate.default_collate_fn_map.setdefault(_Object, _list_of_objects)
        samples = [self[i] for i in indices]
        return [_Object(sample) if type(sample) is dict else sample for sample in samples]

    def _process_sample(self, sample_bytes: bytes) -> Any:
        return json.loads(sample_bytes.decode(self._text_encoding))

    def _sample_at(self, idx: int) -> Any:
        location = self._sample_index[idx]
        found = self._get_sample_bytes(location)
        try:
            return self._process_sample(found)
        except (ValueError, RecursionError) as error:
            raise self._not_json(error, idx % len(self), location.file_path, location.byte_offset) from error

    def _not_json(self, error: Exception, record: int, path: str, first: int) -> Exception:
        hint = None
        if isinstance(error, json.JSONDecodeError):
            byte = first + len(error.doc[: error.pos].encode(self._text_encoding, "replace"))
            if not error.doc.strip():
                hint = "a blank line is indexed like any other: remove it and index again"
            elif error.doc.startswith("\ufeff"):
                hint = 'the file begins with a byte order mark: text_encoding="utf-8-sig" reads it'
            what = f"the record is not JSON: {error.msg}"
            made: Any = JsonRecordError(describe(what, path=path, record=record, byte=byte, hint=hint), error)
        else:
            byte = first + (error.start if isinstance(error, UnicodeDecodeError) else 0)
            what = f"the record cannot be read: {error}"
            made = windrow.CorruptError(describe(what, path=path, record=record, byte=byte, hint=hint))
        place(made, path=path, record=record, byte=byte, hint=hint)
        return made  # type: ignore[no-any-return]


class _Object(dict[str, Any]):
    """A JSON object on its way through torch's collate function."""


def _list_of_objects(batch: list[Any], *, collate_fn_map: Any = None) -> JsonBatch:
    return JsonBatch(dict(sample) for sample in batch)
