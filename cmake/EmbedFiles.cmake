# satformer_embed_files(OUTPUT NAMESPACE NAME=FILE...): writes a C++ source that defines, in NAMESPACE, a std::string_view
# for each file's contents; configures again when a file changes.
function(satformer_embed_files output namespace)
  set(definitions "")
  foreach(pair ${ARGN})
    string(REGEX MATCH "^([^=]+)=(.+)$" unused "${pair}")
    set(name ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} contents)
    string(APPEND definitions
           "extern const std::string_view ${name};\nconst std::string_view ${name} = R\"embedded(${contents})embedded\";\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "#include <string_view>\n\nnamespace ${namespace} {\n@definitions@}\n" @ONLY)
endfunction()
