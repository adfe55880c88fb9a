#include "prepare_description.hpp"

#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/prepare/prepare_classified.hpp"
#include "hetseq/prepare/prepare_images.hpp"
#include "hetseq/prepare/prepare_numbers.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"
#include "hetseq/prepare/prepare_translation.hpp"
#include "hetseq/tools/tool_table.hpp"

#include "prepare_bert.hpp"
#include "prepare_vocabulary.hpp"

namespace hetseq {

CommandDescription prepare_description() {
    const CommandArgument images{
        "IDX",
        CommandArgument::Count::many,
        "files of images and as many files of labels, both in the same order; plain or gzip"};
    return {"prepare",
            summary_of("prepare"),
            {{.word = "images",
              .help = "convert IDX files of images and labels, the format of MNIST",
              .arguments = {images},
              .own_options = prepare_images_options().table()},
             {.word = "translation",
              .help = "encode two text files, a sentence in each line, as pairs of ids",
              .own_options = prepare_translation_options().table()},
             {.word = "numbers",
              .help = "make a small translation task: names of numbers, English to German",
              .own_options = prepare_numbers_options().table()},
             {.word = "bert",
              .help = "make BERT's pretraining data from text: pairs of sentences, masked",
              .own_options = bert_preparation_options().table()},
             {.word = "ner",
              .help = "make data for --task token-classification from words with tags; one rank "
                      "does it",
              .own_options = prepare_tagged_options().table()},
             {.word = "classification",
              .help = "make data for --task sequence-classification from a table of texts with "
                      "labels; one rank does it",
              .own_options = prepare_classified_options().table()},
             {.word = "vocabulary",
              .help = "train a vocabulary of WordPiece on lines of text, for BERT",
              .own_options = vocabulary_options().table()}}};
}

}  // namespace hetseq
