//! Small readers for fields where programs in the field disagree: null for absent, fractions for counts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// Reads null as the default.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    d: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// Reads a field for which null says something else than its absence.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(d).map(Some)
}

/// Reads such a count.
pub(crate) fn nullable_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<u64>>, D::Error> {
    optional_count(d).map(Some)
}

/// Reads a count: null, negative, fractional or absurd values become zero or the nearest count.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(optional_count(deserializer)?.unwrap_or(0))
}

/// Reads a count that may be missing; otherwise as lenient as [`count`].
pub(crate) fn optional_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(|number| to_count(&number)))
}

fn to_count(number: &Number) -> u64 {
    number.as_u64().unwrap_or_else(|| number.as_f64().map_or(0, |float| float.max(0.0) as u64))
}

/// Whether a field holds what its absence means.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a type from the fields of an object; an error says which field is wrong.
pub(crate) fn from_fields<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| match error.path().to_string() {
        path if path == "." => error.into_inner().to_string(),
        path => format!("{path}: {}", error.into_inner()),
    })
}
