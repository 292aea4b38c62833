//! Tool with which the model calls a skill. It is offered where skills exist, under its older name too.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::agent_skills::{InvocationQueue, InvokedSkill};
use super::{SkillError, Skills, fork};
use crate::tool_api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::tools::SKILL;

#[derive(Clone)]
pub struct Skill {
    skills: Skills,
    /// Queue of called skills; `None` for a tool that is only listed.
    queue: Option<InvocationQueue>,
}

impl Skill {
    pub(super) fn new(skills: Skills, registry: InvocationQueue) -> Self {
        Self { skills, queue: Some(registry) }
    }

    /// Tool for listing and permission checks, without an agent.
    pub fn for_listing(skills: Skills) -> Arc<Self> {
        Arc::new(Self { skills, queue: None })
    }
}

/// What the model fills in.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// A name from the list of skills.
    #[serde(alias = "command")]
    skill: String,
    /// What to tell it.
    #[serde(default)]
    args: Option<String>,
}

impl Input {
    /// Skill name and arguments. Accepts `/name words`, as users and models write it.
    fn split_call(&self) -> (&str, String) {
        let text = self.skill.trim().trim_start_matches('/');
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let arguments = [rest.trim(), self.args.as_deref().unwrap_or_default().trim()];
        (name, arguments.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" "))
    }
}

impl Tool for Skill {
    type Input = Input;

    const NAME: &'static str = SKILL;

    const ALIASES: &'static [&'static str] = &["SlashCommand"];

    const DESCRIPTION: &'static str = "Loads a skill: instructions for one kind of task, which you then follow. Load it before you start a task that matches its description, or when the user names it (/name). A skill that follows a <command-name> in the conversation is already loaded.";

    fn effects(_: &Input) -> Effects {
        Effects::OtherAgents
    }

    fn adds_allow_rules(&self, input: &Input) -> bool {
        self.skills.grants_permissions(input.split_call().0)
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let (name, arguments) = input.split_call();
        let file = self.skills.find_callable(name).map_err(|missing| match missing {
            SkillError::Unreadable(text) => ToolError::Failed(text),
            other => ToolError::Rejected(other.to_string()),
        })?;
        let parsed = file.parse().map_err(ToolError::Failed)?;
        if let Some(agents) = call.agents.as_ref().filter(|_| parsed.front_matter.is_fork()) {
            return fork::run(agents, InvokedSkill { file, parsed, arguments }, &call).await;
        }
        let mut meta = json!({"success": true, "commandName": file.name});
        let rules = parsed.front_matter.allowed_tools.to_list();
        if !rules.is_empty() && file.may_grant_permissions(self.skills.trust()) {
            meta["allowedTools"] = Value::from(rules);
        }
        let text = format!("Launching skill: {}", file.name);
        let registry =
            self.queue.as_ref().ok_or_else(|| ToolError::Failed("Skills cannot be loaded here.".into()))?;
        registry.push(InvokedSkill { file, parsed, arguments });
        Ok(ToolOutput::text(text, meta))
    }

    /// Callable skills depend on the session.
    fn examples() -> Vec<Example> {
        Vec::new()
    }
}
