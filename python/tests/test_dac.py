"""The codec gives code for code what descript-audio-codec gives, at several sizes, on speech and on other sound.

Two codes may be told apart the other way only where both are equally near: a tie, which is shown to be one. `WINDROW_AUDIO` in the
environment names a folder of more sound files; with it the model of the published size encodes every clip, which takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dac_model
import numpy as np
import numpy.typing as npt
import pytest
import torch
from conftest import ROOT
from safetensors.torch import save_file

import windrow as wr

with dac_model.parts():
    import soundfile

Samples = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

# Distances lie between 0 and 4.
TIE = 1e-5
MODELS: dict[str, dict[str, Any]] = {
    "two rates": {
        "encoder_dim": 8,
        "encoder_rates": [2, 4],
        "latent_dim": 24,
        "decoder_dim": 16,
        "decoder_rates": [4, 2],
        "n_codebooks": 4,
        "codebook_size": 64,
        "codebook_dim": 4,
    },
    "the published rates": {"encoder_dim": 8, "decoder_dim": 64},
    "codebooks of many widths": {
        "encoder_dim": 12,
        "encoder_rates": [4, 4],
        "decoder_dim": 24,
        "decoder_rates": [4, 4],
        "n_codebooks": 5,
        "codebook_size": 300,
        "codebook_dim": [3, 8, 16, 2, 5],
    },
    "odd rates": {
        "encoder_dim": 8,
        "encoder_rates": [3, 5, 2],
        "decoder_dim": 24,
        "decoder_rates": [2, 5, 3],
        "n_codebooks": 6,
        "codebook_size": 128,
    },
    "24 kHz": {
        "encoder_dim": 16,
        "encoder_rates": [2, 4, 5, 8],
        "decoder_dim": 96,
        "decoder_rates": [8, 5, 4, 2],
        "n_codebooks": 8,
        "sample_rate": 24_000,
    },
    "long hops": {
        "encoder_dim": 10,
        "encoder_rates": [8, 8],
        "latent_dim": 56,
        "decoder_dim": 40,
        "decoder_rates": [8, 8],
        "n_codebooks": 7,
        "codebook_size": 512,
        "codebook_dim": 12,
    },
}


def speech() -> Iterator[Samples]:
    """People speaking, of every file that libsndfile reads."""
    for folder in [ROOT / "testdata" / "audio", *map(Path, filter(None, [os.environ.get("WINDROW_AUDIO")]))]:
        for path in sorted(folder.iterdir()):
            if path.suffix in (".wav", ".flac", ".mp3", ".ogg"):
                try:
                    samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
                except soundfile.LibsndfileError:
                    # Opus, where this libsndfile has none.
                    continue
                yield np.ascontiguousarray(samples[:, 0])


def clips() -> list[Samples]:
    """Twenty clips and more: speech, and other sound."""
    everything = bool(os.environ.get("WINDROW_AUDIO"))
    found = [samples if everything else samples[1_000:9_000] for samples in speech()]
    draw = np.random.default_rng(0)
    time = np.arange(12_345)
    found += [(0.5 * np.sin(2 * np.pi * f * time / 44_100)).astype(np.float32) for f in (50, 440, 3_000, 15_000)]
    found += [(draw.standard_normal(n) * level).astype(np.float32) for n, level in [(9_999, 0.01), (8_192, 0.3)]]
    found += [np.sign(np.sin(time / 40)).astype(np.float32), (time[:5_000] / 5_000 - 0.5).astype(np.float32)]
    found += [np.zeros(7_000, np.float32), np.ones(1, np.float32), np.full(3_000, -1, np.float32)]
    click = np.zeros(6_000, np.float32)
    click[2_718] = 1
    return [*found, click]


@torch.inference_mode()
def ties(model: Any, samples: Samples, expected: Codes, found: Codes) -> int:
    """How many frames differ; each must begin to differ at a tie."""
    assert found.shape == expected.shape
    frames = np.flatnonzero((found != expected).any(axis=1))
    if len(frames) == 0:
        return 0
    wave = model.preprocess(torch.from_numpy(samples)[None, None], model.sample_rate)
    latents = model.encode(wave)[2][0].double()
    starts = np.cumsum([0, *model.quantizer.codebook_dim])
    for frame in frames:
        # Those after it quantise another rest.
        book = int(np.flatnonzero(found[frame] != expected[frame])[0])
        latent = latents[starts[book] : starts[book + 1], frame]
        entries = model.quantizer.quantizers[book].codebook.weight.double()
        unit, entries = (torch.nn.functional.normalize(x, dim=-1) for x in (latent, entries))
        distances = (entries - unit).square().sum(1)
        difference = abs(float(distances[found[frame, book]] - distances[expected[frame, book]]))
        assert difference < TIE, f"frame {frame}, codebook {book}: {difference} apart"
    return len(frames)


@pytest.mark.parametrize("name", MODELS)
def test_codes_are_those_of_the_package(name: str, tmp_path: Path) -> None:
    model = dac_model.make(len(name), **MODELS[name])
    model.save(tmp_path / "weights.pth", package=False)
    # Small chunks, so that there are seams.
    codec = wr.Codec(tmp_path / "weights.pth", num_threads=2, chunk=4_096)
    all_clips = clips()
    assert len(all_clips) >= 20
    frames = unequal = 0
    for samples in all_clips:
        expected = dac_model.encode(model, samples)
        unequal += ties(model, samples, expected, codec.encode(samples).astype(np.int64))
        frames += len(expected)
    print(f"{name}: {unequal} of {frames} frames differ, all at ties")
    assert unequal <= frames // 1_000


def test_the_published_size_is_encoded_and_decoded(tmp_path: Path) -> None:
    model = dac_model.make(0)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, tmp_path / "weights.safetensors")
    codec = wr.Codec(tmp_path / "weights.safetensors", num_threads=2, chunk=16_384)
    frames = unequal = 0
    all_clips = clips()
    for samples in all_clips if os.environ.get("WINDROW_AUDIO") else all_clips[:1]:
        expected = dac_model.encode(model, samples)
        found = codec.encode(samples).astype(np.int64)
        unequal += ties(model, samples, expected, found)
        frames += len(expected)
    print(f"the published size: {unequal} of {frames} frames differ, all at ties")
    assert unequal <= frames // 1_000
    expected_samples = dac_model.decode(model, expected[:16])
    (found_samples,) = codec.decode(expected[:16])
    assert found_samples.shape == expected_samples.shape == (16 * 512,)
    np.testing.assert_allclose(found_samples, expected_samples, atol=1e-5)


def test_newer_names_of_weight_normalisation_are_read(tmp_path: Path) -> None:
    model = dac_model.make(3, **MODELS["two rates"])
    samples = clips()[0]
    expected = dac_model.encode(model, samples)
    newer = {
        name.replace("weight_g", "parametrizations.weight.original0").replace(
            "weight_v", "parametrizations.weight.original1"
        ): tensor
        for name, tensor in model.state_dict().items()
    }
    folded = {name: tensor for name, tensor in model.state_dict().items() if not name.endswith(("_g", "_v"))}
    for name, module in model.named_modules():
        if hasattr(module, "weight_g"):
            folded[f"{name}.weight"] = module.weight.detach()
    for state in (newer, folded):
        torch.save(state, tmp_path / "weights.pth")
        codec = wr.Codec(tmp_path / "weights.pth")
        ties(model, samples, expected, codec.encode(samples).astype(np.int64))
