# Fuzzes for a few seconds, the same inputs each time: cmake -DPROGRAM=FILE -DRUNS=N -DFOLDER=NEW -P

file(REMOVE_RECURSE "${FOLDER}")
execute_process(COMMAND "${PROGRAM}" --seeds "${FOLDER}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND "${PROGRAM}" -seed=1 -runs=${RUNS} -len_control=0 -max_len=256 -timeout=25 -verbosity=0
          "-artifact_prefix=${FOLDER}/" "${FOLDER}" COMMAND_ERROR_IS_FATAL ANY)
