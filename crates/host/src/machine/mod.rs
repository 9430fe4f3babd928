//! Facts of the machine: memory, processors, disks, addresses, routes, clocks, build.
