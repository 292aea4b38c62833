//! Configuration of a session as files have it: settings, trust, plugins, output styles.
//!
//! - [`settings`]: settings files of the user, the project, the host and an administrator, merged
//! - [`locations`]: where configuration files lie and which of them count
//! - [`front_matter`]: YAML head of Markdown files
//! - [`key_variables`]: environment variables with keys, and which programs get them
//! - [`plugins`]: directories that add commands, agents, skills, hooks and servers
//! - [`output_styles`]: texts that change how the model answers

pub mod front_matter;
pub mod key_variables;
pub mod locations;
pub mod output_styles;
pub mod plugins;
pub mod settings;
