# Gives Brotli::brotli, which encodes and decodes. Installed beside penstock-config.cmake, which may need it too.
find_path(Brotli_INCLUDE_DIR brotli/encode.h)
find_library(Brotli_ENCODER_LIBRARY brotlienc)
find_library(Brotli_DECODER_LIBRARY brotlidec)
find_library(Brotli_COMMON_LIBRARY brotlicommon)
mark_as_advanced(Brotli_INCLUDE_DIR Brotli_ENCODER_LIBRARY Brotli_DECODER_LIBRARY Brotli_COMMON_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Brotli REQUIRED_VARS Brotli_ENCODER_LIBRARY Brotli_DECODER_LIBRARY
    Brotli_COMMON_LIBRARY Brotli_INCLUDE_DIR)
if(Brotli_FOUND AND NOT TARGET Brotli::brotli)
    add_library(Brotli::brotli INTERFACE IMPORTED)
    set_target_properties(Brotli::brotli PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${Brotli_INCLUDE_DIR}"
        # In this order: archives find in later ones what they need.
        INTERFACE_LINK_LIBRARIES "${Brotli_ENCODER_LIBRARY};${Brotli_DECODER_LIBRARY};${Brotli_COMMON_LIBRARY}")
endif()
