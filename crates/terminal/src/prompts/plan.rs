//! The question about a plan.

use whimbrel::PermissionResult;
use whimbrel::wire::permission::{Destination, PermissionMode, PermissionUpdate};

use super::PromptAnswer;
use crate::menu::{Choice, Menu, MenuOutcome};

const ACCEPT_EDITS: usize = 0;
const ASK_FOR_EACH: usize = 1;

pub(super) fn menu() -> Menu {
    let choices = vec![
        Choice::new("Start, and accept edits of files"),
        Choice::new("Start, and ask for each edit").letter('y'),
        Choice::new("Keep planning").letter('n').with_text("what the plan should say instead"),
    ];
    // The default is not the choice that allows most.
    Menu::new("Start with this plan?", choices).select(ASK_FOR_EACH)
}

pub(super) fn answer(outcome: MenuOutcome) -> Option<PromptAnswer> {
    let keep_planning = "The user wants to keep planning. Do not start yet.";
    match outcome {
        MenuOutcome::Taken(ACCEPT_EDITS) => Some(start_in(PermissionMode::AcceptEdits)),
        MenuOutcome::Taken(ASK_FOR_EACH) => Some(start_in(PermissionMode::Default)),
        MenuOutcome::Taken(_) => Some(PromptAnswer::Answer(PermissionResult::deny(keep_planning))),
        MenuOutcome::TakenWithText(_, words) if words.trim().is_empty() => {
            Some(PromptAnswer::Answer(PermissionResult::deny(keep_planning)))
        }
        MenuOutcome::TakenWithText(_, words) => Some(PromptAnswer::Answer(PermissionResult::deny(format!(
            "{keep_planning} The user said: {words}"
        )))),
        MenuOutcome::Cancelled => {
            Some(PromptAnswer::RefuseAndInterrupt(PermissionResult::deny(keep_planning)))
        }
        MenuOutcome::Open | MenuOutcome::Marked(_) | MenuOutcome::Next | MenuOutcome::Previous => None,
    }
}

fn start_in(mode: PermissionMode) -> PromptAnswer {
    let update = PermissionUpdate::SetMode { mode, destination: Destination::Session };
    PromptAnswer::Answer(PermissionResult::allow().with_updates([update]))
}
