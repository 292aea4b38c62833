//! What a process serves: command line, configuration, model and directories, resolved before the first line is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whimbrel::Environment;
use whimbrel::wire::options::McpServerConfig;

use crate::agent_file::{self, AgentFile};
use crate::command_line::{AgentChoice, Approval, CommandLine, SessionChoice, UsageError};
use crate::config_file::Config;
use crate::ids::new_uuid;
use crate::mcp_config;
use crate::model_choice::{self, ModelChoice, NoModel};
use crate::share_dir::{SessionDir, ShareDir};
use crate::tool_names::HOST_SERVER;

/// The resolved set-up of a process.
pub(crate) struct Setup {
    pub(crate) environment: Environment,
    pub(crate) work_dir: PathBuf,
    pub(crate) add_dirs: Vec<PathBuf>,
    /// Directories of skills, absolute; none: those of Whimbrel.
    pub(crate) skills_dirs: Vec<PathBuf>,
    pub(crate) share_dir: ShareDir,
    /// Id of the session on this wire. It need not be a UUID.
    pub(crate) session_id: String,
    pub(crate) session_dir: SessionDir,
    pub(crate) model: Result<ModelChoice, NoModel>,
    pub(crate) thinking: bool,
    pub(crate) approval: Approval,
    pub(crate) starts_in_plan_mode: bool,
    pub(crate) agent_file: Option<AgentFile>,
    pub(crate) mcp_servers: BTreeMap<String, McpServerConfig>,
    pub(crate) mcp_timeout_ms: u32,
    pub(crate) max_steps: u32,
    pub(crate) max_retries: u32,
    /// The part of the window that starts a compaction, from 0 to 1.
    pub(crate) compaction_ratio: Option<f64>,
}

/// Limits of kimi-cli, if nothing else is configured.
const DEFAULT_MAX_STEPS: u32 = 1000;
const DEFAULT_MAX_ATTEMPTS: u32 = 3;

impl Setup {
    /// Reads everything that the command line names. `warn` gets what is left out.
    pub(crate) fn resolve(
        command_line: CommandLine,
        environment: &Environment,
        cwd: &Path,
        mut warn: impl FnMut(&str),
    ) -> Result<Self, UsageError> {
        command_line.check_paths()?;
        let env = |name: &str| environment.get(name).map(str::to_owned);
        let share_dir = ShareDir::from_env(&env)
            .ok_or_else(|| UsageError::new("The home directory is unknown. Set HOME or KIMI_SHARE_DIR."))?;
        let config = Config::read(&command_line.config, share_dir.path())?;
        if !config.hooks.is_empty() {
            warn(
                "hooks of the configuration are not run; use hooks of the host, or those of Whimbrel's settings",
            );
        }
        let work_dir = match &command_line.work_dir {
            Some(dir) if dir.is_absolute() => dir.clone(),
            Some(dir) => cwd.join(dir),
            None => cwd.to_owned(),
        };
        if work_dir.to_str().is_none() {
            let text = format!("The directory {} is not UTF-8. Rename it.", work_dir.display());
            return Err(UsageError::new(text));
        }
        let session_id = match command_line.session {
            SessionChoice::New => new_uuid(),
            SessionChoice::Id(id) => id,
            SessionChoice::Latest => share_dir.last_session(&work_dir).ok_or_else(|| {
                let text = format!("There is no session of {} to continue.", work_dir.display());
                UsageError::new(text)
            })?,
        };
        let model = model_choice::choose(&config, command_line.model.as_deref(), &env);
        let agent_file = match &command_line.agent {
            AgentChoice::Default => None,
            AgentChoice::File(path) => Some(agent_file::read(path)?),
        };
        let timeout = config.mcp.client.tool_call_timeout_ms;
        let mcp_servers = mcp_config::read(
            &command_line.mcp_config_files,
            &command_line.mcp_configs,
            share_dir.path(),
            timeout,
        )?;
        if mcp_servers.contains_key(HOST_SERVER) {
            let text =
                format!("The MCP server {HOST_SERVER} has the name of the host's own tools. Rename it.");
            return Err(UsageError::new(text));
        }
        let limits = &config.loop_control;
        let max_steps = command_line.max_steps_per_turn.or(limits.max_steps_per_turn);
        let attempts = command_line.max_retries_per_step.or(limits.max_retries_per_step);
        let approval = match command_line.approval {
            Approval::Host if config.default_yolo => Approval::Yolo,
            approval => approval,
        };
        Ok(Self {
            environment: environment.clone(),
            session_dir: share_dir.session(&work_dir, &session_id),
            work_dir,
            add_dirs: command_line.add_dirs,
            skills_dirs: command_line.skills_dirs.iter().map(|dir| cwd.join(dir)).collect(),
            share_dir,
            session_id,
            model,
            thinking: command_line.thinking.unwrap_or(config.default_thinking),
            approval,
            starts_in_plan_mode: command_line.plan || config.default_plan_mode,
            agent_file,
            mcp_servers,
            mcp_timeout_ms: timeout,
            compaction_ratio: limits.compaction_trigger_ratio,
            max_steps: max_steps.map_or(DEFAULT_MAX_STEPS, std::num::NonZeroU32::get),
            // The configuration counts attempts, the engine the repetitions after the first one.
            max_retries: attempts.map_or(DEFAULT_MAX_ATTEMPTS, std::num::NonZeroU32::get) - 1,
        })
    }
}
