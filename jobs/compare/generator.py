"""hetseq prepare bert beside google-research's create_pretraining_data.py (see generator.sh)."""

import functools
import json
import lzma
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import types
import zlib

import h5py
import numpy

REPOSITORY = pathlib.Path(__file__).parents[2]
sys.dont_write_bytecode = True  # nothing appears in Google's checkout
sys.path.insert(0, str(REPOSITORY / "tests/reference"))

import bert_pairs  # noqa: E402

LENGTH, PREDICTIONS, SHORT, MASKED = 128, 20, 0.1, 0.15
BINS = 8  # of lengths
FOLLOWING = 8  # this many tokens tell which document a segment is of
LIMIT = 4.5  # standard errors


def google_programs(folder):
    """create_pretraining_data.py and tokenization.py as they are, with stand-ins for TensorFlow 1 and six."""
    values = types.SimpleNamespace()
    tensorflow = types.ModuleType("tensorflow")
    tensorflow.flags = types.SimpleNamespace(FLAGS=values)
    for kind in ("string", "bool", "integer", "float"):
        setattr(tensorflow.flags, f"DEFINE_{kind}", lambda name, default, about: setattr(values, name, default))
    tensorflow.gfile = types.SimpleNamespace(
        GFile=lambda path, mode: open(path, mode, encoding="utf-8", newline="\n"))
    six = types.ModuleType("six")
    six.PY2, six.PY3 = False, True
    sys.modules.update(tensorflow=tensorflow, six=six)
    sys.path.insert(0, folder)
    import create_pretraining_data
    import tokenization
    return create_pretraining_data, tokenization


def google_instances(program, tokenizer, text, copies, seed):
    return program.create_training_instances([str(text)], tokenizer, LENGTH, copies, SHORT, MASKED, PREDICTIONS,
                                             random.Random(seed))


def time_google(folder, vocabulary, text, copies):
    """Prints the CPU seconds of all but reading the vocabulary and writing."""
    program, tokenization = google_programs(folder)
    tokenizer = tokenization.FullTokenizer(vocabulary)
    begin = time.process_time()
    google_instances(program, tokenizer, text, int(copies), 1)
    print(time.process_time() - begin)


def hetseq(program, vocabulary, text, copies, seed, output):
    """Its statistics, and the CPU seconds of the whole program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [program, "prepare", "bert", "--input", str(text), "--vocab", str(vocabulary), "--output", str(output),
               "--seq-length", str(LENGTH), "--max-predictions", str(PREDICTIONS), "--short-seq-prob", str(SHORT),
               "--masked-lm-prob", str(MASKED), "--dupe-factor", str(copies), "--seed", str(seed), "--json",
               "--overwrite"]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(result.stdout)["sets"]["train"], seconds


class Google:
    """Its program on one text. Each line is tokenized once for all runs."""

    def __init__(self, folder, vocabulary, text):
        self.program, tokenization = google_programs(folder)
        whole = tokenization.FullTokenizer(str(vocabulary))
        self.ids, self.text = whole.vocab, text
        self.tokenizer = types.SimpleNamespace(vocab=whole.vocab, tokenize=functools.cache(whole.tokenize))
        self.removed = []
        cut = self.program.truncate_seq_pair

        def counted(first, second, most, source):
            before = len(first) + len(second)
            cut(first, second, most, source)
            self.removed.append(before - len(first) - len(second))

        self.program.truncate_seq_pair = counted

    def run(self, copies, seed):
        self.removed.clear()
        instances = google_instances(self.program, self.tokenizer, self.text, copies, seed)
        rows = {name: numpy.zeros((len(instances), width), int) for name, width in [
            ("input_ids", LENGTH), ("input_mask", LENGTH), ("segment_ids", LENGTH),
            ("masked_lm_positions", PREDICTIONS), ("masked_lm_ids", PREDICTIONS)]}
        for i, instance in enumerate(instances):
            count, chosen = len(instance.tokens), len(instance.masked_lm_positions)
            rows["input_ids"][i, :count] = [self.ids[token] for token in instance.tokens]
            rows["input_mask"][i, :count] = 1
            rows["segment_ids"][i, :count] = instance.segment_ids
            rows["masked_lm_positions"][i, :chosen] = instance.masked_lm_positions
            rows["masked_lm_ids"][i, :chosen] = [self.ids[token] for token in instance.masked_lm_labels]
        rows["next_sentence_labels"] = numpy.array([instance.is_random_next for instance in instances], int)
        return rows, sum(count > 0 for count in self.removed), sum(self.removed)


class Hetseq:
    def __init__(self, program, vocabulary, text, folder):
        self.arguments, self.folder = (program, vocabulary, text), folder

    def run(self, copies, seed):
        counts, _ = hetseq(*self.arguments, copies, seed, self.folder)
        self.tokens = counts["tokens"]
        shard, = self.folder.glob("*.h5")
        with h5py.File(shard) as file:
            return {name: file[name][:].astype(int) for name in file}, counts["cut_pairs"], counts["cut_tokens"]


class Text:
    """The tokens of the text's documents, by Google's tokenizer."""

    def __init__(self, google):
        lines = google.text.read_text(encoding="utf-8").split("\n")
        self.documents = bert_pairs.read_documents(
            lines, lambda line: [google.ids[piece] for piece in google.tokenizer.tokenize(line)])
        self.cls, self.sep, self.mask = (google.ids[piece] for piece in ("[CLS]", "[SEP]", "[MASK]"))
        self.continues = numpy.array([piece.startswith("##") for piece in google.ids])
        self.of = {}
        for index, document in enumerate(self.documents):
            tokens = [token for sentence in document for token in sentence]
            for i in range(len(tokens) - FOLLOWING + 1):
                self.of.setdefault(tuple(tokens[i:i + FOLLOWING]), index)

    def tokens(self):
        return sum(len(sentence) for document in self.documents for sentence in document)

    def document_of(self, tokens, begin, count):
        """-1 of segments that are too short."""
        return numpy.array([self.of[tuple(row[i:i + FOLLOWING])] if enough >= FOLLOWING else -1
                            for row, i, enough in zip(tokens.tolist(), begin, count)])

    def statistics(self, rows, cut_pairs, cut_tokens):
        """The names are those of bert_pairs.py where it has the same."""
        shown, drawn = rows["input_ids"], rows["next_sentence_labels"] == 1
        count = rows["input_mask"].sum(1)
        second = rows["segment_ids"].sum(1) - 1
        first = count - second - 3
        row, at = numpy.nonzero(rows["masked_lm_ids"])
        place, label = rows["masked_lm_positions"][row, at], rows["masked_lm_ids"][row, at]
        tokens, all_rows = shown.copy(), numpy.arange(len(shown))
        tokens[row, place] = label
        # What has no distribution is the same in each row.
        assert (tokens[:, 0] == self.cls).all() and not tokens[rows["input_mask"] == 0].any()
        assert (tokens[all_rows, first + 1] == self.sep).all() and (tokens[all_rows, count - 1] == self.sep).all()
        assert (numpy.diff(rows["segment_ids"] + 1 - rows["input_mask"], axis=1) >= 0).all()
        assert len(set(zip(row, place))) == len(row) and (label != self.cls).all() and (label != self.sep).all()
        chosen = numpy.bincount(row, minlength=len(shown))
        assert (chosen == numpy.minimum(PREDICTIONS, numpy.maximum(1, numpy.round(count * MASKED)))).all()
        masked, kept = shown[row, place] == self.mask, shown[row, place] == label
        replaced = ~masked & ~kept
        from_first = self.document_of(tokens, numpy.ones_like(first), first)
        from_second = self.document_of(tokens, first + 2, second)
        known = drawn & (from_second >= 0)
        result = {
            "pairs": len(shown), "tokens": count.mean(), "padding": 1 - count.mean() / LENGTH,
            "tokens, standard deviation": count.std(), "first": first.mean(),
            "second of random": second[drawn].mean(), "second of actual": second[~drawn].mean(),
            "random next": drawn.mean(),
            "own document, by its words": (from_first == from_second)[known].mean(),
            "source document": from_second[known].mean() / len(self.documents),
            "next row of the same document": (from_first[1:] == from_first[:-1]).mean(),
            "cut pairs": cut_pairs / len(shown), "cut tokens": cut_tokens / len(shown),
            "predictions": chosen.mean(), "predictions a token": chosen.sum() / count.sum(),
            "most predictions": (chosen == PREDICTIONS).mean(),
            "masked": masked.mean(), "kept": kept.mean(), "replaced": replaced.mean(),
            "mean id of replacements": shown[row, place][replaced].mean(),
            "position": (place / count[row]).mean(), "continuing": self.continues[label].mean(),
        }
        for bin in range(BINS):
            result[f"length {bin}"] = ((count - 1) * BINS // LENGTH == bin).mean()
        return result


def in_errors(first, second):
    """Their difference, its standard error, and how many errors it is; each is (mean, standard deviation, runs)."""
    difference = second[0] - first[0]
    error = (first[1]**2 / first[2] + second[1]**2 / second[2])**0.5
    return difference, error, difference / error if error else 0.0 if not difference else float("inf")


def compare(folder, program, data, runs):
    vocabulary, path = data / "bert/vocab.txt", data / "text/novels-small.txt"
    ours_of_python = json.loads((REPOSITORY / "tests/reference/bert_pairs.json").read_text())["settings"]["novels"]
    google = Google(folder, vocabulary, path)
    text = Text(google)
    with tempfile.TemporaryDirectory() as shards:
        ours = Hetseq(program, vocabulary, path, pathlib.Path(shards))
        for copies in (1, 5):
            columns = [[], []]
            for seed in range(1, runs + 1):
                for column, made_by in zip(columns, (google, ours)):
                    column.append(text.statistics(*made_by.run(copies, seed)))
            if copies == 1:
                print(f"\n{path.name}: {len(text.documents)} documents; tokens: google-research {text.tokens()}, "
                      f"hetseq {ours.tokens}")
            print_distributions(columns, copies, runs, ours_of_python if copies == 1 else None)


def print_distributions(columns, copies, runs, ours_of_python):
    print(f"\nCopies of the text: {copies}. Means of {runs} runs each; the differences in standard errors (SE).\n")
    print("| statistic | google-research | hetseq | difference | SE | difference, SE |"
          + " bert_pairs.json to google-research, SE |" * bool(ours_of_python))
    print("|---|---|---|---|---|---|" + "---|" * bool(ours_of_python))
    beyond = 0
    for name in columns[0][0]:
        google, ours = ([statistics.mean(values), statistics.stdev(values), runs]
                        for values in ([run[name] for run in column] for column in columns))
        difference, error, ratio = in_errors(google, ours)
        beyond += abs(ratio) > LIMIT
        line = f"| {name} | {google[0]:.5g} | {ours[0]:.5g} | {difference:+.2g} | {error:.2g} | {ratio:+.1f} |"
        if ours_of_python:
            known = ours_of_python["statistics"].get(name)
            line += f" {in_errors(google, [*known, ours_of_python['runs']])[2]:+.1f} |" if known else " |"
        print(line)
    print(f"\n{beyond} of {len(columns[0][0])} statistics differ by more than {LIMIT} standard errors.", flush=True)


def first_documents(data, megabytes):
    with lzma.open(data / "text/novels.txt.xz") as file:
        text = file.read(megabytes * 10**6)
    return text[:text.rfind(b"\n\n") + 2]


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def seconds_of_gzip(folder):
    """CPU seconds of compressing the chunks of the shards again."""
    seconds = 0.0
    for path in folder.glob("*.h5"):
        with h5py.File(path) as file:
            for dataset in file.values():
                assert dataset.compression == "gzip" and not dataset.shuffle
                for chunk in dataset.iter_chunks():
                    content = dataset[chunk].tobytes()
                    begin = time.process_time()
                    zlib.compress(content, dataset.compression_opts)
                    seconds += time.process_time() - begin
    return seconds


def compare_speed(folder, program, data, megabytes, rounds):
    vocabulary, content = data / "bert/vocab.txt", first_documents(data, megabytes)
    size = len(content) / 1e6
    print(f"\nCPU seconds of {size:.2f} MB of novels on one core, in turns: median (range) of {rounds} rounds. "
          f"Python {sys.version.split()[0]}.\n"
          "hetseq's include its start, which is measured on a text of two lines, and gzip, which is measured by "
          "Python's.\n")
    print("| copies | google-research, no writer | hetseq | its start | its gzip | hetseq is so many times as fast "
          "| without its start | without start and gzip |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        text, lines, output = (pathlib.Path(work) / name for name in ("text.txt", "lines.txt", "shards"))
        text.write_bytes(content)
        lines.write_text("A line of text.\n\nAnother document.\n")
        for copies in (1, 5):
            google, ours, start, gzip = [], [], [], []
            for _ in range(rounds):
                google.append(float(subprocess.run(
                    [sys.executable, __file__, "--time", folder, str(vocabulary), str(text), str(copies)],
                    stdout=subprocess.PIPE, check=True).stdout))
                ours.append(hetseq(program, vocabulary, text, copies, 1, output)[1])
                gzip.append(seconds_of_gzip(output))
                start.append(hetseq(program, vocabulary, lines, copies, 1, output)[1])
            times = " | ".join(spread(column, 2) for column in (google, ours, start, gzip))
            both = [first + second for first, second in zip(start, gzip)]
            ratios = " | ".join(
                spread([theirs / (whole - part) for theirs, whole, part in zip(google, ours, without)], 1)
                for without in ([0] * rounds, start, both))
            print(f"| {copies} | {times} | {ratios} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--time":
        time_google(*sys.argv[2:])
    else:
        part, folder, program, data, *numbers = sys.argv[1:]
        function = compare if part == "distributions" else compare_speed
        function(folder, program, pathlib.Path(data), *map(int, numbers))
