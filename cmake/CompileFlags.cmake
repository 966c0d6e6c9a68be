# satformer_flags: warnings, sanitizers and run paths for our own targets; never exported.
add_library(satformer_flags INTERFACE)
target_compile_options(satformer_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-psabi>)
if(SATFORMER_WERROR)
  target_compile_options(satformer_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(SATFORMER_SANITIZE) # among their checks GCC 12 takes std::regex's own moves for a mistake
  target_compile_options(satformer_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SATFORMER_SANITIZE}
                                                   -fno-sanitize-recover=all -fno-omit-frame-pointer
                                                   -Wno-maybe-uninitialized>)
  target_link_options(satformer_flags INTERFACE -fsanitize=${SATFORMER_SANITIZE})
endif()
# No path of the build machine inside the binaries' messages.
target_compile_options(satformer_flags
                       INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>)
set(CMAKE_BUILD_RPATH ${SATFORMER_TORCH_RPATH})
set(CMAKE_INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR} $ORIGIN ${SATFORMER_TORCH_RPATH})
