//! Changes of rights while a session runs: at once, and in the settings file that each names.
//!
//! A person who allows something for good has allowed it now, wherever it is to be kept. So a change counts in this
//! session even if its file cannot be written, is not read, or lies in a project that nobody vouches for; the host is
//! told when it will not count the next time.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Bounds, UpdateProblem, apply};
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::permission::{Destination, PermissionBehavior, PermissionUpdate};

use super::Rights;
use crate::settings::{Counts, Draft, Effective, SettingsError, Updated, Written};

impl Rights {
    /// Makes changes as a host says: at once, and in the file that each names. What cannot be done is left out and told;
    /// the rest is done. Touches the disk.
    pub fn change(&self, updates: &[PermissionUpdate]) -> Vec<String> {
        let (mut problems, from) = (Vec::new(), self.mode());
        for update in updates {
            let found = self.apply(update);
            let refused = found.iter().any(is_refusal);
            problems.extend(found.iter().map(ToString::to_string));
            if !refused && !matches!(update.destination(), Destination::Session | Destination::CliArg) {
                problems.extend(self.keep(update));
            }
        }
        self.moved(from);
        self.tell_workspace();
        problems
    }

    /// Makes a change in memory.
    fn apply(&self, update: &PermissionUpdate) -> Vec<UpdateProblem> {
        let bounds = Bounds { bypass_available: self.may_bypass(), fs: &RealFs };
        let Ok(problems) = self.revise(|standing| Ok::<_, Infallible>(apply(standing, update, &bounds)));
        problems
    }

    /// Writes a change to its file; tells what went wrong, and what does not count the next time.
    fn keep(&self, update: &PermissionUpdate) -> Vec<String> {
        // Noted before the files are read again, so that it counts all the while.
        let noted = for_session(update);
        self.unkept().extend(noted.clone());
        let draft = self.settings().draft(update);
        match draft.and_then(|draft| self.write(draft)) {
            Ok(updated) => {
                if updated.counts == Counts::ByItself {
                    self.forget(noted.as_ref());
                }
                later(&updated).into_iter().chain(updated.warnings).collect()
            }
            Err(error) => vec![format!("{error} The change counts for this session only.")],
        }
    }

    /// Forgets a change that counts by itself, unless it takes back what was noted for the same file before.
    fn forget(&self, noted: Option<&PermissionUpdate>) {
        let Some(noted) = noted else { return };
        let mut unkept = self.unkept();
        let others = unkept.iter().filter(|other| other.destination() == noted.destination()).count();
        if others <= 1 {
            unkept.retain(|other| other != noted);
        }
    }

    /// Changes whose file does not say so by itself.
    pub(super) fn unkept(&self) -> MutexGuard<'_, Vec<PermissionUpdate>> {
        self.common.unkept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes values to a file for the host. Touches the disk.
    pub fn keep_values(&self, update: &UpdateSettings) -> Result<Vec<Updated>, SettingsError> {
        let drafts = self.settings().draft_values(update)?;
        drafts.into_iter().map(|draft| self.write(draft)).collect()
    }

    /// Writes a draft, one after the other, and takes in what the files say then.
    fn write(&self, draft: Draft) -> Result<Updated, SettingsError> {
        let _one_at_a_time = self.common.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let written = draft.write()?;
        Ok(self.adopt(written))
    }

    /// Takes in what the files say after a change, also what somebody else has changed there meanwhile. If a rule that
    /// should deny or ask cannot be read, what was in force stays in force.
    fn adopt(&self, written: Written) -> Updated {
        let mut settings = self.settings();
        let before = settings.clone();
        let mut updated = settings.adopt(written);
        let sources = Vec::from_iter(updated.sources.iter().copied());
        if let Err(error) = self.take(settings.effective(), &sources) {
            *settings = before;
            updated.warnings.push(format!("The settings have changed, and cannot be taken in. {error}"));
            (updated.counts, updated.sources) = (Counts::Unknown, BTreeSet::new());
        }
        updated
    }

    /// Lays settings of the host over all others, and gives what was and what is in force. If something in them cannot be
    /// taken, nothing changes.
    pub fn lay_over(&self, changes: Map<String, Value>) -> Result<(Arc<Effective>, Arc<Effective>), String> {
        let mut settings = self.settings();
        let before = settings.clone();
        let changed = settings.apply_flag(changes).map_err(|error| error.to_string())?;
        let effective = settings.effective().clone();
        match self.take(&effective, &Vec::from_iter(changed)) {
            Ok(_) => Ok((before.effective().clone(), effective)),
            Err(error) => {
                *settings = before;
                Err(error)
            }
        }
    }
}

/// Whether a change was not made at all.
fn is_refusal(problem: &UpdateProblem) -> bool {
    match problem {
        UpdateProblem::ManagedOnly(_) | UpdateProblem::BypassUnavailable => true,
        UpdateProblem::Rule(_) | UpdateProblem::Warning(_) | UpdateProblem::RelativeDirectory(_) => false,
    }
}

/// Why a change that was written does not count the next time.
fn later(updated: &Updated) -> Option<String> {
    let file = updated.file.display();
    match updated.counts {
        Counts::ByItself | Counts::Unknown => None,
        Counts::NotRead => Some(format!(
            "The change is written to {file} and counts for this session. A session that is started like this one does not read that file: ask for its setting source to have it count then."
        )),
        Counts::NotTrusted => Some(format!(
            "The change is written to {file} and counts for this session. It does not count the next time, because the project is not trusted: trust the folder, or ask for this setting source by name."
        )),
    }
}

/// What is to be done again for the session when the file of a change is read again and does not say so by itself. What
/// forbids something is only ever added: somebody else may have put it into the file meanwhile.
fn for_session(update: &PermissionUpdate) -> Option<PermissionUpdate> {
    match update {
        PermissionUpdate::ReplaceRules { rules, behavior, destination }
            if *behavior != PermissionBehavior::Allow =>
        {
            let (rules, behavior, destination) = (rules.clone(), *behavior, *destination);
            Some(PermissionUpdate::AddRules { rules, behavior, destination })
        }
        PermissionUpdate::RemoveRules { behavior, .. } if *behavior != PermissionBehavior::Allow => None,
        PermissionUpdate::SetMode { .. } => None,
        PermissionUpdate::AddRules { .. }
        | PermissionUpdate::ReplaceRules { .. }
        | PermissionUpdate::RemoveRules { .. }
        | PermissionUpdate::AddDirectories { .. }
        | PermissionUpdate::RemoveDirectories { .. } => Some(update.clone()),
    }
}

#[cfg(test)]
mod tests;
