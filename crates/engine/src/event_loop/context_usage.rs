//! What fills the context of the main agent, for `/context` and the host.

use std::sync::Arc;

use whimbrel_models::ToolSpec;
use whimbrel_tools::api::ToolEntry;
use whimbrel_wire::control::ContextUsage;

use super::Session;
use crate::compaction::auto_compact;
use crate::context::instructions::Instructions;
use crate::context::usage::{self, AutoCompact, ContextMeter, UsageInput};

impl Session {
    /// Computes what fills the context, as far as it is known now.
    pub(crate) fn context_usage(&self) -> ContextUsage {
        let mut reading = self.main_agent.context_meter.read();
        if !self.has_begun() {
            let mut instructions = Instructions::new(
                self.setup.config_locations.clone(),
                self.setup.session.workspace.home_dir().as_deref(),
            );
            let size = instructions.load_initial().map_or(0, |text| text.len());
            match self
                .setup
                .session
                .resumed
                .as_ref()
                .map(|resumed| &resumed.loaded)
                .filter(|loaded| loaded.has_messages())
            {
                Some(loaded) => {
                    let meter = ContextMeter::default();
                    meter.restore(loaded.history.size(), loaded.context_tokens);
                    reading = meter.read();
                }
                None => reading.size = size,
            }
            reading.instructions = instructions.files().to_vec();
        }
        let model = self.settings.runtime.borrow().model.clone();
        let (tools, mcp_entries) = self.tools_in_use();
        let (catalog, limits) = (self.engine.catalog(), &self.setup.agents.limits);
        let window = auto_compact::context_window(catalog, limits, &model);
        let threshold =
            window.map(|window| auto_compact::threshold_of_model(catalog, limits, &model, window));
        usage::compute_usage(&UsageInput {
            window: window.unwrap_or(0),
            auto_compact: if limits.compaction.auto_disabled {
                AutoCompact::Disabled
            } else {
                AutoCompact::Threshold(threshold)
            },
            model: &model,
            system: &self.system_prompt(),
            tools: &tools,
            mcp_tools: &mcp_entries,
            commands: self.setup.commands.names().len(),
            meter: &reading,
        })
    }

    /// The tools shown to the model, and separately those of MCP servers, which may be deferred.
    fn tools_in_use(&self) -> (Vec<Arc<ToolSpec>>, Vec<usage::McpToolEntry>) {
        let mut shown = self.setup.tools.deferred_tools.visible_specs(&self.setup.tools.tool_set);
        let to_entry = |tool: &Arc<ToolEntry>| {
            let (spec, server) = (tool.spec(), tool.tool().server()?.to_owned());
            let is_loaded = shown.iter().any(|shown| shown.name == spec.name);
            Some(usage::McpToolEntry { spec, server, is_loaded })
        };
        let mcp_entries: Vec<_> = self.setup.tools.tool_set.tools().iter().filter_map(to_entry).collect();
        shown.retain(|tool| !mcp_entries.iter().any(|entry| entry.spec.name == tool.name));
        (shown, mcp_entries)
    }
}
