"""The independent checker of schedules: it shares no code with what it checks."""
