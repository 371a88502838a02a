"""Strings that are hard for a tokenizer.json, made of the definition itself."""

import json
import random
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HARD = json.loads((ROOT / "crates/windrow-text/assets/hard_strings.json").read_text())

# By what expressions and normalizers tell apart; and what was found to be read in two ways.
CHARACTERS = list("aesStTlLdDmMvVrRxyzEXÉéßſKİıǅʰªσςΣ019½²٣Ⅷ中文かーﾊ・가ᄒ '’\"!?.,-–—_/\\|<>[]{}@#€🙂👍🏽") + [
    *" \t\n\r\v\f\x00\x1c\x85\xa0\xad\u1680\u2003\u2028\u2029\u200b\u200c\u200d\u2060\ufeff\u3000\u180e",
    *"\u0301\u0308\u0345\u093e\u0e33\u20dd\ufe0f\ufffd\ufffe\ue000\U000e0041\U00010400\U0001d7ce\U00020000",
    *"\u3040\u3097\u309b\u30a0\u30fb\u0149\u01f0\u0390\ufb01\ufb06\u1e9e\u2126\u212b\u0130\u01c4\u2160",
]  # fmt: skip
JOINERS = ["\u200d", "\u200c", "\xad", "\u0301", " ", "\n", "'", "-"]


def spellings(token: str) -> list[str]:
    """As other texts write it: in each case and normal form, and broken up."""
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in token)
    cases = [token, token.lower(), token.upper(), token.title(), token.swapcase(), token.casefold(), wide, wide.lower()]
    forms = [unicodedata.normalize(form, case) for form in ("NFC", "NFD", "NFKC", "NFKD") for case in cases[:4]]
    broken = [joiner.join(token) for joiner in JOINERS] + [token[:-1], token[1:], token + token, token[:1] + token]
    return list(dict.fromkeys(cases + forms + broken))


def letters() -> dict[str, int]:
    """The byte of each letter of a byte-level token."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(b): b for b in own} | {chr(256 + i): b for i, b in enumerate(others)}


class Strings:
    """Strings without end for one definition: from its added tokens, its vocabulary, its merges and equal scores."""

    def __init__(self, definition: dict, seed: int):
        self.random = random.Random(seed)
        model, byte = definition["model"], letters()
        vocab = [piece for piece, _ in model["vocab"]] if isinstance(model["vocab"], list) else list(model["vocab"])
        is_bytes = "ByteLevel" in json.dumps([definition["pre_tokenizer"], definition["normalizer"]])

        def text(token: str) -> str:
            if is_bytes and all(c in byte for c in token):
                return bytes(byte[c] for c in token).decode("utf-8", "replace")
            return token.replace("\u2581", " ").removeprefix("##")

        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model.get("merges", [])]
        added = [token["content"] for token in definition["added_tokens"]]
        self.atoms = [
            [spelling for token in added for spelling in spellings(token)] or [""],
            [text(token) for token in vocab] or [""],
            ["".join(text(half) for half in pair) for pair in pairs] or [""],
            [text(half) + joiner for pair in pairs[::7] for half in pair for joiner in JOINERS] or [""],
            HARD,
            CHARACTERS,
            [
                "'s",
                "'S",
                "'ſ",
                "'re",
                "'LL",
                "in'ſein",
                "'ſ e",
                "'K",
                "n't",
                "\r\n",
                "  ",
                " \n ",
                "   x",
                "123",
                "45678",
                "!!",
                "!・",
                "」・",
            ],
        ]
        self.weights = [4, 4, 3, 2, 0.3, 6, 3]

    def one(self) -> str:
        parts = []
        for kind in self.random.choices(
            range(len(self.atoms)), self.weights, k=self.random.choice([1, 1, 2, 3, 4, 6, 9] * 10 + [300])
        ):
            atom = self.random.choice(self.atoms[kind])
            # Of a run, the best way to cut it may be one of several equal ones.
            parts.append(atom * self.random.choice([1] * 7 + [2, 3, 17]) if len(atom) < 8 else atom)
        if self.random.random() < 0.2:
            parts.insert(self.random.randrange(len(parts) + 1), self.anywhere())
        return "".join(parts)

    def anywhere(self) -> str:
        """Any characters but those that no text has."""
        n = self.random.randint(1, 4)
        some = (self.random.randrange(0x20000 if self.random.random() < 0.9 else 0x110000) for _ in range(n))
        return "".join(chr(c) for c in some if not 0xD800 <= c < 0xE000)
