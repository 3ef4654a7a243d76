# Gives jemalloc::jemalloc and jemalloc_VERSION.
find_path(jemalloc_INCLUDE_DIR jemalloc/jemalloc.h)
find_library(jemalloc_LIBRARY jemalloc)
mark_as_advanced(jemalloc_INCLUDE_DIR jemalloc_LIBRARY)

if(jemalloc_INCLUDE_DIR)
    file(STRINGS "${jemalloc_INCLUDE_DIR}/jemalloc/jemalloc.h" line REGEX "#define JEMALLOC_VERSION ")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" jemalloc_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(jemalloc REQUIRED_VARS jemalloc_LIBRARY jemalloc_INCLUDE_DIR
    VERSION_VAR jemalloc_VERSION)
if(jemalloc_FOUND AND NOT TARGET jemalloc::jemalloc)
    add_library(jemalloc::jemalloc UNKNOWN IMPORTED)
    set_target_properties(jemalloc::jemalloc PROPERTIES IMPORTED_LOCATION "${jemalloc_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${jemalloc_INCLUDE_DIR}")
endif()
