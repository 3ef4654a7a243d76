// Where a message ends: lengths, codings, chunks (RFC 9112 §6 and §7). Whoever disagrees with another server
// about it can be made to take one client's bytes for another's request.
#include "http/http_cases.h"

namespace penstock::test {

TEST_CASE("Content-Length is one number of digits, once") {
    const Case cases[] = {
        {"a body", post("Content-Length: 5\r\n", "hello"), "200", Ending::stays, "\r\n\r\nhello"},
        {"leading zeros", post("Content-Length: 0005\r\n", "hello"), "200", Ending::stays, "\r\n\r\nhello"},
        {"none", post("Content-Length: 0\r\n"), "200", Ending::stays, "Content-Length: 0\r\n"},
        {"no field, no body", post(""), "200", Ending::stays, "Content-Length: 0\r\n"},
        {"white space around it", post("Content-Length: \t 5  \r\n", "hello"), "200", Ending::stays,
         "\r\n\r\nhello"},
        {"two that differ", post("Content-Length: 5\r\nContent-Length: 10\r\n", "helloworld"), "400"},
        {"two that agree", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), "400"},
        {"two in two letter cases", post("Content-Length: 5\r\ncontent-length: 5\r\n", "hello"), "400"},
        {"a list that agrees", post("Content-Length: 5, 5\r\n", "hello"), "400"},
        {"a list that differs", post("Content-Length: 5,6\r\n", "hello"), "400"},
        {"negative", "GET / HTTP/1.1\r\nHost: t\r\nContent-Length: -268435455700\r\n\r\n", "400"},
        {"minus zero", post("Content-Length: -0\r\n"), "400"},
        {"plus", post("Content-Length: +5\r\n", "hello"), "400"},
        {"empty", post("Content-Length:\r\n", "hello"), "400"},
        {"only white space", post("Content-Length: \t \r\n", "hello"), "400"},
        {"space inside", post("Content-Length: 1 0\r\n", "helloworld"), "400"},
        {"hexadecimal", post("Content-Length: 0x5\r\n", "hello"), "400"},
        {"letters", post("Content-Length: five\r\n", "hello"), "400"},
        {"trailing letter", post("Content-Length: 5b\r\n", "hello"), "400"},
        {"underscore", post("Content-Length: 1_0\r\n", "helloworld"), "400"},
        {"fraction", post("Content-Length: 5.0\r\n", "hello"), "400"},
        {"exponent", post("Content-Length: 1e1\r\n", "helloworld"), "400"},
        {"quoted", post("Content-Length: \"5\"\r\n", "hello"), "400"},
        {"semicolon", post("Content-Length: 5;x\r\n", "hello"), "400"},
        {"digits of another script", post("Content-Length: \xd9\xa5\r\n", "hello"), "400"},
        {"2^64 - 1", post("Content-Length: 18446744073709551615\r\n", "hello"), "413"},
        {"2^64", post("Content-Length: 18446744073709551616\r\n", "hello"), "400"},
        {"2^64 + 5", post("Content-Length: 18446744073709551621\r\n", "hello"), "400"},
        {"2^63", post("Content-Length: 9223372036854775808\r\n", "hello"), "413"},
        {"fifty nines", post("Content-Length: 99999999999999999999999999999999999999999999999999\r\n"),
         "400"},
        {"above the limit", post("Content-Length: 1048577\r\n"), "413"},
        {"folded", post("Content-Length:\r\n 5\r\n", "hello"), "400"},
        {"space before the colon", post("Content-Length : 5\r\n", "hello"), "400"},
        {"tab before the colon", post("Content-Length\t: 5\r\n", "hello"), "400"},
        // The body of a GET is read, and never taken for a request.
        {"of a GET",
         "GET / HTTP/1.1\r\nHost: t\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n",
         "200", Ending::stays, "home"},
    };
    run_cases(cases);
}

TEST_CASE("Transfer-Encoding is chunked and nothing else, and comes without a length") {
    const Case cases[] = {
        {"chunked", chunked("5\r\nhello\r\n0\r\n\r\n"), "200", Ending::stays, "\r\n\r\nhello"},
        {"any letter case of the value", post("Transfer-Encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), "200",
         Ending::stays, "\r\n\r\nhello"},
        {"any letter case", post("transfer-encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), "200",
         Ending::stays, "\r\n\r\nhello"},
        {"white space around it", post("Transfer-Encoding: \t chunked \t\r\n", "5\r\nhello\r\n0\r\n\r\n"),
         "200", Ending::stays, "\r\n\r\nhello"},
        {"an empty body", chunked("0\r\n\r\n"), "200", Ending::stays, "Content-Length: 0\r\n"},
        {"with a length", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), "400"},
        {"with a length behind it", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
         "400"},
        {"not the last coding", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), "400"},
        {"behind another", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "501"},
        {"behind another, in two fields",
         post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), "501"},
        {"twice", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), "400"},
        {"twice, in two fields",
         post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), "400"},
        {"another only", post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"), "400"},
        {"identity", post("Transfer-Encoding: identity\r\n", "0\r\n\r\n"), "400"},
        {"identity in a second field",
         post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"), "400"},
        {"empty", post("Transfer-Encoding:\r\n", "0\r\n\r\n"), "400"},
        {"a comma behind it", post("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n"), "400"},
        {"a comma before it", post("Transfer-Encoding: ,chunked\r\n", "0\r\n\r\n"), "501"},
        {"parameter", post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n"), "400"},
        {"quoted", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), "400"},
        {"a longer word", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), "400"},
        {"two words", post("Transfer-Encoding: x chunked\r\n", "0\r\n\r\n"), "400"},
        {"vertical tab", post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), "400"},
        {"no-break space",
         post("Transfer-Encoding: \xa0"
              "chunked\r\n",
              "0\r\n\r\n"),
         "400"},
        {"control behind it", post("Transfer-Encoding: chunked\x01\r\n", "0\r\n\r\n"), "400"},
        {"folded", post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n", "hello"), "400"},
        {"folded behind the value", post("Transfer-Encoding: chunked\r\n , identity\r\n", "0\r\n\r\n"),
         "400"},
        {"space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), "400"},
        {"in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
         "400"},
        {"behind a bare CR", post("X-Abc: \rxTransfer-Encoding: chunked\r\n", "1\r\nA\r\n0\r\n\r\n"), "400"},
        {"another field that ends in its name", post("X-Transfer-Encoding: chunked\r\n"), "200",
         Ending::stays},
    };
    run_cases(cases);
}

TEST_CASE("chunk sizes") {
    const Case cases[] = {
        {"several", chunked("5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n"), "200", Ending::stays,
         "\r\n\r\nhello world"},
        {"both letter cases", chunked("a\r\n0123456789\r\nB\r\nabcdefghijk\r\n0\r\n\r\n"), "200",
         Ending::stays, "\r\n\r\n0123456789abcdefghijk"},
        {"leading zeros", chunked("0000000000000005\r\nhello\r\n000\r\n\r\n"), "200", Ending::stays,
         "\r\n\r\nhello"},
        {"data that looks like the end", chunked("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), "200", Ending::stays,
         "\r\n\r\n0\r\n\r\n"},
        {"more digits than 64 bits have", chunked("00000000000000005\r\nhello\r\n0\r\n\r\n"), "400"},
        {"empty", chunked("1\r\nZ\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n"), "400"},
        {"underscore", chunked("0_0\r\n\r\n"), "400"},
        {"negative", chunked("-2\r\nAAAA\r\n0\r\n\r\n"), "400"},
        {"plus", chunked("+2\r\nAA\r\n0\r\n\r\n"), "400"},
        {"prefix of hexadecimal", chunked("0x2\r\nAA\r\n0\r\n\r\n"), "400"},
        {"letter behind f", chunked("g\r\nAA\r\n0\r\n\r\n"), "400"},
        {"space before it", chunked(" 2\r\nAA\r\n0\r\n\r\n"), "400"},
        {"space behind it", chunked("2 \r\nAA\r\n0\r\n\r\n"), "400"},
        {"tab behind it", chunked("2\t\r\nAA\r\n0\r\n\r\n"), "400"},
        {"space inside", chunked("1 0\r\nAA\r\n0\r\n\r\n"), "400"},
        {"NUL behind it", chunked(std::string("2\0\r\nAA\r\n0\r\n\r\n", 14)), "400"},
        {"2^64 - 1", chunked("FFFFFFFFFFFFFFFF\r\nAA"), "413"},
        {"2^64", chunked("10000000000000000\r\nAA"), "400"},
        {"2^64 + 2", chunked("10000000000000002\r\nAA\r\n0\r\n\r\n"), "400"},
        {"above the limit", chunked("100001\r\nAA"), "413"},
        {"above the limit with the one before", chunked("5\r\nhello\r\nFFFFC\r\nAA"), "413"},
        {"data too short", chunked("6\r\nhello\r\n0\r\n\r\n"), "400"},
        {"data too long", chunked("4\r\nhello\r\n0\r\n\r\n"), "400"},
        {"the next size behind the data", chunked("5\r\nhello0\r\n\r\n"), "400"},
    };
    run_cases(cases);
}

TEST_CASE("line ends in chunks and trailers are CRLF") {
    const Case cases[] = {
        {"bare CR behind a size", chunked("1\r0\r\n\r\n"), "400"},
        {"bare LF behind a size", chunked("5\nhello\r\n0\r\n\r\n"), "400"},
        {"bare CR behind data", chunked("5\r\nhello\r0\r\n\r\n"), "400"},
        {"bare LF behind data", chunked("5\r\nhello\n0\r\n\r\n"), "400"},
        {"two bytes that are no line end behind data", chunked("5\r\nhelloXX0\r\n\r\n"), "400"},
        {"LF CR behind data", chunked("5\r\nhello\n\r0\r\n\r\n"), "400"},
        {"bare LF behind the last size", chunked("0\n\r\n"), "400"},
        {"bare LF at the end", chunked("0\r\n\n"), "400"},
        {"bare CR at the end", chunked("0\r\n\rGET / HTTP/1.1\r\nHost: t\r\n\r\n"), "400"},
        {"bare LF in an extension", chunked("5;a\nb\r\nhello\r\n0\r\n\r\n"), "400"},
        {"bare CR in an extension", chunked("5;a\rb\r\nhello\r\n0\r\n\r\n"), "400"},
        {"line end in a quoted extension", chunked("5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n"), "400"},
        {"bare LF behind a trailer", chunked("0\r\nX: y\n\r\n"), "400"},
        {"bare CR in a trailer", chunked("0\r\nX: y\rz\r\n\r\n"), "400"},
        {"folded trailer", chunked("0\r\nX: y\r\n z\r\n\r\n"), "400"},
        {"data may hold any", chunked("4\r\n\r\n\n\r\r\n0\r\n\r\n"), "200", Ending::stays,
         "\r\n\r\n\r\n\n\r"},
    };
    run_cases(cases);
}

TEST_CASE("chunk extensions are checked and left out") {
    const Case cases[] = {
        {"a name", chunked("5;a\r\nhello\r\n0\r\n\r\n"), "200", Ending::stays, "\r\n\r\nhello"},
        {"name and value", chunked("5;a=b\r\nhello\r\n0;c=d\r\n\r\n"), "200", Ending::stays, "\r\n\r\nhello"},
        {"several", chunked("5;a=b;c;d=e\r\nhello\r\n0\r\n\r\n"), "200", Ending::stays, "\r\n\r\nhello"},
        {"quoted string", chunked("5;name=\"v;x\\\"\";b\r\nhello\r\n0\r\n\r\n"), "200", Ending::stays,
         "\r\n\r\nhello"},
        {"quoted obs-text and tab", chunked("5;a=\"\xe4\t\\\xf6\"\r\nhello\r\n0\r\n\r\n"), "200",
         Ending::stays, "\r\n\r\nhello"},
        {"empty quoted string", chunked("5;a=\"\"\r\nhello\r\n0\r\n\r\n"), "200", Ending::stays,
         "\r\n\r\nhello"},
        {"bad white space, which must be taken", chunked("5 ; a\t= b ;\tc\r\nhello\r\n0\r\n\r\n"), "200",
         Ending::stays, "\r\n\r\nhello"},
        {"as large as a block", chunked("5;a=" + std::string(16'000, 'b') + "\r\nhello\r\n0\r\n\r\n"), "200",
         Ending::stays, "\r\n\r\nhello"},
        {"larger than a block", chunked("5;a=" + std::string(16'400, 'b') + "\r\nhello\r\n0\r\n\r\n"), "400"},
        {"no name", chunked("5;\r\nhello\r\n0\r\n\r\n"), "400"},
        {"no name but a value", chunked("5;=b\r\nhello\r\n0\r\n\r\n"), "400"},
        {"no value", chunked("5;a=\r\nhello\r\n0\r\n\r\n"), "400"},
        {"two semicolons", chunked("5;;a\r\nhello\r\n0\r\n\r\n"), "400"},
        {"two values", chunked("5;a=b=c\r\nhello\r\n0\r\n\r\n"), "400"},
        {"two words", chunked("5;a b\r\nhello\r\n0\r\n\r\n"), "400"},
        {"text behind a quoted string", chunked("5;a=\"b\"c\r\nhello\r\n0\r\n\r\n"), "400"},
        {"white space at the end", chunked("5;a \r\nhello\r\n0\r\n\r\n"), "400"},
        {"no token", chunked("5;a@b\r\nhello\r\n0\r\n\r\n"), "400"},
        {"control in a quoted string", chunked("5;a=\"\x01\"\r\nhello\r\n0\r\n\r\n"), "400"},
        {"control behind a backslash", chunked("5;a=\"\\\x7f\"\r\nhello\r\n0\r\n\r\n"), "400"},
        {"unclosed quoted string", chunked("5;a=\"b\r\nhello\r\n0\r\n\r\n"), "400"},
    };
    run_cases(cases);
}

TEST_CASE("trailers are checked and change nothing") {
    std::string many;
    for (int i = 0; i < 100; ++i) {
        many += "X: y\r\n";
    }
    const Case cases[] = {
        {"one", chunked("5\r\nhello\r\n0\r\nX: y\r\n\r\n"), "200", Ending::stays, "\r\n\r\nhello"},
        {"empty value", chunked("5\r\nhello\r\n0\r\nX:\r\n\r\n"), "200", Ending::stays, "\r\n\r\nhello"},
        {"a length, which reframes nothing",
         chunked("5\r\nhello\r\n0\r\nContent-Length: 50\r\nX-T: 1\r\n\r\n") + get("/"), "200 200",
         Ending::stays, "home"},
        {"Connection, which closes nothing", chunked("0\r\nConnection: close\r\n\r\n") + get("/"), "200 200",
         Ending::stays, "home"},
        {"a coding", chunked("0\r\nTransfer-Encoding: gzip\r\n\r\n") + get("/"), "200 200", Ending::stays,
         "home"},
        {"Host", chunked("0\r\nHost: u\r\n\r\n") + get("/"), "200 200", Ending::stays, "home"},
        {"as many as may be", chunked("0\r\n" + many + "\r\n"), "200", Ending::stays},
        {"one more", chunked("0\r\n" + many + "X: y\r\n\r\n"), "431"},
        {"larger than a block", chunked("0\r\nX: " + std::string(16'400, 'y') + "\r\n\r\n"), "431"},
        {"no name", chunked("0\r\n: y\r\n\r\n"), "400"},
        {"no colon", chunked("0\r\nX\r\n\r\n"), "400"},
        {"space before the colon", chunked("0\r\nX : y\r\n\r\n"), "400"},
        {"space before the name", chunked("0\r\n X: y\r\n\r\n"), "400"},
        {"NUL", chunked(std::string("0\r\nX: \0\r\n\r\n", 11)), "400"},
        {"a request in their place", chunked("0\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n"), "400"},
    };
    run_cases(cases);
}

TEST_CASE("messages follow each other in one stream") {
    std::string sixteen;
    std::string sixteen_times_200 = "200";
    for (int i = 0; i < 16; ++i) {
        sixteen_times_200 += i > 0 ? " 200" : "";
        sixteen += i % 2 == 0 ? get("/") : get("/echo?" + std::to_string(i));
    }
    const std::string http_1_0 = "GET / HTTP/1.0\r\nHost: t\r\nConnection: keep-alive\r\n\r\n";
    const Case cases[] = {
        {"sixteen in one segment", sixteen, sixteen_times_200, Ending::stays},
        {"bodies of all kinds",
         chunked("3\r\none\r\n0\r\n\r\n") + post("Content-Length: 3\r\n", "two") + post("") + get("/"),
         "200 200 200 200", Ending::stays, "home"},
        {"empty lines between them", get("/") + "\r\n" + get("/") + "\r\n\r\n" + get("/"), "200 200 200",
         Ending::stays},
        {"HEAD before GET", "HEAD / HTTP/1.1\r\nHost: t\r\n\r\n" + get("/"), "200 200", Ending::stays, "home",
         "", 1},
        {"nothing behind close", get("/", "Connection: close\r\n") + get("/"), "200", Ending::closes_as_asked,
         "Connection: close"},
        {"HTTP/1.0 that asks to stay", http_1_0 + http_1_0, "200 200", Ending::stays,
         "Connection: keep-alive"},
        {"a body, then nonsense", post("Content-Length: 5\r\n", "hello") + "nonsense\r\n\r\n", "200 400",
         Ending::closes, "hello"},
        {"a body that is longer than its length",
         post("Content-Length: 5\r\n", "helloGET / HTTP/1.1\r\nHost: t\r\n\r\n"), "200 200", Ending::stays,
         "home"},
        {"405", "POST /only-get HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n", "405", Ending::stays,
         "\r\nAllow: "},
        {"405 and a message behind it",
         "POST /only-get HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n" + get("/"), "405 200",
         Ending::stays, "\r\nAllow: "},
        {"Range with POST", post("Content-Length: 5\r\nRange: bytes=0-1\r\n", "hello"), "200", Ending::stays,
         "hello"},
    };
    run_cases(cases);
}

}  // namespace penstock::test
