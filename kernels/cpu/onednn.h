// What the files of oneDNN's kinds share. The library's headers stay in the files that include this one.
//
// Thread: the trainer's; a run enters OpenMP with exactly the device's thread count.
#pragma once

#include <array>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/host.h"

// libdnnl brings GNU OpenMP; its header needs a compiler flag that nothing else here does.
extern "C" {
void omp_set_num_threads(int count);
int omp_get_max_threads(void);
}

namespace causeway::cpu {

struct OnednnEngine {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    int threads = 1;
};

/// The calling thread's OpenMP count, for one scope. With 1 no other thread is ever started.
class ThreadCount {
public:
    explicit ThreadCount(int count) : before_(omp_get_max_threads()) {
        if (before_ != count) {
            omp_set_num_threads(count);
        }
        count_ = count;
    }
    ~ThreadCount() {
        if (before_ != count_) {
            omp_set_num_threads(before_);
        }
    }
    ThreadCount(const ThreadCount&) = delete;
    ThreadCount& operator=(const ThreadCount&) = delete;

private:
    int before_;
    int count_;
};

/// A primitive with its memory objects, which are wrappers of a pointer, made once: a run only exchanges pointers.
class Primitive {
public:
    Primitive() = default;
    explicit Primitive(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

    /// Returns the number by which `point` knows the argument.
    int add(const OnednnEngine& engine, int argument, const dnnl::memory::desc& description) {
        memories_[count_] = dnnl::memory(description, engine.engine, nullptr);
        arguments_[count_] = {argument, memories_[count_].get()};
        return count_++;
    }
    void point(int argument, void* data) { dnnl_memory_set_data_handle(memories_[argument].get(), data); }
    dnnl_status_t execute(const OnednnEngine& engine) const {
        return dnnl_primitive_execute(primitive_.get(), engine.stream.get(), count_, arguments_.data());
    }
    explicit operator bool() const { return static_cast<bool>(primitive_); }

private:
    dnnl::primitive primitive_;
    std::array<dnnl::memory, 6> memories_;
    std::array<dnnl_exec_arg_t, 6> arguments_{};
    int count_ = 0;
};

}  // namespace causeway::cpu
