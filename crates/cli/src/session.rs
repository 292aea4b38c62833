//! An engine that serves one session on this thread.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use whimbrel_engine::link::Link;
use whimbrel_engine::{Engine, SessionExit, Start, serve};
use whimbrel_models::http::HttpClient;
use whimbrel_models::log::Log;
use whimbrel_models::providers::Providers;
use whimbrel_models::recording::Recording;
use whimbrel_wire::options::Options;

/// The environment of the program.
pub(crate) type Env = BTreeMap<String, String>;

/// A session that has not begun.
pub(crate) struct Session {
    /// The engine.
    pub(crate) engine: Engine,
    /// What is asked of it.
    pub(crate) start: Start,
}

impl Session {
    /// A session that asks whichever model the options, the settings and the environment name.
    pub(crate) fn new(mut options: Options, env: Env) -> Self {
        apply_env_options(&mut options, &env);
        let mut start = Start::new(options, env);
        // What is wrong with the settings is told to the host when the session begins.
        let _ = start.read_settings();
        let shared = Arc::new(start.env.clone());
        let door = HttpClient::from_env(|name| shared.get(name).cloned());
        let mut providers = Providers::from_env(Arc::new(move |name| shared.get(name).cloned()), door);
        if let Some(tape) = open_recording(&start.options) {
            providers = providers.with_recording(tape);
        }
        Self { engine: Engine::new(providers), start }
    }

    /// The same with somebody who hears what is done.
    pub(crate) fn with_log(self, log: Log) -> Self {
        Self { engine: self.engine.with_log(log), ..self }
    }

    /// The model that the options or the settings name.
    pub(crate) fn model(&self) -> Option<&str> {
        let by_settings = || self.start.settings.as_ref()?.effective().typed.model.as_deref();
        self.start.options.model.as_deref().or_else(by_settings)
    }

    /// Whether the settings name a command that prints the key.
    pub(crate) fn has_key_helper(&self) -> bool {
        let settings = self.start.settings.as_ref();
        settings.is_some_and(|settings| settings.effective().typed.api_key_helper.is_some())
    }

    /// Serves the session until it is over, while the host does its part beside it. The host is given a token that fires
    /// when nothing more will come.
    pub(crate) fn serve<H: Future>(
        self,
        link: Link,
        host: impl FnOnce(CancellationToken) -> H,
    ) -> io::Result<(SessionExit, H::Output)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let over = CancellationToken::new();
        let host = host(over.clone());
        // The runtime looks for events each time that what it blocks on is woken, but not for each task. So the engine is a
        // task, as the connections are that it reads from.
        let served = runtime.spawn(async move {
            let _over = over.drop_guard();
            serve(self.engine, link, self.start).await
        });
        let (farewell, said) = runtime.block_on(async { tokio::join!(served, host) });
        // Whatever is still under way must not keep the program: drop it, and do not wait for threads.
        runtime.shutdown_background();
        let farewell = farewell.unwrap_or_else(|failed| resume_unwind(failed.into_panic()));
        Ok((farewell, said))
    }
}

/// The flag that records what models say.
pub(crate) const RECORD_FLAG: &str = "record";

/// The flag that lets a recording speak in their place.
pub(crate) const REPLAY_FLAG: &str = "replay";

/// The recording that is to be made or played.
fn open_recording(options: &Options) -> Option<Recording> {
    let file = |flag: &str| options.extra_args.get(flag).and_then(Option::as_deref).map(Path::new);
    file(REPLAY_FLAG).map(Recording::replay_from).or_else(|| file(RECORD_FLAG).map(Recording::record_to))
}

/// Options that travel in the environment.
fn apply_env_options(options: &mut Options, env: &Env) {
    let on = |name: &str| env.get(name).is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    options.enable_file_checkpointing |= on("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING");
    if let Some(format) = env.get("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT") {
        options.question_preview_format = Some(format.clone());
    }
}
