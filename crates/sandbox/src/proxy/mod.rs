//! The only way from a confined command to the network: a proxy that checks every host and every address.
//!
//! The listening socket was made inside the command's network and is accepted on out here, so that no other process of the
//! machine can reach it. Names are looked up here, once, and only if they are allowed.
//!
//! - [`target`]: hosts and ports as clients write them; [`domains`]: lists of hosts; [`addresses`]: which addresses are
//!   refused
//! - `decide`: whether a host may be reached; `dial`: the connection to it; `upstream`: the engine's own proxy
//! - `listener`: accepting; `http`: forward requests and tunnels; `socks`: the same over SOCKS; `tunnel`: bytes
//!   both ways; `client_hello`: the server name of a TLS connection; `credentials`: who may use the proxy
//! - `refusals`: what was refused; `variables`: what programs need to know

pub mod addresses;
mod client_hello;
mod credentials;
mod decide;
mod dial;
pub mod domains;
mod http;
mod listener;
mod refusals;
mod socks;
pub mod target;
mod tunnel;
mod upstream;
mod variables;

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use credentials::Token;
use decide::HostDecisions;
use domains::DomainLists;
use refusals::Refusals;
pub use refusals::{Reason, Refusal};
pub use upstream::Upstream;

/// Port of the proxy in the command's own network, outside of the range from which the kernel gives ports.
pub const PORT: u16 = 17_911;
/// Largest number of connections at a time.
const MAX_CONNECTIONS: usize = 256;

/// Answers whether a host that is on no list may be reached.
#[async_trait]
pub trait HostApproval: Send + Sync {
    /// Asked once per host.
    async fn approve(&self, host: &str, port: u16) -> Approval;
}

/// Answer about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// For the rest of the session.
    Allow,
    /// For this connection; the next one asks again.
    AllowOnce,
    /// For the rest of the session.
    Refuse,
}

/// What a proxy lets through.
pub struct ProxyRules {
    pub lists: DomainLists,
    /// Without it, hosts on no list are refused.
    pub approval: Option<Arc<dyn HostApproval>>,
    pub route: Route,
}

/// How connections leave this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// The proxy through which this process itself reaches the network.
    pub upstream: Option<Upstream>,
    /// A proxy of the caller that decides instead of this one.
    pub host_proxy: Option<HostProxy>,
}

/// Ports on which a proxy of the caller listens on this machine. Connections are passed on to it unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostProxy {
    pub http: Option<u16>,
    pub socks: Option<u16>,
}

/// A socket on which a proxy accepts. Dropping it closes the socket, which would keep the command's network alive: nothing
/// wakes a listener whose clients are gone.
#[derive(Debug)]
pub struct Listening(tokio::task::AbortHandle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A proxy of one session.
pub struct Proxy {
    token: Token,
    decisions: HostDecisions,
    route: RwLock<Route>,
    own_addresses: Vec<IpAddr>,
    refusals: Refusals,
    connections: Arc<Semaphore>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Proxy").finish_non_exhaustive()
    }
}

impl Proxy {
    /// Makes a proxy with a token of its own.
    pub fn new(rules: ProxyRules) -> io::Result<Arc<Self>> {
        let ProxyRules { lists, approval, route } = rules;
        Ok(Arc::new(Self {
            token: Token::random()?,
            decisions: HostDecisions::new(lists, approval),
            route: RwLock::new(route),
            own_addresses: addresses::read_own_addresses(),
            refusals: Refusals::default(),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }))
    }

    /// Accepts connections on a socket until the returned value is dropped. Must run on a tokio runtime.
    pub fn serve(self: &Arc<Self>, listener: std::net::TcpListener) -> io::Result<Listening> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let task = runtime.spawn(listener::accept(Arc::clone(self), listener));
        Ok(Listening(task.abort_handle()))
    }

    /// Returns the environment variables that programs need to use the proxy. `command` names the command in refusals;
    /// `launcher` is the program that connects ssh.
    pub fn variables(&self, command: &str, launcher: &Path) -> Vec<(OsString, OsString)> {
        variables::make(command, &self.token, self.route().host_proxy, launcher)
    }

    /// Replaces the route of connections from now on.
    pub fn set_route(&self, route: Route) {
        *self.route.write().unwrap_or_else(PoisonError::into_inner) = route;
    }

    fn route(&self) -> Route {
        self.route.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the lists of hosts for connections from now on. Answers to questions stay.
    pub fn set_lists(&self, lists: DomainLists) {
        self.decisions.set_lists(lists);
    }

    /// Takes what was refused to a command since the last call.
    pub fn take_refusals(&self, command: &str) -> Vec<Refusal> {
        self.refusals.take(&credentials::user_name(command))
    }
}
