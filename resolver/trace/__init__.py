"""An event log rendered for a GitHub comment, a browser, a terminal and a program."""
