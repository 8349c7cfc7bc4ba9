from maze_nca_gym.agents.policies.learned import geometric as _geometric  # noqa: F401 - imported elsewhere first, torch_geometric warns
