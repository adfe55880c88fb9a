#include "hetseq/app/program_agreement.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "hetseq/version.hpp"

namespace hetseq {

std::string program_text() {
    return std::string("hetseq ") + version::number + " (" + version::revision + ", LibTorch " +
           version::libtorch + ")";
}

void agree_on_program(const HostComm& world, const std::string& program) {
    const std::string first = world.broadcast(program, 0);
    agree_on(world, [&] {
        if (program != first)
            throw BadConfig("the program differs over ranks",
                            "here it is " + program + ", on rank 0 " + first,
                            "start one version on all hosts");
    });
}

}  // namespace hetseq
