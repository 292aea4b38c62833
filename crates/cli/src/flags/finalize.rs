//! Turns raw arguments into [`Args`]: checks formats, reads files, merges flags into options.

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use whimbrel_wire::options::{
    AgentDefinition, McpServerConfig, Options, SetupHooks, SystemPrompt, Thinking, ThinkingDisplay, ToolSet,
};

use super::raw_args::{CliCommand, InputFormat, OutputFormat, RawArgs};
use super::settings::merge_settings_flags;
use super::{Args, SUBAGENT_PROMPT_FLAG, validate};
use crate::caller::Caller;

type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// Converts raw arguments, or says why that is not possible.
pub(super) fn finalize(
    mut raw: RawArgs,
    caller: Caller,
    read_file: ReadFile<'_>,
    warnings: &mut Vec<String>,
) -> Result<Args, String> {
    if matches!(raw.command, CliCommand::Run) {
        check_formats(&raw)?;
    }
    if let Some(ToolSet::List(names)) = &raw.options.tools {
        warnings.extend(validate::check_tools(names, caller)?);
    }
    let prompt = take_prompt(&mut raw, caller, warnings)?;
    let mut options = std::mem::take(&mut raw.options);
    if raw.bare {
        // The SDKs send an empty list to read no files.
        if options.setting_sources.as_ref().is_some_and(|sources| !sources.is_empty()) {
            return Err("--bare reads no settings files. Remove --setting-sources or --bare.".into());
        }
        options.setting_sources = Some(Vec::new());
    }
    if raw.choose_session && (raw.print || raw.input_format == InputFormat::StreamJson) {
        return Err("--resume needs a value here: --resume ID|TITLE.".into());
    }
    if raw.rewind_files.is_some() && options.resume.is_none() && !options.continue_conversation {
        return Err("--rewind-files needs --resume or --continue, which select the session.".into());
    }
    if raw.rewind_files.is_some() && options.worktree.is_some() {
        return Err("--rewind-files changes the files of the session itself. Remove --worktree.".into());
    }
    if options.setup_hooks == Some(SetupHooks::InitOnly) && prompt.is_some() {
        return Err("--init-only runs no prompt. Remove it, or use --init.".into());
    }
    options.system_prompt = build_system_prompt(&mut raw, read_file)?;
    if let Some(text) = subagent_prompt(&mut raw, read_file)? {
        options.extra_args.insert(SUBAGENT_PROMPT_FLAG.to_owned(), Some(text));
    }
    options.thinking = build_thinking(&options, raw.thinking_display);
    load_mcp_servers(&raw.mcp_configs, read_file, &mut options)?;
    options.agents = load_agents(&raw.agents, read_file)?;
    merge_settings_flags(raw.settings, &mut options)?;
    Ok(Args {
        command: raw.command,
        prompt,
        print: raw.print,
        input_format: raw.input_format,
        output_format: raw.output_format,
        verbose: raw.verbose,
        strict_input: raw.strict_input,
        rewind_files: raw.rewind_files,
        choose_session: raw.choose_session,
        plain_output: raw.plain_output,
        debug_topics: raw.debug_topics,
        options,
    })
}

/// Checks that input and output format fit together.
fn check_formats(raw: &RawArgs) -> Result<(), String> {
    match (raw.input_format, raw.output_format) {
        (InputFormat::StreamJson, OutputFormat::Text | OutputFormat::Json) => Err(
            "--input-format stream-json needs --output-format stream-json, because replies are frames, too."
                .into(),
        ),
        (InputFormat::Text, OutputFormat::StreamJson) if !raw.verbose => {
            Err("--output-format stream-json prints every frame, so it needs --verbose.".into())
        }
        _ => Ok(()),
    }
}

/// Takes the prompt. With frames as input there must be none.
fn take_prompt(
    raw: &mut RawArgs,
    caller: Caller,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, String> {
    let texts = std::mem::take(&mut raw.positional);
    match (raw.input_format, texts.as_slice()) {
        (_, []) => Ok(None),
        (InputFormat::StreamJson, [text, ..]) if caller == Caller::Sdk => {
            warnings.push(format!("{text:?} is neither a flag nor a value and was ignored."));
            Ok(None)
        }
        (InputFormat::StreamJson, [text, ..]) => {
            Err(format!("With --input-format stream-json prompts come as frames on stdin. Remove {text:?}."))
        }
        (InputFormat::Text, [text]) if raw.is_likely_subcommand(text) => Err(format!(
            "{text:?} is a subcommand, which must be the first argument. For a prompt of this word use -p or --."
        )),
        (InputFormat::Text, [_]) => Ok(texts.into_iter().next()),
        (InputFormat::Text, [first, second, ..]) => Err(format!(
            "Only one prompt is possible, but both {first:?} and {second:?} were given. Put the prompt in quotes: \
                {:?}.",
            texts.join(" ")
        )),
    }
}

fn build_system_prompt(raw: &mut RawArgs, read_file: ReadFile<'_>) -> Result<Option<SystemPrompt>, String> {
    let append = one_text(
        "--append-system-prompt",
        raw.append_system_prompt.take(),
        raw.append_system_prompt_file.take(),
        read_file,
    )?;
    let (exclude_dynamic_sections, snapshot) = (raw.exclude_dynamic_sections, raw.prompt_snapshot);
    Ok(match (raw.system_prompt.take(), append) {
        (None, append) => {
            let is_given = append.is_some() || exclude_dynamic_sections.is_some() || snapshot.is_some();
            is_given.then_some(SystemPrompt::Preset { append, exclude_dynamic_sections, snapshot })
        }
        (Some(SystemPrompt::Text(text)), Some(append)) => {
            Some(SystemPrompt::Text(join_paragraphs(&text, &append)))
        }
        (Some(SystemPrompt::File { path }), Some(append)) => {
            let text = read_flag_file("--system-prompt-file", &path, read_file)?;
            Some(SystemPrompt::Text(join_paragraphs(&text, &append)))
        }
        (prompt, _) => prompt,
    })
}

/// Text that is appended to the system prompts of subagents.
fn subagent_prompt(raw: &mut RawArgs, read_file: ReadFile<'_>) -> Result<Option<String>, String> {
    let (text, file) = (raw.append_subagent_prompt.take(), raw.append_subagent_prompt_file.take());
    one_text(&format!("--{SUBAGENT_PROMPT_FLAG}"), text, file, read_file)
}

/// The text of a flag, or of the file that the flag with `-file` names; not both.
fn one_text(
    flag: &str,
    text: Option<String>,
    file: Option<String>,
    read_file: ReadFile<'_>,
) -> Result<Option<String>, String> {
    match (text, file) {
        (Some(_), Some(_)) => {
            Err(format!("Only one of {flag} and {flag}-file is possible. Remove one of them."))
        }
        (text, None) => Ok(text),
        (None, Some(path)) => read_flag_file(&format!("{flag}-file"), &path, read_file).map(Some),
    }
}

fn join_paragraphs(text: &str, append: &str) -> String {
    if text.is_empty() { append.to_owned() } else { format!("{text}\n\n{append}") }
}

/// Adds the display setting to the thinking option.
fn build_thinking(options: &Options, display_setting: Option<ThinkingDisplay>) -> Option<Thinking> {
    let Some(display_setting) = display_setting else { return options.thinking };
    let display = Some(display_setting);
    Some(match (options.thinking, options.max_thinking_tokens) {
        (Some(Thinking::Disabled), _) | (None, Some(0)) => Thinking::Disabled,
        (Some(Thinking::Enabled { budget_tokens, .. }), _) => Thinking::Enabled { budget_tokens, display },
        (None, budget_tokens @ Some(_)) => Thinking::Enabled { budget_tokens, display },
        (Some(Thinking::Adaptive { .. }) | None, _) => Thinking::Adaptive { display },
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct McpConfig {
    mcp_servers: BTreeMap<String, Value>,
}

/// Loads the servers of all configurations; a later one wins. An invalid entry does not affect the others.
fn load_mcp_servers(
    configs: &[String],
    read_file: ReadFile<'_>,
    options: &mut Options,
) -> Result<(), String> {
    for config in configs {
        let config = parse_json_or_file::<McpConfig>("--mcp-config", config, read_file)?;
        for (name, entry) in config.mcp_servers {
            options.mcp_servers.remove(&name);
            options.invalid_mcp_servers.remove(&name);
            match serde_json::from_value::<McpServerConfig>(entry) {
                Ok(server) => drop(options.mcp_servers.insert(name, server)),
                Err(error) => drop(options.invalid_mcp_servers.insert(name, error.to_string())),
            }
        }
    }
    Ok(())
}

/// Loads the agent definitions of all flags; a later one wins.
fn load_agents(
    texts: &[String],
    read_file: ReadFile<'_>,
) -> Result<BTreeMap<String, AgentDefinition>, String> {
    let mut agents = BTreeMap::new();
    for text in texts {
        let given = parse_json_or_file::<Value>("--agents", text, read_file)?;
        agents.extend(super::agents::parse_agents(given).map_err(|error| format!("--agents: {error}."))?);
    }
    Ok(agents)
}

/// Parses a value that is JSON, or the path of a JSON file.
fn parse_json_or_file<T: DeserializeOwned>(
    flag: &str,
    value: &str,
    read_file: ReadFile<'_>,
) -> Result<T, String> {
    let text = if value.trim_start().starts_with('{') {
        value.to_owned()
    } else {
        read_flag_file(flag, value, read_file)?
    };
    serde_json::from_str(&text).map_err(|error| format!("{flag}: {error}."))
}

fn read_flag_file(flag: &str, path: &str, read_file: ReadFile<'_>) -> Result<String, String> {
    read_file(path).map_err(|error| format!("{flag}: {path} cannot be read: {error}."))
}
