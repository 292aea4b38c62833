//! Agent definitions of a session: built-in, from files and from the host. Precedence: host, project, user, plugin,
//! built-in.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::json;
use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::plugins::PluginAgents;
use whimbrel_policy::{Decision, ToolProperties};
use whimbrel_tools::permission::PermissionState;
use whimbrel_wire::options::AgentDefinition;
use whimbrel_wire::tool_names::AGENT;

use super::definition::{self, DefinitionSource, ResolvedDefinition};
use super::discover;

/// Limit on the characters of a description that are shown to the model.
const MAX_DESCRIPTION_CHARS: usize = 400;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentDefinitions {
    list: Vec<Arc<ResolvedDefinition>>,
}

impl AgentDefinitions {
    /// The built-in definitions, shared by all sessions of the process.
    pub fn built_in() -> Self {
        static BUILT_IN: LazyLock<AgentDefinitions> = LazyLock::new(|| AgentDefinitions {
            list: definition::built_in_definitions().into_iter().map(Arc::new).collect(),
        });
        BUILT_IN.clone()
    }

    /// The built-in definitions and those from files, with warnings. Reads the disk.
    pub fn load(locations: &ConfigLocations, plugins: &[PluginAgents]) -> (Self, Vec<String>) {
        let (found, mut warnings) = discover::discover(locations, plugins);
        let mut definitions = Self::built_in();
        for definition in found {
            warnings.extend(definition.warnings());
            definitions.insert(definition);
        }
        (definitions, warnings)
    }

    /// Removes the MCP servers of definitions not given by the host (strict MCP configuration); returns warnings.
    pub fn remove_own_servers(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        for definition in
            self.list.iter_mut().filter(|definition| definition.source != DefinitionSource::Host)
        {
            if !definition.mcp_servers.own.is_empty() && Arc::make_mut(definition).mcp_servers.remove_own() {
                warnings.push(format!(
                    "The agent {}: its own MCP servers are not started, because --strict-mcp-config allows only those of --mcp-config.",
                    definition.name
                ));
            }
        }
        warnings
    }

    /// Adds definitions given by the host. Invalid ones are reported by name; the others are used.
    pub fn add_host(&mut self, given: BTreeMap<String, AgentDefinition>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, given) in given {
            match ResolvedDefinition::from_host(&name, given) {
                Ok(definition) => {
                    warnings.extend(definition.warnings());
                    self.insert(definition);
                }
                Err(reason) => warnings.push(format!("The agent {name:?} is not used: {reason}.")),
            }
        }
        warnings
    }

    /// Adds a definition; it replaces the one with the same name.
    fn insert(&mut self, definition: ResolvedDefinition) {
        match self.list.iter_mut().find(|other| other.name == definition.name) {
            Some(other) => *other = Arc::new(definition),
            None => self.list.push(Arc::new(definition)),
        }
    }

    /// The definitions that no deny rule excludes.
    #[must_use]
    pub fn allowed_by(&self, permissions: &PermissionState) -> Self {
        let properties = ToolProperties::for_tool(AGENT, &["subagent_type"]);
        let denied = |definition: &ResolvedDefinition| {
            let input = json!({"subagent_type": definition.name});
            matches!(permissions.decide(AGENT, &properties, &input, None).decision, Decision::Deny(_))
        };
        Self { list: self.list.iter().filter(|definition| !denied(definition)).cloned().collect() }
    }

    /// The definitions without these names.
    #[cfg(test)]
    pub(crate) fn excluding(&self, names: &[&str]) -> Self {
        let is_kept = |definition: &&Arc<ResolvedDefinition>| !names.contains(&definition.name.as_str());
        Self { list: self.list.iter().filter(is_kept).cloned().collect() }
    }

    pub fn get(&self, name: &str) -> Option<&ResolvedDefinition> {
        self.iter().find(|definition| definition.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &ResolvedDefinition> {
        self.list.iter().map(Arc::as_ref)
    }

    pub fn names(&self) -> Vec<String> {
        self.list.iter().map(|definition| definition.name.clone()).collect()
    }

    /// The reminder that lists definitions not named in the tool's description.
    pub fn render_reminder(&self) -> Option<String> {
        let own = self.list.iter().filter(|definition| definition.source != DefinitionSource::BuiltIn);
        let lines: Vec<String> = own
            .map(|definition| {
                let description: String =
                    definition.description.chars().take(MAX_DESCRIPTION_CHARS).collect();
                format!("- {}: {}", definition.name, description.replace('\n', " "))
            })
            .collect();
        (!lines.is_empty()).then(|| {
            format!("<system-reminder>\nMore agent types:\n{}\n</system-reminder>", lines.join("\n"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mcp_servers::ServerSpecs;
    use super::*;

    fn host_definition(description: &str) -> AgentDefinition {
        AgentDefinition { description: description.into(), prompt: "p".into(), ..AgentDefinition::default() }
    }

    #[test]
    fn host_definitions_win_and_invalid_ones_are_reported() {
        let mut definitions = AgentDefinitions::built_in();
        let host = [
            ("Explore", host_definition("mine")),
            ("rev", host_definition("reviews\ncode")),
            ("bad", host_definition("")),
        ];
        let warnings = definitions.add_host(host.map(|(name, given)| (name.to_owned(), given)).into());
        assert_eq!(definitions.names(), ["general-purpose", "Explore", "Plan", "rev"]);
        assert!(warnings.len() == 1 && warnings[0].contains("\"bad\""), "{warnings:?}");
        let reminder = definitions.render_reminder().unwrap();
        assert!(
            reminder.contains("- Explore: mine\n- rev: reviews code\n") && !reminder.contains("Plan"),
            "{reminder}"
        );
        assert_eq!(AgentDefinitions::built_in().render_reminder(), None);
    }

    #[test]
    fn strict_mcp_config_removes_servers_of_other_definitions() {
        let definition = |name: &str, origin| {
            let mcp_servers = ServerSpecs::parse(vec![json!("docs"), json!({"db": {"command": "x"}})]);
            Arc::new(ResolvedDefinition {
                name: name.into(),
                mcp_servers,
                source: origin,
                ..ResolvedDefinition::default()
            })
        };
        let mut definitions = AgentDefinitions {
            list: vec![
                definition("file", DefinitionSource::User),
                definition("host", DefinitionSource::Host),
            ],
        };
        let warnings = definitions.remove_own_servers();
        assert!(warnings.len() == 1 && warnings[0].contains("The agent file"), "{warnings:?}");
        let counts: Vec<_> = definitions
            .iter()
            .map(|definition| (definition.mcp_servers.referenced.len(), definition.mcp_servers.own.len()))
            .collect();
        assert_eq!(counts, [(1, 0), (1, 1)]);
        assert!(definitions.remove_own_servers().is_empty());
    }
}
