"""Writes wordpiece.json: ids of generated texts for a small vocabulary, by Hugging Face's and Google's programs.

Needs: pip install tokenizers==0.23.* && pip install --no-deps bert-tensorflow==1.0.4 six
Run again only when the reference itself changes: python3 tests/reference/wordpiece.py
"""

import json
import pathlib
import random
import string
import unicodedata

import google_bert
import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "un", "want", "wa", "runn", "low", "lowest", "new", "newer", "The", "Un", "want", "hello", "straße",
         "strasse", "naïve", "naive", "日", "本", "мир", "при", "##ed", "##ing", "##er", "##est", "##want", "##ive",
         "##able", "##ст", "##вет", "##ा", "##본", "ab", "abc", "##bcd", "##cd", "##d", "##abcdabcd"]
CHARACTERS = string.ascii_letters + string.digits + "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~" + "éüßñçøσςαωийпривет日本한글กา।"


def vocabulary():
    pieces = dict.fromkeys(SPECIAL + WORDS)
    for character in CHARACTERS:
        pieces.update(dict.fromkeys([character, "##" + character]))
    del pieces["##z"], pieces["Q"]
    return list(pieces)


def hand_texts():
    return ["", " ", "unwanted running", "unwantedX running", "UNwantéd,running", " \tHeLLo!how  \r Are yoU?  ",
            "ah博推zz日本語", "naïve Straße STRASSE", "[CLS] new [MASK] lowest [SEP]", "##ing ##want", "don't can't",
            "abcdabcdabcd abcd", "a" * 200, "a" * 201, "é" * 200, "é" * 201, "b" * 31 + " " + "b" * 32 + " " + "b" * 33,
            "c" * 16 + "," + "c" * 15 + "." + "c" * 17, "a\u0301b e\u0301", "\u0301 x\u200b\u200dy \ufffd\u0000z",
            "İstanbul ı I", "a\u00a0b\u2003c\u3000d\u2028e\u0085f\u001cg", "Привет, мир!", "हिन्दी भाषा", "한국어 글",
            "\u212b \u2126 \u1e9e ǅ ﬁ", "q\u0323\u0307 q\u0307\u0323", "“Hello”—he said… ‘no’", "ab\u0001cd ab\u007fcd"]


# What Google's program and Hugging Face's see otherwise: a capital sigma that ends a word, private characters, which
# Hugging Face drops, and a block of Chinese ones that it leaves out.
DIFFERENT = ["ΟΔΟΣ ΣΑΣ'Α Σ", "a\ue000b \U000f0000", "a\U0002b820b"]


def random_text(source):
    kinds = [string.ascii_letters, string.ascii_lowercase, CHARACTERS, "abcd", " ,.'-\t", "\u0301\u0323\u0308\u200b\u00ad",
             "ÀÉÎÕÜßøŁĲ", "אבגד", "فارسی", "日本語中文", "한국어가", "กขค", "ΑΒΓαβγ", "ПРИвет", "\U0001d400\U0001f600\U00020000"]
    text = ""
    for _ in range(source.randint(1, 12)):
        kind = source.choice(kinds)
        text += "".join(source.choice(kind) for _ in range(source.randint(1, 9))) + source.choice(["", " ", " "])
    return text


def hugging_face(pieces, lower_case):
    model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]",
                             max_input_chars_per_word=200)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def trained(source):
    """A vocabulary of Hugging Face's trainer, and how many pieces it needs for the text."""
    syllables = ["ka", "lo", "mi", "ne", "ru", "sta", "tion", "ver", "é", "日"]
    words = sorted({"".join(source.choice(syllables) for _ in range(source.randint(1, 5))) for _ in range(400)})
    counts = {word: 1 + int(source.paretovariate(0.7)) % 5000 for word in words}
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=150, min_frequency=2, limit_alphabet=1000, show_progress=False,
                                        special_tokens=SPECIAL)
    tokenizer.train_from_iterator([" ".join([word] * count) for word, count in counts.items()], trainer)
    needed = sum(count * len(tokenizer.encode(word).ids) for word, count in counts.items())
    return {"words": counts, "size": 150, "vocabulary": sorted(tokenizer.get_vocab()), "needed": needed}


def main():
    source = random.Random(1)
    pieces = vocabulary()
    texts = hand_texts() + [random_text(source) for _ in range(80)]
    result = {"tokenizers": tokenizers.__version__, "unicode": unicodedata.unidata_version, "vocabulary": pieces}
    for name, lower_case in [("uncased", True), ("cased", False)]:
        google = google_bert.Tokenizer({piece: i for i, piece in enumerate(pieces)}, lower_case)
        theirs = hugging_face(pieces, lower_case)
        for text in texts:
            assert theirs(text) == google.ids(text), ascii(text)
        result[name] = [{"text": text, "words": google.words(text), "ids": google.ids(text)}
                        for text in texts + DIFFERENT]
    result["trained"] = trained(source)
    path = pathlib.Path(__file__).with_suffix(".json")
    text = json.dumps(result, separators=(",", ":"))
    path.write_text(text.replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
