"""Trains PyTorch models of your own on unlike devices, with hetseq.

    class Gpt2(hetseq.Task):
        fields = {"input_ids": hetseq.Field(torch.int32, shape=(None,))}
        losses, metrics = ["nll"], ["accuracy"]
        def model(self, config): ...             # any torch.nn.Module
        def weights(self, batch): ...            # what each loss is divided by
        def forward(self, model, batch): ...     # a dict: summed losses, and metrics where it evaluates

    mpirun -np 32 python -m hetseq train my_task.py:Gpt2 --data 'shards/*.h5' --lr 3e-4

or `hetseq.train(Gpt2(), data="shards/*.h5", lr=3e-4)` in a script under mpirun. A model that comes with its loss:
`hetseq.task(model, fields, loss=lambda model, batch: ...)`. docs/python.md tells more.
"""

from . import _library
from .batch_sums import add_to_batch_sum
from .batches import generators, sample_ids
from .draw_places import groups, rows
from .images import decode_image, from_images, image_classes
from .models import load
from .run import Error, Stopped, load_task, rank, train
from .shards import from_csv, from_dataset, from_npz, write_shards
from .task import (Batch, Bytes, Computed, Config, Field, Metric, Option, Ragged, Task, TaskError, samples, task, tokens)
from .wandb_logger import WandbLogger

__version__ = _library.version()
__all__ = ["Batch", "Bytes", "Computed", "Config", "Error", "Field", "Metric", "Option", "Ragged", "Stopped", "Task",
           "TaskError", "WandbLogger", "add_to_batch_sum", "decode_image", "from_csv", "from_dataset", "from_images", "from_npz",
           "generators", "groups", "image_classes", "load", "load_task", "rank", "rows", "sample_ids", "samples", "task", "tokens",
           "train", "write_shards"]
