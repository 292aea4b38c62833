//! Token usage as reported by a provider, with a validity status.
//!
//! Replies are billed by these counts, including replies that broke off. A count that is missing, negative or absurdly
//! large is stored as zero and marked, so that the cost is unknown rather than zero.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use whimbrel_wire::Usage;
use whimbrel_wire::content::{CacheCreation, ServerToolUse};

/// Upper limit of a plausible token count.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Usage reported for one attempt at a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedUsage {
    /// The counts; implausible ones are zero.
    pub usage: Usage,
    /// Status of the input counts.
    pub input_status: UsageStatus,
    /// Status of the output counts.
    pub output_status: UsageStatus,
}

/// Validity of a group of counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageStatus {
    /// Not reported.
    #[default]
    Missing,
    /// Reported and plausible.
    Valid,
    /// Reported with an implausible value.
    Invalid,
}

/// Usage created by the engine itself is always valid.
impl From<Usage> for ReportedUsage {
    fn from(usage: Usage) -> Self {
        Self { usage, input_status: UsageStatus::Valid, output_status: UsageStatus::Valid }
    }
}

impl ReportedUsage {
    /// Reads a usage object of the Messages API, as far as it is plausible.
    pub fn from_json(value: &Value) -> Self {
        let Some(fields) = value.as_object() else { return Self::default() };
        let (mut input, mut output) = (CountReader::new(), CountReader::new());
        let object = |name: &str| fields.get(name).and_then(Value::as_object);
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let (cache, server_tools) = (object("cache_creation"), object("server_tool_use"));
        let mut usage = Usage {
            input_tokens: input.required(fields, "input_tokens"),
            cache_creation_input_tokens: input.optional(Some(fields), "cache_creation_input_tokens"),
            cache_read_input_tokens: input.optional(Some(fields), "cache_read_input_tokens"),
            output_tokens: output.required(fields, "output_tokens"),
            server_tool_use: ServerToolUse {
                web_search_requests: output.optional(server_tools, "web_search_requests"),
                web_fetch_requests: output.optional(server_tools, "web_fetch_requests"),
            },
            service_tier: text("service_tier").unwrap_or_default().to_owned(),
            cache_creation: CacheCreation {
                ephemeral_1h_input_tokens: input.optional(cache, "ephemeral_1h_input_tokens"),
                ephemeral_5m_input_tokens: input.optional(cache, "ephemeral_5m_input_tokens"),
            },
            inference_geo: text("inference_geo").map(Into::into),
            iterations: fields.get("iterations").filter(|value| !value.is_null()).cloned().map(Box::new),
            speed: text("speed").map(Into::into),
        };
        complete_cache_creation(&mut usage);
        Self { usage, input_status: input.status, output_status: output.status }
    }

    /// Marks the output as missing: at the start of a reply the output count is preliminary. If no later report
    /// follows, the cost stays unknown.
    #[must_use]
    pub(crate) fn into_partial(mut self) -> Self {
        if self.output_status == UsageStatus::Valid {
            self.output_status = UsageStatus::Missing;
        }
        self
    }

    /// Merges a later report: its non-zero counts replace the earlier ones.
    pub fn merge(&mut self, later: &Self) {
        merge_usage(&mut self.usage, &later.usage);
        self.input_status = match (self.input_status, later.input_status) {
            (UsageStatus::Invalid, _) | (_, UsageStatus::Invalid) => UsageStatus::Invalid,
            (earlier, UsageStatus::Missing) => earlier,
            (_, UsageStatus::Valid) => UsageStatus::Valid,
        };
        // An earlier output count says nothing about the final one.
        self.output_status = match (self.output_status, later.output_status) {
            (UsageStatus::Invalid, _) => UsageStatus::Invalid,
            (_, later) => later,
        };
    }

    /// Returns true if input and output are valid, so that a cost can be computed.
    pub fn is_complete(&self) -> bool {
        self.input_status == UsageStatus::Valid && self.output_status == UsageStatus::Valid
    }
}

impl<'de> Deserialize<'de> for ReportedUsage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_json(&Value::deserialize(deserializer)?))
    }
}

/// Reads counts from JSON and tracks their validity.
pub(crate) struct CountReader {
    /// Status of the counts read so far.
    pub(crate) status: UsageStatus,
}

impl CountReader {
    pub(crate) fn new() -> Self {
        Self { status: UsageStatus::Missing }
    }

    /// Reads the count that decides whether the group was reported at all.
    pub(crate) fn required(&mut self, fields: &Map<String, Value>, name: &str) -> u64 {
        let is_reported = fields.get(name).is_some_and(|value| !value.is_null());
        if is_reported && self.status == UsageStatus::Missing {
            self.status = UsageStatus::Valid;
        }
        self.optional(Some(fields), name)
    }

    /// Reads a count that may be missing.
    pub(crate) fn optional(&mut self, fields: Option<&Map<String, Value>>, name: &str) -> u64 {
        let value = match fields.and_then(|fields| fields.get(name)) {
            None | Some(Value::Null) => return 0,
            Some(value) => value,
        };
        let whole = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
        match value.as_u64().or_else(whole).filter(|count| *count <= MAX_TOKENS) {
            Some(count) => count,
            None => {
                self.status = UsageStatus::Invalid;
                0
            }
        }
    }
}

/// Counts cache writes without a lifetime as written for five minutes, the default of the API. Servers that only report
/// the sum would otherwise seem to have written nothing, because readers of transcripts add up the lifetimes.
fn complete_cache_creation(usage: &mut Usage) {
    let written = usage.cache_creation_input_tokens;
    let CacheCreation { ephemeral_1h_input_tokens: hour, ephemeral_5m_input_tokens: minutes } =
        &mut usage.cache_creation;
    *minutes = (*minutes).max(written.saturating_sub(*hour));
}

/// Replaces earlier counts by later ones that are not zero.
pub(crate) fn merge_usage(usage: &mut Usage, later: &Usage) {
    let replace = |old: &mut u64, new: u64| {
        if new > 0 {
            *old = new;
        }
    };
    replace(&mut usage.input_tokens, later.input_tokens);
    replace(&mut usage.output_tokens, later.output_tokens);
    replace(&mut usage.cache_creation_input_tokens, later.cache_creation_input_tokens);
    replace(&mut usage.cache_read_input_tokens, later.cache_read_input_tokens);
    replace(&mut usage.server_tool_use.web_search_requests, later.server_tool_use.web_search_requests);
    replace(&mut usage.server_tool_use.web_fetch_requests, later.server_tool_use.web_fetch_requests);
    // A report without lifetimes must not replace an earlier one with them.
    let CacheCreation { ephemeral_1h_input_tokens: hour, ephemeral_5m_input_tokens: minutes } =
        usage.cache_creation;
    if hour.saturating_add(minutes) < usage.cache_creation_input_tokens {
        usage.cache_creation = later.cache_creation.clone();
    }
    usage.merge_text_fields(later);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_and_invalid_counts_are_not_zero() {
        use UsageStatus::{Invalid, Missing, Valid};
        let table = [
            ("all there", json!({"input_tokens": 3, "output_tokens": 4}), (3, 4), (Valid, Valid)),
            ("zero is a count", json!({"input_tokens": 0, "output_tokens": 0}), (0, 0), (Valid, Valid)),
            (
                "null is not a count",
                json!({"input_tokens": 3, "output_tokens": null, "cache_read_input_tokens": null}),
                (3, 0),
                (Valid, Missing),
            ),
            ("output only", json!({"output_tokens": 4}), (0, 4), (Missing, Valid)),
            ("A36 nothing", json!({}), (0, 0), (Missing, Missing)),
            ("A36 null", Value::Null, (0, 0), (Missing, Missing)),
            ("A36 words", json!("many"), (0, 0), (Missing, Missing)),
            ("A36 negative", json!({"input_tokens": -3, "output_tokens": 4}), (0, 4), (Invalid, Valid)),
            ("A36 huge", json!({"input_tokens": 3, "output_tokens": 1e30}), (3, 0), (Valid, Invalid)),
            ("A36 a text", json!({"input_tokens": 3, "output_tokens": "x"}), (3, 0), (Valid, Invalid)),
            (
                "A36 the cache",
                json!({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": u64::MAX}),
                (3, 4),
                (Invalid, Valid),
            ),
            ("a fraction", json!({"input_tokens": 3.0, "output_tokens": 4.5}), (3, 4), (Valid, Valid)),
        ];
        for (name, value, tokens, statuses) in table {
            let ReportedUsage { usage, input_status: input, output_status: output } =
                ReportedUsage::from_json(&value);
            assert_eq!((usage.input_tokens, usage.output_tokens), tokens, "{name}");
            assert_eq!((input, output), statuses, "{name}");
        }
    }

    #[test]
    fn lifetimes_of_cache_writes_add_up_to_their_sum() {
        let read = |value: Value| ReportedUsage::from_json(&value);
        let lifetimes = |hour: u64, minutes: u64| json!({"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": minutes});
        let writes = |sum: u64| json!({"cache_creation_input_tokens": sum});
        let both = |sum: u64, hour: u64, minutes: u64| json!({"cache_creation_input_tokens": sum, "cache_creation": lifetimes(hour, minutes)});
        let table = [
            ("nothing written", json!({}), json!({}), (0, 0)),
            ("no lifetimes", writes(70), json!({}), (0, 70)),
            ("all lifetimes", both(70, 30, 40), json!({}), (30, 40)),
            ("one lifetime", both(70, 30, 0), json!({}), (30, 40)),
            ("the sum again at the end", both(70, 70, 0), writes(70), (70, 0)),
            ("only at the end", json!({}), writes(70), (0, 70)),
            ("all lifetimes at the end", json!({}), both(70, 30, 40), (30, 40)),
            ("more at the end", both(70, 30, 40), both(90, 30, 60), (30, 60)),
            ("no sum", json!({"cache_creation": lifetimes(30, 40)}), json!({}), (30, 40)),
        ];
        for (name, start, end, (hour, minutes)) in table {
            let mut usage = read(start);
            usage.merge(&read(end));
            let expected =
                CacheCreation { ephemeral_1h_input_tokens: hour, ephemeral_5m_input_tokens: minutes };
            assert_eq!(usage.usage.cache_creation, expected, "{name}");
        }
    }

    #[test]
    fn usage_is_complete_once_input_and_output_are_reported() {
        let read = |value: Value| ReportedUsage::from_json(&value);
        let start = || read(json!({"input_tokens": 9, "output_tokens": 1}));
        let table = [
            ("the usual", start(), read(json!({"output_tokens": 5})), (9, 5, true)),
            ("no report at the end", start(), ReportedUsage::default(), (9, 1, false)),
            (
                "all at the end",
                ReportedUsage::default(),
                read(json!({"input_tokens": 2, "output_tokens": 5})),
                (2, 5, true),
            ),
            (
                "input never reported",
                ReportedUsage::default(),
                read(json!({"output_tokens": 5})),
                (0, 5, false),
            ),
            ("invalid at the end", start(), read(json!({"output_tokens": -5})), (9, 1, false)),
        ];
        for (name, mut usage, later, expected) in table {
            usage.merge(&later);
            let Usage { input_tokens, output_tokens, .. } = usage.usage;
            assert_eq!((input_tokens, output_tokens, usage.is_complete()), expected, "{name}");
        }
        let mut invalid = read(json!({"input_tokens": -1, "output_tokens": -1}));
        invalid.merge(&start());
        assert!(!invalid.is_complete(), "an invalid count stays invalid");
    }
}
