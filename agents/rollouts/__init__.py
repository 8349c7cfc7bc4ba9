"""Functions that run policies: one episode or many, until a number of iterations or until each level is solved.

The package is called `rollouts` because `maze_nca_gym.agents.rollout` is the function. Importing the package does not
import torch; importing its modules that run policies does.
"""
