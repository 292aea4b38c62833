//! Contents of the `init` frame, which the host gets at the start of each turn.

use std::sync::Arc;

use serde_json::json;
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::system::Init;

use super::Session;
use super::control::initialize::CAPABILITIES;
use crate::setup::sandbox::describe_sandbox;

impl Session {
    pub(super) fn build_init(&self) -> Init {
        let runtime_settings = self.settings.runtime.borrow();
        self.with_extensions(Init {
            cwd: self.setup.session.workspace.base_dir().display().to_string(),
            tools: self.setup.tools.tool_set.names_for_init(),
            agents: Some(self.setup.agents.definitions.names()),
            model: runtime_settings.model.clone(),
            permission_mode: self.setup.permissions.state.mode(),
            api_key_source: self.engine.models().key_source().into(),
            claude_code_version: PROTOCOL_VERSION.into(),
            mcp_servers: self.mcp.init_statuses(),
            betas: (!self.setup.agents.limits.betas.is_empty())
                .then(|| self.setup.agents.limits.betas.clone()),
            effort: runtime_settings.effort.and_then(|effort| json!(effort).as_str().map(str::to_owned)),
            sandbox: {
                let permissions = &self.setup.permissions.state;
                let settings = Arc::clone(permissions.settings().sandbox());
                describe_sandbox(&settings, permissions, self.setup.session.workspace.sandbox())
            },
            capabilities: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            ..Init::default()
        })
    }

    /// Adds the extensions to the `init` frame.
    fn with_extensions(&self, init: Init) -> Init {
        let extensions = &self.setup.extensions;
        let errors = extensions.plugins.errors();
        Init {
            output_style: extensions.style_name().into(),
            skills: extensions.skills.names(),
            plugins: extensions.plugins.init_plugins(),
            plugin_errors: (!errors.is_empty()).then(|| errors.to_vec()),
            slash_commands: self.setup.commands.names(),
            ..init
        }
    }
}
