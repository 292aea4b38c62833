//! Turns raw arguments into [`Args`]: checks formats, reads files, merges flags into options.

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use whimbrel_wire::options::{
    AgentDefinition, McpServerConfig, Options, SystemPrompt, Thinking, ThinkingDisplay, ToolSet,
};

use super::raw::{CliCommand, InputFormat, OutputFormat, RawArgs};
use super::{Args, Caller, validate};

type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// Converts raw arguments, or says why that is not possible.
pub(super) fn finalize(
    mut typed: RawArgs,
    caller: Caller,
    read_file: ReadFile<'_>,
    warnings: &mut Vec<String>,
) -> Result<Args, String> {
    if matches!(typed.command, CliCommand::Run) {
        check_formats(&typed)?;
    }
    if let Some(ToolSet::List(names)) = &typed.options.tools {
        warnings.extend(validate::check_tools(names, caller)?);
    }
    let prompt = take_prompt(&mut typed, caller, warnings)?;
    let mut options = std::mem::take(&mut typed.options);
    options.system_prompt = build_system_prompt(&mut typed, read_file)?;
    options.thinking = build_thinking(&options, typed.thinking_display);
    load_mcp_servers(&typed.mcp_configs, read_file, &mut options)?;
    options.agents = load_agents(&typed.agents, read_file)?;
    merge_settings_flags(typed.settings, &mut options)?;
    Ok(Args {
        command: typed.command,
        prompt,
        print: typed.print,
        input_format: typed.input_format,
        output_format: typed.output_format,
        verbose: typed.verbose,
        strict_input: typed.strict_input,
        debug_topics: typed.debug_topics,
        options,
    })
}

/// Checks that input and output format fit together.
fn check_formats(typed: &RawArgs) -> Result<(), String> {
    match (typed.input_format, typed.output_format) {
        (InputFormat::StreamJson, OutputFormat::Text | OutputFormat::Json) => {
            Err("--input-format stream-json needs --output-format stream-json: the answers are frames, too."
                .into())
        }
        (InputFormat::Text, OutputFormat::StreamJson) if !typed.verbose => {
            Err("--output-format stream-json prints every frame, so it needs --verbose.".into())
        }
        _ => Ok(()),
    }
}

/// Takes the prompt. With frames as input there must be none.
fn take_prompt(
    typed: &mut RawArgs,
    caller: Caller,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, String> {
    let texts = std::mem::take(&mut typed.positional);
    match (typed.input_format, texts.as_slice()) {
        (_, []) => Ok(None),
        (InputFormat::StreamJson, [text, ..]) if caller == Caller::Sdk => {
            warnings.push(format!("{text:?} is neither an option nor a value and was left out."));
            Ok(None)
        }
        (InputFormat::StreamJson, [text, ..]) => Err(format!(
            "With --input-format stream-json prompts come as frames on stdin; {text:?} has no place."
        )),
        (InputFormat::Text, [_]) => Ok(texts.into_iter().next()),
        (InputFormat::Text, [first, second, ..]) => Err(format!(
            "There can be one prompt only, but both {first:?} and {second:?} were given. Put it in quotes."
        )),
    }
}

fn build_system_prompt(typed: &mut RawArgs, read_file: ReadFile<'_>) -> Result<Option<SystemPrompt>, String> {
    let append = typed.append_system_prompt.take();
    let (exclude_dynamic_sections, snapshot) = (typed.exclude_dynamic_sections, typed.prompt_snapshot);
    Ok(match (typed.system_prompt.take(), append) {
        (None, append) => {
            let asked = append.is_some() || exclude_dynamic_sections.is_some() || snapshot.is_some();
            asked.then_some(SystemPrompt::Preset { append, exclude_dynamic_sections, snapshot })
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

fn join_paragraphs(text: &str, append: &str) -> String {
    if text.is_empty() { append.to_owned() } else { format!("{text}\n\n{append}") }
}

/// Adds the display setting to the thinking option.
fn build_thinking(options: &Options, shown: Option<ThinkingDisplay>) -> Option<Thinking> {
    let Some(shown) = shown else { return options.thinking };
    let display = Some(shown);
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
    let mut kinds = BTreeMap::new();
    for text in texts {
        let given = parse_json_or_file::<Value>("--agents", text, read_file)?;
        kinds.extend(super::agents::parse_agents(given).map_err(|why| format!("--agents: {why}."))?);
    }
    Ok(kinds)
}

/// Merges two settings objects: lists are concatenated, so that no deny rule is lost; of two single values the later
/// one wins.
pub(super) fn merge_settings(before: &mut Value, more: Value) {
    match (before, more) {
        (Value::Object(before), Value::Object(more)) => {
            for (key, value) in more {
                match before.get_mut(&key) {
                    Some(before) => merge_settings(before, value),
                    None => drop(before.insert(key, value)),
                }
            }
        }
        (Value::Array(before), Value::Array(more)) => {
            for value in more {
                if !before.contains(&value) {
                    before.push(value);
                }
            }
        }
        (before, more) => *before = more,
    }
}

/// Merges repeated `--settings`. JSON objects are merged. Next to a file only a sandbox can be given, because it has an
/// option of its own; anything else is an error, because it would be lost.
fn merge_settings_flags(given: Vec<String>, options: &mut Options) -> Result<(), String> {
    for text in given {
        let merged = match &options.settings {
            None => text,
            Some(before) => match (parse_object(before), parse_object(&text)) {
                (Some(before), Some(more)) => {
                    let mut joined = Value::Object(before);
                    merge_settings(&mut joined, Value::Object(more));
                    joined.to_string()
                }
                (None, Some(mut more)) if more.len() == 1 => match more.remove("sandbox") {
                    Some(Value::Object(sandbox)) => {
                        options.sandbox = Some(sandbox);
                        continue;
                    }
                    _ => return Err(SETTINGS_CONFLICT.into()),
                },
                _ => return Err(SETTINGS_CONFLICT.into()),
            },
        };
        options.settings = Some(merged);
    }
    Ok(())
}

const SETTINGS_CONFLICT: &str =
    "--settings was given twice and a file cannot be merged. Put everything into one file.";

fn parse_object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
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
