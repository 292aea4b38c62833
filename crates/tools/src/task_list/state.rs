//! The task list and its operations. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::item::{TaskItem, TaskItemStatus};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskListState {
    items: BTreeMap<u64, TaskItem>,
    /// Highest id ever assigned; ids of removed tasks are not reused.
    highest_id: u64,
}

/// A task to be added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewTaskItem {
    pub subject: String,
    pub description: String,
    /// Present continuous form, shown while the task is in progress.
    pub active_form: Option<String>,
    /// Further data.
    pub metadata: Map<String, Value>,
}

/// An update; absent fields stay unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskItemUpdate {
    pub subject: Option<String>,
    pub description: Option<String>,
    /// Present continuous form, shown while the task is in progress.
    pub active_form: Option<String>,
    pub status: Option<TaskItemStatus>,
    /// The agent that works on it; an empty name removes the owner.
    pub owner: Option<String>,
    /// Tasks that get a dependency on this one.
    pub add_blocks: Vec<String>,
    /// Tasks that this one gets a dependency on.
    pub add_blocked_by: Vec<String>,
    /// Metadata to merge; null removes a field.
    pub metadata: Map<String, Value>,
}

/// Result of an update.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdatedTaskItem {
    /// The task after the update.
    pub item: TaskItem,
    /// Changed fields, by their JSON names.
    pub fields: Vec<&'static str>,
    /// Status before the update.
    pub previous_status: TaskItemStatus,
}

/// A violated rule of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRuleError {
    #[error("there is no task #{0}")]
    UnknownTask(String),
    /// Another agent works on it.
    #[error("task #{id} is owned by {owner}, who is working on it")]
    OwnedByOther { id: String, owner: String },
    /// It depends on unfinished tasks.
    #[error("task #{id} is blocked by #{}", .blockers.join(", #"))]
    Blocked {
        id: String,
        /// The unfinished tasks.
        blockers: Vec<String>,
    },
    #[error("task #{0} is already completed")]
    AlreadyCompleted(String),
    /// A task would depend on itself, directly or through others.
    #[error("task #{0} would block itself")]
    Cycle(String),
}

impl TaskListState {
    /// A list of these tasks; `highest` is the highest id ever assigned.
    pub(super) fn from_items(items: impl IntoIterator<Item = TaskItem>, highest: u64) -> Self {
        let mut state = Self { items: BTreeMap::new(), highest_id: highest };
        for item in items {
            if let Ok(number) = item.id.parse() {
                state.highest_id = state.highest_id.max(number);
                state.items.insert(number, item);
            }
        }
        state
    }

    pub(super) fn highest_id(&self) -> u64 {
        self.highest_id
    }

    pub fn items(&self) -> impl Iterator<Item = &TaskItem> {
        self.items.values()
    }

    /// Finds a task by its number, with or without `#`.
    pub fn get(&self, id: &str) -> Option<&TaskItem> {
        self.items.get(&parse_id(id)?)
    }

    /// Appends a task.
    pub fn add(&mut self, new_item: NewTaskItem) -> TaskItem {
        self.highest_id += 1;
        let NewTaskItem { subject, description, active_form, metadata } = new_item;
        let id = self.highest_id.to_string();
        let item = TaskItem { id, subject, description, active_form, metadata, ..TaskItem::default() };
        self.items.insert(self.highest_id, item.clone());
        item
    }

    /// Removes a task and all dependencies on it.
    pub fn remove(&mut self, id: &str) -> Result<(), TaskRuleError> {
        let id = self.resolve_id(id)?;
        self.items.retain(|_, item| item.id != id);
        for item in self.items.values_mut() {
            item.blocks.retain(|other| *other != id);
            item.blocked_by.retain(|other| *other != id);
        }
        Ok(())
    }

    /// Updates a task completely or, on error, not at all.
    pub fn update(&mut self, id: &str, change: TaskItemUpdate) -> Result<UpdatedTaskItem, TaskRuleError> {
        let id = self.resolve_id(id)?;
        let mut next = self.clone();
        let fields = next.apply_update(&id, change)?;
        let previous_status = self.get(&id).map(|item| item.status).unwrap_or_default();
        *self = next;
        let item = self.get(&id).cloned().ok_or(TaskRuleError::UnknownTask(id))?;
        Ok(UpdatedTaskItem { item, fields, previous_status })
    }

    /// Assigns a task to an agent.
    pub fn claim(&mut self, id: &str, agent: &str) -> Result<TaskItem, TaskRuleError> {
        let item = self.get(id).ok_or_else(|| TaskRuleError::UnknownTask(id.into()))?;
        let (id, blockers) = (item.id.clone(), self.open_blockers(item));
        match item.status {
            TaskItemStatus::Completed => return Err(TaskRuleError::AlreadyCompleted(id)),
            TaskItemStatus::Pending if !blockers.is_empty() => {
                return Err(TaskRuleError::Blocked { id, blockers });
            }
            TaskItemStatus::Pending | TaskItemStatus::InProgress => {}
        }
        let change = TaskItemUpdate {
            owner: Some(agent.into()),
            status: Some(TaskItemStatus::InProgress),
            ..TaskItemUpdate::default()
        };
        self.update(&id, change).map(|changed| changed.item)
    }

    /// Unfinished tasks that a task depends on.
    pub fn open_blockers(&self, item: &TaskItem) -> Vec<String> {
        let is_open =
            |id: &&String| self.get(id).is_some_and(|other| other.status != TaskItemStatus::Completed);
        item.blocked_by.iter().filter(is_open).cloned().collect()
    }

    /// Normalizes the id of an existing task.
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
                Some(current_owner)
                    if owner.is_some()
                        && owner != item.owner
                        && item.status == TaskItemStatus::InProgress =>
                {
                    return Err(TaskRuleError::OwnedByOther {
                        id: item.id.clone(),
                        owner: current_owner.clone(),
                    });
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

    /// Adds a dependency; returns false if it exists.
    fn add_dependency(&mut self, dependent: &str, other: &str) -> Result<bool, TaskRuleError> {
        let (dependent, other) = (self.resolve_id(dependent)?, self.resolve_id(other)?);
        if self.depends_on(&other, &dependent) {
            return Err(TaskRuleError::Cycle(dependent));
        }
        let mut add_link = |id: &str, list: fn(&mut TaskItem) -> &mut Vec<String>, name: &str| {
            let item = parse_id(id).and_then(|number| self.items.get_mut(&number));
            let list = item.map(list).filter(|list| !list.iter().any(|known| known == name));
            list.map(|list| list.push(name.to_owned())).is_some()
        };
        let added = add_link(&dependent, |item| &mut item.blocked_by, &other);
        Ok(add_link(&other, |item| &mut item.blocks, &dependent) | added)
    }

    /// Returns whether `from` is `to` or depends on it, directly or through others.
    fn depends_on(&self, from: &str, to: &str) -> bool {
        let (mut pending, mut seen) = (vec![from.to_owned()], Vec::new());
        while let Some(id) = pending.pop() {
            if id == to {
                return true;
            }
            if !seen.contains(&id) {
                pending.extend(self.get(&id).into_iter().flat_map(|item| item.blocked_by.iter().cloned()));
                seen.push(id);
            }
        }
        false
    }
}

fn parse_id(id: &str) -> Option<u64> {
    id.trim().trim_start_matches('#').parse().ok()
}

fn set_field<T: PartialEq>(
    field: &mut T,
    value: Option<T>,
    name: &'static str,
    fields: &mut Vec<&'static str>,
) {
    if let Some(value) = value.filter(|value| value != field) {
        *field = value;
        fields.push(name);
    }
}
