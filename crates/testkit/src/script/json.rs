//! JSON forms of replies and faults that differ from the Rust types.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use super::fault::{Fault, FaultCount};
use super::reply::{RepeatedFault, Reply};

/// A number, or `"always"`.
impl Serialize for FaultCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::First(count) => serializer.serialize_u32(count.get()),
            Self::Always => serializer.serialize_str("always"),
        }
    }
}

impl<'de> Deserialize<'de> for FaultCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).and_then(NonZeroU32::new);
        match (count, value.as_str()) {
            (Some(count), _) => Ok(Self::First(count)),
            (None, Some("always")) => Ok(Self::Always),
            _ => Err(de::Error::custom(format!(
                "times must be a number from 1, or \"always\", but is {value}"
            ))),
        }
    }
}

/// Writes `times` next to the fields of the fault.
impl Serialize for RepeatedFault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.fault).map_err(serde::ser::Error::custom)?;
        if let Value::Object(fields) = &mut value
            && self.times != FaultCount::ONCE
        {
            fields
                .insert("times".into(), serde_json::to_value(self.times).map_err(serde::ser::Error::custom)?);
        }
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RepeatedFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let times = match fields.remove("times") {
            Some(times) => serde_json::from_value(times).map_err(de::Error::custom)?,
            None => FaultCount::ONCE,
        };
        let fault: Fault = serde_json::from_value(Value::Object(fields)).map_err(de::Error::custom)?;
        Ok(Self { fault, times })
    }
}

/// Reads a reply from an object, or from a string as a reply with that text.
pub(super) fn deserialize_reply<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reply, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Reply::text(text)),
        object => Reply::from_object(object).map_err(de::Error::custom),
    }
}

/// Serializes bytes as text.
pub(super) mod text {
    use super::{Deserialize, Deserializer, Serializer};

    pub(in crate::script) fn serialize<S: Serializer>(
        bytes: &[u8],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub(in crate::script) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        String::deserialize(deserializer).map(String::into_bytes)
    }
}

/// Serializes a duration as milliseconds.
pub(super) mod millis {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(in crate::script) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in crate::script) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::StopReason;

    use super::*;

    #[test]
    fn replies_round_trip_through_json() {
        let replies = [
            Reply::empty(),
            Reply::text("hi")
                .with_thinking("hm")
                .and_tool("Bash", json!({"command": "ls"}))
                .tool_use_id("t")
                .chunk_size(3),
            Reply::tool("Bash", json!({}))
                .raw_tool_input("{bad")
                .stop_reason(StopReason::MaxTokens)
                .hold_until("go")
                .skip_after_faults(),
            Reply::text("x").delay(Duration::from_millis(7)).event_interval(Duration::from_millis(8)),
            Reply::text("x")
                .status(529)
                .retry_after("1")
                .error("overloaded_error", "full")
                .times(3)
                .hang_up()
                .always(),
            Reply::text("x").cut_after(1).stall_after(2).error_event(3, "api_error", "no").garbage_event(),
            Reply::text("x").html().empty_body().raw_body("data: x").and_block(json!({"type": "odd"})),
        ];
        for reply in replies {
            let text = serde_json::to_string(&reply).unwrap();
            assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply, "{text}");
        }
        assert_eq!(serde_json::from_str::<Reply>("\"hi\"").unwrap(), Reply::text("hi"));
    }

    #[test]
    fn unknown_fields_and_kinds_are_errors() {
        for (name, text) in [
            ("a field of a reply", r#"{"says": []}"#),
            ("a field of a block", r#"{"say": [{"text": "x", "sig": 1}]}"#),
            ("a kind of fault", r#"{"faults": [{"kind": "cutt", "after": 1}]}"#),
            ("a field of a fault", r#"{"faults": [{"kind": "cut", "before": 1}]}"#),
            ("how often", r#"{"faults": [{"kind": "html", "times": 0}]}"#),
        ] {
            assert!(serde_json::from_str::<Reply>(text).is_err(), "{name}");
        }
    }
}
