#include "prepare_description.hpp"

namespace hetseq {

CommandOption cased_option() {
    return {"cased", "", "", "keep case and accents, as cased models need"};
}

CommandOption accents_option() {
    return {"accents",
            "keep|strip",
            "",
            "what becomes of accents; by default they go unless --cased is given"};
}

namespace {

using Count = CommandArgument::Count;
using Need = CommandOption::Need;

CommandOption output_folder() {
    return {"output", "DIR", "", "folder to write the shards to", Need::required};
}

CommandOption overwrite_option() {
    return {"overwrite", "", "", "replace all shards that the folder holds, of whatever set"};
}

CommandForm prepare_images_form() {
    return {
        .word = "images",
        .help = "convert IDX files of images and labels, the format of MNIST",
        .arguments =
            {{"IDX",
              Count::many,
              "files of images and as many files of labels, both in the same order; plain or gzip"}},
        .own_options = {output_folder(),
                        {"shards", "N", "1", "number of shards made from each pair of files"},
                        overwrite_option()}};
}

CommandForm prepare_translation_form() {
    return {
        .word = "translation",
        .help = "encode two text files, a sentence in each line, as pairs of ids",
        .own_options = {
            {"source-text",
             "FILE[,FILE...]",
             "",
             "text to translate from; plain or gzip",
             Need::required},
            {"target-text",
             "FILE[,FILE...]",
             "",
             "its translation, line by line in as many files",
             Need::required},
            output_folder(),
            {"valid-source-text", "FILE[,FILE...]", "", "the same for validation"},
            {"valid-target-text", "FILE[,FILE...]", "", "the same for validation"},
            {"vocab-size",
             "N",
             "0",
             "number of ids of a vocabulary that is trained; a dictionary takes all words with 0"},
            {"joined", "", "", "train one vocabulary for both sides"},
            {"model-type",
             "TYPE",
             "bpe",
             "bpe or unigram (SentencePiece), or dictionary: words between blanks, for text that is "
             "segmented already"},
            {"source-vocabulary",
             "FILE",
             "",
             "take this SentencePiece model or dictionary instead of training one; with --joined for "
             "both sides"},
            {"target-vocabulary", "FILE", "", "the same for the target"},
            {"normalization",
             "RULE",
             "nmt_nfkc",
             "SentencePiece's rule: nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity"},
            {"character-coverage",
             "SHARE",
             "1",
             "share of the text's characters that a SentencePiece model has"},
            {"max-sentence-length",
             "N",
             "4192",
             "bytes: a SentencePiece model is not trained on longer lines; a warning counts them"},
            {"sample",
             "N",
             "1000000",
             "lines that a SentencePiece model is trained on, drawn by --seed; 0: all"},
            {"seed", "N", "1", "seed of what is drawn"},
            {"max-length", "N", "0", "drop pairs with more tokens in a side; 0: any length"},
            {"max-ratio",
             "RATIO",
             "0",
             "drop pairs whose longer side has more than this many times the tokens of the other; 0: "
             "any"},
            {"shards", "N", "0", "number of shards of each set; 0: one for each 100,000 pairs"},
            overwrite_option()}};
}

CommandForm prepare_numbers_form() {
    return {.word = "numbers",
            .help = "make a small translation task: names of numbers, English to German",
            .own_options = {
                output_folder(),
                {"samples", "N", "100000", "pairs to train on"},
                {"seed", "N", "1", "seed of what is drawn"},
                {"overwrite", "", "", "replace the texts, and all shards that the folder holds"}}};
}

CommandForm prepare_vocabulary_form() {
    return {.word = "vocabulary",
            .help = "train a vocabulary of WordPiece on lines of text, for BERT",
            .own_options = {
                {"input", "FILE[,FILE...]", "", "the text; plain or gzip", Need::required},
                {"output", "FILE", "", "the file to write, a piece a line", Need::required},
                {"vocab-size", "N", "30000", "number of pieces, if the text has so many"},
                cased_option(),
                accents_option(),
                {"min-count", "N", "2", "join two pieces that stand together so often or more"},
                {"max-characters", "N", "1000", "number of characters that have pieces"},
                {"overwrite", "", "", "replace the file where it exists"}}};
}

CommandForm prepare_bert_form() {
    return {
        .word = "bert",
        .help = "make BERT's pretraining data from text: pairs of sentences, masked",
        .own_options =
            {{"input",
              "FILE[,FILE...]",
              "",
              "the text, plain or gzip: a sentence a line, a blank line between documents",
              Need::required},
             {"vocab", "FILE", "", "the vocabulary, a piece a line", Need::required},
             output_folder(),
             {"valid-input", "FILE[,FILE...]", "", "the same for validation"},
             cased_option(),
             accents_option(),
             {"seq-length", "N", "128", "tokens of a pair, [CLS] and [SEP] included"},
             {"max-predictions", "N", "20", "tokens to predict in a pair at most"},
             {"dupe-factor", "N", "5", "copies of the text, each with other pairs and masks"},
             {"short-seq-prob", "P", "0.1", "share of the documents whose pairs are shorter"},
             {"masked-lm-prob", "P", "0.15", "share of a pair's tokens to predict"},
             {"whole-word-masking", "", "", "mask all pieces of a word or none"},
             {"static-masks",
              "on|off",
              "on",
              "off: keep pairs unmasked and without padding; training masks them anew in each epoch"},
             {"seed", "N", "1", "seed of what is drawn"},
             {"shards", "N", "0", "number of shards of each set; 0: one for each 16 MiB of text"},
             overwrite_option()},
        .options = {"json"}};
}

CommandForm prepare_ner_form() {
    return {
        .word = "ner",
        .help = "make data for --task token-classification from words with tags; one rank does it",
        .own_options = {
            {"input",
             "FILE[,FILE...]",
             "",
             "the text, plain or gzip: a word and its IOB2 tag a line, a blank line between "
             "sentences",
             Need::required},
            {"vocab", "FILE", "", "the vocabulary, a piece a line", Need::required},
            output_folder(),
            {"valid-input", "FILE[,FILE...]", "", "the same for validation"},
            {"test-input", "FILE[,FILE...]", "", "the same for a last test"},
            cased_option(),
            accents_option(),
            {"labels",
             "FILE",
             "",
             "the tags, one a line, as labels.txt of data or a run; without it those of the text"},
            {"word-column", "N", "1", "the column of the words, from 1"},
            {"tag-column", "N", "0", "the column of the tags, from 1; 0: the last"},
            {"max-length",
             "N",
             "512",
             "pieces of a sentence, [CLS] and [SEP] included; a longer one is cut behind a word"},
            {"shards", "N", "1", "number of shards of each set"},
            overwrite_option()}};
}

CommandForm prepare_classification_form() {
    return {
        .word = "classification",
        .help =
            "make data for --task sequence-classification from a table of texts with labels; one "
            "rank does it",
        .own_options = {
            {"input",
             "FILE[,FILE...]",
             "",
             "the tables, plain or gzip: columns between tabs, or CSV",
             Need::required},
            {"vocab", "FILE", "", "the vocabulary, a piece a line", Need::required},
            output_folder(),
            {"valid-input", "FILE[,FILE...]", "", "the same for validation"},
            {"test-input", "FILE[,FILE...]", "", "the same for a last test"},
            {"text-column",
             "COLUMN",
             "1",
             "the column of the texts: its number, from 1, or its name in the first row"},
            {"pair-column", "COLUMN", "", "the column of second texts, where two are compared"},
            {"label-column", "COLUMN", "0", "the column of the labels; 0: the last"},
            {"header", "", "", "the first row holds names, though no column is given by name"},
            {"format",
             "auto|tsv|csv",
             "auto",
             "csv takes commas and quotes; auto: csv for files named .csv or .csv.gz"},
            {"numbers", "", "", "labels are numbers to predict (regression)"},
            {"labels",
             "FILE",
             "",
             "the labels, one a line, as labels.txt of data or a run; without it those of the text"},
            cased_option(),
            accents_option(),
            {"max-length",
             "N",
             "512",
             "pieces of a row, [CLS] and [SEP] included; of a longer one the longer text is cut"},
            {"shards", "N", "1", "number of shards of each set"},
            overwrite_option()}};
}

}  // namespace

CommandDescription prepare_description() {
    return {"prepare",
            "convert data to HDF5 shards, or train a vocabulary",
            {prepare_images_form(),
             prepare_translation_form(),
             prepare_numbers_form(),
             prepare_bert_form(),
             prepare_ner_form(),
             prepare_classification_form(),
             prepare_vocabulary_form()}};
}

}  // namespace hetseq
