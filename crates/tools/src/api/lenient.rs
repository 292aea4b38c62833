//! Lenient deserializers: models sometimes send `"5"` for 5 or `"true"` for true.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Optional count; accepts negative, fractional and quoted numbers.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    Ok(number(deserializer)?.map(|number| number.max(0.0) as usize))
}

/// Optional position; accepts fractional and quoted numbers. Negative ones count from the end.
pub fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(number(deserializer)?.map(|number| number as i64))
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.map(Some).ok_or_else(|| D::Error::custom(format!("{value} is not a number")))
}

/// Boolean, also quoted; missing means false.
pub fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match &value {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.is_empty() || text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(D::Error::custom(format!("{value} is not true or false"))),
    }
}

/// Optional boolean, also quoted.
pub fn maybe_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value => flag(value).map(Some).map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_accept_every_form_models_send() {
        for (value, read) in [
            (json!(5), Some(5)),
            (json!("5"), Some(5)),
            (json!(2.7), Some(2)),
            (json!(-1), Some(0)),
            (json!(null), None),
        ] {
            assert_eq!(count(value).unwrap(), read);
        }
        assert_eq!(
            [json!(-2), json!("-2"), json!(3)].map(|value| position(value).unwrap()),
            [Some(-2), Some(-2), Some(3)]
        );
        assert_eq!(count(json!("many")).unwrap_err().to_string(), "\"many\" is not a number");
    }

    #[test]
    fn flags_accept_quoted_values() {
        for (value, read) in
            [(json!(true), true), (json!("True"), true), (json!("false"), false), (json!(null), false)]
        {
            assert_eq!(flag(value).unwrap(), read);
        }
        assert!(flag(json!(7)).is_err());
        assert_eq!(
            (maybe_flag(json!(null)).unwrap(), maybe_flag(json!("true")).unwrap()),
            (None, Some(true))
        );
    }
}
