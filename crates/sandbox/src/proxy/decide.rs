//! Whether a host may be reached: the lists, then the question. A host is asked about once per session.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::domains::{DomainLists, ListDecision};
use super::refusals::Reason;
use super::target::{Host, Target};
use super::{Approval, HostApproval};

/// How long a connection waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The decisions of a session.
pub(crate) struct HostDecisions {
    lists: RwLock<DomainLists>,
    approval: Option<Arc<dyn HostApproval>>,
    answers: Mutex<HashMap<Host, Arc<OnceCell<Approval>>>>,
}

impl HostDecisions {
    pub(crate) fn new(lists: DomainLists, approval: Option<Arc<dyn HostApproval>>) -> Self {
        Self { lists: RwLock::new(lists), approval, answers: Mutex::default() }
    }

    /// Replaces the lists for connections from now on.
    pub(crate) fn set_lists(&self, lists: DomainLists) {
        *self.lists.write().unwrap_or_else(PoisonError::into_inner) = lists;
    }

    fn lists(&self) -> RwLockReadGuard<'_, DomainLists> {
        self.lists.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a target, before its name is looked up.
    pub(crate) async fn decide(&self, target: &Target) -> Result<(), Reason> {
        let listed = self.lists().decide(target);
        match (listed, &self.approval) {
            (ListDecision::Allowed, _) => Ok(()),
            (ListDecision::Denied, _) => Err(Reason::Denied),
            (ListDecision::Unlisted, _) | (ListDecision::Ask, None) => Err(Reason::Unlisted),
            (ListDecision::Ask, Some(approval)) => self.ask(target, approval.as_ref()).await,
        }
    }

    async fn ask(&self, target: &Target, approval: &dyn HostApproval) -> Result<(), Reason> {
        let cell = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(target.host.clone()).or_default())
        };
        let host = target.host.to_string();
        let asked = cell.get_or_init(|| async {
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, approval.approve(&host, target.port)).await;
            answer.unwrap_or(Approval::Refuse)
        });
        match asked.await {
            Approval::Allow => Ok(()),
            Approval::AllowOnce => {
                self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(&target.host);
                Ok(())
            }
            Approval::Refuse => Err(Reason::NotApproved),
        }
    }

    /// Returns the addresses that may be connected to. A yes to a question opens a name, not the addresses of this
    /// machine's networks behind it.
    pub(crate) fn filter_addresses(&self, found: &[IpAddr], port: u16, own: &[IpAddr]) -> Vec<IpAddr> {
        let lists = self.lists();
        let is_open = |address: &&IpAddr| {
            let plain = super::addresses::unwrap_embedded(**address);
            if lists.denies_address(**address, port) || lists.denies_address(plain, port) {
                return false;
            }
            lists.allows_address(**address, port)
                || lists.allows_address(plain, port)
                || !super::addresses::is_refused(**address, own)
        };
        found.iter().filter(is_open).copied().collect()
    }
}
