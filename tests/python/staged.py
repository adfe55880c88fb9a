"""A task's module cut into stages in one process, as the trainer runs them on several ranks."""

import contextlib
import json

import torch

from hetseq import bridge

SEED, UPDATE = 5, 2


class Staged:
    """One binding of the task. Each stage's forward and backward have its parameters alone."""

    def __init__(self, task, batch, seed=1, recompute=0):
        self.task = task
        self.binding = bridge.Binding(task, "")
        choices = {"model_config": "", "init_model": "", "data": "", "seed": seed, "dropout": None, "attention_dropout": None,
                   "options": {}}
        self.description = json.loads(self.binding.model(json.dumps(choices))[0])
        self.module = self.binding.module
        self.recompute = recompute
        try:
            units, self.said = self.binding.find_chain(list(batch), list(batch.values()))
        except BaseException:
            self.end()
            raise
        self.units = json.loads(units)
        self.autocast = contextlib.nullcontext  # of a forward
        self.parameters = dict(self.module.named_parameters())

    def end(self):
        self.binding.end()

    def names(self, begin, end):
        return {name for unit in self.units[begin:end] for name in unit["parameters"]}

    @contextlib.contextmanager
    def holding(self, begin, end):
        """The trainer has given up all other parameters."""
        held = self.names(begin, end)
        values = {name: parameter.data for name, parameter in self.parameters.items()}
        for name, parameter in self.parameters.items():
            if name not in held:
                parameter.data = parameter.data.new_zeros(()).expand(parameter.shape)
        try:
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.data = values[name]

    def enter(self, ids, training, groups=()):
        torch.ops.hetseq.enter_forward(SEED, UPDATE, ids, training, list(groups))

    def whole(self, batches, training=True, groups=None):
        """Losses (and metrics) of each micro-batch, and the summed gradients by parameter."""
        self.clear()
        self.binding.recompute(self.recompute, 0, 0)
        sums = []
        for number, (ids, batch) in enumerate(batches):
            self.enter(ids, training, groups[number] if groups else ())
            with torch.set_grad_enabled(training), self.autocast():
                made = self.binding.forward(list(batch), list(batch.values()), training)
            if training:
                sum(made).backward()
            sums.append([value.detach() for value in made])
        return sums, self.gradients()

    def clear(self):
        for parameter in self.parameters.values():
            parameter.grad = None

    def gradients(self):
        return {name: parameter.grad.clone() for name, parameter in self.parameters.items() if parameter.grad is not None}

    def forward(self, begin, end, ids, batch, carried, training=True, groups=()):
        with self.holding(begin, end):
            self.binding.recompute(min(self.recompute, 99), begin, end)
            self.enter(ids, training, groups)
            with torch.set_grad_enabled(training), self.autocast():
                return self.binding.run_units(list(batch), list(batch.values()), training, begin, end, carried)

    def cut(self, borders, batches, training=True, groups=None, most_in_flight=2):
        """The same as `whole`, by stages [0, borders[0]), [borders[0], borders[1]) and so on. `most_in_flight` micro-batches
        are forwarded before the first goes back."""
        ends = [*borders, len(self.units)]
        stages = list(zip([0, *borders], ends))
        grads = [{} for _ in stages]  # by stage
        sums, flights = [], []
        for number, (ids, batch) in enumerate(batches):
            sent, flight = [], []
            for begin, end in stages:
                given = [tensor.detach().clone().requires_grad_(training) for tensor in sent]
                # What comes from another process is a leaf, of which the trainer gives a view.
                sent = self.forward(begin, end, ids, batch, [tensor.view_as(tensor) for tensor in given], training,
                                    groups[number] if groups else ())
                flight.append((given, sent))
            sums.append([value.detach() for value in sent])
            flights.append(flight)
            if training and len(flights) == most_in_flight:
                self.backward(stages, flights.pop(0), grads)
        for flight in flights if training else []:
            self.backward(stages, flight, grads)
        self.check_own(stages, grads)
        total = {}
        for of_stage in reversed(grads):
            for name, gradient in of_stage.items():
                total[name] = total[name] + gradient if name in total else gradient
        return sums, total

    def backward(self, stages, flight, grads):
        gradient = None
        for place in reversed(range(len(stages))):
            given, made = flight[place]
            self.clear()
            for name, own in grads[place].items():
                self.parameters[name].grad = own
            with self.holding(*stages[place]):
                if gradient is None:
                    sum(made).backward()
                elif made[0].requires_grad:
                    made[0].backward(gradient)
            grads[place] = {name: p.grad for name, p in self.parameters.items() if p.grad is not None}
            gradient = given[0].grad if given else None
            if place and gradient is None:
                return

    def check_own(self, stages, grads):
        for (begin, end), of_stage in zip(stages, grads):
            foreign = set(of_stage) - self.names(begin, end)
            assert not foreign, f"stage {begin}-{end} gave gradients to {sorted(foreign)}"
