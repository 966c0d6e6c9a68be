# install() and the package config: find_package(satformer) gives satformer::satformer and satformer::ops.
include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/satformer)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/satformerConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/satformerConfig.cmake INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/satformerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT satformerTargets NAMESPACE satformer:: DESTINATION ${_package_dir})
install(FILES ${CMAKE_BINARY_DIR}/satformerConfig.cmake ${CMAKE_BINARY_DIR}/satformerConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/TorchWheel.cmake DESTINATION ${_package_dir})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/csrc ${CMAKE_SOURCE_DIR}/satformer
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/satformer)
