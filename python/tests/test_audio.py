"""Sound files become arrays: shapes, rates, and errors with the file's name."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr

CLIPS = Path(__file__).resolve().parents[2] / "testdata" / "audio"
EXPECTED = json.loads((CLIPS / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_clip_has_the_shape_of_its_reference(name: str) -> None:
    samples, rate = wr.read_audio(CLIPS / name, sample_rate=None)
    wanted = EXPECTED[name]
    assert (rate, len(samples)) == (wanted["sample_rate_hz"], wanted["channels"])
    assert samples.dtype == np.float32 and samples.flags.c_contiguous
    assert 0.001 < np.abs(samples).max() < 1.5
    resampled, rate = wr.read_audio(CLIPS / name)
    assert rate == 44_100
    assert resampled.shape == (len(samples), -(-samples.shape[1] * 44_100 // wanted["sample_rate_hz"]))


def test_lossy_clips_are_what_ffmpeg_decodes() -> None:
    for recorded in sorted((CLIPS / "expected").glob("*.npy")):
        wanted = np.load(recorded)
        samples, _ = wr.read_audio(CLIPS / recorded.stem, sample_rate=None)
        np.testing.assert_allclose(samples[:, :1024], wanted[:, :1024], atol=1e-4)


def test_channels_are_not_mixed_up(tmp_path: Path) -> None:
    frames = np.array([[1, -1], [2, -2], [3, -3]], "<i2")
    with wave.open(str(tmp_path / "two.wav"), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(frames.tobytes())
    samples, rate = wr.read_audio(tmp_path / "two.wav", sample_rate=None)
    assert rate == 8000
    np.testing.assert_array_equal(samples, frames.T.astype(np.float32) / 32_768)


def test_what_is_wrong_names_the_file(tmp_path: Path) -> None:
    cut = tmp_path / "cut.flac"
    cut.write_bytes((CLIPS / "cards_002.flac").read_bytes()[:20_000])
    with pytest.raises(wr.CorruptError) as error:
        wr.read_audio(cut)
    assert error.value.path == str(cut)
    samples, _ = wr.read_audio(cut, skip_corrupt=True)
    assert samples.shape[1] > 10_000
    with pytest.raises(wr.UnsupportedError, match="Opus"):
        wr.read_audio(CLIPS / "cards_001_opus.ogg")
    with pytest.raises(wr.NotFoundError):
        wr.read_audio(tmp_path / "none.wav")
    with pytest.raises(wr.ConfigError, match="quality"):
        wr.read_audio(CLIPS / "cards_001.wav", quality="best")  # type: ignore[arg-type]
    for rate in (0, 10**12):
        with pytest.raises(wr.ConfigError, match="sample rate"):
            wr.read_audio(CLIPS / "cards_001.wav", sample_rate=rate)


def test_what_a_header_declares_is_not_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clip = (CLIPS / "cards_003.mp3").read_bytes()
    one, _ = wr.read_audio(CLIPS / "cards_003.mp3", sample_rate=None)
    (tmp_path / "joined.mp3").write_bytes(clip + clip)
    np.testing.assert_array_equal(wr.read_audio(tmp_path / "joined.mp3", sample_rate=None)[0], np.hstack([one, one]))
    at = clip.index(b"Info") + 8
    (tmp_path / "none.mp3").write_bytes(clip[:at] + bytes(4) + clip[at + 4 :])
    samples, _ = wr.read_audio(tmp_path / "none.mp3", sample_rate=None)
    np.testing.assert_array_equal(samples[:, : one.shape[1]], one)
    assert "declares 0 frames, 45 follow it" in caplog.text

    wav = (CLIPS / "cards_001.wav").read_bytes()
    whole, _ = wr.read_audio(CLIPS / "cards_001.wav", sample_rate=None)
    at = wav.index(b"data") + 4
    for size in (2_000_000_000, 0x7FFFFFFF, 0x80000000, 0xFFFFFF00):
        (tmp_path / "streamed.wav").write_bytes(wav[:at] + size.to_bytes(4, "little") + wav[at + 4 :])
        np.testing.assert_array_equal(wr.read_audio(tmp_path / "streamed.wav", sample_rate=None)[0], whole)
        assert f"declares {size} bytes of samples" in caplog.text
    (tmp_path / "cut.wav").write_bytes(wav[:-1])
    with pytest.raises(wr.CorruptError, match="declares .* bytes of samples, the file holds"):
        wr.read_audio(tmp_path / "cut.wav")


# Full scale of a dtype, and what stands for silence, as in a wav file of that many bits; int8, which no wav file has, is signed.
SCALES = {"int8": (2**7, 0), "uint8": (2**7, 2**7), "int16": (2**15, 0), ">i2": (2**15, 0), "int32": (2**31, 0)}


def whole_numbers(dtype: str) -> np.ndarray[Any, Any]:
    scale, silence = SCALES[dtype]
    wave = 0.25 * np.sin(np.arange(2 * 3000).reshape(2, 3000) * 0.05)
    wave[:, 0] = -1
    return np.round(wave * scale + silence).astype(dtype)


@pytest.mark.parametrize("dtype", SCALES)
def test_whole_numbers_are_scaled_by_the_range_of_their_dtype(dtype: str, tmp_path: Path) -> None:
    samples, codec = whole_numbers(dtype), wr.Codec(CLIPS.parent / "dac" / "small.pth")
    scale, silence = SCALES[dtype]
    floats = ((samples.astype("float64") - silence) / scale).astype("float32")
    given: list[Any] = [samples, *([] if dtype.startswith(">") else [torch.from_numpy(samples)])]
    for one in given:
        wr.write_audio(tmp_path / "a.wav", one, 16_000, overwrite=True)
        found, _ = wr.read_audio(tmp_path / "a.wav", sample_rate=None)
        np.testing.assert_allclose(found, floats, atol=2**-16)
        np.testing.assert_array_equal(codec.encode(one), codec.encode(floats))
    if dtype == "int16":
        np.testing.assert_array_equal(found * 2**15, samples)


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint8"])
def test_the_rule_for_whole_numbers_is_that_of_wav_files(dtype: str, tmp_path: Path) -> None:
    samples = whole_numbers(dtype)
    with wave.open(str(tmp_path / "theirs.wav"), "wb") as file:
        file.setparams((2, samples.itemsize, 16_000, 0, "NONE", ""))
        file.writeframes(samples.T.tobytes())
    theirs, _ = wr.read_audio(tmp_path / "theirs.wav", sample_rate=None)
    codec = wr.Codec(CLIPS.parent / "dac" / "small.pth")
    np.testing.assert_array_equal(codec.encode(samples), codec.encode(theirs))


@pytest.mark.parametrize("dtype", ["int64", "uint16", "uint32", "uint64", "bool", "complex64", "object", "str"])
def test_samples_of_other_dtypes_are_refused_by_name(dtype: str, tmp_path: Path) -> None:
    codec = wr.Codec(CLIPS.parent / "dac" / "small.pth")
    samples = np.array([0, 1, 0], dtype)
    for take in (codec.encode, lambda given: wr.write_audio(tmp_path / "a.wav", given, 16_000)):
        with pytest.raises(wr.ConfigError, match=samples.dtype.name) as caught:
            take(samples)
        assert "float32" in str(caught.value.hint) and not (tmp_path / "a.wav").exists()
    # A list of whole numbers says no range either.
    with pytest.raises(wr.ConfigError, match="int64"):
        codec.encode([0, 1, 0])


def test_floats_of_every_width_are_taken_as_they_are(tmp_path: Path) -> None:
    samples = np.array([0.5, -0.25, 0.125])
    for given in (samples, samples.astype("float16"), samples.astype(">f4"), torch.from_numpy(samples), samples.tolist()):
        wr.write_audio(tmp_path / "a.wav", given, 16_000, overwrite=True)
        np.testing.assert_array_equal(wr.read_audio(tmp_path / "a.wav", sample_rate=None)[0][0], samples)


def test_sound_is_written_under_the_name_of_what_it_is(tmp_path: Path) -> None:
    silence = np.zeros(441, "float32")
    for name in ["a.wav", "A.WAV", "a.wave", "take.1.wav", "plain"]:
        wr.write_audio(tmp_path / name, silence, 44_100)
        assert (tmp_path / name).read_bytes().startswith(b"RIFF")
    for name in ["a.flac", "a.mp3", "a.ogg", "A.FLAC", "a.wav.gz", "a.opus", "a.aiff", "a.npy", "a.w64"]:
        with pytest.raises(wr.UnsupportedError, match=r"\.wav") as caught:
            wr.write_audio(tmp_path / name, silence, 44_100)
        assert caught.value.path == str(tmp_path / name) and "ffmpeg" in str(caught.value.hint)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_samples_that_are_not_finite_are_refused_by_their_number(wrong: float, tmp_path: Path) -> None:
    for dtype in ("float16", "float32", "float64"):
        samples = np.zeros((2, 5), dtype)
        samples[1, 3:] = wrong
        with pytest.raises(wr.ConfigError, match=f"sample 3 of channel 1 is {wrong}".replace("nan", "NaN")):
            wr.write_audio(tmp_path / "a.wav", samples, 16_000)
        assert not (tmp_path / "a.wav").exists()
    # What is finite and too loud is cut off, as of any sound file.
    wr.write_audio(tmp_path / "a.wav", np.array([2.0, -3.0]), 16_000)
    assert np.abs(wr.read_audio(tmp_path / "a.wav", sample_rate=None)[0]).round(3).tolist() == [[1.0, 1.0]]


def test_tensors_of_bfloat16_are_read_as_float32(tmp_path: Path) -> None:
    samples = torch.tensor([0.5, -0.25, 0.125, 0.0] * 300, dtype=torch.bfloat16, requires_grad=True)
    wr.write_audio(tmp_path / "a.wav", samples, 16_000)
    floats = samples.detach().float().numpy()
    np.testing.assert_array_equal(wr.read_audio(tmp_path / "a.wav", sample_rate=None)[0][0], floats)
    codec = wr.Codec(CLIPS.parent / "dac" / "small.pth")
    np.testing.assert_array_equal(codec.encode(samples), codec.encode(floats))
