"""How good a policy is after each iteration, on test sets that are the same for everybody.

    python examples/08_accuracy_curve.py [policy]

The argument is a policy's name (`maze-nca-gym policies list`) or the path of a model file.
"""

import sys
from pathlib import Path

from maze_nca_gym.agents import load
from maze_nca_gym.agents.evaluation.cells import Result
from maze_nca_gym.agents.evaluation.figures import draw_iterations
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.mazes import test_levels

name = sys.argv[1] if len(sys.argv) > 1 else "nca-shortest-path-exact-weights"
policy = load(name)
results = []
for family in ("random", "loops"):
    levels = test_levels(family, 15, policy.task, n=200)  # the first 200 of 8,192
    evaluation = measure(policy, levels)
    results.append(Result(name, family, 15, evaluation))
    for point in evaluation.curve[4::4]:
        complete = point.metrics.complete
        interval = f"{complete.low:.3f} to {complete.high:.3f}"
        print(f"{family}-15 after {point.step:3} steps: {complete.value:.3f} complete, {interval} with 95 % confidence")

path = Path("runs/accuracy-curve.png")
path.parent.mkdir(parents=True, exist_ok=True)
print(f"figure: {draw_iterations(results, path)}")
