"""What tests share: small data, networks and runs, processes to kill, other engines, a browser."""
