"""Evaluate a policy with Stable-Baselines3's `evaluate_policy`, because policies here follow its `predict` protocol.

Needs the extra `sb3`: pip install "maze-nca-gym[sb3]".
"""

from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from maze_nca_gym.agents import load

policy = load("shortest-path-bfs")
env = Monitor(policy.make_env())
env.reset(seed=0)
returns, lengths = evaluate_policy(policy, env, n_eval_episodes=20, return_episode_rewards=True)
print(f"mean return over {len(returns)} episodes: {sum(returns) / len(returns):.3f} (1 is perfect)")
print(f"steps: {min(lengths)} to {max(lengths)}")
env.close()
