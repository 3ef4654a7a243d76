// Keeps the files of a form in a directory: upload DIRECTORY [ADDRESS]. Then
//
//     curl -F photo=@photo.jpg -F photo=@another.jpg http://localhost:8080/upload
#include <penstock/penstock.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <string>

namespace {

// What a client calls its file is no name for ours. Where one is taken all the same, persist says so.
std::string next_name() {
    static const std::string start = std::to_string(std::time(nullptr));
    static std::atomic<unsigned> count{0};
    return start + "-" + std::to_string(++count);
}

penstock::Task<> keep(const std::string& directory, penstock::Request& request, penstock::Response& response) {
    const auto boundary = penstock::multipart_boundary(request.header(penstock::HeaderName::content_type));
    if (!boundary.ok()) {
        response.status(415).send(boundary.error().message + "\n");
        co_return;
    }
    penstock::MultipartReader reader(request, boundary.value());
    std::string kept;
    while (co_await reader.next() != nullptr) {
        auto file = co_await reader.save(directory);
        if (reader.failed()) {
            break;
        }
        if (!file.ok()) {  // what was saved of it has gone already
            response.status(file.error().code == ENOSPC ? 507 : 500).send("the file cannot be saved\n");
            co_return;
        }
        const std::string name = next_name();
        if (!(co_await file.value().persist(directory + "/" + name)).ok()) {
            response.status(500).send("the file cannot be kept\n");
            co_return;
        }
        kept += name + " " + std::to_string(file.value().size_bytes()) + "\n";
    }
    if (reader.failed()) {
        response.status(reader.error_status()).send(std::string(reader.error()) + "\n");
        co_return;
    }
    response.status(201).send(kept);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string directory = argc > 1 ? argv[1] : ".";
    penstock::Router router;
    router.post(
        "/upload",
        [directory](penstock::Request& request, penstock::Response& response) {
            return keep(directory, request, response);
        },
        {.body_limit_bytes = 1 << 30});

    penstock::Server server({.reactors = 0});
    server.listen({.address = argc > 2 ? argv[2] : "", .port = 8080}, router);
    return server.run();
}
