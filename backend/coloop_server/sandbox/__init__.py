"""What stands between Python of a loop and this machine."""
