"""What a step of the demo is, and which requirement it shows."""

import time


def step(title, *requirements):
    """Marks a method of the demo as a step. `requirements`: those of docs/conformance/golden-path.md that it shows."""
    def mark(function):
        def run(self):
            self.show.step(title + (f"  [{', '.join(map(str, requirements))}]" if requirements else ""))
            began = time.monotonic()
            function(self)
            self.took.append((function.__name__, title, time.monotonic() - began, requirements))
        run.is_step = True
        run.requirements = requirements
        run.__name__ = function.__name__
        return run
    return mark


def table(took):
    """Each step with its time."""
    width = max(len(name) for name, *_ in took)
    lines = [f"{seconds:6.1f} s  {name:<{width}}  {title}" for name, title, seconds, _ in took]
    return "\n".join(lines)
