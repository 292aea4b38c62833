//! A session that only runs its `Setup` and `SessionStart` hooks (`--init-only`).

use tokio_util::sync::CancellationToken;
use whimbrel_tools::hooks::HookInputBuilder;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::options::SetupHooks;

use super::Session;
use crate::setup::SetupError;
use crate::turn_start::run_setup_hooks;

impl Session {
    /// Runs the hooks of the start. The host gets their messages; the error says that one has failed.
    pub(super) async fn run_init_only(&mut self, stop: &CancellationToken) -> Result<(), SetupError> {
        if let Some(warning) = self.setup.host.warning.take() {
            self.host.frame_sender.warn(warning).await;
        }
        let setup = run_setup_hooks(&self.hooks, SetupHooks::InitOnly, stop).await;
        let source = self.setup.session.origin.name();
        let build_input =
            |input: &HookInputBuilder| input.session_start(source, None, self.setup.session.title.clone());
        let start = match setup.stop {
            None => Some(self.hooks.dispatch(HookEvent::SessionStart, build_input, stop).await),
            Some(_) => None,
        };
        let has_failed = [Some(setup), start]
            .iter()
            .flatten()
            .any(|output| !output.errors.is_empty() || output.stop.is_some() || output.interrupted);
        match has_failed {
            true => Err(SetupError::Invalid("--init-only: a hook has failed or stopped the setup.".into())),
            false => Ok(()),
        }
    }
}
