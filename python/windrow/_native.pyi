"""The compiled module: what `windrow` re-exports. Docstrings stand on the objects themselves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from os import PathLike
from types import TracebackType
from typing import Any, Literal, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt

from windrow import dataset

_Path: TypeAlias = str | PathLike[str]
_Paths: TypeAlias = _Path | Sequence[_Path]
_DType: TypeAlias = Any  # a name, np.dtype, a scalar type, torch.int64, jnp.bfloat16
_Several: TypeAlias = slice | Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]
_Ids: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]
# Arrays; values of any kind in a view of rows.
_Sample: TypeAlias = dict[str, Any]
_Scaler: TypeAlias = (
    Literal["standard", "minmax", "robust", "mean_abs", "max", "zero", "max-float32", "zero-float32"]
    | Callable[[npt.NDArray[Any]], Any]
)
_Beside: TypeAlias = Literal[
    "item", "start", "loc", "scale", "time_features", "feat_static_cat", "feat_static_real", "feat_dynamic_cat", "feat_dynamic_real", "past_feat_dynamic_real"
]
_Framework: TypeAlias = Literal["numpy", "torch", "jax"]
_Format: TypeAlias = Literal["shards", "npy", "npz", "jsonl", "tokens", "forager", "megatron", "codes", "flat-tokens", "mds", "llmc", "datatrove", "olmo", "webdataset", "tfrecord", "array_record", "bagz", "arrow", "parquet", "litdata"]

__all__ = [
    "__version__",
    "Dataset",
    "View",
    "Mix",
    "Loader",
    "Blocks",
    "Tokenizer",
    "Codec",
    "open",
    "read_audio",
    "write_audio",
    "encode",
    "rebuild_metadata",
    "_track",
    "_reopen",
    "_in_memory",
    "mix",
    "_recut",
    "_remix",
    "_swapped",
    "index",
    "temperature",
    "tokenize",
    "verify",
    "write",
    "_main",
    "_prep_plan",
    "_prep_task",
    "_prep_status",
    "_prep_merge",
    "_prep_join",
    "_prep_clean",
    "convert",
    "create_dummy_data",
    "formats",
    "delay",
    "undelay",
    "_lay_codes",
    "_draw_below",
    "_described",
    "_unexpected",
    "_views",
    "_Closes",
    "trace",
    "find",
    "diff",
    "coverage",
    "extract",
]

__version__: str

def open(
    path: _Paths,
    *,
    format: str | None = None,
    dtype: _DType | None = None,
    vocab_size: SupportsIndex | None = None,
    eos: SupportsIndex | None = None,
    split: str | None = None,
    column: str | None = None,
    columns: list[str] | None = None,
    mask_column: str | list[str] | None = "auto",
    payload: Literal["bytes", "text", "json", "example"] | None = None,
    axis: Literal["time"] | None = None,
    index_folder: str | None = None,
    tokenizer: Tokenizer | _Path | None = None,
    allow_outside: bool = False,
    trust: bool = False,
    io: Literal["mmap", "pread"] = "mmap",
    cache_limit: SupportsIndex | None = None,
    memory_limit: SupportsIndex | None = None,
    cache: _Path | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    read_ahead: SupportsIndex | None = None,
    fill_missing: bool = False,
    verify: Literal["always"] | None = None,
) -> Dataset: ...
@final
class Dataset:
    @property
    def path(self) -> str | list[str]: ...
    @property
    def format(self) -> str: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any], /) -> Any: ...
    @overload
    def __getitem__(self, key: _Several, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def _stored(self, key: SupportsIndex | _Several) -> Any: ...
    def _view(self, view: str, given: dict[str, Any], dtype: _DType | None, seed: SupportsIndex) -> View: ...
    def __reduce__(self) -> tuple[Any, tuple[str, str]]: ...
    def extras(self, i: SupportsIndex) -> dict[str, Any]: ...
    def bytes(self, i: SupportsIndex) -> bytes: ...
    def info(self) -> dict[str, Any]: ...
    def length(self, i: SupportsIndex) -> int: ...
    def split(self, validation: float, *, seed: SupportsIndex = 0) -> tuple[Dataset, Dataset]: ...
    def split_by_time(self, *fractions: float, context: SupportsIndex = 0) -> tuple[Dataset, ...]: ...
    windows = dataset.windows
    segments = dataset.segments
    pack = dataset.pack
    bins = dataset.bins
    records = dataset.records
    crop = dataset.crop
    rows = dataset.rows
    codes = dataset.codes

@final
class View:
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any], /) -> _Sample: ...
    @overload
    def __getitem__(self, key: _Several, /) -> list[_Sample]: ...
    def __getitems__(self, indices: Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]) -> Sequence[dict[str, Any]]: ...
    def __iter__(self) -> Iterator[_Sample]: ...
    def __reduce__(self) -> tuple[Any, tuple[str, int, Any, Any]]: ...
    def batch(self, indices: Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]) -> Any: ...
    def set_epoch(self, epoch: SupportsIndex) -> None: ...
    def coverage(self) -> dict[str, int]: ...
    def loader(self, batch_size: SupportsIndex | None = None, **options: Any) -> Loader: ...

@final
class Mix:
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any], /) -> _Sample: ...
    @overload
    def __getitem__(self, key: _Several, /) -> list[_Sample]: ...
    def __getitems__(self, indices: Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]) -> Sequence[dict[str, Any]]: ...
    def __iter__(self) -> Iterator[_Sample]: ...
    def __bool__(self) -> bool: ...
    def __reduce__(self) -> tuple[Any, tuple[str, list[int], list[Any], Any]]: ...
    def set_epoch(self, epoch: SupportsIndex) -> None: ...
    def coverage(self) -> dict[str, dict[str, int]]: ...
    def loader(self, batch_size: SupportsIndex | None = None, **options: Any) -> Loader: ...

def mix(
    parts: Mapping[str, tuple[View | Mix, float]],
    *,
    stop: Literal["first", "all", "never"] = "first",
    phases: Sequence[tuple[SupportsIndex, Mapping[str, float]]] | None = None,
    steps_of: SupportsIndex = 1,
    max_epochs: Mapping[str, SupportsIndex] | None = None,
    part_ids: bool = False,
) -> Mix: ...
@overload
def temperature(sizes: Mapping[str, SupportsIndex | Sized], exponent: float) -> dict[str, float]: ...
@overload
def temperature(sizes: Sequence[SupportsIndex | Sized], exponent: float) -> list[float]: ...
@final
class Blocks:
    def __new__(
        cls,
        *,
        size: SupportsIndex | None = None,
        lanes: SupportsIndex | None = None,
        rows: SupportsIndex | None = None,
        pool: SupportsIndex | None = None,
        bytes: SupportsIndex | str = "8MiB",
    ) -> Blocks: ...
    @property
    def size(self) -> int | None: ...
    @property
    def lanes(self) -> int | None: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def pool(self) -> int | None: ...
    @property
    def bytes(self) -> int: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int]]: ...

@final
class Loader:
    @property
    def dataset(self) -> Any: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def batch_sampler(self) -> None: ...
    @property
    def sampler(self) -> None: ...
    @property
    def num_workers(self) -> int: ...
    @property
    def prefetch_factor(self) -> None: ...
    @property
    def drop_last(self) -> bool: ...
    def __new__(
        cls,
        view: View | Mix,
        batch_size: SupportsIndex | None = None,
        *,
        global_batch_size: SupportsIndex | None = None,
        shuffle: bool | Blocks | Mapping[str, Blocks] = True,
        seed: SupportsIndex = 0,
        drop_last: bool = True,
        rank: SupportsIndex | None = None,
        world_size: SupportsIndex | None = None,
        epochs: SupportsIndex | None = None,
        group: Any = None,
        whole: bool = False,
        last: Literal["repeat"] | None = None,
        skip: Sequence[tuple[SupportsIndex, SupportsIndex]] | None = None,
        exclude: Iterable[SupportsIndex] | Mapping[str, Iterable[SupportsIndex]] | None = None,
        num_threads: SupportsIndex | None = None,
        prefetch: SupportsIndex = 4,
        framework: _Framework = "numpy",
        pin_memory: bool = False,
        dtype: _DType | None = None,
        collate: Callable[[Any], Any] | None = None,
    ) -> Loader: ...
    @property
    def epoch(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def parts(self) -> list[str]: ...
    @property
    def plan(self) -> str: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def __len__(self) -> int: ...
    def stream(self) -> Iterator[Any]: ...
    def set_epoch(self, epoch: SupportsIndex, /) -> None: ...
    def __enter__(self) -> Loader: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        raised: BaseException | None = None,
        trace: TracebackType | None = None,
        /,
    ) -> None: ...
    def close(self) -> None: ...
    def state_dict(self) -> dict[str, int | str]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def metrics(self) -> dict[str, float]: ...
    def prometheus(self) -> str: ...
    def mixing(self) -> dict[str, Any]: ...
    def recipe(self) -> dict[str, Any]: ...

@final
class Tokenizer:
    def __new__(cls, name_or_path: _Path) -> Tokenizer: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def eos(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def hash(self) -> str: ...
    def encode(self, text: str, *, special_tokens: bool = False) -> list[int]: ...
    def decode(self, ids: Sequence[int] | npt.NDArray[np.integer[Any]]) -> str: ...
    def __reduce__(self) -> tuple[type[Tokenizer], tuple[str]]: ...

def index(
    path: _Path,
    *,
    index_folder: str = "index",
    overwrite: bool = False,
    checksum: bool = False,
    allow_empty: bool = False,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]: ...
def tokenize(
    inputs: _Path | Iterable[_Path] | Iterable[str | Mapping[str, Any]],
    out: _Path,
    *,
    tokenizer: Tokenizer | _Path | Callable[[str], _Ids | tuple[_Ids, Sequence[int] | npt.NDArray[Any]]],
    to: Literal["forager", "tokens", "flat-tokens", "megatron", "shards", "llmc", "datatrove"] = "forager",
    sample_size: SupportsIndex | None = None,
    eos: SupportsIndex | str | None = "auto",
    text_field: str = "text",
    mask_field: str | None = None,
    text_function: Callable[[bytes], str] | None = None,
    split: str | None = None,
    dtype: _DType | None = None,
    vocab_size: SupportsIndex | None = None,
    append_eos: bool = False,
    remainder: Literal["drop", "pad"] = "drop",
    pad_value: SupportsIndex | None = None,
    special_tokens: bool = False,
    chat: bool = False,
    messages_field: str | None = None,
    chat_template: _Path | None = None,
    chat_date: str | None = None,
    overwrite: bool = False,
    threads: SupportsIndex | None = None,
    allow_empty: bool = False,
    durable: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: SupportsIndex | bool | str | None,
) -> dict[str, Any]: ...
def write(
    out: _Path,
    records: Iterable[Any] | Dataset,
    *,
    to: _Format,
    dtype: _DType | None = None,
    eos: SupportsIndex | None = None,
    vocab_size: SupportsIndex | None = None,
    append: bool = False,
    overwrite: bool = False,
    durable: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: SupportsIndex | bool | str | None,
) -> dict[str, Any]: ...
def convert(
    ds_or_path: Dataset | _Paths,
    out: _Path,
    *,
    to: _Format,
    dtype: _DType | None = None,
    overwrite: bool = False,
    allow_empty: bool = False,
    durable: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: SupportsIndex | bool | str | None,
) -> dict[str, Any]: ...
def verify(
    path: _Paths, *, store_options: Mapping[str, Any] | None = None, timeout: float | None = None
) -> dict[str, Any]: ...
def create_dummy_data(
    vocab_size: SupportsIndex, num_tokens: SupportsIndex, seed: SupportsIndex = 0
) -> npt.NDArray[np.uint32]: ...
def delay(
    codes: Any,
    delay_pattern: Sequence[SupportsIndex] | None = None,
    *,
    bos: SupportsIndex = 1026,
    eos: SupportsIndex | None = None,
) -> npt.NDArray[np.int64]: ...
def undelay(
    codes: Any,
    delay_pattern: Sequence[SupportsIndex] | None = None,
    *,
    tail: Literal["cut", "repeat"] = "cut",
) -> npt.NDArray[np.int64]: ...
@final
class _Closes:
    def __new__(cls, file: int) -> _Closes: ...

@final
class Codec:
    def __new__(
        cls, weights: _Path, threads: SupportsIndex | None = None, chunk: SupportsIndex | None = None
    ) -> Codec: ...
    @property
    def sample_rate(self) -> int: ...
    @property
    def hop_length(self) -> int: ...
    @property
    def codebooks(self) -> int: ...
    @property
    def codebook_size(self) -> int: ...
    def encode(self, samples: Any) -> npt.NDArray[np.int16]: ...
    def decode(self, codes: Any) -> npt.NDArray[np.float32]: ...
    def __reduce__(self) -> tuple[type[Codec], tuple[Any, int | None, int | None]]: ...

def encode(
    audio_dir: _Path,
    out: _Path,
    codec: Codec,
    *,
    prompts: _Path | Sequence[_Path] | None = None,
    to: Literal["codes", "shards"] = "codes",
    dtype: _DType | None = None,
    skip_tags: Sequence[str] = (),
    skip_vocals: bool = False,
    prompt_from_name: bool = False,
    quality: Literal["high", "fast"] = "high",
    skip_corrupt: bool = False,
    threads: SupportsIndex | None = None,
    overwrite: bool = False,
    durable: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]: ...
def rebuild_metadata(
    path: _Path, prompts: _Path | Sequence[_Path] | None = None, *, dry_run: bool = False
) -> dict[str, Any]: ...
def _track(path: _Path, codec: Codec) -> npt.NDArray[np.int16]: ...
def write_audio(
    path: _Path, samples: Any, sample_rate: SupportsIndex, *, overwrite: bool = False
) -> None: ...
def read_audio(
    path: _Path,
    *,
    sample_rate: SupportsIndex | None = 44100,
    quality: Literal["high", "fast"] = "high",
    skip_corrupt: bool = False,
) -> tuple[npt.NDArray[np.float32], int]: ...
def formats() -> list[dict[str, str]]: ...
def trace(
    plan: Loader | dict[str, Any] | _Path,
    step: SupportsIndex,
    *,
    row: SupportsIndex | None = None,
    epoch: SupportsIndex | None = None,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
) -> list[dict[str, Any]]: ...
def find(
    plan: Loader | dict[str, Any] | _Path,
    record: SupportsIndex,
    *,
    part: SupportsIndex | str = 0,
    epoch: SupportsIndex = 0,
    most: SupportsIndex = 1000,
) -> list[dict[str, int]]: ...
def diff(
    a: Loader | dict[str, Any] | _Path, b: Loader | dict[str, Any] | _Path, *, steps: SupportsIndex = 1000
) -> dict[str, Any]: ...
def coverage(
    plan: Loader | dict[str, Any] | _Path,
    steps: tuple[SupportsIndex, SupportsIndex],
    *,
    records: bool = False,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
) -> dict[str, Any]: ...
def extract(
    plan: Loader | dict[str, Any] | _Path,
    step: SupportsIndex,
    *,
    epoch: SupportsIndex | None = None,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
) -> Any: ...
def _reopen(path: _Paths, options: str, data: SupportsIndex) -> Dataset: ...
def _in_memory(
    arrays: list[npt.NDArray[Any]], beside: list[dict[str, Any]], options: str = "{}", data: SupportsIndex | None = None
) -> Dataset: ...
def _recut(recipe: str, seed: SupportsIndex, scaler: Any = None, epoch: Any = None, arrays: Any = None) -> View: ...
def _remix(
    recipe: str, seeds: list[SupportsIndex], scalers: list[Any] = ..., epoch: Any = None, arrays: list[Any] = ...
) -> Mix: ...
def _swapped(draws: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]: ...
def _views() -> dict[str, list[dict[str, Any]]]: ...
def _unexpected(called: str, given: str, options: list[str]) -> str: ...
def _described(function: Callable[..., Any]) -> str: ...
def _draw_below(key: tuple[int, int, int, int], n: SupportsIndex) -> int: ...
def _lay_codes(
    items: Sequence[tuple[str, Any, tuple[int, int, int, int]]], layout: str, length: SupportsIndex, random: bool
) -> dict[str, Any]: ...
def _main(arguments: Sequence[str]) -> int: ...
def _prep_plan(
    task: str,
    inputs: _Path | Iterable[_Path],
    out: _Path,
    options: str,
    *,
    task_bytes: SupportsIndex | str | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> str: ...
def _prep_task(
    job: _Path,
    task: SupportsIndex,
    *,
    threads: SupportsIndex | None = None,
    scratch: _Path | None = None,
    durable: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> bool: ...
def _prep_status(job: _Path, *, store_options: Mapping[str, Any] | None = None, timeout: float | None = None) -> dict[str, Any]: ...
def _prep_merge(job: _Path, *, store_options: Mapping[str, Any] | None = None, timeout: float | None = None) -> dict[str, Any]: ...
def _prep_join(
    job: _Path,
    out: _Path,
    *,
    overwrite: bool = False,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]: ...
def _prep_clean(job: _Path, *, store_options: Mapping[str, Any] | None = None, timeout: float | None = None) -> int: ...
