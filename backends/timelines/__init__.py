"""Schedules over time: for Perfetto, as Chrome trace events, as Gantt charts."""
