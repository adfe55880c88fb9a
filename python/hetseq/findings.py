"""What of a module or of `collate` makes the result depend on the cut and can be seen at once, in words."""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

import torch
from torch import nn

from .group_norms import BUFFERS, is_grouped
from .samples import Samples, differing_tensor

__all__ = ["Found", "NotFinite", "changed_buffers", "check_collate", "listed", "mixed_in_collate",
           "own_generators", "refusals", "unsampled_draws", "written_parameters"]

_MOST_SAMPLES = 64  # that `collate` makes again


class Found(Exception):
    """Findings after which nothing else can be compared."""

    def __init__(self, *texts: str) -> None:
        super().__init__(*texts)
        self.texts = list(texts)


class NoLoss(Exception):
    """No loss of the samples depends on a parameter: none of them may have one."""


class NotFinite(Found):
    """The sums themselves."""


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """A forward that hetseq stops: its message is the finding."""
    try:
        yield
    except RuntimeError as error:
        from .randomness import RandomnessError

        if isinstance(error, RandomnessError) or "random numbers are functions of the sample" in str(error):
            raise Found(str(error)) from error
        raise


_DRAW = ("draw in forward (torch.rand, bernoulli and dropout of (samples, ...) are functions of the sample there), "
         "or store what is drawn in the data")


def check_collate(samples: Samples) -> None:
    """Refuses random numbers in `collate`."""
    if samples.collate is None:
        return
    everyone = range(min(len(samples), _MOST_SAMPLES))
    whole = samples.collated(everyone, trimmed=False)
    for _ in range(2):
        if name := differing_tensor(whole, samples.collated(everyone, trimmed=False)):
            raise Found(f"{samples.maker} gives another '{name}' when it is called again with the same samples (it draws random "
                         f"numbers, keeps a state, or changes what it gets): {_DRAW}")


def mixed_in_collate(samples: Samples) -> str:
    """Where `collate` makes a sample of more than the sample: what a difference of sums then comes from."""
    if samples.collate is None:
        return ""
    everyone = list(range(min(len(samples), _MOST_SAMPLES)))
    whole = samples.collated(everyone, trimmed=False)
    for how, part in (("in another order", everyone[::-1]), ("without some of the others", everyone[1::2])):
        with contextlib.suppress(Exception):
            given = samples.collated(part, trimmed=False)
            if name := differing_tensor({n: t[torch.tensor(part)] for n, t in whole.items()}, given):
                return (f"{samples.maker} gives another '{name}' for the same samples {how} (it draws random numbers, sorts the "
                        f"samples, or looks at more than each): make each row of its sample alone, and {_DRAW}")
    return ""


def listed(noun: str, names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{noun}{'s' if len(names) > 1 else ''} {shown}"


def _are_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Where a value is not a number, the other isn't either."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def changed_buffers(model: nn.Module, before: Mapping[str, torch.Tensor]) -> list[str]:
    names = []
    counted = {f"{path}.{name}".lstrip(".") for path, module in model.named_modules() if is_grouped(module) for name in BUFFERS}
    for name, buffer in model.named_buffers():
        old = before.get(name)
        if name in counted:  # an update folds them
            continue
        if old is None or old.shape != buffer.shape or not _are_equal(old, buffer.to(old.dtype)):
            names.append(name)
    if not names:
        return []
    return [
        f"the {listed('buffer', names)} changed in training (a rank would change its own copy "
        "by its own samples): change it in the task's after_update, by sums over the whole batch (batch_sums), make it a "
        'constant, or choose buffers="rank0", if no output depends on it'
    ]


def unsampled_draws(found: Sequence[str]) -> list[str]:
    """`found`: by the operator of that name."""
    return [f"{text} (what is drawn for a sample is a function of it, and these rows are no samples): draw a tensor of "
            "shape (samples, ...), or one number for all, torch.rand(())" for text in found]


def written_parameters(names: Iterable[str]) -> list[str]:
    if not names:
        return []
    return [
        f"the forward itself writes the {listed('parameter', sorted(names))} (as nn.Embedding(max_norm=...) does with the rows "
        "that it looks up), so that ranks with other samples would come to other values: leave that out, or change a "
        "copy, such as F.normalize of the rows that were looked up"
    ]


def own_generators(before: dict[str, Any], after: dict[str, Any], what: str = "the forward",
                   drawers: Optional[Mapping[str, str]] = None) -> list[str]:
    """`drawers`: by the generator's name, the module that draws from it, where that is known."""

    def equal(name: str) -> bool:
        if name.startswith("torch"):
            return torch.equal(before[name], after[name])
        return repr(before[name]) == repr(after[name])

    unseen = (" where hetseq does not see it: in backward or a hook of it, in another thread, or by torch.manual_seed or "
              "torch.set_rng_state")
    what_to_do = ("draw in the forward itself by torch, of shape (samples, ...), or one number for all samples, torch.rand(()), "
                  "or switch off what draws in a module of a library" if what == "the forward" else
                  "draw nothing there (dropout with training=model.training)")
    drawers = drawers or {}
    return [
        f"{drawers.get(name, what)} draws from the generator of {name}{unseen if name.startswith('torch') and what == 'the forward' else ''} "
        f"(what it draws would depend on how a batch is cut): {what_to_do}"
        for name in before
        if not equal(name)
    ]
