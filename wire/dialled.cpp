// One dialled connection: a DEALER that never reconnects.
#include <zmq.h>

#include "wire/sockets.h"

namespace causeway {
namespace {

constexpr int max_dialled_frames_per_turn = 16;
constexpr int watched = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |
                        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

}  // namespace

Dialled::Dialled(SocketContext& context, ConnectionId connection)
    : socket_(context, ZMQ_DEALER, watched, node_frames), connection_(connection) {}

Status Dialled::connect(const Address& to) {
    if (zmq_connect(socket_.socket(), ("tcp://" + to.text()).c_str()) != 0) {
        return fail(ErrorKind::io, "cannot_connect", "cannot connect to " + to.text() + ": " + zmq_strerror(errno));
    }
    return {};
}

LinkPort::Sent Dialled::send(Bytes& frame) {
    socket_.look_again();
    return send_frame(socket_.socket(), nullptr, frame);
}

void Dialled::read(LinkCore& core, Instant now, std::int64_t unix_s) {
    for (int i = 0; socket_.readable(); ++i) {  // first what arrived before an end: it may say why
        if (i == max_dialled_frames_per_turn) {
            return;  // more may wait: the monitor's turn comes when all is read
        }
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        const bool some = zmq_msg_recv(&frame, socket_.socket(), ZMQ_DONTWAIT) >= 0;
        if (some) {
            core.receive(connection_, {static_cast<const std::byte*>(zmq_msg_data(&frame)), zmq_msg_size(&frame)}, now,
                         unix_s);
        }
        zmq_msg_close(&frame);
        if (!some) {
            socket_.all_taken();
        }
    }
    while (socket_.monitor_readable()) {
        const auto happening = socket_.next_happening();
        if (!happening) {
            return;
        }
        if (happening->event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            up_ = true;
        } else if (happening->event == ZMQ_EVENT_DISCONNECTED) {
            core.lose(connection_,
                      {ErrorKind::disconnected, "connection_lost", "the connection was closed by the peer"});
        } else if (!up_) {  // CLOSED before it was up: refused
            core.lose(connection_, {ErrorKind::disconnected, "unreachable",
                                    "nothing answers there: is the coordinator running, and the address right?"});
        }
    }
}

}  // namespace causeway
