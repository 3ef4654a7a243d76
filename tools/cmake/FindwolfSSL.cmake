# Gives wolfSSL::wolfssl and wolfSSL_VERSION.
find_path(wolfSSL_INCLUDE_DIR wolfssl/ssl.h)
find_library(wolfSSL_LIBRARY wolfssl)
mark_as_advanced(wolfSSL_INCLUDE_DIR wolfSSL_LIBRARY)

if(wolfSSL_INCLUDE_DIR)
    file(STRINGS "${wolfSSL_INCLUDE_DIR}/wolfssl/version.h" line REGEX "#define LIBWOLFSSL_VERSION_STRING ")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" wolfSSL_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(wolfSSL REQUIRED_VARS wolfSSL_LIBRARY wolfSSL_INCLUDE_DIR
    VERSION_VAR wolfSSL_VERSION)
if(wolfSSL_FOUND AND NOT TARGET wolfSSL::wolfssl)
    add_library(wolfSSL::wolfssl UNKNOWN IMPORTED)
    set_target_properties(wolfSSL::wolfssl PROPERTIES IMPORTED_LOCATION "${wolfSSL_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${wolfSSL_INCLUDE_DIR}")
endif()
