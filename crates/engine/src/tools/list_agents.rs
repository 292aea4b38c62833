//! ListAgents: who of the other agents there is, and how they stand.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Done, Example, Output, Tool, Touches, Trouble};
use crate::agents::desk::Known;
use crate::agents::team::letter::counted;
use crate::agents::team::{LEAD, MemberInfo};
use crate::on_demand::Offer;

/// The tool.
pub(super) struct ListAgents;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for ListAgents {
    type Input = Input;

    const NAME: &'static str = "ListAgents";

    const ALIASES: &'static [&'static str] = &["ListPeers"];

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Lists the other agents that can be reached: teammates, subagents at work, and those that have ended and can go on.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, _: Input, call: Call) -> Output {
        let agents = call.agents.ok_or_else(|| Trouble::Refused("This agent knows of no others.".into()))?;
        let lead = agents.is_mate().then(Row::of_lead);
        let (mates, errands) = (agents.mates(), agents.known());
        let others = mates.iter().map(Row::of_mate).chain(errands.iter().map(Row::of_agent));
        let rows: Vec<Row> = lead.into_iter().chain(others).collect();
        let lines: Vec<String> = rows.iter().map(Row::told).collect();
        let text = if lines.is_empty() { "There are no other agents.".to_owned() } else { lines.join("\n") };
        let listed: Vec<Value> = rows.iter().map(Row::json).collect();
        Ok(Done::text(text, json!({"agents": listed, "team_name": agents.teams().name()})))
    }

    fn examples() -> Vec<Example> {
        vec![Example::new("who works alone has nobody to list", json!({})).fails(&["no others"])]
    }
}

/// One agent of the list.
struct Row {
    id: String,
    name: Option<String>,
    kind: String,
    about: String,
    state: &'static str,
}

impl Row {
    fn of_lead() -> Self {
        Self {
            id: LEAD.into(),
            name: None,
            kind: "main".into(),
            about: "the lead of the team".into(),
            state: "there",
        }
    }

    fn of_mate(member: &MemberInfo) -> Self {
        Self {
            id: member.facts.task_id.clone(),
            name: Some(member.facts.name.clone()),
            kind: member.facts.kind.clone(),
            about: match member.unread {
                0 => "teammate".into(),
                unread => format!("teammate, {} to read", counted(unread)),
            },
            state: if member.active { "working" } else { "idle" },
        }
    }

    fn of_agent(known: &Known) -> Self {
        Self {
            id: known.id.clone(),
            name: known.name.clone(),
            kind: known.kind.clone(),
            about: known.description.clone(),
            state: if known.works { "working" } else { "ended" },
        }
    }

    fn told(&self) -> String {
        let called = self.name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        format!("- {called}{} ({}): {}, {}", self.id, self.kind, self.state, self.about)
    }

    fn json(&self) -> Value {
        json!({
            "agentId": self.id, "name": self.name, "agentType": self.kind, "description": self.about,
            "status": self.state,
        })
    }
}
