"""Series of runs that compare options of training.

jobs      one run: a network that is trained and measured in a folder of its own
series    several at once, retried if they fail, and never repeated once finished
"""
