"""Where tests play: `Stage` runs workers in this process, `Site` as processes of their own, both on a `Place`."""
