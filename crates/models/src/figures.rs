//! Tokens as a provider tells them, and whether what it tells can be believed.
//!
//! Replies are billed by these figures, also those that broke off. A figure that is missing, negative or beyond all
//! sense counts as nought, and the bill is marked: its cost is unknown rather than nothing.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use whimbrel_wire::Usage;
use whimbrel_wire::content::{CacheCreation, ServerToolUse};

/// No reply has more tokens than this; a larger figure is a mistake.
const MOST: u64 = 1_000_000_000;

/// What has been told about the tokens of one attempt at a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The tokens, without figures that make no sense.
    pub usage: Usage,
    /// What is known of the tokens that were read.
    pub input: Word,
    /// What is known of the tokens that were written.
    pub output: Word,
}

/// How far a figure is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Word {
    /// Nothing was said.
    #[default]
    Silent,
    /// It was told.
    Told,
    /// What was said makes no sense.
    Nonsense,
}

/// Figures of our own making are all known.
impl From<Usage> for Figures {
    fn from(usage: Usage) -> Self {
        Self { usage, input: Word::Told, output: Word::Told }
    }
}

impl Figures {
    /// Reads the figures of the Messages API: whatever is there, as far as it makes sense.
    pub fn read(value: &Value) -> Self {
        let Some(fields) = value.as_object() else { return Self::default() };
        let (mut input, mut output) = (Count::new(), Count::new());
        let within = |name: &str| fields.get(name).and_then(Value::as_object);
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let (cached, served) = (within("cache_creation"), within("server_tool_use"));
        let usage = Usage {
            input_tokens: input.needed(fields, "input_tokens"),
            cache_creation_input_tokens: input.of(Some(fields), "cache_creation_input_tokens"),
            cache_read_input_tokens: input.of(Some(fields), "cache_read_input_tokens"),
            output_tokens: output.needed(fields, "output_tokens"),
            server_tool_use: ServerToolUse {
                web_search_requests: output.of(served, "web_search_requests"),
                web_fetch_requests: output.of(served, "web_fetch_requests"),
            },
            service_tier: text("service_tier").unwrap_or_default().to_owned(),
            cache_creation: CacheCreation {
                ephemeral_1h_input_tokens: input.of(cached, "ephemeral_1h_input_tokens"),
                ephemeral_5m_input_tokens: input.of(cached, "ephemeral_5m_input_tokens"),
            },
            inference_geo: text("inference_geo").map(Into::into),
            iterations: fields.get("iterations").filter(|value| !value.is_null()).cloned().map(Box::new),
            speed: text("speed").map(Into::into),
        };
        Self { usage, input: input.word, output: output.word }
    }

    /// The same as a reply begins with them: its output has hardly begun, so what is said of it is not the last word. If
    /// nothing follows, the cost is unknown.
    #[must_use]
    pub(crate) fn so_far(mut self) -> Self {
        if self.output == Word::Told {
            self.output = Word::Silent;
        }
        self
    }

    /// Takes later figures in: where they have any, they replace the earlier ones.
    pub fn absorb(&mut self, later: &Self) {
        absorb(&mut self.usage, &later.usage);
        self.input = match (self.input, later.input) {
            (Word::Nonsense, _) | (_, Word::Nonsense) => Word::Nonsense,
            (earlier, Word::Silent) => earlier,
            (_, Word::Told) => Word::Told,
        };
        // What had been written before is no word on what was written in the end.
        self.output = match (self.output, later.output) {
            (Word::Nonsense, _) => Word::Nonsense,
            (_, later) => later,
        };
    }

    /// Whether a price can be made of them.
    pub fn are_known(&self) -> bool {
        self.input == Word::Told && self.output == Word::Told
    }
}

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::read(&Value::deserialize(deserializer)?))
    }
}

/// Reads counts, and remembers whether they make sense.
pub(crate) struct Count {
    /// What has been learned so far.
    pub(crate) word: Word,
}

impl Count {
    pub(crate) fn new() -> Self {
        Self { word: Word::Silent }
    }

    /// A figure without which the others are worth nothing.
    pub(crate) fn needed(&mut self, fields: &Map<String, Value>, name: &str) -> u64 {
        let told = fields.get(name).is_some_and(|value| !value.is_null());
        if told && self.word == Word::Silent {
            self.word = Word::Told;
        }
        self.of(Some(fields), name)
    }

    /// A figure that may be missing.
    pub(crate) fn of(&mut self, fields: Option<&Map<String, Value>>, name: &str) -> u64 {
        let value = match fields.and_then(|fields| fields.get(name)) {
            None | Some(Value::Null) => return 0,
            Some(value) => value,
        };
        let whole = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
        match value.as_u64().or_else(whole).filter(|count| *count <= MOST) {
            Some(count) => count,
            None => {
                self.word = Word::Nonsense;
                0
            }
        }
    }
}

/// Later figures replace earlier ones where there are any.
pub(crate) fn absorb(usage: &mut Usage, later: &Usage) {
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
    usage.absorb_words(later);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_or_makes_no_sense_is_not_taken_for_nought() {
        use Word::{Nonsense, Silent, Told};
        let table = [
            ("all there", json!({"input_tokens": 3, "output_tokens": 4}), (3, 4), (Told, Told)),
            ("nought is a figure", json!({"input_tokens": 0, "output_tokens": 0}), (0, 0), (Told, Told)),
            (
                "null is no figure",
                json!({"input_tokens": 3, "output_tokens": null, "cache_read_input_tokens": null}),
                (3, 0),
                (Told, Silent),
            ),
            ("only what was written", json!({"output_tokens": 4}), (0, 4), (Silent, Told)),
            ("A36 nothing", json!({}), (0, 0), (Silent, Silent)),
            ("A36 null", Value::Null, (0, 0), (Silent, Silent)),
            ("A36 words", json!("many"), (0, 0), (Silent, Silent)),
            ("A36 negative", json!({"input_tokens": -3, "output_tokens": 4}), (0, 4), (Nonsense, Told)),
            ("A36 huge", json!({"input_tokens": 3, "output_tokens": 1e30}), (3, 0), (Told, Nonsense)),
            ("A36 a text", json!({"input_tokens": 3, "output_tokens": "x"}), (3, 0), (Told, Nonsense)),
            (
                "A36 the cache",
                json!({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": u64::MAX}),
                (3, 4),
                (Nonsense, Told),
            ),
            ("a fraction", json!({"input_tokens": 3.0, "output_tokens": 4.5}), (3, 4), (Told, Told)),
        ];
        for (name, value, tokens, words) in table {
            let Figures { usage, input, output } = Figures::read(&value);
            assert_eq!((usage.input_tokens, usage.output_tokens), tokens, "{name}");
            assert_eq!((input, output), words, "{name}");
        }
    }

    #[test]
    fn a_bill_is_known_when_both_sides_have_been_told_in_the_end() {
        let read = |value: Value| Figures::read(&value);
        let begun = || read(json!({"input_tokens": 9, "output_tokens": 1}));
        let table = [
            ("the usual", begun(), read(json!({"output_tokens": 5})), (9, 5, true)),
            ("no word at the end", begun(), Figures::default(), (9, 1, false)),
            (
                "all at the end",
                Figures::default(),
                read(json!({"input_tokens": 2, "output_tokens": 5})),
                (2, 5, true),
            ),
            (
                "never a word on the input",
                Figures::default(),
                read(json!({"output_tokens": 5})),
                (0, 5, false),
            ),
            ("nonsense at the end", begun(), read(json!({"output_tokens": -5})), (9, 1, false)),
        ];
        for (name, mut bill, later, expected) in table {
            bill.absorb(&later);
            let Usage { input_tokens, output_tokens, .. } = bill.usage;
            assert_eq!((input_tokens, output_tokens, bill.are_known()), expected, "{name}");
        }
        let mut spoiled = read(json!({"input_tokens": -1, "output_tokens": -1}));
        spoiled.absorb(&begun());
        assert!(!spoiled.are_known(), "what made no sense once is not mended");
    }
}
