# Gives xxHash::xxhash and xxHash_VERSION. Installed beside penstock-config.cmake, which needs it too.
find_path(xxHash_INCLUDE_DIR xxhash.h)
find_library(xxHash_LIBRARY xxhash)
mark_as_advanced(xxHash_INCLUDE_DIR xxHash_LIBRARY)

if(xxHash_INCLUDE_DIR)
    set(xxHash_VERSION "")
    foreach(part MAJOR MINOR RELEASE)
        file(STRINGS "${xxHash_INCLUDE_DIR}/xxhash.h" line REGEX "#define XXH_VERSION_${part} ")
        string(REGEX MATCH "[0-9]+" number "${line}")
        string(APPEND xxHash_VERSION ".${number}")
    endforeach()
    string(SUBSTRING "${xxHash_VERSION}" 1 -1 xxHash_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash REQUIRED_VARS xxHash_LIBRARY xxHash_INCLUDE_DIR
    VERSION_VAR xxHash_VERSION)
if(xxHash_FOUND AND NOT TARGET xxHash::xxhash)
    add_library(xxHash::xxhash UNKNOWN IMPORTED)
    set_target_properties(xxHash::xxhash PROPERTIES IMPORTED_LOCATION "${xxHash_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${xxHash_INCLUDE_DIR}")
endif()
