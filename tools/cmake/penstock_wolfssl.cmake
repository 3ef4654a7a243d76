# wolfSSL, for TLS: the system's, or one of our own, built from the distribution's sources (ci/wolfssl) for this processor and with
# no more than Penstock uses. Gives PENSTOCK_USE_TLS, penstock_wolfssl, to link, and PENSTOCK_WOLFSSL_OBJECTS, to put into our
# archives.

set(PENSTOCK_USE_TLS OFF)
set(PENSTOCK_WOLFSSL_OBJECTS "")
set(wolfssl_sources "${PROJECT_SOURCE_DIR}/build/packages/wolfssl")
set(wolfssl_kind "${PENSTOCK_WOLFSSL}")
if(NOT wolfssl_kind MATCHES "^(auto|system|bundled|off)$")
    message(FATAL_ERROR "PENSTOCK_WOLFSSL is \"${PENSTOCK_WOLFSSL}\"; it can be auto, system, bundled or off")
endif()
if(wolfssl_kind STREQUAL "auto")
    set(wolfssl_kind system)
    if(EXISTS "${wolfssl_sources}/VERSION")
        set(wolfssl_kind bundled)
    endif()
endif()

if(wolfssl_kind STREQUAL "off")
    penstock_report(wolfSSL "off: PENSTOCK_WOLFSSL is off; there is no TLS")
    return()
endif()

if(wolfssl_kind STREQUAL "system")
    find_package(wolfSSL QUIET MODULE)
    if(NOT wolfSSL_FOUND AND PENSTOCK_WOLFSSL STREQUAL "system")
        message(FATAL_ERROR "PENSTOCK_WOLFSSL is system and wolfSSL was not found. On Debian: apt-get install libwolfssl-dev")
    elseif(NOT wolfSSL_FOUND)
        penstock_report(wolfSSL "off: neither libwolfssl-dev nor its sources (ci/wolfssl) were found; there is no TLS")
        return()
    endif()
    set(PENSTOCK_USE_TLS ON)
    add_library(penstock_wolfssl INTERFACE)
    target_link_libraries(penstock_wolfssl INTERFACE wolfSSL::wolfssl)
    penstock_report(wolfSSL "${wolfSSL_VERSION}, the system's: slower than one of our own (ci/wolfssl)")
    return()
endif()

if(NOT EXISTS "${wolfssl_sources}/VERSION")
    message(FATAL_ERROR "PENSTOCK_WOLFSSL is bundled and the sources of wolfSSL are not there; fetch them by ci/wolfssl")
endif()
set(PENSTOCK_USE_TLS ON)
enable_language(ASM)
file(STRINGS "${wolfssl_sources}/VERSION" wolfSSL_VERSION LIMIT_COUNT 1)

set(wolfssl_names aes asn chacha chacha20_poly1305 coding cpuid curve25519 des3 ecc ed25519 error fe_operations ge_operations hash hmac
    kdf logging md5 memory poly1305 pwdbased random rsa sha sha256 sha512 signature sp_c32 sp_c64 sp_int wc_encrypt wc_port wolfevent
    wolfmath)
set(wolfssl_flags "")
set(processor_code "portable code")

# Not every ARMv8 has them (the Raspberry Pi 4 has not), and wolfSSL does not ask when it runs. `auto`: where the compiler may use
# them anyway, or the machine that builds for itself has them.
function(penstock_find_arm_crypto variable)
    if(NOT PENSTOCK_ARM_CRYPTO STREQUAL "auto")
        set(${variable} ${PENSTOCK_ARM_CRYPTO} PARENT_SCOPE)
        return()
    endif()
    include(CheckCSourceCompiles)
    check_c_source_compiles("#if !defined(__ARM_FEATURE_CRYPTO) && !defined(__ARM_FEATURE_AES)
        #error none
        #endif
        int main(void) { return 0; }" PENSTOCK_COMPILER_HAS_ARM_CRYPTO)
    set(found ${PENSTOCK_COMPILER_HAS_ARM_CRYPTO})
    if(NOT found AND NOT CMAKE_CROSSCOMPILING AND EXISTS /proc/cpuinfo)
        file(STRINGS /proc/cpuinfo features REGEX "^Features.* aes .*pmull .*sha2( |$)" LIMIT_COUNT 1)
        if(features)
            set(found 1)
        endif()
    endif()
    set(${variable} ${found} PARENT_SCOPE)
endfunction()

if(CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(HAVE___UINT128_T 1)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    foreach(setting WOLFSSL_X86_64_BUILD WOLFSSL_AESNI USE_INTEL_SPEEDUP WOLFSSL_SP_X86_64 WOLFSSL_SP_X86_64_ASM WOLFSSL_SP_ASM)
        set(${setting} 1)
    endforeach()
    list(APPEND wolfssl_names sp_x86_64 aes_asm.S aes_gcm_asm.S chacha_asm.S fe_x25519_asm.S poly1305_asm.S sha256_asm.S
        sha512_asm.S sp_x86_64_asm.S)
    # What the processor lacks is found when the program runs, and done without (wolfcrypt/src/cpuid.c). Intrinsics have to be
    # let through for the one file that has them.
    set(WOLFSSL_ASSEMBLER_SETTING WOLFSSL_X86_64_BUILD)
    set_source_files_properties("${wolfssl_sources}/wolfcrypt/src/aes.c" PROPERTIES COMPILE_OPTIONS "-maes;-mpclmul;-msse4")
    set(processor_code "AES-NI and AVX2 where the processor has them")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    foreach(setting WOLFSSL_SP_ARM64 WOLFSSL_SP_ARM64_ASM WOLFSSL_SP_ASM)
        set(${setting} 1)
    endforeach()
    list(APPEND wolfssl_names sp_arm64)
    set(processor_code "ARMv8 code but not its crypto instructions")
    penstock_find_arm_crypto(has_crypto)
    if(has_crypto)
        set(WOLFSSL_AARCH64_BUILD 1)
        set(WOLFSSL_ARMASM 1)
        list(APPEND wolfssl_names port/arm/armv8-aes port/arm/armv8-chacha port/arm/armv8-curve25519_c port/arm/armv8-poly1305
            port/arm/armv8-sha256 port/arm/armv8-sha512 port/arm/armv8-sha512-asm_c)
        # Its inline assembler is otherwise handed addresses that no instruction can have, and one of its files names types that
        # it has not included.
        set(wolfssl_flags -march=armv8-a+crypto -mstrict-align -include stdint.h)
        set(processor_code "ARMv8 code and its crypto instructions")
    endif()
endif()

set(wolfssl_files "")
foreach(name ssl internal keys tls tls13 wolfio)
    list(APPEND wolfssl_files "${wolfssl_sources}/src/${name}.c")
endforeach()
foreach(name IN LISTS wolfssl_names)
    if(NOT name MATCHES "\\.S$")
        string(APPEND name ".c")
    endif()
    list(APPEND wolfssl_files "${wolfssl_sources}/wolfcrypt/src/${name}")
endforeach()

# Both the library and who includes its headers read the settings from there; <wolfssl/options.h> is what a configured wolfSSL has.
set(settings_dir "${PROJECT_BINARY_DIR}/wolfssl")
configure_file(tools/cmake/wolfssl_settings.h.in "${settings_dir}/user_settings.h")
file(CONFIGURE OUTPUT "${settings_dir}/wolfssl/options.h" CONTENT "#include \"user_settings.h\"\n" @ONLY)

add_library(penstock_wolfssl_objects OBJECT ${wolfssl_files})
target_include_directories(penstock_wolfssl_objects SYSTEM PUBLIC "${settings_dir}" "${wolfssl_sources}")
target_compile_definitions(penstock_wolfssl_objects PRIVATE WOLFSSL_USER_SETTINGS BUILDING_WOLFSSL
    # Some of the assembler asks for it before it reads the settings.
    $<$<COMPILE_LANGUAGE:ASM>:${WOLFSSL_ASSEMBLER_SETTING}>)
# Not ours to tidy, nor bearable in an unoptimised build; and what its own sanitizer run would find is not ours to find.
target_compile_options(penstock_wolfssl_objects PRIVATE -w -O2 -fomit-frame-pointer ${wolfssl_flags})
if(PENSTOCK_SANITIZE MATCHES "undefined")
    target_compile_options(penstock_wolfssl_objects PRIVATE -fno-sanitize=undefined)
endif()
# Hidden: a shared library of the program that uses the system's wolfSSL must not be bound to this one.
set_target_properties(penstock_wolfssl_objects PROPERTIES POSITION_INDEPENDENT_CODE ON INTERPROCEDURAL_OPTIMIZATION OFF
    C_VISIBILITY_PRESET hidden)
add_library(penstock_wolfssl INTERFACE)
target_include_directories(penstock_wolfssl SYSTEM INTERFACE "${settings_dir}" "${wolfssl_sources}")
target_compile_definitions(penstock_wolfssl INTERFACE WOLFSSL_USER_SETTINGS)
set(PENSTOCK_WOLFSSL_OBJECTS $<TARGET_OBJECTS:penstock_wolfssl_objects>)
penstock_report(wolfSSL "${wolfSSL_VERSION}, our own, with ${processor_code}")
