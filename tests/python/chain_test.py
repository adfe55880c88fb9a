"""Modules as chains of units (Task.chain): stages compute what the whole module computes."""

import contextlib
import gc
import unittest
import unittest.mock
from types import SimpleNamespace

from harness import need

need("torch", "transformers")

import torch
import transformers as tf
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import hetseq
from hetseq import bridge
from hetseq.chain_blocks import made_shape
from hetseq.task import TaskError
from hetseq.whole import KeptValues, holds_part
from staged import Staged

IDS = {"ids": hetseq.Field(torch.int64, (12,)), "mask": hetseq.Field(torch.int64, (12,))}
IMAGES = {"image": hetseq.Field(torch.float32, (3, 16, 16)), "label": hetseq.Field(torch.int64)}
SMALL = dict(vocab_size=50, hidden_size=16, num_hidden_layers=4, num_attention_heads=4, intermediate_size=32)
BERT = dict(SMALL, max_position_embeddings=32)


def texts(begin, count):
    draw = torch.Generator().manual_seed(7)
    ids = torch.randint(5, 50, (64, 12), generator=draw)
    mask = (torch.arange(12) < torch.randint(4, 13, (64, 1), generator=draw)).long()
    mask[0] = 1
    rows = slice(begin, begin + count)
    return torch.arange(begin, begin + count), {"ids": (ids * mask)[rows], "mask": mask[rows]}


def images(begin, count):
    draw = torch.Generator().manual_seed(8)
    image, label = torch.randn(64, 3, 16, 16, generator=draw), torch.randint(0, 5, (64,), generator=draw)
    rows = slice(begin, begin + count)
    return torch.arange(begin, begin + count), {"image": image[rows], "label": label[rows]}


class Texts(hetseq.Task):
    """A language model, on rows of unlike lengths."""

    fields, losses, metrics = IDS, ["nll"], ["accuracy"]
    shift = 1
    batch = staticmethod(texts)

    def __init__(self, make=None, chain=(), **settings):
        self.make, self.chain = make, chain
        for name, value in settings.items():
            setattr(self, name, value)

    def model(self, config):
        return self.make()

    def forward(self, model, batch):
        logits = model(input_ids=batch["ids"], attention_mask=batch["mask"]).logits
        ids, keep = batch["ids"][:, self.shift:], batch["mask"][:, self.shift:].bool()
        logits = logits[:, :logits.shape[1] - self.shift][keep]
        sums = {"nll": F.cross_entropy(logits, ids[keep], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (logits.argmax(-1) == ids[keep]).sum()
        return sums


class Masked(Texts):
    shift = 0


class Images(Texts):
    fields, losses, metrics = IMAGES, ["loss"], []
    batch = staticmethod(images)

    def forward(self, model, batch):
        made = model(batch["image"])
        return F.cross_entropy(getattr(made, "logits", made), batch["label"], reduction="sum")


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride, norm):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), norm(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), norm(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), norm(8), nn.ReLU(inplace=True))
        self.layer1 = nn.Sequential(Residual(8, 8, 1, norm), Residual(8, 8, 1, norm))
        self.layer2 = nn.Sequential(Residual(8, 12, 2, norm))
        self.layer3 = nn.Sequential(Residual(12, 16, 2, norm))
        self.layer4 = nn.Sequential(Residual(16, 20, 2, norm))
        self.drop, self.fc = nn.Dropout(0.2), nn.Linear(20, 5)

    def forward(self, x):
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.drop(x.mean((2, 3))))


class SharedDropout(nn.Module):
    """One dropout module in front, in the blocks and behind them, whose calls are counted; noise in the blocks."""

    class Block(nn.Module):
        def __init__(self, drop):
            super().__init__()
            self.drop, self.linear = drop, nn.Linear(16, 16)

        def forward(self, hidden_states, scale=None):
            x = self.drop(torch.tanh(self.linear(hidden_states)))
            return (hidden_states + self.drop(x) * scale + 0.1 * torch.randn_like(x),)

    def __init__(self):
        super().__init__()
        self.table, self.drop = nn.Embedding(50, 16), nn.Dropout(0.3)
        self.blocks = nn.ModuleList([self.Block(self.drop) for _ in range(4)])

    def forward(self, ids):
        x = self.drop(self.table(ids))
        for number, block in enumerate(self.blocks):
            x = block(hidden_states=x, scale=torch.full((), 0.5 + number))[0]
        return F.linear(self.drop(x), self.table.weight) + F.dropout(x, 0.1, self.training).mean()


class Encoder(nn.Module):
    """torch's own, which in evaluation takes rows of unlike length for a nested tensor where it may."""

    def __init__(self, nested):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.1, batch_first=True)
        self.table, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)
        self.encoder = nn.TransformerEncoder(layer, 3, nn.LayerNorm(16), enable_nested_tensor=nested)

    def forward(self, input_ids, attention_mask):
        made = self.encoder(self.table(input_ids), src_key_padding_mask=attention_mask == 0)
        return SimpleNamespace(logits=F.pad(self.head(made), (0, 0, 0, input_ids.shape[1] - made.shape[1])))


class Ids(Texts):
    metrics = []

    def forward(self, model, batch):
        return F.cross_entropy(model(batch["ids"]).flatten(0, 1), batch["ids"].flatten(), reduction="sum")


def sequential():
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 16), nn.ReLU(True),
                         nn.Linear(16, 5))


GPT2 = dict(vocab_size=50, n_positions=16, n_embd=16, n_layer=4, n_head=4)
TASKS = {
    "gpt2": lambda: Texts(lambda: tf.GPT2LMHeadModel(tf.GPT2Config(**GPT2)), "transformer.h", recompute=["transformer.h.*"]),
    "llama": lambda: Texts(lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**SMALL, num_key_value_heads=2, attention_dropout=0.1)),
                           "model.layers", recompute=["model.layers.*"]),
    "qwen2": lambda: Texts(lambda: tf.Qwen2ForCausalLM(tf.Qwen2Config(**SMALL, num_key_value_heads=2, attention_dropout=0.1,
                                                                      tie_word_embeddings=True)), "model.layers"),
    "bert": lambda: Masked(lambda: tf.BertForMaskedLM(tf.BertConfig(**BERT)), "bert.encoder.layer",
                           recompute=["bert.encoder.layer.*"]),
    "roberta": lambda: Masked(lambda: tf.RobertaForMaskedLM(tf.RobertaConfig(**BERT)), ["roberta.encoder.layer"]),
    "distilbert": lambda: Masked(lambda: tf.DistilBertForMaskedLM(tf.DistilBertConfig(
        vocab_size=50, dim=16, n_layers=4, n_heads=4, hidden_dim=32, max_position_embeddings=32)), "distilbert.transformer.layer"),
    "vit": lambda: Images(lambda: tf.ViTForImageClassification(tf.ViTConfig(
        image_size=16, patch_size=4, hidden_size=16, num_hidden_layers=4, num_attention_heads=4, intermediate_size=32,
        num_labels=5, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)), vit_list()),
    "resnet": lambda: Images(lambda: ResNet(lambda channels: nn.GroupNorm(2, channels)),
                             ["layer1", "layer2", "layer3", "layer4"], recompute=["layer1.*", "layer3.*"]),
    "torch": lambda: Masked(lambda: Encoder(False), "encoder.layers"),
    "sequential": lambda: Images(sequential, "."),
    "shared": lambda: Ids(SharedDropout, "blocks", recompute=["blocks.*"]),
}


def vit_list():
    model = tf.ViTForImageClassification(tf.ViTConfig(hidden_size=16, num_hidden_layers=3, num_attention_heads=4,
                                                      intermediate_size=32))
    return next(name for name, part in model.named_modules() if isinstance(part, nn.ModuleList) and len(part) == 3)


def cuts_of(units):
    """Into two stages in every way, and into three: the front alone, the end alone, and both."""
    return [*([border] for border in range(1, units)), [1, units - 1], [2, units - 2], [1, 3], [2, units - 1]]


class ChainCase(unittest.TestCase):
    def staged(self, task, **options):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            made = Staged(task, task.batch(0, 8)[1], **options)
        self.addCleanup(made.end)
        return made

    def expect_equal(self, found, expected, tied=(), most=0.0):
        """The same bits, but for parameters in `tied`, whose gradients are summed in another order."""
        for a, b in zip(found[0], expected[0], strict=True):
            for one, other in zip(a, b, strict=True):
                self.assertTrue(torch.equal(one, other), (one, other))
        self.assertEqual(found[1].keys(), expected[1].keys())
        for name, gradient in expected[1].items():
            bound = max(most, 1e-6 if name in tied else 0) * gradient.abs().max().item()
            self.assertLessEqual((found[1][name] - gradient).abs().max().item(), bound, name)


def tied(staged):
    names = [name for unit in staged.units for name in unit["parameters"]]
    return {name for name in names if names.count(name) > 1}


class BitsTest(ChainCase):
    """Dropout is on where models have it. Two micro-batches of unlike sizes are in flight."""

    def test_all_cuts_of_all_models(self):
        for name, make in TASKS.items():
            task = make()
            staged = self.staged(task)
            batches = [task.batch(0, 4), task.batch(4, 3), task.batch(7, 6)]
            expected = staged.whole(batches)
            for cut in cuts_of(len(staged.units)):
                with self.subTest(name, cut=cut):
                    self.expect_equal(staged.cut(cut, batches), expected, tied(staged))
            staged.end()

    def test_computed_again_in_backward(self):
        for name in ("gpt2", "bert", "resnet", "shared"):
            task = TASKS[name]()
            staged = self.staged(task, recompute=99)
            batches = [task.batch(0, 4), task.batch(4, 3), task.batch(7, 6)]
            staged.recompute = 0
            expected = staged.whole(batches)
            staged.recompute = 99
            for cut in cuts_of(len(staged.units)):
                with self.subTest(name, cut=cut):
                    self.expect_equal(staged.cut(cut, batches), expected, tied(staged))
            staged.end()

    def test_checkpoints_of_the_model_itself(self):
        def checkpointed(model, x):
            for block in model.blocks:
                x = checkpoint(block, F.dropout(x, 0.1, model.training), use_reentrant=False)
            return x

        def gpt2():
            model = tf.GPT2LMHeadModel(tf.GPT2Config(**GPT2))
            model.gradient_checkpointing_enable({"use_reentrant": False})
            return model
        for name, task in {"blocks": Ids(lambda: Blocks(checkpointed), "blocks"), "gpt2": Texts(gpt2, "transformer.h")}.items():
            staged = self.staged(task)
            batches = [task.batch(0, 4), task.batch(4, 3), task.batch(7, 6)]
            expected = staged.whole(batches)
            for cut in cuts_of(len(staged.units)):
                with self.subTest(name, cut=cut):
                    self.expect_equal(staged.cut(cut, batches), expected, tied(staged))
            staged.end()

    def test_evaluation(self):
        for name, make in TASKS.items():
            task = make()
            staged = self.staged(task)
            batches = [task.batch(0, 4), task.batch(4, 3)]
            expected = staged.whole(batches, training=False)
            for cut in cuts_of(len(staged.units)):
                with self.subTest(name, cut=cut):
                    self.expect_equal(staged.cut(cut, batches, training=False), expected)
            staged.end()

    def test_in_other_arithmetic(self):
        for name in ("gpt2", "vit", "resnet"):
            task = TASKS[name]()
            staged = self.staged(task)
            batches = [task.batch(0, 4), task.batch(4, 3)]
            staged.autocast = lambda: torch.autocast("cpu", torch.bfloat16)
            with self.subTest(name, precision="bf16"):
                self.expect_equal(staged.cut([2, 4], batches), staged.whole(batches), tied(staged))
            staged.autocast = contextlib.nullcontext
            staged.module.double()
            doubled = [(ids, {key: value.double() if value.is_floating_point() else value for key, value in batch.items()})
                       for ids, batch in batches]
            with self.subTest(name, precision="fp64"):
                self.expect_equal(staged.cut([2, 4], doubled), staged.whole(doubled), tied(staged))
            staged.end()


class GroupsTest(ChainCase):
    def test_each_stage_records_its_own_statistics(self):
        task = Images(lambda: ResNet(nn.BatchNorm2d), ["layer1", "layer2", "layer3", "layer4"])
        staged = self.staged(task)
        sums = staged.binding.keyed.sums.tensor
        batches = [task.batch(0, 8), task.batch(8, 12)]
        groups = [[0, 5, 4, 4], [2, 5, 4, 4, 4]]
        sums.zero_()
        expected = staged.whole(batches, groups=groups)
        whole = sums.clone()
        self.assertGreater(whole.abs().sum(), 0)
        for cut in cuts_of(len(staged.units)):
            with self.subTest(cut=cut):
                sums.zero_()
                self.expect_equal(staged.cut(cut, batches, groups=groups), expected)
                self.assertTrue(torch.equal(sums, whole))


class UnitsTest(ChainCase):
    def units(self, name):
        staged = self.staged(TASKS[name]())
        return staged, staged.units

    def test_kinds(self):
        for name, kinds in {
            "gpt2": ["front", *["GPT2Block"] * 4, "back"],
            "resnet": ["front", "Residual", "Residual", "Residual 2", "Residual 3", "Residual 4", "back"],
            "sequential": ["front", "Flatten", "Linear", "Tanh", "Dropout", "Linear 2", "ReLU", "Linear 3", "back"],
        }.items():
            staged, units = self.units(name)
            self.assertEqual([unit["kind"] for unit in units], kinds)
            staged.end()

    def test_parameters(self):
        for name, (front, back) in {
            "gpt2": (["transformer.wte.weight", "transformer.wpe.weight"],
                     ["transformer.wte.weight", "transformer.ln_f.weight", "transformer.ln_f.bias"]),
            "llama": (["model.embed_tokens.weight"], ["model.norm.weight", "lm_head.weight"]),
            "qwen2": (["model.embed_tokens.weight"], ["model.embed_tokens.weight", "model.norm.weight"]),
            "resnet": (["stem.0.weight", "stem.1.weight", "stem.1.bias"], ["fc.weight", "fc.bias"]),
            "shared": (["table.weight"], ["table.weight"]),
        }.items():
            staged, units = self.units(name)
            self.assertEqual(units[0]["parameters"], front)
            self.assertEqual(units[-1]["parameters"], back)
            named = {parameter for unit in units for parameter in unit["parameters"]}
            self.assertEqual(named, set(staged.parameters))
            inside = {parameter for unit in units[1:-1] for parameter in unit["parameters"]}
            self.assertFalse(inside & set(front + back))
            staged.end()

    def test_parameters_in_one_piece_of_memory(self):
        def flat():
            model = ResNet(lambda channels: nn.GroupNorm(2, channels))
            memory = torch.cat([parameter.data.flatten() for parameter in model.parameters()])
            begin = 0
            for parameter in model.parameters():
                parameter.data = memory[begin:begin + parameter.numel()].view(parameter.shape)
                begin += parameter.numel()
            return model
        lists = ["layer1", "layer2", "layer3", "layer4"]
        staged = self.staged(Images(flat, lists))
        units = [unit["parameters"] for unit in staged.units]
        staged.end()
        self.assertEqual(units, [unit["parameters"] for unit in self.staged(TASKS["resnet"]()).units])

    def test_modules_that_are_computed_again(self):
        for name, recomputed in {"gpt2": [[], [0], [1], [2], [3], []], "resnet": [[], [0], [1], [], [2], [], []]}.items():
            staged, units = self.units(name)
            self.assertEqual([unit["recomputed"] for unit in units], recomputed)
            modules = staged.binding.recomputation._all
            staged.binding.recompute(1, 2, len(units))
            self.assertEqual([module.again for module in modules], [i == 1 for i in range(len(modules))])
            staged.end()

    def test_a_parameter_that_nothing_reads_is_in_the_last_unit(self):
        def make():
            model = ResNet(lambda channels: nn.GroupNorm(2, channels))
            model.idle = nn.Linear(2, 2)
            return model
        staged = self.staged(Images(make, "layer1"))
        self.assertIn("idle.weight", staged.units[-1]["parameters"])

    def test_what_a_stage_lacks_has_no_memory(self):
        staged = self.staged(TASKS["gpt2"]())
        held = staged.names(2, 4)
        from torch.multiprocessing.reductions import StorageWeakRef
        storages = {name: StorageWeakRef(p.untyped_storage()) for name, p in staged.parameters.items()}
        for name, parameter in staged.parameters.items():
            if name not in held:
                parameter.data = parameter.data.new_zeros(()).expand(parameter.shape)
        gc.collect()
        self.assertEqual({name for name, storage in storages.items() if not storage.expired()}, held)

    def test_what_runs_before_a_stage_is_not_convolved(self):
        class Convolutions(TorchDispatchMode):
            count = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.count += func is torch.ops.aten.convolution.default
                return func(*args, **(kwargs or {}))
        staged = self.staged(TASKS["resnet"]())
        counts = []
        for begin, end, given in ((0, 2, []), (5, 7, [torch.zeros(3, 16, 4, 4, requires_grad=True)])):
            with Convolutions() as convolutions:
                staged.forward(begin, end, *images(0, 3), given)
            counts.append(convolutions.count)
        self.assertEqual(counts, [3, 3])  # of the stem and the first block; of the last block, which has one more
        for made, x in ((nn.Conv2d(3, 4, 3, 2, 1, 2), (2, 3, 9, 8)), (nn.Conv1d(3, 4, 4, padding="same"), (2, 3, 9)),
                        (nn.Conv1d(3, 4, 4, padding="valid", dilation=2), (2, 3, 9)), (nn.Linear(3, 4), (2, 5, 3))):
            x = torch.randn(x)
            self.assertEqual(made_shape(made, x), tuple(made(x).shape))
        self.assertIsNone(made_shape(nn.Embedding(3, 4), x))

    def test_the_self_test_runs_on_the_whole_module_where_there_is_memory(self):
        task = Ids(SharedDropout, "blocks")
        task.forward = lambda model, batch: Ids.forward(task, model, batch) / len(batch["ids"])
        with unittest.mock.patch("hetseq.whole._SELF_TEST_BYTES", 1e12):
            staged = self.staged(task)
        self.assertIn("the self-test is left out, since no stage has the whole module (it would take some ", staged.said)
        staged.end()
        with self.assertRaisesRegex(TaskError, "the result would depend on how a batch is cut over ranks"):
            self.staged(task)

    def test_values_of_a_module_that_is_given_again(self):
        module = nn.BatchNorm1d(3)
        module.weight.data.uniform_(1, 2)
        before = {name: value.clone() for name, value in module.state_dict().items()}
        kept = KeptValues(module)
        self.assertFalse(holds_part(module))
        module.double()
        module.weight.data = torch.zeros((), dtype=torch.float64).expand(3)
        self.assertTrue(holds_part(module))
        kept.restore(module)
        self.assertFalse(holds_part(module))
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]) and value.dtype == before[name].dtype, name)

    def test_a_task_without_a_chain_says_so(self):
        staged = self.staged(TASKS["gpt2"]())
        self.assertTrue(staged.description["is_chain"])
        staged.end()
        binding = bridge.Binding(Texts(lambda: nn.Linear(2, 2)), "")
        self.addCleanup(binding.end)
        self.assertIn('"is_chain": false', binding.model('{"seed": 1, "options": {}, "model_config": "", "init_model": "", '
                                                         '"data": "", "dropout": null, "attention_dropout": null}')[0])


class Blocks(nn.Module):
    """Blocks whose run `how` decides: a function of the module and the hidden state."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x, other=None):
            x = torch.tanh(self.linear(x))
            return x if other is None else x + other

    def __init__(self, how, blocks=3):
        super().__init__()
        self.table, self.bias, self.head = nn.Embedding(50, 8), nn.Linear(8, 8), nn.Linear(8, 50)
        self.blocks, self.none = nn.ModuleList([self.Block() for _ in range(blocks)]), nn.ModuleList()
        self.how = how

    def forward(self, ids):
        return self.head(self.how(self, self.table(ids)))


def in_turn(model, x):
    for block in model.blocks:
        x = block(x)
    return x


class RefusalTest(ChainCase):
    def refusal(self, make, chain="blocks", **settings):
        with self.assertRaises(TaskError) as refused:
            self.staged(Ids(make, chain, **settings))
        text = str(refused.exception)
        self.assertRegex(text, r"\(.*\): ", text)
        return text

    def run_by(self, how, **settings):
        return self.refusal(lambda: Blocks(how), **settings)

    def test_lists_that_are_none(self):
        for chain, problem in {"no.list": "which is no module of the model", "table": "which is a Embedding",
                               "none": "'none', which is empty"}.items():
            self.assertIn(problem, self.run_by(in_turn, chain=chain))
        self.assertIn("the model has 'blocks', 'none'", self.run_by(in_turn, chain="no.list"))

    def test_blocks_that_share(self):
        def shared():
            model = Blocks(in_turn)
            model.blocks[2].linear = model.blocks[0].linear
            return model
        def twice():
            model = Blocks(in_turn)
            model.blocks[2] = model.blocks[0]
            return model
        self.assertIn("'blocks.0' and 'blocks.2', which share the parameter 'blocks.0.linear.weight'", self.refusal(shared))
        self.assertIn("holds the same block twice", self.refusal(twice))

    def test_a_block_that_reads_anothers_parameters(self):
        def reads(model, x):
            model.blocks[1].linear.forward = lambda y: F.linear(y, model.blocks[0].linear.weight)
            return in_turn(model, x)
        self.assertIn("share the parameter 'blocks.0.linear.weight'", self.run_by(reads))

    def test_turns(self):
        for how, problem in ((lambda m, x: in_turn(m, in_turn(m, x)), "'blocks.0', which is called more than once"),
                             (lambda m, x: m.blocks[2](m.blocks[1](x)), "'blocks.1', which is called before 'blocks.0'"),
                             (lambda m, x: m.blocks[1](m.blocks[0](x)), "'blocks.2', which is not called")):
            self.assertIn(problem, self.run_by(how))

    def test_other_arguments(self):
        def trained(model, x):
            bias = model.bias(x)
            for block in model.blocks:
                x = block(x, bias)
            return x
        def of_values(model, x):
            return model.blocks[2](model.blocks[1](y := model.blocks[0](x), (x > 0).float()))
        def of_block(model, x):
            y = model.blocks[0](x)
            return model.blocks[2](model.blocks[1](y), other=(y > 0).float())
        self.assertIn("argument number 2 depends on parameters that train", self.run_by(trained))
        self.assertIn("argument number 2 depends on earlier blocks or on parameters in front", self.run_by(of_values))
        self.assertIn("argument 'other' depends on earlier blocks", self.run_by(of_block))

    def test_t5(self):
        class T5(Texts):
            def forward(self, model, batch):
                logits = model(input_ids=batch["ids"], decoder_input_ids=batch["ids"]).logits
                return F.cross_entropy(logits.flatten(0, 1), batch["ids"].flatten(), reduction="sum")
        task = T5(lambda: tf.T5ForConditionalGeneration(tf.T5Config(vocab_size=50, d_model=16, d_kv=4, d_ff=32, num_layers=3,
                                                                    num_heads=4)), "encoder.block", metrics=[])
        with self.assertRaisesRegex(TaskError, "depends on parameters that train"):
            self.staged(task)

    def test_what_else_the_end_needs(self):
        for how in (lambda m, x: in_turn(m, x) + x, lambda m, x: m.blocks[2](m.blocks[1](y := m.blocks[0](x))) + y):
            self.assertIn("more is needed than the last hidden state", self.run_by(how))

    def test_hidden_states(self):
        class Pair(nn.Module):
            def forward(self, given):
                return {"x": given}
        class Whole(nn.Module):
            def forward(self, given):
                return given.long()
        def with_block(block):
            model = Blocks(lambda m, x: m.blocks[1](m.blocks[0](x)), 2)
            model.blocks[0] = block
            return model
        self.assertIn("'blocks.0', which gives a dict", self.refusal(lambda: with_block(Pair())))
        self.assertIn("whose hidden state is torch.int64", self.refusal(lambda: with_block(Whole())))
        self.assertIn("'blocks.0', which is given a tuple", self.run_by(lambda m, x: m.blocks[0]((x, x))))

    def test_nested_tensors(self):
        with self.assertRaisesRegex(TaskError, "hidden state is nested or sparse"):
            self.staged(Masked(lambda: Encoder(True), "encoder.layers", metrics=[]))

    def test_gradients_that_would_be_lost(self):
        def reentrant(model, x):
            return checkpoint(lambda y: in_turn(model, y), x, use_reentrant=True)
        self.assertIn("reentrant checkpointing", self.run_by(reentrant))

    def test_compiled_and_scripted_modules(self):
        self.assertIn("is compiled by torch.compile", self.refusal(lambda: torch.compile(Blocks(in_turn), backend="eager")))
        def scripted():
            model = Blocks(in_turn)
            model.blocks[1] = torch.jit.script(nn.Linear(8, 8))
            return model
        self.assertIn("'blocks.1' is TorchScript", self.refusal(scripted))

    def test_recomputed_modules_around_blocks(self):
        def nested():
            model = Blocks(in_turn)
            model.inner = nn.Sequential(*[Blocks.Block() for _ in range(2)])
            model.how = lambda m, x: m.inner(x)
            return model
        self.assertIn("recompute names 'inner', which holds blocks", self.refusal(nested, chain="inner", recompute=["inner"]))

    def test_buffers_that_change(self):
        self.assertIn("buffers = 'rank0'", self.run_by(in_turn, buffers="rank0"))

    def test_a_batch_normalisation_in_two_units(self):
        def make():
            model = Blocks(lambda m, x: m.norm(in_turn(m, m.norm(x).contiguous())))
            model.norm = nn.BatchNorm1d(12)
            return model
        self.assertIn("runs in several units of the chain", self.refusal(make))

    def test_a_chain_that_is_no_name(self):
        for chain in (7, [""], ["a", 3]):
            task = Texts(chain=chain)
            with self.assertRaises((TaskError, TypeError)):
                bridge.describe(task, "")


class TurnsTest(ChainCase):
    """What the sample did not show."""

    def staged_by(self, make):
        return self.staged(Ids(make, "blocks"))

    def refusal(self, staged, begin, end):
        ids, batch = texts(0, 3)
        given = [torch.zeros(3, 12, 8, requires_grad=True)] if begin else []
        with self.assertRaises(TaskError) as refused:
            staged.forward(begin, end, ids, batch, given)
        return str(refused.exception)

    def test_a_block_that_is_left_out_later(self):
        drops = []
        def how(model, x):
            for number, block in enumerate(model.blocks):
                x = x if number in drops else block(x)
            return x
        staged = self.staged_by(lambda: Blocks(how))
        drops.append(1)
        for begin, end in ((0, 3), (3, 5), (0, 5)):
            self.assertIn("'blocks.2' was called when it was the turn of 'blocks.1'", self.refusal(staged, begin, end))
        drops[:] = [2]
        self.assertIn("no block was called any more when it was the turn of 'blocks.2'", self.refusal(staged, 0, 5))

    def test_a_module_that_runs_elsewhere_later(self):
        runs = []
        def how(model, x):
            x = in_turn(model, model.bias(x))
            return model.bias(x) if runs else x
        staged = self.staged_by(lambda: Blocks(how))
        runs.append(1)
        self.assertIn("'bias' runs in a unit of the chain in which it did not", self.refusal(staged, 3, 5))


if __name__ == "__main__":
    unittest.main(verbosity=2)
