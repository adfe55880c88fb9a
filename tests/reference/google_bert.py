"""tokenization.py of google-research's BERT as a module, without TensorFlow, of which it only opens files.

Needs: pip install --no-deps bert-tensorflow==1.0.4 six
"""

import importlib.util
import sys
import types


def load():
    """The module `bert.tokenization`."""
    flags = types.ModuleType("absl.flags")
    flags.FLAGS = types.SimpleNamespace(preserve_unused_tokens=False)
    flags.DEFINE_bool = lambda *arguments: None
    opening = types.ModuleType("tensorflow.compat.v1")
    opening.gfile = types.SimpleNamespace(GFile=open)
    stand_ins = {"absl": types.ModuleType("absl"), "absl.flags": flags,
                 "tensorflow": types.ModuleType("tensorflow"),
                 "tensorflow.compat": types.ModuleType("tensorflow.compat"), "tensorflow.compat.v1": opening}
    stand_ins["absl"].flags = flags
    stand_ins["tensorflow.compat"].v1 = opening
    folder = importlib.util.find_spec("bert").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location("bert_tokenization", f"{folder}/tokenization.py")
    module = importlib.util.module_from_spec(spec)
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        spec.loader.exec_module(module)
    finally:
        for name, former in before.items():
            if former is None:
                del sys.modules[name]
            else:
                sys.modules[name] = former
    return module


class Tokenizer:
    """Google's FullTokenizer for a vocabulary {piece: id} in memory."""

    def __init__(self, vocabulary, lower_case):
        module = load()
        self.vocabulary = vocabulary
        self.basic = module.BasicTokenizer(do_lower_case=lower_case)
        self.pieces = module.WordpieceTokenizer(vocabulary)

    def words(self, text):
        return self.basic.tokenize(text)

    def ids(self, text):
        return [self.vocabulary[piece] for word in self.words(text) for piece in self.pieces.tokenize(word)]
