//! What servers and we promise each other. `player` is a server that this test program can be; `stage` is a session
//! around servers; `scripts` are programs that behave badly; `web` is a server at an address.

mod remote;
mod headers_command;
mod calls;
mod hosted;
mod lifecycle;
mod misbehaving;
mod player;
mod registry;
mod scripts;
mod fixture;
mod http_server;
