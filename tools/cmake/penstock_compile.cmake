# How our own targets are compiled. Third-party sources and an embedder's targets are left alone, except
# by sanitizers, which only work when everything has them.

if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
    if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
        find_program(PENSTOCK_CCACHE ccache)
        mark_as_advanced(PENSTOCK_CCACHE)
        if(PENSTOCK_CCACHE)
            set(CMAKE_C_COMPILER_LAUNCHER "${PENSTOCK_CCACHE}")
            set(CMAKE_CXX_COMPILER_LAUNCHER "${PENSTOCK_CCACHE}")
        endif()
    endif()
endif()

if(PENSTOCK_SANITIZE)
    set(sanitize_flags "-fsanitize=${PENSTOCK_SANITIZE}" -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        # Clang 14 cannot compile some coroutines with it: its data in front of a function does not follow the
        # coroutine's parts into their sections ("Cannot represent a difference across sections").
        list(APPEND sanitize_flags -fno-sanitize=function)
    endif()
    add_compile_options(${sanitize_flags})
    add_link_options(${sanitize_flags})
    penstock_report(sanitizers "${PENSTOCK_SANITIZE}")
endif()

# What is recorded lies beside each object, so both steps share one build folder; tools/fast makes them.
if(PENSTOCK_PROFILE)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        message(FATAL_ERROR "PENSTOCK_PROFILE is for g++: set CMAKE_CXX_COMPILER=g++ and CMAKE_C_COMPILER=gcc, or leave it out")
    elseif(PENSTOCK_PROFILE STREQUAL "record")
        add_compile_options(-fprofile-generate -fprofile-update=prefer-atomic)
        add_link_options(-fprofile-generate)
    elseif(PENSTOCK_PROFILE STREQUAL "use")
        # Most of what is not on the way of a request has never run. It is compiled as without a profile.
        add_compile_options(-fprofile-use -fprofile-correction -fprofile-partial-training -Wno-missing-profile)
    else()
        message(FATAL_ERROR "PENSTOCK_PROFILE is \"${PENSTOCK_PROFILE}\"; it can be empty, record or use")
    endif()
    penstock_report(profile "${PENSTOCK_PROFILE}")
endif()

# For every target of ours, library and executable.
function(penstock_compile target)
    target_compile_features(${target} PUBLIC cxx_std_20)
    # On 32-bit systems the C library has a choice, and files above 2 GB need this one (man 7 feature_test_macros).
    target_compile_definitions(${target} PRIVATE _FILE_OFFSET_BITS=64 _TIME_BITS=64)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
    if(PENSTOCK_WARNINGS)
        target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    endif()
    if(PENSTOCK_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(NOT PROJECT_IS_TOP_LEVEL)
        return()
    endif()
    if(PENSTOCK_SANITIZE)
        target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
        return()
    endif()
    target_compile_options(${target} PRIVATE -fstack-protector-strong
        # It needs an optimised build (man 7 feature_test_macros). Some distributions define it already.
        "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
    target_compile_definitions(${target} PRIVATE "$<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE" AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
        target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
    endif()
endfunction()

# For the executables that stand for what a user runs: the program and the benchmarks. Tests keep the
# system's allocator, which tools and counters understand.
function(penstock_use_jemalloc target)
    if(PENSTOCK_USE_JEMALLOC)
        target_link_libraries(${target} PRIVATE jemalloc::jemalloc)
    endif()
endfunction()
