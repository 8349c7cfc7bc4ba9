"""Record a video of an episode that shows every channel of the automaton, with Gymnasium's wrapper `RecordVideo`.

Needs the extra `video`: pip install "maze-nca-gym[video]".
"""

from pathlib import Path

import gymnasium as gym
from gymnasium.wrappers import RecordVideo

from maze_nca_gym.agents import load  # this import registers the environments too

policy = load("shortest-path-bfs")
env = gym.make(
    "MazeShortestPath-v0",
    levels="FourRooms",
    n_channels=policy.n_channels,
    channel_names=policy.channel_names,
    highlight=policy.highlight,
    render_mode="rgb_array",
)
env = RecordVideo(env, "runs/video", name_prefix="four-rooms")
observation, info = env.reset(seed=0)

state, done = None, False
while not done:
    action, state = policy.predict(observation, state)
    observation, reward, terminated, truncated, info = env.step(action)
    done = terminated or truncated
env.close()  # writes the file
for path in Path("runs/video").glob("*.mp4"):
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")
