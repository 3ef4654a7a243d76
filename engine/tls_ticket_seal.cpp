#include "penstock/engine/tls_ticket_seal.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/aes.h>

namespace penstock {

namespace {

constexpr word32 kIvBytes = 12;  // GCM's own size (NIST SP 800-38D §8.2)

class Cipher {
public:
    explicit Cipher(const TlsTickets::Key& key) {
        is_set_ = wc_AesInit(&aes_, nullptr, INVALID_DEVID) == 0 &&
                  wc_AesGcmSetKey(&aes_, key.secret.data(), static_cast<word32>(key.secret.size())) == 0;
    }
    ~Cipher() { wc_AesFree(&aes_); }
    Cipher(const Cipher&) = delete;
    Cipher& operator=(const Cipher&) = delete;

    [[nodiscard]] bool is_set() const { return is_set_; }
    [[nodiscard]] Aes* get() { return &aes_; }

private:
    Aes aes_{};
    bool is_set_ = false;
};

word32 size_of(std::span<const std::uint8_t> bytes) { return static_cast<word32>(bytes.size()); }

}  // namespace

bool seal_ticket(const TlsTickets::Key& key, std::span<const std::uint8_t, 32> fingerprint, std::span<const std::uint8_t, 16> iv,
                 std::span<std::uint8_t> in_place, std::span<std::uint8_t, 16> tag) {
    Cipher cipher(key);
    return cipher.is_set() && wc_AesGcmEncrypt(cipher.get(), in_place.data(), in_place.data(), size_of(in_place), iv.data(), kIvBytes,
                                               tag.data(), size_of(tag), fingerprint.data(), size_of(fingerprint)) == 0;
}

bool open_ticket(const TlsTickets::Key& key, std::span<const std::uint8_t, 32> fingerprint, std::span<const std::uint8_t, 16> iv,
                 std::span<std::uint8_t> in_place, std::span<const std::uint8_t, 16> tag) {
    Cipher cipher(key);
    return cipher.is_set() && wc_AesGcmDecrypt(cipher.get(), in_place.data(), in_place.data(), size_of(in_place), iv.data(), kIvBytes,
                                               tag.data(), size_of(tag), fingerprint.data(), size_of(fingerprint)) == 0;
}

}  // namespace penstock
