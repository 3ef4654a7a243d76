#include "penstock/engine/tls_work.h"

#include <cstring>

#include "penstock/engine/tls_session.h"

namespace penstock {

bool TlsWork::try_add(std::span<const std::byte> bytes) {
    if (bytes.size() > kCapacity - records_size_) {
        return false;
    }
    std::memcpy(records_.get() + records_size_, bytes.data(), bytes.size());
    records_size_ += bytes.size();
    return true;
}

void TlsWork::drop_records(std::size_t bytes) {
    records_size_ -= bytes;
    std::memmove(records_.get(), records_.get() + bytes, records_size_);
}

bool TlsWork::add(TlsSession& session, std::uint64_t arrival) {
    if (session.listed_) {
        return false;
    }
    session.arrival_ = arrival;
    session.listed_ = true;
    session.older_ = last_;
    session.newer_ = nullptr;
    (last_ != nullptr ? last_->newer_ : first_) = &session;
    last_ = &session;
    ++count_;
    return true;
}

TlsSession* TlsWork::oldest_hello() const {
    TlsSession* session = first_;
    while (session != nullptr && session->state() != TlsState::hello) {
        session = session->newer_;
    }
    return session;
}

void TlsWork::remove(TlsSession& session) {
    if (!session.listed_) {
        return;
    }
    session.listed_ = false;
    (session.older_ != nullptr ? session.older_->newer_ : first_) = session.newer_;
    (session.newer_ != nullptr ? session.newer_->older_ : last_) = session.older_;
    --count_;
}

}  // namespace penstock
