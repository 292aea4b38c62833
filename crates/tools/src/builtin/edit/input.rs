//! Input of Edit: one replacement in three fields, or several in `edits`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, value};
use serde::{Deserialize, Serialize};

use crate::api::lenient;

/// A valid input.
#[derive(Deserialize)]
#[serde(try_from = "EditFields")]
pub(in crate::builtin) struct EditInput {
    pub(super) file_path: String,
    pub(super) change: Change,
}

pub(super) enum Change {
    One(Replacement),
    /// Applied in order, all or none.
    Several(Vec<Replacement>),
}

#[derive(Deserialize, Serialize)]
pub(super) struct Replacement {
    pub(super) old_string: String,
    pub(super) new_string: String,
    #[serde(default, deserialize_with = "lenient::flag")]
    pub(super) replace_all: bool,
}

// The fields as the model sends them. Not a doc comment, because that would become part of the schema.
#[derive(Deserialize, JsonSchema)]
struct EditFields {
    file_path: String,
    #[schemars(with = "String")]
    old_string: Option<String>,
    #[schemars(with = "String")]
    new_string: Option<String>,
    /// Replace every match
    #[serde(default, deserialize_with = "lenient::flag")]
    replace_all: bool,
    // Instead of the three fields. Not in the schema: for hosts whose models know another tool.
    #[schemars(skip)]
    edits: Option<Vec<Replacement>>,
}

impl JsonSchema for EditInput {
    fn schema_name() -> Cow<'static, str> {
        "EditInput".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        EditFields::json_schema(generator)
    }
}

impl TryFrom<EditFields> for EditInput {
    type Error = value::Error;

    fn try_from(fields: EditFields) -> Result<Self, value::Error> {
        let EditFields { file_path, old_string, new_string, replace_all, edits } = fields;
        let has_one = old_string.is_some() || new_string.is_some();
        let change = match edits.filter(|edits| !has_one || !edits.is_empty()) {
            Some(_) if has_one => {
                return Err(value::Error::custom("use either edits, or old_string and new_string"));
            }
            Some(edits) if edits.is_empty() => return Err(value::Error::custom("edits is empty")),
            Some(edits) => Change::Several(edits),
            None => Change::One(Replacement {
                old_string: old_string.ok_or_else(|| value::Error::missing_field("old_string"))?,
                new_string: new_string.ok_or_else(|| value::Error::missing_field("new_string"))?,
                replace_all,
            }),
        };
        Ok(Self { file_path, change })
    }
}

impl Change {
    pub(super) fn replacements(&self) -> &[Replacement] {
        match self {
            Self::One(replacement) => std::slice::from_ref(replacement),
            Self::Several(replacements) => replacements,
        }
    }

    /// An error of a replacement; one of several is named by its number.
    pub(super) fn name_error(&self, index: usize, error: &str) -> String {
        match self {
            Self::One(_) => error.to_owned(),
            Self::Several(_) => format!("Edit {}: {error}", index + 1),
        }
    }
}
