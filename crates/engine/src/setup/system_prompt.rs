//! The system prompt option.

use std::path::Path;
use std::sync::Arc;

use whimbrel_os::files;
use whimbrel_wire::options::{Options, SystemPrompt};

use super::SetupError;

const MAX_PROMPT_SIZE: u64 = 1024 * 1024;

/// The system prompt; a file is read.
pub(super) fn read_system_prompt(options: &Options) -> Result<Option<SystemPrompt>, SetupError> {
    match &options.system_prompt {
        Some(SystemPrompt::File { path }) => match files::read(Path::new(path), MAX_PROMPT_SIZE) {
            Ok((bytes, _)) => Ok(Some(SystemPrompt::Text(String::from_utf8_lossy(&bytes).into_owned()))),
            Err(error) => {
                Err(SetupError::Invalid(format!("The system prompt file {path} cannot be read: {error}.")))
            }
        },
        other => Ok(other.clone()),
    }
}

/// Flag whose text is appended to the system prompts of subagents.
const SUBAGENT_PROMPT_FLAG: &str = "append-subagent-system-prompt";

/// Text appended to the system prompts of subagents.
pub(super) fn subagent_prompt(options: &Options) -> Option<Arc<str>> {
    let text = options.extra_args.get(SUBAGENT_PROMPT_FLAG)?.as_deref()?;
    (!text.trim().is_empty()).then(|| text.into())
}

/// Text appended to the default system prompt.
pub(super) fn appended_prompt(options: &Options) -> Option<String> {
    match &options.system_prompt {
        Some(SystemPrompt::Preset { append, .. }) => append.clone(),
        _ => None,
    }
}
