#include "hetseq/comm/mailbox.hpp"

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

TEST(MailboxTest, MessagesArriveWholeAndInOrder) {
    const HostComm& world = test::world();
    Mailbox mailbox(world);
    const int count = 20;

    if (world.rank() != 0) {
        for (int i = 0; i < count; ++i)
            mailbox.send(0,
                         std::string(static_cast<std::size_t>(i) * 10'000,
                                     'a' + static_cast<char>(world.rank())));
        const Mailbox::Message answer = mailbox.wait();
        EXPECT_EQ(answer.from, 0);
        EXPECT_EQ(answer.bytes, "");
    } else {
        std::vector<std::size_t> got(static_cast<std::size_t>(world.size()), 0);
        for (int left = (world.size() - 1) * count; left > 0; --left) {
            const Mailbox::Message message = mailbox.wait();
            std::size_t& number = got[static_cast<std::size_t>(message.from)];
            EXPECT_EQ(message.bytes,
                      std::string(number * 10'000, 'a' + static_cast<char>(message.from)));
            ++number;
        }
        for (int rank = 1; rank < world.size(); ++rank)
            mailbox.send(rank, {});
    }
    mailbox.flush();
    EXPECT_FALSE(mailbox.receive().has_value());
}

}  // namespace
}  // namespace hetseq
