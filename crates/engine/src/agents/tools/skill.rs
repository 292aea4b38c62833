//! Tool with which the model calls a skill. It is offered where skills exist, under its older name too.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_tools::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use whimbrel_wire::tool_names::SKILL;

use super::skill_fork;
use crate::agents::AgentSpawner;
use crate::skills::{InvocationQueue, InvokedSkill, SkillError, Skills};

#[derive(Clone)]
pub struct SkillTool {
    skills: Skills,
    /// Queue of called skills; `None` for a tool that is only listed.
    queue: Option<InvocationQueue>,
}

impl SkillTool {
    pub fn new(skills: Skills, queue: InvocationQueue) -> Self {
        Self { skills, queue: Some(queue) }
    }

    /// Tool for listing and permission checks, without an agent.
    pub fn for_listing(skills: Skills) -> Arc<Self> {
        Arc::new(Self { skills, queue: None })
    }
}

/// What the model fills in.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SkillInput {
    /// A name from the list of skills.
    #[serde(alias = "command")]
    skill: String,
    /// Arguments for the skill.
    #[serde(default)]
    args: Option<String>,
}

impl SkillInput {
    /// Skill name and arguments. Accepts `/name words`, as users and models write it.
    fn split_call(&self) -> (&str, String) {
        let text = self.skill.trim().trim_start_matches('/');
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let arguments = [rest.trim(), self.args.as_deref().unwrap_or_default().trim()];
        (name, arguments.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" "))
    }
}

impl Tool for SkillTool {
    type Input = SkillInput;

    const NAME: &'static str = SKILL;

    const ALIASES: &'static [&'static str] = &["SlashCommand"];

    const DESCRIPTION: &'static str = "Loads a skill: instructions for one kind of task, which you then follow. Load it before you start a task that matches its description, or when the user names it (/name). A skill that follows a <command-name> in the conversation is already loaded.";

    fn effects(_: &SkillInput) -> Effects {
        Effects::OtherAgents
    }

    fn adds_allow_rules(&self, input: &SkillInput) -> bool {
        self.skills.grants_permissions(input.split_call().0)
    }

    async fn run(&self, input: SkillInput, call: ToolContext) -> ToolResult {
        let (name, arguments) = input.split_call();
        let file = self.skills.find_callable(name).map_err(|error| match error {
            SkillError::Unreadable(text) => ToolError::Failed(text),
            other => ToolError::Rejected(other.to_string()),
        })?;
        let parsed = file.parse().map_err(ToolError::Failed)?;
        if let Some(agents) = AgentSpawner::from_context(&call).filter(|_| parsed.front_matter.is_fork()) {
            return skill_fork::run(agents, InvokedSkill { file, parsed, arguments }, &call).await;
        }
        let mut meta = json!({"success": true, "commandName": file.name});
        let rules = parsed.front_matter.allowed_tools.to_list();
        if !rules.is_empty() && file.may_grant_permissions(self.skills.trust()) {
            meta["allowedTools"] = Value::from(rules);
        }
        let text = format!("Launching skill: {}", file.name);
        let queue =
            self.queue.as_ref().ok_or_else(|| ToolError::Failed("Skills cannot be loaded here.".into()))?;
        queue.push(InvokedSkill { file, parsed, arguments });
        Ok(ToolOutput::text(text, meta))
    }

    /// Callable skills depend on the session.
    fn examples() -> Vec<Example> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_config::settings::Trust;
    use whimbrel_tools::api::AnyTool;

    use super::*;
    use crate::skills::tests::test_skills;

    #[test]
    fn only_skills_with_allow_rules_need_permission() {
        let dir = tempfile::tempdir().unwrap();
        for (trust, expected) in [(Trust::Full, true), (Trust::Untrusted, false)] {
            let tool = SkillTool::for_listing(test_skills(dir.path(), None, trust));
            let grants = |input: Value| AnyTool::adds_allow_rules(tool.as_ref(), &input);
            assert_eq!(grants(json!({"skill": "pdf"})), expected);
            assert_eq!(grants(json!({"command": "/pdf now"})), expected);
            assert!(!grants(json!({"skill": "fix"})) && !grants(json!({"skill": 5})));
            assert_eq!(AnyTool::effects(tool.as_ref(), &json!({"skill": "pdf"})), Ok(Effects::OtherAgents));
        }
    }

    #[test]
    fn the_tool_spec_is_small() {
        let dir = tempfile::tempdir().unwrap();
        let tool = SkillTool::for_listing(test_skills(dir.path(), None, Trust::Full));
        let size = serde_json::to_string(&tool.spec()).unwrap().len();
        assert!(size < 600, "{size}");
    }

    #[test]
    fn the_older_name_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let tool = SkillTool::for_listing(test_skills(dir.path(), None, Trust::Full));
        let tools = whimbrel_tools::api::AgentToolSet::empty().with_tool(tool);
        assert_eq!(tools.names(), ["Skill"]);
        assert!(tools.find("SlashCommand").is_some());
    }
}
