//! The interactive terminal: a host on the public SDK that a person talks to.
//!
//! It draws inline. Finished text is written once and then belongs to the terminal, with its scrollback, search and
//! selection; only the live area at the bottom is redrawn. What a person types, and what is shown for each frame of
//! the session, is decided in the application half; the drawing half turns styled lines into bytes.
//!
//! Drawing:
//!
//! - `text`: styled lines, widths, wrapping, and the sanitizing that makes hostile text harmless
//! - `screen`: modes of the terminal, keys, frames, scrollback, resizes
//! - `theme`: styles by meaning, and how many colors the terminal has
//! - `markdown`: text of the model as lines, while it streams; colors of code
//! - `diff`: changes of files
//! - `tool_card`: tool calls and their results at a glance
//! - `plain`: linear output for terminals without a cursor and for screen readers
//!
//! Application:
//!
//! - `editor`, `keys`, `history`, `completion`, `commands`: the input line and what can be typed
//! - `conversation`, `transcript`, `sessions`: the session as its frames tell it, and stored ones
//! - `menu`, `prompts`, `pickers`, `pager`: questions, lists and pages
//! - `app`: state and decisions, pure; `present`: entries as lines
//! - `engine_thread`, `run`: the session in a thread of its own, and the loop

mod app;
mod commands;
mod completion;
mod conversation;
mod diff;
mod editor;
mod engine_thread;
mod history;
mod keys;
mod markdown;
mod menu;
mod pager;
mod pickers;
mod plain;
mod preferences;
mod present;
mod prompts;
mod run;
mod screen;
mod sessions;
mod text;
mod theme;
mod tool_card;
mod transcript;

pub use run::{StartSession, TerminalOutput, TerminalRequest, run};

#[cfg(test)]
mod tests {
    mod pictures;
}
