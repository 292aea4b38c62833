//! Git repositories as sources of marketplaces and plugins. Pure.

/// What to check out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitRevision {
    /// Branch or tag; none for the default branch.
    pub reference: Option<String>,
    /// Full commit id; wins over `reference`.
    pub commit: Option<String>,
}

/// A repository at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    pub url: String,
    pub revision: GitRevision,
}

impl GitSource {
    /// Checks that git can only fetch from this source, and cannot be made to run something.
    pub fn new(url: &str, revision: GitRevision) -> Result<Self, String> {
        check_url(url)?;
        if let Some(reference) = &revision.reference {
            check_reference(reference)?;
        }
        if let Some(commit) = &revision.commit {
            check_commit(commit)?;
        }
        Ok(Self { url: url.into(), revision })
    }

    /// A repository on GitHub, `owner/repo`.
    pub fn github(repo: &str, revision: GitRevision) -> Result<Self, String> {
        if !is_github_repo(repo) {
            return Err(format!("{repo:?} is not a GitHub repository: write owner/repo"));
        }
        Self::new(&format!("https://github.com/{repo}.git"), revision)
    }
}

/// Returns whether a text has the form `owner/repo`.
pub fn is_github_repo(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && part.chars().all(is_allowed)
            && !part.contains("..")
    };
    text.split_once('/').is_some_and(|(owner, repo)| is_part(owner) && is_part(repo) && !owner.contains('.'))
}

/// Returns whether a text is an address such as `git@host:path`.
pub fn is_scp_address(text: &str) -> bool {
    let Some((user, rest)) = text.split_once('@') else { return false };
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let Some((host, path)) = rest.split_once(':') else { return false };
    is_word(user) && is_word(host) && !path.is_empty() && !path.starts_with([':', '-'])
}

/// Other forms could name a remote helper, which is a program, or a flag of ssh.
fn check_url(url: &str) -> Result<(), String> {
    let has_host = |scheme: &str| {
        url.strip_prefix(scheme)
            .is_some_and(|rest| rest.starts_with(|first: char| first != '-' && first != '/'))
    };
    let is_known = ["https://", "http://", "ssh://"].iter().any(|scheme| has_host(scheme))
        || url.strip_prefix("file://").is_some_and(|path| path.starts_with('/'))
        || is_scp_address(url);
    if is_known && !url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Ok(());
    }
    Err(format!("{url:?} is not a git URL: use https://, ssh://, file:// or git@host:path"))
}

fn check_reference(reference: &str) -> Result<(), String> {
    let is_allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+' | '@' | '#');
    let is_valid = reference.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && reference.chars().all(is_allowed)
        && !reference.contains("..")
        && !reference.contains("@{");
    if is_valid { Ok(()) } else { Err(format!("{reference:?} is not a branch or tag")) }
}

fn check_commit(commit: &str) -> Result<(), String> {
    let is_hex = commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex && matches!(commit.len(), 40 | 64) {
        return Ok(());
    }
    Err(format!("{commit:?} is not a full commit id in lower case"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_and_revisions_are_accepted() {
        for url in [
            "https://example.com/a.git",
            "http://127.0.0.1:80/a",
            "ssh://git@example.com/a.git",
            "git@example.com:a/b.git",
            "file:///srv/a",
        ] {
            assert!(GitSource::new(url, GitRevision::default()).is_ok(), "{url}");
        }
        for url in [
            "ext::sh -c id",
            "foo::https://x",
            "--upload-pack=x",
            "ssh://-oProxyCommand=x/a",
            "-x@host:a",
            "git@-host:a",
            "/srv/a",
            "a/b",
            "file://host/a",
            "https://a b",
            "https://",
            "",
        ] {
            assert!(GitSource::new(url, GitRevision::default()).is_err(), "{url}");
        }
        let with_reference = |text: &str| GitRevision { reference: Some(text.into()), commit: None };
        for (reference, expected) in [
            ("main", true),
            ("v1.0/x", true),
            ("--force", false),
            ("a..b", false),
            ("a b", false),
            ("", false),
        ] {
            let source = GitSource::new("https://x.test/a", with_reference(reference));
            assert_eq!(source.is_ok(), expected, "{reference}");
        }
        let with_commit = |text: &str| GitRevision { reference: None, commit: Some(text.into()) };
        for (commit, expected) in [("a".repeat(40), true), ("A".repeat(40), false), ("abc".into(), false)] {
            assert_eq!(
                GitSource::new("https://x.test/a", with_commit(&commit)).is_ok(),
                expected,
                "{commit}"
            );
        }
    }

    #[test]
    fn github_repositories_are_recognized() {
        for (text, expected) in [
            ("owner/repo", true),
            ("owner/repo.name", true),
            ("owner", false),
            ("a/b/c", false),
            ("../repo", false),
            ("owner/..", false),
            ("owner/*", false),
            ("example.com/team", false),
        ] {
            assert_eq!(is_github_repo(text), expected, "{text}");
        }
        let source = GitSource::github("a/b", GitRevision::default()).unwrap();
        assert_eq!(source.url, "https://github.com/a/b.git");
    }
}
