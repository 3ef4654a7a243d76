# penstock: the engine with the real platform. penstock_testing: the same engine objects with the
# simulated kernel. The linker picks the platform, so the engine is compiled once.

if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(PENSTOCK_BACKEND linux)
else()
    set(PENSTOCK_BACKEND bsd)
endif()

penstock_glob(engine_sources engine)
penstock_glob(protocol_sources protocols)
penstock_glob(http_sources protocols/http)
penstock_glob(websocket_sources protocols/websocket)
penstock_glob(posix_sources platform/posix)
penstock_glob(backend_sources platform/${PENSTOCK_BACKEND})
penstock_glob(sim_sources platform/sim)

if(posix_sources AND NOT backend_sources AND NOT PENSTOCK_BACKEND STREQUAL "linux")
    message(FATAL_ERROR "Penstock has no platform backend for ${CMAKE_SYSTEM_NAME} yet: "
        "platform/${PENSTOCK_BACKEND} has no sources")
endif()

# With TLS its sources, and without it what stands in for them.
if(PENSTOCK_USE_TLS)
    list(FILTER engine_sources EXCLUDE REGEX "/no_tls\\.cpp$")
else()
    list(FILTER engine_sources EXCLUDE REGEX "/tls_[a-z_]*\\.cpp$")
    list(APPEND engine_sources "${PROJECT_SOURCE_DIR}/engine/tls_work.cpp") # knows nothing of wolfSSL
endif()
set(portable_sources ${engine_sources} ${protocol_sources} ${http_sources} ${websocket_sources})
set(shared_posix_sources "${PROJECT_SOURCE_DIR}/platform/posix/error.cpp"
    "${PROJECT_SOURCE_DIR}/platform/posix/address.cpp" "${PROJECT_SOURCE_DIR}/platform/posix/random.cpp")

# What both the objects and the archives link, with the content codings that were found.
set(PENSTOCK_LIBRARIES xxHash::xxhash ZLIB::ZLIB)
if(PENSTOCK_USE_BROTLI)
    list(APPEND PENSTOCK_LIBRARIES Brotli::brotli)
endif()
if(PENSTOCK_USE_ZSTD)
    list(APPEND PENSTOCK_LIBRARIES Zstandard::zstd)
endif()
if(PENSTOCK_USE_TLS)
    # An archive can name only what is installed beside it: our own wolfSSL is inside it.
    list(APPEND PENSTOCK_LIBRARIES $<BUILD_INTERFACE:penstock_wolfssl>)
    if(TARGET wolfSSL::wolfssl)
        list(APPEND PENSTOCK_LIBRARIES wolfSSL::wolfssl)
    endif()
endif()

function(penstock_add_archive name exported_name)
    add_library(${name} STATIC $<TARGET_OBJECTS:penstock_objects> ${PENSTOCK_LLHTTP_OBJECTS} ${PENSTOCK_WOLFSSL_OBJECTS} ${ARGN})
    add_library(penstock::${exported_name} ALIAS ${name})
    set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported_name})
    penstock_compile(${name})
    target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PENSTOCK_INCLUDE_TREE}>"
        "$<INSTALL_INTERFACE:include>")
    target_link_libraries(${name} PUBLIC Threads::Threads PRIVATE ${PENSTOCK_LIBRARIES})
    if(llhttp_FOUND)
        target_link_libraries(${name} PRIVATE ${PENSTOCK_LLHTTP_PACKAGE})
    endif()
endfunction()

if(portable_sources)
    add_library(penstock_objects OBJECT ${portable_sources})
    penstock_compile(penstock_objects)
    target_include_directories(penstock_objects PUBLIC "${PENSTOCK_INCLUDE_TREE}")
    target_link_libraries(penstock_objects PUBLIC Threads::Threads
        PRIVATE ${PENSTOCK_LIBRARIES} penstock_llhttp)
    # For these alone, so that nothing else is compiled again when a library comes or goes.
    set_property(SOURCE protocols/http/content_coding.cpp protocols/http/brotli_coding.cpp
        protocols/http/zstd_coding.cpp APPEND PROPERTY COMPILE_DEFINITIONS
        PENSTOCK_HAS_BROTLI=$<BOOL:${PENSTOCK_USE_BROTLI}> PENSTOCK_HAS_ZSTD=$<BOOL:${PENSTOCK_USE_ZSTD}>)
    list(LENGTH portable_sources count)
    penstock_report(library "${count} sources, platform ${PENSTOCK_BACKEND}")
else()
    penstock_report(library "off: no sources in engine/ and protocols/")
endif()

if(TARGET penstock_objects AND backend_sources)
    penstock_add_archive(penstock penstock ${posix_sources} ${backend_sources})
elseif(portable_sources)
    penstock_report(penstock "off: no sources in platform/${PENSTOCK_BACKEND}")
endif()

if(TARGET penstock_objects AND sim_sources)
    penstock_add_archive(penstock_testing testing ${sim_sources} ${shared_posix_sources})
    if(NOT PENSTOCK_TESTS)
        set_target_properties(penstock_testing PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
elseif(portable_sources)
    penstock_report(testing "off: no sources in platform/sim")
endif()
