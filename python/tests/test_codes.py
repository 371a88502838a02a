"""Audio codes: folders that torch wrote, batches, loaders, workers; what is written is read by torch."""

from __future__ import annotations

import json
import pathlib
import pickle

import numpy as np
import pytest
import torch
import windrow as wr

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden" / "4_dia"
DELAYS = [*range(9), *range(9)]


@pytest.fixture
def tracks(tmp_path):
    """Six tracks by torch itself, of 20 to 45 frames; code = 18 t + c + 7 i, modulo 1000."""
    folder = tmp_path / "tracks" / "encoded_audio"
    folder.mkdir(parents=True)
    for i in range(6):
        frames = 20 + 5 * i
        codes = (torch.arange(frames * 18).reshape(frames, 18) + 7 * i) % 1000
        torch.save(codes.to([torch.int16, torch.int32, torch.int64][i % 3]), folder / f"{i}.pt")
    (folder.parent / "metadata.json").write_text(json.dumps({f"{i}.pt": {"text": f"é{i}, b, c"} for i in range(6)}))
    return folder.parent


def codes_of(i, t, c):
    return (t * 18 + c + 7 * i) % 1000


def test_a_folder_that_torch_wrote_opens_with_its_prompts(tracks):
    ds = wr.open(tracks)
    assert (ds.format, len(ds), ds[2].shape, ds[2].dtype) == ("codes", 6, (30, 18), np.int64)
    assert ds.extras(2) == {"text": "é2, b, c", "name": "2"}
    for i in range(6):
        assert (ds[i] == torch.load(tracks / "encoded_audio" / f"{i}.pt", weights_only=True).numpy()).all()
    info = ds.info()
    assert (info["channels"], info["length_min"], info["length_max"]) == (18, 20, 45)


@pytest.mark.parametrize("options", [{"_use_new_zipfile_serialization": False}, {}])
@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64, torch.float32, torch.float16, torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_every_way_that_torch_saves_a_tensor(tmp_path, dtype, options):
    whole = (torch.arange(400 * 18).reshape(400, 18) % 256).to(dtype)
    views = {
        "whole": whole,
        "offset": whole[37:91],
        "steps": whole[::3],
        "transposed": whole.T.contiguous().T,
        "columns": whole[:, 3:12],
        "empty": whole[:0],
        "one": whole[5:6],
    }
    for name, view in views.items():
        path = tmp_path / f"{name}.pt"
        torch.save(view, path, **options)
        found = wr.open(path)[0]
        assert found.shape == tuple(view.shape), name
        assert (found == view.to(torch.int64).numpy()).all(), name


@pytest.mark.parametrize("options", [{"_use_new_zipfile_serialization": False}, {}])
def test_parameters_and_buffers_are_their_tensors(tmp_path, options):
    codes = torch.arange(40 * 9).reshape(40, 9)
    marked = torch.nn.Parameter(codes.to(torch.int32), requires_grad=False)
    marked.note = "kept by torch"
    kinds = {
        "parameter": torch.nn.Parameter(codes.float()),
        "marked": marked,
        "buffer": torch.nn.Buffer(codes.to(torch.int16)),
        "unsigned": torch.nn.Buffer(codes.to(torch.uint16)[10:30]),
    }
    for name, tensor in kinds.items():
        torch.save(tensor, tmp_path / f"{name}.pt", **options)
        assert wr.open(tmp_path / f"{name}.pt")[0].tolist() == tensor.tolist(), name


def test_transposed_codes_are_told(tmp_path, caplog):
    def save(name, shapes, dtype=torch.int16):
        folder = tmp_path / name
        folder.mkdir()
        for i, shape in enumerate(shapes):
            torch.save(torch.randint(0, 1024, shape).to(dtype), folder / f"{i}.pt")
        return folder

    for shapes in ([(9, 301)] * 3, [(9, 300), (9, 420)], [(1, 9, 300)]):
        with pytest.raises(wr.WindrowError) as error:
            wr.open(save(f"refused{len(shapes)}{len(shapes[0])}", shapes))
        assert "transpose" in error.value.hint or "codes[0].T" in error.value.hint
    with pytest.raises(wr.MismatchError) as error:
        wr.open(save("short and unequal", [(9, 60), (9, 71)]))
    assert "transpose" in error.value.hint
    short = save("short", [(9, 86)] * 2)
    assert "transpose" not in caplog.text and len(wr.open(short)) == 2 and "transpose" in caplog.text
    (problem,) = wr.verify(short)["problems"]
    assert "transpose" in problem["expected"] and "9 frames of 86 codebooks" in problem["found"]
    # No longer than codecs have codebooks: still more than frames, and as many frames as codecs have codebooks in every clip.
    for name, shapes in {"few": [(9, 30)] * 3, "one": [(8, 31)], "twice": [(9, 16), (9, 32)]}.items():
        caplog.clear()
        folder = save(name, shapes)
        assert len(wr.open(folder)) == len(shapes) and "transpose" in caplog.text
        assert ["transpose" in problem["expected"] for problem in wr.verify(folder)["problems"]] == [True]
    with pytest.raises(wr.MismatchError) as error:
        wr.open(save("tiny", [(9, 5), (9, 8), (9, 7)]))
    assert "transpose" in error.value.hint
    # Clips of one length, tracks of few codebooks, and a mono and a stereo one are what they are.
    caplog.clear()
    for name, shapes in {
        "clips": [(301, 9)] * 3,
        "mono": [(40, 1), (30, 1)],
        "short mono": [(30, 9)] * 3,
        "both": [(8, 9), (8, 18)],
    }.items():
        folder = save(name, shapes)
        assert wr.verify(folder)["problems"] == [] and wr.open(folder) and not caplog.text
    wide = tmp_path / "wide.jsonl"
    wide.write_text(json.dumps({"sequence": [[0] * 301] * 9}) + "\n")
    with pytest.raises(wr.ConfigError, match="301 codebooks"):
        wr.open(wide).codes(200)


def test_more_codebooks_than_are_read_are_not_written(tmp_path):
    wr.write(tmp_path / "most", [np.zeros((4, 128), "int16")], to="codes")
    assert wr.open(tmp_path / "most")[0].shape == (4, 128)
    with pytest.raises(wr.ConfigError, match="129 codebooks, expected at most 128") as refused:
        wr.write(tmp_path / "more", [np.zeros((4, 129), "int16")], to="codes")
    assert "transpose" in refused.value.hint and not (tmp_path / "more").exists()


def test_fractions_are_not_written_as_codes(tmp_path):
    wr.write(tmp_path / "ts", [np.array([0.5, 1.5], "float32")], to="shards")
    with pytest.raises(wr.ConfigError, match="float32 values cannot be stored as int16") as refused:
        wr.convert(tmp_path / "ts", tmp_path / "codes", to="codes")
    # This format has no float32.
    assert "another format" in refused.value.hint


# Latents saved by mistake, and not codes in another dtype.
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16])
def test_floats_with_fractions_are_not_codes(dtype, tmp_path):
    codes = torch.arange(12 * 9).reshape(12, 9).to(dtype)
    torch.save(codes, tmp_path / "whole.pt")
    assert (wr.open(tmp_path / "whole.pt")[0] == codes.to(torch.int64).numpy()).all()
    codes[7, 2] = 3.5
    torch.save(codes, tmp_path / "latents.pt")
    ds = wr.open(tmp_path)
    assert len(ds) == 2
    for read in (lambda: ds[0], lambda: ds.codes(20, "start").loader(1, shuffle=False, num_threads=0).__next__(),
                 lambda: wr.convert(ds, tmp_path / "out", to="shards")):  # fmt: skip
        with pytest.raises(wr.CorruptError, match="expected a code, found 3.5") as caught:
            read()
        assert (caught.value.path, caught.value.record) == (str(tmp_path / "latents.pt"), 0)
    assert [problem["file"] for problem in wr.verify(tmp_path)["problems"]] == [str(tmp_path / "latents.pt")]


def test_codes_beyond_the_codebook_are_named_by_their_value(tmp_path):
    for number, (wrong, dtype) in enumerate([(1024, "int16"), (-1, "int16"), (70_000, "int64"), (-5, "int8")]):
        codes = np.zeros((20, 9), dtype)
        codes[4, 3] = wrong
        folder = tmp_path / str(number)
        folder.mkdir()
        torch.save(torch.from_numpy(codes), folder / "a.pt")
        for options in ({"length": 30}, {"length": 30, "keep_tail": True}):
            with pytest.raises(wr.CorruptError, match=f"code {wrong} at frame 4, channel 3.*0 to 1023") as caught:
                wr.open(folder).codes(mode="start", **options)[0]
            assert caught.value.record == 0
    with pytest.raises(wr.CorruptError, match="code 70000 at frame 4, channel 3.*int16"):
        wr.open(tmp_path / "2").codes(30, "start", codebook_size=None, dtype="int16")[0]


MARK = b"\xef\xbb\xbf"


def test_a_byte_order_mark_is_not_part_of_a_prompt(tmp_path):
    folder = tmp_path / "encoded_audio"
    folder.mkdir()
    (tmp_path / "prompts").mkdir()
    for name in "abcde":
        torch.save(torch.zeros(5, 9, dtype=torch.int16), folder / f"{name}.pt")
    (folder / "a.txt").write_bytes(MARK + b"slow piano\n")
    (tmp_path / "prompts" / "b.txt").write_bytes(b"slow piano")
    (tmp_path / "prompts" / "c_prompt.txt").write_bytes(b" " + MARK + b" slow piano")
    (folder / "e.txt").write_bytes(MARK)
    (tmp_path / "metadata.json").write_bytes(MARK + json.dumps({"d.pt": {"text": " \ufeffslow piano"}}).encode())
    ds = wr.open(tmp_path)
    wanted = ["slow piano"] * 4 + [""]
    assert [ds.extras(i)["text"] for i in range(5)] == wanted
    wr.convert(ds, tmp_path / "shards", to="shards")
    records = [{"sequence": np.zeros((5, 9), "int16"), "text": "\ufeffslow piano"}]
    wr.write(tmp_path / "marked", records, to="shards")
    for i, ds in [*((i, ds) for i in range(4)), (0, wr.open(tmp_path / "shards")), (0, wr.open(tmp_path / "marked"))]:
        row = ds.codes(10, "start", text_length=16, masks="lengths")[i]
        assert bytes(row["src_tokens"].astype("uint8")).rstrip(b"\0") == b"slow piano" and row["src_lens"] == 10


@pytest.mark.parametrize("options", [{}, {"masks": None}, {"masks": "dense"}, {"keep_tail": True}, {"unconditional": 0.5}])
def test_padding_of_frames_and_of_text_is_counted_each_by_itself(tracks, options):
    for text_length in (3, 16, 5000):
        if options.get("masks") == "dense" and text_length > 100:
            continue
        told = {"masks": "lengths", **options}
        view = wr.open(tracks).codes(40, "start", text_length=text_length, **told)
        loader = wr.Loader(view, batch_size=4, seed=0, drop_last=False, num_threads=0, epochs=1)
        frames, rows, text, tokens = 0, 0, 0, 0
        for batch in loader:
            frames += int(batch["tgt_lens"].sum())
            rows += batch["tgt_tokens"].shape[0] * batch["tgt_tokens"].shape[1]
            text += int((batch["src_tokens"] != 0).sum())
            tokens += batch["src_tokens"].size
        stats, metrics = loader.stats(), loader.metrics()
        assert (stats["values"], stats["positions"], stats["text_values"], stats["text_positions"]) == (frames, rows, text, tokens)
        assert stats["padding_share"] == metrics["data/padding_share"] == pytest.approx(1 - frames / rows)
        assert stats["text_padding_share"] == metrics["data/text_padding_share"] == pytest.approx(1 - text / tokens)
        assert f'windrow_text_values_total{{rank="0"}} {text}' in loader.prometheus()


def test_what_is_no_tensor_is_refused_by_name(tmp_path):
    cases = {
        "dict": {"codes": torch.zeros(2, 2)},
        "one_dimension": torch.zeros(5, dtype=torch.int16),
        "three": torch.zeros(1, 2, 3, dtype=torch.int16),
        "expanded": torch.zeros(1, 4, dtype=torch.int16).expand(1000, 4),
        "module": torch.nn.Linear(1, 1),
        "bool": torch.zeros(2, 2, dtype=torch.bool),
    }
    for name, value in cases.items():
        path = tmp_path / f"{name}.pt"
        torch.save(value, path)
        with pytest.raises(wr.WindrowError) as caught:
            wr.open(path)
        assert caught.value.path == str(path) and caught.value.hint


def test_a_batch_is_what_the_document_shows(tracks):
    view = wr.open(tracks).codes(25, "start", text_length=8)
    loader = wr.Loader(view, batch_size=3, shuffle=False, framework="torch", epochs=1)
    batch = next(loader)
    shapes = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in batch.items()}
    assert shapes == {
        "src_tokens": ((3, 8), torch.int64),
        "src_positions": ((3, 8), torch.int64),
        "enc_self_attn_mask": ((3, 1, 8, 8), torch.bool),
        "tgt_tokens": ((3, 27, 18), torch.int64),
        "tgt_positions": ((3, 27), torch.int64),
        "dec_self_attn_mask": ((3, 1, 27, 27), torch.bool),
        "dec_cross_attn_mask": ((3, 1, 27, 8), torch.bool),
        "seq_lens": ((3,), torch.int64),
        "tgt_lens": ((3,), torch.int64),
    }
    assert batch["seq_lens"].tolist() == [20, 25, 25] and batch["tgt_lens"].tolist() == [22, 27, 27]
    assert batch["src_tokens"][0].tolist() == list("é0, b, c".encode()[:8])
    for row in range(3):
        frames = int(batch["seq_lens"][row])
        for t in range(frames):
            expected = [codes_of(row, t - d, c) if t >= d else 1026 for c, d in enumerate(DELAYS)]
            assert batch["tgt_tokens"][row, t + 1].tolist() == expected
        valid = torch.arange(27) < frames + 2
        causal = torch.ones(27, 27, dtype=torch.bool).tril()
        assert (batch["dec_self_attn_mask"][row, 0] == (valid[:, None] & valid[None, :] & causal)).all()


def test_options_of_the_layout(tracks):
    ds = wr.open(tracks)
    lengths = ds.codes(25, masks="lengths", dtype="int16").loader(2, epochs=1)
    batch = next(lengths)
    assert list(batch) == [
        "src_tokens", "src_positions", "tgt_tokens", "tgt_positions", "src_lens", "seq_lens", "tgt_lens"
    ]  # fmt: skip
    assert batch["tgt_tokens"].dtype == np.int16 and batch["src_lens"].tolist() == [9, 9]
    assert "src_lens" not in next(ds.codes(25, masks=None).loader(2))
    kept = ds.codes(20, "start", keep_tail=True, masks=None)[0]
    assert kept["tgt_lens"] == 30
    # Between BOS and EOS lies all of it.
    assert (wr.undelay(kept["tgt_tokens"][1:-1], tail="cut") == ds[0][:20]).all()
    config = {"data": {"audio_length": 21, "channels": 18, "text_length": 5, "audio_bos_value": 1030}}
    configured = ds.codes(config=config)[0]
    assert configured["tgt_tokens"][0, 0] == 1030 and configured["src_tokens"].tolist() == list("é0, ".encode())
    cut = ds.codes(20, text_length=1)[0]["src_tokens"]
    assert cut.tolist() == [0]
    assert ds.codes(20, text_length=1, text_cut="byte")[0]["src_tokens"].tolist() == ["é".encode()[0]]
    with pytest.raises(wr.ConfigError, match="length"):
        ds.codes()
    with pytest.raises(wr.ConfigError, match="12 channels"):
        ds.codes(20, channels=12)
    with pytest.raises(wr.CorruptError, match="codebook"):
        ds.codes(20, codebook_size=10)[0]
    with pytest.raises(wr.ConfigError, match="codebook_size"):
        ds.codes(20, codebook_size="large")


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (None, wr.NotFoundError, "cannot read the configuration"),
        ("", wr.IoError, "cannot read the configuration"),
        ("{nope", wr.ConfigError, "cannot be understood"),
        ("[1]", wr.ConfigError, "cannot be understood"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(tracks, tmp_path, content, error, says):
    path = tmp_path / "config.json"
    if content:
        path.write_text(content)
    elif content is not None:
        path.mkdir()
    with pytest.raises(error, match=says) as raised:
        wr.open(tracks).codes(config=path)
    assert raised.value.path == str(path) and raised.value.hint


def test_mono_is_assembled_as_stereo_where_asked(tmp_path):
    torch.save(torch.arange(90).reshape(10, 9), tmp_path / "mono.pt")
    ds = wr.open(tmp_path)
    tokens = ds.codes(10, "start", channels=18)[0]["tgt_tokens"]
    assert tokens.shape == (12, 18) and (tokens[:, :9] == tokens[:, 9:]).all()
    assert ds.codes(10)[0]["tgt_tokens"].shape == (12, 9)


def test_crops_tags_and_dropped_prompts_are_the_same_on_every_rank_and_after_a_stop(tracks):
    options = dict(tag_shuffle=True, tag_dropout=0.3, unconditional=0.2, text_length=16)
    view = wr.open(tracks).codes(12, **options)
    whole = [{k: v.copy() for k, v in b.items()} for b in wr.Loader(view, global_batch_size=4, seed=3, epochs=5).stream()]
    names = ["src_tokens", "tgt_tokens"]
    assert len(whole) == 5
    assert any((whole[0]["tgt_tokens"] != other["tgt_tokens"]).any() for other in whole[1:])
    for world_size in (2, 4):
        ranks = [
            wr.Loader(view, global_batch_size=4, seed=3, epochs=5, rank=rank, world_size=world_size).stream()
            for rank in range(world_size)
        ]
        for step, parts in enumerate(zip(*ranks, strict=True)):
            for name in names:
                assert (np.concatenate([part[name] for part in parts]) == whole[step][name]).all()
    loader = wr.Loader(view, global_batch_size=4, seed=3, epochs=5)
    next(loader), next(loader)
    resumed = wr.Loader(view, global_batch_size=4, seed=3, epochs=5)
    resumed.load_state_dict(loader.state_dict())
    for step, batch in enumerate(resumed.stream(), start=2):
        assert all((batch[name] == whole[step][name]).all() for name in names)
    other = wr.Loader(wr.open(tracks).codes(12, **{**options, "tag_dropout": 0.4}), global_batch_size=4, seed=3)
    with pytest.raises(wr.MismatchError):
        other.load_state_dict(loader.state_dict())


def test_views_pickle_and_workers_assemble_the_same(tracks):
    view = wr.open(tracks).codes(12, "start", text_length=16, masks="lengths")
    again = pickle.loads(pickle.dumps(view))
    assert (again[3]["tgt_tokens"] == view[3]["tgt_tokens"]).all()
    expected = [batch["tgt_tokens"].copy() for batch in wr.Loader(view, 2, shuffle=False, epochs=1)]
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(view, batch_size=2, num_workers=2, multiprocessing_context=context)
        found = [batch["tgt_tokens"].numpy() for batch in loader]
        assert len(found) == 3 and all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_trace_names_the_frames_of_a_row(tracks):
    loader = wr.Loader(wr.open(tracks).codes(12), batch_size=2, seed=5)
    batch = next(loader)
    (row,) = [row for row in wr.trace(loader, step=0, row=1)]
    (read,) = row["reads"]
    assert read["len"] == 12
    # The last frame of a channel without delay.
    assert batch["tgt_tokens"][1, 12, 0] == codes_of(read["record"], read["start"] + 11, 0)
    (place,) = read["locations"]
    with open(place["file"], "rb") as file:
        file.seek(place["start"])
        stored = np.frombuffer(file.read(place["size"]), [np.int16, np.int32, np.int64][read["record"] % 3])
    assert stored[-18] == codes_of(read["record"], read["start"] + 11, 0)


def test_what_is_written_is_read_by_torch_and_by_shards(tracks, tmp_path):
    shards, back = tmp_path / "shards", tmp_path / "back"
    assert wr.convert(tracks, shards, to="shards", dtype="int16")["records"] == 6
    meta = json.loads((shards / "meta.json").read_text())
    assert meta["channels"] == 18 and meta["scales"][1]["text"] == "é1, b, c"
    assert wr.convert(shards, back, to="codes")["records"] == 6
    for i in range(6):
        stored = torch.load(back / "encoded_audio" / f"{i}.pt", weights_only=True)
        assert stored.dtype == torch.int16 and stored.is_contiguous()
        assert (stored.numpy() == wr.open(tracks)[i]).all()
    assert json.loads((back / "metadata.json").read_text())["2.pt"] == {
        "text": "é2, b, c",
        "channels": 18,
        "length": 30,
    }
    for path in (shards, back):
        one, other = wr.open(tracks).codes(12, masks="lengths"), wr.open(path).codes(12, masks="lengths")
        for a, b in zip(wr.Loader(one, 2, epochs=1), wr.Loader(other, 2, epochs=1), strict=True):
            assert all((a[name] == b[name]).all() for name in a)
    assert wr.verify(back)["n_problems"] == 0


def test_delays_and_their_inverse():
    for case in json.loads((GOLDEN / "delay.json").read_text()):
        codes, pattern = np.array(case["input"]), case["pattern"]
        delayed = wr.delay(codes, pattern)
        assert delayed.tolist() == case["delayed"] and delayed.dtype == np.int64
        assert wr.undelay(delayed, pattern, tail="repeat").tolist() == case["reverted"]
        assert (wr.undelay(wr.delay(codes, pattern, eos=1024), pattern) == codes).all()
    batch = torch.arange(24).reshape(2, 3, 4)
    assert (wr.undelay(wr.delay(batch, [0, 1, 1, 2], eos=-1), [0, 1, 1, 2]) == batch.numpy()).all()
    assert wr.delay(np.zeros((0, 4), np.int64)).shape == (0, 4)
    with pytest.raises(wr.ConfigError, match="delay pattern"):
        wr.delay([[1, 2]], [0])
    with pytest.raises(wr.ConfigError, match="shape"):
        wr.undelay([1, 2])
    with pytest.raises(wr.ConfigError, match="whole numbers"):
        wr.undelay([[1.5, 2.0]])


def test_numbers_that_are_no_codes_are_refused_by_their_value(tmp_path):
    for number, dtype in ((40_000, "int64"), (40_000, "uint16"), (-50_000, "int32"), (2**63, "uint64"), (70_000, "float64")):
        codes = np.array([[1, 2], [3, 4]], dtype)
        codes[1, 1] = number
        with pytest.raises(wr.ConfigError, match=rf"does not fit int16: it is {number}|number {number}(\.0)? at value") as error:
            wr.write(tmp_path / "out", [codes[:1], codes], to="codes")
        assert error.value.record == 1, dtype
    whole, mask = np.array([[1, 2]]), np.array([[True, False]])
    for given, record in (([mask], 0), ([whole, mask], 1), ([[[True, False]]], 0), ([torch.tensor(mask)], 0)):
        with pytest.raises(wr.ConfigError, match="codes of bool, expected whole numbers") as error:
            wr.write(tmp_path / "out", given, to="codes")
        assert error.value.record == record
    np.save(tmp_path / "mask.npy", np.ones((2, 3, 4), bool))
    with pytest.raises(wr.ConfigError, match="codes of bool"):
        wr.convert(tmp_path / "mask.npy", tmp_path / "out", to="codes")
    assert not (tmp_path / "out").exists()


def test_tensors_of_bfloat16_are_float32(tmp_path):
    codes = torch.tensor([[1, 2], [3, 4]], dtype=torch.bfloat16)
    wr.write(tmp_path / "codes", [codes], to="codes")
    assert wr.open(tmp_path / "codes")[0].tolist() == codes.tolist()
    with pytest.raises(wr.ConfigError, match=r"1\.5 at value 0"):
        wr.write(tmp_path / "half", [codes + 0.5], to="codes")
    codec = wr.Codec(GOLDEN.parents[1] / "dac" / "small.pth")
    with pytest.raises(wr.ConfigError, match="codes of float32, expected whole numbers"):
        codec.decode(codes)
    wr.write(tmp_path / "shards", [codes[:, 0], {"sequence": codes[0], "beside": 1}], to="shards")
    ds = wr.open(tmp_path / "shards")
    assert ds.info()["dtype"] == "float32" and ds[0].tolist() == [1.0, 3.0]
    wr.write(tmp_path / "rows", [{"a": codes[0], "b": 1}], to="mds")
    assert wr.open(tmp_path / "rows")[0]["a"].tolist() == [1.0, 2.0]
