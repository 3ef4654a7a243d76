# Lets the build tree spell includes as the installed tree does: <build>/include/penstock/engine/server.h
# is a link to engine/server.h. The installed layout is in install_headers.cmake.

set(PENSTOCK_INCLUDE_TREE "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${PENSTOCK_INCLUDE_TREE}/penstock")
foreach(layer platform engine protocols)
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${layer}" "${PENSTOCK_INCLUDE_TREE}/penstock/${layer}" SYMBOLIC)
endforeach()
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/protocols/penstock.h"
    "${PENSTOCK_INCLUDE_TREE}/penstock/penstock.h" SYMBOLIC)
