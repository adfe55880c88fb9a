"""Tries the hetseq commands that the texts of the repository show, each as far as a test can: on one rank, with generated
data in place of what it names, small models, and `--dry-run`. Prints those that fail.

usage: shown_commands.py HETSEQ WORK IDX MNIST RUN NUMBERS TAGGED CLASSIFIED BERT SMALL TEXT...
  WORK         folder to write in, which holds what `hetseq NAME --help` says in help-NAME.txt
  IDX, MNIST   folders of idx files and of shards made of them; RUN a finished run on them; NUMBERS a folder of
               prepare numbers; BERT one of prepare bert, SMALL a configuration of a small BERT for it; TAGGED one of
               prepare ner, CLASSIFIED one of prepare classification
"""
import glob
import os
import re
import shlex
import subprocess
import sys

hetseq, work, idx, mnist, run, numbers, tagged, classified, bert, small_bert = sys.argv[1:11]
texts = sys.argv[11:]
data = {"mnist": (f"{mnist}/train*.h5", f"{mnist}/t10k*.h5"), "bert": (f"{bert}/train*.h5", f"{bert}/train*.h5"),
        "translation": (f"{numbers}/train*.h5", f"{numbers}/valid*.h5"),
        "token-classification": (f"{tagged}/train*.h5", f"{tagged}/train*.h5"),
        "sequence-classification": (f"{classified}/train*.h5", f"{classified}/train*.h5")}
of_unequal_rows = ("translation", "token-classification", "sequence-classification")
translations = ("numbers", "multi30k", "transformer")  # in the names of configurations
made = 0  # folders and files that commands write


def help_of(name):
    return open(f"{work}/help-{name}.txt").read()


names = re.findall(r"^  ([a-z]+)  ", help_of(""), re.M)
known_options = {name: set(re.findall(r"--[a-z][a-z-]*", help_of(name))) for name in names}
shown = re.compile(r"(?:^|[\s(/\"'`])hetseq +((?:%s|--version|--help)\b(?![:,]).*)" % "|".join(names))


def candidates(path):
    """The parts of a text that may hold a command."""
    text = re.sub(r"\\\n[#\s]*", " ", open(path).read())
    if path.endswith(".md"):
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?m)^    .*", "", text))
        return spans + [line.split("  #")[0] for line in re.findall(r"(?m)^    (.*)", text)]
    return text.split("\n")


def words_of(command):
    """Up to what ends it in a shell, without parts in brackets and what a script would fill in."""
    command = re.split(r" 2>&1| \|| < |[;>`]|\)$|\) ", command)[0].replace("\\$", "$").rstrip(".,")
    while re.search(r"\[[^][]*\]", command):
        command = re.sub(r"\[[^][]*\]", " ", command)
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.replace('"', "").split()
    return [word.removesuffix("...") for word in words if word != "..." and not word.startswith("${")]


def new_place(suffix=""):
    global made
    made += 1
    return os.path.join(work, f"made-{made}{suffix}")


def write_file(text):
    path = new_place(".txt")
    with open(path, "w") as file:
        file.write(text)
    return path


def take(words, option, value=None):
    """Replaces an option's value, or takes it away where None; whether it was there."""
    if option not in words:
        return False
    at = words.index(option)
    words[at:at + 2] = [] if value is None else [option, value]
    return True


def task_of(words):
    if "--task" in words:
        task = words[words.index("--task") + 1]
        return task if task in data else "mnist"
    configs = [word for word in words if word.endswith(".cfg")]
    if any(name in word for word in configs for name in translations):
        return "translation"
    return "bert" if any("bert" in word for word in configs) else "mnist"


def training_words(name, words):
    task = task_of(words)
    words = [word.replace("$HETSEQ_INPUTS/", "inputs/").replace("CONFIG.cfg", "inputs/mnist.cfg") for word in words]
    words = [f"inputs/{word}" if os.path.exists(f"inputs/{word}") else re.sub("^RUN/", run + "/", word) for word in words]
    has_config = any(word.endswith(".cfg") for word in words)
    if not take(words, "--task", task) and not has_config:
        words += ["--task", task]
    if not take(words, "--data", data[task][0]):
        words += ["--data", data[task][0]]
    take(words, "--valid-data", data[task][1])
    take(words, "--save-dir", new_place())
    take(words, "--restore-file", run)
    take(words, "--init-model")
    take(words, "--batch-size", "4")
    for option in ("--balance", "--threads"):
        take(words, option)
    if "cuda" in words:  # there may be none here
        take(words, "--device", "cpu")
    for option, here in (("--precision", "fp32"), ("--recompute", "none")):  # of other devices
        if option in words and "=" in words[words.index(option) + 1]:
            words[words.index(option) + 1] += f",0-9={here}"
    if task in of_unequal_rows:
        if "--batch-size" not in words and not take(words, "--batch-tokens", "300"):
            words += ["--batch-tokens", "300"]
        take(words, "--warmup-updates", "1")  # the data are few
        take(words, "--max-tokens")
        words += ["--max-tokens", "300"]
    trains = name != "check" and words[:1] != ["data"]  # neither check nor bench data
    if trains and task not in of_unequal_rows and not {"--batch-size", "--restore-file"} & set(words):
        words += ["--batch-size", "4"]  # a recipe may say 65536
    may_cap = trains and task not in of_unequal_rows
    if may_cap and not take(words, "--max-sentences", "2") and "--restore-file" not in words:
        words += ["--max-sentences", "2"]
    size = small_bert if task == "bert" else "tiny"
    if task != "mnist" and not take(words, "--model-config", size):
        words += ["--model-config", size]
    if name == "train":
        if not has_config and "--max-update" not in words:
            words += ["--max-update", "100" if "--warmup-updates" in words else "3"]
        take(words, "--stop-after")
        words += ["--dry-run", "--cache-dir", "none", "--stop-after", "1"]  # an update tells enough
    if name == "bench" and trains and not take(words, "--max-update", "3"):
        words += ["--max-update", "3"]
    return words


def write_text(path):
    with open(path, "w") as text:
        for line in range(400):
            print(*(("blue", "house", "sees", "small")[line // 4**place % 4] for place in range(4)), file=text)
    return path


def prepare_arguments(words):
    form = words[0] if words else ""
    if form == "images":
        return [["images", *sorted(glob.glob(f"{idx}/*")), "--output", new_place()]]
    if form == "numbers":
        take(words, "--output")
        return [[*words, "--output", new_place(), "--samples", "3000"]]
    if form == "bert":
        take(words, "--vocab", write_file("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwords\n"))
        for option in ("--input", "--valid-input"):
            take(words, option, write_file("some words of a text\nand others\n\nanother text\n"))
        return [words] if "--input" in words and take(words, "--output", new_place()) else []
    if form in ("ner", "classification"):
        take(words, "--vocab", write_file("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwords\n"))
        text = "some\tO\nwords\tB-Word\n" if form == "ner" else "sentence\tlabel\nsome words\t1\nwords\t0\n"
        for option in ("--input", "--valid-input", "--test-input"):
            take(words, option, write_file(text))
        take(words, "--labels")
        return [words] if "--input" in words and take(words, "--output", new_place()) else []
    if form != "translation":
        return []
    for option in ("--source-text", "--target-text", "--valid-source-text", "--valid-target-text"):
        take(words, option, write_text(new_place(".txt")))
    take(words, "--output", new_place())
    if not take(words, "--vocab-size", "24"):
        words += ["--vocab-size", "24"]
    given = all(option in words for option in ("--source-text", "--target-text", "--output"))
    return [words] if given and "--source-vocabulary" not in words else []


def arguments(name, words):
    """What to try in place of what is shown: lists of words; none where nothing can be."""
    if name == "new" and words:
        return [[new_place(".py"), *words[1:]]]
    if any(re.search(r"\.py(:\w+)?$", word) for word in words):
        return []  # a task of the reader's own
    if name in ("train", "check"):
        return [training_words(name, words)] if words else []
    if name == "bench":
        return [training_words(name, words)] if words and words[0] in ("data", "step") else []
    if name == "evaluate":
        if task_of(words) != "mnist":
            return []  # there is no model of it
        take(words, "--init-model", f"{run}/model.safetensors")
        return [["--task", "mnist", "--data", data["mnist"][1], *words]] if "--init-model" in words else [[run]]
    if name == "predict":
        return [[run, "--data", data["mnist"][1], "--output", new_place(".h5")]]
    if name == "tokenize":
        take(words, "--vocab", write_file("[UNK]\n"))
        return [words] if words else []
    if words[:1] == ["vocabulary"]:
        take(words, "--input", write_file("some words of a text\n"))
        return [words] if take(words, "--output", new_place(".txt")) else []
    if name == "prepare":
        return prepare_arguments(words)
    if words[:1] == ["export"]:
        return [["export", "tests/reference/pretrained_bert", *words[2:-1], new_place()]]
    if name == "checkpoint" and len(words) > 1:
        take(words, "--output", new_place(".safetensors"))
        which = words[0].split("|")
        return [[each, run, *words[2:], *(["--output", new_place(".safetensors")] if each == "average" and
                "--output" not in words else [])] for each in which]
    if name == "plan" and words:
        return [["inputs/plans/bert.cfg" if words[0] == "CLUSTER.cfg" else words[0]]]
    if name == "report" and words:
        return [[run, "--output", new_place(".html")]]
    if name == "bleu" and words:
        words = words[:words.index("<")] if "<" in words else words
        options = words[next((i for i, word in enumerate(words) if word.startswith("--")), len(words)):]
        take(options, "--input")
        return [["README.md", *options, "--input", "README.md"]]
    if name == "document" and words:
        return [[each] for each in words[0].split("|")]
    return [words] if name == "info" else []


def what_it_says(words):
    """Its words before the options, and its options with their values, in any order."""
    words = [re.sub(r"made-\d+", "made", word) for word in words]
    starts = [i for i, word in enumerate(words) if word.startswith("--")] + [len(words)]
    parts = [words[:starts[0]]] + [words[begin:end] for begin, end in zip(starts, starts[1:])]
    return frozenset(" ".join(part) for part in parts)


def main():
    found, tried, failed = set(), {}, 0
    for path in texts:
        for part in candidates(path):
            for command in shown.findall(part):
                words = words_of(command)
                name = words.pop(0)
                found.add((path, name, tuple(words)))
                if name.startswith("--"):
                    continue
                for option in (word for word in words if word.startswith("--")):
                    if option.split("=")[0] not in known_options[name]:
                        print(f"{path}: hetseq {name} has no {option}: {command}")
                        failed += 1
                for attempt in arguments(name, words):
                    tried.setdefault((name, what_it_says(attempt)), (path, command, [name, *attempt]))
    # Another command may say all that this one says, and more.
    tried = {key: value for key, value in tried.items()
             if not any(key[0] == other[0] and key[1] < other[1] for other in tried)}
    for path, command, words in tried.values():
        result = subprocess.run([hetseq, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            print(f"{path} shows: hetseq {command}\ntried: hetseq {shlex.join(words)}\n{result.stdout}{result.stderr}")
            failed += 1
    print(f"{len(found)} commands are shown, {len(tried)} unlike ones were tried, {failed} failed")
    sys.exit(failed > 0 or len(found) < 40 or len(tried) < 15)


main()
