# Gives Zstandard::zstd and Zstandard_VERSION. Installed beside penstock-config.cmake, which may need it too.
find_path(Zstandard_INCLUDE_DIR zstd.h)
find_library(Zstandard_LIBRARY zstd)
mark_as_advanced(Zstandard_INCLUDE_DIR Zstandard_LIBRARY)

if(Zstandard_INCLUDE_DIR)
    set(Zstandard_VERSION "")
    foreach(part MAJOR MINOR RELEASE)
        file(STRINGS "${Zstandard_INCLUDE_DIR}/zstd.h" line REGEX "#define ZSTD_VERSION_${part} ")
        string(REGEX MATCH "[0-9]+" number "${line}")
        string(APPEND Zstandard_VERSION ".${number}")
    endforeach()
    string(SUBSTRING "${Zstandard_VERSION}" 1 -1 Zstandard_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Zstandard REQUIRED_VARS Zstandard_LIBRARY Zstandard_INCLUDE_DIR
    VERSION_VAR Zstandard_VERSION)
if(Zstandard_FOUND AND NOT TARGET Zstandard::zstd)
    add_library(Zstandard::zstd UNKNOWN IMPORTED)
    set_target_properties(Zstandard::zstd PROPERTIES IMPORTED_LOCATION "${Zstandard_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${Zstandard_INCLUDE_DIR}")
endif()
