//! What the proxy has refused.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::target::Target;

/// Largest number of refusals that are kept.
const MAX_KEPT: usize = 1000;

/// A refused connection. The looked-up address is never part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub host: String,
    pub port: u16,
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{} {}", self.host, self.port, self.reason)
    }
}

/// Why a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Denied,
    Unlisted,
    /// The question about it was not answered with yes.
    NotApproved,
    /// All its addresses are private, local or denied.
    ForbiddenAddress,
    /// The name in the TLS connection is another one.
    OtherServerName,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Denied => "is a denied host",
            Self::Unlisted => "is not an allowed host",
            Self::NotApproved => "was not allowed when asked",
            Self::ForbiddenAddress => "leads to a private or local address, which no list allows",
            Self::OtherServerName => "was used for a TLS connection to another name",
        })
    }
}

/// The refusals of a session, by command.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<VecDeque<(String, Refusal)>>);

impl Refusals {
    /// Notes a refusal; the same one is noted once.
    pub(crate) fn add(&self, command: &str, target: &Target, reason: Reason) -> Refusal {
        let refusal = Refusal { host: target.host.to_string(), port: target.port, reason };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = (command.to_owned(), refusal.clone());
        if !kept.contains(&entry) {
            if kept.len() == MAX_KEPT {
                kept.pop_front();
            }
            kept.push_back(entry);
        }
        refusal
    }

    /// Takes the refusals of a command, by its name as it is in the address of the proxy.
    pub(crate) fn take(&self, command: &str) -> Vec<Refusal> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (taken, left) =
            std::mem::take(&mut *kept).into_iter().partition::<VecDeque<_>, _>(|(by, _)| by == command);
        *kept = left;
        taken.into_iter().map(|(_, refusal)| refusal).collect()
    }
}
