// What leaves a node when it does what it is asked to, and who gets it: what its policy judges.
//
// Read from the texts that the node itself parses and works by (the program above all), never from the name that the
// coordinator gives the regime: a name can only be compared with what the program turns out to be. Pure, any thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "wire/identity.h"
#include "wire/message.h"

namespace causeway::node {

/// What the coordinator wants: work of a round, or a model measured on the examples that are held out here.
enum class Asked : std::uint8_t { work, figures };

enum class Leaving : std::uint8_t {
    parameters,   // an update, or the segment that a turn has trained
    activations,  // of the node's examples, or of what others sent it
    gradients,
    labels,      // each example's
    statistics,  // sums of the columns of the training part
    figures,     // loss, accuracy and the like, and the number of examples
};
[[nodiscard]] std::string_view to_string(Leaving what);

enum class Receiver : std::uint8_t { coordinator, node };

struct Leaves {
    struct Item {
        Leaving what = Leaving::parameters;
        Receiver to = Receiver::coordinator;
        auto operator<=>(const Item&) const = default;
    };
    std::set<Item> items;
    bool raw_inputs = false;  // activations of no layer that learns are among them
    std::vector<std::string> regimes;  // presets with such a program; of no program, and of an unknown one, none

    [[nodiscard]] bool has(Leaving what, Receiver to) const { return items.contains({what, to}); }
    /// Anything goes to another node.
    [[nodiscard]] bool to_nodes() const;
    /// "activations and labels to other nodes, parameters to the coordinator"
    [[nodiscard]] std::string text() const;
};

/// errors  invalid: the architecture or the program, or a program that does not fit the architecture
/// cost    parses both, and compiles each flow once per stage
[[nodiscard]] Result<Leaves> what_leaves(const Assign& assign, Asked asked);

/// Whether cells of nodes of these roles exchange anything: a client's and a host's. Whoever else a roster names is
/// given no stream.
[[nodiscard]] bool streams_with(Role own, std::string_view other);

}  // namespace causeway::node
