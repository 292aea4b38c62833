//! One line of a recording, and how requests are compared.

use serde::{Deserialize, Serialize};
use whimbrel_wire::{Block, RawJson, Role};

use crate::fault::{Fault, FaultKind};
use crate::history::Message;
use crate::request::Request;

/// How much of a message is kept for people to see.
const SHOWN: usize = 160;

/// One attempt at a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Step {
    /// Which one, from 1.
    pub(super) step: usize,
    /// The model that was asked.
    pub(super) model: String,
    /// What it was asked.
    pub(super) asked: Vec<Outline>,
    /// What came, in the form of the Messages API.
    pub(super) events: Vec<RawJson>,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<Failure>,
}

/// A message in short: enough to tell it from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outline {
    pub(super) role: Role,
    /// A number made of all its bytes.
    pub(super) digest: String,
    /// Its beginning.
    pub(super) begins: String,
}

/// A fault as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Failure {
    kind: String,
    #[serde(default)]
    status: Option<u16>,
    message: String,
}

/// A request in short. Reminders are left out: they tell the day, which is another one when a recording is played.
pub(super) fn outline(request: &Request) -> Vec<Outline> {
    request.history.messages().iter().map(in_short).collect()
}

fn in_short(message: &Message) -> Outline {
    let told =
        |block: &&Block| !matches!(block, Block::Text { text, .. } if text.starts_with("<system-reminder>"));
    let blocks: Vec<&Block> = message.content.iter().filter(told).collect();
    let json = serde_json::to_string(&blocks).unwrap_or_default();
    let begins = json.chars().take(SHOWN).collect();
    Outline { role: message.role, digest: digest(&json), begins }
}

/// FNV-1a: the same everywhere and always, which is all that is asked of it.
fn digest(text: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

impl Failure {
    pub(super) fn of(fault: &Fault) -> Self {
        Self { kind: format!("{:?}", fault.kind), status: fault.status, message: fault.message.clone() }
    }

    /// The fault as it is played: what was waited for then is not waited for again.
    pub(super) fn fault(&self) -> Fault {
        let snake: String = self.kind.chars().enumerate().fold(String::new(), |mut snake, (at, letter)| {
            if at > 0 && letter.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
            snake
        });
        let kind = serde_json::from_value(snake.into()).unwrap_or(FaultKind::Server);
        Fault {
            status: self.status,
            retry_after: Some(std::time::Duration::ZERO),
            ..Fault::new(kind, self.message.clone())
        }
    }
}
