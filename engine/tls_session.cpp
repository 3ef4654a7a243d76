#include "penstock/engine/tls_session.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/error-ssl.h>
#include <wolfssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "penstock/engine/reactor.h"
#include "penstock/engine/tls_callbacks.h"
#include "penstock/engine/tls_random.h"
#include "penstock/engine/tls_ticket_seal.h"
#include "penstock/engine/tls_work.h"
#include "penstock/platform/clock.h"

namespace penstock {

// A reactor's copy of the keys of a listener's tickets.
struct TicketKeys {
    explicit TicketKeys(std::shared_ptr<TlsTickets> shared) : tickets(std::move(shared)), reader(*tickets) {}

    std::shared_ptr<TlsTickets> tickets;
    TlsTickets::Reader reader;
};

namespace {

constexpr std::uint8_t kHandshakeFailure = 40;  // RFC 8446 §6
constexpr std::uint8_t kProtocolVersion = 70;
constexpr std::byte kHandshakeRecord{22};  // RFC 8446 §5.1
constexpr std::byte kApplicationData{23};
constexpr std::array<std::byte, 6> kChangeOfCipher = {std::byte{20}, std::byte{3}, std::byte{3},  // RFC 8446 §5
                                                      std::byte{0},  std::byte{1}, std::byte{1}};

[[nodiscard]] std::span<const std::byte> as_bytes_of(const char* data, int size) {
    return {reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

[[nodiscard]] std::size_t record_size_of(std::span<const std::byte> head) {
    return head.size() + (std::to_integer<std::size_t>(head[3]) << 8 | std::to_integer<std::size_t>(head[4]));
}

// The first of the server's that the client offers, alone, since wolfSSL goes by the client's order (RFC 7301 §3.2: by the server's).
// All of them where there is none, so that wolfSSL refuses.
[[nodiscard]] std::string best_protocols(std::string_view ours, const ClientHello& hello) {
    for (std::size_t at = 0; at < ours.size();) {
        const std::size_t end = std::min(ours.find(',', at), ours.size());
        if (const std::string_view name = ours.substr(at, end - at); hello.offers_protocol(name)) {
            return std::string(name);
        }
        at = end + 1;
    }
    return std::string(ours);
}

}  // namespace

// Called by wolfSSL within the calls of a session, which is the context of all of them.
struct TlsCallbacks {
    static TlsSession& session(void* context) { return *static_cast<TlsSession*>(context); }

    static int receive(WOLFSSL*, char* room, int size, void* context) {
        const std::size_t taken =
            session(context).take_fed({reinterpret_cast<std::byte*>(room), static_cast<std::size_t>(size)});
        return taken > 0 ? static_cast<int>(taken) : WOLFSSL_CBIO_ERR_WANT_READ;
    }

    static int send(WOLFSSL*, char* bytes, int size, void* context) {
        return session(context).add_records(as_bytes_of(bytes, size)) ? size : WOLFSSL_CBIO_ERR_GENERAL;
    }

    static int ticket(WOLFSSL* ssl, unsigned char* name, unsigned char* iv, unsigned char* mac, int seal, unsigned char* ticket,
                      int size, int* sealed_size, void*) {
        TlsSession& self = session(wolfSSL_GetIOReadCtx(ssl));
        TicketKeys* const keys = self.ticket_keys();
        if (keys == nullptr) {
            return seal != 0 ? WOLFSSL_TICKET_RET_FATAL : WOLFSSL_TICKET_RET_REJECT;
        }
        const std::span<const std::uint8_t, 32> fingerprint(self.certificate_->facts.fingerprint);
        const std::span<const std::uint8_t, 16> iv_bytes(iv, 16);
        const std::span<std::uint8_t, 16> tag(mac, 16);
        *sealed_size = size;
        if (seal != 0) {
            const TlsTickets::Key* const key = keys->reader.newest(platform::monotonic_ms());
            if (key == nullptr || !random_bytes(iv, 16)) {
                return WOLFSSL_TICKET_RET_FATAL;
            }
            std::memcpy(name, key->name.data(), key->name.size());
            std::memset(mac, 0, 32);
            keys->tickets->note_sealed(static_cast<std::size_t>(size));
            const bool sealed = seal_ticket(*key, fingerprint, iv_bytes, {ticket, static_cast<std::size_t>(size)}, tag);
            return sealed ? WOLFSSL_TICKET_RET_OK : WOLFSSL_TICKET_RET_FATAL;
        }
        // wolfSSL takes the size from the ticket, and does not ask whether so much has come: the rest would be somebody else's memory.
        if (static_cast<std::size_t>(size) != keys->tickets->sealed_bytes()) {
            return WOLFSSL_TICKET_RET_REJECT;
        }
        bool is_newest = false;
        const TlsTickets::Key* const key = keys->reader.find(name, platform::monotonic_ms(), &is_newest);
        if (key == nullptr || !open_ticket(*key, fingerprint, iv_bytes, {ticket, static_cast<std::size_t>(size)}, tag)) {
            return WOLFSSL_TICKET_RET_REJECT;
        }
        return is_newest ? WOLFSSL_TICKET_RET_OK : WOLFSSL_TICKET_RET_CREATE;
    }

    // Keeps the subject of a client's certificate, the last of its chain that is looked at.
    static int verify(int well, WOLFSSL_X509_STORE_CTX* store) {
        if (store->userCtx != nullptr) {
            session(store->userCtx).has_shown_chain_ |= store->totalCerts > 1;
        }
        const bool shows_one = store->error_depth == 0 && store->totalCerts > 0;  // none is well where none is required
        if (well == 1 && shows_one && store->certs != nullptr && store->userCtx != nullptr) {
            TlsSession& self = session(store->userCtx);
            return self.keep_subject({store->certs[0].buffer, store->certs[0].length}) ? 1 : 0;
        }
        return well;
    }
};

// The same for all sessions of a listener on this reactor; nullptr without memory.
TicketKeys* TlsSession::ticket_keys() {
    const std::shared_ptr<TlsTickets>& tickets = context_->tickets();
    try {
        return tickets == nullptr ? nullptr
                                  : &reactor_.local<TicketKeys>(tickets.get(), [&] { return std::make_shared<TicketKeys>(tickets); });
    } catch (const std::bad_alloc&) {
        return nullptr;  // not through wolfSSL, which is C
    }
}

// False without memory.
bool TlsSession::keep_subject(std::span<const std::uint8_t> certificate) {
    try {
        if (auto facts = read_certificate(certificate); facts.ok()) {
            names_->client_subject = std::move(facts.value().subject);
            return true;
        }
    } catch (const std::bad_alloc&) {
    }
    return false;
}

// Without tickets as well: wolfSSL would otherwise seal them with keys of its own, whatever it was told, and take them back from
// clients whose certificates have to be looked at.
void install_tls_callbacks(WOLFSSL_CTX* context) {
    wolfSSL_CTX_SetIORecv(context, &TlsCallbacks::receive);
    wolfSSL_CTX_SetIOSend(context, &TlsCallbacks::send);
    wolfSSL_CTX_set_TicketEncCb(context, &TlsCallbacks::ticket);
}

TlsSession::TlsSession(Connection& connection, Reactor& reactor, const TlsAcceptor& acceptor)
    : connection_(connection), reactor_(reactor), acceptor_(acceptor) {}

TlsSession::~TlsSession() {
    reactor_.tls().remove(*this);
    unsent_.clear(reactor_.blocks());
    wolfSSL_free(ssl_);
}

bool TlsSession::begin(const ClientHello& hello) {
    ensure(state_ == TlsState::hello, "TLS: a handshake begins twice");
    state_ = TlsState::failed;
    context_ = acceptor_.context;
    try {
        certificate_ = context_->choose(hello);
        names_ = std::make_unique<Names>();
        // A client may put anything there; what no name can be is not kept.
        names_->server_name = hello.server_name.size() <= kServerNameLimitBytes ? hello.server_name : std::string_view();
        ssl_ = wolfSSL_new(certificate_->context);
        if (ssl_ == nullptr) {
            return false;
        }
        if (!configure(hello)) {
            return false;
        }
    } catch (const std::bad_alloc&) {
        return false;
    }
    state_ = TlsState::handshake;
    return true;
}

bool TlsSession::configure(const ClientHello& hello) {
    wolfSSL_SetIOReadCtx(ssl_, this);
    wolfSSL_SetIOWriteCtx(ssl_, this);
    if (!context_->protocols().empty() && !hello.protocols.empty()) {
        std::string protocols = best_protocols(context_->protocols(), hello);
        const auto size = static_cast<unsigned>(protocols.size());
        if (wolfSSL_UseALPN(ssl_, protocols.data(), size, WOLFSSL_ALPN_FAILED_ON_MISMATCH) != WOLFSSL_SUCCESS) {
            return false;
        }
    }
    const ClientCertificate wanted = context_->options().client_certificate;
    if (wanted != ClientCertificate::none) {
        const int mode = WOLFSSL_VERIFY_PEER | (wanted == ClientCertificate::required ? WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
        wolfSSL_set_verify(ssl_, mode, &TlsCallbacks::verify);
        wolfSSL_SetCertCbCtx(ssl_, this);
    }
    if (context_->key_log() != nullptr && !context_->key_log()->attach(ssl_)) {
        return false;
    }
    tells_change_of_cipher_ = hello.has_session_id && hello.offers_tls13;
    return prepare_second_hello(hello);
}

// Where the client will have to say hello again, since it has sent no key that we can use (RFC 8446 §4.1.4), or early data. Nobody was
// told here that early data may be sent, but the client may have its ticket from another server of that name; which records are early
// data could only be told by trying to decrypt them, which wolfSSL does not do. So it is asked for a key of another group, and what
// comes before that is dropped (§4.2.10). A client that has no other group fails.
bool TlsSession::prepare_second_hello(const ClientHello& hello) {
    const auto& groups = TlsContext::kGroups;
    const bool has_share = std::any_of(groups.begin(), groups.end(), [&](std::uint16_t group) { return hello.has_key_share(group); });
    if (!hello.offers_tls13 || (has_share && !hello.sends_early_data)) {
        return true;
    }
    if (has_share) {
        const auto other = std::find_if(groups.begin(), groups.end(), [&](std::uint16_t group) { return hello.offers_group_later(group); });
        if (other == groups.end()) {
            return true;
        }
        int group = *other;
        if (wolfSSL_set_groups(ssl_, &group, 1) != WOLFSSL_SUCCESS) {
            return false;
        }
    }
    early_bytes_left_ = hello.sends_early_data ? kTlsEarlyDataLimitBytes : 0;
    // The second hello has no ticket whose hash is not that of our suite, and wolfSSL 5.5.4 fails where one was in the first.
    constexpr std::uint16_t kAes256Sha384 = 0x1302;  // RFC 8446 §B.4, the only one with that hash
    constexpr std::size_t kSha384Bytes = 48;
    if (hello.binder_bytes == kSha384Bytes && hello.offers_suite(kAes256Sha384) && context_->takes_suite(kAes256Sha384)) {
        return wolfSSL_set_cipher_list(ssl_, "TLS13-AES256-GCM-SHA384") == WOLFSSL_SUCCESS;
    }
    return true;
}

// From what was fed, once the second hello was asked for.
void TlsSession::drop_early_data() {
    while (early_bytes_left_ > 0 && has_spoken_ && !fed_.empty()) {
        const std::byte type = record_has_ > 0 ? head_[0] : fed_[0];
        if (type != kApplicationData) {
            early_bytes_left_ = type == kHandshakeRecord ? 0 : early_bytes_left_;
            return;
        }
        const std::size_t end = record_has_ < head_.size() ? head_.size() : record_size_;
        const std::size_t size = std::min(fed_.size(), end - record_has_);
        note_framing(fed_.first(size));
        fed_ = fed_.subspan(size);
        early_bytes_left_ -= std::min(early_bytes_left_, static_cast<std::uint32_t>(size));
    }
}

TlsStep TlsSession::shake_hands() {
    const int result = wolfSSL_accept(ssl_);
    if (std::exchange(has_shown_chain_, false)) {
        context_->forget_shown(*certificate_);
    }
    if (result != WOLFSSL_SUCCESS) {
        return step_of(result);
    }
    note_complete();
    return TlsStep::done;
}

void TlsSession::note_complete() {
    reactor_.tls().remove(*this);
    state_ = TlsState::open;
    TlsInfo& info = names_->info;
    info.version = wolfSSL_get_version(ssl_);
    info.suite = wolfSSL_get_cipher_name(ssl_);
    info.resumed = wolfSSL_session_reused(ssl_) == 1;
    info.server_name = names_->server_name;
    info.client_subject = names_->client_subject;
    reactor_.count().tls_handshakes.add();
    if (info.resumed) {
        reactor_.count().tls_resumed.add();
    }
}

// Of a call that has not given what it was made for.
TlsStep TlsSession::step_of(int result) {
    const int error = wolfSSL_get_error(ssl_, result);
    if (error == WOLFSSL_ERROR_WANT_READ) {
        return TlsStep::wants_input;
    }
    if (error == WOLFSSL_ERROR_ZERO_RETURN && state_ == TlsState::open) {
        return TlsStep::ended;
    }
    if (!has_spoken_) {
        refuse(error == VERSION_ERROR ? kProtocolVersion : kHandshakeFailure);  // wolfSSL just goes silent then
    }
    state_ = TlsState::failed;
    return TlsStep::failed;
}

TlsStep TlsSession::read(std::span<std::byte> room, std::size_t* count) {
    *count = 0;
    while (*count < room.size()) {
        const std::span<std::byte> left = room.subspan(*count);
        const int result = wolfSSL_read(ssl_, left.data(), static_cast<int>(left.size()));
        if (result <= 0) {
            const TlsStep step = step_of(result);
            return step == TlsStep::wants_input && *count > 0 ? TlsStep::done : step;
        }
        *count += static_cast<std::size_t>(result);
        if (fed_.empty() && !has_pending()) {
            break;
        }
    }
    return TlsStep::done;
}

void TlsSession::fail() {
    state_ = TlsState::failed;
    reactor_.tls().remove(*this);  // it only lingers from now on
}

bool TlsSession::has_pending() const { return ssl_ != nullptr && wolfSSL_pending(ssl_) > 0; }

std::size_t TlsSession::wanted_bytes(std::size_t room) const {
    const std::size_t fits = room > record_has_ ? room - record_has_ : 0;
    const std::size_t rest = record_size_ - record_has_;
    return std::max<std::size_t>({fits, record_size_ != 0 ? rest : 0, 1});
}

// As much as wolfSSL asks for: it asks for a record's head, and then for the rest of it.
std::size_t TlsSession::take_fed(std::span<std::byte> room) {
    drop_early_data();
    const std::size_t size = std::min(room.size(), fed_.size());
    std::memcpy(room.data(), fed_.data(), size);
    note_framing(fed_.first(size));
    fed_ = fed_.subspan(size);
    if (size > 0 && record_has_ == head_.size() && holds_no_type()) {
        room[size - 1] = std::byte{1};  // shorter than any tag, and so refused before it is decrypted
    }
    return size;
}

// A record of TLS 1.3 that is nothing but its tag, and so has not even the byte that says its type (RFC 8446 §5.2). wolfSSL 5.5.4 looks
// for that outside of its buffer, up to 64 KB behind it, and takes what it finds there for what the peer has sent.
bool TlsSession::holds_no_type() const {
    const std::size_t content = record_size_ - head_.size();
    if (head_[0] != kApplicationData || (content != 8 && content != 16) || wolfSSL_version(ssl_) != TLS1_3_VERSION) {
        return false;
    }
    const char* const suite = wolfSSL_get_cipher_name(ssl_);
    const bool has_short_tag = suite != nullptr && std::strstr(suite, "CCM-8") != nullptr;  // RFC 6655 §4, in no default
    return content == (has_short_tag ? 8 : 16);
}

void TlsSession::note_framing(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        std::size_t size = bytes.size();
        if (record_has_ < head_.size()) {
            size = std::min(size, head_.size() - record_has_);
            std::memcpy(head_.data() + record_has_, bytes.data(), size);
            record_has_ += static_cast<std::uint32_t>(size);
            record_size_ = record_has_ == head_.size() ? static_cast<std::uint32_t>(record_size_of(head_)) : 0;
        } else {
            size = std::min<std::size_t>(size, record_size_ - record_has_);
            record_has_ += static_cast<std::uint32_t>(size);
        }
        if (record_has_ == record_size_) {
            record_has_ = record_size_ = 0;
        }
        bytes = bytes.subspan(size);
    }
}

bool TlsSession::encrypt(std::span<const std::byte> bytes) {
    ensure_debug(state_ == TlsState::open && bytes.size() <= TlsWork::kRecordBytes, "TLS: what is encrypted fits no record");
    const int result = wolfSSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    if (result == static_cast<int>(bytes.size())) {
        return true;
    }
    state_ = TlsState::failed;
    return false;
}

void TlsSession::say_goodbye() {
    if (state_ == TlsState::open) {
        state_ = TlsState::said_goodbye;
        wolfSSL_shutdown(ssl_);
    }
}

void TlsSession::refuse(std::uint8_t alert) {
    constexpr std::uint8_t kAlertRecord = 21;  // RFC 8446 §5.1
    constexpr std::uint8_t kFatal = 2;         // RFC 8446 §6
    const std::array<std::uint8_t, 7> record = {kAlertRecord, 3, 3, 0, 2, kFatal, alert};
    state_ = TlsState::failed;
    static_cast<void>(add(std::as_bytes(std::span(record))));
}

// As a server wolfSSL leaves out what middleboxes want to see behind the first message (RFC 8446 §D.4).
bool TlsSession::add_records(std::span<const std::byte> bytes) {
    if (!std::exchange(tells_change_of_cipher_, false) || wolfSSL_version(ssl_) != TLS1_3_VERSION || bytes.size() < head_.size() ||
        bytes[0] != kHandshakeRecord) {
        return add(bytes);
    }
    const std::size_t first = std::min(bytes.size(), record_size_of(bytes.first(head_.size())));
    return add(bytes.first(first)) && add(kChangeOfCipher) && add(bytes.subspan(first));
}

// A flight that is longer than what the reactor has room for goes on to where it waits for the socket.
bool TlsSession::add(std::span<const std::byte> bytes) {
    has_spoken_ = true;
    TlsWork& work = reactor_.tls();
    if (work.try_add(bytes)) {
        return true;
    }
    const bool moved = keep(work.records());
    work.clear_records();
    return moved && keep(bytes);
}

bool TlsSession::keep(std::span<const std::byte> records) {
    reactor_.make_output_room(records.size() / kIoBlockBytes + 2, connection_);
    return unsent_.try_append_copy(reactor_.blocks(), {reinterpret_cast<const char*>(records.data()), records.size()});
}

// It names a version from the end of the handshake on, also when it fails after that.
const TlsInfo* TlsSession::info() { return names_ != nullptr && !names_->info.version.empty() ? &names_->info : nullptr; }

}  // namespace penstock
