"""Sound files become data sets of codes: by real files, a real codec of random weights, and torch's own reader."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import dac_model
import numpy as np
import pytest
import torch

import windrow as wr
from windrow.compat.dia import DataConfig, DiaConfig, PreEncodedDACDataset, TestingDataset, collate_fn

DATA = Path(__file__).resolve().parents[2] / "testdata"
WEIGHTS = DATA / "dac" / "small.pth"
CLIPS = ["cards_001.wav", "cards_002.flac", "cards_003.mp3", "cards_004.m4a", "cards_005.ogg", "chan3_44k.flac"]


@pytest.fixture(scope="module")
def codec() -> wr.Codec:
    return wr.Codec(WEIGHTS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    folder = tmp_path / "sound"
    folder.mkdir()
    (tmp_path / "audio_prompts").mkdir()
    for clip in CLIPS:
        shutil.copy(DATA / "audio" / clip, folder)
        if not clip.startswith("chan3"):
            (tmp_path / "audio_prompts" / f"{Path(clip).stem}_prompt.txt").write_text(f"speech, {clip}\n")
    return folder


def grid(codec: wr.Codec, path: Path) -> np.ndarray[Any, Any]:
    """The codes of a file, by the parts."""
    samples, rate = wr.read_audio(path, sample_rate=codec.sample_rate)
    assert rate == codec.sample_rate
    codes = codec.encode(samples)
    assert codes.shape == (-(-samples.shape[1] // codec.hop_length), len(samples) * codec.codebooks)
    return np.hstack([codes, codes]) if len(samples) == 1 else codes


def test_a_folder_becomes_tracks_with_prompts(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    done = wr.encode(sound, tmp_path / "out", codec)
    assert done["report"]["records"] == len(CLIPS) and done["failed"] == []
    # Sound without a text is named by its number: chan3_44k.
    assert done["without_prompt"] == 1 == wr.encode(sound, tmp_path / "out", codec)["without_prompt"]
    ds = wr.open(tmp_path / "out")
    assert ds.format == "codes" and len(ds) == len(CLIPS)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    for number, clip in enumerate(CLIPS):
        wanted = grid(codec, sound / clip)
        np.testing.assert_array_equal(ds[number], wanted)
        stem = Path(clip).stem
        tensor = torch.load(tmp_path / "out" / "encoded_audio" / f"{stem}.pt", weights_only=True)
        assert tensor.dtype == torch.int16 and (tensor.numpy() == wanted).all()
        text = "" if clip.startswith("chan3") else f"speech, {clip}"
        assert metadata[f"{stem}.pt"] == {"text": text, "sr": codec.sample_rate, "channels": 2 * codec.codebooks, "length": len(wanted)}
    assert not wr.verify(tmp_path / "out")["problems"]
    assert done["seconds"] == pytest.approx(sum(m["length"] for m in metadata.values()) * codec.hop_length / codec.sample_rate)


def test_shards_hold_the_same_codes(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    wr.encode(sound, tmp_path / "codes", codec)
    wr.encode(sound, tmp_path / "shards", codec, to="shards")
    codes, shards = wr.open(tmp_path / "codes"), wr.open(tmp_path / "shards")
    assert shards.format == "shards"
    for number in range(len(codes)):
        np.testing.assert_array_equal(codes[number], shards[number])
        assert codes.extras(number)["text"] == shards.extras(number)["text"]


def test_a_second_run_has_nothing_to_do_and_a_new_file_is_all_that_is_encoded(
    tmp_path: Path, sound: Path, codec: wr.Codec, cache: Path
) -> None:
    first = wr.encode(sound, tmp_path / "out", codec)
    made = sorted(path.name for path in cache.iterdir())
    assert len(made) == len(CLIPS)
    again = wr.encode(sound, tmp_path / "out", codec)
    assert again["report"]["unchanged"] and again["seconds"] == first["seconds"]
    shutil.copy(DATA / "audio" / "ru_agent_pass.mp3", sound)
    with pytest.raises(wr.ExistsError):
        wr.encode(sound, tmp_path / "out", codec)
    done = wr.encode(sound, tmp_path / "out", codec, overwrite=True)
    assert done["report"]["records"] == len(CLIPS) + 1
    assert set(made) < {path.name for path in cache.iterdir()}
    assert len(list(cache.iterdir())) == len(CLIPS) + 1
    # Other prompts are another data set.
    (tmp_path / "audio_prompts" / "cards_001_prompt.txt").write_text("another one")
    with pytest.raises(wr.ExistsError):
        wr.encode(sound, tmp_path / "out", codec)


def test_a_run_that_was_stopped_shows_nothing_and_continues(tmp_path: Path, sound: Path, codec: wr.Codec, cache: Path) -> None:
    def stop(now: dict[str, int]) -> None:
        assert now["done_bytes"] <= now["total_bytes"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wr.encode(sound, tmp_path / "out", codec, num_threads=1, progress=stop)
    assert not (tmp_path / "out").exists()
    names = [path.name for path in cache.iterdir()] if cache.exists() else []
    assert len(names) < len(CLIPS) and not any(name.startswith(".") for name in names)
    # What was made before the stop is not made again.
    wr.encode(sound / "cards_001.wav", tmp_path / "one", codec)
    kept = {path: path.stat().st_ino for path in cache.iterdir()}
    wr.encode(sound, tmp_path / "out", codec)
    assert len(wr.open(tmp_path / "out")) == len(CLIPS)
    assert all(path.stat().st_ino == inode for path, inode in kept.items())


def wav(channels: int, rate: int, samples: bytes, kind: int = 1, bits: int = 16) -> bytes:
    width = channels * bits // 8
    head = struct.pack("<HHIIHH", kind, channels, rate, rate * width, width, bits)
    body = b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def test_bad_files_are_told_of_and_the_rest_is_there(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    audio = DATA / "audio"
    bad = {
        "cut.flac": (audio / "cards_002.flac").read_bytes()[:9000],
        "cut_too.m4a": (audio / "cards_004.m4a").read_bytes()[:5000],
        "eight.wav": wav(8, 44100, bytes(16 * 100)),
        "nan.wav": wav(1, 44100, struct.pack("<3f", 0.5, float("nan"), 0.5), kind=3, bits=32),
        "no_samples.wav": wav(1, 44100, b""),
        "nothing.wav": b"",
        "opus.ogg": (audio / "cards_001_opus.ogg").read_bytes(),
        "picture.mp3": b"\x89PNG\r\n\x1a\n" + bytes(100),
    }
    for name, content in bad.items():
        (sound / name).write_bytes(content)
    # Nothing is wrong with slow and fast ones.
    fine = {"slow.wav": wav(1, 8000, bytes(2 * 800)), "fast.wav": wav(2, 192_000, bytes(4 * 19_200))}
    for name, content in fine.items():
        (sound / name).write_bytes(content)
    done = wr.encode(sound, tmp_path / "out", codec)
    assert [Path(failure["file"]).name for failure in done["failed"]] == sorted(bad)
    assert all(Path(failure["file"]).name in failure["error"] for failure in done["failed"])
    ds = wr.open(tmp_path / "out")
    assert len(ds) == len(CLIPS) + len(fine)
    lengths = {ds.extras(i)["name"]: len(ds[i]) for i in range(len(ds))}
    assert lengths["slow"] == lengths["fast"] == -(-codec.sample_rate // 10 // codec.hop_length)
    # The output knows what is missing from it.
    told = json.loads((tmp_path / "out" / "windrow.json").read_text())
    assert [Path(row["file"]).name for row in told["statistics"]["failed"]] == sorted(bad)
    again = wr.encode(sound, tmp_path / "out", codec)
    assert again["report"]["unchanged"] and again["failed"] == done["failed"]


def test_a_prompt_that_is_not_text_is_told_of_and_the_rest_is_there(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    prompts = tmp_path / "audio_prompts"
    (prompts / "cards_002_prompt.txt").write_bytes("café".encode("latin-1"))
    (sound / "cards_004.txt").write_bytes("slow piano".encode("utf-16"))
    (prompts / "cards_005_prompt.txt").write_bytes(bytes(2 << 20))
    (prompts / "cards_003_prompt.txt").write_bytes(b"\xef\xbb\xbf speech\n")
    left_out = {"cards_002": "cards_002_prompt.txt", "cards_004": "cards_004.txt", "cards_005": "cards_005_prompt.txt"}
    done = wr.encode(sound, tmp_path / "out", codec, skip_vocals=True)
    assert [Path(failure["file"]).stem for failure in done["failed"]] == list(left_out)
    for failure in done["failed"]:
        assert "prompt" in failure["error"] and left_out[Path(failure["file"]).stem] in failure["error"]
    ds = wr.open(tmp_path / "out")
    texts = {ds.extras(i)["name"]: ds.extras(i)["text"] for i in range(len(ds))}
    assert set(texts) == {Path(clip).stem for clip in CLIPS} - set(left_out) and texts["cards_003"] == "speech"
    told = json.loads((tmp_path / "out" / "windrow.json").read_text())
    assert told["statistics"]["failed"] == done["failed"]
    # In tasks the same.
    job = wr.prep.plan("encode", sound, tmp_path / "tasks", weights=WEIGHTS, dtype="int16", skip_vocals=True, task_bytes=20_000)
    wr.prep.run(job)
    wr.prep.join(job, tmp_path / "joined")
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "joined").rglob("*") if path.is_file()}
    # One that is written again, or taken away, is another data set.
    (prompts / "cards_002_prompt.txt").rename(tmp_path / "away")
    with pytest.raises(wr.ExistsError):
        wr.encode(sound, tmp_path / "out", codec, skip_vocals=True)
    (prompts / "cards_002_prompt.txt").write_text("café")
    again = wr.encode(sound, tmp_path / "out", codec, skip_vocals=True, overwrite=True)
    assert [Path(failure["file"]).stem for failure in again["failed"]] == ["cards_004", "cards_005"]
    for name in ("cards_001.wav", "cards_003.mp3", "chan3_44k.flac"):
        (sound / name).unlink()
    (prompts / "cards_002_prompt.txt").write_bytes(b"\xff")
    with pytest.raises(wr.WindrowError, match="none of 3 files"):
        wr.encode(sound, tmp_path / "none", codec)


def test_what_cannot_become_a_data_set_is_refused(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    shutil.copy(sound / "cards_001.wav", sound / "cards_002.wav")
    with pytest.raises(wr.ConfigError, match=r"cards_002\.flac.*cards_002\.wav.*one track"):
        wr.encode(sound, tmp_path / "out", codec)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(wr.NotFoundError, match="no sound file"):
        wr.encode(empty, tmp_path / "out", codec)
    (empty / "a.wav").write_bytes((DATA / "audio" / "cards_001.wav").read_bytes()[:1000])
    with pytest.raises(wr.CorruptError, match="none of 1 files"):
        wr.encode(empty, tmp_path / "out", codec)
    (sound / "cards_002.wav").unlink()
    for threads in (0, 1025):
        with pytest.raises(wr.ConfigError, match=f"num_threads is {threads}; expected 1 to 1024"):
            wr.encode(sound, tmp_path / "out", codec, num_threads=threads)
    assert not (tmp_path / "out").exists()


def test_prompts_decide_what_is_left_out(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    (tmp_path / "audio_prompts" / "cards_003_prompt.txt").write_text("with Vocals")
    wr.encode(sound, tmp_path / "out", codec, skip_tags=["CARDS_001", "nowhere"], skip_vocals=True)
    names = [wr.open(tmp_path / "out").extras(i)["name"] for i in range(4)]
    assert names == ["cards_002", "cards_004", "cards_005", "chan3_44k"]
    # Of several places the first: beside the file, then the folders in their order, the short name first.
    (sound / "cards_002.txt").write_text(" beside \n")
    other = tmp_path / "other"
    other.mkdir()
    for name in ("cards_002", "cards_004", "cards_004_prompt"):
        (other / f"{name}.txt").write_text(f"other {name}")
    wr.encode(sound, tmp_path / "out2", codec, prompts=[other, tmp_path / "audio_prompts"], prompt_from_name=True)
    ds = wr.open(tmp_path / "out2")
    texts = {ds.extras(i)["name"]: ds.extras(i)["text"] for i in range(len(ds))}
    assert texts["cards_002"] == "beside" and texts["cards_004"] == "other cards_004"
    assert texts["cards_005"] == "speech, cards_005.ogg" and texts["chan3_44k"] == "chan3 44k"


def test_the_codec_pickles_and_decodes(codec: wr.Codec, tmp_path: Path) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(codec))
    tone = np.sin(np.arange(6000) * 0.05).astype("float32")
    codes = codec.encode(tone)
    assert codes.dtype == np.int16 and codes.shape == (-(-6000 // codec.hop_length), codec.codebooks)
    np.testing.assert_array_equal(codes, again.encode(torch.from_numpy(tone)))
    both = codec.encode(np.stack([tone, -tone]))
    np.testing.assert_array_equal(both[:, : codec.codebooks], codes)
    samples = codec.decode(both)
    # Each odd rate of a decoder takes a sample, as in the original.
    assert len(samples) == 2 and 0 <= len(codes) * codec.hop_length - samples.shape[1] < 8
    assert samples.dtype == np.float32
    wr.write_audio(tmp_path / "a.wav", samples, codec.sample_rate)
    written, _ = wr.read_audio(tmp_path / "a.wav", sample_rate=None)
    np.testing.assert_allclose(written, np.clip(samples, -1, 1), atol=1e-4)
    with pytest.raises(wr.ExistsError):
        wr.write_audio(tmp_path / "a.wav", samples, codec.sample_rate)
    with pytest.raises(wr.OutOfRangeError):
        codec.decode(np.full((2, codec.codebooks), 1025))
    # By their values, whatever a code is stored in.
    for wrong in [-1, -70_000, 1024, 65_535, 65_536, 2**40]:
        codes = np.zeros((4, 2 * codec.codebooks), "int64")
        codes[3, codec.codebooks + 1] = wrong
        with pytest.raises(wr.OutOfRangeError, match=rf"code {wrong} [^$]*frame 3, codebook 1, side 1"):
            codec.decode(codes)
    with pytest.raises(wr.WindrowError, match=str(2**64 - 1)):
        codec.decode(np.full((1, codec.codebooks), 2**64 - 1, "uint64"))
    with pytest.raises(wr.MismatchError):
        codec.decode(np.zeros((2, codec.codebooks + 1), "int64"))
    with pytest.raises(wr.CorruptError, match="sample 1 is NaN"):
        codec.encode([0.0, float("nan")])
    with pytest.raises(wr.NotFoundError, match="weights"):
        wr.Codec(tmp_path / "none.pth")


CONFIG = DiaConfig(DataConfig(text_length=128, audio_length=128, channels=18, delay_pattern=[*range(9)] * 2))


def test_the_data_set_of_sound_gives_crops_of_what_the_folder_holds(
    tmp_path: Path, sound: Path, codec: wr.Codec, cache: Path
) -> None:
    tracks = TestingDataset(sound, CONFIG, codec, seed=3)
    assert len(tracks) == len(CLIPS)
    tracks.set_epoch(0)
    hop = codec.hop_length
    starts = []
    for number, clip in enumerate(CLIPS):
        text, codes, waveform = tracks[number]
        whole = grid(codec, sound / clip)
        samples, _ = wr.read_audio(sound / clip, sample_rate=codec.sample_rate)
        assert text == ("" if clip.startswith("chan3") else f"speech, {clip}")
        assert codes.dtype == torch.int64 and codes.shape == (min(128, len(whole)), whole.shape[1])
        at = [s for s in range(len(whole) - len(codes) + 1) if (whole[s : s + len(codes)] == codes.numpy()).all()]
        assert waveform is not None and waveform.shape[:2] == (1, len(samples))
        assert any(torch.equal(waveform[0], torch.from_numpy(samples[:, s * hop : (s + 128) * hop])) for s in at)
        starts += at[:1]
    assert any(starts)
    kept = sorted(cache.iterdir())
    fast = TestingDataset(sound, CONFIG, codec, seed=3, waveforms=False)
    fast.set_epoch(0)
    assert all(torch.equal(fast[i][1], tracks[i][1]) and fast[i][2] is None for i in range(len(CLIPS)))
    assert sorted(cache.iterdir()) == kept
    fixed = TestingDataset(sound, CONFIG, codec, use_sliding_window=False)
    np.testing.assert_array_equal(fixed[4][1], grid(codec, sound / CLIPS[4])[:128])


def test_the_python_packages_model_gives_the_same_codes(tmp_path: Path, sound: Path) -> None:
    model = dac_model.make(5, encoder_dim=8, decoder_dim=64)
    model.save(tmp_path / "weights.pth", package=False)
    native = TestingDataset(sound, CONFIG, wr.Codec(tmp_path / "weights.pth"), use_sliding_window=False)
    theirs = TestingDataset(sound, CONFIG, model, use_sliding_window=False)
    assert len(theirs) == len(native) == len(CLIPS)
    whole = 0
    for number in range(len(CLIPS)):
        (text, codes, waveform), (their_text, their_codes, their_waveform) = native[number], theirs[number]
        assert text == their_text and codes.shape == their_codes.shape and codes.shape[1] == 18
        assert waveform is not None and their_waveform is not None and torch.equal(waveform, their_waveform)
        # A crop that is cut before it is encoded hears silence behind its end.
        frames = len(codes) if len(codes) < 128 else 100
        whole += len(codes) < 128
        assert (codes[:frames] != their_codes[:frames]).float().mean() < 0.001
    assert whole >= 2


def test_a_loader_with_workers_draws_the_same(sound: Path, codec: wr.Codec) -> None:
    # Read here, so that the workers find the codes in the cache.
    tracks = TestingDataset(sound, CONFIG, codec, waveforms=False)
    tracks.set_epoch(1)
    alone = [tracks[i][1] for i in range(len(tracks))]
    loader = torch.utils.data.DataLoader(tracks, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert all(torch.equal(a, b[1]) for a, b in zip(alone, loader, strict=True))


def test_prompts_may_be_demanded_and_tags_skipped(sound: Path, codec: wr.Codec) -> None:
    demanding = TestingDataset(sound, CONFIG, codec, allow_empty_prompts=False)
    with pytest.raises(FileNotFoundError, match="chan3_44k_prompt.txt"):
        demanding[5]
    assert len(TestingDataset(sound, CONFIG, codec, skip_tags=["Cards_00"])) == 1
    with pytest.raises(ValueError, match="every file is left out"):
        TestingDataset(sound / "cards_001.wav", CONFIG, codec, skip_tags=["speech"], prompts=sound.parent / "audio_prompts")


def test_from_sound_to_batch_to_sound(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    wr.encode(sound, tmp_path / "out", codec)
    width = 2 * codec.codebooks
    config = DiaConfig(DataConfig(text_length=128, audio_length=128, channels=width, delay_pattern=[*range(codec.codebooks)] * 2))
    tracks = PreEncodedDACDataset(tmp_path / "out", config, use_sliding_window=False)
    batch = collate_fn([tracks[0], tracks[5]], config, {"tag_shuffle": False}, None)
    assert batch["raw_text"] == "speech, cards_001.wav"
    frames = int(batch["seq_lens"][0])
    delayed = batch["tgt_tokens"][0, 1 : frames + 1]
    codes = wr.undelay(delayed, [*range(codec.codebooks)] * 2)
    np.testing.assert_array_equal(codes, wr.open(tmp_path / "out")[0][: len(codes)])
    samples = codec.decode(codes)
    assert len(samples) == 2 and 0 <= len(codes) * codec.hop_length - samples.shape[1] < 8


def test_metadata_is_made_again(tmp_path: Path, sound: Path, codec: wr.Codec) -> None:
    wr.encode(sound, tmp_path / "out", codec)
    path = tmp_path / "out" / "metadata.json"
    before = json.loads(path.read_text())
    path.write_text('{"cards_001.pt": {"text": "kept", "sr": 44100, "mood": "calm"}, "gone.pt": {}}')
    (tmp_path / "out" / "prompts").mkdir()
    (tmp_path / "out" / "prompts" / "cards_002_prompt.txt").write_text("from the file\n")
    broken = tmp_path / "out" / "encoded_audio" / "broken.pt"
    broken.write_bytes(b"PK\x03\x04nothing")
    dry = wr.rebuild_metadata(tmp_path / "out", dry_run=True)
    assert "gone.pt" in path.read_text()
    done = wr.rebuild_metadata(tmp_path / "out")
    assert done == dry
    assert (done["tracks"], done["prompts"], done["absent"]) == (len(CLIPS), 2, ["gone.pt"])
    assert [Path(row[0]).name for row in done["failed"]] == ["broken.pt"]
    told = json.loads(path.read_text())
    assert told["cards_001.pt"] == {
        "text": "kept", "sr": 44100, "mood": "calm", "channels": 2 * codec.codebooks, "length": before["cards_001.pt"]["length"],
    }
    assert told["cards_002.pt"]["text"] == "from the file" and told["cards_003.pt"]["text"] == ""
    broken.unlink()
    again = wr.rebuild_metadata(tmp_path / "out", tmp_path / "audio_prompts")
    assert again["prompts"] == 5 and again["failed"] == []
    # A prompt that is not text is told of, and its track keeps what was said of it.
    before = json.loads((tmp_path / "out" / "metadata.json").read_text())
    (tmp_path / "audio_prompts" / "cards_003_prompt.txt").write_bytes("café".encode("latin-1"))
    again = wr.rebuild_metadata(tmp_path / "out", tmp_path / "audio_prompts")
    assert again["tracks"] == len(CLIPS) and len(again["failed"]) == 1
    assert "cards_003_prompt.txt" in again["failed"][0][1]
    assert json.loads((tmp_path / "out" / "metadata.json").read_text()) == before
    assert json.loads(path.read_text())["cards_003.pt"]["text"] == "speech, cards_003.mp3"
    (tmp_path / "empty").mkdir()
    with pytest.raises(wr.NotFoundError):
        wr.rebuild_metadata(tmp_path / "empty")
