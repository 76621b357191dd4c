"""Requests that leave this machine: where they may go, and how much of an answer is read."""
