"""What follows the word `zephon`, one command a file: its summary, its arguments, its run.

They read files, print, and return exit codes; all else they leave to the rooms below. What is said
of them all, and the errors that any may raise, is ``zephon.cli``'s.
"""
