"""descript-audio-codec 1.0.0 with random weights, as the tests and benches/codec.py ask it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

# Its parts lie in a folder of their own (Makefile), after torch and numpy, which they share. What else the tests import
# does not look there.
PARTS = str(Path(sys.prefix) / "dac")


@contextlib.contextmanager
def parts() -> Iterator[None]:
    """What is imported in the block may lie in that folder."""
    sys.path.append(PARTS)
    try:
        yield
    finally:
        sys.path.remove(PARTS)


def _package() -> Any:
    # torchaudio compares the CUDA versions that it and torch were built with; nothing here runs on CUDA.
    built_with = torch.version.cuda
    torch.version.cuda = None
    try:
        with parts(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import dac
    finally:
        torch.version.cuda = built_with
    return dac


def make(seed: int, **sizes: Any) -> Any:
    """A codec of these sizes (`dac.DAC`), in evaluation mode, whose weights the seed decides.

    Its own initialisation leaves every α at 1 and every bias at 0, which would hide an error in either: both are drawn.
    """
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _package().DAC(**sizes).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("alpha"):
                parameter.uniform_(0.2, 3.0)
            elif name.endswith("bias"):
                parameter.uniform_(-0.05, 0.05)
    return model


@torch.inference_mode()
def encode(model: Any, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The codes `[frames, codebooks]` of one channel."""
    wave = model.preprocess(torch.from_numpy(samples)[None, None], model.sample_rate)
    codes: npt.NDArray[np.int64] = model.encode(wave)[1][0].T.numpy()
    return codes


@torch.inference_mode()
def decode(model: Any, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """The samples that codes stand for."""
    latent = model.quantizer.from_codes(torch.from_numpy(np.ascontiguousarray(codes.T))[None])[0]
    samples: npt.NDArray[np.float32] = model.decode(latent)[0, 0].numpy()
    return samples
