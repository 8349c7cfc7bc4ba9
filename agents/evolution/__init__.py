"""Evolution of levels against policies: the measurement of levels, the loop, the folder of a run, and figures."""
