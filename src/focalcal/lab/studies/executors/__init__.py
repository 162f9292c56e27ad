"""Where the cells of a grid run: `local` in processes of this machine, `ray` on a cluster."""
