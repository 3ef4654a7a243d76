# The table that closes a configure run: what was found, and what is switched off and why.

function(penstock_report name text)
    string(LENGTH "${name}" length)
    set(padding "")
    if(length LESS 12)
        math(EXPR missing "12 - ${length}")
        string(REPEAT " " ${missing} padding)
    endif()
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_REPORT "  ${name}${padding}  ${text}")
endfunction()

function(penstock_print_report)
    get_property(lines GLOBAL PROPERTY PENSTOCK_REPORT)
    set(build_type "${CMAKE_BUILD_TYPE}")
    if(NOT build_type)
        set(build_type "no build type")
    endif()
    message(STATUS "Penstock ${PROJECT_VERSION}, ${build_type}, "
        "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
    foreach(line IN LISTS lines)
        message(STATUS "${line}")
    endforeach()
endfunction()

# Source files of one folder, not of those below it.
function(penstock_glob result folder)
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
    set(${result} ${files} PARENT_SCOPE)
endfunction()
