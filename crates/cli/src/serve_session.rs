//! An engine that serves one session on this thread.

use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use whimbrel_engine::setup::model::default_model;
use whimbrel_engine::{Engine, SandboxLauncher, SessionExit, SessionRequest, serve};
use whimbrel_models::http::HttpClient;
use whimbrel_models::providers::Providers;
use whimbrel_models::recording::Recording;
use whimbrel_os::log::Log;
use whimbrel_transport::link::Link;
use whimbrel_wire::options::Options;

use crate::environment::Env;
use crate::flags::{RECORD_FLAG, REPLAY_FLAG};

/// A session that has not started.
pub(crate) struct PreparedSession {
    pub(crate) engine: Engine,
    pub(crate) request: SessionRequest,
}

impl PreparedSession {
    /// Creates a session with the model that the options, the settings or the environment name.
    pub(crate) fn new(mut options: Options, env: Env) -> Self {
        apply_env_options(&mut options, &env);
        let mut request = SessionRequest::new(options, env);
        // Errors in the settings are reported to the host when the session starts.
        let _ = request.read_settings();
        let shared = Arc::new(request.env.clone());
        let http_client = HttpClient::from_env(|name| shared.get(name).cloned());
        let mut providers = Providers::from_env(Arc::new(move |name| shared.get(name).cloned()), http_client);
        if let Some(recording) = open_recording(&request.options) {
            providers = providers.with_recording(recording);
        }
        Self { engine: Engine::new(providers).with_sandbox_launcher(SandboxLauncher::ThisProgram), request }
    }

    pub(crate) fn with_log(self, log: Log) -> Self {
        Self { engine: self.engine.with_log(log), ..self }
    }

    /// Model that the session calls.
    pub(crate) fn effective_model(&self) -> String {
        let settings = self.request.settings.as_ref().map(|settings| settings.effective().typed.clone());
        let SessionRequest { options, env, .. } = &self.request;
        default_model(&self.engine, options, env, &settings.unwrap_or_default())
    }

    /// Model that the options or the settings name.
    pub(crate) fn model(&self) -> Option<&str> {
        let by_settings = || self.request.settings.as_ref()?.effective().typed.model.as_deref();
        self.request.options.model.as_deref().or_else(by_settings)
    }

    /// Returns whether the settings name a command that prints the API key.
    pub(crate) fn has_key_helper(&self) -> bool {
        let settings = self.request.settings.as_ref();
        settings.is_some_and(|settings| settings.effective().typed.api_key_helper.is_some())
    }

    /// Serves the session until it ends, while the host runs concurrently. The host receives a token that is cancelled
    /// when no more frames will come.
    pub(crate) fn serve<H: Future>(
        self,
        link: Link,
        host: impl FnOnce(CancellationToken) -> H,
    ) -> io::Result<(SessionExit, H::Output)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let ended = CancellationToken::new();
        let host = host(ended.clone());
        // The runtime polls for I/O each time that its main future is woken, but not for each spawned task. So the
        // engine is a task, as are the connections that it reads from.
        let session = runtime.spawn(async move {
            let _ended = ended.drop_guard();
            serve(self.engine, link, self.request).await
        });
        let (session_exit, host_output) = runtime.block_on(async { tokio::join!(session, host) });
        // Remaining work must not delay the exit: it is dropped, and threads are not joined.
        runtime.shutdown_background();
        let session_exit = session_exit.unwrap_or_else(|failed| resume_unwind(failed.into_panic()));
        Ok((session_exit, host_output))
    }
}

/// Opens the recording that is to be written or replayed.
fn open_recording(options: &Options) -> Option<Recording> {
    let file = |flag: &str| options.extra_args.get(flag).and_then(Option::as_deref).map(Path::new);
    file(REPLAY_FLAG).map(Recording::replay_from).or_else(|| file(RECORD_FLAG).map(Recording::record_to))
}

/// Applies options that are passed in the environment.
fn apply_env_options(options: &mut Options, env: &Env) {
    let on = |name: &str| env.get(name).is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    options.enable_file_checkpointing |= on("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING");
    if let Some(format) = env.get("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT") {
        options.question_preview_format = Some(format.clone());
    }
}
