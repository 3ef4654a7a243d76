#include "options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "number_option.h"

#ifndef PENSTOCK_VERSION
#define PENSTOCK_VERSION "0.1.0"
#endif

namespace penstock::program {

namespace {

constexpr std::uint16_t kDefaultPort = 8080;

// Where the descriptions of the options begin: right of the longest of them.
constexpr std::size_t kHelpColumn = 34;

constexpr const char* kDescription =
    "Penstock, an HTTP server: one port, one reactor per core, nothing shared.";

constexpr const char* kFooter = R"(Examples:
  penstock serve site                        the files below ./site at port 8080
  penstock serve site --port 80 --pin        one reactor per core, each staying on its core
  penstock serve site --tls chain.pem key.pem --port 443 --redirect-port 80
                                             by TLS, with whoever comes to port 80 sent there
  penstock serve site --config server.toml   the options in the file, and those given here
  penstock echo --address unix:/tmp/echo     on a Unix socket

`penstock serve --help` and `penstock echo --help` show all options.
SIGTERM or SIGINT ends the server when it has answered what is under way; a second one ends it at once.
SIGHUP has a server with TLS read its certificates again.
Exit status: 0 after a signal, 1 when it could not serve, 2 when the command line is wrong.)";

constexpr const char* kCommandFooter =
    R"(--config FILE reads options from a file, one a line; the command line wins over them:
  port = 80
  reactors = 2
  pin = true
  tls = ["chain.pem", "key.pem"])";

constexpr const char* kServeFooter = R"(
  cache-control = "*.css=max-age=5, immutable"   (a line for each rule))";

// Reads every line as an option of the command that was given, so that a file needs no section for it.
class ConfigurationFile : public CLI::ConfigTOML {
public:
    explicit ConfigurationFile(const CLI::App& program) : program_(program) {}

    std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

private:
    const CLI::App& program_;
};

class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter();

    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
};

void add_commands(CLI::App& program, Options* options);
ParsedOptions report(const CLI::App& program, const CLI::ParseError& error);

}  // namespace

const char* version() {
    return PENSTOCK_VERSION;
}

ParsedOptions parse_options(int argc, const char* const* argv) {
    ParsedOptions parsed;
    CLI::App program(kDescription, "penstock");
    program.formatter(std::make_shared<HelpFormatter>());
    program.config_formatter(std::make_shared<ConfigurationFile>(program));
    program.set_help_flag("-h,--help", "Show this and end");
    const std::string tls = tls_library();
    program.set_version_flag("--version", std::string("penstock ") + version() + "\nTLS: " + (tls.empty() ? "none" : tls),
                             "Show the version and end");
    program.set_config("--config", "", "Read options from a file")->type_name("FILE");
    program.allow_config_extras(CLI::config_extras_mode::error);
    program.require_subcommand(1);
    program.fallthrough();  // `serve DIR --config FILE`; inherited by the commands
    program.footer(kFooter);
    add_commands(program, &parsed.options);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return report(program, error);
    }
    const CLI::App& command = *program.get_subcommands().front();
    const std::string contradiction = check_tls_options(command, parsed.options.tls, parsed.options.listen);
    if (!contradiction.empty()) {
        std::fprintf(stderr, "penstock: %s\n", contradiction.c_str());
        parsed.exit_status = kExitUsage;
        return parsed;
    }
    parsed.options.command = program.got_subcommand("serve") ? Command::serve : Command::echo;
    return parsed;
}

namespace {

void add_file_options(CLI::App& command, StaticFileOptions* files);
void add_network_options(CLI::App& command, Options* options);
void add_limit_options(CLI::App& command, Options* options);

void add_commands(CLI::App& program, Options* options) {
    options->listen.port = kDefaultPort;
    CLI::App& serve = *program.add_subcommand("serve", "Serve the files below a directory");
    serve.add_option("DIR", options->directory, "The directory whose files are served")->required();
    serve.add_flag("--demo", options->demo,
                   "Add routes to try and to measure with: /plaintext, /json, /small,\n"
                   "/medium, /large, /f, /hello/NAME, /only-get, /echo, /tls, /stream/BYTES,\n"
                   "/callback/stream/BYTES; for POST /count, /callback/count, /upload");
    add_file_options(serve, &options->files);
    serve.add_flag("--compress", options->compress,
                   "Compress text and the like of 1,000 bytes or more on its way, as br, zstd,\n"
                   "gzip or deflate, for clients that take it");
    CLI::App& echo = *program.add_subcommand("echo", "Answer every request with its own body");
    for (CLI::App* const command : {&serve, &echo}) {
        command->group("Commands");
        command->footer(std::string(kCommandFooter) + (command == &serve ? kServeFooter : ""));
        add_network_options(*command, options);
        add_tls_options(*command, &options->tls);
        add_limit_options(*command, options);
    }
}

void add_file_options(CLI::App& command, StaticFileOptions* files) {
    command.add_flag("--listing", files->directory_listing, "List directories that have no index.html");
    add_number(command, "--file-cache", &files->cache.entries, "N",
               "Paths that each reactor knows, with the content of small files;\n0 opens a file for each request");
    add_number(command, "--file-cache-bytes", &files->cache.bytes, "BYTES", "Memory of each reactor for that");
    add_number(command, "--file-cache-descriptors", &files->cache.descriptors, "N",
               "Files too large for that, which it keeps open");
    add_number(command, "--file-cache-ttl", &files->cache.time_to_live_ms, "MS",
               "How long a file is sent as it was found before it is looked at again,\nin milliseconds");
    command
        .add_option("--prewarm", files->prewarm, "A file below DIR that is read at the start; may be given again")
        ->type_name("FILE");
    command.add_flag("--precompressed", files->precompressed,
                     "Send NAME.br, NAME.zst or NAME.gz in place of NAME to clients that take it");
    command
        .add_option("--spa", files->spa_fallback,
                    "The file below DIR that answers for paths that have none and whose\n"
                    "last name has no dot")
        ->type_name("FILE");
    command
        .add_option_function<std::vector<std::string>>(
            "--cache-control",
            [files](const std::vector<std::string>& rules) {
                for (const std::string& rule : rules) {
                    const std::size_t split = rule.find('=');  // is there: checked below
                    files->cache_control.push_back({rule.substr(0, split), rule.substr(split + 1)});
                }
            },
            "Cache-Control of files that fit the pattern, \"*.css=max-age=3600\"; may be\n"
            "given again, and the first that fits wins. Not of lists of directories")
        ->type_name("PATTERN=VALUE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(CLI::Validator(
            [](const std::string& rule) {
                return rule.find('=') != std::string::npos ? std::string() : "\"" + rule + "\" is not PATTERN=VALUE";
            },
            ""));
}

void add_network_options(CLI::App& command, Options* options) {
    add_number(command, "--port", &options->listen.port, "PORT",
               "Port to listen on; 0 takes any that is free");
    command
        .add_option("--address", options->listen.address,
                    "IPv4 or IPv6 address, or unix:/path (all addresses)")
        ->type_name("ADDRESS");
    add_number(command, "--reactors", &options->config.reactors, "N",
               "Reactors, each with a thread of its own; 0 makes one per core");
    CLI::Option* const pin =
        command.add_flag("--pin", options->config.pin_reactors, "Keep each reactor on a core of its own");
    command
        .add_flag_callback(
            "--steer-by-cpu", [options] { options->config.steering = Steering::receiving_cpu; },
            "Give a connection to the reactor on the core that its first packet\n"
            "came in on; together with --pin")
        ->needs(pin);
}

void add_limit_options(CLI::App& command, Options* options) {
    Config& config = options->config;
    add_number(command, "--connection-limit", &config.connection_limit, "N", "Open connections per reactor");
    add_number(command, "--requests-per-connection", &config.requests_per_connection_limit, "N",
               "Requests before a connection is told to close; 0: any number");
    add_number(command, "--head-limit", &config.head_limit_bytes, "BYTES", "The longest head of a request");
    add_number(command, "--target-limit", &config.target_limit_bytes, "BYTES", "The longest target in it");
    add_number(command, "--header-limit", &config.header_count_limit, "N", "Fields of a head");
    add_number(command, "--body-limit", &config.body_limit_bytes, "BYTES", "The largest body of a request");
    add_number(command, "--idle-timeout", &config.idle_timeout_ms, "MS", "A connection between two requests");
    add_number(command, "--head-timeout", &config.head_timeout_ms, "MS",
               "From the first byte of a head to its end");
    add_number(command, "--body-timeout", &config.body_timeout_ms, "MS", "From there to the end of the body");
    add_number(command, "--body-rate", &config.body_rate_min_bytes_per_s, "BYTES",
               "A second more for each so many bytes that came");
    add_number(command, "--write-timeout", &config.write_timeout_ms, "MS",
               "Without progress while the client takes nothing");
    add_number(command, "--write-rate", &config.write_rate_min_bytes_per_s, "BYTES",
               "A second back for each so many bytes that it takes");
    add_number(command, "--request-timeout", &config.request_timeout_ms, "MS",
               "A whole request with its answer; 0: any time");
    add_number(command, "--drain-timeout", &config.drain_timeout_ms, "MS",
               "From SIGTERM to the end of what is still under way");
}

std::vector<CLI::ConfigItem> ConfigurationFile::from_config(std::istream& input) const {
    std::vector<CLI::ConfigItem> lines = CLI::ConfigTOML::from_config(input);
    const std::vector<const CLI::App*> given =
        program_.get_subcommands([](const CLI::App* command) { return command->parsed() > 0; });
    if (given.empty()) {
        return {};  // told as such
    }
    const CLI::App& command = *given.front();
    for (CLI::ConfigItem& item : lines) {
        if (!item.parents.empty()) {
            throw CLI::ConfigError("it has the section \"" + item.parents.front() +
                                   "\", and options stand in none");
        }
        if (command.get_option_no_throw("--" + item.name) == nullptr) {
            throw CLI::ConfigError("it names \"" + item.name + "\", and `penstock " + command.get_name() +
                                   "` has no such option");
        }
        item.parents = {command.get_name()};
    }
    return lines;
}

HelpFormatter::HelpFormatter() {
    column_width(kHelpColumn);
    label("Positionals", "Arguments");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string) const {
    if (app->get_parent() == nullptr) {
        return "\nUsage: penstock COMMAND [OPTIONS]\n";
    }
    const bool takes_directory = app->get_option_no_throw("DIR") != nullptr;
    return "\nUsage: penstock " + app->get_name() + (takes_directory ? " DIR" : "") + " [OPTIONS]\n";
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
    return option->get_type_size() == 0 || option->get_positional() ? "" : " " + option->get_type_name();
}

std::string explanation(const CLI::App& program, const CLI::ParseError& error);

ParsedOptions report(const CLI::App& program, const CLI::ParseError& error) {
    ParsedOptions parsed;
    if (dynamic_cast<const CLI::Success*>(&error) != nullptr) {
        program.exit(error);  // help and version, on stdout
        parsed.exit_status = 0;
        return parsed;
    }
    std::fprintf(stderr, "penstock: %s\n", explanation(program, error).c_str());
    parsed.exit_status = dynamic_cast<const CLI::FileError*>(&error) != nullptr ? kExitFailure : kExitUsage;
    return parsed;
}

std::string explanation(const CLI::App& program, const CLI::ParseError& error) {
    const std::string what = error.what();
    const std::string file =
        "the configuration file \"" + program.get_option("--config")->as<std::string>() + "\"";
    const std::vector<CLI::App*> commands = program.get_subcommands();
    const std::string called = "penstock" + (commands.empty() ? "" : " " + commands.front()->get_name());
    const std::string help = "; `" + called + " --help` shows how it is used";
    const std::vector<std::string> unknown = program.remaining(true);
    if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) {
        return file + " cannot be read; check its name and its permissions";
    }
    if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
        return file + " cannot be used: " + what + help;
    }
    if (!unknown.empty()) {
        return "`" + called + "` does not know \"" + unknown.front() + "\"" + help;
    }
    if (commands.empty()) {
        return "no command was given; write `penstock serve DIR` or `penstock echo`";
    }
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        const std::string option = what.substr(0, what.find(':'));
        return option + (option == "--tls" ? " takes two files, a chain and its key" : " takes one value, once") + help;
    }
    return what + help;
}

}  // namespace

}  // namespace penstock::program
