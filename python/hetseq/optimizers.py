"""PyTorch's optimizers as the trainer uses them: steps by its learning rate, state as plain tensors."""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import torch
from torch.optim import lr_scheduler

from .task import TaskError

Groups = list[dict[str, Any]]


def _groups(tensors: Sequence[torch.Tensor], factors: Sequence[float], decays: Sequence[bool], lr: float,
            places: Sequence[tuple[int, int]]) -> Groups:
    """Parameters of like treatment together, as torch.optim takes them, in the order of `param_groups` and of the module.
    `places`: of each parameter's group, and its own in the module."""
    groups: dict[tuple[int, float, bool], dict[str, Any]] = {}
    for (place, _), tensor, factor, decay in sorted(zip(places, tensors, factors, decays), key=lambda item: item[0]):
        group = {"params": [], "lr": lr * factor, "lr_factor": factor}
        if not decay:
            group["weight_decay"] = 0.0
        groups.setdefault((place, factor, decay), group)["params"].append(tensor)
    return list(groups.values())


_SCHEDULED = ("the trainer sets the learning rate before each step, so that it would have no effect): give a scheduler "
              "beside the optimizer, `return optimizer, scheduler`, or the rate as `schedule(self, update, epoch, config)` of "
              "the task or by --lr-scheduler, and a group's own rate as its lr_factor")


@contextlib.contextmanager
def _noted_schedulers() -> Iterator[list[str]]:
    """The names of the schedulers of torch that are made meanwhile."""
    made: list[str] = []
    originals = {kind: kind.__init__ for kind in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)}

    def noting(original: Callable[..., None]) -> Callable[..., None]:
        def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
            made.append(type(self).__name__)
            original(self, *args, **kwargs)

        return initialise

    try:
        for kind, original in originals.items():
            kind.__init__ = noting(original)
        yield made
    finally:
        for kind, original in originals.items():
            kind.__init__ = original


def _needs_closure(kind: type[torch.optim.Optimizer]) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    behind_self = list(inspect.signature(kind.step).parameters.values())[1:]
    return any(parameter.default is parameter.empty and parameter.kind not in variadic for parameter in behind_self)


def _has_scheduler(optimizer: torch.optim.Optimizer) -> bool:
    """As most schedulers of torch leave it."""
    return hasattr(optimizer.step, "_wrapped_by_lr_sched") or any("initial_lr" in group for group in optimizer.param_groups)


def _divided(made: Any) -> tuple[torch.optim.Optimizer, Optional[lr_scheduler.LRScheduler]]:
    """The optimizer and the scheduler that a task's `optimizer` gave."""
    optimizer, scheduler = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TaskError(f"optimizer gave a {type(optimizer).__name__}, not a torch.optim.Optimizer")
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        raise TaskError("optimizer gives a ReduceLROnPlateau (it follows a loss, and not the count of updates alone): give "
                        "another scheduler, or `schedule(self, update, epoch, config)` of the task")
    if isinstance(made, tuple) and not isinstance(scheduler, lr_scheduler.LRScheduler):
        raise TaskError(f"optimizer gave a {type(scheduler).__name__} beside the optimizer, not a scheduler of "
                        "torch.optim.lr_scheduler")
    if scheduler is not None and getattr(scheduler, "optimizer", optimizer) is not optimizer:
        raise TaskError(f"the {type(scheduler).__name__} that optimizer gives belongs to another optimizer: make it of the one "
                        "that is given beside it")
    return optimizer, scheduler


class Adapter:
    """An optimizer of torch whose state lies in tensors that exist from the start: `state`, by "NAME/PARAMETER". Where the
    task gives a scheduler beside it, that gives the learning rate, and `state` counts its steps: they are made again when a
    checkpoint is read."""

    def __init__(self, make: Callable[[Groups, float], Any], names: Sequence[str], tensors: Sequence[torch.Tensor],
                 factors: Sequence[float], decays: Sequence[bool], lr: float, scheduled_by: str = "",
                 groups: Mapping[str, int] = {}):
        """`groups`: the place of each parameter's group among the task's, by name in the order of the module."""
        lr = lr or 1.0  # the trainer sets each step's own
        self.parameters = dict(zip(names, tensors))
        in_module = {name: number for number, name in enumerate(groups)}
        places = [(groups.get(name, 0), in_module.get(name, 0)) for name in names]
        self._make = lambda: _divided(make(_groups(tensors, factors, decays, lr, places), lr))
        with _noted_schedulers() as schedulers:
            self.optimizer, self.scheduler = self._make()
        self._check_schedulers(schedulers, scheduled_by)
        self._check_parameters(factors)
        self._check_rate(lr)
        self._check_group_rates(lr)
        self.rates = self._rates()
        self.stepped = torch.zeros((), dtype=torch.int64)
        self.numbers: set[tuple[str, str]] = set()
        self.state = {"stepped": self.stepped}
        self._scheduler_steps = 0
        self._beyond: Optional[Exception] = None  # the scheduler has no further rate, and says why
        if self.scheduler is not None:
            self.scheduled = torch.zeros((), dtype=torch.int64)
            self.state["scheduled"] = self.scheduled
        for name, state in self._probed(make, factors, decays, lr, places).items():
            for key, value in state.items():
                self.state[f"{key}/{name}"] = self._storage(name, key, value)

    def _check_schedulers(self, made: Sequence[str], scheduled_by: str) -> None:
        if self.scheduler is None and (made or _has_scheduler(self.optimizer)):
            raise TaskError(f"optimizer makes a {made[0] if made else 'learning rate scheduler'} ({_SCHEDULED}")
        if self.scheduler is not None and scheduled_by:
            raise TaskError(f"the learning rate is given twice, by the {type(self.scheduler).__name__} of the task's optimizer "
                            f"and by {scheduled_by}: leave one of them out (--lr is the scheduler's base)")

    def _check_parameters(self, factors: Sequence[float]) -> None:
        """All that train are in it, at their own rates."""
        groups = self.optimizer.param_groups
        held = {id(parameter) for group in groups for parameter in group["params"]}
        for name, parameter in self.parameters.items():
            if id(parameter) not in held:
                raise TaskError(f"the optimizer lacks '{name}': give it all `groups`, and freeze in `param_groups` what is "
                                "not to train")
        if len(held) > len(self.parameters):
            raise TaskError("the optimizer has parameters that are not in `groups`: give it those alone")
        if any("lr_factor" not in group for group in groups):
            if set(factors) != {1.0}:
                raise TaskError("the groups of the optimizer lack 'lr_factor' (each keeps its learning rate over the run's "
                                "there): give it `groups` as they are, or copies of the dicts with other entries")
            for group in groups:
                group["lr_factor"] = 1.0
        self.held = held

    def _check_group_rates(self, lr: float) -> None:
        for group in self.optimizer.param_groups if self.scheduler is None else ():
            if not math.isclose(float(group["lr"]), lr * group["lr_factor"]):
                raise TaskError(f"a group of the optimizer has a learning rate of {float(group['lr']):g}, where that of --lr is "
                                f"{lr * group['lr_factor']:g} ({_SCHEDULED}")

    def _check_rate(self, lr: float) -> None:
        """`groups` have the trainer's rate, so that one of the optimizer's own counts for nothing."""
        own = self.optimizer.defaults.get("lr")
        parameter = inspect.signature(type(self.optimizer).__init__).parameters.get("lr")
        if parameter is None or not isinstance(own, (int, float)) or own in (lr, parameter.default):
            return
        raise TaskError(f"the optimizer was made with a learning rate of {own:g}, where --lr is {lr:g} ({_SCHEDULED}. The base "
                        "of all is --lr, or 'lr' in the task's defaults")

    def _check_unchanged(self) -> None:
        groups = self.optimizer.param_groups
        if self.scheduler is None and _has_scheduler(self.optimizer):
            raise TaskError(f"the optimizer was given a learning rate scheduler ({_SCHEDULED}")
        if any(id(parameter) not in self.held for group in groups for parameter in group["params"]):
            raise TaskError("the optimizer was given other parameters after the training began (the trainer has no gradients "
                            "for them): give all parameters to the optimizer when it is made")
        if self._rates() != self.rates:
            raise TaskError(f"the learning rate of the optimizer was changed ({_SCHEDULED}")

    def _probed(self, make: Callable[..., Any], factors: Sequence[float], decays: Sequence[bool], lr: float,
                places: Sequence[tuple[int, int]]) -> dict[str, dict[str, Any]]:
        """What state a step makes, by parameter: seen on copies."""
        copies = [torch.nn.Parameter(tensor.detach().clone()) for tensor in self.parameters.values()]
        for copy in copies:
            copy.grad = torch.zeros_like(copy)
        probe, _ = _divided(make(_groups(copies, factors, decays, lr, places), lr))
        if _needs_closure(type(probe)):
            raise TaskError(f"the step of {type(probe).__name__} needs a closure (it computes losses and gradients again, and "
                            "hetseq's are those of a batch that ranks share): give an optimizer that steps once, by the gradients "
                            "that are there")
        probe.step()
        return {name: dict(probe.state.get(copy, {})) for name, copy in zip(self.parameters, copies)}

    def _storage(self, name: str, key: str, value: Any) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value)
        if isinstance(value, (int, float)):
            self.numbers.add((name, key))
            return torch.zeros((), dtype=torch.float64)
        raise TaskError(f"the optimizer keeps '{key}' of '{name}' as a {type(value).__name__}: only tensors and numbers "
                        "can be in a checkpoint")

    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def rate(self) -> float:
        """The learning rate of the next step, of parameters that learn as --lr says."""
        if self._beyond is not None:
            raise self._beyond
        groups = [group for group in self.optimizer.param_groups if group["lr_factor"] != 0]
        group = next((group for group in groups if group["lr_factor"] == 1), groups[0] if groups else {"lr": 0, "lr_factor": 1})
        return float(group["lr"]) / group["lr_factor"]

    def step(self, lr: float) -> None:
        self._check_unchanged()
        for group in self.optimizer.param_groups if self.scheduler is None else ():
            group["lr"] = lr * group["lr_factor"]
        gradients = [parameter.grad for parameter in self.parameters.values()]
        rates = self._rates()
        self.optimizer.step()
        if self._rates() != rates:
            raise TaskError(f"the step of {type(self.optimizer).__name__} changes its learning rate ({_SCHEDULED}")
        # The trainer sums gradients in memory of its own, which an optimizer may have let go (zero_grad).
        for parameter, gradient in zip(self.parameters.values(), gradients):
            parameter.grad = gradient
        if self.scheduler is not None:
            self._schedule_next()
        self.rates = self._rates()
        for name, parameter in self.parameters.items():
            state = self.optimizer.state.get(parameter, {})
            for key, value in state.items():
                storage = self.state.get(f"{key}/{name}")
                if storage is None:
                    raise TaskError(f"the optimizer began to keep '{key}' of '{name}' after its first step")
                if (name, key) in self.numbers:
                    storage.fill_(value)
                elif value is not storage:
                    storage.copy_(value)
                    state[key] = storage
        self.stepped.fill_(1)

    def _schedule_next(self) -> None:
        """Steps that only measure times may be more than a scheduler has rates for."""
        try:
            self.scheduler.step()
        except ValueError as error:
            self._beyond = error
        self._scheduler_steps += 1
        self.scheduled.fill_(self._scheduler_steps)

    def restored(self) -> None:
        """The tensors of `state` have other values now."""
        if self.scheduler is not None and self.scheduled.item() != self._scheduler_steps:
            self._repeat_schedule(int(self.scheduled.item()))
        self.optimizer.state.clear()
        if not self.stepped.item():
            return
        for path, storage in self.state.items():
            key, slash, name = path.partition("/")
            if not slash:
                continue
            is_number = (name, key) in self.numbers
            value = storage.item() if is_number else storage
            self.optimizer.state[self.parameters[name]][key] = int(value) if is_number and value == int(value) else value

    def _repeat_schedule(self, steps: int) -> None:
        """A new scheduler, so many steps later: it depends on nothing else."""
        self.optimizer, self.scheduler = self._make()
        self._beyond = None
        if any("lr_factor" not in group for group in self.optimizer.param_groups):
            for group in self.optimizer.param_groups:
                group["lr_factor"] = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps without one of the optimizer
            for _ in range(steps):
                self.scheduler.step()
        self._scheduler_steps = steps
        self.rates = self._rates()
