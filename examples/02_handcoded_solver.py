"""A hand-coded automaton solves a maze exactly, with one iteration per step."""

from maze_nca_gym.agents import load

policy = load("shortest-path-bfs")
env = policy.make_env(size=16, generator="loops", render_mode="ansi")
observation, info = env.reset(seed=1)
length = info["solution_length"]

state, n_steps, done = None, 0, False
while not done:
    action, state = policy.predict(observation, state)
    observation, reward, terminated, truncated, info = env.step(action)
    n_steps += 1
    done = terminated or truncated
print(env.render())
print(f"accuracy {info['accuracy']:.3f}, optimal: {info['optimal']}")
print(f"{n_steps} steps for a path of {length} tiles: twice its {length - 1} moves, and two more")
env.close()
