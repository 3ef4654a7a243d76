// The main of a fuzz target where libFuzzer is not linked: runs it once with nothing, then with every file
// below the folders and files given. A crash names the input, which was printed before.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::filesystem::path& path) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t count = 0;
    LLVMFuzzerTestOneInput(nullptr, 0);
    for (const std::string& given : std::vector<std::string>(argv + 1, argv + argc)) {
        if (std::filesystem::is_regular_file(given)) {
            replay(given);
            ++count;
        } else if (std::filesystem::is_directory(given)) {
            for (const auto& entry : std::filesystem::recursive_directory_iterator(given)) {
                if (entry.is_regular_file()) {
                    replay(entry.path());
                    ++count;
                }
            }
        } else {
            std::fprintf(stderr, "%s is neither a file nor a folder\n", given.c_str());
            return 1;
        }
    }
    std::printf("%zu inputs replayed\n", count);
    return 0;
}
