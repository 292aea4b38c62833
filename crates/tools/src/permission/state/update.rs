//! Permission updates while a session runs: applied at once, and written to the settings file that each names.
//!
//! An update applies in this session even if its file cannot be written, is not read, or belongs to an untrusted
//! project. The host is informed if it will not apply in the next session.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use whimbrel_config::settings::{
    ChangeDraft, ChangeStatus, EffectiveSettings, SettingsError, UpdateReport, WrittenChange,
};
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{UpdateContext, UpdateError, apply_update};
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::permission::{Destination, PermissionBehavior, PermissionUpdate};

use super::PermissionState;

impl PermissionState {
    /// Applies updates of a host in memory and in the file that each names. Failed updates are skipped and reported;
    /// the rest is applied. Writes to the disk.
    pub fn apply_updates(&self, updates: &[PermissionUpdate]) -> Vec<String> {
        let (mut messages, previous) = (Vec::new(), self.mode());
        for update in updates {
            let errors = self.apply_in_memory(update);
            let rejected = errors.iter().any(is_rejected);
            messages.extend(errors.iter().map(ToString::to_string));
            if !rejected && !matches!(update.destination(), Destination::Session | Destination::CliArg) {
                messages.extend(self.persist(update));
            }
        }
        self.remember_mode_before_plan(previous);
        self.update_workspace();
        messages
    }

    fn apply_in_memory(&self, update: &PermissionUpdate) -> Vec<UpdateError> {
        let context = UpdateContext { bypass_available: self.can_bypass(), fs: &RealFs };
        let Ok(errors) =
            self.update(|permissions| Ok::<_, Infallible>(apply_update(permissions, update, &context)));
        errors
    }

    /// Writes an update to its file; returns errors, and a notice if it will not apply in the next session.
    fn persist(&self, update: &PermissionUpdate) -> Vec<String> {
        // Recorded before the files are read again, so that it stays in force.
        let recorded = session_equivalent(update);
        self.session_only().extend(recorded.clone());
        let draft = self.settings().draft_update(update);
        match draft.and_then(|draft| self.write_draft(draft)) {
            Ok(report) => {
                if report.status == ChangeStatus::InForce {
                    self.drop_session_only(recorded.as_ref());
                }
                next_session_notice(&report).into_iter().chain(report.warnings).collect()
            }
            Err(error) => vec![format!("{error} The change applies to this session only.")],
        }
    }

    /// Drops a recorded update that the file now holds itself, unless it reverts an earlier recorded one for the same
    /// file.
    fn drop_session_only(&self, recorded: Option<&PermissionUpdate>) {
        let Some(recorded) = recorded else { return };
        let mut session_only = self.session_only();
        let others =
            session_only.iter().filter(|other| other.destination() == recorded.destination()).count();
        if others <= 1 {
            session_only.retain(|other| other != recorded);
        }
    }

    /// Updates that are applied in memory only.
    pub(super) fn session_only(&self) -> MutexGuard<'_, Vec<PermissionUpdate>> {
        self.shared.session_only.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes settings for the host. Writes to the disk.
    pub fn write_settings(&self, update: &UpdateSettings) -> Result<Vec<UpdateReport>, SettingsError> {
        let drafts = self.settings().draft_values(update)?;
        drafts.into_iter().map(|draft| self.write_draft(draft)).collect()
    }

    /// Writes a draft under the write lock and applies what the files say then.
    fn write_draft(&self, draft: ChangeDraft) -> Result<UpdateReport, SettingsError> {
        let _write_guard = self.shared.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let written = draft.write()?;
        Ok(self.adopt_written(written))
    }

    /// Applies the files after a write, including changes of other processes. If a deny or ask rule is unreadable, the
    /// previous rules stay.
    fn adopt_written(&self, written: WrittenChange) -> UpdateReport {
        let mut settings = self.settings();
        let before = settings.clone();
        let mut report = settings.adopt_written(written);
        let sources = Vec::from_iter(report.sources.iter().copied());
        if let Err(error) = self.apply_settings(settings.effective(), &sources) {
            *settings = before;
            report.warnings.push(format!("The settings have changed, but cannot be applied. {error}"));
            (report.status, report.sources) = (ChangeStatus::Unknown, BTreeSet::new());
        }
        report
    }

    /// Applies settings of the host over all others; returns the effective settings before and after. On error nothing
    /// changes.
    pub fn apply_host_settings(
        &self,
        changes: Map<String, Value>,
    ) -> Result<(Arc<EffectiveSettings>, Arc<EffectiveSettings>), String> {
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

/// Returns true if the update was not applied at all.
fn is_rejected(error: &UpdateError) -> bool {
    match error {
        UpdateError::ManagedOnly(_) | UpdateError::BypassUnavailable => true,
        UpdateError::Rule(_) | UpdateError::Warning(_) | UpdateError::RelativeDirectory(_) => false,
    }
}

/// Why a written update does not apply in the next session.
fn next_session_notice(report: &UpdateReport) -> Option<String> {
    let file = report.file.display();
    match report.status {
        ChangeStatus::InForce | ChangeStatus::Unknown => None,
        ChangeStatus::NotRead => Some(format!(
            "The change was written to {file} and applies to this session. Sessions started like this one do not read \
             that file: add its setting source to apply it there."
        )),
        ChangeStatus::NotTrusted => Some(format!(
            "The change was written to {file} and applies to this session. It will not apply to the next session, \
             because the project is not trusted: trust the directory, or name this setting source explicitly."
        )),
    }
}

/// Update to repeat for the session when its file is read again without it. Deny and ask rules are only ever added:
/// another process may have added them to the file.
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
