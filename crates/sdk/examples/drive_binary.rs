//! Drives an engine process instead of the engine in this process, with a hook and a permission callback of this program.
//! It needs no default feature of the crate: `cargo run --no-default-features --example drive_binary -- "Hello." whimbrel`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example prints for the user who runs it, and names the program of the engine"
)]

use std::process::Command;

use whimbrel::{Agent, Event, Hook, HookAnswer, PermissionResult, Transport, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(prompt), Some(program)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: drive_binary PROMPT PROGRAM [ARGUMENT ..]");
    };
    // `node cli.js`, `docker run ..` and `ssh ..` are programs with leading arguments.
    let mut engine = Command::new(program);
    engine.args(args);
    let agent = Agent::new()
        .transport(Transport::command(engine))
        .can_use_tool(|request| async move {
            println!("[{} is refused]", request.tool_name);
            PermissionResult::deny("Answer without tools.")
        })
        .hook(Hook::session_start(|_, _| async { HookAnswer::context("The user reads on a small screen.") }));
    let mut events = query(prompt, &agent).events();
    while let Some(event) = events.next().await {
        match event? {
            Event::ToolStarted(call) => println!("[{}]", call.name),
            Event::Done(answer) => println!("{answer}"),
            _ => {}
        }
    }
    Ok(())
}
