// See follow.h.
#include "cli/follow.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "cli/experiment_file.h"
#include "cli/live_view.h"
#include "common/queue.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

constexpr Duration first_return_pause = std::chrono::milliseconds(250);
constexpr Duration longest_return_pause = std::chrono::seconds(2);
constexpr int exit_interrupted = 130;  // as a shell says of SIGINT

std::string own_command(const char* verb, std::uint64_t id, const std::string& state) {
    return fmt::format("{} experiment {} {} --state {}", shell_quoted(own_path().string()), verb, id,
                       shell_quoted(state));
}

/// It may come back: a refusal or a reply of its own is an answer.
bool is_away(const Error& error) {
    return error.kind == ErrorKind::disconnected || error.kind == ErrorKind::timed_out;
}

/// What an experiment that is not at work waits for.
std::string waiting_text(const Json& status) {
    const auto phase = status["phase"].text();
    if (phase == "waiting for clients") {
        return fmt::format("waiting for clients that hold \"{}\": {} of {} are here", status["dataset"].text(),
                           status["holders"].integer(), status["min_clients"].integer());
    }
    return status["state"].text() == "paused" ? "paused: " + status["reason"].text() : phase;
}

using Patient = std::function<bool()>;
using Note = std::function<void(const std::string& text, const Json& event)>;

/// Until a session is there again. False: the command does not want to wait any longer.
Result<bool> come_back(Following& following, const Error& why, const Patient& patient, const Note& note) {
    const auto limit = format_duration(following.reconnect);
    note(fmt::format("{}; experiment {} goes on without this command; waiting up to {} (--reconnect) for the "
                     "coordinator to answer",
                     why.message, following.id, limit),
         Json::object()
             .set("event", "disconnected")
             .set("experiment", following.id)
             .set("reason", why.message)
             .set("reconnect_s", seconds(following.reconnect)));
    BoundedQueue<int> nothing(1);
    const auto deadline = real_now() + following.reconnect;
    for (auto pause = first_return_pause; real_now() < deadline; pause = std::min(2 * pause, longest_return_pause)) {
        if (patient && !patient()) {
            return false;
        }
        (void)nothing.pop_for(std::min(pause, std::max(deadline - real_now(), Duration::zero())));
        auto session = OperatorSession::connect(following.state);
        if (session) {
            following.session = *std::move(session);
            note("the coordinator answers again",
                 Json::object().set("event", "reconnected").set("experiment", following.id));
            return true;
        }
        if (!is_away(session.error())) {
            return fail(session.error());
        }
    }
    return fail(ErrorKind::disconnected, "coordinator_away",
                fmt::format("the coordinator has not answered for {} (--reconnect); experiment {} goes on when it runs "
                            "again; then: {}",
                            limit, following.id, own_command("watch", following.id, following.state)));
}

/// A request with many replies, asked anew in each session. `body` says where it stands by then.
Status follow_on(Following& following, const std::string& verb, const std::function<Json()>& body,
                 const std::function<bool(const Json&)>& each, const Patient& idle, const Patient& patient,
                 const Note& note) {
    while (true) {
        const auto status = following.session->follow(verb, body(), each, idle);
        if (status || !is_away(status.error())) {
            return status;
        }
        TRY_ASSIGN(const bool back, come_back(following, status.error(), patient, note));
        if (!back) {
            return {};
        }
    }
}

Json about_followed(std::uint64_t id) {
    return Json::object().set("experiment", id);
}

}  // namespace

FollowInterrupt::FollowInterrupt(Output output) : output_(output), signal_([] { std::_Exit(exit_interrupted); }) {}

void FollowInterrupt::leave_running(std::uint64_t id, const std::string& state) {
    signal_.set([id, state, output = output_] {
        output.object(Json::object().set("event", "left").set("experiment", id));
        output.line(fmt::format("{}experiment {} goes on without this command\nfollow it again: {}\nstop it for good: "
                                "{}",
                                at_terminal() ? "\r\033[K" : "", id, own_command("watch", id, state),
                                own_command("cancel", id, state)));
        std::fflush(stdout);
        std::_Exit(exit_interrupted);
    });
}

Result<int> follow_experiment(Following following) {
    const auto output = following.output;
    LiveView view(output);
    int code = exit_failed;
    std::int64_t next = 0;  // the round of the next event
    const auto each = [&](const Json& event) {
        view.event(event);
        if (event["event"].text() == "done") {
            code = event["state"].text() == "succeeded" ? exit_done : exit_failed;
        } else {
            next = event["round"].integer() + 1;
        }
        return true;
    };
    std::string told;
    const auto idle = [&] {
        if (output.json) {
            return true;
        }
        const auto status = following.session->ask("experiment.status", about_followed(following.id));
        if (!status) {
            return true;  // a lost connection shows in what is followed
        }
        const bool works = (*status)["state"].text() == "running" && (*status)["phase"].text() != "waiting for clients";
        if (at_terminal()) {
            works ? view.working(*status) : view.status(waiting_text(*status));
            return true;
        }
        // Once, as long as it is the same: nobody waits without being told for what.
        const auto text = works ? away_text(*status) : waiting_text(*status);
        const auto kind = text.substr(0, text.rfind(','));
        if (kind != told && !text.empty()) {
            output.line(text);
        }
        told = kind;
        return true;
    };
    TRY(follow_on(
        following, "experiment.watch", [&] { return about_followed(following.id).set("from", next); }, each, idle, {},
        [&](const std::string& text, const Json& event) { view.note(text, event); }));
    if (code == exit_done) {
        output.line("next: " + own_command("export", following.id, following.state));
    }
    return code;
}

Result<Json> await_end(Following following, const Patient& patient) {
    Json done;
    const auto output = following.output;
    TRY(follow_on(
        following, "experiment.wait", [&] { return about_followed(following.id); },
        [&](const Json& event) {
            done = event;
            return true;
        },
        patient, patient,
        [&](const std::string& text, const Json& event) {
            output.object(event);
            output.line(text);
        }));
    return done;
}

}  // namespace causeway::cli
