//! Every flag, one row each. A new flag needs a new row here and nothing else.

use whimbrel_wire::options::{OutputFormat as AnswerShape, PermissionPromptTool, SystemPrompt};
use whimbrel_wire::permission::PermissionMode;

use super::apply::*;
use super::finalize;
use super::flag::Flag;
use super::flag::FlagGroup::{Configuration, Conversation, Integration, Model, Permissions, Session};
use super::flag::FlagKind::{List, Optional, Switch, Value as One};
use super::list::{is_directory_path, is_mcp_config, is_rule_list, takes_no_further};
use super::raw::CliCommand;
use crate::session::{RECORD_FLAG, REPLAY_FLAG};

/// Finds the flag that an argument names.
pub(super) fn find_flag(spelled: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.matches(spelled))
}

/// The flags, in the order of the help page.
pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "print",
        Conversation,
        Switch(|typed| typed.print = true),
        "Answer the prompt and leave; never ask anything.",
    )
    .with_short('p'),
    Flag::new(
        "output-format",
        Conversation,
        One("FORMAT", |typed, value| parse_into(value, parse_output_format, &mut typed.output_format)),
        "What to print: text (the answer), json (one result object) or stream-json (every frame as it comes; needs --verbose).",
    ),
    Flag::new(
        "input-format",
        Conversation,
        One("FORMAT", |typed, value| parse_into(value, parse_input_format, &mut typed.input_format)),
        "What comes on stdin: text (added to the prompt) or stream-json (frames, one per line).",
    ),
    Flag::new(
        "verbose",
        Conversation,
        Switch(|typed| typed.verbose = true),
        "Print every frame with --output-format stream-json.",
    ),
    Flag::new(
        "system-prompt",
        Conversation,
        One("TEXT", |typed, value| {
            typed.system_prompt = Some(SystemPrompt::Text(value.into()));
            Ok(())
        }),
        "Use this system prompt instead of our own. Empty: nothing but one short sentence.",
    ),
    Flag::new(
        "system-prompt-file",
        Conversation,
        One("FILE", |typed, value| {
            typed.system_prompt = Some(SystemPrompt::File { path: value.into() });
            Ok(())
        }),
        "The same, from a file.",
    ),
    Flag::new(
        "append-system-prompt",
        Conversation,
        One("TEXT", |typed, value| set(&mut typed.append_system_prompt, value)),
        "Add this to the system prompt.",
    ),
    Flag::new(
        "json-schema",
        Conversation,
        One("SCHEMA", |typed, value| {
            let schema = parse_object(value)?;
            typed.options.output_format = Some(AnswerShape::JsonSchema { schema });
            Ok(())
        }),
        "The answer must be JSON of this JSON Schema.",
    ),
    Flag::new("help", Conversation, Switch(|typed| typed.command = CliCommand::Help), "Show this page.").with_short('h'),
    Flag::new("version", Conversation, Switch(|typed| typed.command = CliCommand::Version), "Show the version.")
        .with_short('v'),
    Flag::new(
        "model",
        Model,
        One("NAME", |typed, value| set(&mut typed.options.model, value)),
        "The model: an alias (opus, sonnet, haiku), a full name, openai:NAME for a Chat Completions server, or scripted:FILE.",
    ),
    Flag::new(
        "fallback-model",
        Model,
        One("NAME", |typed, value| set(&mut typed.options.fallback_model, value)),
        "The model to use when that one is not available.",
    ),
    Flag::new(
        "effort",
        Model,
        One("LEVEL", |typed, value| set_parsed(&mut typed.options.effort, value)),
        "How hard the model tries: low, medium, high, xhigh or max.",
    ),
    Flag::new(
        "thinking",
        Model,
        One("HOW", set_thinking),
        "Whether the model thinks first: adaptive, enabled or disabled.",
    ),
    Flag::new(
        "max-thinking-tokens",
        Model,
        One("N", |typed, value| set_number(&mut typed.options.max_thinking_tokens, value)),
        "How many tokens it may think; 0 for none.",
    ),
    Flag::new(
        "thinking-display",
        Model,
        One("HOW", |typed, value| set_parsed(&mut typed.thinking_display, value)),
        "What is shown of it: summarized or omitted.",
    ),
    Flag::new("max-turns", Model, One("N", set_max_turns), "Stop after this many calls of the model."),
    Flag::new("max-budget-usd", Model, One("DOLLARS", set_budget), "Stop when this much was spent."),
    Flag::new(
        "task-budget",
        Model,
        One("TOKENS", |typed, value| set_number(&mut typed.options.task_budget, value)),
        "Tell the model how many tokens the task may take.",
    ),
    Flag::new(
        "betas",
        Model,
        List { value: "NAMES", apply: |typed, value| extend_list(&mut typed.options.betas, value), takes_further: takes_no_further },
        "Beta features of the provider to use.",
    ),
    Flag::new(
        "permission-mode",
        Permissions,
        One("MODE", |typed, value| set_parsed(&mut typed.options.permission_mode, value)),
        "What may be done without asking: default, acceptEdits, plan, dontAsk, bypassPermissions.",
    ),
    Flag::new(
        "allowedTools",
        Permissions,
        List {
            value: "RULES",
            apply: |typed, value| extend_list(&mut typed.options.allowed_tools, value),
            takes_further: is_rule_list,
        },
        "Calls that need no question, e.g. Read or \"Bash(git log *)\".",
    )
    .with_aliases(&["allowed-tools"]),
    Flag::new(
        "disallowedTools",
        Permissions,
        List {
            value: "RULES",
            apply: |typed, value| extend_list(&mut typed.options.disallowed_tools, value),
            takes_further: is_rule_list,
        },
        "Calls that are refused in every mode.",
    )
    .with_aliases(&["disallowed-tools"]),
    Flag::new(
        "tools",
        Permissions,
        List { value: "NAMES", apply: add_tools, takes_further: is_rule_list },
        "The built-in tools to offer. Empty: none; default: all.",
    ),
    Flag::new(
        "add-dir",
        Permissions,
        List {
            value: "FOLDERS",
            apply: |typed, value| push_value(&mut typed.options.additional_directories, value),
            takes_further: is_directory_path,
        },
        "Work in these folders, too.",
    ),
    Flag::new(
        "dangerously-skip-permissions",
        Permissions,
        Switch(|typed| typed.options.permission_mode = Some(PermissionMode::BypassPermissions)),
        "Never ask: the same as --permission-mode bypassPermissions. For disposable machines.",
    ),
    Flag::new(
        "allow-dangerously-skip-permissions",
        Permissions,
        Switch(|typed| typed.options.allow_dangerously_skip_permissions = true),
        "Let the host switch to bypassPermissions later.",
    ),
    Flag::new(
        "permission-prompt-tool",
        Permissions,
        One("TOOL", |typed, value| {
            typed.options.permission_prompt_tool = Some(PermissionPromptTool::from(value.to_owned()));
            Ok(())
        }),
        "Who answers permission questions: stdio (the host), or a tool of an MCP server.",
    ),
    Flag::new(
        "permission-prompts",
        Permissions,
        One("WHO", set_permission_prompts),
        "Who shows permission questions: host or none.",
    ),
    Flag::new(
        "permission-timeout-ms",
        Permissions,
        One("N", |typed, value| set_parsed(&mut typed.options.permission_timeout_ms, value)),
        "How long a permission question waits before the answer is no. Not given: as long as it takes.",
    ),
    Flag::new(
        "background-at-end",
        Session,
        One("WHAT", |typed, value| set_parsed(&mut typed.options.background_at_end, value)),
        "What becomes of background work at the end: wait, stop, or detach (commands outlive the run).",
    ),
    Flag::new(
        "continue",
        Session,
        Switch(|typed| typed.options.continue_conversation = true),
        "Go on with the last session in this folder.",
    )
    .with_short('c'),
    Flag::new(
        "resume",
        Session,
        One("ID", |typed, value| set(&mut typed.options.resume, value)),
        "Go on with this session.",
    )
    .with_short('r'),
    Flag::new(
        "fork-session",
        Session,
        Switch(|typed| typed.options.fork_session = true),
        "Go on under a new id and leave the old session as it is.",
    ),
    Flag::new(
        "session-id",
        Session,
        One("UUID", |typed, value| set(&mut typed.options.session_id, value)),
        "The id of the new session.",
    ),
    Flag::new(
        "name",
        Session,
        One("TITLE", |typed, value| set(&mut typed.options.title, value)),
        "The title of the session.",
    )
    .with_short('n'),
    Flag::new(
        "resume-session-at",
        Session,
        One("UUID", |typed, value| set(&mut typed.options.resume_session_at, value)),
        "Forget what came after this message.",
    ),
    Flag::new(
        "resume-drops-turn",
        Session,
        One("UUID", |typed, value| set(&mut typed.options.resume_drops_turn, value)),
        "Forget the turn of this message.",
    ),
    Flag::new(
        "no-session-persistence",
        Session,
        Switch(|typed| typed.options.persist_session = Some(false)),
        "Keep nothing of the session on disk.",
    ),
    Flag::new(
        "setting-sources",
        Configuration,
        One("SOURCES", set_setting_sources),
        "The settings files to read, of user,project,local. Empty: none; not given: all.",
    ),
    Flag::new(
        "tolerate-bad-settings",
        Configuration,
        Switch(|typed| typed.options.tolerate_bad_settings = true),
        "Leave out settings files that cannot be read, with a warning, instead of refusing to start.",
    ),
    Flag::new(
        "settings",
        Configuration,
        One("FILE|JSON", |typed, value| push_value(&mut typed.settings, value)),
        "Settings on top of those in the files.",
    ),
    Flag::new(
        "managed-settings",
        Configuration,
        One("JSON", |typed, value| {
            let more = parse_object(value)?;
            match &mut typed.options.managed_settings {
                Some(before) => finalize::merge_settings(before, more),
                none => *none = Some(more),
            }
            Ok(())
        }),
        "Settings that nothing overrides.",
    ),
    Flag::new(
        "project-config-root",
        Configuration,
        One("FOLDER", |typed, value| set(&mut typed.options.project_config_root, value)),
        "Where the project's settings are, when not in the working folder.",
    ),
    Flag::new(
        "mcp-config",
        Configuration,
        List {
            value: "FILE|JSON",
            apply: |typed, value| push_value(&mut typed.mcp_configs, value),
            takes_further: is_mcp_config,
        },
        "MCP servers to use.",
    ),
    Flag::new(
        "strict-mcp-config",
        Configuration,
        Switch(|typed| typed.options.strict_mcp_config = true),
        "Use no other MCP servers than those.",
    ),
    Flag::new(
        "agents",
        Configuration,
        One("FILE|JSON", |typed, value| push_value(&mut typed.agents, value)),
        "Kinds of subagent, by name.",
    ),
    Flag::new(
        "agent",
        Configuration,
        One("NAME", |typed, value| set(&mut typed.options.agent, value)),
        "The kind of agent that the session itself is.",
    ),
    Flag::new(
        "plugin-dir",
        Configuration,
        List { value: "FOLDERS", apply: |typed, value| add_plugin(typed, value, PluginServers::Use), takes_further: is_directory_path },
        "Plugins to load.",
    ),
    Flag::new(
        "plugin-dir-no-mcp",
        Configuration,
        List {
            value: "FOLDERS",
            apply: |typed, value| add_plugin(typed, value, PluginServers::Skip),
            takes_further: is_directory_path,
        },
        "Plugins to load without their MCP servers.",
    ),
    Flag::new(
        "disable-slash-commands",
        Configuration,
        Switch(|typed| set_extra_switch(typed, "disable-slash-commands")),
        "Take /words in a prompt as plain text.",
    ),
    Flag::new(
        "include-partial-messages",
        Integration,
        Switch(|typed| typed.options.include_partial_messages = true),
        "Also write the model's words as they come.",
    ),
    Flag::new(
        "include-hook-events",
        Integration,
        Switch(|typed| typed.options.include_hook_events = true),
        "Also tell when hooks run.",
    ),
    Flag::new(
        "replay-user-messages",
        Integration,
        Switch(|typed| typed.options.replay_user_messages = true),
        "Write prompts back when they are taken up.",
    ),
    Flag::new(
        "forward-subagent-text",
        Integration,
        Switch(|typed| typed.options.forward_subagent_text = Some(true)),
        "Also write what subagents say.",
    ),
    Flag::new(
        "prompt-suggestions",
        Integration,
        Optional("ON", |typed, value| set_switch(&mut typed.options.prompt_suggestions, value)),
        "Suggest the next prompt.",
    ),
    Flag::new(
        "exclude-dynamic-system-prompt-sections",
        Integration,
        Switch(|typed| typed.exclude_dynamic_sections = Some(true)),
        "Leave out of the system prompt what changes from run to run.",
    ),
    Flag::new(
        "system-prompt-snapshot",
        Integration,
        One("ON|OFF", |typed, value| set_switch(&mut typed.prompt_snapshot, Some(value))),
        "Whether a resumed session keeps its old system prompt.",
    ),
    Flag::new(
        "session-mirror",
        Integration,
        Switch(|typed| typed.options.session_mirror = true),
        "Write a copy of every line of the transcript.",
    ),
    Flag::new(
        "await-initialize",
        Integration,
        Switch(|typed| set_extra_switch(typed, "await-initialize")),
        "Wait for the host's initialize before anything is loaded.",
    ),
    Flag::new(
        "strict-input",
        Integration,
        Switch(|typed| typed.strict_input = true),
        "Leave with an error when a line of the input is malformed, instead of reporting it and going on.",
    ),
    Flag::new(
        RECORD_FLAG,
        Integration,
        One("FILE", |typed, value| set_extra_value(typed, RECORD_FLAG, value)),
        "Keep what the model says in a new file.",
    ),
    Flag::new(
        REPLAY_FLAG,
        Integration,
        One("FILE", |typed, value| set_extra_value(typed, REPLAY_FLAG, value)),
        "Run again on such a file, without a model, and say where it comes out differently.",
    ),
    Flag::new(
        "debug",
        Integration,
        Optional("TOPICS", |typed, topics| {
            typed.options.debug = true;
            typed.debug_topics = topics.map(str::to_owned);
            Ok(())
        }),
        "Tell on stderr what is done: all of it, some topics of api, tools, hooks, control and frames (--debug=api,hooks), or all but one (--debug=!frames).",
    )
    .with_short('d'),
    Flag::new(
        "debug-file",
        Integration,
        One("FILE", |typed, value| set(&mut typed.options.debug_file, value)),
        "Tell it in this file instead.",
    ),
];
