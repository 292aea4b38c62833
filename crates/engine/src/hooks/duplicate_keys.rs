//! Detects duplicate keys in a hook's JSON output. Parsers take the last one, and a hook that builds its JSON from the
//! model's text may have been tricked into printing the second. Pure.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Parses JSON so that the first of duplicate keys wins; `None` if there are no duplicates.
pub(super) fn keep_first_duplicates(json: &str) -> Option<Value> {
    let twice = Cell::new(false);
    let value = FirstKeyWins(&twice).deserialize(&mut serde_json::Deserializer::from_str(json)).ok()?;
    twice.get().then_some(value)
}

/// Deserializes a value, keeps the first of duplicate keys and records whether there were any.
#[derive(Clone, Copy)]
struct FirstKeyWins<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for FirstKeyWins<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstKeyWins<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value_seed(self)?;
            match values.entry(key) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(_) => self.0.set(true),
            }
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_of_duplicate_keys_wins() {
        let rows = [
            (r#"{"a":1,"b":[true,null,-1,0.5,"x"]}"#, None),
            (r#"{"a":1,"a":2}"#, Some(json!({"a": 1}))),
            (r#"{"a":{"b":[{"c":1,"\u0063":2}]},"d":0}"#, Some(json!({"a": {"b": [{"c": 1}]}, "d": 0}))),
            (r#"{"a":1,"a""#, None),
        ];
        for (text, expected) in rows {
            assert_eq!(keep_first_duplicates(text), expected, "{text}");
        }
    }
}
