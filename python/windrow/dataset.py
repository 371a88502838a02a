"""Data opened, and its views: how its records are sliced into samples. Each view is a method of ``windrow.Dataset``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from windrow import _native
from windrow._native import Dataset
from windrow._options import checked, method

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windrow._native import Tokenizer, View, _Beside, _DType, _Path, _Paths, _Scaler

@checked
def open(
    path: "_Paths",
    *,
    format: str | None = None,
    dtype: "_DType | None" = None,
    vocab_size: SupportsIndex | None = None,
    document_eos: SupportsIndex | None = None,
    split: str | None = None,
    column: str | None = None,
    columns: list[str] | None = None,
    mask_column: str | list[str] | None = "auto",
    payload: Literal["bytes", "text", "json", "example"] | None = None,
    axis: Literal["time"] | None = None,
    index_folder: str | None = None,
    tokenizer: "Tokenizer | _Path | None" = None,
    allow_outside: bool = False,
    trust: bool = False,
    io: Literal["mmap", "pread"] = "mmap",
    cache_limit: SupportsIndex | None = None,
    memory_limit: SupportsIndex | None = None,
    cache: "_Path | None" = None,
    store_options: "Mapping[str, Any] | None" = None,
    timeout: float | None = None,
    read_ahead: SupportsIndex | None = None,
    fill_missing: bool = False,
    verify_checksums: bool = False,
    progress: "Callable[[dict[str, int]], object] | bool | None" = None,
) -> Dataset:
    """Opens files or folders of training data; the format is recognised by content.

    Args:
        path: a file or folder, or its ``file://`` URL; a pattern for several, opened as one data set: a glob
            (``"data/*.parquet"``, ``"data/**/*.jsonl"``), whose files come in natural order, or braces (``"x-{000..127}.tar"``,
            ``"{a,b}.bin"``), which keep their order; or a list of all these, in its order. Each file or folder is opened by
            itself, and all have to be of one format, dtype and shape. A name that is there as it is written is no pattern.
        format: the name of a format, to force it; see ``windrow.formats()``.
        dtype: dtype of a stored number, where the files do not say: a name of numpy's, ``np.dtype`` or type.
        vocab_size: IDs must be below this; checked once over all of them, unless the manifest knows it.
        document_eos: the ID that ends each document in raw token files: documents are records then, each with its EOS token as
            the last value. Ends are looked for once and kept in the cache.
        split: opens the folder of that name below ``path``; without one, what its name says is of that split, such as
            ``validation/``, ``val.bin`` or ``c4-validation.00000-of-00008.json.gz``. A folder where names say several, or one
            of some files only, has to be told which; ``"all"`` joins them.
        columns: only these keys of JSON records, or columns of a format that has some: ``ds[i]`` is a dict of them. Of CSV
            the channels of its series, in this order.
        mask_column: what of the columns beside token IDs says which tokens are learned: a name, a list of names, which are
            joined by *and*, or ``None`` for no mask. ``"auto"`` finds ``loss_mask``, ``loss``, ``assistant_masks``,
            ``completion_mask`` and ``labels``. A mask is 0 and 1 (learned); labels are -100 (not learned) or the token beside
            them, not shifted. Of ``attention_mask`` a 0 is an error when the record is read, unless it is named here. Views
            have ``loss_masks`` of it; ``info()["mask_columns"]`` says what was found.
        payload: what a record of bytes holds (TFRecord, ArrayRecord, Bagz): ``"bytes"``, ``"text"``, ``"json"`` or
            ``"example"``; if not given ``"example"`` where the first record is a tf.train.Example, else ``"bytes"``.
        column: the key that holds the series, of JSON, JSON Lines, YAML and pickles whose records are objects, or a column of
            CSV; the other keys are extras. If not given it is ``sequence``, or the only key of the first record that holds numbers (of JSON Lines
            only GluonTS's ``target``, or a list with fractions).
        axis: ``"time"`` makes one series of an array ``[T, C]`` (``.npy``, ``.npz``, JSON, YAML, pickles); if not given, its
            rows are T series of C values.
        index_folder: name of the index folder, if it is not ``index``.
        tokenizer: the tokenizer that must have made the tokens: a ``Tokenizer``, a name, a path or a hash; another one is
            a ``MismatchError``.
        allow_outside: accept files that an index names outside its base folder.
        trust: accept data whose size or time differs from what the manifest says, and read as IDs what looks like the
            file of another program.
        cache_limit: bytes that all of the cache may take, what is expanded (``.gz``, ``.zst``), converted (JSON, YAML, pickles,
            CSV, ``.tsf``) and fetched together; if not given ``WINDROW_CACHE_LIMIT``, else half of what is free on its disk and
            what it holds, and of that one file 1,000 times its size where it is compressed, 16 times where it is converted, and
            64 MiB. Of URLs, 0 keeps what is fetched in memory.
        memory_limit: bytes of decoded chunks that an opened zarr store keeps in memory, all its threads together; 256 MiB
            if not given.
        cache: of URLs, the folder in which what is fetched is kept, if it is not the usual cache.
        store_options: of URLs, what their store's own tools call them: ``endpoint_url``, ``region``, ``anon``,
            ``access_key_id``, and for ``http``, ``headers``, a dict. They go before the environment and stay out of recipes.
            ``credentials`` of S3 is a function that returns such options, called again when they have expired.
        timeout: of URLs, the longest that a read waits, in seconds, all its attempts together; 300 if not given.
        read_ahead: of URLs, bytes that are fetched ahead and held in memory; 256 MiB if not given.
        fill_missing: read missing chunks of a zarr array as zeros instead of refusing them.
        io: ``"mmap"``, or ``"pread"`` for files that others may truncate; those of network mounts are never mapped.
        verify_checksums: compare each block of 4 KiB with its block checksum, whenever it is read; data without them is
            refused. Without it sizes, headers and indices are checked, when it is opened.
        progress: of URLs, ``True`` draws a bar while objects are looked at; a function is called now and then with a dict of
            done_objects and total_objects (0 where it is unknown how many there are).

    Raises:
        NotFoundError, UnrecognisedError: nothing there, or nothing known.
        CorruptError, StaleError: a claim in the files does not hold.
        MismatchError: several paths whose records cannot be one data set; it names two of them.
        ConfigError: options that do not fit; an empty list, or a path that is in it twice. When records are read: labels that
            are not the tokens beside them, and padding.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "prices.npy"
    >>> np.save(path, np.arange(21).reshape(7, 3))
    >>> len(wr.open(path)), wr.open(path, axis="time")[0].shape
    (7, (7, 3))
    >>> path = path.with_name("tokens.bin")
    >>> np.arange(10, dtype=np.uint16).tofile(path)
    >>> ds = wr.open(path, format="tokens", dtype="uint16")
    >>> len(ds), ds[0][:3].tolist()
    (1, [0, 1, 2])
    >>> [document.tolist() for document in wr.open(path, dtype="uint16", document_eos=4)]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    >>> for i in range(12):
    ...     np.save(path.with_name(f"x-{i}.npy"), np.full((2, 3), i))
    >>> [series[0].item() for series in wr.open(path.with_name("x-*.npy"))][-3:]
    [10, 11, 11]
    >>> len(wr.open(path.with_name("x-{0..9}.npy"))), len(wr.open([path.with_name("x-3.npy"), path.with_name("x-1?.npy")]))
    (20, 6)
    """
    given = locals()
    # Formats compare hashes; people name tokenizers.
    given["tokenizer"] = getattr(tokenizer, "hash", tokenizer)
    return _native._open(given.pop("path"), given.pop("progress"), given)


def _cut(view: str, given: dict[str, Any]) -> "View":
    data: Dataset = given.pop("self")
    return data._view(view, given, given.pop("dtype", None), given.pop("seed", 0))


def windows(
    self: Dataset,
    context_length: SupportsIndex,
    *,
    prediction_length: SupportsIndex = 0,
    stride: SupportsIndex | None = None,
    scaler: "_Scaler | None" = None,
    scaler_name: str | None = None,
    tail: Literal["drop", "pad"] = "drop",
    nan: Literal["propagate", "mask"] = "propagate",
    fit: tuple[float, float] | range | None = None,
    per: Literal["series", "channel", "window"] = "series",
    channels: Literal["together", "apart"] = "together",
    starts: Literal["strided", "random", "last"] = "strided",
    loss_on: Literal["all", "prediction"] = "all",
    labels: Literal["next", "same"] | None = "next",
    fields: "Sequence[_Beside] | None" = None,
    freq: str | None = None,
    dtype: "_DType | None" = None,
) -> "View":
    """Sliding windows of ``context_length + prediction_length`` inputs, ``stride`` apart (None: their width).

    A sample is ``{"input_ids", "labels", "loss_masks"}``, each ``[width]`` (the first two ``[width, C]`` for ``[T, C]``
    records), from width + 1 values: labels are one value later, masks int32, 1 where the label is real. Values are
    float32 with a scaler, else int64 or float32, unless ``dtype`` says otherwise.

    Args:
        scaler: None for the values as they are; ``"standard"`` (or ``"zero"``) subtracts the mean and divides by the
            population's standard deviation; ``"minmax"`` takes the least and greatest value to 0 and 1; ``"robust"``
            subtracts the median and divides by the distance of the quartiles; ``"mean_abs"`` divides by the mean
            magnitude, ``"max"`` by the largest. A spread of 0 divides by 1. Statistics of records are
            computed once, now, and kept in the cache folder; a window reads its own values only. Computed in float64 and
            rounded once, to ``dtype``. Or a function: it gets a whole record as array ``[T]`` or ``[T, C]`` (float64 for
            series of float64 and of whole numbers of 32 or 64 bits, else float32) and gives an array of that shape,
            always the same one.
        scaler_name: what plans call a function that scales; another function, another name. None: its module and name, and a
            hash of its source, its defaults and the plain values that it holds: None, numbers, texts, arrays and containers
            of them. A function without a source, or that holds something else, needs a name.
        tail: ``"drop"``, or ``"pad"`` for a padded window more where values would be left over.
        nan: ``"propagate"`` as in arithmetic; ``"mask"`` leaves NaN and infinity out of the statistics, puts 0 where a
            scaled value is not finite, and takes its label out of ``loss_masks``.
        fit: the part of each record that statistics come from: two fractions
            ``(0.0, 0.7)``, or a ``range`` of values. None takes the whole record, so windows are scaled by what comes
            after them; of a part by ``split_by_time`` it takes the first part.
        per: what shares statistics: ``"series"``, all channels of a record; ``"channel"``, each channel of a record;
            ``"window"``, each channel of each window, by its first ``context_length`` values alone.
        channels: ``"apart"`` makes each channel of a record ``[T, C]`` a series ``[T]`` of its own: those of record 0 in their order, then
            those of record 1, …. Windows are ``[width]`` then, scaled each by its channel, and mix with those of records ``[T]``.
            ``"together"`` keeps ``[width, C]``.
        starts: ``"strided"``; ``"random"``: as many windows, each anywhere in its record, drawn again each epoch;
            ``"last"``: one for each record, that ends with it, for evaluation; it takes no ``stride``.
        fields: what is in a batch beside the values: ``"item"`` and ``"start"`` (``[]`` int64: the record's number, and the number
            in it of the window's first value), ``"channel"`` (``[]`` int64, with ``channels="apart"``), ``"loc"`` and ``"scale"`` (float64, ``[]``, or ``[C]`` with statistics per
            channel or window of ``[T, C]``: what was subtracted, and divided by; ``wr.inverse`` undoes it);
            ``"time_features"`` (float32 ``[width, features]``, those of GluonTS's ``time_features_from_frequency_str``, from
            ``start`` and ``freq`` beside a record); by their names beside a record ``"feat_static_cat"`` (int64 ``[features]``),
            ``"feat_static_real"`` (float32), ``"feat_dynamic_cat"``, ``"feat_dynamic_real"`` and ``"past_feat_dynamic_real"``
            (``[width, features]``, stored as ``[features, T]``). They are at the positions of ``input_ids``, read once, now, and
            held in memory.
        freq: the frequency of times in pandas's words, where records do not say it: ``"h"``, ``"15min"``, ``"D"``, ``"MS"``.
        loss_on: ``"all"``, or ``"prediction"`` for masks of 1 on the last ``prediction_length`` positions only.
        labels: ``"next"``: the value after each input. ``"same"``: the input itself, for models that shift labels
            themselves (Hugging Face's); whole numbers are -100 where the mask is 0, floats keep their values. None: no
            labels. Without ``"next"`` a window is made of width values, and the mask at i says whether input i is learned.

    Raises:
        ConfigError: JSON records, a width or stride of 0, a stride with ``starts="last"``, a padded tail without
            ``starts="strided"``, an unknown name, a scaler that gives another shape, a ``fit``
            that is empty or holds no value of some record, ``labels="same"`` of an unsigned dtype; ``time_features`` of
            records without times, a feature that is not beside them or of another shape than the first record's.
        CorruptError: a record cannot be read for its statistics.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "levels.bin"
    >>> np.array([1, 2, 3, 4, 5, 6, 8], np.uint16).tofile(path)
    >>> ds = wr.open(path, format="tokens", dtype="uint16")
    >>> view = ds.windows(context_length=3, prediction_length=1, stride=2, scaler="max", loss_on="prediction")
    >>> view[1]["input_ids"].tolist(), view[1]["labels"].tolist(), view[1]["loss_masks"].tolist()
    ([0.375, 0.5, 0.625, 0.75], [0.5, 0.625, 0.75, 1.0], [0, 0, 0, 1])
    >>> ds.windows(6, scaler="max", fit=(0.0, 0.6))[0]["input_ids"].tolist()
    [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    >>> ds.windows(6, scaler=lambda series: series - series.min())[0]["input_ids"].tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    return _cut("windows", locals())


def segments(
    self: Dataset,
    length: SupportsIndex,
    buckets: Sequence[SupportsIndex] | None = None,
    *,
    scaler: "_Scaler | None" = None,
    scaler_name: str | None = None,
    nan: Literal["propagate", "mask"] = "propagate",
    fit: tuple[float, float] | range | None = None,
    per: Literal["series", "channel"] = "series",
    fields: Sequence[str] | None = None,
    labels: Literal["next", "same"] | None = "next",
    dtype: "_DType | None" = None,
) -> "View":
    """Records one after the other in rows of ``length`` positions, split where a row is full: no padding but in the last row.

    A sample is ``input_ids``, ``labels`` (``[T]`` or ``[T, C]``), ``loss_masks``, ``segment_ids`` (``[T]`` int32; 0, 1, … per
    piece of a record, -1 in padding) and ``pack_bucket`` (int32: T). A record of L values gives L - 1 pairs of input
    and label; none crosses two records.

    Args:
        buckets: lengths that T may have instead of ``length``: the smallest that takes the rest of the record a row starts
            in. A batch is as long as its longest row.
        scaler, scaler_name, nan, fit, per: as for ``windows``; ``per`` is ``"series"`` or ``"channel"``.
        fields: those that are wanted: the others cost no time. There are ``position_ids`` (int32 ``[T]``, from 0 in each piece),
            ``cu_seqlens`` (int32 ``[T + 1]``), ``max_seqlen`` (int32) and ``attention_mask`` (int64 ``[T]``), too, as ``bins`` has
            them.
        labels: ``"next"``: the value after each input. ``"same"``: the input itself, for models that shift labels
            themselves (Hugging Face's); whole numbers are -100 where the mask is 0: padding, what a track excludes, the
            first value of a record. None: no labels, and masks of 1 where the input is a value. Without ``"next"`` a
            record of L values takes L positions.

    Raises:
        ConfigError: JSON records, a length of 0, a bucket of 0 or above ``length``, ``labels="same"`` of an unsigned
            dtype.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.arange(6, dtype=np.uint16).tofile(folder / "a.bin")
    >>> np.arange(10, 14, dtype=np.uint16).tofile(folder / "b.bin")
    >>> view = wr.open(folder, format="tokens", dtype="uint16").segments(4)
    >>> view[1]["input_ids"].tolist(), view[1]["labels"].tolist(), view[1]["segment_ids"].tolist()
    ([4, 10, 11, 12], [5, 11, 12, 13], [0, 1, 1, 1])
    """
    return _cut("segments", locals())


def pack(
    self: Dataset,
    length: SupportsIndex,
    eos: SupportsIndex | None = None,
    *,
    documents: bool = False,
    positions: Literal["block", "document"] = "block",
    ignore_index: SupportsIndex = -100,
    shifted: bool = False,
    reshuffle: bool = False,
    scope: Literal["all", "block"] | SupportsIndex | None = None,
    multiple: SupportsIndex = 1,
    pad_value: SupportsIndex = 0,
    fields: Sequence[str] | None = None,
    labels: Literal["next", "same"] | None = "next",
    dtype: "_DType | None" = None,
) -> "View":
    """Blocks of ``length`` inputs over the joined records, each from ``length + 1`` values, the next one ``length`` later.

    A sample is ``{"input_ids", "labels"}``, each ``[length]``: every value but the first is a label exactly once, up to
    the dropped tail (in ``coverage()``). ``eos`` is the ID to put after each record in the blocks. Tokens with a ``loss_mask``
    beside them give ``loss_masks`` too: 0 where the label is excluded.

    ``labels="same"`` gives the input itself as label, -100 where its own mask excludes it: for models that shift labels
    themselves, as Hugging Face's causal ones do. ``labels=None`` gives none. Both make a block of ``length`` values, none of
    them shared with the next, and ``loss_masks`` of the inputs.

    With ``documents`` a sample also has what keeps its documents apart, for attention within them: ``position_ids``
    ``[length]``, from 0 in each document (``positions="document"``: of a document that began in an earlier block they go
    on), ``segment_ids`` ``[length]``, 0, 1, …, ``cu_seqlens`` ``[length + 1]``, where documents start and the end, which is
    repeated, and ``max_seqlen`` ``[]``, all int32. Labels are ``ignore_index`` where they are the first token of the next
    document, and where a loss mask excludes them. A document is a record; with ``eos`` that token ends one wherever it
    is, and belongs to it. ``fields`` names those that are wanted, ``attention_mask`` (int64, 1) among them.
    ``wr.torch.varlen`` makes of a batch what flash attention takes.

    With ``shifted`` a block is made of ``length`` values and shares none: every value is a target. A sample is
    ``{"targets", "inputs", "is_seq_start", "segment_ids", "position_ids"}``, each ``[length]``. ``inputs`` hold the value
    before, or 0 in the first column and where a record starts (bool ``is_seq_start``); ``segment_ids`` count the records
    that have started in the row, so 0 is what continues from the row before; ``position_ids`` count from the start of each.
    ``fields`` names those of them that are wanted: the others cost no time.

    With ``reshuffle=True`` the records are joined in another order in each epoch, so that a document has other neighbours in its
    blocks. The number of samples and their shapes stay. ``scope`` says which records change places: all (``None``, ``"all"``), or
    consecutive ones: a number of them, or with ``"block"`` as many as 2 MiB hold, at least 256, as ``shuffle=wr.Blocks()`` needs it. ``view[i]`` is of epoch 0
    until ``set_epoch`` says another.

    ``multiple=M`` fills each document, with its ``eos``, up to a multiple of M positions before blocks are cut, as context parallelism
    needs it: ``pad_value`` in ``input_ids``, ``ignore_index`` in ``labels``, 0 in ``loss_masks``. Positions and segments continue there, so
    ``cu_seqlens`` counts it in; ``coverage()`` has it as ``padded``. Needs ``documents``; a document is then a record, whatever tokens it holds,
    and M divides ``length``.

    Raises:
        ConfigError: JSON records, a length of 0, an ``eos`` that the stored dtype or a known vocabulary
            cannot hold, an unknown field, an empty list of them, ``labels`` with ``shifted``,
            ``labels="same"`` of an unsigned dtype where a mask excludes tokens, an ``ignore_index`` that the dtype
            cannot hold, documents that are not token IDs, ``reshuffle`` of fewer than two records, ``scope`` without it,
            ``multiple`` without ``documents``, or one that does not divide ``length``.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(10, dtype=np.uint32).tofile(path)
    >>> view = wr.open(path, format="tokens", dtype="uint32").pack(4)
    >>> len(view), view[1]["input_ids"].tolist(), view[1]["labels"].tolist()
    (2, [4, 5, 6, 7], [5, 6, 7, 8])
    >>> same = wr.open(path, format="tokens", dtype="uint32").pack(4, labels="same")
    >>> same[1]["input_ids"].tolist(), same[1]["labels"].tolist()
    ([4, 5, 6, 7], [4, 5, 6, 7])
    >>> block = wr.open(path, format="tokens", dtype="uint32").pack(6, eos=3, documents=True)[0]
    >>> block["labels"].tolist(), block["position_ids"].tolist(), block["cu_seqlens"].tolist()
    ([1, 2, 3, -100, 5, 6], [0, 1, 2, 3, 0, 1], [0, 4, 6, 6, 6, 6, 6])
    >>> block = wr.open(path, format="tokens", dtype="uint32", document_eos=3).pack(8, documents=True, multiple=8)[0]
    >>> block["input_ids"].tolist(), block["labels"].tolist(), block["cu_seqlens"].tolist()[:3]
    ([0, 1, 2, 3, 0, 0, 0, 0], [1, 2, 3, -100, -100, -100, -100, -100], [0, 8, 8])
    >>> view = wr.open(path, format="tokens", dtype="uint32", document_eos=3).pack(5, labels=None, reshuffle=True)
    >>> for epoch in (1, 2):
    ...     view.set_epoch(epoch)
    ...     print([row["input_ids"].tolist() for row in view])
    [[4, 5, 6, 7, 8], [9, 0, 1, 2, 3]]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    """
    return _cut("pack", locals())


def bins(
    self: Dataset,
    length: SupportsIndex,
    strategy: Literal["best_fit", "first_fit"] = "best_fit",
    *,
    overlong: Literal["cut", "split", "drop"] = "cut",
    scope: Literal["all", "block"] | SupportsIndex | None = "all",
    reshuffle: bool = False,
    multiple: SupportsIndex = 1,
    pad_value: SupportsIndex = 0,
    fields: Sequence[str] | None = None,
    labels: Literal["next", "same"] | None = "next",
    dtype: "_DType | None" = None,
) -> "View":
    """Whole records side by side in rows of ``length`` positions; ``strategy`` is ``"best_fit"`` or ``"first_fit"``.

    A sample is ``input_ids``, ``labels``, ``loss_masks``, ``position_ids``, ``segment_ids`` (``[length]`` each) and
    ``cu_seqlens``. ``fields`` names those that are wanted: the others cost no time. There are ``max_seqlen`` (int32: positions of
    the longest record in the row) and ``attention_mask`` (int64 ``[length]``: 1, 0 in padding), too.

    ``overlong`` says what becomes of a record longer than ``length``: ``"cut"`` takes its first values and warns, ``"split"``
    makes several pieces of it, each a segment by itself, ``"drop"`` leaves it out. ``coverage()`` counts what is never seen.

    ``pad_value`` is in the positions that no record fills.

    ``scope`` says which records may share a row: ``"all"``, or consecutive ones: a number of them, or with ``"block"`` as
    many as 8 MiB hold. Rows that are neighbours hold neighbours then, as ``shuffle=wr.Blocks()`` needs them.

    With ``reshuffle=True`` records of nearly the same length, within 1/64, trade places in each epoch, so that others share a row. The
    number of rows, about one in a hundred more, and their shapes stay. ``view[i]`` is of epoch 0 until ``set_epoch`` says another.

    ``multiple=M`` lets each record take a multiple of M positions, as context parallelism needs it: ``pad_value`` in ``input_ids``, -100 in
    ``labels`` (of fractions ``pad_value``) and 0 in ``loss_masks`` fill it. Positions and segments continue there, so ``cu_seqlens`` counts it in.
    M divides ``length``.

    ``labels="same"`` gives the input itself as label, for models that shift labels themselves (Hugging Face's): -100, and
    a mask of 0, in padding, where its own mask excludes it, and where a record begins, which nothing before it tells.
    ``labels=None`` gives none, and masks of 1 where the input is a value that is not excluded.

    Raises:
        ConfigError: JSON records, a length or a scope of 0, an unknown field, ``labels="same"`` of an unsigned dtype,
            ``reshuffle`` of fewer than two records, a ``multiple`` that does not divide ``length``.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    >>> row = wr.open(path).bins(6)[0]
    >>> row["input_ids"].tolist(), row["labels"].tolist(), row["loss_masks"].tolist()
    ([1, 2, 3, 4, 5, 0], [2, 3, 0, 5, 0, 0], [1, 1, 0, 1, 0, 0])
    >>> row["position_ids"].tolist(), row["segment_ids"].tolist(), row["cu_seqlens"].tolist()
    ([0, 1, 2, 0, 1, 0], [0, 0, 0, 1, 1, -1], [0, 3, 5])
    >>> wr.open(path).bins(6, labels="same")[0]["labels"].tolist()
    [-100, 2, 3, -100, 5, -100]
    >>> [row["input_ids"].tolist() for row in wr.open(path).bins(2, overlong="split", fields=["input_ids"])]
    [[4, 5], [1, 2], [3, 0]]
    >>> row = wr.open(path).bins(8, multiple=4)[0]
    >>> row["input_ids"].tolist(), row["labels"].tolist(), row["cu_seqlens"].tolist()
    ([1, 2, 3, 0, 4, 5, 0, 0], [2, 3, 0, -100, 5, 0, -100, -100], [0, 4, 8])
    """
    return _cut("bins", locals())


def records(
    self: Dataset,
    length: SupportsIndex,
    pad_value: SupportsIndex = 0,
    *,
    pad: Literal["length", "longest"] | Sequence[SupportsIndex] = "length",
    group: SupportsIndex | None = None,
    labels: Literal["next", "same"] | None = "next",
    dtype: "_DType | None" = None,
) -> "View":
    """One row per record, from its first ``length + 1`` values; shorter ones are filled with ``pad_value``.

    A sample is ``{"input_ids", "labels", "loss_masks"}``, each ``[length]``. With ``pad="longest"`` the rows of a batch are as long
    as the longest of them, and no longer than ``length``; each rank's rows by themselves. ``pad=[512, 1024, 2048]`` makes them as long as the
    smallest of these that holds the longest row of the batch over all ranks: few shapes, the same on each rank, as JAX wants. ``group=32`` brings 32 rows of about
    the same length together, so that a batch of 32 has little padding: of every 50 groups in random order the rows are sorted
    by length, and the groups come in random order again. Give the rows of a batch over all ranks. Such a view is shuffled, and
    no part of a mix; it keeps 4 bytes for each record.

    ``labels="same"`` gives the input itself as label, for models that shift labels themselves (Hugging Face's): -100, and
    a mask of 0, in padding and where its own mask excludes it. ``labels=None`` gives none. Both take ``length`` values of a
    record, and their masks are those of the inputs.

    Raises:
        ConfigError: JSON records, a length of 0, ``labels="same"`` of an unsigned dtype; lengths in ``pad`` that do not ascend, or of
            which the last is below ``length``.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    >>> row = wr.open(path).records(3, pad_value=9)[1]
    >>> row["input_ids"].tolist(), row["labels"].tolist(), row["loss_masks"].tolist()
    ([4, 5, 9], [5, 9, 9], [1, 0, 0])
    >>> wr.open(path).records(3, labels="same")[1]["labels"].tolist()
    [4, 5, -100]
    >>> wr.open(path).records(512, pad="longest").batch([0, 1])["input_ids"].tolist()
    [[1, 2], [4, 5]]
    """
    return _cut("records", locals())


def crop(
    self: Dataset,
    length: SupportsIndex,
    mode: Literal["random", "start"] = "random",
    *,
    dtype: "_DType | None" = None,
    seed: SupportsIndex = 0,
) -> "View":
    """Up to ``length`` values of each record, from a random place (``mode="random"``) or its start (``"start"``).

    A sample is ``{"values": [length] or [length, C], "lengths": []}``; shorter records are padded with 0. ``seed`` decides
    the places of ``view[i]``; a loader draws by its own seed, again each epoch.

    Raises:
        ConfigError: JSON records, a length of 0.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    >>> row = wr.open(path).crop(4, mode="start")[1]
    >>> row["values"].tolist(), int(row["lengths"])
    ([4, 5, 0, 0], 2)
    """
    return _cut("crop", locals())


def rows(
    self: Dataset,
    columns: Sequence[str] | None = None,
    *,
    stack: bool = False,
) -> "View":
    r"""Records whole, as ``ds[i]`` gives them: rows of columns, or JSON. Text, pictures and sound go through as they are stored.

    A batch is a list of them; ``Loader(..., collate=)`` makes tensors of it. Arrays are writable.

    Args:
        columns: only these columns or keys, in this order; a key that a JSON record lacks is None there. The others are not
            read.
        stack: a batch is a dict of columns: an array ``[B, …]`` of numbers, and of arrays and lists of numbers of one shape; a
            list of anything else. Records without names are the column ``"value"``. ``view[i]`` stays a record.

    Raises:
        ConfigError: records of numbers, which ``records``, ``pack`` and others cut; a column that is not there.
        MismatchError: when a batch is stacked: numbers of a column that differ in shape or dtype, as 1 and 0.5 do; names column
            and record.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.jsonl"
    >>> _ = path.write_text('{"text": "one", "label": 1}\n{"text": "two", "label": 2}\n')
    >>> ds = wr.open(path)
    >>> next(ds.rows().loader(batch_size=2, shuffle=False))
    [{'text': 'one', 'label': 1}, {'text': 'two', 'label': 2}]
    >>> next(ds.rows(["label", "text"], stack=True).loader(batch_size=2, shuffle=False))
    {'label': array([1, 2]), 'text': ['one', 'two']}
    """
    return _cut("rows", locals())


def codes(
    self: Dataset,
    length: SupportsIndex | None = None,
    mode: Literal["random", "start"] = "random",
    *,
    config: "_Path | dict[str, Any] | None" = None,
    channels: SupportsIndex | None = None,
    text_length: SupportsIndex | None = None,
    delay_pattern: Sequence[SupportsIndex] | None = None,
    masks: Literal["dense", "lengths"] | None = "dense",
    keep_tail: bool = False,
    unconditional: float = 0.0,
    tag_shuffle: bool = False,
    tag_dropout: float = 0.0,
    tag_limit: SupportsIndex | None = None,
    codebook_size: SupportsIndex | Literal["auto"] | None = "auto",
    text_cut: Literal["character", "byte"] = "character",
    dtype: "_DType | None" = None,
    seed: SupportsIndex = 0,
) -> "View":
    r"""Up to ``length`` frames of each track of audio codes ``[T, C]`` with its prompt, as a codec language model is trained:
    from a random place (``mode="random"``) or the start (``"start"``).

    A sample, where a batch has S = ``text_length``, T = its longest sample in frames, and C channels:

    - ``src_tokens`` ``[S]``: the prompt's UTF-8 bytes, then padding; ``src_positions`` ``[S]``: 0, 1, …
    - ``tgt_tokens`` ``[T + 2, C]``: BOS, the delayed codes, EOS, then padding; ``tgt_positions`` ``[T + 2]``
    - ``enc_self_attn_mask`` ``[1, S, S]``, ``dec_self_attn_mask`` ``[1, T + 2, T + 2]`` (causal), ``dec_cross_attn_mask``
      ``[1, T + 2, S]``: bool, True where it attends
    - ``seq_lens`` ``[]``: frames; ``tgt_lens`` ``[]``: frames + 2

    Tokens are int64 unless ``dtype`` says int32 or int16; positions and lengths are int64.

    Args:
        length: frames of a sample at most; None takes ``audio_length`` of ``config``.
        config: Dia's ``config.json``, as a path or a dict: lengths, channels, special values and delays of its ``"data"``.
        channels: channels of a batch; None takes those of the data. Codes of half as many are written twice: mono as stereo.
        text_length: bytes of a prompt at most (512).
        delay_pattern: frames by which each channel is delayed; None: 0, 1, 2, …, for 18 channels 0 to 8 twice.
        masks: ``"dense"``; ``"lengths"`` gives ``src_lens`` instead of masks, for attention by lengths; None neither.
        keep_tail: keep the last codes of delayed channels, each with its own EOS after them: ``tgt_tokens`` is longer by
            the longest delay.
        unconditional: fraction of samples without their prompt, drawn again each epoch.
        tag_shuffle, tag_dropout, tag_limit: the prompt's comma-separated tags in random order, each left out with a
            probability (never all), at most ``tag_limit``; drawn by seed, epoch and sample. None of them leaves prompts alone.
        codebook_size: codes must be below this; ``"auto"`` is the lowest special value (1024), None checks none.
        text_cut: a longer prompt is cut before a ``"character"``, or at the ``"byte"``.
        seed: decides what is drawn for ``view[i]``; a loader draws by its own seed, again each epoch.

    Raises:
        ConfigError: records that are not codes, other channels or delays than they have, no length, a ``config`` that is not one.
        NotFoundError, IoError: a ``config`` that cannot be read.
        CorruptError: when a batch is assembled: a code outside the codebook, a prompt that is not text.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tracks.jsonl"
    >>> _ = path.write_text('{"sequence": [[1, 2], [3, 4]], "text": "hi"}\n')
    >>> view = wr.open(path, format="series-jsonl").codes(600, text_length=4, masks="lengths")
    >>> view[0]["src_tokens"].tolist(), view[0]["tgt_tokens"].tolist()
    ([104, 105, 0, 0], [[1026, 1026], [1, 1026], [3, 2], [1024, 1024]])
    """
    return _cut("codes", locals())


for _view in (windows, segments, pack, bins, records, crop, rows, codes):
    method(Dataset, _view)
