"""What is set for this installation, where each value comes from, and how its parts are.

Nothing is changed here: what the environment sets is changed there, everything else on its page.
"""
