#include "hetseq/train/pipeline/pipeline_pass.hpp"

#include <cstdint>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/profiler_range.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/train/gradient_reducer.hpp"

#include "train/normalised_loss.hpp"
#include "train/out_of_memory.hpp"

namespace hetseq {

namespace {

using Tensors = std::vector<at::Tensor>;

// Those that gradients belong to.
Tensors with_gradients(const Tensors& tensors) {
    Tensors chosen;
    for (const at::Tensor& tensor : tensors)
        if (tensor.requires_grad())
            chosen.push_back(tensor);
    return chosen;
}

// The receiver's are leaves of a graph of its own. Whether they need gradients depends on the
// model, and not on what one micro-batch came to.
Tensors as_sent(const Tensors& tensors, bool train) {
    Tensors sent;
    for (const at::Tensor& tensor : tensors)
        sent.push_back(tensor.detach().set_requires_grad(train && tensor.is_floating_point()));
    return sent;
}

// A micro-batch between its forward and its backward.
struct Flight {
    Tensors inputs = {};   // that the stage in front sent
    Tensors outputs = {};  // with their graphs: what the next stage got, or the loss
    bool is_lost = false;
};

class PipelinePass final : public Pass {
public:
    PipelinePass(Model& model, const Stage& stage, const HostComm& world, PeerChannel& channel)
        : Pass{model}, stage_{stage}, world_{world}, channel_{channel} {}

    void forward_backward(const Work& work,
                          GradientReducer& reducer,
                          UpdateStatus& status) override {
        const KeptCasts casts{model().arithmetic()};
        begin();
        std::size_t forwards = work.begin, backwards = work.begin;
        while (backwards < work.end) {
            const bool goes_forward =
                forwards < work.end && forwards - backwards < stage_.most_in_flight;
            if (goes_forward)
                forward_one(work, forwards++, status);
            else
                backward_one(work, backwards++, reducer);
        }
        await_those_behind();
        traffic_ = channel_.take_traffic();
        end();
    }

    void forward(const LoadedShare& share,
                 const ForwardContext& context,
                 const Take& take) override {
        const at::NoGradGuard no_grad;
        const KeptCasts casts{model().arithmetic()};
        begin();
        for (std::size_t i = 0; i < share.micro_batches().size(); ++i) {
            const Tensors inputs = received_input();
            Tensors outputs;
            attempt(stage_.is_first() || !inputs.empty(), [&] {
                const MicroBatch micro_batch = share.on_device(share.micro_batches()[i]);
                const Carried carried =
                    run_chain_units(model(), stage_.units, {inputs}, micro_batch, context);
                outputs = carried.tensors;
                if (stage_.is_last())
                    take(micro_batch, carried.result);
            });
            send_on(outputs, false);
        }
        end();
    }

    bool is_shared() const noexcept override { return true; }
    double waited_ms() const noexcept override { return traffic_.waited_ms; }
    double sent_mb() const noexcept override {
        return static_cast<double>(traffic_.bytes_sent) / bytes_of_mib;
    }

    MicroBatchCap agreed_cap(const std::function<MicroBatchCap()>& own) override {
        const MicroBatchCap cap = agree_on(world_, own);
        return {.samples = world_.all_reduce(cap.samples, ReduceOp::min),
                .tokens = world_.all_reduce(cap.tokens, ReduceOp::min)};
    }

    bool is_so_on_any(bool own) override {
        return world_.all_reduce(std::int64_t{own}, ReduceOp::max) > 0;
    }
    bool holds_on_any(bool own) override { return is_so_on_any(own) && stage_.is_last(); }

private:
    void begin() {
        static_cast<void>(channel_.take_traffic());
        is_broken_ = false;
        failure_ = nullptr;
        flights_.clear();
    }

    void end() {
        HETSEQ_ASSERT(flights_.empty());
        if (failure_)
            std::rethrow_exception(std::exchange(failure_, nullptr));
    }

    // From the first failure on there is nothing to compute. Only those of memory are waited with:
    // the job ends with others.
    template <class Compute>
    void attempt(bool has_input, const Compute& compute) {
        is_broken_ = is_broken_ || !has_input;
        if (is_broken_)
            return;
        try {
            compute();
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
            break_off();
        }
    }

    // The one at which this stage broke off stays the one that is judged.
    void take_up(std::size_t i) {
        if (!is_broken_)
            enter(i);
    }

    void break_off() {
        failure_ = std::current_exception();
        is_broken_ = true;
    }

    // The first stage tells how long all of them took, also where no gradient comes back to it. The
    // stage where gradients end sends word in their place.
    void await_those_behind() {
        if (!stage_.is_last() && !stage_.gets_gradients)
            static_cast<void>(received(stage_.next));
        if (!stage_.is_first() && !stage_.sends_gradients)
            channel_.start_send(stage_.previous, {});
    }

    // A stage that gets no gradients from behind is held back by nothing else: it would compute all
    // micro-batches at once, and what waits to be sent would fill its memory.
    void send_on(const Tensors& outputs, bool gets_gradients) {
        if (stage_.is_last())
            return;
        if (!gets_gradients)
            channel_.wait_for_sends(stage_.next, stage_.most_in_flight);
        send(stage_.next, [&] { return as_sent(outputs, gets_gradients); });
    }

    // The other stages wait for what there is no memory to send, too.
    template <class Make>
    void send(int to, const Make& tensors) {
        attempt(true, [&] { channel_.start_send(to, tensors()); });
        if (is_broken_)
            channel_.start_send(to, {});
    }

    // A message that the device has no memory for stays the next one. The other stages wait for
    // what comes of it, so it is taken into the memory of the graphs and the converted parameters,
    // which are of no use any more.
    Tensors received(int from) {
        try {
            return channel_.receive(from);
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
            break_off();
        }
        for (Flight& flight : flights_)
            flight = {.is_lost = true};
        KeptCasts::drop();
        try {
            return channel_.receive(from);
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
        }
        throw DeviceError("this device has no memory for what another stage sends",
                          "nothing but its stage of the model lies there",
                          "use smaller micro-batches, or give the stage fewer units");
    }
    Tensors received_input() { return stage_.is_first() ? Tensors{} : received(stage_.previous); }

    void forward_one(const Work& work, std::size_t i, UpdateStatus& status) {
        const ProfilerRange range{"forward", static_cast<std::int64_t>(i)};
        take_up(i);
        Flight flight{.inputs = received_input(), .outputs = {}};
        attempt(stage_.is_first() || !flight.inputs.empty(), [&] {
            const MicroBatch micro_batch = work.share.on_device(work.share.micro_batches()[i]);
            const Carried carried =
                run_chain_units(model(), stage_.units, {flight.inputs}, micro_batch, work.context);
            flight.outputs = carried.tensors;
            if (stage_.is_last())
                if (const at::Tensor loss = normalised_loss(carried.result, work.weights, status);
                    loss.defined())
                    flight.outputs = {loss};
        });
        send_on(flight.outputs, stage_.gets_gradients);
        if (is_broken_)
            flight = {.is_lost = true};
        flights_.push_back(std::move(flight));
    }

    void backward_one(const Work& work, std::size_t i, GradientReducer& reducer) {
        const ProfilerRange range{"backward", static_cast<std::int64_t>(i)};
        Flight flight = std::move(flights_.front());
        flights_.pop_front();
        take_up(i);
        const Tensors gradients = stage_.gets_gradients ? received(stage_.next) : Tensors{};
        attempt(!flight.is_lost && (!stage_.gets_gradients || !gradients.empty()), [&] {
            if (work.reduces && i + 1 == work.end)
                reducer.arm();
            reducer.add_gradients_of([&] { backward_of(flight, gradients, work.loss_scale); });
        });
        if (stage_.sends_gradients)
            send(stage_.previous, [&] { return gradients_of(flight.inputs); });
    }

    void backward_of(const Flight& flight, const Tensors& gradients, double loss_scale) const {
        if (stage_.is_last()) {
            for (const at::Tensor& loss : flight.outputs)
                if (loss.requires_grad())
                    backward_scaled(loss, loss_scale);
            return;
        }
        // In the order of the outputs that were sent with a place for gradients.
        Tensors outputs, of_outputs;
        std::size_t next = 0;
        for (const at::Tensor& output : flight.outputs)
            if (stage_.gets_gradients && output.is_floating_point()) {
                const at::Tensor& gradient = gradients.at(next++);
                if (output.requires_grad()) {
                    outputs.push_back(output);
                    of_outputs.push_back(gradient);
                }
            }
        if (!outputs.empty())
            torch::autograd::backward(outputs, of_outputs);
    }

    // Zeros where nothing came of one: a micro-batch may have no loss.
    static Tensors gradients_of(const Tensors& inputs) {
        Tensors gradients;
        for (const at::Tensor& input : with_gradients(inputs))
            gradients.push_back(input.grad().defined() ? input.grad() : at::zeros_like(input));
        return gradients;
    }

    Stage stage_;
    const HostComm& world_;
    PeerChannel& channel_;
    std::deque<Flight> flights_;
    bool is_broken_ = false;        // a stage ran out of memory
    std::exception_ptr failure_;    // where it was this one
    PeerChannel::Traffic traffic_;  // of the last forward and backward
};

}  // namespace

std::unique_ptr<Pass> make_pipeline_pass(Model& model,
                                         const Stage& stage,
                                         const HostComm& world,
                                         PeerChannel& channel) {
    return std::make_unique<PipelinePass>(model, stage, world, channel);
}

}  // namespace hetseq
