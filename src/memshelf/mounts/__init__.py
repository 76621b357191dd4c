"""What a session sees of stores: where each is mounted, with which access, and what the agent is told."""
