"""The machine presets, one TOML file each. Adding a machine is adding a file."""
