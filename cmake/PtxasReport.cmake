# satformer_ptxas_report(SOURCE.cu...): a test, ptxas_report, that prints the registers of every kernel compiled for
# sm_90 and fails on a spill. The sources are compiled once more for it: what ptxas says is in no object file.
function(satformer_ptxas_report)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ptxas)
  file(MAKE_DIRECTORY ${folder})
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    set(log ${folder}/${name}.txt)
    add_custom_command(
      OUTPUT ${log}
      COMMAND ${CMAKE_CUDA_COMPILER_LAUNCHER} ${CMAKE_CUDA_COMPILER} -std=c++17 -O3 -DNDEBUG -arch=sm_90 -I
              ${CMAKE_SOURCE_DIR} -Xptxas -v -cubin -MD -MT ${log} -MF ${folder}/${name}.d -o ${folder}/${name}.cubin
              ${source} 2> ${log}.new || (cat ${log}.new && false)
      COMMAND ${CMAKE_COMMAND} -E rename ${log}.new ${log}
      DEPENDS ${source}
      DEPFILE ${folder}/${name}.d
      COMMENT "Reading what ptxas says of ${name}.cu")
    list(APPEND logs ${log})
  endforeach()
  add_custom_target(ptxas_logs ALL DEPENDS ${logs})
  add_test(NAME ptxas_report COMMAND ${CMAKE_SOURCE_DIR}/scripts/ptxas_report ${logs})
endfunction()
