"""Measure a policy after each iteration, on test sets that are the same for all users.

    python examples/08_accuracy_curve.py [policy]

The argument is a policy's name (`maze-nca-gym policies list`) or the path of a model file.
"""

import sys

from maze_nca_gym.agents import evaluate

name = sys.argv[1] if len(sys.argv) > 1 else "nca-shortest-path-exact-weights"
results = evaluate(name, families=("random", "loops"), sizes=15, n=200)  # the first 200 levels of 8,192
for result in results:
    for point in result.evaluation.curve[4::4]:
        complete = point.metrics.complete
        interval = f"{complete.low:.3f} to {complete.high:.3f} with 95 % confidence"
        print(f"{result.family}-15 after {point.step:3} steps: {complete.value:.3f} complete, {interval}")
print(f"figure: {results.save('runs/accuracy-curve')['figure'][0]}")
