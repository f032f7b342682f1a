"""The mother tongue of the project: contracts, conversations, ports, errors. No I/O."""
