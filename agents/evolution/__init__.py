"""Evolution of levels against policies: how levels are measured, the loop, its folder, and figures."""
