from maze_nca_gym.agents.policies.learned import graph_policy as _graphs  # noqa: F401 - imported elsewhere first, torch_geometric warns
