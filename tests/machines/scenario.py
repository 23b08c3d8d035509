"""What a scenario is: a function with a name, a sentence, and what it needs."""


def scenario(*, quick=False, workspace=None, images=("tiny",)):
    """Marks a function as a scenario. `quick`: it is part of `make test`. `workspace`: it runs there, not in root."""
    def mark(function):
        function.is_scenario = True
        function.quick = quick
        function.workspace = workspace
        function.images = images
        return function
    return mark
