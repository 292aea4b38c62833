//! The list itself and what can be done with it. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::item::{TaskItem, TaskItemStatus};

/// A list of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskListState {
    items: BTreeMap<u64, TaskItem>,
    /// The highest number that was ever given: no task gets the number of one that is gone.
    highest_id: u64,
}

/// A task before it is on the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewTaskItem {
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
pub struct TaskItemUpdate {
    /// What it is about.
    pub subject: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// What is going on while it is done.
    pub active_form: Option<String>,
    /// How far it is.
    pub status: Option<TaskItemStatus>,
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
pub struct UpdatedTaskItem {
    /// The task as it is now.
    pub item: TaskItem,
    /// The fields that are not as they were, by their names on the wire.
    pub fields: Vec<&'static str>,
    /// How far it was before.
    pub previous_status: TaskItemStatus,
}

/// Why a list says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRuleError {
    /// There is no such task.
    #[error("there is no task #{0}")]
    UnknownTask(String),
    /// Somebody else is at it.
    #[error("task #{id} is {owner}'s, who is at it")]
    OwnedByOther {
        /// The task.
        id: String,
        /// Who is at it.
        owner: String,
    },
    /// It waits for others.
    #[error("task #{id} waits for #{}", .blockers.join(", #"))]
    Blocked {
        /// The task.
        id: String,
        /// The tasks that are not done.
        blockers: Vec<String>,
    },
    /// It is done already.
    #[error("task #{0} is done already")]
    AlreadyCompleted(String),
    /// A task would wait for itself, perhaps by way of others.
    #[error("task #{0} would wait for itself")]
    Cycle(String),
}

impl TaskListState {
    /// A list of these tasks, in which this was the highest number ever given.
    pub(super) fn from_items(items: impl IntoIterator<Item = TaskItem>, highest: u64) -> Self {
        let mut plan = Self { items: BTreeMap::new(), highest_id: highest };
        for item in items {
            if let Ok(number) = item.id.parse() {
                plan.highest_id = plan.highest_id.max(number);
                plan.items.insert(number, item);
            }
        }
        plan
    }

    /// The highest number that was ever given.
    pub(super) fn highest_id(&self) -> u64 {
        self.highest_id
    }

    /// All tasks, in order.
    pub fn items(&self) -> impl Iterator<Item = &TaskItem> {
        self.items.values()
    }

    /// One task. A number may be written with a `#`.
    pub fn get(&self, id: &str) -> Option<&TaskItem> {
        self.items.get(&parse_id(id)?)
    }

    /// Puts a task at the end.
    pub fn add(&mut self, draft: NewTaskItem) -> TaskItem {
        self.highest_id += 1;
        let NewTaskItem { subject, description, active_form, metadata } = draft;
        let id = self.highest_id.to_string();
        let item = TaskItem { id, subject, description, active_form, metadata, ..TaskItem::default() };
        self.items.insert(self.highest_id, item.clone());
        item
    }

    /// Takes a task off the list; nobody waits for it any more.
    pub fn remove(&mut self, id: &str) -> Result<(), TaskRuleError> {
        let id = self.resolve_id(id)?;
        self.items.retain(|_, item| item.id != id);
        for item in self.items.values_mut() {
            item.blocks.retain(|other| *other != id);
            item.blocked_by.retain(|other| *other != id);
        }
        Ok(())
    }

    /// Changes a task, wholly or not at all.
    pub fn update(&mut self, id: &str, change: TaskItemUpdate) -> Result<UpdatedTaskItem, TaskRuleError> {
        let id = self.resolve_id(id)?;
        let mut next = self.clone();
        let fields = next.apply_update(&id, change)?;
        let before = self.get(&id).map(|item| item.status).unwrap_or_default();
        *self = next;
        let item = self.get(&id).cloned().ok_or(TaskRuleError::UnknownTask(id))?;
        Ok(UpdatedTaskItem { item, fields, previous_status: before })
    }

    /// An agent takes a task on.
    pub fn claim(&mut self, id: &str, agent: &str) -> Result<TaskItem, TaskRuleError> {
        let item = self.get(id).ok_or_else(|| TaskRuleError::UnknownTask(id.into()))?;
        let (id, waits) = (item.id.clone(), self.open_blockers(item));
        match item.status {
            TaskItemStatus::Completed => return Err(TaskRuleError::AlreadyCompleted(id)),
            TaskItemStatus::Pending if !waits.is_empty() => return Err(TaskRuleError::Blocked { id, blockers: waits }),
            TaskItemStatus::Pending | TaskItemStatus::InProgress => {}
        }
        let change =
            TaskItemUpdate { owner: Some(agent.into()), status: Some(TaskItemStatus::InProgress), ..TaskItemUpdate::default() };
        self.update(&id, change).map(|changed| changed.item)
    }

    /// The tasks that are not done and that a task waits for.
    pub fn open_blockers(&self, item: &TaskItem) -> Vec<String> {
        let open = |id: &&String| self.get(id).is_some_and(|other| other.status != TaskItemStatus::Completed);
        item.blocked_by.iter().filter(open).cloned().collect()
    }

    /// The name of a task that there is.
    fn resolve_id(&self, id: &str) -> Result<String, TaskRuleError> {
        self.get(id).map(|item| item.id.clone()).ok_or_else(|| TaskRuleError::UnknownTask(id.into()))
    }

    fn apply_update(&mut self, id: &str, change: TaskItemUpdate) -> Result<Vec<&'static str>, TaskRuleError> {
        let mut fields = Vec::new();
        for other in change.add_blocks {
            fields.extend(self.add_dependency(&other, id)?.then_some("blocks"));
        }
        for other in change.add_blocked_by {
            fields.extend(self.add_dependency(id, &other)?.then_some("blockedBy"));
        }
        let Some(item) = parse_id(id).and_then(|number| self.items.get_mut(&number)) else {
            return Err(TaskRuleError::UnknownTask(id.into()));
        };
        if let Some(owner) = change.owner {
            let owner = Some(owner.trim().to_owned()).filter(|owner| !owner.is_empty());
            match &item.owner {
                Some(by) if owner.is_some() && owner != item.owner && item.status == TaskItemStatus::InProgress => {
                    return Err(TaskRuleError::OwnedByOther { id: item.id.clone(), owner: by.clone() });
                }
                _ => set_field(&mut item.owner, Some(owner), "owner", &mut fields),
            }
        }
        set_field(&mut item.subject, change.subject, "subject", &mut fields);
        set_field(&mut item.description, change.description, "description", &mut fields);
        set_field(&mut item.active_form, change.active_form.map(Some), "activeForm", &mut fields);
        set_field(&mut item.status, change.status, "status", &mut fields);
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
    fn add_dependency(&mut self, waiter: &str, other: &str) -> Result<bool, TaskRuleError> {
        let (waiter, other) = (self.resolve_id(waiter)?, self.resolve_id(other)?);
        if self.depends_on(&other, &waiter) {
            return Err(TaskRuleError::Cycle(waiter));
        }
        let mut note = |of: &str, list: fn(&mut TaskItem) -> &mut Vec<String>, name: &str| {
            let item = parse_id(of).and_then(|number| self.items.get_mut(&number));
            let list = item.map(list).filter(|list| !list.iter().any(|known| known == name));
            list.map(|list| list.push(name.to_owned())).is_some()
        };
        let waits = note(&waiter, |item| &mut item.blocked_by, &other);
        Ok(note(&other, |item| &mut item.blocks, &waiter) | waits)
    }

    /// Whether a task is another one, or waits for it in the end.
    fn depends_on(&self, from: &str, to: &str) -> bool {
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

fn parse_id(id: &str) -> Option<u64> {
    id.trim().trim_start_matches('#').parse().ok()
}

fn set_field<T: PartialEq>(place: &mut T, value: Option<T>, name: &'static str, fields: &mut Vec<&'static str>) {
    if let Some(value) = value.filter(|value| value != place) {
        *place = value;
        fields.push(name);
    }
}
