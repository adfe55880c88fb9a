#include "hetseq/command_line/command_examples.hpp"

#include <map>
#include <utility>

namespace hetseq {

namespace {

using Examples = std::map<std::pair<std::string, std::string>, CommandExample>;

const Examples& examples() {
    static const Examples table{
        {{"train", ""},
         {"mpirun -np 4 hetseq train inputs/mnist.cfg --data 'data/train*.h5' --valid-data "
          "'data/t10k*.h5' --save-dir run",
          "docs/index.md"}},
        {{"evaluate", ""},
         {"mpirun -np 4 hetseq evaluate run --data 'data/t10k*.h5'", "docs/outputs.md"}},
        {{"predict", ""},
         {"hetseq predict run --data 'data/t10k*.h5' --output predictions.h5",
          "docs/predictions.md"}},
        {{"translate", ""},
         {"hetseq translate run --beam 5 < sentences > translations", "docs/translation.md"}},
        {{"check", ""},
         {"hetseq check inputs/bert-base.cfg --data 'shards/*.hdf5'", "docs/data.md"}},
        {{"checkpoint", "list"}, {"hetseq checkpoint list run", "docs/checkpoints.md"}},
        {{"checkpoint", "verify"}, {"hetseq checkpoint verify run", "docs/checkpoints.md"}},
        {{"checkpoint", "inspect"}, {"hetseq checkpoint inspect run", "docs/checkpoints.md"}},
        {{"checkpoint", "average"},
         {"hetseq checkpoint average run --last 5 --output mean.safetensors",
          "docs/checkpoints.md"}},
        {{"checkpoint", "export"},
         {"hetseq checkpoint export run --format hf folder", "docs/bert.md"}},
        {{"prepare", "images"},
         {"hetseq prepare images mnist/*-ubyte.gz --output data", "docs/data.md"}},
        {{"prepare", "translation"},
         {"mpirun -np 4 hetseq prepare translation --source-text train.en --target-text train.de "
          "--vocab-size 10000 --joined --output data",
          "docs/translation.md"}},
        {{"prepare", "numbers"},
         {"hetseq prepare numbers --samples 50000 --output data", "docs/translation.md"}},
        {{"prepare", "bert"},
         {"mpirun -np 4 hetseq prepare bert --input text.txt --vocab vocab.txt --output shards",
          "docs/bert.md"}},
        {{"prepare", "ner"},
         {"hetseq prepare ner --input train.tsv --valid-input valid.tsv --vocab vocab.txt "
          "--output data",
          "docs/finetuning.md"}},
        {{"prepare", "classification"},
         {"hetseq prepare classification --input train.tsv --valid-input valid.tsv --vocab "
          "vocab.txt --output data",
          "docs/finetuning.md"}},
        {{"prepare", "vocabulary"},
         {"hetseq prepare vocabulary --input text.txt --vocab-size 30000 --output vocab.txt",
          "docs/bert.md"}},
        {{"bench", "data"},
         {"mpirun -np 2 hetseq bench data inputs/mnist.cfg --data 'data/train*.h5'",
          "docs/performance.md"}},
        {{"bench", "step"},
         {"mpirun -np 2 hetseq bench step inputs/mnist.cfg --data 'data/train*.h5' --max-update "
          "100",
          "docs/performance.md"}},
        {{"bench", "reduce"}, {"mpirun -np 4 hetseq bench reduce", "docs/performance.md"}},
        {{"bench", "roofline"},
         {"hetseq bench roofline inputs/mnist.cfg --data 'data/train*.h5' --device v100",
          "docs/gpu.md"}},
        {{"plan", ""}, {"hetseq plan inputs/plans/bert.cfg", "docs/planning.md"}},
        {{"new", ""}, {"hetseq new my_task.py --kind language-model", "docs/python.md"}},
        {{"report", ""}, {"hetseq report run --output report.html", "docs/outputs.md"}},
        {{"bleu", ""}, {"hetseq bleu reference.de < translations", "docs/translation.md"}},
        {{"tokenize", ""}, {"hetseq tokenize --vocab vocab.txt < lines", "docs/bert.md"}},
        {{"info", ""}, {"mpirun -np 4 hetseq info", "docs/clusters.md"}},
        {{"document", "man"}, {"hetseq document man | man -l -", "docs/building.md"}},
        {{"document", "bash"}, {"source <(hetseq document bash)", "docs/building.md"}},
        {{"document", "zsh"}, {"source <(hetseq document zsh)", "docs/building.md"}},
        {{"document", "fish"}, {"hetseq document fish | source", "docs/building.md"}},
        {{"document", "options"}, {"hetseq document options > options.md", "docs/options.md"}},
    };
    return table;
}

}  // namespace

const CommandExample* find_example(const std::string& command, const std::string& word) {
    const auto found = examples().find({command, word});
    return found == examples().end() ? nullptr : &found->second;
}

}  // namespace hetseq
