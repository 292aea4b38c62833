//! Answers to requests, and the rules that wider answers give. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use whimbrel::wire::control::{CanUseTool, Elicitation, ElicitationAction, ElicitationReply};
use whimbrel::wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionResult, PermissionUpdate, RuleValue,
};

use crate::error::{ApiError, ApiResult};

/// An answer as a client gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) decision: Decision,
    #[serde(default)]
    pub(crate) scope: Scope,
    /// The edited input of the tool, or the content of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Map<String, Json>>,
    /// A note to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Also ends the turn.
    #[serde(default)]
    pub(crate) interrupt: bool,
    /// Answers to questions: a text or several, by question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<Map<String, Json>>,
    /// The mode after a plan was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Decision {
    Allow,
    Deny,
}

/// How far an answer reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    #[default]
    Once,
    Session,
    /// This folder, only for this person.
    Local,
    Project,
    /// All projects of this person.
    User,
}

impl Scope {
    fn destination(self) -> Option<Destination> {
        match self {
            Self::Once => None,
            Self::Session => Some(Destination::Session),
            Self::Local => Some(Destination::LocalSettings),
            Self::Project => Some(Destination::ProjectSettings),
            Self::User => Some(Destination::UserSettings),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Permission,
    Question,
    Plan,
    Elicitation,
}

impl RequestKind {
    pub(crate) fn of_tool(tool: &str) -> Self {
        match tool {
            "AskUserQuestion" => Self::Question,
            "ExitPlanMode" => Self::Plan,
            _ => Self::Permission,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Plan => "plan",
            Self::Elicitation => "elicitation",
        }
    }
}

/// Rules that a wider answer gives: the text that is shown, and the updates with their destination.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WiderAnswer {
    pub(crate) scope: Scope,
    pub(crate) rule: String,
    pub(crate) updates: Vec<PermissionUpdate>,
}

/// The wider answers that a request allows. Only the engine's own suggestions are used, with the destination changed; in a
/// folder that is not trusted none is written there.
pub(crate) fn wider_answers(request: &CanUseTool, is_trusted: bool) -> Vec<WiderAnswer> {
    let suggestions = request.permission_suggestions.as_deref().unwrap_or_default();
    let never = request.suppress_always_allow_rule == Some(true)
        || RequestKind::of_tool(&request.tool_name) != RequestKind::Permission;
    if never || suggestions.is_empty() {
        return Vec::new();
    }
    let texts: Vec<String> = suggestions.iter().flat_map(rule_texts).collect();
    if texts.is_empty() {
        let mode = suggestions.iter().find_map(|update| match update {
            PermissionUpdate::SetMode { mode, .. } => Some(*mode),
            _ => None,
        });
        return mode.filter(|mode| *mode != PermissionMode::BypassPermissions).map_or_else(
            Vec::new,
            |mode| {
                let updates = vec![PermissionUpdate::SetMode { mode, destination: Destination::Session }];
                vec![WiderAnswer { scope: Scope::Session, rule: format!("mode {mode}"), updates }]
            },
        );
    }
    let scopes: &[Scope] = if is_trusted {
        &[Scope::Session, Scope::Local, Scope::Project, Scope::User]
    } else {
        &[Scope::Session, Scope::User]
    };
    let rule = texts.join(", ");
    let with_destination = |scope: &Scope| {
        let destination = scope.destination()?;
        let updates = suggestions.iter().filter_map(|update| redirect(update, destination)).collect();
        Some(WiderAnswer { scope: *scope, rule: rule.clone(), updates })
    };
    scopes.iter().filter_map(with_destination).collect()
}

/// Rules and directories that an update adds, as texts.
fn rule_texts(update: &PermissionUpdate) -> Vec<String> {
    match update {
        PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, .. } => {
            rules.iter().map(rule_text).collect()
        }
        PermissionUpdate::AddDirectories { directories, .. } => {
            directories.iter().map(|directory| format!("directory {directory}")).collect()
        }
        _ => Vec::new(),
    }
}

fn rule_text(rule: &RuleValue) -> String {
    match &rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name.clone(),
    }
}

fn redirect(update: &PermissionUpdate, destination: Destination) -> Option<PermissionUpdate> {
    match update {
        PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, .. } => {
            let (rules, behavior) = (rules.clone(), PermissionBehavior::Allow);
            Some(PermissionUpdate::AddRules { rules, behavior, destination })
        }
        PermissionUpdate::AddDirectories { directories, .. } => {
            Some(PermissionUpdate::AddDirectories { directories: directories.clone(), destination })
        }
        _ => None,
    }
}

/// `scopes` of a request.
pub(crate) fn scopes_json(wider: &[WiderAnswer]) -> Json {
    wider.iter().map(|answer| json!({"scope": answer.scope.as_str(), "rule": answer.rule})).collect()
}

/// What is done with an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) result: PermissionResult,
    /// The rule that a wider answer gave.
    pub(crate) rule: Option<String>,
    /// The input that the tool gets, if it was changed.
    pub(crate) changed_input: Option<Map<String, Json>>,
    /// The mode that the answer sets.
    pub(crate) mode: Option<PermissionMode>,
}

/// Message of a denial without a note.
const DENIED: &str = "The user denied this call.";
const KEEP_PLANNING: &str = "The user wants you to keep planning.";

/// Turns an answer to a tool call into what the engine gets. The input is checked by the caller.
pub(crate) fn to_outcome(answer: &Answer, request: &CanUseTool, is_trusted: bool) -> ApiResult<Outcome> {
    let kind = RequestKind::of_tool(&request.tool_name);
    let note = answer.message.as_deref().map(str::trim).filter(|note| !note.is_empty());
    if answer.answers.is_some() && kind != RequestKind::Question {
        return Err(ApiError::bad_request("`answers` is for questions only"));
    }
    if answer.decision == Decision::Deny {
        if answer.scope != Scope::Once {
            return Err(ApiError::bad_request("a denial counts once: leave `scope` out"));
        }
        let default = if kind == RequestKind::Plan { KEEP_PLANNING } else { DENIED };
        let message = note.map_or_else(|| default.to_owned(), |note| format!("{default} Their note: {note}"));
        let denied = PermissionResult::deny(message);
        let result = if answer.interrupt { denied.and_interrupt() } else { denied };
        return Ok(Outcome { result, rule: None, changed_input: None, mode: None });
    }
    let edited = answer.input.as_ref().filter(|input| !input.is_empty() && **input != request.input);
    if answer.scope != Scope::Once && edited.is_some() {
        return Err(ApiError::bad_request(
            "an edited input can only be allowed once: the rule would be about another call",
        ));
    }
    let changed_input = match (&answer.answers, edited) {
        (Some(answers), _) => Some(with_answers(request, answers)?),
        (None, edited) => edited.cloned(),
    };
    let mode = answer.mode.as_deref().map(parse_mode).transpose()?;
    if mode.is_some() && kind != RequestKind::Plan {
        return Err(ApiError::bad_request("`mode` is for plans only"));
    }
    let wider = wider_answers(request, is_trusted).into_iter().find(|wider| wider.scope == answer.scope);
    if answer.scope != Scope::Once && wider.is_none() {
        return Err(ApiError::no_suggestion(format!(
            "there is no rule for the scope `{}`: allow the call once, or trust the folder first",
            answer.scope.as_str()
        )));
    }
    let (rule, mut updates) = wider.map_or((None, Vec::new()), |wider| (Some(wider.rule), wider.updates));
    if let Some(mode) = mode {
        updates.push(PermissionUpdate::SetMode { mode, destination: Destination::Session });
    }
    let set_by_rule = updates.iter().find_map(|update| match update {
        PermissionUpdate::SetMode { mode, .. } => Some(*mode),
        _ => None,
    });
    let mut result = PermissionResult::allow();
    if let Some(input) = &changed_input {
        result = result.with_input(input.clone());
    }
    if !updates.is_empty() {
        result = result.with_updates(updates);
    }
    Ok(Outcome { result, rule, changed_input, mode: set_by_rule })
}

pub(crate) fn parse_mode(text: &str) -> ApiResult<PermissionMode> {
    serde_json::from_value(text.into()).map_err(|error| ApiError::bad_request(format!("`mode`: {error}")))
}

/// The input of a question with its answers.
fn with_answers(request: &CanUseTool, answers: &Map<String, Json>) -> ApiResult<Map<String, Json>> {
    for (question, answer) in answers {
        let is_text = |value: &Json| {
            value.is_string() || value.as_array().is_some_and(|all| all.iter().all(Json::is_string))
        };
        if !is_text(answer) {
            return Err(ApiError::bad_input(format!(
                "the answer to {question:?} must be a text or a list of texts"
            ))
            .with_detail(json!({"path": format!("/answers/{question}")})));
        }
    }
    let mut input = request.input.clone();
    input.insert("answers".into(), Json::Object(answers.clone()));
    Ok(input)
}

/// Turns an answer to a form into what the server gets.
pub(crate) fn to_elicitation_reply(answer: &Answer, request: &Elicitation) -> ApiResult<ElicitationReply> {
    if answer.scope != Scope::Once || answer.answers.is_some() || answer.mode.is_some() {
        return Err(ApiError::bad_request("a form has only `decision` and `input`"));
    }
    Ok(match answer.decision {
        Decision::Allow => {
            if let Some(schema) = &request.requested_schema {
                check_form(schema, answer.input.as_ref())?;
            }
            ElicitationReply { action: ElicitationAction::Accept, content: answer.input.clone() }
        }
        Decision::Deny => ElicitationReply { action: ElicitationAction::Decline, content: None },
    })
}

/// Checks the content of a form. A form is flat: its fields are texts, numbers, yes or no, or choices.
fn check_form(schema: &Json, content: Option<&Map<String, Json>>) -> ApiResult<()> {
    let wrong = |field: &str, expected: &str| {
        let pointer = format!("/input/{}", field.replace('~', "~0").replace('/', "~1"));
        let text = format!("the field {field:?} of the form {expected}. Correct it; the request stays open");
        Err(ApiError::bad_input(text).with_detail(json!({"path": pointer})))
    };
    let none = Map::new();
    let content = content.unwrap_or(&none);
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    for field in required {
        if content.get(field).is_none_or(Json::is_null) {
            return wrong(field, "is required");
        }
    }
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    for (field, value) in content {
        let Some(property) = properties.get(field) else {
            return wrong(field, "is unknown");
        };
        let expected = match property["type"].as_str() {
            Some("string") if !value.is_string() => "must be a text",
            Some("number") if !value.is_number() => "must be a number",
            Some("integer") if !(value.is_i64() || value.is_u64()) => "must be a whole number",
            Some("boolean") if !value.is_boolean() => "must be true or false",
            Some("array") if !value.is_array() => "must be a list",
            _ if is_other_choice(property, value) => "must be one of its choices",
            _ => continue,
        };
        return wrong(field, expected);
    }
    Ok(())
}

/// Whether a field has choices and the value is none of them.
fn is_other_choice(property: &Json, value: &Json) -> bool {
    let of = |schema: &Json| -> Option<Vec<Json>> {
        if let Some(choices) = schema["enum"].as_array() {
            return Some(choices.clone());
        }
        let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array())?;
        Some(titled.iter().map(|choice| choice["const"].clone()).collect())
    };
    match value.as_array() {
        Some(values) => {
            of(&property["items"]).is_some_and(|known| values.iter().any(|value| !known.contains(value)))
        }
        None => of(property).is_some_and(|known| !known.contains(value)),
    }
}

#[cfg(test)]
mod tests;
