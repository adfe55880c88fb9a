"""Writes bleu.json: what sacreBLEU makes of random text of Unicode 13, and Python's properties of its characters.

Needs Python 3.11 with sacrebleu 2.6.0 and its regex 2026.11.15, and unicodedataplus 16.0.0.post1, which knows the version
of Unicode that a character is of. Run again only when the reference itself changes: python3 tests/reference/bleu.py

With arguments it writes a larger file of other text, which the tests take in place of bleu.json:
python3 tests/reference/bleu.py FILE SEGMENTS SEED && HETSEQ_BLEU_REFERENCE=FILE build/cpu/tests/text/test_text
"""

import itertools
import json
import pathlib
import platform
import random
import sys

import regex
import sacrebleu
import unicodedataplus
from sacrebleu.metrics import BLEU, CHRF

assert sacrebleu.__version__ == "2.6.0", sacrebleu.__version__
UNICODE = (13, 0)

TOKENIZERS = ["13a", "none", "intl", "char"]
SMOOTHING = [("exp", None), ("floor", None), ("floor", 0.03), ("add-k", None), ("add-k", 0.4), ("none", None)]
SURROGATES = range(0xD800, 0xE000)


def is_known(c):
    age = unicodedataplus.age(chr(c))
    return c not in SURROGATES and age != "Unassigned" and tuple(map(int, age.split("."))) <= UNICODE


known = [chr(c) for c in range(0x110000) if is_known(c)]
assigned = [c for c in known if unicodedataplus.category(c) not in ("Cn", "Co")]


def matching(pattern):
    found = regex.compile(pattern)
    return [c for c in assigned if found.match(c)]


PUNCTUATION, SYMBOLS, NUMBERS = matching(r"\p{P}"), matching(r"\p{S}"), matching(r"\p{N}")
BLANKS = [c for c in assigned if c.isspace() and c not in "\n\r"]
CASED = [c for c in assigned if c.lower() != c]
MARKS = matching(r"[\p{M}\p{Cf}\p{Lm}\p{Sk}]")
FRAGMENTS = ["<skipped>", "&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "&apos;", "1,000.5", "3-4", "12.", ".5", "e.g.", "-",
             "ΟΔΟΣ", "ΣΣ", "Σ", "İI", "ΑΣ'", "Σ.Σ", "don't", "(hi)", "A", "...", "\u00aaΣ", "Ⓐ\u03a3", "\u200b", "\ufeff", "\0"]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "The", "Katze", "saß", "auf", "der", "Matte", "Größe", "GRÖSSE", "42", "x"]


def characters(rng):
    kind = rng.random()
    pools = [PUNCTUATION, SYMBOLS, NUMBERS, CASED, MARKS, assigned]
    if kind < 0.5:
        return rng.choice("abcAZ019.,-'\"!?&;:/()ΣσЖжß")
    return rng.choice(rng.choice(pools))


def word(rng):
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(WORDS)
    if kind < 0.6:
        return rng.choice(FRAGMENTS)
    return "".join(characters(rng) for _ in range(rng.randint(1, 6)))


def blank(rng):
    return " " if rng.random() < 0.9 else "".join(rng.choice(BLANKS) for _ in range(rng.randint(0, 2)))


def text_of(rng, words):
    return "".join(part for w in words for part in (w, blank(rng)))


def changed(rng, words):
    """Another wording: most words stay, some change, go, are doubled or get another case."""
    result = []
    for w in words:
        kind = rng.random()
        if kind < 0.72:
            result.append(w)
        elif kind < 0.8:
            result.append(word(rng))
        elif kind < 0.87:
            result += [w, w]
        elif kind < 0.95:
            result.append(w.swapcase())
    return result


def corpus(rng, segments, most_words):
    """Hypotheses, and three lists of references."""
    rows = []
    for _ in range(segments):
        words = [word(rng) for _ in range(rng.randint(0, most_words))]
        rows.append([text_of(rng, changed(rng, words)) for _ in range(4)])
    # What a line of a file cannot hold is not tried.
    lists = [[text.replace("\n", " ").rstrip() for text in column] for column in zip(*rows)]
    return lists[0], lists[1:]


def bleu_cases(hypotheses, references):
    for tokenizer, lowercase, count in itertools.product(TOKENIZERS, (False, True), (1, 2, 3)):
        rows = BLEU(tokenize=tokenizer, lowercase=lowercase)._extract_corpus_statistics(hypotheses, references[:count])
        scores = []
        for smoothing, value in SMOOTHING:
            metric = BLEU(tokenize=tokenizer, lowercase=lowercase, smooth_method=smoothing, smooth_value=value)
            metric.num_refs = count
            result = metric._aggregate_and_compute([list(row) for row in rows])
            line = result.format(width=2, signature=metric.get_signature().format())
            scores.append([smoothing, value, result.score, result.precisions, result.bp, line])
        yield {"tokenizer": tokenizer, "lowercase": lowercase, "references": count, "statistics": sums(rows), "scores": scores}


def chrf_cases(hypotheses, references):
    for word_order, lowercase, count in itertools.product((0, 1, 2), (False, True), (1, 2, 3)):
        metric = CHRF(word_order=word_order, lowercase=lowercase)
        rows = metric._extract_corpus_statistics(hypotheses, references[:count])
        result = metric._aggregate_and_compute(rows)
        yield {"word_order": word_order, "lowercase": lowercase, "references": count, "statistics": sums(rows),
               "score": result.score, "line": result.format(width=2, signature=metric.get_signature().format())}


def sums(rows):
    return [sum(column) for column in zip(*rows)]


def json_cases(hypotheses, references):
    """What --json prints for both metrics, with the default of one digit."""
    for metric in (BLEU(), CHRF()):
        result = metric.corpus_score(hypotheses, references[:1])
        yield result.format(width=1, signature=metric.get_signature().format(), is_json=True)


def sentence_cases(hypotheses, references):
    metric = BLEU(effective_order=True)
    for hypothesis, reference in zip(hypotheses, references[0]):
        result = metric.sentence_score(hypothesis, [reference])
        yield result.format(width=1, signature=metric.get_signature().format())


def runs(values):
    """[first, value] where the value changes."""
    result = []
    for c, value in values:
        if not result or result[-1][1] != value:
            result.append([c, value])
    return result


def class_of(c):
    if not is_known(c):
        return "unassigned"
    for name, pattern in (("P", r"\p{P}"), ("S", r"\p{S}"), ("N", r"\p{N}")):
        if regex.match(pattern, chr(c)):
            return name
    return "other"


def before_sigma(c):
    """1: a sigma after it is final; 2: one is that has a letter before it as well."""
    return ((c + "Σ").lower()[-1] == "ς") + 2 * (("A" + c + "Σ").lower()[-1] == "ς")


def character_cases():
    return {"classes": runs((c, class_of(c)) for c in range(0x110000)),
            "lower": [[ord(each) for each in c + c.lower()] for c in known if c.lower() != c],
            "final_sigma": runs((ord(c), before_sigma(c)) for c in known),
            "blanks": [ord(c) for c in known if c.isspace()]}


def corpus_cases(hypotheses, references):
    return {"hypotheses": hypotheses, "references": references,
            "bleu": list(bleu_cases(hypotheses, references)), "chrf": list(chrf_cases(hypotheses, references)),
            "json": list(json_cases(hypotheses, references)), "sentences": list(sentence_cases(hypotheses, references))}


def write_reference(path, sizes, seed):
    """`sizes`: segments and most words in one, of each corpus."""
    rng = random.Random(seed)
    result = {"sacrebleu": sacrebleu.__version__, "regex": regex.__version__, "python": platform.python_version(),
              "unicode": ".".join(map(str, UNICODE)), "characters": character_cases(),
              "corpora": [corpus_cases(*corpus(rng, *size)) for size in sizes]}
    path.write_text(folded(json.dumps(result, separators=(",", ":"))) + "\n")


def folded(text, width=120):
    """`text`, JSON without blanks outside strings, in lines that are not much longer; ends of strings are told apart."""
    lines, line = [], ""
    for token in regex.findall(r'"(?:\\.|[^"\\])*"|[^"\[\],:{}]+|[\[\],:{}]', text):
        line += token
        if len(line) > width and token == ",":
            lines.append(line)
            line = ""
    return "\n".join([*lines, line])


if len(sys.argv) == 1:
    write_reference(pathlib.Path(__file__).with_suffix(".json"), [(24, 14), (2, 4)], 13)
else:
    segments = int(sys.argv[2])
    write_reference(pathlib.Path(sys.argv[1]), [(500, 30)] * (segments // 500) + [(3, 30)] * (segments // 500), int(sys.argv[3]))
