//! Permissions: modes, rules, rule updates, and the host's decision on a tool call.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lenient::{from_fields, is_default, or_default};
use crate::names::named;

named! {
    /// What a session may do without asking.
    #[derive(Default)]
    pub enum PermissionMode: "permission mode" {
        /// Ask for whatever no rule settles.
        #[default]
        Default = "default" | "manual",
        /// Change files without asking.
        AcceptEdits = "acceptEdits",
        /// Never ask. Deny rules still hold.
        BypassPermissions = "bypassPermissions",
        /// Look, but change nothing.
        Plan = "plan",
        /// Refuse whatever would have to be asked.
        DontAsk = "dontAsk",
        /// Let a classifier answer instead of the person.
        Auto = "auto",
        /// Work only through teammates. Known to old hosts only.
        Delegate = "delegate",
    }
}

named! {
    /// What a rule says about the calls that it matches.
    pub enum PermissionBehavior: "permission behavior" {
        /// Make them.
        Allow = "allow",
        /// Refuse them.
        Deny = "deny",
        /// Ask the host.
        Ask = "ask",
    }
}

named! {
    /// Where a change of rules is kept.
    #[derive(Default)]
    pub enum Destination: "destination" {
        /// The person's own settings.
        UserSettings = "userSettings",
        /// The project's shared settings.
        ProjectSettings = "projectSettings",
        /// The project's settings on this machine.
        LocalSettings = "localSettings",
        /// Nowhere: it ends with the session.
        #[default]
        Session = "session",
        /// The rules given at the start.
        CliArg = "cliArg",
    }
}

named! {
    /// What sort of answer the person gave.
    pub enum DecisionClassification: "decision classification" {
        /// Yes, this time.
        UserTemporary = "user_temporary",
        /// Yes, from now on.
        UserPermanent = "user_permanent",
        /// No.
        UserReject = "user_reject",
    }
}

/// Which calls a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleValue {
    /// The tool.
    pub tool_name: String,
    /// Which calls of it; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// A change of rules, mode or directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// More rules.
    AddRules {
        /// The rules.
        #[serde(default, deserialize_with = "or_default")]
        rules: Vec<RuleValue>,
        /// What they say.
        behavior: PermissionBehavior,
        /// Where they are kept.
        #[serde(default, deserialize_with = "or_default")]
        destination: Destination,
    },
    /// These rules instead of all of their behavior that are kept there.
    ReplaceRules {
        /// The rules.
        #[serde(default, deserialize_with = "or_default")]
        rules: Vec<RuleValue>,
        /// What they say.
        behavior: PermissionBehavior,
        /// Where they are kept.
        #[serde(default, deserialize_with = "or_default")]
        destination: Destination,
    },
    /// Without these rules.
    RemoveRules {
        /// The rules.
        #[serde(default, deserialize_with = "or_default")]
        rules: Vec<RuleValue>,
        /// What they say.
        behavior: PermissionBehavior,
        /// Where they were kept.
        #[serde(default, deserialize_with = "or_default")]
        destination: Destination,
    },
    /// Another mode.
    SetMode {
        /// The mode.
        mode: PermissionMode,
        /// Where it is kept.
        #[serde(default, deserialize_with = "or_default")]
        destination: Destination,
    },
    /// More directories to work in.
    AddDirectories {
        /// The directories.
        #[serde(default, deserialize_with = "or_default")]
        directories: Vec<String>,
        /// Where they are kept.
        #[serde(default, deserialize_with = "or_default")]
        destination: Destination,
    },
    /// Without these directories.
    RemoveDirectories {
        /// The directories.
        #[serde(default, deserialize_with = "or_default")]
        directories: Vec<String>,
        /// Where they were kept.
        #[serde(default, deserialize_with = "or_default")]
        destination: Destination,
    },
}

impl PermissionUpdate {
    /// Settings file or scope that the update changes.
    pub fn destination(&self) -> Destination {
        match self {
            Self::AddRules { destination, .. }
            | Self::ReplaceRules { destination, .. }
            | Self::RemoveRules { destination, .. }
            | Self::SetMode { destination, .. }
            | Self::AddDirectories { destination, .. }
            | Self::RemoveDirectories { destination, .. } => *destination,
        }
    }
}

/// The host's verdict on a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "behavior", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PermissionResult {
    /// Make the call. Made by [`PermissionResult::allow`].
    #[non_exhaustive]
    Allow {
        /// The input to use; none means the one that the model gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<Map<String, Value>>,
        /// Changes of rules that go with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_permissions: Option<Vec<PermissionUpdate>>,
        /// Errors of permission updates that could not be parsed; they are skipped and the decision counts. Never sent.
        #[serde(skip)]
        invalid_updates: Vec<String>,
        /// The call.
        #[serde(default, rename = "toolUseID", skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<String>,
        /// What sort of answer the person gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_classification: Option<DecisionClassification>,
    },
    /// Do not make the call. Made by [`PermissionResult::deny`].
    #[non_exhaustive]
    Deny {
        /// What the model is told.
        #[serde(default)]
        message: String,
        /// Whether the whole turn ends.
        #[serde(default, skip_serializing_if = "is_default")]
        interrupt: bool,
        /// The call.
        #[serde(default, rename = "toolUseID", skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<String>,
        /// What sort of answer the person gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_classification: Option<DecisionClassification>,
    },
}

impl PermissionResult {
    /// Allows the call with its input unchanged.
    pub fn allow() -> Self {
        Self::allow_with(None)
    }

    fn allow_with(updated_input: Option<Map<String, Value>>) -> Self {
        Self::Allow {
            updated_input,
            updated_permissions: None,
            invalid_updates: Vec::new(),
            tool_use_id: None,
            decision_classification: None,
        }
    }

    /// Denies the call with a message for the model.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: false,
            tool_use_id: None,
            decision_classification: None,
        }
    }

    /// Makes the call with this input instead of the model's. A denial stays as it is.
    #[must_use]
    pub fn with_input(mut self, input: Map<String, Value>) -> Self {
        if let Self::Allow { updated_input, .. } = &mut self {
            *updated_input = Some(input);
        }
        self
    }

    /// Also changes rules, the mode or directories, such as the suggestions of the request: a call like this one needs
    /// no permission from now on. A denial stays as it is.
    #[must_use]
    pub fn with_updates(mut self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        if let Self::Allow { updated_permissions, .. } = &mut self {
            updated_permissions.get_or_insert_default().extend(updates);
        }
        self
    }

    /// Also ends the turn, if the call is denied.
    #[must_use]
    pub fn and_interrupt(mut self) -> Self {
        if let Self::Deny { interrupt, .. } = &mut self {
            *interrupt = true;
        }
        self
    }
}

/// A decision as received: all fields in one struct, so that an error can name the invalid one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPermissionResult {
    behavior: Option<RawBehavior>,
    updated_input: Option<Map<String, Value>>,
    updated_permissions: Option<Vec<Value>>,
    #[serde(rename = "toolUseID")]
    tool_use_id: Option<String>,
    decision_classification: Option<DecisionClassification>,
    message: Option<String>,
    interrupt: Option<bool>,
    #[serde(flatten)]
    older: OlderPermissionResult,
}

/// A decision as the Python package `claude-code-sdk` up to 0.0.25 sends it. Read only if there is no `behavior`.
#[derive(Deserialize)]
struct OlderPermissionResult {
    allow: Option<Value>,
    input: Option<Value>,
    reason: Option<Value>,
}

impl OlderPermissionResult {
    fn parse<E: serde::de::Error>(self) -> Result<PermissionResult, E> {
        match (self.allow, self.input) {
            (Some(Value::Bool(true)), None | Some(Value::Null)) => Ok(PermissionResult::allow()),
            (Some(Value::Bool(true)), Some(Value::Object(input))) => {
                Ok(PermissionResult::allow_with(Some(input)))
            }
            (Some(Value::Bool(false)), _) => {
                Ok(PermissionResult::deny(self.reason.as_ref().and_then(Value::as_str).unwrap_or_default()))
            }
            _ => Err(E::missing_field("behavior")),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum RawBehavior {
    Allow,
    Deny,
}

impl<'de> Deserialize<'de> for PermissionResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawPermissionResult {
            behavior,
            updated_input,
            updated_permissions,
            tool_use_id,
            decision_classification,
            message,
            interrupt,
            older,
        } = RawPermissionResult::deserialize(deserializer)?;
        let Some(behavior) = behavior else { return older.parse() };
        Ok(match behavior {
            RawBehavior::Allow => {
                let mut unread = Vec::new();
                let updated_permissions =
                    updated_permissions.map(|changes| parse_updates(changes, &mut unread));
                Self::Allow {
                    updated_input,
                    updated_permissions,
                    invalid_updates: unread,
                    tool_use_id,
                    decision_classification,
                }
            }
            RawBehavior::Deny => Self::Deny {
                message: message.unwrap_or_default(),
                interrupt: interrupt.unwrap_or(false),
                tool_use_id,
                decision_classification,
            },
        })
    }
}

/// Parses the valid updates; the errors of the others go to `unread`.
fn parse_updates(changes: Vec<Value>, unread: &mut Vec<String>) -> Vec<PermissionUpdate> {
    let mut good = Vec::new();
    for (index, change) in changes.into_iter().enumerate() {
        let read = match change {
            Value::Object(fields) => from_fields(fields),
            _ => Err("it is not an object".into()),
        };
        match read {
            Ok(change) => good.push(change),
            Err(why) => unread.push(format!("updatedPermissions[{index}]: {why}")),
        }
    }
    good
}

/// Which MCP server a tool belongs to, and what else is known about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerProvenance {
    /// The server's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further fields, as received.
    #[serde(flatten)]
    pub details: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn manual_is_an_alias_of_the_default_mode() {
        assert_eq!("manual".parse(), Ok(PermissionMode::Default));
        assert_eq!(
            serde_json::from_value::<PermissionMode>(json!("manual")).unwrap(),
            PermissionMode::Default
        );
        assert_eq!(PermissionMode::Default.to_string(), "default");
    }

    #[test]
    fn mode_names_are_equal_in_text_and_json() {
        for mode in PermissionMode::ALL {
            assert_eq!(json!(mode), json!(mode.to_string()));
            assert_eq!(mode.as_str().parse(), Ok(*mode));
        }
    }

    #[test]
    fn unknown_mode_error_lists_the_known_ones() {
        let error = "yolo".parse::<PermissionMode>().unwrap_err().to_string();
        assert!(error.contains("`yolo`") && error.contains("acceptEdits"), "{error}");
    }

    #[test]
    fn allow_without_input_keeps_the_input() {
        let verdict: PermissionResult =
            serde_json::from_value(json!({"behavior": "allow", "updatedPermissions": null})).unwrap();
        assert_eq!(verdict, PermissionResult::allow());
    }

    #[test]
    fn invalid_update_is_skipped_and_the_others_count() {
        let good = json!({"type": "setMode", "mode": "plan", "destination": "session"});
        let changes = json!([{"type": "setMood"}, good, 5, {"type": "addRules", "rules": []}]);
        let verdict = json!({"behavior": "allow", "updatedPermissions": changes});
        let PermissionResult::Allow { updated_permissions: Some(read), invalid_updates: unread, .. } =
            serde_json::from_value(verdict).unwrap()
        else {
            panic!("not an allow")
        };
        assert_eq!(serde_json::to_value(read).unwrap(), json!([good]));
        let [kind, shape, field] = &unread[..] else { panic!("{unread:?}") };
        assert!(kind.starts_with("updatedPermissions[0]: ") && kind.contains("setMood"), "{kind}");
        assert_eq!(shape, "updatedPermissions[2]: it is not an object");
        assert!(field.starts_with("updatedPermissions[3]: ") && field.contains("behavior"), "{field}");
        let no_list = json!({"behavior": "allow", "updatedPermissions": 5});
        assert!(serde_json::from_value::<PermissionResult>(no_list).is_err());
    }

    #[test]
    fn deny_without_a_message_is_valid() {
        let verdict: PermissionResult =
            serde_json::from_value(json!({"behavior": "deny", "message": null})).unwrap();
        assert_eq!(verdict, PermissionResult::deny(""));
    }

    #[test]
    fn answers_of_the_oldest_python_package_are_understood() {
        let changed = json!({"command": "true"}).as_object().cloned();
        for (verdict, expected) in [
            (json!({"allow": true}), PermissionResult::allow()),
            (json!({"allow": true, "input": {"command": "true"}}), PermissionResult::allow_with(changed)),
            (json!({"allow": false, "reason": "no"}), PermissionResult::deny("no")),
            (json!({"behavior": "deny", "message": "no", "allow": true}), PermissionResult::deny("no")),
            (json!({"behavior": "allow", "input": {"command": "true"}}), PermissionResult::allow()),
            (json!({"behavior": "allow", "input": 5, "reason": 5}), PermissionResult::allow()),
        ] {
            assert_eq!(
                serde_json::from_value::<PermissionResult>(verdict.clone()).unwrap(),
                expected,
                "{verdict}"
            );
        }
    }

    #[test]
    fn unknown_behavior_is_rejected() {
        let verdicts = [
            json!({"behavior": "maybe"}),
            json!({"behavior": "maybe", "allow": true}),
            json!({"allow": "yes"}),
            json!({"allow": true, "input": "true"}),
            json!({"toolUseID": "t"}),
            json!({}),
        ];
        for verdict in verdicts {
            assert!(serde_json::from_value::<PermissionResult>(verdict).is_err());
        }
    }

    #[test]
    fn null_rule_content_means_the_whole_tool() {
        let update: PermissionUpdate = serde_json::from_value(json!({
            "type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": null}], "behavior": "allow",
        }))
        .unwrap();
        let rules = vec![RuleValue { tool_name: "Bash".into(), rule_content: None }];
        let destination = Destination::Session;
        assert_eq!(
            update,
            PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, destination }
        );
    }
}
