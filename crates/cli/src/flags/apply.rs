//! Actions of the flag table: each stores a value or returns an error text. Pure.

use std::fmt::Display;
use std::num::{IntErrorKind, NonZeroU32, ParseIntError};
use std::str::FromStr;

use serde_json::Value;
use whimbrel_wire::names::UnknownNameError;
use whimbrel_wire::options::{PluginConfig, SystemPrompt, Thinking, ToolSet};

use super::flag::ApplyResult;
use super::list_values::split_list;
use super::raw_args::{InputFormat, OutputFormat, RawArgs};

/// Variable by which the engine reads the window that compaction assumes.
const COMPACTION_WINDOW_VARIABLE: &str = "CLAUDE_CODE_AUTO_COMPACT_WINDOW";

pub(super) fn set(option: &mut Option<String>, value: &str) -> ApplyResult {
    *option = Some(value.to_owned());
    Ok(())
}

pub(super) fn set_parsed<T: FromStr<Err: Display>>(option: &mut Option<T>, value: &str) -> ApplyResult {
    *option = Some(value.parse().map_err(|error: T::Err| error.to_string())?);
    Ok(())
}

pub(super) fn set_number<T: FromStr<Err = ParseIntError>>(
    option: &mut Option<T>,
    value: &str,
) -> ApplyResult {
    *option = Some(parse_number(value, "0 or more")?);
    Ok(())
}

pub(super) fn set_max_turns(raw: &mut RawArgs, value: &str) -> ApplyResult {
    let turns = parse_number::<NonZeroU32>(value, "1 or more")?;
    raw.options.max_turns = Some(turns.get());
    Ok(())
}

fn parse_number<T: FromStr<Err = ParseIntError>>(value: &str, expected: &str) -> Result<T, String> {
    value.trim().parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => format!("{value:?} is too large"),
        _ => format!("{value:?} is not a whole number, {expected}"),
    })
}

pub(super) fn push_value(list: &mut Vec<String>, value: &str) -> ApplyResult {
    list.push(value.to_owned());
    Ok(())
}

pub(super) fn extend_list(list: &mut Vec<String>, value: &str) -> ApplyResult {
    list.extend(split_list(value));
    Ok(())
}

pub(super) fn parse_into<T>(
    value: &str,
    by_name: fn(&str) -> Result<T, String>,
    option: &mut T,
) -> ApplyResult {
    *option = by_name(value)?;
    Ok(())
}

pub(super) fn parse_input_format(name: &str) -> Result<InputFormat, String> {
    match name {
        "text" => Ok(InputFormat::Text),
        "stream-json" => Ok(InputFormat::StreamJson),
        _ => Err(format!("{name:?} is not text or stream-json")),
    }
}

pub(super) fn parse_output_format(name: &str) -> Result<OutputFormat, String> {
    match name {
        "text" => Ok(OutputFormat::Text),
        "json" => Ok(OutputFormat::Json),
        "stream-json" => Ok(OutputFormat::StreamJson),
        _ => Err(format!("{name:?} is not text, json or stream-json")),
    }
}

pub(super) fn parse_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("a JSON object is expected".into()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

/// Sets the system prompt. A text and a file exclude each other.
pub(super) fn set_system_prompt(raw: &mut RawArgs, prompt: SystemPrompt) -> ApplyResult {
    match (&raw.system_prompt, &prompt) {
        (Some(SystemPrompt::Text(_)), SystemPrompt::File { .. })
        | (Some(SystemPrompt::File { .. }), SystemPrompt::Text(_)) => {
            Err("only one of --system-prompt and --system-prompt-file is possible".into())
        }
        _ => {
            raw.system_prompt = Some(prompt);
            Ok(())
        }
    }
}

pub(super) fn set_thinking(raw: &mut RawArgs, value: &str) -> ApplyResult {
    raw.options.thinking = Some(match value {
        "adaptive" => Thinking::Adaptive { display: None },
        "enabled" => Thinking::Enabled { budget_tokens: None, display: None },
        "disabled" => Thinking::Disabled,
        _ => return Err(format!("{value:?} is not adaptive, enabled or disabled")),
    });
    Ok(())
}

pub(super) fn set_budget(raw: &mut RawArgs, value: &str) -> ApplyResult {
    let dollars = value.trim().parse::<f64>().ok().filter(|dollars| dollars.is_finite() && *dollars > 0.0);
    raw.options.max_budget_usd = Some(dollars.ok_or_else(|| format!("{value:?} is not an amount above 0"))?);
    Ok(())
}

pub(super) fn add_tools(raw: &mut RawArgs, value: &str) -> ApplyResult {
    let more = split_list(value);
    raw.options.tools = Some(match raw.options.tools.take() {
        _ if more == ["default"] => ToolSet::Default,
        Some(ToolSet::List(mut names)) => {
            names.extend(more);
            ToolSet::List(names)
        }
        Some(ToolSet::Default) | None => ToolSet::List(more),
    });
    Ok(())
}

pub(super) fn set_permission_prompts(raw: &mut RawArgs, value: &str) -> ApplyResult {
    match value {
        "host" | "none" => set(&mut raw.options.permission_prompts, value),
        _ => Err(format!("{value:?} is not host or none")),
    }
}

pub(super) fn set_setting_sources(raw: &mut RawArgs, value: &str) -> ApplyResult {
    let sources = split_list(value).iter().map(|name| name.parse()).collect::<Result<_, _>>();
    raw.options.setting_sources = Some(sources.map_err(|error: UnknownNameError| error.to_string())?);
    Ok(())
}

pub(super) fn set_switch(option: &mut Option<bool>, value: Option<&str>) -> ApplyResult {
    *option = Some(match value {
        None | Some("on" | "true" | "yes" | "1") => true,
        Some("off" | "false" | "no" | "0") => false,
        Some(other) => return Err(format!("{other:?} is not on or off")),
    });
    Ok(())
}

/// Accepts `off`, which is how every session works.
pub(super) fn set_prompt_snapshot(raw: &mut RawArgs, value: &str) -> ApplyResult {
    set_switch(&mut raw.prompt_snapshot, Some(value))?;
    match raw.prompt_snapshot {
        Some(true) => Err("the system prompt is built anew at every start, so it cannot be on".into()),
        _ => Ok(()),
    }
}

/// Window that compaction assumes: `auto`, or tokens with `k` or `M`.
pub(super) fn set_compaction_window(raw: &mut RawArgs, value: &str) -> ApplyResult {
    let digits = value.trim_end_matches(['k', 'K', 'm', 'M']);
    let unit = match &value[digits.len()..] {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        _ => None,
    };
    let tokens = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    let window = match tokens {
        Some(tokens) if (100_000..=1_000_000).contains(&tokens) => tokens.to_string(),
        // Empty counts as unset.
        _ if value == "auto" => String::new(),
        _ => return Err(format!("{value:?} is not auto or a number of tokens from 100k to 1M")),
    };
    raw.options.env.insert(COMPACTION_WINDOW_VARIABLE.to_owned(), window);
    Ok(())
}

/// Handling of a plugin's MCP servers.
#[derive(Clone, Copy)]
pub(super) enum PluginServers {
    Use,
    Skip,
}

pub(super) fn add_plugin(raw: &mut RawArgs, dir: &str, servers: PluginServers) -> ApplyResult {
    let skip_mcp_discovery = matches!(servers, PluginServers::Skip);
    raw.options.plugins.push(PluginConfig { skip_mcp_discovery, ..PluginConfig::local(dir) });
    Ok(())
}

/// Stores a value that has no option of its own.
pub(super) fn set_extra_value(raw: &mut RawArgs, name: &str, value: &str) -> ApplyResult {
    if value.is_empty() {
        return Err("a file name is required".into());
    }
    raw.options.extra_args.insert(name.to_owned(), Some(value.to_owned()));
    Ok(())
}

/// Stores a switch that has no option of its own.
pub(super) fn set_extra_switch(raw: &mut RawArgs, name: &str) {
    raw.options.extra_args.insert(name.to_owned(), None);
}
