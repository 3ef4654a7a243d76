# Runs at install time, with source_dir and include_dir set. Installs each header whose first line is
# "// Public." under the name that the build tree gives it (penstock_include_tree.cmake).

file(GLOB_RECURSE headers RELATIVE "${source_dir}" "${source_dir}/platform/*.h" "${source_dir}/engine/*.h"
    "${source_dir}/protocols/*.h")
foreach(header IN LISTS headers)
    file(STRINGS "${source_dir}/${header}" first_line LIMIT_COUNT 1)
    if(NOT first_line STREQUAL "// Public.")
        continue()
    endif()
    cmake_path(GET header PARENT_PATH folder)
    if(header STREQUAL "protocols/penstock.h")
        set(folder "")
    endif()
    cmake_path(APPEND include_dir penstock "${folder}" OUTPUT_VARIABLE destination)
    cmake_path(NORMAL_PATH destination)
    cmake_path(ABSOLUTE_PATH destination BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
    file(INSTALL "${source_dir}/${header}" DESTINATION "${destination}")
endforeach()
