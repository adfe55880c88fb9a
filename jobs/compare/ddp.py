"""What the PyTorch programs of this folder share: ranks by mpirun, the allocator, the timed loop, the JSON.

Baselines are meant to be strong: one thread a rank, data in memory, gradients viewed in DDP's buckets, the fastest
optimizer PyTorch has for the task, nothing read back from a step.
"""
import argparse
import ctypes
import glob
import json
import os
import sys
import time
import zlib

import h5py
import numpy
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel


def keep_freed_memory():
    """glibc keeps a large tensor's memory for the next one, as hetseq tells it to."""
    libc = ctypes.CDLL(None)
    m_trim_threshold, m_mmap_max = -1, -4
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, 2047 << 20)


def taken(name, default):
    """The value of an option of this program alone, or whether a flag is there; it leaves the command line."""
    if name not in sys.argv:
        return default
    place = sys.argv.index(name)
    del sys.argv[place]
    return True if isinstance(default, bool) else type(default)(sys.argv.pop(place))


def arguments(description, batch, devices=("cpu",)):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", help="HDF5 files (a glob)")
    parser.add_argument("--batch", type=int, default=batch, help="samples of one rank's update")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--device", choices=devices, default="cpu", help="cuda: a GPU for each rank of this host")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="fp32",
                        help="bf16, fp16: torch.autocast, and torch.amp.GradScaler in fp16")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--as-users-run-it", dest="tuned", action="store_false", default=False)
    mode.add_argument("--tuned", dest="tuned", action="store_true", help="all that we found to make it faster")
    options = parser.parse_args()
    options.scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    if options.tuned:
        keep_freed_memory()
    return options


def start_ranks(device="cpu"):
    """Joins the group that mpirun's environment describes, over gloo or, on GPUs, NCCL; returns this rank."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    job = os.environ.get("PMIX_NAMESPACE", "").encode()
    os.environ.setdefault("MASTER_PORT", str(20000 + zlib.crc32(job) % 10000))  # two jobs, two ports
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
    ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
    if device == "cuda":
        use_own_gpu(int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", 0)))
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    return rank


def use_own_gpu(local_rank):
    """Exits with 71, as hetseq does, where this rank has none."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if local_rank >= count:
        print(f"no GPU for local rank {local_rank}: torch {torch.__version__} sees {count}", file=sys.stderr)
        sys.exit(71)
    torch.cuda.set_device(local_rank)


def read_all(pattern):
    """All datasets of the files, each concatenated, as tensors in memory."""
    columns = {}
    for path in sorted(glob.glob(pattern)):
        with h5py.File(path) as file:
            for name, dataset in file.items():
                columns.setdefault(name, []).append(dataset[:])
    if not columns:
        raise SystemExit(f"no HDF5 file matches {pattern}")
    return {name: torch.from_numpy(numpy.concatenate(parts)) for name, parts in columns.items()}


def my_batches(samples, batch, updates):
    """Yields this rank's sample numbers for each update, from one shuffled order of all ranks, epoch after epoch."""
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    order, begin = torch.empty(0, dtype=torch.long), 0
    for _ in range(updates):
        if begin + batch * ranks > len(order):
            order, begin = torch.randperm(samples), 0
        yield order[begin + rank * batch:begin + (rank + 1) * batch]
        begin += batch * ranks


def on_device(batch, options):
    """A batch where the model is, by way of pinned memory."""
    return batch.pin_memory().to(options.device, non_blocking=True) if options.device == "cuda" else batch


def wrapped(model):
    on_gpu = next(model.parameters()).is_cuda
    return DistributedDataParallel(model, gradient_as_bucket_view=True,
                                   device_ids=[torch.cuda.current_device()] if on_gpu else None)


def autocast(options):
    """For forward and loss."""
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    return torch.autocast(options.device, types.get(options.precision), enabled=options.precision in types)


def step(loss, optimizer, options, clipped=(), backward=torch.Tensor.backward):
    """Backward and the optimizer's step; the gradients of the parameters `clipped` get a norm of at most 1."""
    backward(options.scaler.scale(loss))
    if clipped:
        options.scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(clipped, 1.0)
    options.scaler.step(optimizer)
    options.scaler.update()


def measure(name, options, samples, update):
    """Times `update(sample numbers)` per update; the first fifth warms up. Rank 0 prints the JSON."""
    ranks = torch.distributed.get_world_size()
    batches = ((chosen, options.batch * ranks) for chosen in my_batches(samples, options.batch, options.updates))
    # The host runs ahead of a GPU, so that only several updates together have a time.
    together, wait = (10, torch.cuda.synchronize) if options.device == "cuda" else (1, lambda: None)
    report(name, options, "samples_per_second", rates(batches, update, together, wait))


def rates(batches, update, together=1, wait=lambda: None):
    """Units a second of each `together` updates, the first fifth left out; `batches` yields a rank's batch and all ranks'
    units; `wait` waits until the updates are done."""
    measured, since = [], 0
    torch.distributed.barrier()
    last = time.perf_counter()
    for number, (chosen, units) in enumerate(batches, start=1):
        update(chosen)
        since += units
        if number % together == 0:
            wait()
            now = time.perf_counter()
            measured.append(since / (now - last))
            last, since = now, 0
    return measured[len(measured) // 5:]


def report(name, options, key, measured):
    """Rank 0 prints the JSON; the group of ranks ends."""
    if torch.distributed.get_rank() == 0:
        print(json.dumps({
            "task": name, "program": f"PyTorch {torch.__version__} DDP over {torch.distributed.get_backend()}",
            "tuned": options.tuned, "precision": options.precision,
            "ranks": torch.distributed.get_world_size(), "updates": options.updates,
            key: {text: float(numpy.percentile(measured, percent))
                  for text, percent in (("median", 50), ("p10", 10), ("p90", 90))}}))
    torch.distributed.destroy_process_group()
