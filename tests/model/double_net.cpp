// Each kind by its definition, slowly. Values are row-major, images [height, width, channels], the batch in front.
#include "tests/model/double_net.h"

#include <cmath>
#include <numbers>
#include <sstream>

namespace causeway {
namespace {

struct Values {
    std::size_t rows = 0;
    Shape shape;  // of one row
    std::vector<double> at;

    [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(element_count(shape)); }
    [[nodiscard]] std::size_t channels() const { return static_cast<std::size_t>(shape.back()); }
};

/// The parameters in their order: each layer takes its own.
struct Parameters {
    std::span<const double> rest;
    std::span<const double> take(std::size_t count) {
        const auto taken = rest.first(count);
        rest = rest.subspan(count);
        return taken;
    }
};

struct DoubleWindow {
    std::int64_t height = 1, width = 1, stride = 1, above = 0, left = 0, below = 0, right = 0, groups = 1;
    bool bias = true;
};

/// "3x3 stride 2 pad 1 groups 2 nobias"; a convolution's padding is `same` where nothing else is said.
DoubleWindow window_of(std::istream& words, bool convolution) {
    DoubleWindow w;
    std::string word;
    words >> word;
    const auto cross = word.find('x');
    w.height = std::stoll(word);
    w.width = cross == std::string::npos ? w.height : std::stoll(word.substr(cross + 1));
    w.stride = convolution ? 1 : w.height;
    if (convolution) {
        w.above = (w.height - 1) / 2, w.below = w.height / 2, w.left = (w.width - 1) / 2, w.right = w.width / 2;
    }
    while (words >> word) {
        if (word == "valid") {
            w.above = w.below = w.left = w.right = 0;
        } else if (word == "nobias") {
            w.bias = false;
        } else {
            std::int64_t number = 0;
            words >> number;
            if (word == "stride") {
                w.stride = number;
            } else if (word == "groups") {
                w.groups = number;
            } else {
                w.above = w.below = w.left = w.right = number;
            }
        }
    }
    return w;
}

Values sized(const Values& x, Shape shape) {
    Values y{.rows = x.rows, .shape = std::move(shape), .at = {}};
    y.at.resize(y.rows * y.width());
    return y;
}

/// Calls visit(output index, row, out channel, list of (place in the window, index of its first channel in x)).
template <class Visit>
void each_window(const Values& x, const DoubleWindow& w, const Values& y, Visit visit) {
    const auto height = x.shape[0], width = x.shape[1], channels = x.shape[2], outputs = y.shape[2];
    for (std::size_t i = 0; i < y.at.size(); ++i) {
        const auto index = static_cast<std::int64_t>(i);
        const auto o = index % outputs, s = index / outputs % y.shape[1], r = index / outputs / y.shape[1] % y.shape[0];
        const auto row = index / outputs / y.shape[1] / y.shape[0];
        std::vector<std::pair<std::int64_t, std::int64_t>> places;
        for (std::int64_t p = 0; p < w.height; ++p) {
            for (std::int64_t q = 0; q < w.width; ++q) {
                const auto a = r * w.stride - w.above + p, b = s * w.stride - w.left + q;
                if (a >= 0 && a < height && b >= 0 && b < width) {
                    places.emplace_back(p * w.width + q, ((row * height + a) * width + b) * channels);
                }
            }
        }
        visit(i, o, places);
    }
}

Shape after(const Values& x, const DoubleWindow& w, std::int64_t outputs) {
    return {(x.shape[0] + w.above + w.below - w.height) / w.stride + 1,
            (x.shape[1] + w.left + w.right - w.width) / w.stride + 1, outputs};
}

Values conv(const Values& x, std::int64_t filters, const DoubleWindow& w, Parameters& theta) {
    const auto inputs = x.shape[2] / w.groups;
    const auto weights = theta.take(static_cast<std::size_t>(filters * w.height * w.width * inputs));
    const auto bias = theta.take(w.bias ? static_cast<std::size_t>(filters) : 0);
    Values y = sized(x, after(x, w, filters));
    each_window(x, w, y, [&](std::size_t i, std::int64_t o, const auto& places) {
        double sum = w.bias ? bias[static_cast<std::size_t>(o)] : 0;
        for (const auto& [place, first] : places) {
            for (std::int64_t c = 0; c < inputs; ++c) {
                const auto from = static_cast<std::size_t>(first + o / (filters / w.groups) * inputs + c);
                sum += x.at[from] * weights[static_cast<std::size_t>((o * w.height * w.width + place) * inputs + c)];
            }
        }
        y.at[i] = sum;
    });
    return y;
}

enum class Pooling { largest, mean };

Values pool(const Values& x, const DoubleWindow& w, Pooling rule) {
    Values y = sized(x, after(x, w, x.shape[2]));
    each_window(x, w, y, [&](std::size_t i, std::int64_t c, const auto& places) {
        double sum = 0, most = -INFINITY;
        for (const auto& [place, first] : places) {
            const double value = x.at[static_cast<std::size_t>(first + c)];
            sum += value;
            most = std::max(most, value);
        }
        y.at[i] = rule == Pooling::largest ? most : sum / static_cast<double>(w.height * w.width);
    });
    return y;
}

Values dense(const Values& x, std::size_t outputs, Parameters& theta) {
    const auto weights = theta.take(outputs * x.width());
    const auto bias = theta.take(outputs);
    Values y = sized(x, {static_cast<std::int64_t>(outputs)});
    for (std::size_t row = 0; row < x.rows; ++row) {
        for (std::size_t o = 0; o < outputs; ++o) {
            double sum = bias[o];
            for (std::size_t i = 0; i < x.width(); ++i) {
                sum += weights[o * x.width() + i] * x.at[row * x.width() + i];
            }
            y.at[row * outputs + o] = sum;
        }
    }
    return y;
}

/// Values that share a mean are those to which `set_of(row, channel, place)` gives one number.
template <class SetOf>
Values norm(const Values& x, std::size_t sets, Parameters& theta, SetOf set_of) {
    const std::size_t channels = x.channels();
    const auto gamma = theta.take(channels);
    const auto beta = theta.take(channels);
    std::vector<double> count(sets), mean(sets), variance(sets);
    const auto each = [&](auto visit) {
        for (std::size_t i = 0; i < x.at.size(); ++i) {
            visit(i, set_of(i / x.width(), i % channels, i / channels), i % channels);
        }
    };
    each([&](std::size_t i, std::size_t set, std::size_t) { mean[set] += x.at[i], count[set] += 1; });
    for (std::size_t set = 0; set < sets; ++set) {
        mean[set] /= count[set];
    }
    each([&](std::size_t i, std::size_t set, std::size_t) { variance[set] += std::pow(x.at[i] - mean[set], 2); });
    Values y = x;
    each([&](std::size_t i, std::size_t set, std::size_t c) {
        y.at[i] = (x.at[i] - mean[set]) / std::sqrt(variance[set] / count[set] + 1e-5) * gamma[c] + beta[c];
    });
    return y;
}

Values group_norm(const Values& x, std::size_t groups, Parameters& theta) {
    const std::size_t each = x.channels() / groups;
    return norm(x, x.rows * groups, theta,
                [=](std::size_t row, std::size_t c, std::size_t) { return row * groups + c / each; });
}

/// groups 0: batch norm.
Values block_norm(const Values& x, std::size_t groups, Parameters& theta) {
    return groups > 0 ? group_norm(x, groups, theta)
                      : norm(x, x.channels(), theta, [](std::size_t, std::size_t c, std::size_t) { return c; });
}

Values activated(Values x, std::string_view kind) {
    for (double& value : x.at) {
        value = kind == "relu"   ? std::max(value, 0.0)
                : kind == "silu" ? value / (1 + std::exp(-value))
                                 : 0.5 * value * std::erfc(-value / std::numbers::sqrt2);
    }
    return x;
}

/// "64 stride 2 groupnorm 8": He et al. 2016, the basic block.
Values residual(const Values& x, std::istream& words, Parameters& theta) {
    std::int64_t filters = 0, stride = 1;
    std::size_t groups = 0;
    words >> filters;
    for (std::string word; words >> word;) {
        word == "stride" ? words >> stride : words >> groups;
    }
    const DoubleWindow first{
        .height = 3, .width = 3, .stride = stride, .above = 1, .left = 1, .below = 1, .right = 1, .bias = false};
    DoubleWindow second = first;
    second.stride = 1;
    Values y = activated(block_norm(conv(x, filters, first, theta), groups, theta), "relu");
    y = block_norm(conv(y, filters, second, theta), groups, theta);
    Values beside = x;
    if (stride != 1 || x.shape[2] != filters) {
        beside = block_norm(conv(x, filters, {.stride = stride, .bias = false}, theta), groups, theta);
    }
    for (std::size_t i = 0; i < y.at.size(); ++i) {
        y.at[i] += beside.at[i];
    }
    return activated(std::move(y), "relu");
}

Values layer(const std::string& text, const Values& x, Parameters& theta) {
    std::istringstream words(text);
    std::string kind;
    std::int64_t count = 0;
    words >> kind;
    if (kind == "conv") {
        words >> count;
        return conv(x, count, window_of(words, true), theta);
    }
    if (kind == "dense") {
        words >> count;
        return dense(x, static_cast<std::size_t>(count), theta);
    }
    if (kind == "maxpool" || kind == "avgpool") {
        return pool(x, window_of(words, false), kind == "maxpool" ? Pooling::largest : Pooling::mean);
    }
    if (kind == "globalavgpool") {
        Values y = pool(x, {.height = x.shape[0], .width = x.shape[1]}, Pooling::mean);
        y.shape = {x.shape[2]};
        return y;
    }
    if (kind == "flatten") {
        Values y = x;
        y.shape = {element_count(x.shape)};
        return y;
    }
    if (kind == "groupnorm") {
        words >> count;
        return group_norm(x, static_cast<std::size_t>(count), theta);
    }
    if (kind == "layernorm") {  // each place by itself
        return norm(x, x.at.size() / x.channels(), theta,
                    [](std::size_t, std::size_t, std::size_t place) { return place; });
    }
    if (kind == "batchnorm") {
        return block_norm(x, 0, theta);
    }
    if (kind == "residual") {
        return residual(x, words, theta);
    }
    REQUIRE((kind == "relu" || kind == "gelu" || kind == "silu"));
    return activated(x, kind);
}

/// "cross-entropy smoothing=0.2 weights=1,2,0.5" of one row of scores.
double cross_entropy(std::span<const double> scores, std::size_t label, const LossSpec& spec) {
    double sum = 0, loss = 0;
    for (const double score : scores) {
        sum += std::exp(score);
    }
    for (std::size_t c = 0; c < scores.size(); ++c) {
        const double weight = spec.weights.empty() ? 1.0 : static_cast<double>(spec.weights[c]);
        const double spread = spec.smoothing / static_cast<double>(scores.size());
        const double target = (c == label ? 1 - spec.smoothing : 0) + spread;
        loss += weight * target * (std::log(sum) - scores[c]);
    }
    return loss;
}

/// Squared error, or binary cross-entropy, of one output.
double numeric_loss(double score, double target, LossKind kind) {
    if (kind == LossKind::mean_squared_error) {
        return (score - target) * (score - target);
    }
    const double p = 1 / (1 + std::exp(-score));
    return -(target * std::log(p) + (1 - target) * std::log(1 - p));
}

}  // namespace

double DoubleNet::loss(const std::vector<double>& theta, const MemoryIo& io) const {
    Values x{.rows = io.labels.size(), .shape = input_, .at = {io.features.begin(), io.features.end()}};
    Parameters parameters{theta};
    for (const std::string& text : layers_) {
        x = layer(text, x, parameters);
    }
    REQUIRE(parameters.rest.empty());
    const LossSpec spec = must(parse_loss(loss_));
    double sum = 0;
    for (std::size_t row = 0; row < x.rows; ++row) {
        const std::span<const double> scores(x.at.data() + row * x.width(), x.width());
        if (spec.kind == LossKind::cross_entropy) {
            sum += cross_entropy(scores, static_cast<std::size_t>(io.labels[row]), spec);
            continue;
        }
        for (std::size_t i = 0; i < scores.size(); ++i) {
            const double target = io.targets[row * x.width() + i];
            sum += numeric_loss(scores[i], target, spec.kind) / static_cast<double>(scores.size());
        }
    }
    return sum / static_cast<double>(x.rows);
}

std::vector<double> DoubleNet::slopes(std::vector<double> theta, const MemoryIo& io) const {
    const double h = 1e-6;  // truncation costs about h^2, rounding 1e-16 / h
    std::vector<double> found;
    for (double& parameter : theta) {
        const double kept = parameter;
        parameter = kept + h;
        const double above = loss(theta, io);
        parameter = kept - h;
        found.push_back((above - loss(theta, io)) / (2 * h));
        parameter = kept;
    }
    return found;
}

}  // namespace causeway
