#include "hetseq/options/options_of.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

struct Wheel {
    double radius = 0;
    bool is_spoked = false;
};

struct Cart {
    std::int64_t wheels = 0;
    Wheel wheel;
    std::string load;
};

OptionsOf<Wheel> wheel_options() {
    return OptionsOf<Wheel>()
        .heading("Wheels")
        .add(&Wheel::radius, number_option("radius", "0.5", "of a wheel", 0, 2))
        .add(&Wheel::is_spoked, switch_option("spoked", "with spokes"));
}

OptionsOf<Cart> cart_options() {
    return OptionsOf<Cart>()
        .heading("Cart")
        .add(&Cart::wheels, whole_number_option("wheels", "4", "how many", 1, 8))
        .add(&Cart::wheel, wheel_options())
        .apply(text_option("load", "WHAT", "hay", "what it holds"),
               [](Cart& cart, const std::string& load) { cart.load = load + "!"; });
}

TEST(OptionsOfTest, WhatIsNotGivenHasItsDefault) {
    const Cart cart = cart_options().read({{"radius", "1.5"}, {"spoked", "true"}});

    EXPECT_EQ(cart.wheels, 4);
    EXPECT_EQ(cart.wheel.radius, 1.5);
    EXPECT_TRUE(cart.wheel.is_spoked);
    EXPECT_EQ(cart.load, "hay!");
}

TEST(OptionsOfTest, AnErrorNamesTheOptionAndItsRange) {
    try {
        cart_options().read({{"radius", "3"}});
        ADD_FAILURE() << "a radius of 3 was accepted";
    } catch (const BadConfig& error) {
        EXPECT_STREQ(error.what(), "--radius: '3' is not a number from 0 to 2 (of a wheel)");
    }
}

TEST(OptionsOfTest, AnOptionIsFoundByTheMemberThatItBecomes) {
    const Cart cart;

    EXPECT_EQ(cart_options().at(cart, &cart.wheels).name, "wheels");
    EXPECT_EQ(cart_options().at(cart, &cart.wheel.is_spoked).name, "spoked");
    EXPECT_THROW(cart_options().at(cart, &cart.load), InternalError);
}

TEST(OptionsOfTest, PartsKeepTheirHeadings) {
    const OptionTable table = cart_options().table();

    EXPECT_EQ(find_option(table, "wheels")->group, "Cart");
    EXPECT_EQ(find_option(table, "radius")->group, "Wheels");
    EXPECT_EQ(find_option(table, "load")->group, "Cart");
    EXPECT_EQ(find_option(table, "wings"), nullptr);
}

}  // namespace
}  // namespace hetseq
