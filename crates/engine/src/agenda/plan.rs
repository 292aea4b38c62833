//! The list itself and what can be done with it. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::item::{Item, Status};

/// A list of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    items: BTreeMap<u64, Item>,
    /// The highest number that was ever given: no task gets the number of one that is gone.
    highest: u64,
}

/// A task before it is on the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// What it is about.
    pub subject: String,
    /// What is to be done.
    pub description: String,
    /// What is going on while it is done.
    pub active_form: Option<String>,
    /// Whatever else is kept with it.
    pub metadata: Map<String, Value>,
}

/// What is to change. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// What it is about.
    pub subject: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// What is going on while it is done.
    pub active_form: Option<String>,
    /// How far it is.
    pub status: Option<Status>,
    /// The agent that does it; an empty name is nobody.
    pub owner: Option<String>,
    /// Further tasks that wait for it.
    pub add_blocks: Vec<String>,
    /// Further tasks that it waits for.
    pub add_blocked_by: Vec<String>,
    /// Fields to keep with it; null takes one away.
    pub metadata: Map<String, Value>,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The task as it is now.
    pub item: Item,
    /// The fields that are not as they were, by their names on the wire.
    pub fields: Vec<&'static str>,
    /// How far it was before.
    pub before: Status,
}

/// Why a list says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such task.
    #[error("there is no task #{0}")]
    Unknown(String),
    /// Somebody else is at it.
    #[error("task #{id} is {by}'s, who is at it")]
    Taken {
        /// The task.
        id: String,
        /// Who is at it.
        by: String,
    },
    /// It waits for others.
    #[error("task #{id} waits for #{}", .by.join(", #"))]
    Blocked {
        /// The task.
        id: String,
        /// The tasks that are not done.
        by: Vec<String>,
    },
    /// It is done already.
    #[error("task #{0} is done already")]
    Done(String),
    /// A task would wait for itself, perhaps by way of others.
    #[error("task #{0} would wait for itself")]
    Circle(String),
}

impl Plan {
    /// A list of these tasks, in which this was the highest number ever given.
    pub(super) fn of(items: impl IntoIterator<Item = Item>, highest: u64) -> Self {
        let mut plan = Self { items: BTreeMap::new(), highest };
        for item in items {
            if let Ok(number) = item.id.parse() {
                plan.highest = plan.highest.max(number);
                plan.items.insert(number, item);
            }
        }
        plan
    }

    /// The highest number that was ever given.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// All tasks, in order.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    /// One task. A number may be written with a `#`.
    pub fn get(&self, id: &str) -> Option<&Item> {
        self.items.get(&number(id)?)
    }

    /// Puts a task at the end.
    pub fn add(&mut self, draft: Draft) -> Item {
        self.highest += 1;
        let Draft { subject, description, active_form, metadata } = draft;
        let id = self.highest.to_string();
        let item = Item { id, subject, description, active_form, metadata, ..Item::default() };
        self.items.insert(self.highest, item.clone());
        item
    }

    /// Takes a task off the list; nobody waits for it any more.
    pub fn remove(&mut self, id: &str) -> Result<(), Refusal> {
        let id = self.named(id)?;
        self.items.retain(|_, item| item.id != id);
        for item in self.items.values_mut() {
            item.blocks.retain(|other| *other != id);
            item.blocked_by.retain(|other| *other != id);
        }
        Ok(())
    }

    /// Changes a task, wholly or not at all.
    pub fn change(&mut self, id: &str, change: Change) -> Result<Changed, Refusal> {
        let id = self.named(id)?;
        let mut next = self.clone();
        let fields = next.apply(&id, change)?;
        let before = self.get(&id).map(|item| item.status).unwrap_or_default();
        *self = next;
        let item = self.get(&id).cloned().ok_or(Refusal::Unknown(id))?;
        Ok(Changed { item, fields, before })
    }

    /// An agent takes a task on.
    pub fn claim(&mut self, id: &str, agent: &str) -> Result<Item, Refusal> {
        let item = self.get(id).ok_or_else(|| Refusal::Unknown(id.into()))?;
        let (id, waits) = (item.id.clone(), self.open_blockers(item));
        match item.status {
            Status::Completed => return Err(Refusal::Done(id)),
            Status::Pending if !waits.is_empty() => return Err(Refusal::Blocked { id, by: waits }),
            Status::Pending | Status::InProgress => {}
        }
        let change =
            Change { owner: Some(agent.into()), status: Some(Status::InProgress), ..Change::default() };
        self.change(&id, change).map(|changed| changed.item)
    }

    /// The tasks that are not done and that a task waits for.
    pub fn open_blockers(&self, item: &Item) -> Vec<String> {
        let open = |id: &&String| self.get(id).is_some_and(|other| other.status != Status::Completed);
        item.blocked_by.iter().filter(open).cloned().collect()
    }

    /// The name of a task that there is.
    fn named(&self, id: &str) -> Result<String, Refusal> {
        self.get(id).map(|item| item.id.clone()).ok_or_else(|| Refusal::Unknown(id.into()))
    }

    fn apply(&mut self, id: &str, change: Change) -> Result<Vec<&'static str>, Refusal> {
        let mut fields = Vec::new();
        for other in change.add_blocks {
            fields.extend(self.wait(&other, id)?.then_some("blocks"));
        }
        for other in change.add_blocked_by {
            fields.extend(self.wait(id, &other)?.then_some("blockedBy"));
        }
        let Some(item) = number(id).and_then(|number| self.items.get_mut(&number)) else {
            return Err(Refusal::Unknown(id.into()));
        };
        if let Some(owner) = change.owner {
            let owner = Some(owner.trim().to_owned()).filter(|owner| !owner.is_empty());
            match &item.owner {
                Some(by) if owner.is_some() && owner != item.owner && item.status == Status::InProgress => {
                    return Err(Refusal::Taken { id: item.id.clone(), by: by.clone() });
                }
                _ => set(&mut item.owner, Some(owner), "owner", &mut fields),
            }
        }
        set(&mut item.subject, change.subject, "subject", &mut fields);
        set(&mut item.description, change.description, "description", &mut fields);
        set(&mut item.active_form, change.active_form.map(Some), "activeForm", &mut fields);
        set(&mut item.status, change.status, "status", &mut fields);
        for (name, value) in change.metadata {
            let changed = match value {
                Value::Null => item.metadata.shift_remove(&name).is_some(),
                value => item.metadata.insert(name, value.clone()).as_ref() != Some(&value),
            };
            fields.extend(changed.then_some("metadata"));
        }
        fields.dedup();
        Ok(fields)
    }

    /// One task waits for another from now on; false if it did already.
    fn wait(&mut self, waiter: &str, other: &str) -> Result<bool, Refusal> {
        let (waiter, other) = (self.named(waiter)?, self.named(other)?);
        if self.leads_to(&other, &waiter) {
            return Err(Refusal::Circle(waiter));
        }
        let mut note = |of: &str, list: fn(&mut Item) -> &mut Vec<String>, name: &str| {
            let item = number(of).and_then(|number| self.items.get_mut(&number));
            let list = item.map(list).filter(|list| !list.iter().any(|known| known == name));
            list.map(|list| list.push(name.to_owned())).is_some()
        };
        let waits = note(&waiter, |item| &mut item.blocked_by, &other);
        Ok(note(&other, |item| &mut item.blocks, &waiter) | waits)
    }

    /// Whether a task is another one, or waits for it in the end.
    fn leads_to(&self, from: &str, to: &str) -> bool {
        let (mut open, mut seen) = (vec![from.to_owned()], Vec::new());
        while let Some(id) = open.pop() {
            if id == to {
                return true;
            }
            if !seen.contains(&id) {
                open.extend(self.get(&id).into_iter().flat_map(|item| item.blocked_by.iter().cloned()));
                seen.push(id);
            }
        }
        false
    }
}

fn number(id: &str) -> Option<u64> {
    id.trim().trim_start_matches('#').parse().ok()
}

fn set<T: PartialEq>(place: &mut T, value: Option<T>, name: &'static str, fields: &mut Vec<&'static str>) {
    if let Some(value) = value.filter(|value| value != place) {
        *place = value;
        fields.push(name);
    }
}
