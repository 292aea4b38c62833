//! What surrounds the calls of a client: a session without a model, a conversation and a person.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::Frame;

use super::shape;
use crate::agenda::Todos;
use crate::ask::Ask;
use crate::consult::Consult;
use crate::cost::Ledger;
use crate::engine::Engine;
use crate::files;
use crate::gate::{Asks, Gate};
use crate::inbox::{Posts, inbox};
use crate::key_helper::KeyHelper;
use crate::on_demand::OnDemand;
use crate::outbox::Outbox;
use crate::permission::Sight;
use crate::serve;
use crate::session::{Journal, Mirror};
use crate::setup::{Setup, SetupError, Start};
use crate::state::{StateSign, Wanted};
use crate::tasks::Tasks;
use crate::tools::Call;
use crate::workshop::Bench;

/// How many notices may wait to be thrown away.
const NOTICES: usize = 64;

/// Where calls are made.
pub(super) struct Room {
    pub(super) bench: Bench,
    /// What a person should know about the settings.
    pub(super) warning: Option<String>,
    tasks: Tasks,
    /// Nobody reads what a session would tell its host; it must not pile up.
    _deaf: AbortOnDropHandle<()>,
}

impl Room {
    /// A room with what the options and the settings say. Touches the disk.
    pub(super) fn open(
        engine: Engine,
        mut start: Start,
        stop: &CancellationToken,
    ) -> Result<Self, SetupError> {
        // There is no conversation that could be kept.
        start.options.persist_session = Some(false);
        let setup = Setup::resolve(&engine, start)?;
        let (frames, unheard) = mpsc::channel(NOTICES);
        let (inbox, posts) = inbox();
        let deaf = AbortOnDropHandle::new(tokio::spawn(ignore(unheard, posts)));
        let outbox = Outbox::new(setup.session.as_str().into(), frames, stop.child_token());
        let (ask, tasks) = (Ask::new(outbox.clone()), Tasks::new(inbox));
        let lookout = serve::lookout(&setup, &ask, &tasks, &outbox);
        let gate = Gate {
            rights: setup.rights.clone(),
            asks: Asks::Nobody,
            patience: None,
            state: StateSign::new(outbox.clone(), Wanted::Never),
            lookout: lookout.clone(),
            outbox,
        };
        let toolbox = Arc::new(setup.toolbox.limited(Some(&shape::names()), &[]));
        let consult = Consult::new(
            engine.with_key_source(KeyHelper::of(&setup, &tasks)),
            Ledger::within(setup.limits.max_budget),
            setup.small_model.clone(),
            setup.limits.policy(),
            setup.session.as_str().into(),
        )
        .with_timing(setup.limits.timing);
        let call = Call {
            id: String::new(),
            place: None,
            written: None,
            workspace: Arc::clone(&setup.workspace),
            tasks: tasks.clone(),
            toolbox: Arc::clone(&toolbox),
            on_demand: OnDemand::default(),
            sight: Sight::default(),
            agenda: setup.agenda.clone(),
            todos: Todos::default(),
            consult,
            agents: None,
            mode: gate.mode_switch(),
            lookout,
            journal: Journal::new(&setup.session, None, Mirror::Off),
            cancel: stop.child_token(),
        };
        Ok(Self { bench: Bench { toolbox, gate, call }, warning: setup.warning, tasks, _deaf: deaf })
    }

    /// The folder that is worked in.
    pub(super) fn place(&self) -> String {
        self.bench.call.workspace.root().display().to_string()
    }

    /// Ends everything that was started, and removes what long output has left.
    pub(super) async fn close(self) {
        self.tasks.shutdown().await;
        // What cannot be removed is the temporary folder's business.
        let _ = files::remove_folder(self.bench.call.workspace.spill());
    }
}

/// Takes what is said, and forgets it.
async fn ignore(mut frames: mpsc::Receiver<Frame>, mut posts: Posts) {
    let frames = async { while frames.recv().await.is_some() {} };
    let posts = async { while posts.recv().await.is_some() {} };
    tokio::join!(frames, posts);
}
