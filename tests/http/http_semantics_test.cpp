// What is answered, and what becomes of the connection afterwards (RFC 9110, RFC 9112 §9): what bytes alone can show.
#include "http/http_cases.h"

namespace penstock::test {

TEST_CASE("which connections stay (RFC 9112 §9.3)") {
    const auto with = [](const char* version, std::string_view fields) {
        return "GET / HTTP/" + std::string(version) + "\r\nHost: t\r\n" + std::string(fields) + "\r\n";
    };
    const std::string says_close = "\r\nConnection: close\r\n";
    const std::string says_keep = "\r\nConnection: keep-alive\r\n";
    const Case cases[] = {
        {"1.1", with("1.1", ""), "200", Ending::stays, "", "Connection"},
        {"1.1 close", with("1.1", "Connection: close\r\n"), "200", Ending::closes, says_close},
        {"1.1 any letter case", with("1.1", "cONNECTION: cLOSE\r\n"), "200", Ending::closes, says_close},
        {"1.1 in a list", with("1.1", "Connection: te, close ,x\r\n"), "200", Ending::closes, says_close},
        {"1.1 with a tab behind it", with("1.1", "Connection: close\t\r\n"), "200", Ending::closes,
         says_close},
        {"1.1 in a second field", with("1.1", "Connection: te\r\nConnection: close\r\n"), "200",
         Ending::closes, says_close},
        {"1.1 keep-alive and close", with("1.1", "Connection: keep-alive, close\r\n"), "200", Ending::closes,
         says_close},
        {"1.1 keep-alive", with("1.1", "Connection: keep-alive\r\n"), "200", Ending::stays, "", "Connection"},
        {"1.1 a longer word", with("1.1", "Connection: closed\r\n"), "200", Ending::stays, "", "Connection"},
        {"1.1 another option", with("1.1", "Connection: te\r\nTE: trailers\r\n"), "200", Ending::stays, "",
         "Connection"},
        {"1.1 empty", with("1.1", "Connection:\r\n"), "200", Ending::stays, "", "Connection"},
        {"1.1 Proxy-Connection means nothing", with("1.1", "Proxy-Connection: close\r\n"), "200",
         Ending::stays},
        {"1.1 an upgrade that nobody takes",
         with("1.1", "Connection: upgrade\r\nUpgrade: h2c\r\n") + get("/"), "200 200", Ending::stays, "",
         "Connection"},
        {"1.0", with("1.0", ""), "200", Ending::closes, says_close},
        {"1.0 keep-alive", with("1.0", "Connection: keep-alive\r\n"), "200", Ending::stays, says_keep},
        {"1.0 any letter case", with("1.0", "Connection: Keep-Alive\r\n"), "200", Ending::stays, says_keep},
        {"1.0 in a list", with("1.0", "Connection: te, keep-alive\r\n"), "200", Ending::stays, says_keep},
        {"1.0 keep-alive and close", with("1.0", "Connection: keep-alive, close\r\n"), "200", Ending::closes,
         says_close},
        {"1.0 close and keep-alive", with("1.0", "Connection: close\r\nConnection: keep-alive\r\n"), "200",
         Ending::closes, says_close},
        {"1.0 the Keep-Alive field alone", with("1.0", "Keep-Alive: timeout=5\r\n"), "200", Ending::closes,
         says_close},
        {"1.0 with a body",
         "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello" +
             with("1.0", "Connection: keep-alive\r\n"),
         "200 200", Ending::stays, says_keep},
    };
    run_cases(cases);
}

TEST_CASE("an expectation that is refused has a final status, and the connection closes") {
    const auto expecting = [](std::string_view target, std::string_view fields) {
        return "POST " + std::string(target) + " HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n";
    };
    const std::string expect = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    const std::string large = "Content-Length: 5000000\r\nExpect: 100-continue\r\n";
    const std::string says_close = "\r\nConnection: close\r\n";
    const Case cases[] = {
        {"no such path", expecting("/nope", expect), "404", Ending::closes, says_close},
        {"no such method", expecting("/only-get", expect), "405", Ending::closes, says_close},
        {"a body above the limit", expecting("/nope", large), "413", Ending::closes, says_close},
        {"another", expecting("/echo", "Content-Length: 5\r\nExpect: something\r\n"), "417", Ending::closes,
         says_close},
        {"another in a list", expecting("/echo", "Content-Length: 5\r\nExpect: 100-continue, something\r\n"),
         "417", Ending::closes, says_close},
        {"another in a second field", expecting("/echo", expect + "Expect: something\r\n"), "417",
         Ending::closes, says_close},
        {"empty", expecting("/echo", "Content-Length: 5\r\nExpect:\r\n"), "417", Ending::closes, says_close},
    };
    run_cases(cases);
}

TEST_CASE("half a message is not answered, and costs nothing of the answers before it") {
    const Case cases[] = {
        {"an empty line", "\r\n", "", Ending::waits},
        {"half a request line", "GET / HTT", "", Ending::waits},
        {"a head without its empty line", "GET / HTTP/1.1\r\nHost: t\r\n", "", Ending::waits},
        {"a head without its last byte", "GET / HTTP/1.1\r\nHost: t\r\n\r", "", Ending::waits},
        {"half a body", post("Content-Length: 5\r\n", "hell"), "", Ending::waits},
        {"half a chunk", chunked("5\r\nhel"), "", Ending::waits},
        {"no last chunk", chunked("5\r\nhello\r\n"), "", Ending::waits},
        {"trailers without their empty line", chunked("5\r\nhello\r\n0\r\nX: y\r\n"), "", Ending::waits},
        {"half a head behind a request", get("/") + "GET / HTT", "200", Ending::waits, "home"},
        {"half a body behind a request", get("/") + post("Content-Length: 5\r\n", "hell"), "200", Ending::waits,
         "home"},
    };
    run_cases(cases);
}

}  // namespace penstock::test
