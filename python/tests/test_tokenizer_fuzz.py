"""Every kind of tokenizer.json gives the ids of the package `tokenizers`, on strings that are hard for it.

    python test_tokenizer_fuzz.py [STRINGS [SEED]]     compares that many strings, spread over all kinds
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import windrow as wr
from tokenizer_kinds import GPT4, byte_level, kinds
from tokenizer_strings import Strings

KINDS = kinds()


def encoded(encode, text: str):
    """The ids; `None` where it says that it cannot encode the text."""
    try:
        return list(encode(text))
    except Exception:  # what each raises is its own
        return None


def differences(name: str, n_strings: int, seed: int, folder: Path) -> list[str]:
    """The first strings whose ids are not the package's, with both."""
    path = folder / f"{name}.json"
    path.write_text(KINDS[name]().to_str())
    package, ours = Tokenizer.from_file(str(path)), wr.Tokenizer(str(path))
    package.no_truncation()
    package.no_padding()
    strings, found = Strings(json.loads(path.read_text()), seed), []
    for i in range(n_strings):
        special = i % 3 == 0
        package.encode_special_tokens = not special
        text = strings.one()
        want = encoded(lambda text: package.encode(text, add_special_tokens=False).ids, text)
        got = encoded(lambda text: ours.encode(text, special_tokens=special), text)
        if got != want:
            found.append(f"{name} {text!r} special={special}: {got}, the package {want}")
            if len(found) == 5:
                break
    return found


@pytest.mark.parametrize("name", KINDS)
def test_the_ids_are_the_packages(name, tmp_path):
    assert not differences(name, 400, seed=0, folder=tmp_path)


def test_a_tokenizer_that_draws_at_random_is_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(byte_level(GPT4, dropout=0.1).to_str())
    with pytest.raises(wr.UnsupportedError, match="at random"):
        wr.Tokenizer(str(path))


def main(n_strings: int = 100_000, seed: int = 1) -> int:
    each, start, found = -(-n_strings // len(KINDS)), time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(KINDS):
            found += differences(name, each, seed + i, Path(folder))
    print(*found, sep="\n")
    print(f"{each * len(KINDS)} strings, {len(KINDS)} kinds, {len(found)} differ, {time.monotonic() - start:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
