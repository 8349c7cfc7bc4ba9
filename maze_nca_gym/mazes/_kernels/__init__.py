"""Plain loops over tiles, written to run as they are and, much faster, as machine code.

`compiling` compiles every function that carries `@kernel`; the same functions run interpreted, as tests do, with the
same results. Nothing here allocates Python objects, checks arguments or raises errors for users.
"""
