"""Draw your own level as text: `#` wall, `.` empty, `S` source, `T` target; any size, with or without a border."""

from pathlib import Path

from maze_nca_gym.agents import load
from maze_nca_gym.mazes import parse, shortest_path
from maze_nca_gym.rendering import draw_level, save_png

LEVEL = """
    S...#....
    .##.#.##.
    .#..#..#.
    .#.###.#.
    ...#.....
    ##.#.###.
    .......#T
"""

policy = load("shortest-path-bfs")
env = policy.make_env(levels=LEVEL, render_mode="ansi")
observation, info = env.reset(seed=0)

state, done = None, False
while not done:
    action, state = policy.predict(observation, state)
    observation, reward, terminated, truncated, info = env.step(action)
    done = terminated or truncated
print(env.render())
print(f"optimal: {info['optimal']}")
env.close()

Path("runs").mkdir(exist_ok=True)
tiles = parse(LEVEL)
picture = save_png("runs/own-level.png", draw_level(tiles, shortest_path(tiles), cell=32))
print(f"picture of the exact solution: {picture}")
