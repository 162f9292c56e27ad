"""The laboratory's commands, one file each: parse, call one function, print where the result is."""
