#include "hetseq/train/record/lease.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"
#include "hetseq/util/text.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

constexpr std::size_t most_digits = 19;

}  // namespace

bool LeaseHolder::can_see(const LeaseHolder& other) const {
    return !pid_namespace.empty() && host == other.host && boot == other.boot &&
           pid_namespace == other.pid_namespace;
}

std::string LeaseHolder::text() const {
    return "process " + std::to_string(pid) + " on " + host +
           (job.empty() ? "" : " (job " + job + ")");
}

std::string lease_json(const Lease& lease) {
    const LeaseHolder& holder = lease.holder;
    const nlohmann::ordered_json json{{"token", holder.token},
                                      {"host", holder.host},
                                      {"boot", holder.boot},
                                      {"pid_namespace", holder.pid_namespace},
                                      {"pid", holder.pid},
                                      {"process_start", holder.process_start},
                                      {"job", holder.job},
                                      {"chain", holder.chain},
                                      {"restarted", holder.restarted}};
    const std::string beats = std::to_string(lease.beats);
    return "{\"beats\": " + std::string(most_digits - std::min(most_digits, beats.size()), ' ') +
           beats + ",\n \"holder\": " + json_text(json) + "}\n";
}

std::optional<Lease> parse_lease(const std::string& text) {
    try {
        const auto json = parse_json<nlohmann::json>(text);
        const auto& holder = json.at("holder");
        const auto word = [&](const char* name) { return holder.at(name).get<std::string>(); };
        Lease lease;
        lease.holder = {word("token"),
                        word("host"),
                        word("boot"),
                        word("pid_namespace"),
                        holder.at("pid").get<std::int64_t>(),
                        holder.at("process_start").get<std::int64_t>(),
                        word("job"),
                        holder.value("chain", std::string{}),
                        holder.value("restarted", std::int64_t{0})};
        lease.beats = json.at("beats").get<std::int64_t>();
        return lease;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

LeaseJudge::LeaseJudge(LeaseHolder self,
                       LeaseTimes times,
                       std::function<bool(const LeaseHolder&)> is_alive)
    : self_{std::move(self)}, times_{times}, is_alive_{std::move(is_alive)} {}

// A process that was suspended saw nothing in that time, and so cannot say that nothing happened.
void LeaseJudge::see(const std::string& text, double now) {
    const double passed = has_looked_ ? std::min(now - looked_at_, 3 * times_.look_s) : 0;
    has_looked_ = true;
    looked_at_ = now;
    waited_s_ += passed;
    still_s_ += passed;
    const std::optional<Lease> lease = parse_lease(text);
    const std::string token = lease ? lease->holder.token : "";
    if (text_ != text) {
        is_beating_ = text_.has_value() && token == token_ && lease;
        still_s_ = 0;
    }
    text_ = text;
    token_ = token;
}

LeaseJudge::Verdict LeaseJudge::conclude(Verdict verdict, std::string why) {
    why_ = std::move(why);
    return verdict;
}

LeaseJudge::Verdict LeaseJudge::judge(const std::optional<std::string>& text, double now) {
    if (!text)
        return conclude(Verdict::take, "");
    see(*text, now);
    const std::optional<Lease> lease = parse_lease(*text);
    const std::string who = lease ? lease->holder.text() : "a process";
    const auto is_own = [&](std::string LeaseHolder::*id) {
        return !(self_.*id).empty() && lease->holder.*id == self_.*id;
    };
    same_job_ = lease && (is_own(&LeaseHolder::job) || is_own(&LeaseHolder::chain));
    if (lease && self_.can_see(lease->holder) && !is_alive_(lease->holder))
        return conclude(Verdict::take, who + " is gone");
    const bool is_of_this_job =
        lease && (self_.job.empty() ? lease->holder.job.empty() && is_own(&LeaseHolder::chain)
                                    : is_own(&LeaseHolder::job));
    if (is_of_this_job && lease->holder.restarted < self_.restarted)
        return conclude(Verdict::take, who + " was of an earlier start of this job");
    if (still_s_ >= times_.still_s)
        return conclude(Verdict::take,
                        who + " gave no sign of life for " + format_number(times_.still_s) + " s");
    if (is_beating_ && (!same_job_ || waited_s_ >= times_.same_job_s))
        return conclude(Verdict::refuse, who + " trains into it");
    return conclude(Verdict::wait, who + " has it");
}

}  // namespace hetseq
