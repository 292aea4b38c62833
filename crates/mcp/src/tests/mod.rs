//! Tests of the MCP client. `test_server` is an MCP server that this test program can run as; `fixture` starts servers and
//! calls their tools; `scripts` are misbehaving shell servers; `http_server` is a remote server.

mod calls;
mod fixture;
mod headers_command;
mod hosted;
mod http_server;
mod lifecycle;
mod misbehaving;
mod registry;
mod remote;
mod scripts;
mod test_server;
