//! Every flag, one row each. A new flag needs a new row here and nothing else.

use whimbrel_wire::options::{OutputFormat as AnswerFormat, PermissionPromptTool, SetupHooks, SystemPrompt};
use whimbrel_wire::permission::PermissionMode;

use super::apply::*;
use super::flag::Flag;
use super::flag::FlagGroup::{Configuration, Conversation, Integration, Model, Permissions, Session};
use super::flag::FlagKind::{List, Optional, Switch, Value as One};
use super::list_values::{
    accepts_no_more, is_directory_path, is_mcp_config, is_rule_list, is_switch_value, is_topic_list,
    is_worktree_name,
};
use super::raw_args::CliCommand;
use super::settings::merge_settings;
use super::{RECORD_FLAG, REPLAY_FLAG};
use crate::value_hint::ValueHint::{ToolList, WordList, Words};

/// Finds the flag that an argument names.
pub(super) fn find_flag(spelled: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.matches(spelled))
}

/// The flags, in the order of the help page.
pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "print",
        Conversation,
        Switch(|raw| raw.print = true),
        "Answer the prompt and exit; never ask for permission.",
    )
    .with_short("p"),
    Flag::new(
        "output-format",
        Conversation,
        One("FORMAT", |raw, value| parse_into(value, parse_output_format, &mut raw.output_format)),
        "Output: text (the answer), json (one result object) or stream-json (every frame as it arrives; needs \
            --verbose).",
    )
    .with_hint(Words(&["text", "json", "stream-json"])),
    Flag::new(
        "input-format",
        Conversation,
        One("FORMAT", |raw, value| parse_into(value, parse_input_format, &mut raw.input_format)),
        "Input on stdin: text (added to the prompt) or stream-json (frames, one per line).",
    )
    .with_hint(Words(&["text", "stream-json"])),
    Flag::new(
        "verbose",
        Conversation,
        Switch(|raw| raw.verbose = true),
        "Print every frame with --output-format stream-json.",
    ),
    Flag::new(
        "system-prompt",
        Conversation,
        One("TEXT", |raw, value| set_system_prompt(raw, SystemPrompt::Text(value.into()))),
        "Replace the built-in system prompt. Empty: only one short sentence.",
    ),
    Flag::new(
        "system-prompt-file",
        Conversation,
        One("FILE", |raw, value| set_system_prompt(raw, SystemPrompt::File { path: value.into() })),
        "Replace the built-in system prompt by the text of a file.",
    ),
    Flag::new(
        "append-system-prompt",
        Conversation,
        One("TEXT", |raw, value| set(&mut raw.append_system_prompt, value)),
        "Append this to the system prompt.",
    ),
    Flag::new(
        "append-system-prompt-file",
        Conversation,
        One("FILE", |raw, value| set(&mut raw.append_system_prompt_file, value)),
        "Append the text of a file to the system prompt.",
    ),
    Flag::new(
        "append-subagent-system-prompt",
        Conversation,
        One("TEXT", |raw, value| set(&mut raw.append_subagent_prompt, value)),
        "Append this to the system prompt of every subagent.",
    ),
    Flag::new(
        "append-subagent-system-prompt-file",
        Conversation,
        One("FILE", |raw, value| set(&mut raw.append_subagent_prompt_file, value)),
        "Append the text of a file to the system prompt of every subagent.",
    ),
    Flag::new(
        "plan-mode-instructions",
        Conversation,
        One("TEXT", |raw, value| set(&mut raw.options.plan_mode_instructions, value)),
        "Replace the instructions for plan mode.",
    ),
    Flag::new(
        "ax-screen-reader",
        Conversation,
        Switch(|raw| raw.plain_output = true),
        "Print plain lines at a terminal: no colors, nothing is overwritten.",
    ),
    Flag::new(
        "json-schema",
        Conversation,
        One("SCHEMA", |raw, value| {
            let schema = parse_object(value)?;
            raw.options.output_format = Some(AnswerFormat::JsonSchema { schema });
            Ok(())
        }),
        "Answer with JSON that matches this JSON Schema.",
    ),
    Flag::new("help", Conversation, Switch(|raw| raw.command = CliCommand::Help), "Show this page.").with_short("h"),
    Flag::new("version", Conversation, Switch(|raw| raw.command = CliCommand::Version), "Show the version.")
        .with_short("v"),
    Flag::new(
        "model",
        Model,
        One("NAME", |raw, value| set(&mut raw.options.model, value)),
        "Model: an alias (opus, sonnet, haiku), a full name, openai:NAME for a Chat Completions server, or \
            scripted:FILE.",
    )
    .with_hint(Words(&["opus", "sonnet", "haiku"])),
    Flag::new(
        "fallback-model",
        Model,
        One("NAME", |raw, value| set(&mut raw.options.fallback_model, value)),
        "Model to use while the first one is unavailable.",
    )
    .with_hint(Words(&["opus", "sonnet", "haiku"])),
    Flag::new(
        "effort",
        Model,
        One("LEVEL", |raw, value| set_parsed(&mut raw.options.effort, value)),
        "Effort of the model: low, medium, high, xhigh or max.",
    )
    .with_hint(Words(&["low", "medium", "high", "xhigh", "max"])),
    Flag::new(
        "thinking",
        Model,
        One("MODE", set_thinking),
        "Thinking mode: adaptive, enabled or disabled.",
    )
    .with_hint(Words(&["adaptive", "enabled", "disabled"])),
    Flag::new(
        "max-thinking-tokens",
        Model,
        One("N", |raw, value| set_number(&mut raw.options.max_thinking_tokens, value)),
        "Thinking budget in tokens; 0 disables thinking.",
    ),
    Flag::new(
        "thinking-display",
        Model,
        One("MODE", |raw, value| set_parsed(&mut raw.thinking_display, value)),
        "Thinking in the output: summarized or omitted.",
    )
    .with_hint(Words(&["summarized", "omitted"])),
    Flag::new("max-turns", Model, One("N", set_max_turns), "Stop after this many model calls."),
    Flag::new("max-budget-usd", Model, One("DOLLARS", set_budget), "Stop when this amount is spent."),
    Flag::new(
        "task-budget",
        Model,
        One("TOKENS", |raw, value| set_number(&mut raw.options.task_budget, value)),
        "Tell the model how many tokens the task may use.",
    ),
    Flag::new(
        "autocompact",
        Model,
        One("auto|TOKENS", set_compaction_window),
        "Size of the window that compaction assumes, such as 200k; auto: that of the model.",
    )
    .with_hint(Words(&["auto"])),
    Flag::new(
        "betas",
        Model,
        List { value: "NAMES", apply: |raw, value| extend_list(&mut raw.options.betas, value), accepts_more: accepts_no_more },
        "Beta features of the provider to enable.",
    ),
    Flag::new(
        "permission-mode",
        Permissions,
        One("MODE", |raw, value| set_parsed(&mut raw.options.permission_mode, value)),
        "Permission mode: default, acceptEdits, plan, dontAsk or bypassPermissions.",
    )
    .with_hint(Words(&["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"])),
    Flag::new(
        "allowedTools",
        Permissions,
        List {
            value: "RULES",
            apply: |raw, value| extend_list(&mut raw.options.allowed_tools, value),
            accepts_more: is_rule_list,
        },
        "Rules for calls that are allowed without asking, such as Read or \"Bash(git log *)\".",
    )
    .with_hint(ToolList)
    .with_aliases(&["allowed-tools"]),
    Flag::new(
        "disallowedTools",
        Permissions,
        List {
            value: "RULES",
            apply: |raw, value| extend_list(&mut raw.options.disallowed_tools, value),
            accepts_more: is_rule_list,
        },
        "Rules for calls that are denied in every mode.",
    )
    .with_hint(ToolList)
    .with_aliases(&["disallowed-tools"]),
    Flag::new(
        "tools",
        Permissions,
        List { value: "NAMES", apply: add_tools, accepts_more: is_rule_list },
        "Built-in tools to offer. Empty: none; default: all.",
    )
    .with_hint(ToolList),
    Flag::new(
        "add-dir",
        Permissions,
        List {
            value: "DIRS",
            apply: |raw, value| push_value(&mut raw.options.additional_directories, value),
            accepts_more: is_directory_path,
        },
        "Additional working directories.",
    ),
    Flag::new(
        "dangerously-skip-permissions",
        Permissions,
        Switch(|raw| raw.options.permission_mode = Some(PermissionMode::BypassPermissions)),
        "Never ask: same as --permission-mode bypassPermissions. For disposable machines only.",
    ),
    Flag::new(
        "allow-dangerously-skip-permissions",
        Permissions,
        Switch(|raw| raw.options.allow_dangerously_skip_permissions = true),
        "Let the host switch to bypassPermissions later.",
    ),
    Flag::new(
        "permission-prompt-tool",
        Permissions,
        One("TOOL", |raw, value| {
            raw.options.permission_prompt_tool = Some(PermissionPromptTool::from(value.to_owned()));
            Ok(())
        }),
        "Destination of permission requests: stdio (the host) or an MCP tool.",
    )
    .with_hint(Words(&["stdio"])),
    Flag::new(
        "permission-prompts",
        Permissions,
        One("SIDE", set_permission_prompts),
        "Side that shows permission prompts: host or none.",
    )
    .with_hint(Words(&["host", "none"])),
    Flag::new(
        "permission-timeout-ms",
        Permissions,
        One("N", |raw, value| set_parsed(&mut raw.options.permission_timeout_ms, value)),
        "Milliseconds after which an unanswered permission request is denied. Default: no limit.",
    ),
    Flag::new(
        "background-at-end",
        Session,
        One("MODE", |raw, value| set_parsed(&mut raw.options.background_at_end, value)),
        "Background tasks at the end of the run: wait, stop or detach (commands outlive the run).",
    )
    .with_hint(Words(&["wait", "stop", "detach"])),
    Flag::new(
        "continue",
        Session,
        Switch(|raw| raw.options.continue_conversation = true),
        "Resume the last session of this directory.",
    )
    .with_short("c"),
    Flag::new(
        "resume",
        Session,
        Optional {
            value: "ID|TITLE",
            apply: |raw, value| match value {
                Some(value) => set(&mut raw.options.resume, value),
                None => {
                    raw.choose_session = true;
                    Ok(())
                }
            },
            takes_next: |next| !next.starts_with('-'),
        },
        "Resume this session: its id, or its title in this directory. Without one, choose from a list.",
    )
    .with_short("r"),
    Flag::new(
        "fork-session",
        Session,
        Switch(|raw| raw.options.fork_session = true),
        "Resume under a new id; the old session stays unchanged.",
    ),
    Flag::new(
        "session-id",
        Session,
        One("UUID", |raw, value| set(&mut raw.options.session_id, value)),
        "Id of the new session.",
    ),
    Flag::new(
        "name",
        Session,
        One("TITLE", |raw, value| set(&mut raw.options.title, value)),
        "Title of the session.",
    )
    .with_short("n"),
    Flag::new(
        "init",
        Session,
        Switch(|raw| raw.options.setup_hooks = Some(SetupHooks::Init)),
        "Run the Setup hooks that prepare the project first.",
    ),
    Flag::new(
        "init-only",
        Session,
        Switch(|raw| raw.options.setup_hooks = Some(SetupHooks::InitOnly)),
        "Run the Setup hooks that prepare the project and the SessionStart hooks, and exit. The exit code is 1 if one fails.",
    ),
    Flag::new(
        "maintenance",
        Session,
        Switch(|raw| raw.options.setup_hooks = Some(SetupHooks::Maintenance)),
        "Run the Setup hooks that maintain the project first.",
    ),
    Flag::new(
        "worktree",
        Session,
        Optional {
            value: "NAME",
            apply: |raw, name| {
                raw.options.worktree = Some(name.unwrap_or_default().to_owned());
                Ok(())
            },
            takes_next: is_worktree_name,
        },
        "Work in a git worktree of this repository, .claude/worktrees/NAME; created if it is missing.",
    )
    .with_short("w"),
    Flag::new(
        "resume-session-at",
        Session,
        One("UUID", |raw, value| set(&mut raw.options.resume_session_at, value)),
        "Resume at this message and drop everything after it.",
    ),
    Flag::new(
        "resume-drops-turn",
        Session,
        One("UUID", |raw, value| set(&mut raw.options.resume_drops_turn, value)),
        "Resume without the turn of this message.",
    ),
    Flag::new(
        "rewind-files",
        Session,
        One("UUID", |raw, value| set(&mut raw.rewind_files, value)),
        "With --resume: put files back to where they were at this prompt, and exit. Needs file checkpoints.",
    ),
    Flag::new(
        "no-session-persistence",
        Session,
        Switch(|raw| raw.options.persist_session = Some(false)),
        "Do not store the session on disk.",
    ),
    Flag::new(
        "setting-sources",
        Configuration,
        One("SOURCES", set_setting_sources),
        "Settings files to read, of user,project,local. Empty: none; default: all.",
    )
    .with_hint(WordList(&["user", "project", "local"])),
    Flag::new(
        "bare",
        Configuration,
        Switch(|raw| raw.bare = true),
        "Read no settings, instruction files, hooks, skills, agents and MCP servers of files, only what flags name. \
            Excludes sources in --setting-sources.",
    ),
    Flag::new(
        "tolerate-bad-settings",
        Configuration,
        Switch(|raw| raw.options.tolerate_bad_settings = true),
        "Skip settings files that cannot be read, with a warning, instead of failing to start.",
    ),
    Flag::new(
        "settings",
        Configuration,
        One("FILE|JSON", |raw, value| push_value(&mut raw.settings, value)),
        "Settings that override those of the files.",
    ),
    Flag::new(
        "managed-settings",
        Configuration,
        One("JSON", |raw, value| {
            let more = parse_object(value)?;
            match &mut raw.options.managed_settings {
                Some(before) => merge_settings(before, more),
                none => *none = Some(more),
            }
            Ok(())
        }),
        "Settings that nothing overrides.",
    ),
    Flag::new(
        "project-config-root",
        Configuration,
        One("DIR", |raw, value| set(&mut raw.options.project_config_root, value)),
        "Directory of the project's settings, if not the working directory.",
    ),
    Flag::new(
        "mcp-config",
        Configuration,
        List {
            value: "FILE|JSON",
            apply: |raw, value| push_value(&mut raw.mcp_configs, value),
            accepts_more: is_mcp_config,
        },
        "MCP servers to use.",
    ),
    Flag::new(
        "strict-mcp-config",
        Configuration,
        Switch(|raw| raw.options.strict_mcp_config = true),
        "Use only the MCP servers of --mcp-config.",
    ),
    Flag::new(
        "agents",
        Configuration,
        One("FILE|JSON", |raw, value| push_value(&mut raw.agents, value)),
        "Agent definitions, by name.",
    ),
    Flag::new(
        "agent",
        Configuration,
        One("NAME", |raw, value| set(&mut raw.options.agent, value)),
        "Agent definition for the session itself.",
    ),
    Flag::new(
        "plugin-dir",
        Configuration,
        List { value: "DIRS", apply: |raw, value| add_plugin(raw, value, PluginServers::Use), accepts_more: is_directory_path },
        "Plugins to load.",
    ),
    Flag::new(
        "plugin-dir-no-mcp",
        Configuration,
        List {
            value: "DIRS",
            apply: |raw, value| add_plugin(raw, value, PluginServers::Skip),
            accepts_more: is_directory_path,
        },
        "Plugins to load without their MCP servers.",
    ),
    Flag::new(
        "disable-slash-commands",
        Configuration,
        Switch(|raw| set_extra_switch(raw, "disable-slash-commands")),
        "Treat /commands in a prompt as plain text.",
    ),
    Flag::new(
        "include-partial-messages",
        Integration,
        Switch(|raw| raw.options.include_partial_messages = true),
        "Also write the model's reply while it streams.",
    ),
    Flag::new(
        "include-hook-events",
        Integration,
        Switch(|raw| raw.options.include_hook_events = true),
        "Also write a frame when a hook runs.",
    ),
    Flag::new(
        "replay-user-messages",
        Integration,
        Switch(|raw| raw.options.replay_user_messages = true),
        "Echo each prompt, before the first message of the turn that answers it.",
    ),
    Flag::new(
        "forward-subagent-text",
        Integration,
        Switch(|raw| raw.options.forward_subagent_text = Some(true)),
        "Also write the text of subagents.",
    ),
    Flag::new(
        "prompt-suggestions",
        Integration,
        Optional {
            value: "ON",
            apply: |raw, value| set_switch(&mut raw.options.prompt_suggestions, value),
            takes_next: is_switch_value,
        },
        "Suggest the next prompt.",
    )
    .with_hint(Words(&["on", "off"])),
    Flag::new(
        "exclude-dynamic-system-prompt-sections",
        Integration,
        Switch(|raw| raw.exclude_dynamic_sections = Some(true)),
        "Keep what differs between runs out of the system prompt, as always.",
    ),
    Flag::new(
        "system-prompt-snapshot",
        Integration,
        One("OFF", set_prompt_snapshot),
        "off: build the system prompt anew when a session is resumed, as always. on is refused.",
    )
    .with_hint(Words(&["off"])),
    Flag::new(
        "session-mirror",
        Integration,
        Switch(|raw| raw.options.session_mirror = true),
        "Write a copy of every transcript entry.",
    ),
    Flag::new(
        "await-initialize",
        Integration,
        Switch(|raw| set_extra_switch(raw, "await-initialize")),
        "Load the plugins of the host's initialize request before the first turn, as always.",
    ),
    Flag::new(
        "strict-input",
        Integration,
        Switch(|raw| raw.strict_input = true),
        "Exit with an error on a malformed input line, instead of reporting it and continuing.",
    ),
    Flag::new(
        RECORD_FLAG,
        Integration,
        One("FILE", |raw, value| set_extra_value(raw, RECORD_FLAG, value)),
        "Record the model's replies in a new file.",
    ),
    Flag::new(
        REPLAY_FLAG,
        Integration,
        One("FILE", |raw, value| set_extra_value(raw, REPLAY_FLAG, value)),
        "Replay a recording instead of asking a model, and report where the run differs.",
    ),
    Flag::new(
        "debug",
        Integration,
        Optional {
            value: "TOPICS",
            apply: |raw, topics| {
                raw.options.debug = true;
                raw.debug_topics = topics.map(str::to_owned);
                Ok(())
            },
            takes_next: is_topic_list,
        },
        "Log to stderr: everything, some topics of api, tools, hooks, control and frames (--debug api,hooks), or all \
            but one (--debug '!frames').",
    )
    .with_hint(WordList(&["api", "tools", "hooks", "control", "frames"]))
    .with_short("d"),
    Flag::new(
        "debug-to-stderr",
        Integration,
        Switch(|raw| raw.options.debug = true),
        "The same as --debug.",
    )
    .with_short("d2e")
    .with_aliases(&["mcp-debug"]),
    Flag::new(
        "debug-file",
        Integration,
        One("FILE", |raw, value| set(&mut raw.options.debug_file, value)),
        "Log to this file instead.",
    ),
];
