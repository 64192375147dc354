"""Models and datasets on this machine and on the Hugging Face Hub."""
