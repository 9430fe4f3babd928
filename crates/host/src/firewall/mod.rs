//! Firewall operations as data; executors come with the network.
