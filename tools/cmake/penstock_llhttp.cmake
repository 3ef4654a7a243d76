# llhttp: a CMake package where there is one, else built from the generated C that Debian ships in
# node-llhttp. `ci/install` unpacks that package below build/packages rather than installing it, since as
# a dependency it would bring Node.js. Gives penstock_llhttp, to link, and PENSTOCK_LLHTTP_OBJECTS, to
# put into our archives.

set(PENSTOCK_LLHTTP_OBJECTS "")
find_package(llhttp QUIET CONFIG)
if(llhttp_FOUND)
    set(PENSTOCK_LLHTTP_PACKAGE llhttp::llhttp)
    foreach(candidate llhttp::llhttp_static llhttp::llhttp_shared)
        if(TARGET ${candidate})
            set(PENSTOCK_LLHTTP_PACKAGE ${candidate})
            break()
        endif()
    endforeach()
    add_library(penstock_llhttp ALIAS ${PENSTOCK_LLHTTP_PACKAGE})
    penstock_report(llhttp "${llhttp_VERSION}, as a CMake package")
    return()
endif()

find_path(PENSTOCK_LLHTTP_SOURCES llhttp.c
    PATHS "${PROJECT_SOURCE_DIR}/build/packages/usr/share/llhttp" /usr/share/llhttp NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_path(PENSTOCK_LLHTTP_INCLUDE llhttp.h
    PATHS "${PENSTOCK_LLHTTP_SOURCES}/../include/llhttp" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(PENSTOCK_LLHTTP_SOURCES PENSTOCK_LLHTTP_INCLUDE)
if(NOT PENSTOCK_LLHTTP_SOURCES OR NOT PENSTOCK_LLHTTP_INCLUDE)
    message(FATAL_ERROR "llhttp is required and was not found, neither as a CMake package nor as Debian's "
        "node-llhttp. On Debian: ci/install build (or apt-get install node-llhttp, which brings Node.js)")
endif()

add_library(penstock_llhttp OBJECT
    "${PENSTOCK_LLHTTP_SOURCES}/api.c"
    "${PENSTOCK_LLHTTP_SOURCES}/http.c"
    "${PENSTOCK_LLHTTP_SOURCES}/llhttp.c")
target_compile_definitions(penstock_llhttp PUBLIC LLHTTP_STRICT_MODE=1)
# Generated code, neither ours to tidy nor bearable in an unoptimised build.
target_compile_options(penstock_llhttp PRIVATE -w -O2)
target_include_directories(penstock_llhttp SYSTEM PUBLIC "${PENSTOCK_LLHTTP_INCLUDE}")
set(PENSTOCK_LLHTTP_OBJECTS $<TARGET_OBJECTS:penstock_llhttp>)

set(version "")
foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${PENSTOCK_LLHTTP_INCLUDE}/llhttp.h" line REGEX "LLHTTP_VERSION_${part} ")
    string(REGEX REPLACE ".*LLHTTP_VERSION_${part} +" "." line "${line}")
    string(APPEND version "${line}")
endforeach()
string(SUBSTRING "${version}" 1 -1 version)
cmake_path(NORMAL_PATH PENSTOCK_LLHTTP_SOURCES OUTPUT_VARIABLE place)
penstock_report(llhttp "${version}, strict, built from ${place}")
