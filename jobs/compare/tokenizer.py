"""hetseq tokenize beside Hugging Face's tokenizers and Google's program (see tokenizer.sh)."""

import gzip
import lzma
import os
import pathlib
import random
import resource
import statistics
import string
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/reference"))

import google_bert  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LONGEST_WORD = 200  # characters, as in Google's program
ASSIGNED = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i)) not in ("Cs", "Cn")]


def hugging_face(vocabulary, cased):
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def ids_of_lines(program, vocab_file, cased, lines):
    """Of hetseq, for lines of bytes without b"\\n"."""
    command = [program, "tokenize", "--vocab", str(vocab_file)] + ["--cased"] * cased
    result = subprocess.run(command, input=b"".join(line + b"\n" for line in lines), capture_output=True, check=True)
    return [[int(word) for word in line.split()] for line in result.stdout.decode().split("\n")[:-1]]


class Comparison:
    """The three programs with one vocabulary."""

    def __init__(self, program, vocab_file, cased):
        self.program, self.vocab_file, self.cased = program, vocab_file, cased
        lines = vocab_file.read_bytes().decode().split("\n")[:-1]
        vocabulary = {piece: i for i, piece in enumerate(lines)}
        self.theirs = hugging_face(vocabulary, cased)
        self.google = google_bert.Tokenizer(vocabulary, not cased)
        self.seen_otherwise = set()  # characters that tokenizers treats in another way than Google's program

    def compare(self, name, lines):
        """Prints how many lines differ; returns those whose ids are not Google's."""
        texts = [line.decode("utf-8", "ignore") for line in lines]
        ours = ids_of_lines(self.program, self.vocab_file, self.cased, lines)
        assert len(ours) == len(lines)
        google = [self.google.ids(text) for text in texts]
        from_google = [i for i, ids in enumerate(ours) if ids != google[i]]
        comparable = [i for i, text in enumerate(texts) if self.seen_otherwise.isdisjoint(text)]
        encoded = self.theirs.encode_batch([texts[i] for i in comparable], add_special_tokens=False)
        from_theirs = [i for i, one in zip(comparable, encoded) if ours[i] != one.ids]
        print(f"{name:36} {sum(map(len, lines)) / 1e6:7.2f} MB {len(lines):8} lines {sum(map(len, ours)):9} ids: "
              f"{len(from_google)} lines differ from Google's; of {len(comparable)} comparable ones "
              f"{len(from_theirs)} differ from tokenizers'", flush=True)
        for i in (from_google + from_theirs)[:3]:
            print("   ", ascii(texts[i]), ours[i], google[i])
        return from_google

    def compare_characters(self):
        """Each character between letters. What tokenizers sees otherwise is left out of later texts."""
        lines = [f"a{c}B{c} {c}".encode() for c in ASSIGNED if c != "\n"]
        self.compare("each character, all pieces" + ", cased" * self.cased, lines)
        texts = [line.decode() for line in lines]
        encoded = self.theirs.encode_batch(texts, add_special_tokens=False)
        self.seen_otherwise = {text[1] for text, one in zip(texts, encoded) if one.ids != self.google.ids(text)}
        kinds = [unicodedata.category(c) for c in self.seen_otherwise]
        print("    tokenizers sees otherwise:", {kind: kinds.count(kind) for kind in sorted(set(kinds))})


def all_characters_vocabulary(folder):
    """A vocabulary in which no character is unknown, so that ids tell all of them apart."""
    path = folder / "characters.txt"
    characters = [c for c in ASSIGNED if c.strip()]
    path.write_text("\n".join(SPECIAL + characters + ["##" + c for c in characters]) + "\n", newline="\n")
    return path


def block(source):
    """Assigned characters beside each other, as those of a script are."""
    begin = source.randrange(len(PUBLIC) - 60)
    return PUBLIC[begin:begin + 60]


def word(source, alphabet, most=10):
    return "".join(source.choice(alphabet) for _ in range(source.randint(1, most)))


def generated(kind, source):
    """One line of a kind of text."""
    letters = string.ascii_letters
    if kind == "random characters":
        return "".join(source.choice(ANY) for _ in range(60)).encode()
    if kind == "mixed scripts":
        blocks = [block(source) for _ in range(3)] + [letters, string.punctuation]
        return " ".join(word(source, source.choice(blocks)) for _ in range(12)).encode()
    if kind == "combining marks":
        marks = source.sample(MARKS, 20)
        return "".join(source.choice(letters + "éüñ가각漢 ") + word(source, marks, 3) * source.randint(0, 1)
                       for _ in range(50)).encode()
    if kind == "Chinese, Japanese, Korean":
        return "".join(chr(source.choice([source.randrange(0x4e00, 0xa000), source.randrange(0xac00, 0xd7a4),
                                          source.randrange(0x3040, 0x3100), source.randrange(0xf900, 0xfb00),
                                          source.randrange(0x20000, 0x2a6e0), 0x20, 0x3002]))
                       for _ in range(40)).encode()
    if kind == "control and zero-width":
        return "".join(source.choice(letters + "  ,.'" + HIDDEN) for _ in range(80)).encode()
    if kind == "upper and lower case":
        return " ".join(word(source, CASED) for _ in range(10)).encode()
    if kind == "ASCII":
        return "".join(source.choice(letters * 3 + string.digits + string.punctuation + " " * 20 + "\t\r")
                       for _ in range(80)).encode()
    if kind == "long words":
        unit = source.choice(["a", "Bc", "é", "漢", "e\u0301"])
        return (unit * source.randint(1, 260) + " x" + "q" * source.randint(10, 40)).encode()
    # Bytes that are not UTF-8: of text that was cut or damaged, or nothing but chance.
    line = bytearray(generated(source.choice(["ASCII", "mixed scripts", "upper and lower case"]), source))
    for _ in range(source.randint(1, 12)):
        at = source.randrange(len(line) + 1)
        line[at:at + source.randint(0, 2)] = source.randbytes(source.randint(0, 3))
    return bytes(line).replace(b"\n", b"")


PUBLIC = [c for c in ASSIGNED if unicodedata.category(c) != "Co" and c != "\n"]
ANY = PUBLIC + [" "] * 20000 + [chr(0xe000 + i) for i in range(200)]
MARKS = [c for c in ASSIGNED if unicodedata.category(c) in ("Mn", "Mc", "Me")]
HIDDEN = "".join(c for c in ASSIGNED if unicodedata.category(c) in ("Cc", "Cf", "Zs", "Zl", "Zp") and c != "\n")
CASED = [c for c in ASSIGNED if unicodedata.category(c) in ("Lu", "Lt") or c in "σςı’'"] + list("ΣΣΣΟΑİ") * 20
KINDS = ["ASCII", "random characters", "mixed scripts", "combining marks", "Chinese, Japanese, Korean",
         "control and zero-width", "upper and lower case", "long words", "not UTF-8"]


def novels(data):
    with lzma.open(data / "text/novels.txt.xz") as file:
        return file.read()


def compare_ids(program, data, megabytes):
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        characters = all_characters_vocabulary(pathlib.Path(folder))
        for cased in (False, True):
            strict = Comparison(program, characters, cased)
            strict.compare_characters()
            real = Comparison(program, data / "bert/vocab.txt", cased)
            real.seen_otherwise = strict.seen_otherwise
            suffix = ", cased" * cased
            differing += len(real.compare("novels" + suffix, novels(data)[:megabytes * 10**6].split(b"\n")[:-1]))
            for kind in KINDS:
                source = random.Random(kind)
                lines, size = [], 0
                while size < megabytes * 10**6:
                    lines.append(generated(kind, source))
                    size += len(lines[-1])
                half = len(lines) // 2
                differing += len(strict.compare(f"{kind}, all pieces{suffix}", lines[:half]))
                differing += len(real.compare(f"{kind}, BERT's pieces{suffix}", lines[half:]))
    print(f"{differing} lines differ from Google's program")


def seconds_of_child(command, content, output):
    """CPU seconds of a whole program, start and output included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(output, "wb") as file:
        subprocess.run(command, input=content, stdout=file, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_of_theirs(tokenizer, lines):
    """CPU seconds of nothing but encoding, in the faster of its two ways."""
    begin = time.process_time()
    count = 0
    for i in range(0, len(lines), 1000):
        for encoded in tokenizer.encode_batch_fast(lines[i:i + 1000], add_special_tokens=False):
            count += len(encoded)
    return time.process_time() - begin, count


def compare_speed(program, data, rounds):
    vocab_file = data / "bert/vocab.txt"
    vocabulary = {piece: i for i, piece in enumerate(vocab_file.read_text().split("\n")[:-1])}
    theirs = hugging_face(vocabulary, cased=False)
    texts = {"English novels": novels(data)}
    for language, name in [("en", "English captions"), ("de", "German captions")]:
        texts[name] = gzip.open(data / f"multi30k/train.{language}.gz").read() * 20
    for name, content in texts.items():
        few = content[:content.rfind(b"\n", 0, 4 * 10**6) + 1]
        lines = few.decode().split("\n")[:-1]
        ours, other = [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(rounds):
                output = pathlib.Path(folder) / "ids"
                command = [program, "tokenize", "--vocab", str(vocab_file)]
                ours.append(len(content) / 1e6 / seconds_of_child(command, content, output))
                seconds, count = seconds_of_theirs(theirs, lines)
                other.append(len(few) / 1e6 / seconds)
            subprocess.run(command, input=few, stdout=open(output, "wb"), check=True)
            assert len(output.read_bytes().split()) == count
        ratio = statistics.median(a / b for a, b in zip(ours, other))
        print(f"{name}: hetseq {statistics.median(ours):.1f} MB/s ({min(ours):.1f} to {max(ours):.1f}), "
              f"tokenizers {statistics.median(other):.2f} MB/s ({min(other):.2f} to {max(other):.2f}), "
              f"{ratio:.0f} times", flush=True)


if __name__ == "__main__":
    part, program, data, megabytes, rounds = sys.argv[1:]
    if part == "ids":
        compare_ids(program, pathlib.Path(data), int(megabytes))
    else:
        compare_speed(program, pathlib.Path(data), int(rounds))
