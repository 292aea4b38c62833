//! Converts options into what an engine process receives: flags and environment variables.
//! The official engines of the 2.1 line and ours both accept this spelling.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{McpServerConfig, Options, OutputFormat, PermissionPromptTool, SystemPrompt, Thinking, ToolSet};

/// Command-line arguments under construction.
#[derive(Default)]
struct ArgsBuilder(Vec<String>);

impl ArgsBuilder {
    /// Appends `--name` if wanted.
    fn push_switch(&mut self, name: &str, wanted: bool) {
        if wanted {
            self.0.push(format!("--{name}"));
        }
    }

    /// Appends `--name=value` if there is a value.
    fn push_value(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.push(format!("--{name}={}", value.to_string()));
        }
    }

    /// Appends `--name=a,b` unless the list is empty.
    fn push_list(&mut self, name: &str, values: &[String]) {
        self.push_value(name, (!values.is_empty()).then(|| values.join(",")));
    }

    /// Appends `--name=value` for each value.
    fn push_each<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a String>) {
        for value in values {
            self.push_value(name, Some(value));
        }
    }

    /// Appends `--name` and the value as two arguments, as the official SDKs do for long JSON.
    fn push_pair(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.0.extend([format!("--{name}"), value]);
        }
    }
}

impl Options {
    /// Returns the command line of an engine process.
    pub fn to_args(&self) -> Vec<String> {
        let mut flags = ArgsBuilder(
            ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
                .map(String::from)
                .into(),
        );
        self.push_model_flags(&mut flags);
        self.push_permission_flags(&mut flags);
        self.push_session_flags(&mut flags);
        self.push_setting_flags(&mut flags);
        self.push_output_flags(&mut flags);
        for (name, value) in &self.extra_args {
            match value {
                Some(value) => flags.push_value(name, Some(value)),
                None => flags.push_switch(name, true),
            }
        }
        flags.0
    }

    fn push_model_flags(&self, flags: &mut ArgsBuilder) {
        flags.push_value("model", self.model.as_ref());
        flags.push_value("fallback-model", self.fallback_model.as_ref());
        flags.push_list("betas", &self.betas);
        flags.push_value("max-turns", self.max_turns);
        flags.push_value("max-budget-usd", self.max_budget_usd);
        flags.push_value("task-budget", self.task_budget);
        flags.push_value("effort", self.effort);
        match (self.thinking, self.max_thinking_tokens) {
            (Some(thinking), _) => push_thinking_flags(thinking, flags),
            (None, Some(0)) => flags.push_value("thinking", Some("disabled")),
            (None, limit) => flags.push_value("max-thinking-tokens", limit),
        }
        if let Some(SystemPrompt::File { path }) = &self.system_prompt {
            flags.push_value("system-prompt-file", Some(path));
        }
    }

    fn push_permission_flags(&self, flags: &mut ArgsBuilder) {
        flags.push_value("permission-mode", self.permission_mode);
        flags.push_switch("allow-dangerously-skip-permissions", self.allow_dangerously_skip_permissions);
        flags.push_value(
            "permission-prompt-tool",
            self.permission_prompt_tool.as_ref().map(PermissionPromptTool::as_str),
        );
        flags.push_value("permission-prompts", self.permission_prompts.as_ref());
        flags.push_value("permission-timeout-ms", self.permission_timeout_ms);
        flags.push_switch("tolerate-bad-settings", self.tolerate_bad_settings);
        flags.push_value("background-at-end", self.background_at_end);
        flags.push_value("tools", self.tools.as_ref().map(join_tool_names));
        flags.push_list("allowedTools", &self.allowed_rules());
        flags.push_list("disallowedTools", &self.disallowed_tools);
        flags.push_each("add-dir", &self.additional_directories);
    }

    /// Returns the allow rules, including those that the enabled skills need.
    pub fn allowed_rules(&self) -> Vec<String> {
        let skills = self.skills.iter().flatten().map(|name| match name.as_str() {
            "*" => "Skill".into(),
            name => format!("Skill({name})"),
        });
        self.allowed_tools.iter().cloned().chain(skills).collect()
    }

    fn push_session_flags(&self, flags: &mut ArgsBuilder) {
        match self.worktree.as_deref() {
            Some("") => flags.push_switch("worktree", true),
            name => flags.push_value("worktree", name),
        }
        if let Some(hooks) = self.setup_hooks {
            flags.push_switch(hooks.as_str(), true);
        }
        flags.push_switch("continue", self.continue_conversation);
        flags.push_value("resume", self.resume.as_ref());
        flags.push_switch("fork-session", self.fork_session);
        flags.push_value("session-id", self.session_id.as_ref());
        flags.push_value("resume-session-at", self.resume_session_at.as_ref());
        flags.push_value("resume-drops-turn", self.resume_drops_turn.as_ref());
        flags.push_switch("no-session-persistence", self.persist_session == Some(false));
        flags.push_switch("session-mirror", self.session_mirror);
    }

    fn push_setting_flags(&self, flags: &mut ArgsBuilder) {
        let sources = self.setting_sources.as_ref();
        flags.push_value(
            "setting-sources",
            sources.map(|names| names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(",")),
        );
        for settings in self.merged_settings() {
            flags.push_pair("settings", Some(settings));
        }
        flags.push_pair("managed-settings", self.managed_settings.as_ref().map(Value::to_string));
        flags.push_value("project-config-root", self.project_config_root.as_ref());
        flags.push_pair("mcp-config", self.mcp_config());
        flags.push_switch("strict-mcp-config", self.strict_mcp_config);
        flags.push_value("agent", self.agent.as_ref());
        for plugin in &self.plugins {
            let flag = if plugin.skip_mcp_discovery { "plugin-dir-no-mcp" } else { "plugin-dir" };
            flags.push_value(flag, Some(&plugin.path));
        }
    }

    fn push_output_flags(&self, flags: &mut ArgsBuilder) {
        flags.push_switch("include-partial-messages", self.include_partial_messages);
        flags.push_switch("include-hook-events", self.include_hook_events);
        flags.push_switch("replay-user-messages", self.replay_user_messages);
        if let Some(OutputFormat::JsonSchema { schema }) = &self.output_format {
            flags.push_value("json-schema", Some(schema));
        }
        flags.push_switch("debug", self.debug);
        flags.push_value("debug-file", self.debug_file.as_ref());
    }

    /// Returns the values of `--settings` with the sandbox merged in. A settings file cannot be merged here, so the
    /// sandbox becomes a second value; an engine that accepts only one takes the last, and the sandbox must not get
    /// lost.
    fn merged_settings(&self) -> Vec<String> {
        let Some(sandbox) = &self.sandbox else { return self.settings.iter().cloned().collect() };
        let given = self.settings.as_deref().unwrap_or("{}");
        match serde_json::from_str::<Map<String, Value>>(given) {
            Ok(mut settings) => {
                settings.insert("sandbox".into(), Value::Object(sandbox.clone()));
                vec![Value::Object(settings).to_string()]
            }
            Err(_) => vec![given.into(), json!({ "sandbox": sandbox }).to_string()],
        }
    }

    /// Returns the MCP servers that the engine connects to itself; hosted ones are listed in `initialize`.
    fn mcp_config(&self) -> Option<String> {
        let outside = |server: &McpServerConfig| !matches!(server, McpServerConfig::Sdk(_));
        let servers: BTreeMap<_, _> = self.mcp_servers.iter().filter(|(_, server)| outside(server)).collect();
        (!servers.is_empty()).then(|| json!({ "mcpServers": servers }).to_string())
    }

    /// Returns the environment variables of an engine process; those of the caller win.
    pub fn to_env(&self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        if self.enable_file_checkpointing {
            env.insert("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING".into(), "true".into());
        }
        if let Some(format) = &self.question_preview_format {
            env.insert("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT".into(), format.clone());
        }
        if let Some(limit) = self.max_output_tokens {
            env.insert("CLAUDE_CODE_MAX_OUTPUT_TOKENS".into(), limit.to_string());
        }
        env.extend(self.env.clone());
        env
    }
}

impl PermissionPromptTool {
    /// The name on the command line.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stdio => "stdio",
            Self::Mcp(name) => name,
        }
    }
}

fn push_thinking_flags(thinking: Thinking, flags: &mut ArgsBuilder) {
    let display = match thinking {
        Thinking::Adaptive { display } => {
            flags.push_value("thinking", Some("adaptive"));
            display
        }
        Thinking::Enabled { budget_tokens, display } => {
            match budget_tokens {
                Some(budget) => flags.push_value("max-thinking-tokens", Some(budget)),
                None => flags.push_value("thinking", Some("adaptive")),
            }
            display
        }
        Thinking::Disabled => {
            flags.push_value("thinking", Some("disabled"));
            None
        }
    };
    flags.push_value("thinking-display", display);
}

fn join_tool_names(tools: &ToolSet) -> String {
    match tools {
        ToolSet::Default => "default".into(),
        ToolSet::List(names) => names.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Initialize;
    use crate::options::{
        Effort, PluginConfig, SdkServer, SettingSource, SetupHooks, StdioServer, ThinkingDisplay,
    };
    use crate::permission::PermissionMode;

    /// Returns the arguments after the fixed ones.
    fn extra_args(options: &Options) -> Vec<String> {
        let args = options.to_args();
        assert_eq!(
            args[..5],
            ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
        );
        args[5..].to_vec()
    }

    #[test]
    fn default_options_give_no_flags() {
        assert_eq!(extra_args(&Options::default()), [""; 0]);
        assert_eq!(Options::default().to_initialize(), Initialize::default());
        assert!(Options::default().to_env().is_empty());
    }

    #[test]
    fn thinking_flags_have_the_official_spelling() {
        let display = Some(ThinkingDisplay::Omitted);
        for (thinking, limit, expected) in [
            (
                Some(Thinking::Adaptive { display }),
                None,
                vec!["--thinking=adaptive", "--thinking-display=omitted"],
            ),
            (
                Some(Thinking::Enabled { budget_tokens: Some(9), display: None }),
                None,
                vec!["--max-thinking-tokens=9"],
            ),
            (
                Some(Thinking::Enabled { budget_tokens: None, display: None }),
                None,
                vec!["--thinking=adaptive"],
            ),
            (Some(Thinking::Disabled), Some(5), vec!["--thinking=disabled"]),
            (None, Some(0), vec!["--thinking=disabled"]),
            (None, Some(5), vec!["--max-thinking-tokens=5"]),
        ] {
            assert_eq!(
                extra_args(&Options { thinking, max_thinking_tokens: limit, ..Options::default() }),
                expected
            );
        }
    }

    #[test]
    fn worktree_without_a_name_is_a_switch() {
        let with = |name: &str| Options { worktree: Some(name.into()), ..Options::default() };
        assert_eq!(extra_args(&with("")), ["--worktree"]);
        assert_eq!(extra_args(&with("fix")), ["--worktree=fix"]);
    }

    #[test]
    fn empty_list_differs_from_no_list() {
        let options = Options {
            tools: Some(ToolSet::List(vec![])),
            setting_sources: Some(vec![]),
            ..Options::default()
        };
        assert_eq!(extra_args(&options), ["--tools=", "--setting-sources="]);
    }

    #[test]
    fn every_group_of_flags_is_written() {
        let options = Options {
            model: Some("opus".into()),
            effort: Some(Effort::XHigh),
            permission_mode: Some(PermissionMode::AcceptEdits),
            permission_prompt_tool: Some(PermissionPromptTool::Stdio),
            allowed_tools: vec!["Read".into(), "Bash(git:*)".into()],
            skills: Some(vec!["pdf".into()]),
            additional_directories: vec!["/a".into(), "/b".into()],
            resume: Some("-odd".into()),
            persist_session: Some(false),
            setup_hooks: Some(SetupHooks::Maintenance),
            setting_sources: Some(vec![SettingSource::User, SettingSource::Local]),
            plugins: vec![PluginConfig::local("/p")],
            include_partial_messages: true,
            extra_args: [("brief".into(), None), ("name".into(), Some("x".into()))].into(),
            ..Options::default()
        };
        let expected = [
            "--model=opus",
            "--effort=xhigh",
            "--permission-mode=acceptEdits",
            "--permission-prompt-tool=stdio",
            "--allowedTools=Read,Bash(git:*),Skill(pdf)",
            "--add-dir=/a",
            "--add-dir=/b",
            "--maintenance",
            "--resume=-odd",
            "--no-session-persistence",
            "--setting-sources=user,local",
            "--plugin-dir=/p",
            "--include-partial-messages",
            "--brief",
            "--name=x",
        ];
        assert_eq!(extra_args(&options), expected);
    }

    #[test]
    fn hosted_servers_go_to_initialize_and_others_to_a_flag() {
        let stdio = StdioServer { command: "db".into(), ..StdioServer::default() };
        let sdk = SdkServer { name: "inner name".into(), timeout: Some(5.0), tools: None };
        let options = Options {
            mcp_servers: [
                ("db".into(), McpServerConfig::Stdio(stdio)),
                ("calc".into(), McpServerConfig::Sdk(sdk)),
            ]
            .into(),
            ..Options::default()
        };
        assert_eq!(
            extra_args(&options),
            ["--mcp-config", r#"{"mcpServers":{"db":{"type":"stdio","command":"db"}}}"#]
        );
        let initialize = options.to_initialize();
        assert_eq!(initialize.sdk_mcp_servers, Some(vec!["calc".into()]));
        assert_eq!(initialize.sdk_mcp_server_configs.unwrap()["calc"].timeout, Some(5.0));
    }

    #[test]
    fn sandbox_is_never_lost() {
        let sandbox = json!({"enabled": true}).as_object().cloned();
        let sandboxed = r#"{"sandbox":{"enabled":true}}"#;
        for (settings, expected) in [
            (None, vec!["--settings", sandboxed]),
            (Some(r#"{"model":"m"}"#), vec!["--settings", r#"{"model":"m","sandbox":{"enabled":true}}"#]),
            (Some("/s.json"), vec!["--settings", "/s.json", "--settings", sandboxed]),
        ] {
            let options = Options {
                settings: settings.map(String::from),
                sandbox: sandbox.clone(),
                ..Options::default()
            };
            assert_eq!(extra_args(&options), expected);
        }
    }

    #[test]
    fn system_prompt_goes_to_initialize_unless_it_is_a_file() {
        let with = |prompt| Options { system_prompt: Some(prompt), ..Options::default() };
        assert_eq!(with("".into()).to_initialize().system_prompt, Some(vec![String::new()]));
        let preset = SystemPrompt::Preset {
            append: Some("more".into()),
            exclude_dynamic_sections: Some(true),
            snapshot: None,
        };
        let initialize = with(preset).to_initialize();
        assert_eq!((initialize.system_prompt, initialize.append_system_prompt), (None, Some("more".into())));
        assert_eq!(initialize.exclude_dynamic_sections, Some(true));
        assert_eq!(extra_args(&with(SystemPrompt::File { path: "/p".into() })), ["--system-prompt-file=/p"]);
    }
}
