"""What must stay as it was while a module trains: the trainer has taken hold of it."""

from __future__ import annotations

import torch

from .group_norms import BUFFERS, is_grouped
from .task import TaskError

__all__ = ["Buffers", "Parameters"]


class Buffers:
    """The buffers of a module as they were at its start."""

    def __init__(self, module: torch.nn.Module):
        self._places = [(part, path, name, buffer, buffer._version) for path, part in module.named_modules()
                        for name, buffer in part._buffers.items()
                        if buffer is not None and not (is_grouped(part) and name in BUFFERS)]
        self._parts = list(module.modules())
        self._saved = self._count_saved()

    def begin(self) -> None:
        """From here on, changes count: the trainer has moved the module to its device."""
        self._places = [(part, path, name, part._buffers[name], part._buffers[name]._version)
                        for part, path, name, _, _ in self._places]

    def _count_saved(self) -> int:
        return sum(not _stays_out(part, name) for part in self._parts for name in part._buffers.keys())

    def unsaved(self) -> list[tuple[torch.nn.Module, str, str, torch.Tensor, int]]:
        """Those that no checkpoint has, as they are now: for `check_unsaved`."""
        return [(part, path, name, part._buffers[name], part._buffers[name]._version)
                for part, path, name, _, _ in self._places
                if _stays_out(part, name) and name in part._buffers and part._buffers[name] is not None]

    @staticmethod
    def check_unsaved(before: list[tuple[torch.nn.Module, str, str, torch.Tensor, int]]) -> None:
        for part, path, name, buffer, version in before:
            if name not in part._buffers or part._buffers[name] is not buffer or buffer._version != version:
                raise TaskError(f"after_update changed the buffer '{path + '.' * bool(path)}{name}', which is not saved "
                                "(persistent=False), so that a run that goes on would begin it anew: register it with "
                                "persistent=True")

    def put_back(self) -> None:
        """The buffers that the trainer holds and saves, with the values of those that were put in their place. Others, such
        as tables that grow, may be what they like."""
        for part, path, name, buffer, _ in self._places:
            given = part._buffers[name] if name in part._buffers else None
            if given is buffer or _stays_out(part, name):
                continue
            if given is None or given.shape != buffer.shape:
                raise TaskError(f"the buffer '{path + '.' * bool(path)}{name}' was removed, or has another shape now (the trainer "
                                "holds it since its start, and saves it): change its values in place")
            buffer.copy_(given)
            part._buffers[name] = buffer
        if self._count_saved() != self._saved:
            raise TaskError("a buffer was added after the training began (the trainer saves those that there were at its start): "
                            "register it in `model`")

    def check(self) -> None:
        for part, path, name, buffer, version in self._places:
            if part._buffers[name] is not buffer or buffer._version != version:
                raise TaskError(f"the buffer '{path + '.' * bool(path)}{name}' changed in training: ranks with "
                                "other samples would come to other values. Change it in after_update, keep it constant, or let "
                                "rank 0's count: buffers = \"rank0\"")


def _stays_out(part: torch.nn.Module, name: str) -> bool:
    """Whether state_dict leaves out this buffer of `part`."""
    return name in getattr(part, "_non_persistent_buffers_set", ())


class Parameters:
    """The parameters of a module, which the trainer keeps in memory of its own: those that train are chosen before."""

    def __init__(self, module: torch.nn.Module):
        self._module = module
        self._known = {id(parameter) for parameter in module.parameters()}
        self._has_gradient: set[int] = set()
        self._count_parts()
        self._places = [(part._parameters, name, parameter, parameter.requires_grad, parameter.dtype, parameter.data_ptr())
                        for part in module.modules() for name, parameter in part._parameters.items()
                        if parameter is not None]

    def check(self) -> None:
        """Raises TaskError where one is other than it was."""
        for parameters, name, parameter, trains, dtype, place in self._places:
            if parameter.grad is not None:
                self._has_gradient.add(id(parameter))
            elif trains and id(parameter) in self._has_gradient:
                self._refuse(parameters, name, "lost its gradient (zero_grad)", "leave zero_grad and the backward to the trainer, "
                             "which begins each update at 0")
            if name not in parameters or parameters[name] is not parameter:
                self._refuse(parameters, name, "was replaced or removed", "change its values in place, under "
                             "torch.no_grad()")
            if parameter.requires_grad is not trains:
                self._refuse(parameters, name, f"was {'frozen' if trains else 'unfrozen'} (requires_grad_) after the training "
                             "began", "say what trains before it, in `model` or `param_groups`; to unfreeze later, begin a "
                             "second run with --init-model" if not trains else "say what trains before it, in `model` or "
                             "`param_groups`; a learning rate of 0 from an update on is a `schedule`")
            if parameter.dtype is not dtype or parameter.data_ptr() != place:
                self._refuse(parameters, name, f"was moved or converted ({parameter.dtype} on {parameter.device})",
                             "leave the module's type and device to --precision and the trainer, and change values in "
                             "place")
        for part, parameters, modules in self._parts:
            if len(part._parameters) != parameters or len(part._modules) != modules:
                self._refuse_additions()
                self._count_parts()
                break

    def _count_parts(self) -> None:
        self._parts = [(part, len(part._parameters), len(part._modules)) for part in self._module.modules()]

    def _path(self, parameters: object, name: str) -> str:
        for path, part in self._module.named_modules():
            if part._parameters is parameters:
                return f"{path}.{name}" if path else name
        return name

    def _refuse(self, parameters: object, name: str, what: str, what_to_do: str) -> None:
        raise TaskError(f"the parameter '{self._path(parameters, name)}' {what} (the trainer holds the parameters since its "
                        f"start, so that this would have no effect): {what_to_do}")

    def _refuse_additions(self) -> None:
        for name, parameter in self._module.named_parameters():
            if id(parameter) not in self._known:
                raise TaskError(f"the parameter '{name}' was added after the training began (the trainer holds the parameters "
                                "since its start, and would not train it): make all parts in `model`")
