"""Writes bert_pairs.json: statistics of BERT's pretraining data, by the published algorithm in plain Python.

The algorithm is that of Devlin et al. 2019 (section 3.1, appendix A.2) and of google-research's
create_pretraining_data.py: documents to pairs of segments, pairs cut to a length, tokens masked. It is written anew here.
Each statistic is one number of a whole run; the file has its mean and standard deviation over many runs.

  python3 tests/reference/bert_pairs.py HETSEQ DATA        writes the file; `HETSEQ tokenize` gives the ids of
                                                           DATA/text/novels-small.txt with DATA/bert/vocab.txt
  python3 tests/reference/bert_pairs.py --time TEXT VOCAB  measures one copy of TEXT in MB/s, with Google's tokenizer
                                                           (needs what google_bert.py needs)
"""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

CLS, SEP, MASK = 1, 2, 3  # of the generated text
SETTINGS = {
    "generated": {"seq_length": 64, "max_predictions": 7, "whole_words": False, "runs": 400},
    "whole words": {"seq_length": 64, "max_predictions": 7, "whole_words": True, "runs": 400},
    "novels": {"seq_length": 128, "max_predictions": 20, "whole_words": False, "runs": 60},
}
SHORT, MASKED = 0.1, 0.15
VOCABULARY = 1000
BINS = 8


class Vocabulary:
    def __init__(self, size, cls, sep, mask, continues):
        self.size, self.cls, self.sep, self.mask, self.continues = size, cls, sep, mask, continues


def cut(first, second, most, source):
    removed = 0
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        if source.random() < 0.5:
            del longer[0]
        else:
            longer.pop()
        removed += 1
    return removed


def pairs_of(documents, index, most, source):
    """(first, second, is random, document of the second, tokens cut) for each pair of one document."""
    document = documents[index]
    target = source.randint(2, most) if source.random() < SHORT else most
    chunk, length, i = [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            border = source.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first = [token for sentence in chunk[:border] for token in sentence]
            other = index
            is_random = len(chunk) == 1 or source.random() < 0.5
            if is_random:
                second = []
                for _ in range(10):
                    other = source.randint(0, len(documents) - 1)
                    if other != index:
                        break
                start = source.randint(0, len(documents[other]) - 1)
                for sentence in documents[other][start:]:
                    second.extend(sentence)
                    if len(second) >= target - len(first):
                        break
                i -= len(chunk) - border
            else:
                second = [token for sentence in chunk[border:] for token in sentence]
            removed = cut(first, second, most, source)
            yield first, second, is_random, other, removed
            chunk, length = [], 0
        i += 1


def masked(tokens, vocabulary, max_predictions, whole_words, source):
    """(tokens as shown, [(position, token, what was done)])."""
    words = []
    for i, token in enumerate(tokens):
        if token in (vocabulary.cls, vocabulary.sep):
            continue
        if whole_words and words and vocabulary.continues(token):
            words[-1].append(i)
        else:
            words.append([i])
    source.shuffle(words)
    shown, chosen = list(tokens), []
    wanted = min(max_predictions, max(1, int(round(len(tokens) * MASKED))))
    for word in words:
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(word) > wanted:
            continue
        for i in word:
            if source.random() < 0.8:
                shown[i], done = vocabulary.mask, "mask"
            elif source.random() < 0.5:
                done = "kept"
            else:
                shown[i], done = source.randint(0, vocabulary.size - 1), "replaced"
            chosen.append((i, tokens[i], done))
    return shown, sorted(chosen)


def rows_of(documents, vocabulary, setting, seed):
    """One copy of the documents."""
    source = random.Random(seed)
    rows = []
    for index in range(len(documents)):
        for first, second, is_random, other, removed in pairs_of(documents, index, setting["seq_length"] - 3, source):
            tokens = [vocabulary.cls, *first, vocabulary.sep, *second, vocabulary.sep]
            _, chosen = masked(tokens, vocabulary, setting["max_predictions"], setting["whole_words"], source)
            rows.append((tokens, first, second, is_random, index, other, removed, chosen))
    return rows


def one_run(documents, vocabulary, setting, seed):
    """{name: number} of one copy of the documents."""
    rows = rows_of(documents, vocabulary, setting, seed)
    drawn = [row for row in rows if row[3]]
    chosen = [choice for row in rows for choice in row[7]]
    count = len(rows)
    result = {
        "pairs": count,
        "tokens": sum(len(row[0]) for row in rows) / count,
        "first": sum(len(row[1]) for row in rows) / count,
        "second of random": sum(len(row[2]) for row in drawn) / len(drawn),
        "random next": len(drawn) / count,
        "own document": sum(row[4] == row[5] for row in drawn) / len(drawn),
        "source document": sum(row[5] / len(documents) for row in drawn) / len(drawn),
        "cut pairs": sum(row[6] > 0 for row in rows) / count,
        "cut tokens": sum(row[6] for row in rows) / count,
        "predictions": len(chosen) / count,
        "most predictions": sum(len(row[7]) == setting["max_predictions"] for row in rows) / count,
        "masked": sum(choice[2] == "mask" for choice in chosen) / len(chosen),
        "kept": sum(choice[2] == "kept" for choice in chosen) / len(chosen),
        "replaced": sum(choice[2] == "replaced" for choice in chosen) / len(chosen),
        "position": sum(i / len(row[0]) for row in rows for i, _, _ in row[7]) / len(chosen),
        "continuing": sum(vocabulary.continues(choice[1]) for choice in chosen) / len(chosen),
    }
    for bin in range(BINS):
        result[f"length {bin}"] = sum(
            (len(row[0]) - 1) * BINS // setting["seq_length"] == bin for row in rows) / count
    return result


def summary(documents, vocabulary, setting):
    runs = [one_run(documents, vocabulary, setting, seed) for seed in range(setting["runs"])]
    columns = {name: [run[name] for run in runs] for name in runs[0]}
    return {name: [statistics.mean(values), statistics.stdev(values)] for name, values in columns.items()}


def generated_lengths():
    """Tokens of the sentences of documents: many short ones, some longer than a pair."""
    source = random.Random(7)
    return [[min(150, 1 + int(source.expovariate(1 / 14))) for _ in range(1 + int(source.expovariate(1 / 9)))]
            for _ in range(60)]


def generated_documents(lengths):
    documents, token = [], 0
    for document in lengths:
        documents.append([])
        for length in document:
            documents[-1].append([4 + (token + i) % (VOCABULARY - 4) for i in range(length)])
            token += length
    return documents


def read_documents(lines, ids_of):
    documents = [[]]
    for line in lines:
        line = line.strip()
        if not line:
            documents.append([])
        elif ids := ids_of(line):
            documents[-1].append(ids)
    return [document for document in documents if document]


def novels(program, data):
    lines = [line.strip() for line in (data / "text/novels-small.txt").read_text().split("\n")]
    pieces = (data / "bert/vocab.txt").read_text().split("\n")[:-1]
    out = subprocess.run([program, "tokenize", "--vocab", data / "bert/vocab.txt"], input="\n".join(lines) + "\n",
                         capture_output=True, text=True, check=True).stdout.split("\n")
    ids = dict(zip(lines, ([int(i) for i in line.split()] for line in out)))
    special = [pieces.index(piece) for piece in ("[CLS]", "[SEP]", "[MASK]")]
    vocabulary = Vocabulary(len(pieces), *special, lambda token: pieces[token].startswith("##"))
    return read_documents(lines, ids.__getitem__), vocabulary


def main(program, data):
    lengths = generated_lengths()
    generated = generated_documents(lengths), Vocabulary(VOCABULARY, CLS, SEP, MASK, lambda token: token % 3 == 2)
    result = {"vocabulary": VOCABULARY, "short": SHORT, "masked": MASKED, "bins": BINS, "settings": {}}
    for name, setting in SETTINGS.items():
        documents, vocabulary = novels(program, pathlib.Path(data)) if name == "novels" else generated
        result["settings"][name] = setting | {"statistics": summary(documents, vocabulary, setting)}
    result["documents"] = lengths
    text = json.dumps(result, separators=(",", ":"))
    for before in ['"settings"', '"generated"', '"whole words"', '"novels"', '"documents"']:
        text = text.replace(before, "\n" + before)
    pathlib.Path(__file__).with_suffix(".json").write_text(text + "\n")


def measure(path, vocabulary_path):
    import google_bert
    pieces = pathlib.Path(vocabulary_path).read_text().split("\n")[:-1]
    text = pathlib.Path(path).read_text()
    tokenizer = google_bert.Tokenizer({piece: i for i, piece in enumerate(pieces)}, True)
    special = [pieces.index(piece) for piece in ("[CLS]", "[SEP]", "[MASK]")]
    vocabulary = Vocabulary(len(pieces), *special, lambda token: pieces[token].startswith("##"))
    begin = time.process_time()
    documents = read_documents(text.split("\n"), tokenizer.ids)
    tokenized = time.process_time()
    rows_of(documents, vocabulary, SETTINGS["novels"], 1)
    end = time.process_time()
    size = len(text.encode()) / 1e6
    print(f"{size:.3f} MB: tokens {tokenized - begin:.2f} s, pairs {end - tokenized:.2f} s; "
          f"{size / (end - begin):.4f} MB/s of text, {size / (end - tokenized):.4f} MB/s without the tokenizer")


if __name__ == "__main__":
    measure(*sys.argv[2:]) if sys.argv[1] == "--time" else main(*sys.argv[1:])
