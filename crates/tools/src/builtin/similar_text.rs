//! Search for the most similar file name or line, for hints to the model. Pure.

/// Minimum similarity (Jaro, 0 to 1) of a match.
const MIN_SIMILARITY: f64 = 0.8;

/// Finds the most similar text, if it is similar enough.
pub(super) fn find_most_similar<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|text| (strsim::jaro(wanted, text), text));
    let similar = scored.filter(|(score, _)| *score >= MIN_SIMILARITY);
    similar.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_similar_name_is_found_but_not_a_distant_one() {
        let names = ["lib.rs", "main.rs", "Cargo.toml"];
        assert_eq!(find_most_similar("mian.rs", names), Some("main.rs"));
        assert_eq!(find_most_similar("whimbrel", names), None);
    }
}
