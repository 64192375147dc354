"""A reward, a task, an algorithm and a tool for coloop."""
