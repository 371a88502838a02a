"""Writes the clips that are conversions of others, and what ffmpeg decodes from all of them.

    python make.py        # needs ffmpeg (5.1.9 was used) and numpy

`expected.json` says for every clip: rate, channels, samples, and a hash of all samples as little-endian 32-bit floats,
channel after channel. Lossy codecs differ in their last bits, so `expected/<clip>.npy` holds `[channels, 2048]` of ffmpeg's
samples: the first 1,024, and 1,024 from the middle.
"""

import hashlib
import json
import pathlib
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).parent
LOSSLESS = (".wav", ".flac")

# Name: arguments of ffmpeg.
MADE = {
    "cards_001_24bit.wav": "-i cards_001.wav -c:a pcm_s24le",
    "cards_001_float.wav": "-i cards_001.wav -c:a pcm_f32le",
    "cards_001_alac.m4a": "-i cards_001.wav -c:a alac",
    "chan3_44k.flac": "-t 1 -i chan3.ogg -ar 44100 -sample_fmt s16",
    "chan3_44k.mp3": "-t 1 -i chan3.ogg -ar 44100 -b:a 128k",
    "chan3_44k.m4a": "-t 1 -i chan3.ogg -ar 44100 -b:a 128k",
    "chan3_48k.ogg": "-t 1 -i chan3.ogg -ar 48000 -c:a libvorbis",
    "cards_004_adts.aac": "-i cards_004.m4a -c:a copy -f adts",
    "cards_001_opus.ogg": "-i cards_001.wav -c:a libopus -b:a 16k",
}


def ffmpeg(*arguments):
    command = ["ffmpeg", "-v", "error", "-y", "-bitexact", *arguments]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True).stdout


def decoded(clip):
    """What ffmpeg makes of it: rate and [channels, samples]."""
    ask = "ffprobe -v error -show_entries stream=sample_rate,channels -of csv=p=0".split()
    rate, channels = map(int, subprocess.run([*ask, clip], check=True, capture_output=True, text=True).stdout.split(","))
    raw = ffmpeg("-i", str(clip), "-f", "f32le", "-")
    return rate, np.frombuffer(raw, "<f4").reshape(-1, channels).T


def main():
    for name, arguments in MADE.items():
        ffmpeg(*arguments.split(), "-map_metadata", "-1", name)
    (HERE / "expected").mkdir(exist_ok=True)
    expected = {}
    for clip in sorted(HERE.glob("*.*")):
        if clip.suffix in (".py", ".json") or "opus" in clip.name:
            continue
        rate, samples = decoded(clip)
        expected[clip.name] = {"sample_rate_hz": rate, "channels": len(samples), "samples": samples.shape[1]}
        if clip.suffix in LOSSLESS or "alac" in clip.name:
            expected[clip.name]["sha256"] = hashlib.sha256(np.ascontiguousarray(samples).tobytes()).hexdigest()
        else:
            middle = samples.shape[1] // 2
            some = np.concatenate([samples[:, :1024], samples[:, middle : middle + 1024]], axis=1)
            np.save(HERE / "expected" / f"{clip.name}.npy", np.ascontiguousarray(some))
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
