"""What prepares data: lines indexed, text tokenised, records written and converted, sound encoded, all of it verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow import _native
from windrow._options import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal, SupportsIndex

    import numpy.typing as npt

    from windrow._native import Codec, Dataset, Tokenizer, _DType, _Format, _Ids, _Path, _Paths

__all__ = ["convert", "encode", "index", "tokenize", "verify", "write"]


@checked
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
) -> dict[str, Any]:
    """Indexes every line of the JSONL files below a folder, so that each is a record.

    Args:
        path: the folder, or its URL; ``*.jsonl`` at any depth, plain, ``.gz`` or ``.zst``.
        index_folder: name of the folder for the index, below ``path``.
        overwrite: replace an index of other inputs.
        checksum: keep a hash of every data file.
        allow_empty: no JSONL file at all, or only empty ones, give an empty index.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
        store_options, timeout: of URLs, as for ``open``.

    Returns:
        A dict: unchanged, output, files, records, input_bytes, ….

    Raises:
        NotFoundError: no folder, or no JSONL file in it.
        UnsupportedError: a table of Delta Lake, Iceberg or Hudi, whose log says which files are live.
        ExistsError: an index of other inputs, and no ``overwrite``.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> wr.index(folder)["records"]
    2
    """
    return _native._index(locals())


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
    skip_corrupt: bool = False,
    max_skipped: float = 0.01,
    special_tokens: bool = False,
    chat: bool = False,
    messages_field: str | None = None,
    chat_template: _Path | None = None,
    chat_date: str | None = None,
    overwrite: bool = False,
    num_threads: SupportsIndex | None = None,
    allow_empty: bool = False,
    fsync: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: SupportsIndex | bool | str | None,
) -> dict[str, Any]:
    """Turns text into token IDs on disk: that of JSON Lines, of a column of Parquet, Arrow, WebDataset and others, or of an iterable.

    The output appears complete or not at all; a run that was stopped continues where it was when it is called again. Of an
    iterable that continues by number: the items that are done are taken again, compared by their hash, and not tokenised again.

    Args:
        inputs: a path or URL, or several: JSONL files, or folders that hold some, ``.gz`` and ``.zst`` too; or files and folders of
            rows, as ``open`` reads them: Parquet, Arrow, what ``datasets`` saved, WebDataset. A str, a PathLike, and a list or
            tuple of them are paths. Any other iterable gives the texts, as str or as dicts with ``text_field``: a generator,
            ``iter(texts)``, a ``Dataset`` or ``IterableDataset`` of ``datasets``, a column of pandas or polars. Its items are taken on the
            calling thread while others tokenise.
        out: the folder to write, or its URL.
        tokenizer: a ``Tokenizer``, a name or path as it takes one, or a function from text to a list of IDs, or to a tuple of IDs
            and a loss mask: 1 for each token that is learned, 0 for the others.
        to: ``"forager"`` samples with a byte-offset index; ``"tokens"`` one stream without a header, ``"llmc"`` one with
            llm.c's; and with a record per document, ``out`` being a folder that appears as a whole: ``"flat-tokens"`` in zarr,
            ``out`` a split (``corpus.zarr/train``), ``"megatron"`` (``tokens.bin``, ``tokens.idx``), ``"shards"``
            (``meta.json``), ``"datatrove"`` (``.ds`` with its index).
        sample_size: tokens per sample, documents packed one after the other; None makes each document a record.
        eos: the ID to write after each document, where documents are packed or joined: ``"auto"`` is the tokenizer's own; or an ID,
            a token's name, None or ``"none"``. ``"append"`` is ``"auto"`` with ``append_eos``.
        text_field: key of the text in a line, or the column of rows: ``"meta.text"`` is the key ``text`` in the column
            ``meta``, or in a dict there. Of WebDataset a suffix: ``"txt"``, or ``"json.text"``.
        mask_field: key of a loss mask beside the text, or its column: a list with 1 or True for each token that is learned, else 0 or
            False. ``text_field`` holds a list of token IDs then, or a text of the same number of tokens.
        text_function: a function from a line's bytes to its text, instead; not for rows and iterables.
        split: of folders that hold several splits, the one to read: ``"train"``; of files, patterns and lists those whose
            names say it; ``"all"`` joins them.
        dtype: dtype of a stored id; None takes the smaller of uint16 and uint32 that holds the vocabulary (int32 for
            Megatron; flat-tokens are uint32, IDs up to 2**31 - 1).
        vocab_size: IDs of a function are below this.
        append_eos: end documents with ``eos`` where each is a record, too.
        remainder: ``"drop"`` or ``"pad"`` the tokens at the end that fill no sample.
        pad_value: with ``remainder="pad"``, the ID to pad with; None takes ``eos``, and is an error where there is none.
        skip_corrupt: leave damaged records out, and count them in the report and the manifest as ``skipped``: lines that are not JSON or not
            UTF-8, records without that text, conversations that the template refuses. A damaged or truncated file stays an error.
        max_skipped: with ``skip_corrupt``, the share of all records that may be left out, 0 to 1; more of them are an error.
        special_tokens: special tokens that are in the text become their IDs.
        chat: each record (a line, a row, or a dict of an iterable) is a conversation: the chat template makes its text, nothing is added, and a loss mask beside the
            tokens says what is learned: what an assistant says. Each conversation is a record, or part of samples of ``sample_size``.
        messages_field: with ``chat``, key of the messages, by default ``messages``, else ``conversations``: a list of dicts with
            ``role`` and ``content``, or ``from`` and ``value`` (ShareGPT).
        chat_template: with ``chat``, a file with a Jinja template, or ``chatml``, ``gemma``, ``llama3``, ``zephyr``; by default the one
            beside the tokenizer.json.
        chat_date: with ``chat``, the day for templates that ask for it, ``"2026-01-31"``; by default today.
        overwrite: replace an existing output.
        num_threads: encoding threads; a Python function always runs alone.
        allow_empty: no input at all, or only empty ones, give an empty output.
        fsync: bring everything to the disk before it becomes visible.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
        store_options, timeout: of URLs, as for ``open``.
        **options: those that the format has of its own, as for ``write``. With ``to="forager"`` ``samples_folder``, ``postfix``,
            ``index_folder``: names of folders and files, ``tokenized-samples`` twice, and ``index``; with it and with ``"tokens"``
            ``block_sums=False``: keep no sum of every 4 KiB, for ``open(verify_checksums=True)``; the others always have them.

    Returns:
        A dict: unchanged, output, files, records, documents, tokens, dropped_tokens, skipped (how many records as ``count``, and the ``first`` of
        them: file, record, byte, error), ….

    Raises:
        CorruptError: a line, row or item without that text; names file, record, and byte or column. Too many of them, with
            ``skip_corrupt``.
        StaleError: an iterable gives other items than a run that was stopped; the same call then starts over.
        ConfigError: an ID that does not fit the dtype; an ``eos`` that the tokenizer has not; a column that is not there.
        ExistsError: another output is there, and no ``overwrite``.
        UnsupportedError: a chat template that does not show what is learned; says which record.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> wr.tokenize(folder / "a.jsonl", folder / "tokens", tokenizer="bytes", sample_size=4)["records"]
    2
    >>> wr.open(folder / "tokens")[1].tolist()
    [116, 119, 111, 256]
    >>> wr.tokenize((text for text in ["ab", "cde"]), folder / "again", tokenizer="bytes")["tokens"]
    5
    """
    return _native._tokenize(locals())


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
    fsync: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: SupportsIndex | bool | str | None,
) -> dict[str, Any]:
    """Writes records of numbers in a format of training data.

    Records are written as they come, one at a time in memory, and become visible together at the end; an error or Ctrl-C
    leaves nothing behind.

    Args:
        out: the folder (shards, forager, codes, flat-tokens: of one split, ``corpus.zarr/train``) or file to write; of Megatron
            what both names begin with. Or its URL: then it is made below the cache folder first, and seen when all is sent.
        records: an iterable of records ``[T]``, or ``[T, C]`` with C channels in all of them (lists, arrays, tensors), or of
            dicts with ``sequence``. What else such a dict holds is metadata, which shards, jsonl, codes and the formats of
            rows keep and ``ds.extras(i)`` gives back. In a format of rows (arrow, parquet, mds, litdata, webdataset,
            tfrecord, array_record, bagz) also dicts without it, which are rows of named columns. An array ``[N, T]`` is N records; a
            ``Dataset`` is written as by ``convert``.
        to: ``"shards"``, ``"npy"`` (records of one length), ``"npz"``, ``"jsonl"``, ``"tokens"`` (one headerless row of token
            IDs), ``"forager"`` (a folder of samples with a byte-offset index), ``"megatron"`` (``out.bin`` and ``out.idx``),
            ``"codes"`` (a folder of torch tensors ``[T, C]`` with prompts), ``"flat-tokens"`` (zarr), ``"arrow"`` or
            ``"parquet"`` (a file of rows, or of a column of lists), or another that docs/formats.md says is written.
        dtype: dtype of a stored number. None takes that of the first record: an array's own; of a list float32, int64 for
            whole numbers, and uint32 in formats of token IDs (int32 in Megatron's). It is never guessed from how large the
            numbers are: ``dtype="uint16"`` halves a small vocabulary's file. Codes are int16, flat-tokens always uint32.
        eos: the ID to write after each record, also after one that ends with it already. ``open(out, document_eos=…)`` cuts a token
            file there.
        vocab_size: token IDs must be below this. The manifest keeps it, so that opening does not check again.
        append: continue behind the records that are there, stored as they are; nothing there is fine. flat-tokens only.
        overwrite: replace an existing output of this format.
        fsync: bring everything to the disk before it becomes visible.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes (0 where the
            end is not known), records.
        options: the format's own. Shards: ``max_shard_bytes`` (5 GiB), and ``normalize``, which stores ``(x - mean) / std`` as
            float32 and mean and std of each record beside it; reading undoes it. flat-tokens: ``zarr_format`` 2 as seqax
            writes it (blosc: lz4, bitshuffle) or 3 (zstd, crc32c), ``tokens_chunk_size`` (4,194,304),
            ``seq_starts_chunk_size`` (1,048,576), and with ``zarr_format=3`` ``chunks_per_shard``, which puts that many chunks
            into a file. Arrow and Parquet: ``to_column`` (``"tokens"``), the column of the numbers; Parquet: ``compression``
            (``"zstd"``, ``"zstd:9"``, ``"snappy"``, ``"none"``).
        store_options, timeout: of URLs, as for ``open``.

    Returns:
        A dict: output, files, records, tokens (of token IDs), output_bytes, ….

    Raises:
        ExistsError: something is there, and neither ``overwrite`` nor ``append``; or it is not of this format.
        ConfigError: a record that is not ``[T]`` or ``[T, C]``, or not shaped as those before it; a number that does not fit
            the dtype or the vocabulary; names the record (``.record``) and the value. An option of another format.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> wr.write(folder / "shards", ([float(i), i + 0.5] for i in range(3)), to="shards")["records"]
    3
    >>> sorted(path.name for path in (folder / "shards").iterdir())
    ['data-1-of-1.bin', 'meta.json', 'windrow.sums']
    >>> wr.write(folder / "tokens.bin", [[5, 6], [7]], to="tokens", dtype="uint16", eos=0)["tokens"]
    5
    >>> [document.tolist() for document in wr.open(folder / "tokens.bin", document_eos=0)]
    [[5, 6, 0], [7, 0]]
    >>> train = folder / "corpus.zarr" / "train"
    >>> _ = wr.write(train, [[1, 2], [3, 4, 5]], to="flat-tokens", zarr_format=3)
    >>> wr.write(train, [[6, 7, 8]], to="flat-tokens", append=True)["records"]
    1
    >>> [ids.tolist() for ids in wr.open(folder / "corpus.zarr", split="train")]
    [[1, 2], [3, 4, 5], [6, 7, 8]]
    """
    return _native._write(locals())


def convert(
    ds_or_path: Dataset | _Paths,
    out: _Path,
    *,
    to: _Format,
    dtype: _DType | None = None,
    overwrite: bool = False,
    allow_empty: bool = False,
    fsync: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: SupportsIndex | bool | str | None,
) -> dict[str, Any]:
    """Writes all records of a data set in another format; the output appears complete or not at all.

    Args:
        ds_or_path: a ``Dataset``, or the path of one, as for ``open``: numbers, or rows where the format holds rows. ``open`` has the options of reading:
            ``wr.convert(wr.open(path, format="tokens", dtype="uint16", document_eos=0), …)``. A part of a data set, as
            ``ds.split(…)`` gives it, is written as it is.
        out: the folder (shards, forager, codes, flat-tokens) or file to write; of Megatron what both names begin with. Or its URL.
        to: the format, as for ``write``.
        dtype: dtype of a written number; None takes that of the input (int32 for uint32 IDs in Megatron's format, int16 for
            codes).
        overwrite: replace an existing output.
        allow_empty: data without any record gives an empty output, in a format that can be opened without one.
        fsync: bring everything to the disk before it becomes visible.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
        options: the format's own, as for ``write``.
        store_options, timeout: of URLs, as for ``open``.

    Returns:
        A dict: output, files, records, output_bytes, ….

    Raises:
        ExistsError: something is there, and no ``overwrite``.
        NotFoundError: there are no records, and no ``allow_empty``.
        ConfigError: the format cannot hold these records, a number does not fit, or an option of another format is set; the
            message says why.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.arange(6, dtype=np.uint16).tofile(folder / "tokens.bin")
    >>> ds = wr.open(folder / "tokens.bin", format="tokens", dtype="uint16")
    >>> wr.convert(ds, folder / "t.jsonl", to="jsonl")["records"]
    1
    >>> (folder / "t.jsonl").read_text()
    '{"sequence": [0, 1, 2, 3, 4, 5]}\\n'
    """
    return _native._convert(locals())


@checked
def verify(
    path: _Paths, *, store_options: Mapping[str, Any] | None = None, timeout: float | None = None
) -> dict[str, Any]:
    """Checks every claim that is made about a data set, or about every one below a folder: sizes, hashes, counts, offsets.

    Args:
        path: a file or folder, a pattern or a list, as for ``open``.
        store_options, timeout: of URLs, as for ``open``.

    Returns:
        A dict: problems (a list of dicts of file, what, expected, found), files (a dict of each data file to its state: checked, by a
        checksum that ``by`` names; read, without a checksum to compare; bad), how many of each (checked_files, read_files, bad_files),
        checked_bytes, checked_records, and notes.

    Raises:
        NotFoundError: nothing there.
        UnrecognisedError: what is there is no data.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ids.bin"
    >>> _ = wr.write(path, [[1, 2, 3]], to="tokens", dtype="uint16")
    >>> wr.verify(path)["files"]
    {'ids.bin': {'state': 'checked', 'by': 'xxh3'}}
    >>> np.array([1, 2, 4], np.uint16).tofile(path)
    >>> [problem["what"] for problem in wr.verify(path)["problems"]]
    ['xxh3']
    """
    return _native._verify(locals())


@checked
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
    num_threads: SupportsIndex | None = None,
    overwrite: bool = False,
    fsync: bool = True,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Encodes a folder of sound files into a data set of codes ``[T, 2 * codebooks]`` with their prompts.

    Files are encoded side by side, and the codes of each are kept in the cache, so that a run that was stopped continues with
    the next file. The output appears at the end, whole. A file that cannot be encoded, sound of a kind that is not read, and
    sound in folders below is left out and listed in ``failed``.

    Args:
        audio_dir: ``.wav``, ``.flac``, ``.mp3``, ``.m4a``, ``.mp4``, ``.aac``, ``.ogg`` and ``.oga`` directly in it; or one file.
        out: the folder to write.
        codec: a ``Codec``. Each file takes its threads, so that ``Codec(weights, num_threads=1)`` suits a folder of many.
        prompts: a folder of prompts, or several: the prompt of ``song.mp3`` is the first of ``song.txt`` beside it, and
            ``song.txt`` and ``song_prompt.txt`` in each of them. None: ``audio_prompts`` beside the folder, if it is there.
        to: ``"codes"``, ``encoded_audio/NAME.pt`` and ``metadata.json``; or ``"shards"``, one file of frames to be mapped.
        dtype: of a stored code: int16 or int64.
        skip_tags: files whose prompt contains one of these texts are left out, whatever their case.
        skip_vocals: so are those with the word "vocals".
        prompt_from_name: the prompt of a file without one is its name.
        quality: of the filter where the rate of a file is not the codec's: ``"high"`` or ``"fast"``.
        skip_corrupt: continue where part of a file cannot be read, as ``read_audio`` does.
        num_threads: files that are encoded at a time; None: one for each core.
        overwrite: replace an existing output.
        fsync: bring everything to the disk before it becomes visible.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
        store_options, timeout: of URLs, as for ``open``.

    Returns:
        A dict: ``report`` (unchanged, output, records, …), ``failed`` (a list of ``file`` and ``error``), ``seconds`` of sound,
        ``without_prompt`` (how many tracks have an empty prompt).

    Raises:
        NotFoundError: no sound file.
        ConfigError: two files of one name, or none that is left; a file's own error where none can be encoded.
        ExistsError: another output is there, and no ``overwrite``.
    """
    return _native._encode(locals())
