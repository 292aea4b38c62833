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
use whimbrel_policy::{UpdateContext, UpdateError, apply_update};
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::permission::{Destination, PermissionBehavior, PermissionUpdate};

use super::PermissionState;
use crate::settings::{ChangeStatus, ChangeDraft, EffectiveSettings, SettingsError, UpdateReport, WrittenChange};

impl PermissionState {
    /// Makes changes as a host says: at once, and in the file that each names. What cannot be done is left out and told;
    /// the rest is done. Touches the disk.
    pub fn apply_updates(&self, updates: &[PermissionUpdate]) -> Vec<String> {
        let (mut problems, from) = (Vec::new(), self.mode());
        for update in updates {
            let found = self.apply_in_memory(update);
            let refused = found.iter().any(is_rejected);
            problems.extend(found.iter().map(ToString::to_string));
            if !refused && !matches!(update.destination(), Destination::Session | Destination::CliArg) {
                problems.extend(self.persist(update));
            }
        }
        self.remember_mode_before_plan(from);
        self.update_workspace();
        problems
    }

    /// Makes a change in memory.
    fn apply_in_memory(&self, update: &PermissionUpdate) -> Vec<UpdateError> {
        let bounds = UpdateContext { bypass_available: self.can_bypass(), fs: &RealFs };
        let Ok(problems) = self.update(|standing| Ok::<_, Infallible>(apply_update(standing, update, &bounds)));
        problems
    }

    /// Writes a change to its file; tells what went wrong, and what does not count the next time.
    fn persist(&self, update: &PermissionUpdate) -> Vec<String> {
        // Noted before the files are read again, so that it counts all the while.
        let noted = session_equivalent(update);
        self.session_only().extend(noted.clone());
        let draft = self.settings().draft_update(update);
        match draft.and_then(|draft| self.write_draft(draft)) {
            Ok(updated) => {
                if updated.status == ChangeStatus::InForce {
                    self.drop_session_only(noted.as_ref());
                }
                next_session_notice(&updated).into_iter().chain(updated.warnings).collect()
            }
            Err(error) => vec![format!("{error} The change counts for this session only.")],
        }
    }

    /// Forgets a change that counts by itself, unless it takes back what was noted for the same file before.
    fn drop_session_only(&self, noted: Option<&PermissionUpdate>) {
        let Some(noted) = noted else { return };
        let mut unkept = self.session_only();
        let others = unkept.iter().filter(|other| other.destination() == noted.destination()).count();
        if others <= 1 {
            unkept.retain(|other| other != noted);
        }
    }

    /// Changes whose file does not say so by itself.
    pub(super) fn session_only(&self) -> MutexGuard<'_, Vec<PermissionUpdate>> {
        self.shared.session_only.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes values to a file for the host. Touches the disk.
    pub fn write_settings(&self, update: &UpdateSettings) -> Result<Vec<UpdateReport>, SettingsError> {
        let drafts = self.settings().draft_values(update)?;
        drafts.into_iter().map(|draft| self.write_draft(draft)).collect()
    }

    /// Writes a draft, one after the other, and takes in what the files say then.
    fn write_draft(&self, draft: ChangeDraft) -> Result<UpdateReport, SettingsError> {
        let _one_at_a_time = self.shared.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let written = draft.write()?;
        Ok(self.adopt_written(written))
    }

    /// Takes in what the files say after a change, also what somebody else has changed there meanwhile. If a rule that
    /// should deny or ask cannot be read, what was in force stays in force.
    fn adopt_written(&self, written: WrittenChange) -> UpdateReport {
        let mut settings = self.settings();
        let before = settings.clone();
        let mut updated = settings.adopt_written(written);
        let sources = Vec::from_iter(updated.sources.iter().copied());
        if let Err(error) = self.apply_settings(settings.effective(), &sources) {
            *settings = before;
            updated.warnings.push(format!("The settings have changed, and cannot be taken in. {error}"));
            (updated.status, updated.sources) = (ChangeStatus::Unknown, BTreeSet::new());
        }
        updated
    }

    /// Lays settings of the host over all others, and gives what was and what is in force. If something in them cannot be
    /// taken, nothing changes.
    pub fn apply_host_settings(&self, changes: Map<String, Value>) -> Result<(Arc<EffectiveSettings>, Arc<EffectiveSettings>), String> {
        let mut settings = self.settings();
        let before = settings.clone();
        let changed = settings.apply_host_changes(changes).map_err(|error| error.to_string())?;
        let effective = settings.effective().clone();
        match self.apply_settings(&effective, &Vec::from_iter(changed)) {
            Ok(_) => Ok((before.effective().clone(), effective)),
            Err(error) => {
                *settings = before;
                Err(error)
            }
        }
    }
}

/// Whether a change was not made at all.
fn is_rejected(problem: &UpdateError) -> bool {
    match problem {
        UpdateError::ManagedOnly(_) | UpdateError::BypassUnavailable => true,
        UpdateError::Rule(_) | UpdateError::Warning(_) | UpdateError::RelativeDirectory(_) => false,
    }
}

/// Why a change that was written does not count the next time.
fn next_session_notice(updated: &UpdateReport) -> Option<String> {
    let file = updated.file.display();
    match updated.status {
        ChangeStatus::InForce | ChangeStatus::Unknown => None,
        ChangeStatus::NotRead => Some(format!(
            "The change is written to {file} and counts for this session. A session that is started like this one does not read that file: ask for its setting source to have it count then."
        )),
        ChangeStatus::NotTrusted => Some(format!(
            "The change is written to {file} and counts for this session. It does not count the next time, because the project is not trusted: trust the folder, or ask for this setting source by name."
        )),
    }
}

/// What is to be done again for the session when the file of a change is read again and does not say so by itself. What
/// forbids something is only ever added: somebody else may have put it into the file meanwhile.
fn session_equivalent(update: &PermissionUpdate) -> Option<PermissionUpdate> {
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
