// Checkpoints: canonical bytes, and a reader that no bytes can lead astray.
#include "model/checkpoint.h"

#include <fmt/format.h>

#include "common/json.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

Chain tiny_chain() {
    return make_chain({"dense 2", "relu", "dense 3"}, {2});
}

/// 0.5, 1, 1.5, ...: numbers with few bits, so that the golden bytes can be written down.
ModelState counted(const Chain& chain) {
    ModelState state = ModelState::zeros(chain.table());
    for (std::size_t i = 0; i < state.trainable.values.size(); ++i) {
        state.trainable.values[i] = 0.5f * static_cast<float>(i + 1);
    }
    return state;
}

Bytes with_header(std::string_view header, ByteView data, std::uint64_t length) {
    ByteWriter writer;
    writer.put(length);
    writer.put_bytes(as_bytes(header));
    writer.put_bytes(data);
    return writer.take();
}

Bytes with_header(std::string_view header, ByteView data) {
    return with_header(header, data, header.size());
}

}  // namespace

TEST_CASE("a model comes back bit for bit, and its bytes are the same every time", "[unit][checkpoint]") {
    const Chain chain = make_chain({"flatten", "dense 33", "gelu", "dense 7"}, {5, 3});
    const ModelState state = initial_model(chain, 9);
    const Bytes bytes = to_safetensors(chain, state);
    REQUIRE(must(from_safetensors(chain, bytes)) == state);
    REQUIRE(to_safetensors(chain, must(from_safetensors(chain, bytes))) == bytes);
    REQUIRE(model_digest(chain, state) == sha256(bytes));
    const SavedModel saved = must(load_safetensors(bytes));
    REQUIRE(saved.chain == chain);
    REQUIRE(saved.state == state);
}

TEST_CASE("the version of an arena does not show in the bytes", "[unit][checkpoint]") {
    const Chain chain = tiny_chain();
    ModelState state = counted(chain);
    const Digest digest = model_digest(chain, state);
    state.trainable.version = 77;
    REQUIRE(model_digest(chain, state) == digest);
}

TEST_CASE("the bytes are golden: sorted header, no padding, chain order", "[golden][checkpoint]") {
    const Chain chain = tiny_chain();
    const Bytes bytes = to_safetensors(chain, counted(chain));
    const std::string header =
        R"({"__metadata__":{"architecture":"input 2; dense 2; relu; dense 3; loss cross-entropy"},)"
        R"("dense1.bias":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},)"
        R"("dense1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
        R"("dense2.bias":{"dtype":"F32","shape":[3],"data_offsets":[48,60]},)"
        R"("dense2.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[24,48]}})";
    REQUIRE(std::string(as_text(ByteView(bytes).subspan(8, header.size()))) == header);
    REQUIRE(bytes.size() == 8 + header.size() + 60);
    // Also what Python's struct, json and hashlib make of the same layout.
    REQUIRE(sha256(bytes).hex() == "27fb352fbed88cdf9e48079932e13f878eea2f64a953604dabd419925827ebe5");
}

TEST_CASE("other writers' order and padding of the same tensors are read too", "[unit][checkpoint]") {
    const Chain chain = make_chain({"dense 2"}, {1});
    const std::vector<float> data = {3, 4, 1, 2};
    const auto state =
        from_safetensors(chain, with_header(R"({"dense1.weight":{"shape":[2,1],"dtype":"F32","data_offsets":[8,16]},)"
                                            R"("dense1.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}    )",
                                            std::as_bytes(std::span(data))));
    REQUIRE(must(state).trainable.values == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("halves, bfloat16 and doubles of other writers become floats, without our metadata", "[unit][checkpoint]") {
    const Chain chain = make_chain({"dense 2"}, {1});
    const auto file = [](const char* dtype, auto values) {
        const auto bytes = std::as_bytes(std::span(values));
        const auto half = bytes.size() / 2;
        return with_header(fmt::format(R"({{"dense1.weight":{{"shape":[2,1],"dtype":"{0}","data_offsets":[0,{1}]}},)"
                                       R"("dense1.bias":{{"dtype":"{0}","shape":[2],"data_offsets":[{1},{2}]}}}})",
                                       dtype, half, bytes.size()),
                           bytes);
    };
    const std::vector<float> wanted{1, -2, 0.5f, 1.5f};
    CHECK(must(from_safetensors(chain, file("F16", std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3800, 0x3e00})))
              .trainable.values == wanted);
    CHECK(must(from_safetensors(chain, file("BF16", std::vector<std::uint16_t>{0x3f80, 0xc000, 0x3f00, 0x3fc0})))
              .trainable.values == wanted);
    CHECK(must(from_safetensors(chain, file("F64", std::vector<double>{1, -2, 0.5, 1.5}))).trainable.values == wanted);
    CHECK_THAT(from_safetensors(chain, file("F64", std::vector<double>{1, 1e300, 0, 0})).error().message,
               Catch::Contains("too large for F32"));
    CHECK_THAT(from_safetensors(chain, file("I32", std::vector<std::int32_t>{1, 2, 3, 4})).error().message,
               Catch::Contains("not F32, F16, BF16 or F64"));
    CHECK_FALSE(from_safetensors(chain, file("F16", wanted)));  // twice the bytes
}

TEST_CASE("every mismatch with the chain is listed", "[unit][checkpoint]") {
    const Bytes bytes = to_safetensors(tiny_chain(), counted(tiny_chain()));
    const Chain other = make_chain({"dense 2", "dense 4", "dense 3"}, {2});
    const auto state = from_safetensors(other, bytes);
    REQUIRE_FALSE(state);
    REQUIRE(state.error().code == "model_mismatch");
    REQUIRE_THAT(state.error().message, Catch::Contains("dense2.weight") && Catch::Contains("dense2.bias") &&
                                            Catch::Contains("dense3.weight is missing"));
    const Chain fewer = make_chain({"dense 2"}, {2});
    REQUIRE_THAT(from_safetensors(fewer, bytes).error().message, Catch::Contains("dense2.weight is not part"));
}

TEST_CASE("a truncated file is refused at every length", "[fuzz][checkpoint]") {
    const Chain chain = tiny_chain();
    const Bytes bytes = to_safetensors(chain, counted(chain));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const auto state = from_safetensors(chain, ByteView(bytes).first(size));
        REQUIRE_FALSE(state);
        REQUIRE(state.error().kind == ErrorKind::corrupt);
    }
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    REQUIRE_FALSE(from_safetensors(chain, longer));
}

TEST_CASE("a flipped bit in the header never gives another reading of the tensors", "[fuzz][checkpoint]") {
    const Chain chain = tiny_chain();
    const ModelState state = counted(chain);
    const Bytes bytes = to_safetensors(chain, state);
    const std::size_t header_end = bytes.size() - 4 * chain.parameter_count();
    for (std::size_t bit = 0; bit < 8 * header_end; ++bit) {
        Bytes flipped = bytes;
        flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
        const auto read = from_safetensors(chain, flipped);
        if (read) {  // only in what does not describe tensors: the metadata
            REQUIRE(*read == state);
        }
        static_cast<void>(load_safetensors(flipped));
    }
}

TEST_CASE("absurd sizes and offsets are refused without being believed", "[unit][checkpoint]") {
    const Chain chain = make_chain({"dense 2"}, {1});
    const std::vector<float> data = {1, 2, 3, 4};
    const auto bytes = std::as_bytes(std::span(data));
    const auto refused = [&](const Bytes& file) {
        const auto state = from_safetensors(chain, file);
        const auto loaded = load_safetensors(file);
        return !state && state.error().kind == ErrorKind::corrupt && !loaded;
    };
    REQUIRE(refused(with_header("{}", bytes, 1'000'000'000'000'000'000)));
    REQUIRE(refused(with_header("{}", bytes, UINT64_MAX)));
    REQUIRE(refused(with_header("{}", {}, 2)));
    REQUIRE(refused(with_header("[]", {}, 2)));
    REQUIRE(refused(with_header("{\"a\":", {})));
    REQUIRE(refused(with_header(std::string(40, '['), {})));
    const std::string bias = R"("dense1.bias":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
    for (const char* weight :
         {R"({"dense1.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,1000000000000000000]},)",
          R"({"dense1.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[-8,0]},)",
          R"({"dense1.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[8,0]},)",
          R"({"dense1.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},)",
          R"({"dense1.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0]},)",
          R"({"dense1.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,99999999999999999999]},)",
          R"({"dense1.weight":{"dtype":"F32","shape":[1000000000000000000,1],"data_offsets":[0,8]},)",
          R"({"dense1.weight":{"dtype":"F16","shape":[2,1],"data_offsets":[0,8]},)",
          R"({"dense1.weight":{"shape":[2,1],"data_offsets":[0,8]},)", R"({"dense1.weight":[0,8],)",
          R"({"dense1.weight":null,)", R"({"__metadata__":3,)"}) {
        CAPTURE(weight);
        REQUIRE(refused(with_header(weight + bias, bytes)));
    }
}

}  // namespace causeway
