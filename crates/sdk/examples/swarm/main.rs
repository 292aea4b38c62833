//! A leader, two researchers and a writer at work, shown live as a tree: `cargo run -p whimbrel --example swarm`
//! The models are scripted, so it needs neither a key nor a network. The tools are real: the agents search and read
//! notes in a temporary directory, and the writer leaves a text there. Without a terminal it prints plain lines.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

mod agent_tree;
mod screen;
mod scripts;

use std::io::IsTerminal;

use whimbrel::{Agent, Environment, PermissionMode, query};

use agent_tree::AgentTree;
use screen::Screen;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    scripts::write_notes(folder.path())?;
    // Every role has a scripted model of its own, registered with the engine. Without these two lines, and with a key
    // in the environment, real models would answer.
    let engine = Environment::of_process().engine();
    scripts::add_scripted_models(&engine)?;
    let agent = Agent::new()
        .engine(engine)
        .model(scripts::LEADER)
        .cwd(folder.path())
        .permission_mode(PermissionMode::AcceptEdits)
        .persist_session(false)
        .with(|options| options.agents = scripts::agent_definitions());

    let mut crew = AgentTree::default();
    let mut screen = if std::io::stdout().is_terminal() { Screen::tree() } else { Screen::lines() };
    let mut frames = query("Write a paragraph on the whimbrel, from our notes.", &agent);
    while let Some(frame) = frames.next().await {
        let news = crew.handle_frame(&frame?);
        screen.show(&crew, news.as_ref())?;
    }
    println!("\n{}\n", std::fs::read_to_string(folder.path().join("whimbrel.md"))?.trim_end());
    for (who, dollars) in crew.costs() {
        println!("{who:<20} ${dollars:.4}");
    }
    Ok(())
}
