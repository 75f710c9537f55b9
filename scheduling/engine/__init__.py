"""The pure heart of scheduling: snapshot in, plan out. Standard library only."""
