//! Patterns of paths. Pure.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::RuleError;

/// Compiles an absolute pattern with a literal start.
pub(crate) fn compile(pattern: &str) -> Result<GlobMatcher, RuleError> {
    let invalid = |reason: String| RuleError::InvalidPattern { pattern: pattern.to_owned(), reason };
    if !pattern.starts_with('/') || literal_start(pattern) == Path::new("/") {
        return Err(invalid("it has no literal start. Begin it with an absolute folder".into()));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| invalid(error.to_string()))
}

/// Returns the folders before the first component that is not literal.
pub(crate) fn literal_start(pattern: &str) -> PathBuf {
    let is_literal = |component: &&str| !component.contains(['*', '?', '[', '{', '\\']);
    let start: Vec<_> = pattern.split('/').take_while(is_literal).collect();
    PathBuf::from(format!("/{}", start.join("/").trim_start_matches('/')))
}
