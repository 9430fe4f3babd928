//! Registration of our own daemons with the system: systemd units, Windows services.
