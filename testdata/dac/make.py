"""Writes this folder: a small codec with random weights, a clip, and what descript-audio-codec makes of it.

    PYTHONPATH=python/tests python testdata/dac/make.py

`python/tests/dac_model.py` says where descript-audio-codec is found.
"""

import pathlib
import sys
import wave

import numpy as np
import torch
from dac_model import decode, encode, make
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
# A rate that is odd, codebooks of different widths, and a latent of its own width.
SIZES = dict(
    encoder_dim=6,
    encoder_rates=[2, 3, 4],
    latent_dim=24,
    decoder_dim=24,
    decoder_rates=[4, 3, 2],
    n_codebooks=5,
    codebook_size=64,
    codebook_dim=[4, 8, 4, 2, 8],
    sample_rate=16_000,
)


def main():
    model = make(7, **SIZES)
    model.save(HERE / "small.pth", package=False)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, HERE / "small.safetensors", metadata={"format": "pt", "sample_rate": "16000"})
    # The tensors alone, in torch's older layout.
    tiny = make(8, encoder_dim=4, encoder_rates=[2, 2], decoder_dim=8, decoder_rates=[2, 2], n_codebooks=2, codebook_size=16)
    torch.save(tiny.state_dict(), HERE / "older.pth", _use_new_zipfile_serialization=False)
    with wave.open(str(HERE.parent / "audio" / "cards_001.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)[2_000:14_001]
    samples.tofile(HERE / "clip.i16")
    codes = encode(model, samples.astype(np.float32) / 32_768)
    codes.astype(np.uint16).tofile(HERE / "codes.u16")
    encode(tiny, samples[:2_000].astype(np.float32) / 32_768).astype(np.uint16).tofile(HERE / "older_codes.u16")
    decode(model, codes)[:2_400].astype(np.float32).tofile(HERE / "decoded.f32")
    print(torch.__version__, codes.shape, sys.version)


if __name__ == "__main__":
    main()
