//! Changes of rights while a session runs: at once, and in the settings file that each names.
//!
//! A person who allows something for good has allowed it now, wherever it is to be kept. So a change counts in this
//! session even if its file cannot be written, is not read, or lies in a project that nobody vouches for; the host is
//! told when it will not count the next time.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::PoisonError;

use serde_json::{Map, Value};
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Bounds, UpdateProblem, apply};
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::permission::{Destination, PermissionUpdate};

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
        let draft = self.settings().draft(update);
        let (counts, mut told) = match draft.and_then(|draft| self.write(draft)) {
            Ok(updated) => (updated.counts, later(&updated).into_iter().chain(updated.warnings).collect()),
            Err(error) => {
                (Counts::Unknown, vec![format!("{error} The change counts for this session only.")])
            }
        };
        if let (Counts::NotRead | Counts::NotTrusted | Counts::Unknown, Some(update)) =
            (counts, for_session(update))
        {
            told.extend(self.apply(&update).iter().filter(|told| is_refusal(told)).map(ToString::to_string));
        }
        told
    }

    /// Writes values to a file for the host. Touches the disk.
    pub fn keep_values(&self, update: &UpdateSettings) -> Result<Vec<Updated>, SettingsError> {
        let drafts = self.settings().draft_values(update)?;
        drafts.into_iter().map(|draft| self.write(draft)).collect()
    }

    /// Writes a draft, one after the other, and takes in what the files say then.
    fn write(&self, draft: Draft) -> Result<Updated, SettingsError> {
        let _one_at_a_time = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub fn lay_over(&self, changes: Map<String, Value>) -> Result<(Effective, Effective), String> {
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
        UpdateProblem::ManagedOnly(_)
        | UpdateProblem::BypassUnavailable
        | UpdateProblem::RelativeDirectory(_) => true,
        UpdateProblem::Rule(_) | UpdateProblem::Warning(_) => false,
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

/// What a change adds, as a change for this session. None if it adds nothing that could be lost.
fn for_session(update: &PermissionUpdate) -> Option<PermissionUpdate> {
    let destination = Destination::Session;
    match update {
        PermissionUpdate::AddRules { rules, behavior, .. }
        | PermissionUpdate::ReplaceRules { rules, behavior, .. } => {
            Some(PermissionUpdate::AddRules { rules: rules.clone(), behavior: *behavior, destination })
        }
        PermissionUpdate::AddDirectories { directories, .. } => {
            Some(PermissionUpdate::AddDirectories { directories: directories.clone(), destination })
        }
        PermissionUpdate::RemoveRules { .. }
        | PermissionUpdate::RemoveDirectories { .. }
        | PermissionUpdate::SetMode { .. } => None,
    }
}

#[cfg(test)]
mod tests;
