"""Kinds of tokenizer.json, built with the package `tokenizers`."""

import functools
import itertools
import json
import random

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from tokenizer_strings import HARD, ROOT

GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = GPT4.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
O200K = rf"{BEFORE}{UPPER}*{LOWER}+{SHORT}|{BEFORE}{UPPER}+{LOWER}*{SHORT}|\p{{N}}{{1,3}}{REST}"
TEKKEN = rf"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|\p{{N}}{REST}"
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]
# As converters of tiktoken files write them.
POSSESSIVE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


@functools.cache
def corpus() -> list[str]:
    lines = (ROOT / "testdata/text/corpus.jsonl").read_text().splitlines()
    return (
        [json.loads(line)["text"][:1500] for line in lines[::12]]
        + HARD
        + ["'ſein in'ſein -- ---- caf\u00e9 cafe\u0301"] * 20
    )


@functools.cache
def bpe(byte_level: bool, size: int = 700) -> dict:
    """A model whose merges cross the borders of words: where a text is cut shows in its ids."""
    tokenizer = Tokenizer(models.BPE())
    pieces = pre_tokenizers.Split(Regex(".{1,12}"), "isolated")
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, last]) if byte_level else pieces
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    options = {"special_tokens": ["<unk>", "<s>", "</s>"], "initial_alphabet": alphabet, "show_progress": False}
    texts = corpus() if byte_level else [text.replace(" ", "\u2581") for text in corpus()]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size + 800 * (not byte_level), **options))
    return json.loads(tokenizer.to_str())["model"]


def byte_level(*steps, gpt2=None, prefix=False, normalizer=None, added=(), **model) -> Tokenizer:
    """Steps, expressions among them, then bytes; `gpt2`: cut by that expression, too, which one does that has no steps."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not steps if gpt2 is None else gpt2)
    steps = [pre_tokenizers.Split(Regex(s), "isolated") if isinstance(s, str) else s for s in steps]
    return assembled(bpe(True) | model, pre_tokenizers.Sequence([*steps, last]) if steps else last, normalizer, added)


def characters(pre_tokenizer=None, normalizer=None, added=(), **model) -> Tokenizer:
    return assembled(bpe(False) | model, pre_tokenizer, normalizer, added)


def assembled(model: dict, pre_tokenizer, normalizer, added) -> Tokenizer:
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    tokenizer = Tokenizer.from_str(json.dumps(empty | {"model": model}))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    for token in added:
        tokenizer.add_tokens([token])
    return tokenizer


def wordpiece(
    normalizer, pre_tokenizer=None, added=(), special=("[UNK]", "[CLS]", "[SEP]", "[MASK]"), **model
) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", **model))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer or pre_tokenizers.BertPreTokenizer()
    prefix = (
        {"continuing_subword_prefix": model["continuing_subword_prefix"]}
        if model.get("continuing_subword_prefix")
        else {}
    )
    trainer = trainers.WordPieceTrainer(vocab_size=900, special_tokens=list(special), show_progress=False, **prefix)
    tokenizer.train_from_iterator(corpus(), trainer)
    for token in added:
        tokenizer.add_tokens([token])
    return tokenizer


def unigram(seed: int, normalizer=None, added=(), pre_tokenizer=None, **model) -> Tokenizer:
    """Scores of 17 digits, and runs with several best ways to cut them."""
    rnd = random.Random(seed)
    pieces = [
        "\u2581",
        "-",
        "--",
        "---",
        "----",
        "a",
        "aa",
        "aaa",
        "ab",
        "aba",
        "ba",
        "s",
        "in",
        "ein",
        "\u2581in",
        "\u2581the",
        "the",
        "he",
        "e",
        "é",
    ]
    pieces += [chr(c) for c in range(0x21, 0x7F) if chr(c) not in pieces] + ["ſ", "中", "文", "中文"]
    scores = [rnd.uniform(-14, -3) for _ in pieces]
    for i in range(0, len(scores) - 1, 3):
        scores[i + 1] = scores[i] + rnd.choice([0, 1e-15, -1e-15])
    vocab = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *zip(pieces, scores)]
    if model.get("byte_fallback"):
        vocab += [(f"<0x{i:02X}>", -20.0) for i in range(256)]
    tokenizer = Tokenizer(models.Unigram(vocab, **({"unk_id": 0} | model)))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    for token in added:
        tokenizer.add_tokens([token])
    return tokenizer


def wordlevel(pre_tokenizer, normalizer=None, unk="<unk>", added=()) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token=unk) if unk else models.WordLevel())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.WordLevelTrainer(vocab_size=800, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    for token in added:
        tokenizer.add_tokens([token])
    return tokenizer


FLAGS = ["single_word", "lstrip", "rstrip", "normalized", "special"]
CONTENTS = [
    "Flu-19",
    "NEW York",
    "Café",
    "cafe\u0301",
    "<X>",
    "ﬁn",
    "İs",
    "the",
    "e",
    " ab",
    "ing ",
    "ß",
    "中文",
    "\u00a0x",
]


def every_flag(contents=tuple(CONTENTS)) -> list[AddedToken]:
    """Each combination of flags, one content each that differs in case, too."""
    flags = itertools.product([False, True], repeat=len(FLAGS))
    return [
        AddedToken(f"{content}{i:x}", **dict(zip(FLAGS, on)))
        for i, (on, content) in enumerate(zip(flags, itertools.cycle(contents)))
    ]


def plain(*contents: str, **flags) -> list[AddedToken]:
    return [AddedToken(content, **({"normalized": True, "special": False} | flags)) for content in contents]


NAMES = plain("FLU-19", "New York", "caf\u00e9", "ſein", "Ⅷ")
MARKS = [
    AddedToken("<|im_end|>", special=True, normalized=False),
    AddedToken("<tool>", special=False, normalized=False),
]
SPACES = [AddedToken(" " * n, normalized=True) for n in (2, 3, 5, 9)]


def with_inference_settings(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=16)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer


def changed(tokenizer: Tokenizer, change) -> Tokenizer:
    definition = json.loads(tokenizer.to_str())
    change(definition)
    return Tokenizer.from_str(json.dumps(definition))


def fewer_bytes(definition: dict) -> None:
    """No token for `é`'s bytes, nor for `!`."""
    model = definition["model"]
    for letter in "Ã©!":
        model["vocab"] = {token: id for token, id in model["vocab"].items() if letter not in token}
    model["merges"] = [pair for pair in model["merges"] if all(t in model["vocab"] for t in (*pair, "".join(pair)))]


def odd_merges(definition: dict) -> None:
    """Tokens that two pairs make, a pair that comes twice, and tokens that no pair makes."""
    vocab, merges, rnd = definition["model"]["vocab"], definition["model"]["merges"], random.Random(1)
    for token in list(vocab)[260:500]:
        for at in range(1, len(token)):
            if token[:at] in vocab and token[at:] in vocab and rnd.random() < 0.4:
                merges.insert(rnd.randrange(len(merges)), [token[:at], token[at:]])
    for token in ("Ġin'", "ÅĿ", "'Å", "zzz", "'Å¿"):
        vocab.setdefault(token, max(vocab.values()) + 1)


def as_lines(definition: dict) -> None:
    model = definition["model"]
    model["merges"] = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]


def legacy_model(definition: dict) -> None:
    definition["model"].pop("type")


def fallback_bytes(model: dict) -> dict:
    n = max(model["vocab"].values()) + 1
    return model["vocab"] | {f"<0x{i:02X}>": n + i for i in range(256)}


LLAMA2 = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
GEMMA = normalizers.Replace(" ", "\u2581")
BERT = normalizers.BertNormalizer
META = pre_tokenizers.Metaspace
XLNET = [
    normalizers.Replace("``", '"'),
    normalizers.Replace("''", '"'),
    normalizers.NFKD(),
    normalizers.StripAccents(),
    normalizers.Lowercase(),
]


def kinds() -> dict:
    """Name → a function that builds it."""
    all_ = {
        "gpt2": lambda: byte_level(added=MARKS),
        "gpt2_prefix_space": lambda: byte_level(prefix=True, added=MARKS),
        "gpt2_ignore_merges": lambda: byte_level(ignore_merges=True),
        "gpt2_every_flag": lambda: byte_level(added=every_flag()),
        "gpt2_prefix_space_every_flag": lambda: byte_level(prefix=True, added=every_flag()),
        "gpt2_settings": lambda: with_inference_settings(byte_level(added=NAMES)),
        "gpt2_odd_merges": lambda: changed(byte_level(), odd_merges),
        "gpt2_merges_as_lines": lambda: changed(byte_level(), as_lines),
        "gpt2_without_type": lambda: changed(byte_level(), legacy_model),
        "gpt2_fewer_bytes": lambda: changed(byte_level(), fewer_bytes),
        "gpt2_fewer_bytes_unk": lambda: changed(byte_level(unk_token="<unk>"), fewer_bytes),
        "gpt2_fewer_bytes_fused": lambda: changed(byte_level(unk_token="<unk>", fuse_unk=True), fewer_bytes),
        "neox": lambda: byte_level(normalizer=normalizers.NFC(), added=SPACES + NAMES),
        "whole_text": lambda: byte_level(gpt2=False),
        "llama3": lambda: byte_level(GPT4, ignore_merges=True, added=MARKS),
        "llama3_odd_merges": lambda: changed(byte_level(GPT4), odd_merges),
        "gpt4_removed": lambda: byte_level(pre_tokenizers.Split(Regex(GPT4), "removed", invert=True)),
        "qwen2": lambda: byte_level(QWEN2, normalizer=normalizers.NFC(), added=MARKS),
        "qwen35": lambda: byte_level(QWEN35, normalizer=normalizers.NFC(), added=MARKS),
        "o200k": lambda: byte_level(O200K, added=MARKS),
        "o200k_odd_merges": lambda: changed(byte_level(O200K), odd_merges),
        "tekken": lambda: byte_level(TEKKEN),
        "deepseek": lambda: byte_level(*DEEPSEEK, added=MARKS),
        "possessive": lambda: byte_level(POSSESSIVE),
        "starcoder": lambda: byte_level(pre_tokenizers.Digits(individual_digits=True), gpt2=True),
        "digits": lambda: byte_level(pre_tokenizers.Digits(), GPT4),
        "falcon": lambda: byte_level(
            pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(), "[0-9][0-9][0-9]"
        ),
        "bytes_twice": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
        "bloom": lambda: byte_level(BLOOM),
        "prefix_space_per_word": lambda: byte_level("[0-9]", prefix=True),
        "scripts": lambda: byte_level(pre_tokenizers.UnicodeScripts()),
        "clip": lambda: byte_level(
            pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
            normalizer=normalizers.Sequence(
                [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
            ),
            end_of_word_suffix="</w>",
            unk_token="<unk>",
        ),
        "byte_level_normalizer": lambda: assembled(bpe(True), None, normalizers.ByteLevel(), NAMES),
        "llama2": lambda: characters(
            None, LLAMA2, NAMES, unk_token="<unk>", fuse_unk=True, byte_fallback=True, vocab=fallback_bytes(bpe(False))
        ),
        "llama2_settings": lambda: with_inference_settings(
            characters(None, LLAMA2, byte_fallback=True, vocab=fallback_bytes(bpe(False)))
        ),
        "gemma": lambda: characters(
            pre_tokenizers.Split(" ", "merged_with_previous"),
            GEMMA,
            byte_fallback=True,
            vocab=fallback_bytes(bpe(False)),
        ),
        "characters_unk": lambda: characters(META(), unk_token="<unk>"),
        "characters_fused_unk": lambda: characters(META(), unk_token="<unk>", fuse_unk=True),
        "characters_without_unk": lambda: characters(META()),
        "characters_prefix": lambda: characters(
            pre_tokenizers.Whitespace(), continuing_subword_prefix="", unk_token="<unk>"
        ),
        "bert_uncased": lambda: wordpiece(BERT(lowercase=True), added=NAMES),
        "bert_uncased_every_flag": lambda: wordpiece(BERT(lowercase=True), added=every_flag()),
        "bert_cased": lambda: wordpiece(BERT(lowercase=False), added=NAMES),
        "bert_multilingual": lambda: wordpiece(
            BERT(lowercase=True, strip_accents=False, handle_chinese_chars=False), added=NAMES
        ),
        "wordpiece_short_words": lambda: wordpiece(
            normalizers.NFKC(), pre_tokenizers.Whitespace(), max_input_chars_per_word=7
        ),
        "wordpiece_prefix": lambda: wordpiece(BERT(), pre_tokenizers.WhitespaceSplit(), continuing_subword_prefix="@@"),
        "t5": lambda: unigram(0, added=NAMES),
        "xlnet": lambda: unigram(1, normalizers.Sequence(XLNET), NAMES),
        "unigram_byte_fallback": lambda: unigram(2, byte_fallback=True),
        "unigram_without_unk": lambda: unigram(3, unk_id=None),
        "unigram_every_flag": lambda: unigram(4, added=every_flag()),
        "unigram_two_steps": lambda: unigram(
            5, normalizers.Nmt(), NAMES, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), META()])
        ),
        "wordlevel": lambda: wordlevel(pre_tokenizers.Whitespace(), added=NAMES),
        "wordlevel_punctuation": lambda: wordlevel(
            pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
            normalizers.Lowercase(),
        ),
        "wordlevel_delimiter": lambda: wordlevel(pre_tokenizers.CharDelimiterSplit(" "), normalizers.Strip()),
        "wordlevel_fixed_length": lambda: wordlevel(pre_tokenizers.FixedLength(3)),
        "wordlevel_without_unk": lambda: wordlevel(pre_tokenizers.Whitespace(), unk=None),
    }
    for name in ["Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Strip", "Nmt", "BertNormalizer"]:
        all_[f"{name}_names"] = lambda name=name: byte_level(normalizer=getattr(normalizers, name)(), added=NAMES)
        all_[f"{name}_every_flag"] = lambda name=name: byte_level(
            GPT4, normalizer=getattr(normalizers, name)(), added=every_flag()
        )
    for behavior in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
        for invert in [False, True]:
            split = functools.partial(pre_tokenizers.Split, behavior=behavior, invert=invert)
            all_[f"split_{behavior}_{invert}"] = lambda split=split: byte_level(split(Regex(r"[aeiou]\d?|\s+|(?i:'s)")))
            all_[f"split_text_{behavior}_{invert}"] = lambda split=split: byte_level(split("in"), added=NAMES)
    for scheme in ["always", "first", "never"]:
        for split in [False, True]:
            meta = functools.partial(META, prepend_scheme=scheme, split=split)
            all_[f"metaspace_{scheme}_{split}"] = lambda meta=meta: characters(
                meta(), None, MARKS + NAMES, unk_token="<unk>"
            )
    return all_
