# The server program, bin/penstock in the build tree.

penstock_glob(program_sources tools/penstock)
find_package(CLI11 QUIET CONFIG)
if(NOT program_sources)
    penstock_report(program "off: no sources in tools/penstock/")
elseif(NOT TARGET penstock)
    penstock_report(program "off: the library is off")
elseif(NOT CLI11_FOUND)
    penstock_report(program "off: CLI11 was not found (libcli11-dev)")
else()
    # Not `penstock`: that is the library. Not in the build tree's root: ninja has that name there too.
    add_executable(penstock_program ${program_sources})
    set_target_properties(penstock_program PROPERTIES OUTPUT_NAME penstock
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
    penstock_compile(penstock_program)
    target_compile_definitions(penstock_program PRIVATE PENSTOCK_VERSION="${PROJECT_VERSION}")
    target_link_libraries(penstock_program PRIVATE penstock CLI11::CLI11)
    penstock_use_jemalloc(penstock_program)
    penstock_report(program "bin/penstock, CLI11 ${CLI11_VERSION}")
endif()
