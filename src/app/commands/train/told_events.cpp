#include "told_events.hpp"

#include "hetseq/util/json.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/state/run_listener.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/session/options/config_file_values.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/training.hpp"
#include "hetseq/app/commands.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

// Each option by its name, as config.cfg of the run has it.
Json options_of(const RunSettings& settings) {
    Json options = Json::object();
    for (const auto& [name, value] : config_file_values(settings.values(), settings.table()))
        options[name] = value;
    return options;
}

}  // namespace

void tell_start(const CommandContext& context,
                const RunSettings& settings,
                const Replica& replica,
                Training& training,
                const RunFolder* folder) {
    RunListener* const listener = context.parts.listener.get();
    if (listener == nullptr)
        return;
    agree_on(context.world, [&] {
        if (context.world.rank() != 0 || !listener->hears(ToldEvent::start))
            return;
        const Json info{{"options", options_of(settings)},
                        {"ranks", context.world.size()},
                        {"parameters", replica.parameter_count()},
                        {"samples", replica.plan().samples()},
                        {"updates_per_epoch", replica.plan().batches_per_epoch()},
                        {"update", training.updates_done()},
                        {"updates", training.length().updates},
                        {"run", folder != nullptr ? Json(folder->path().string()) : Json()}};
        listener->tell(ToldEvent::start, json_text(info));
    });
}

void tell_end(const CommandContext& context, const std::string& summary) {
    RunListener* const listener = context.parts.listener.get();
    if (listener == nullptr)
        return;
    agree_on(context.world, [&] {
        if (context.world.rank() != 0)
            return;
        if (listener->hears(ToldEvent::end))
            listener->tell(ToldEvent::end, summary);
        listener->finish();
    });
}

}  // namespace hetseq
