//! Lenient deserializers for fields that clients write differently: null for absent, fractions for counts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// Deserializes null as the default.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    d: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// Deserializes a field for which null and absence differ.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(d).map(Some)
}

/// Deserializes a count for which null and absence differ.
pub(crate) fn nullable_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<u64>>, D::Error> {
    optional_count(d).map(Some)
}

/// Deserializes a count. Null, negative and fractional values become zero or the nearest count.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(optional_count(deserializer)?.unwrap_or(0))
}

/// Deserializes an optional count, as lenient as [`count`].
pub(crate) fn optional_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(|number| to_count(&number)))
}

fn to_count(number: &Number) -> u64 {
    number.as_u64().unwrap_or_else(|| number.as_f64().map_or(0, |float| float.max(0.0) as u64))
}

/// Returns whether a field equals its default, so that it is not serialized.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Deserializes a type from the fields of an object; the error names the invalid field.
pub(crate) fn from_fields<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| match error.path().to_string() {
        path if path == "." => error.into_inner().to_string(),
        path => format!("{path}: {}", error.into_inner()),
    })
}
