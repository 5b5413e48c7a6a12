// Shapes as text, and the table of a model's tensors.
#include <catch2/catch.hpp>

#include "kernels/tensor.h"

namespace causeway {

TEST_CASE("a shape has a count and a text", "[kernels]") {
    CHECK(element_count({}) == 1);
    CHECK(element_count({16, 3, 3, 1}) == 144);
    CHECK(element_count({16, 0}) == 0);
    CHECK(to_string(Shape{}) == "[]");
    CHECK(to_string(Shape{16, 3, 3, 1}) == "[16, 3, 3, 1]");
}

TEST_CASE("a table finds tensors by name and by element, arena by arena", "[kernels]") {
    const TensorTable table{{{.name = "w", .shape = {2, 3}, .offset = 0},
                             {.name = "mean", .shape = {5}, .arena = ArenaKind::buffers, .offset = 0},
                             {.name = "b", .shape = {2}, .offset = 6}}};
    CHECK(table.arena_size(ArenaKind::trainable) == 8);
    CHECK(table.arena_size(ArenaKind::buffers) == 5);
    CHECK(table.arena_size(ArenaKind::frozen) == 0);
    CHECK(table.at(ArenaKind::trainable, 5)->name == "w");
    CHECK(table.at(ArenaKind::trainable, 6)->name == "b");
    CHECK(table.at(ArenaKind::trainable, 8) == nullptr);
    CHECK(table.at(ArenaKind::buffers, 4)->name == "mean");
    CHECK(table.find("b")->range() == Range{6, 8});
    CHECK(table.find("c") == nullptr);
}

TEST_CASE("names of types and arenas are stable: they are written to files", "[kernels]") {
    CHECK(to_string(DType::f32) == "f32");
    CHECK(to_string(DType::i64) == "i64");
    CHECK(to_string(DType::u8) == "u8");
    CHECK(to_string(ArenaKind::trainable) == "trainable");
    CHECK(to_string(ArenaKind::buffers) == "buffers");
    CHECK(to_string(ArenaKind::frozen) == "frozen");
}

}  // namespace causeway
