//! What is written to the store: statements with guards.

use super::StoreError;

/// A value of a column. Times are milliseconds since 1970, booleans are 0 and 1, JSON is text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Whether a step has to touch a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Any,
    Rows,
}

/// A statement of a batch. Parameters are written `$1`, `$2`.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(super) sql: &'static str,
    pub(super) values: Vec<Value>,
    pub(super) need: Need,
}

impl Step {
    pub(crate) fn new(sql: &'static str, values: Vec<Value>) -> Self {
        Self { sql, values, need: Need::Any }
    }

    /// If this step touches no row, the whole batch is rolled back.
    pub(crate) fn required(self) -> Self {
        Self { need: Need::Rows, ..self }
    }
}

/// Steps of one transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    pub(super) steps: Vec<Step>,
}

impl From<Vec<Step>> for Batch {
    fn from(steps: Vec<Step>) -> Self {
        Self { steps }
    }
}

/// A row that a statement gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(pub(super) Vec<Value>);

impl Row {
    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text.clone()),
            _ => Err(StoreError::Shape("a text is missing")),
        }
    }

    pub(crate) fn optional_text(&self, column: usize) -> Option<String> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.optional_int(column).ok_or(StoreError::Shape("a number is missing"))
    }

    pub(crate) fn optional_int(&self, column: usize) -> Option<i64> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, column: usize) -> bool {
        self.optional_int(column).unwrap_or_default() != 0
    }
}
