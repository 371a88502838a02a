"""Audio for Dia's fine-tuning: its configuration, data sets and collate function; needs torch.

`windrow.open(path).codes(length)` is the native view: it assembles whole batches ahead of time, in threads, and a run resumes
to the exact sample. Here samples are tuples and batches are assembled from them, as the original's training loop expects.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

import windrow
import windrow.torch  # a batch that a worker process cannot send is an error then, not waited for
from windrow import _native
from windrow._epoch import Epoch

from .data_forager.files import natural_order
from .in_range import in_range
from ..failure import failure

__all__ = ["DataConfig", "DiaConfig", "PreEncodedDACDataset", "TestingDataset", "collate_fn", "is_unconditional", "make_unconditional"]

SOUND_ENDINGS = (".mp3", ".wav", ".flac", ".m4a", ".ogg")

_WORD = 2**64 - 1
_Key = tuple[int, int, int, int]
_Item = tuple[str, torch.Tensor, "torch.Tensor | None"]


def _up(length: int) -> int:
    return (length + 127) // 128 * 128


@dataclass(frozen=True)
class DataConfig:
    """Lengths, channels, special values and delays of a batch. Both lengths are rounded up to a multiple of 128.

    Raises `windrow.ConfigError`, a ValueError, for a length that is not above 0.

    >>> DataConfig(text_length=512, audio_length=600).audio_length
    640
    """

    text_length: int
    audio_length: int
    channels: int = 9
    text_pad_value: int = 0
    audio_eos_value: int = 1024
    audio_pad_value: int = 1025
    audio_bos_value: int = 1026
    delay_pattern: list[int] = field(default_factory=lambda: [0, 1, 2, 3, 4, 5, 6, 7, 8])

    def __post_init__(self) -> None:
        for name in ("text_length", "audio_length"):
            length = _up(getattr(self, name))
            if length <= 0:
                raise failure(windrow.ConfigError, f"{name} is {getattr(self, name)}, expected more than 0")
            object.__setattr__(self, name, length)


@dataclass(frozen=True)
class DiaConfig:
    """A `config.json`: `data` is read here; other sections (`model`, `training`) are kept as they are, by attribute."""

    data: DataConfig
    version: str = "1.0"
    model: Any = None
    training: Any = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DiaConfig:
        """Reads a `config.json`.

        Raises `windrow.NotFoundError`, a FileNotFoundError, and `windrow.ConfigError`, a ValueError.
        """
        name = os.fspath(path)
        try:
            with open(name, encoding="utf-8") as file:
                content = json.load(file)
        except FileNotFoundError:
            raise failure(windrow.NotFoundError, "the configuration is not there", path=name) from None
        except ValueError as cause:
            raise failure(windrow.ConfigError, f"the configuration is no JSON: {cause}", path=name) from cause
        return cls.model_validate(content)

    @classmethod
    def model_validate(cls, content: Mapping[str, Any]) -> DiaConfig:
        """From what a `config.json` holds."""
        data = content.get("data") if isinstance(content, Mapping) else None
        if not isinstance(data, Mapping):
            raise failure(windrow.ConfigError, 'a configuration without "data"', hint="see docs/audio.md")
        known = {item.name for item in dataclasses.fields(DataConfig)}
        for name in ("text_length", "audio_length"):
            if name not in data:
                raise failure(windrow.ConfigError, f'a configuration without "{name}" in its "data"')
        own = {key: value for key, value in data.items() if key in known}
        for key, value in own.items():
            numbers = value if key == "delay_pattern" else [value]
            if not isinstance(numbers, list) or any(type(n) is not int for n in numbers):
                raise failure(windrow.ConfigError, f"{key} is {value!r}, expected whole numbers")
        sections = {key: _by_attribute(content[key]) for key in ("model", "training") if key in content}
        return cls(data=DataConfig(**own), version=str(content.get("version", "1.0")), **sections)


def _by_attribute(value: Any) -> Any:
    if isinstance(value, Mapping):
        return SimpleNamespace(**{str(key): _by_attribute(inner) for key, inner in value.items()})
    return value


class _Prompt(str):
    """A prompt that knows by which numbers its sample's tags are drawn."""

    draw: _Key

    def __reduce__(self) -> tuple[Any, ...]:
        return _prompt, (str(self), self.draw)


def _prompt(text: str, draw: _Key) -> _Prompt:
    prompt = _Prompt(text)
    prompt.draw = draw
    return prompt


class _Keyed(torch.utils.data.Dataset[_Item]):
    """Samples that are drawn by numbers: seed, epoch and sample."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._epoch = Epoch()
        self._base = 0
        self._turn = 0
        self._seen: set[int] = set()

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch the next samples are drawn for; worker processes follow."""
        self._epoch.set(epoch)

    def _draw(self, number: int) -> _Key:
        epoch = self._epoch.get()
        if epoch is not None:
            return self.seed & _WORD, epoch & _WORD, 0, number
        worker = torch.utils.data.get_worker_info()
        # The same for all workers of an epoch, another one in the next.
        base = 0 if worker is None else worker.seed - worker.id
        if base != self._base:
            self._base, self._turn, self._seen = base, 0, set()
        # A worker that lives on gets other samples in each epoch, so one that comes again counts for all.
        if number in self._seen:
            self._turn, self._seen = self._turn + 1, set()
        self._seen.add(number)
        return self.seed & _WORD, base & _WORD, self._turn, number


def _start(draw: _Key, found: int, length: int, at_random: bool) -> int:
    """Where a crop of `length` of `found` begins."""
    return _native._draw_below(draw, found - length + 1) if found > length and at_random else 0


class PreEncodedDACDataset(_Keyed):
    """Tracks of a pre-encoded folder: `(prompt, codes, None)`, codes `[T, C]` int64 with T at most `audio_length`.

    The files are in natural order. A longer track is cut at random with `use_sliding_window`, else at its start. Where
    `config.data.channels` is twice a track's channels, its codes are used for both sides.

    What is drawn is keyed by `seed`, the epoch and the sample, so that it is the same on every rank and for any number of
    workers. The epoch is that of `set_epoch`; without it, what `DataLoader` draws again for its workers each epoch, and how
    often samples came again in this process.

    Raises `windrow.NotFoundError`, a FileNotFoundError, where there are no `.pt` files; what `windrow.open` raises.
    """

    def __init__(
        self,
        preprocessed_dir: str | os.PathLike[str],
        config: DiaConfig,
        use_sliding_window: bool = True,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.preprocessed_dir, self.config, self.use_sliding_window = preprocessed_dir, config, use_sliding_window
        self._tracks = windrow.open(preprocessed_dir, format="codes")

    def __len__(self) -> int:
        return len(self._tracks)

    def __getitem__(self, idx: int) -> _Item:
        number = in_range(idx, len(self), "sample")
        codes, extras = self._codes(number), self._tracks.extras(number)
        draw = self._draw(number)
        length = self.config.data.audio_length
        start = _start(draw, len(codes), length, self.use_sliding_window)
        grid = torch.from_numpy(codes[start : start + length].astype("int64"))
        if self.config.data.channels == 2 * grid.shape[1]:
            grid = torch.cat([grid, grid], dim=1)
        return _prompt(extras["text"], draw), grid, None


    def _codes(self, number: int) -> Any:
        try:
            codes = self._tracks[number]
        except windrow.CorruptError as error:
            # As the original, which drops the fractions of floats; windrow reads none of them as a code.
            if error.path is None or not os.path.isfile(error.path):
                raise
            stored = torch.load(error.path, weights_only=True)
            if not (stored.is_floating_point() and stored.abs().max() < 2**53):
                raise
            return stored.to(torch.int64).numpy()
        return codes[:, : codes.shape[1] // 2] if self._tracks.extras(number).get("mono") else codes


class NoSoundError(windrow.NotFoundError, ValueError):
    """No sound file is there: a `windrow.NotFoundError` and, as in the original, a ValueError."""


class TestingDataset(_Keyed):
    """Sound files, encoded on the way: `(prompt, codes, waveform)`, codes `[T, 2 * codebooks]` int64 with T at most
    `audio_length`, waveform float32 `[1, channels, samples]` of the same crop.

    `audio_folder` holds `.mp3`, `.wav`, `.flac`, `.m4a` and `.ogg`, named so in small letters, in natural order; the prompt of
    `NAME.wav` is `NAME_prompt.txt` in `prompts`, by default `audio_prompts` beside the folder. Files whose prompt contains one
    of `skip_tags`, whatever its case, are left out. One channel is encoded once and used for both sides.

    `dac_model` is a `windrow.Codec` or the Python package's model. With a `windrow.Codec`, a file is encoded as a whole the
    first time, its codes are kept in the cache folder, and the crop is one of frames; without `waveforms` the file is not
    decoded again, and a sample takes microseconds. With the package's model, the crop is cut first and encoded each time, on
    the model's device.

    Crops are drawn as `PreEncodedDACDataset` draws them.

    Raises, without a sound file, an error that is both `windrow.NotFoundError` and ValueError; `windrow.ConfigError`, a
    ValueError, where every file is left out; for a file what `windrow.read_audio` raises. Without `allow_empty_prompts` a
    sample whose prompt file is missing is a `windrow.NotFoundError`, a FileNotFoundError, when it is asked for.
    """

    __test__ = False

    def __init__(
        self,
        audio_folder: str | os.PathLike[str],
        config: DiaConfig,
        dac_model: Any,
        use_sliding_window: bool = True,
        skip_tags: Sequence[str] | None = None,
        allow_empty_prompts: bool = True,
        *,
        prompts: str | os.PathLike[str] | None = None,
        waveforms: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.audio_folder, self.config, self.dac_model = audio_folder, config, dac_model
        self.use_sliding_window, self.waveforms = use_sliding_window, waveforms
        self.allow_empty_prompts = allow_empty_prompts
        self._prompts = _prompt_folder(audio_folder, prompts)
        files = [(path, _prompt_of(path, self._prompts)) for path in _sound_files(os.fspath(audio_folder))]
        self._files = [(path, prompt) for path, prompt in files if not _is_skipped(prompt, skip_tags or ())]
        if not self._files:
            raise failure(
                windrow.ConfigError, "every file is left out because of its prompt", path=os.fspath(audio_folder)
            )

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, idx: int) -> _Item:
        number = in_range(idx, len(self), "sample")
        path, prompt = self._files[number]
        if prompt is None and not self.allow_empty_prompts:
            raise failure(
                windrow.NotFoundError,
                f"there is no prompt of {os.path.basename(path)}",
                path=_prompt_file(path, self._prompts),
                record=number,
                hint="write it, or allow empty prompts",
            )
        draw = self._draw(number)
        is_native = isinstance(self.dac_model, windrow.Codec)
        codes, waveform = (self._frames if is_native else self._encoded)(path, draw)
        return _prompt(prompt or "", draw), codes, waveform

    def _frames(self, path: Any, draw: _Key) -> tuple[torch.Tensor, torch.Tensor | None]:
        codec, length = self.dac_model, self.config.data.audio_length
        codes = _native._track(path, codec)
        start = _start(draw, len(codes), length, self.use_sliding_window)
        waveform = None
        if self.waveforms:
            samples, _ = windrow.read_audio(path, sample_rate=codec.sample_rate)
            hop = codec.hop_length
            waveform = torch.from_numpy(samples[:, start * hop : (start + length) * hop].copy())[None]
        return torch.from_numpy(codes[start : start + length].astype("int64")), waveform

    def _encoded(self, path: Any, draw: _Key) -> tuple[torch.Tensor, torch.Tensor | None]:
        model, rate = self.dac_model, int(self.dac_model.sample_rate)
        found, _ = windrow.read_audio(path, sample_rate=rate)
        length = self.config.data.audio_length * int(model.hop_length)
        start = _start(draw, found.shape[1], length, self.use_sliding_window)
        samples = torch.from_numpy(found[:, start : start + length].copy())
        device = next(model.parameters()).device
        sides = []
        with torch.no_grad():
            for channel in samples:
                signal = model.preprocess(channel[None, None].to(device), rate)
                sides.append(model.encode(signal)[1][0].T.cpu().to(torch.int64))
        return torch.cat([sides[0], sides[-1]], dim=1), samples[None] if self.waveforms else None


def _sound_files(folder: str) -> list[str]:
    """The sound files directly in a folder, hidden ones left out; one that is named itself."""
    if os.path.isfile(folder):
        return [folder]
    names = os.listdir(folder) if os.path.isdir(folder) else []
    sound = sorted(name for name in names if name.endswith(SOUND_ENDINGS) and not name.startswith("."))
    paths = [os.path.join(folder, name) for name in natural_order(sound)]
    # A link that leads nowhere stays: reading it says so.
    found = [path for path in paths if not os.path.isdir(path)]
    if not found:
        message = "there is no sound file in the folder" if os.path.isdir(folder) else "there is no such folder"
        raise failure(NoSoundError, message, path=folder, hint=f"looked for {', '.join(SOUND_ENDINGS)} directly in it")
    return found


def _prompt_folder(audio_folder: str | os.PathLike[str], prompts: str | os.PathLike[str] | None) -> str:
    if prompts is None:
        return os.path.join(os.path.dirname(os.path.abspath(audio_folder)), "audio_prompts")
    if not os.path.isdir(prompts):
        raise failure(windrow.NotFoundError, "there is no such folder of prompts", path=prompts)
    return os.fspath(prompts)


def _prompt_file(sound: str, folder: str) -> str:
    return os.path.join(folder, f"{Path(sound).stem}_prompt.txt")


def _prompt_of(sound: str, folder: str) -> str | None:
    """The prompt of a sound file; None where there is no file of it."""
    path = _prompt_file(sound, folder)
    if not os.path.isfile(path):
        return None
    try:
        return Path(path).read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise failure(windrow.CorruptError, f"the prompt is not UTF-8: {error.reason}", path=path, byte=error.start) from error


def _is_skipped(prompt: str | None, tags: Sequence[str]) -> bool:
    return bool(prompt) and any(tag.lower() in str(prompt).lower() for tag in tags)


def collate_fn(
    batch: Sequence[tuple[str, torch.Tensor, torch.Tensor | None]],
    config: DiaConfig,
    train_cfg: Any,
    device: torch.device | str | None,
    use_sliding_window: bool = True,
) -> dict[str, Any]:
    """Assembles samples into the batch that Dia is trained on, on `device` (None: in main memory, where it is assembled).

    With S = `text_length`, T the most frames of a sample and C channels: `src_tokens`, `src_positions` `[B, S]`,
    `enc_self_attn_mask` `[B, 1, S, S]`, `tgt_tokens` `[B, T + 2, C]`, `tgt_positions` `[B, T + 2]`, `dec_self_attn_mask`
    `[B, 1, T + 2, T + 2]`, `dec_cross_attn_mask` `[B, 1, T + 2, S]`, `seq_lens` and `tgt_lens` `[B]` (frames, and two more),
    `waveforms` (a tuple) and `raw_text` (the first prompt). Tokens and lengths are int64, masks bool, True where it attends.

    `train_cfg` has `tag_shuffle` (True if it has none), `tag_dropout` and `tag_limit`. Tags, and crops of codes longer than
    `audio_length`, are drawn by the numbers of a `PreEncodedDACDataset`'s sample, else by Python's `random`.

    Raises `windrow.ConfigError` or `windrow.MismatchError` for codes whose channels are not those of the delay pattern.
    """
    data = config.data
    items = []
    for text, codes, _ in batch:
        key = text.draw if isinstance(text, _Prompt) else (random.getrandbits(64), 0, 0, 0)
        items.append((str(text), codes.detach().cpu().numpy(), key))
    widest = max((codes.shape[-1] for _, codes, _ in items), default=0)
    layout = {
        "text_length": data.text_length,
        # What the configuration calls stereo takes mono codes twice; else the codes say how many channels there are.
        "channels": data.channels if data.channels == 2 * widest else widest,
        "text_pad_value": data.text_pad_value,
        "audio_eos_value": data.audio_eos_value,
        "audio_pad_value": data.audio_pad_value,
        "audio_bos_value": data.audio_bos_value,
        "delay_pattern": list(data.delay_pattern),
        "tags": {
            "shuffle": bool(_option(train_cfg, "tag_shuffle", True)),
            "dropout": float(_option(train_cfg, "tag_dropout", 0.0) or 0.0),
            "limit": _option(train_cfg, "tag_limit", None),
        },
        "codebook_size": None,
        "cut": "byte",
    }
    if data.channels != layout["channels"] and any(codes.shape[-1] != widest for _, codes, _ in items):
        widths = sorted({codes.shape[-1] for _, codes, _ in items})
        raise failure(
            windrow.MismatchError,
            f"samples of {' and '.join(map(str, widths))} channels in one batch, of a configuration of {data.channels}",
            hint="channels of config.data says how many a batch has; codes of half as many are taken twice then",
        )
    tensors = _native._assemble_codes(items, json.dumps(layout), data.audio_length, use_sliding_window)
    if device is not None:
        tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
    tensors["waveforms"] = tuple(waveform for _, _, waveform in batch)
    tensors["raw_text"] = str(batch[0][0])
    return tensors


def _option(train_cfg: Any, name: str, otherwise: Any) -> Any:
    if isinstance(train_cfg, Mapping):
        return train_cfg.get(name, otherwise)
    return getattr(train_cfg, name, otherwise)


def is_unconditional(global_step: int, seed: int = 786, unconditional_frac: float = 0.15) -> bool:
    """Whether the batch of a step is learned without its prompts.

    >>> [step for step in range(25) if is_unconditional(step)]
    [0, 10, 20]
    """
    return (global_step * 997 + seed) % 10000 / 10000.0 < unconditional_frac


def make_unconditional(batch: dict[str, Any], config: DiaConfig) -> None:
    """Takes the prompts out of a batch, in place: text is padding, and nothing attends to it."""
    batch["src_tokens"].fill_(config.data.text_pad_value)
    batch["enc_self_attn_mask"].zero_()
    batch["dec_cross_attn_mask"].zero_()
