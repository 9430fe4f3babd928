//! Local conversations between processes of one machine: Unix sockets, named pipes.
