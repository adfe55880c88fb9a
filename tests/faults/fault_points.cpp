// The fault points of hetseq_faulty: what HETSEQ_FAULT says happens there. It is a list with commas
// between, of
//     RANK:POINT:UPDATE:ACTION     UPDATE counted from 1; 5+ is 5 or any later one, * is any
// with the actions
//     throw           an exception that nobody expects
//     throw-in-thread the same in a thread of its own, where nobody catches it
//     kill            SIGKILL of this process
//     segv            a write to memory that is not its own
//     exit            the process leaves at once, with code 0
//     stop            SIGSTOP of this process
//     stall=SECONDS   nothing happens for so long
//     memory=N        takes N bytes of memory and keeps them
//     file-limit=N    no file of this process grows beyond N bytes, as a quota makes it
//     sh=COMMAND      a command of the shell, without colons and commas
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

struct Fault {
    std::string point;
    std::string update;
    std::string action;
};

int own_rank() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
        if (const char* value = std::getenv(name))
            return std::atoi(value);
    return 0;
}

std::vector<Fault> faults_of_this_rank() {
    std::vector<Fault> faults;
    const char* list = std::getenv("HETSEQ_FAULT");
    for (const std::string& text : split(list != nullptr ? list : "", ',')) {
        const auto fields = split(text, ':');
        if (fields.size() != 4) {
            std::fprintf(stderr, "HETSEQ_FAULT: '%s' is not RANK:POINT:UPDATE:ACTION\n", list);
            std::_Exit(1);
        }
        if (fields[0] == "*" || std::stoi(fields[0]) == own_rank())
            faults.push_back({fields[1], fields[2], fields[3]});
    }
    return faults;
}

bool is_meant(const std::string& updates, std::int64_t update) {
    if (updates == "*")
        return true;
    if (updates.ends_with('+'))
        return update >= std::stoll(updates);
    return updates == std::to_string(update);
}

void touch_foreign_memory() {
    const volatile std::uintptr_t place = 16;
    *reinterpret_cast<volatile int*>(place) = 1;
}

void stall(const std::string& seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(seconds)));
}

void take_memory(const std::string& bytes) {
    const auto* taken = new std::vector<char>(std::stoull(bytes), 1);
    std::fprintf(stderr, "%zu bytes taken\n", taken->size());
}

void limit_files(const std::string& bytes) {
    const rlimit limit{std::stoull(bytes), std::stoull(bytes)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
}

void run_command(const std::string& command) {
    if (std::system(command.c_str()) != 0)
        std::fprintf(stderr, "HETSEQ_FAULT: '%s' failed\n", command.c_str());
}

void act(const std::string& action) {
    const std::string name = action.substr(0, action.find('='));
    const std::string value = name.size() < action.size() ? action.substr(name.size() + 1) : "";
    if (name == "throw")
        throw std::runtime_error("a fault on purpose");
    if (name == "throw-in-thread")
        std::thread([] { throw std::runtime_error("a fault on purpose"); }).join();
    if (name == "kill")
        std::raise(SIGKILL);
    if (name == "stop") {
        std::raise(SIGSTOP);
        return;
    }
    if (name == "segv")
        touch_foreign_memory();
    if (name == "exit")
        std::_Exit(0);
    if (name == "stall")
        return stall(value);
    if (name == "memory")
        return take_memory(value);
    if (name == "file-limit")
        return limit_files(value);
    if (name == "sh")
        return run_command(value);
    std::fprintf(stderr, "HETSEQ_FAULT: there is no action '%s'\n", action.c_str());
    std::_Exit(1);
}

}  // namespace

void fault_point(const char* name, std::int64_t update) {
    static const std::vector<Fault> faults = faults_of_this_rank();
    for (const Fault& fault : faults)
        if (fault.point == name && is_meant(fault.update, update)) {
            const std::chrono::duration<double> now =
                std::chrono::system_clock::now().time_since_epoch();
            std::fprintf(stderr,
                         "fault point %s %lld: %s at %.3f\n",
                         name,
                         static_cast<long long>(update),
                         fault.action.c_str(),
                         now.count());
            act(fault.action);
        }
}

}  // namespace hetseq
