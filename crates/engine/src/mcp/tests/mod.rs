//! What servers and we promise each other. `player` is a server that this test program can be; `stage` is a session
//! around servers; `scripts` are programs that behave badly; `web` is a server at an address.

mod addresses;
mod badges;
mod calls;
mod hosting;
mod lives;
mod misbehaving;
mod player;
mod rosters;
mod scripts;
mod stage;
mod web;
