# What `cmake --install` puts where. Only public headers are installed. penstock_testing is not: what drives a reactor in
# it is still internal.

if(NOT TARGET penstock)
    return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/penstock")
install(TARGETS penstock EXPORT penstock-targets)
install(EXPORT penstock-targets NAMESPACE penstock:: DESTINATION "${package_dir}")
configure_package_config_file(tools/cmake/penstock-config.cmake.in
    "${PROJECT_BINARY_DIR}/penstock-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/penstock-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/penstock-config.cmake"
    "${PROJECT_BINARY_DIR}/penstock-config-version.cmake" tools/cmake/FindxxHash.cmake
    tools/cmake/FindBrotli.cmake tools/cmake/FindZstandard.cmake tools/cmake/FindwolfSSL.cmake
    DESTINATION "${package_dir}")

# A header is public by its first line, which is read when installing.
install(CODE "set(source_dir [[${PROJECT_SOURCE_DIR}]])
set(include_dir [[${CMAKE_INSTALL_INCLUDEDIR}]])")
install(SCRIPT tools/cmake/install_headers.cmake)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET penstock_program)
    install(TARGETS penstock_program)
endif()
