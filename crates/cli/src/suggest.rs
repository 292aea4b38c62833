//! Suggestions for misspelled names. Pure.

/// Finds the name that is most similar to the given one. It must be more similar than `min_similarity` (0 to 1).
pub(crate) fn most_similar<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str>,
    min_similarity: f64,
) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::jaro_winkler(given, name), name));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(similarity, _)| *similarity > min_similarity).map(|(_, name)| name)
}
