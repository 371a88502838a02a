"""windrow.compat.dia: the recorded batches, items and configurations; what is drawn, and by what."""

from __future__ import annotations

import hashlib
import json
import pathlib
import pickle
from types import SimpleNamespace

import pytest
import torch
import windrow as wr
from windrow.compat.dia import (
    DataConfig,
    DiaConfig,
    PreEncodedDACDataset,
    TestingDataset,
    collate_fn,
    is_unconditional,
    make_unconditional,
)

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden" / "4_dia"
COLLATE = {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("collate_*.json"))}


def read(name):
    return json.loads((GOLDEN / name).read_text())


def batch_of(case):
    """The samples of a case, cut where Python's generator cut them."""
    length, draws = case["effective"]["audio_length"], case["randint_calls_lo_hi_result"]
    items = []
    for i, (text, encoding) in enumerate(zip(case["texts"], case["encodings"], strict=True)):
        codes = torch.tensor(encoding["data"], dtype=getattr(torch, encoding["dtype"])).reshape(encoding["shape"])
        start = draws[i][2] if draws else 0
        items.append((text, codes[start : start + length], None))
    return items


def assert_is(found, expected, name):
    assert str(found.dtype) == "torch." + expected["dtype"] and list(found.shape) == expected["shape"], name
    if "data" in expected:
        assert found.tolist() == expected["data"], name
    if "row0" in expected:
        assert all(row == expected["row0"] for row in found.tolist()), name
    if "sha256_u8" in expected:
        assert hashlib.sha256(found.to(torch.uint8).numpy().tobytes()).hexdigest() == expected["sha256_u8"], name
    for key in ("rows", "row_strings"):
        if key in expected:
            rows = [["".join(str(int(x)) for x in row) for row in mask[0].tolist()] for mask in found]
            assert rows == expected[key], name


@pytest.mark.parametrize("name", COLLATE)
def test_recorded_batches(name):
    case = COLLATE[name]
    config, train = DiaConfig(DataConfig(**case["data_config"])), SimpleNamespace(**case["train_cfg"])
    call = lambda: collate_fn(batch_of(case), config, train, torch.device("cpu"), case["use_sliding_window"])
    if "error" in case["expected"]:
        with pytest.raises((wr.ConfigError, wr.MismatchError)):
            call()
        return
    found, expected = call(), case["expected"]["ok"]
    assert set(found) == {*expected["keys"], "seq_lens"}
    for field in expected["keys"]:
        if field not in ("waveforms", "raw_text"):
            assert_is(found[field], expected[field], f"{name}: {field}")
    assert found["raw_text"] == expected["raw_text"] and list(found["waveforms"]) == expected["waveforms"]
    assert (found["seq_lens"] + 2 == found["tgt_lens"]).all()


def test_codes_of_one_side_are_taken_twice_where_the_configuration_says_stereo():
    case = COLLATE["collate_15_mono_9_with_18_delays"]
    config = DiaConfig(DataConfig(**case["data_config"], channels=18))
    tokens = collate_fn(batch_of(case), config, SimpleNamespace(), None)["tgt_tokens"]
    assert tokens.shape[-1] == 18 and (tokens[..., :9] == tokens[..., 9:]).all()


def test_recorded_items():
    expected = read("preencoded_expected.json")
    config = DiaConfig(DataConfig(**expected["data_config"]))
    tracks = PreEncodedDACDataset(GOLDEN / "preencoded", config, use_sliding_window=False)
    names = [wr.open(GOLDEN / "preencoded").extras(i)["name"] + ".pt" for i in range(len(tracks))]
    assert sorted(names) == sorted(expected["items_by_file"])
    for i, name in enumerate(names):
        text, codes, waveform = tracks[i]
        item = expected["items_by_file"][name]["ok"]
        assert (text, list(codes.shape), str(codes.dtype)) == (item["text"], item["shape"], item["dtype"]), name
        assert codes.tolist() == item["data"] and waveform is None, name


def test_recorded_fallbacks():
    expected, config = read("preencoded_fallbacks.json"), DiaConfig(DataConfig(128, 128))
    text, codes, _ = PreEncodedDACDataset(GOLDEN / "preencoded_flat", config)[0]
    assert text == expected["preencoded_flat"]["ok"]["text"]
    assert codes.tolist() == expected["preencoded_flat"]["ok"]["data"]
    with pytest.raises(FileNotFoundError):
        PreEncodedDACDataset(GOLDEN / "preencoded_empty_subdir", config)
    # A prompt of null, which the original gives on and later fails at.
    assert PreEncodedDACDataset(GOLDEN / "preencoded_null_text", config)[0][0] == ""


def test_recorded_configurations(tmp_path):
    for case in read("config_rounding.json"):
        lengths = {key: case[key] for key in ("text_length", "audio_length")}
        if "error" in case["result"]:
            with pytest.raises(ValueError, match="_length is"):
                DataConfig(**lengths)
            continue
        made = DataConfig(**lengths)
        assert {key: getattr(made, key) for key in case["result"]["ok"]} == case["result"]["ok"]
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {
                "version": "0.1",
                "model": {"src_vocab_size": 256, "encoder": {"n_layer": 2}},
                "data": {"text_length": 512, "audio_length": 600, "channels": 18, "delay_pattern": [0] * 18},
            }
        )
    )
    config = DiaConfig.load(path)
    assert (config.data.audio_length, config.data.channels, config.model.encoder.n_layer) == (640, 18, 2)
    with pytest.raises(FileNotFoundError):
        DiaConfig.load(tmp_path / "none.json")
    for text in ("{", "{}", '{"data": {"text_length": 5}}', '{"data": {"text_length": 5, "audio_length": "6"}}'):
        path.write_text(text)
        with pytest.raises(ValueError):
            DiaConfig.load(path)


def test_recorded_unconditional_steps():
    case = read("unconditional.json")
    steps = [step for step in range(300) if is_unconditional(step, case["seed"], case["unconditional_frac"])]
    assert steps == case["unconditional_steps_0_299"]
    config = DiaConfig(DataConfig(128, 128, text_pad_value=5))
    batch = collate_fn([("some text", torch.zeros(3, 9, dtype=torch.int64), None)], config, SimpleNamespace(), None)
    make_unconditional(batch, config)
    assert (batch["src_tokens"] == 5).all()
    assert not batch["enc_self_attn_mask"].any() and not batch["dec_cross_attn_mask"].any()
    assert batch["dec_self_attn_mask"].any()


def test_recorded_splits():
    for case in read("split.json")["splits"]:
        assert int(case["split_ratio"] * case["n"]) == case["n_train"]
    tracks = PreEncodedDACDataset(GOLDEN / "preencoded", DiaConfig(DataConfig(128, 128)))
    (case,) = [case for case in read("split.json")["splits"] if case["n"] == len(tracks)]
    generator = torch.Generator().manual_seed(read("split.json")["seed"])
    train, val = torch.utils.data.random_split(tracks, [case["n_train"], case["n_val"]], generator=generator)
    assert sorted(val.indices) == sorted(case["val_indices"]) and train.indices[:8] == case["train_indices_head"]
    assert len(train[0]) == 3


@pytest.fixture
def long_tracks(tmp_path):
    for i in range(4):
        torch.save(torch.arange(1000)[:, None].expand(1000, 18).contiguous().to(torch.int16), tmp_path / f"{i}.pt")
        (tmp_path / f"{i}.txt").write_text("a, b, c, d, e, f")
    return tmp_path


STEREO = DiaConfig(DataConfig(128, 128, channels=18, delay_pattern=[*range(9)] * 2))


def starts(items):
    return [int(codes[0, 0]) for _, codes, _ in items]


def test_crops_are_drawn_again_by_epoch_and_sample_and_are_the_same_anywhere(long_tracks):
    config = STEREO
    one, other = (PreEncodedDACDataset(long_tracks, config, seed=3) for _ in range(2))
    first, second = starts(one[i] for i in range(4)), starts(one[i] for i in range(4))
    assert first != second and len(set(first)) == 4 and all(0 <= start <= 872 for start in first)
    assert starts(other[i] for i in (3, 2, 1, 0)) == first[::-1]
    for tracks in (one, other):
        tracks.set_epoch(7)
    assert starts(one[i] for i in range(4)) == starts(other[i] for i in range(4)) != first
    fixed = PreEncodedDACDataset(long_tracks, config, use_sliding_window=False)
    assert starts(fixed[i] for i in range(4)) == [0] * 4
    assert len(fixed[-1][1]) == 128
    for wrong in (4, -5):
        with pytest.raises(wr.OutOfRangeError, match=f"sample {wrong} is out of range: there are 4"):
            fixed[wrong]
    with pytest.raises(TypeError, match="slice"):
        fixed[0:2]


def test_workers_draw_the_same_whatever_their_number_and_again_each_epoch(long_tracks):
    config, train = STEREO, SimpleNamespace(tag_shuffle=True, tag_dropout=0.2, tag_limit=None)
    tracks = PreEncodedDACDataset(long_tracks, config)

    def collate(items):
        return collate_fn(items, config, train, None)

    def epochs(workers):
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(tracks, batch_size=2, num_workers=workers, collate_fn=collate)
        return [[(b["tgt_tokens"][:, 1, 0].tolist(), b["src_tokens"].tolist()) for b in loader] for _ in range(2)]

    one, two = epochs(1), epochs(2)
    assert one == two and one[0] != one[1]


def test_tags_are_those_of_the_sample_and_all_there(long_tracks):
    config, train = STEREO, SimpleNamespace(tag_shuffle=True, tag_dropout=0.0, tag_limit=None)
    item = PreEncodedDACDataset(long_tracks, config)[1]
    again = pickle.loads(pickle.dumps(item))
    texts = [
        bytes(t for t in collate_fn([given], config, train, None)["src_tokens"][0].tolist() if t).decode()
        for given in (item, again)
    ]
    assert texts[0] == texts[1] and sorted(texts[0].split(", ")) == list("abcdef")
    train.tag_limit = 2
    limited = collate_fn([item], config, train, None)["src_tokens"][0]
    assert bytes(t for t in limited.tolist() if t).decode() == ", ".join(texts[0].split(", ")[:2])


class Model:
    """What stands for the Python package's model: frames of 512 values, two codebooks of zeros."""

    sample_rate, hop_length = 44100, 512

    def parameters(self):
        yield torch.zeros(1)

    def preprocess(self, signal, rate):
        return signal

    def encode(self, signal):
        return None, torch.zeros(1, 2, -(-signal.shape[-1] // 512))


@pytest.fixture
def sound(tmp_path):
    folder = tmp_path / "sound"
    for name in ("b10.wav", "b9.wav", "b9.flac", "LOUD.WAV", "notes.txt", "deeper/c.wav"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        wr.write_audio(folder / "made.wav", [[0.1] * 1024], 44100)
        (folder / "made.wav").rename(folder / name)
    (tmp_path / "audio_prompts").mkdir()
    (tmp_path / "audio_prompts" / "b9_prompt.txt").write_text(" Rock, slow \n")
    # Prompts of the native folder, which the original does not look at.
    (folder / "b10.txt").write_text("beside")
    (tmp_path / "audio_prompts" / "b10.txt").write_text("without the ending")
    return folder


def names(tracks):
    return [pathlib.Path(path).name for path, _ in tracks._files]


def test_sound_files_and_prompts_are_those_of_the_original(sound):
    tracks = TestingDataset(sound, STEREO, Model())
    assert names(tracks) == ["b9.flac", "b9.wav", "b10.wav"]
    texts = [tracks[i][0] for i in (1, 2)]
    assert texts == ["Rock, slow", ""]
    with pytest.raises(wr.OutOfRangeError, match="sample 3 is out of range"):
        tracks[3]
    assert tracks[1][1].shape == (2, 4) and tracks[1][2].shape == (1, 1, 1024)
    # A part of a prompt, in any case; what has no prompt stays.
    assert names(TestingDataset(sound, STEREO, Model(), skip_tags=["OCK,"])) == ["b10.wav"]
    other = sound.parent / "other"
    other.mkdir()
    (other / "b10_prompt.txt").write_text("elsewhere")
    assert TestingDataset(sound, STEREO, Model(), prompts=other)[2][0] == "elsewhere"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        TestingDataset(sound, STEREO, Model(), prompts=sound.parent / "nowhere")


def test_a_missing_prompt_is_an_error_where_its_sample_is_asked_for(sound):
    tracks = TestingDataset(sound, STEREO, Model(), allow_empty_prompts=False)
    assert len(tracks) == 3 and tracks[1][0] == "Rock, slow"
    with pytest.raises(FileNotFoundError, match="b10_prompt.txt"):
        tracks[2]
    # An empty one is there.
    (sound.parent / "audio_prompts" / "b10_prompt.txt").write_text("\n")
    assert TestingDataset(sound, STEREO, Model(), allow_empty_prompts=False)[2][0] == ""
    (sound.parent / "audio_prompts" / "b10_prompt.txt").write_bytes(b"ab\xff")
    with pytest.raises(wr.CorruptError, match="b10_prompt.txt .byte 2"):
        TestingDataset(sound, STEREO, Model())


def test_no_sound_is_a_value_error_as_in_the_original(tmp_path, sound):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=folder.name) as caught:
            TestingDataset(folder, STEREO, Model())
        assert isinstance(caught.value, wr.NotFoundError)
    (sound / "b10.wav").unlink()
    with pytest.raises(ValueError, match="left out"):
        TestingDataset(sound, STEREO, Model(), skip_tags=["rock"])
