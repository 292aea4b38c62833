//! One server's life: it is started, asked what it offers, watched over, and looked for when it is lost. A task of its
//! own owns all of that; others hold a [`Server`] and see its state.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use whimbrel_wire::RawJson;
use whimbrel_wire::options::McpServerConfig;

use super::connection::Connection;
use super::fault::Fault;
use super::listing::{Offer, offer};
use super::surroundings::Surroundings;
use super::transport::Letterbox;

/// A server that lived this long was well; its end begins a new count.
const STEADY: Duration = Duration::from_secs(60);
/// How often a server can make us ask again what it offers.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// A handle on a server. When it is dropped, the server is ended.
pub(super) struct Server {
    pub(super) name: Arc<str>,
    pub(super) config: McpServerConfig,
    state: watch::Receiver<State>,
    orders: mpsc::Sender<Order>,
    letterbox: Letterbox,
    connect_limit: Duration,
    end: CancellationToken,
    _end_with_us: DropGuard,
}

/// How a server is.
#[derive(Clone)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// What it offers, as it was told last. It stays while a lost server is looked for.
    pub(super) offer: Arc<Offer>,
}

/// Where a server is in its life.
#[derive(Clone)]
pub(super) enum Phase {
    /// It is being connected to.
    Starting,
    /// It can be used.
    Connected(Arc<Connection>),
    /// It was lost and is being looked for.
    Lost(Fault),
    /// It cannot be used.
    Failed(Fault),
}

/// Connect anew, and say how that went.
type Order = oneshot::Sender<Result<(), Fault>>;

impl Server {
    /// Starts a server. It is not waited for.
    pub(super) fn start(name: &str, config: McpServerConfig, surroundings: Surroundings) -> Self {
        let starting = State { phase: Phase::Starting, offer: Arc::default() };
        let (tell, state) = watch::channel(starting);
        let (orders, incoming) = mpsc::channel(4);
        let (end, name) = (CancellationToken::new(), Arc::<str>::from(name));
        let letterbox = Letterbox::default();
        let connect_limit = surroundings.limits.connect;
        let keeper = Keeper {
            name: Arc::clone(&name),
            config: config.clone(),
            surroundings,
            letterbox: letterbox.clone(),
            state: tell,
            orders: incoming,
            end: end.clone(),
        };
        tokio::spawn(keeper.keep());
        let _end_with_us = end.clone().drop_guard();
        Self { name, config, state, orders, letterbox, connect_limit, end, _end_with_us }
    }

    /// How it is now.
    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Tells of every change.
    pub(super) fn changes(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Waits until it has been tried to connect.
    pub(super) async fn settled(&self) -> State {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state.phase, Phase::Starting)).await;
        settled.map_or_else(|_| self.state(), |state| state.clone())
    }

    /// The connection. One that is being made, or looked for again, is waited for.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Fault> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| match &state.phase {
            // It may be lost before its keeper knows.
            Phase::Connected(connection) => !connection.fate.is_lost(),
            Phase::Failed(_) => true,
            Phase::Starting | Phase::Lost(_) => false,
        });
        let _ = timeout(self.connect_limit, settled).await;
        match self.state().phase {
            Phase::Connected(connection) => Ok(connection),
            Phase::Lost(fault) | Phase::Failed(fault) => Err(fault),
            Phase::Starting => Err(Fault::Late(self.connect_limit)),
        }
    }

    /// Connects anew.
    pub(super) async fn reconnect(&self) -> Result<(), Fault> {
        let (order, done) = oneshot::channel();
        let ended = || Fault::Gone("it has been ended.".into());
        self.orders.send(order).await.map_err(|_| ended())?;
        done.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Takes what a server of the host says by itself.
    pub(super) fn hear(&self, message: &RawJson) -> bool {
        self.letterbox.put(message)
    }

    /// Ends the server, and waits until it is gone.
    pub(super) async fn close(&self) {
        self.end.cancel();
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

/// The task that owns a server.
struct Keeper {
    name: Arc<str>,
    config: McpServerConfig,
    surroundings: Surroundings,
    letterbox: Letterbox,
    state: watch::Sender<State>,
    orders: mpsc::Receiver<Order>,
    end: CancellationToken,
}

/// Why a connection is over, or a wait.
enum Turn {
    /// Everything is to end.
    End,
    /// It is to be connected anew.
    Order(Order),
    /// It was lost.
    Lost(Fault),
    /// It could not be connected to.
    NotThere(Fault),
    /// The time has come to look for it.
    Retry,
}

impl Keeper {
    async fn keep(mut self) {
        let mut failed = 0;
        let mut order: Option<Order> = None;
        loop {
            let end = self.end.clone();
            let Some(connected) = end.run_until_cancelled(self.connect()).await else { return };
            let turn = match connected {
                Ok(connection) => {
                    answer(order.take(), Ok(()));
                    let since = Instant::now();
                    let turn = self.attend(&connection).await;
                    connection.close().await;
                    failed = if since.elapsed() > STEADY { 0 } else { failed };
                    turn
                }
                Err(fault) => {
                    answer(order.take(), Err(fault.clone()));
                    Turn::NotThere(fault)
                }
            };
            let turn = match turn {
                Turn::Lost(fault) | Turn::NotThere(fault) => {
                    failed += 1;
                    self.wait_after(fault, failed).await
                }
                other => other,
            };
            match turn {
                Turn::End => return,
                Turn::Retry | Turn::Lost(_) | Turn::NotThere(_) => {}
                Turn::Order(given) => {
                    failed = 0;
                    order = Some(given);
                    self.show(Phase::Starting);
                }
            }
        }
    }

    /// Connects, and asks what the server offers.
    async fn connect(&self) -> Result<Arc<Connection>, Fault> {
        let connection =
            Connection::open(&self.name, &self.config, &self.surroundings, &self.letterbox).await?;
        match offer(&connection, self.surroundings.limits.connect).await {
            Ok(offer) => {
                let connection = Arc::new(connection);
                let phase = Phase::Connected(Arc::clone(&connection));
                self.state.send_replace(State { phase, offer: Arc::new(offer) });
                Ok(connection)
            }
            Err(fault) => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// Watches over a connection, until it is lost or no longer wanted.
    async fn attend(&mut self, connection: &Connection) -> Turn {
        let limit = self.surroundings.limits.connect;
        let mut offers = connection.board.offers.subscribe();
        // What has changed while we asked is asked for again.
        if *offers.borrow() > 0 {
            offers.mark_changed();
        }
        loop {
            tokio::select! {
                biased;
                () = self.end.cancelled() => return Turn::End,
                () = connection.fate.lost() => {
                    let fault = connection.fate.reason();
                    self.show(self.phase_after(&fault));
                    return Turn::Lost(fault);
                }
                Some(order) = self.orders.recv() => {
                    self.show(Phase::Starting);
                    return Turn::Order(order);
                }
                Some(offer) = changed_offer(&mut offers, connection, limit) => {
                    self.state.send_modify(|state| state.offer = Arc::new(offer));
                }
            }
        }
    }

    /// Shows what went wrong, and waits until it is time to try again.
    async fn wait_after(&mut self, fault: Fault, failed: u32) -> Turn {
        let pause = fault.retry(failed, self.surroundings.limits.backoff);
        self.show(match pause {
            Some(_) => self.phase_after(&fault),
            None => Phase::Failed(fault),
        });
        tokio::select! {
            biased;
            () = self.end.cancelled() => Turn::End,
            Some(order) = self.orders.recv() => Turn::Order(order),
            () = after(pause) => Turn::Retry,
        }
    }

    /// How the server is after a fault. One that was there before counts as lost if it may come back; one that never was,
    /// as failed, even while it is tried again.
    fn phase_after(&self, fault: &Fault) -> Phase {
        match &self.state.borrow().phase {
            Phase::Connected(_) | Phase::Lost(_) if fault.may_pass() => Phase::Lost(fault.clone()),
            Phase::Starting | Phase::Connected(_) | Phase::Lost(_) | Phase::Failed(_) => {
                Phase::Failed(fault.clone())
            }
        }
    }

    fn show(&self, phase: Phase) {
        self.state.send_modify(|state| state.phase = phase);
    }
}

/// Waits until the server says that its offer has changed, and asks for it.
async fn changed_offer(
    offers: &mut watch::Receiver<u64>,
    connection: &Connection,
    limit: Duration,
) -> Option<Offer> {
    offers.changed().await.ok()?;
    sleep(ASK_AGAIN).await;
    offers.borrow_and_update();
    offer(connection, limit).await.ok()
}

async fn after(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}

fn answer(order: Option<Order>, result: Result<(), Fault>) {
    if let Some(order) = order {
        // Whoever gave it may not wait any more.
        let _ = order.send(result);
    }
}
