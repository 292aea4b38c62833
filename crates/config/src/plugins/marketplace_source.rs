//! Where a marketplace comes from: the `source` object in settings and records, and the argument of
//! `plugin marketplace add`. Pure.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use whimbrel_os::files::normalize_path;

use crate::plugins::git_source::{GitRevision, GitSource, is_github_repo, is_scp_address};
use crate::plugins::marketplace::MARKETPLACE_PATH;

/// Source of a marketplace.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketplaceSource {
    /// The object as written, with fields that this version does not know.
    fields: Map<String, Value>,
    location: MarketplaceLocation,
}

/// Where the files of a marketplace are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarketplaceLocation {
    /// A repository, and the marketplace file in it.
    Git { repository: GitSource, file: PathBuf },
    /// A directory of the user, used in place.
    Directory(PathBuf),
    /// A marketplace file of the user, used in place.
    File(PathBuf),
    /// A marketplace file on a web server.
    Url(String),
}

/// Names that other programs take for marketplaces of Anthropic. Only these repositories may have them.
const OFFICIAL_NAMES: &[&str] = &[
    "agent-skills",
    "anthropic-agent-skills",
    "anthropic-marketplace",
    "anthropic-plugin-directory",
    "anthropic-plugins",
    "claude-code-marketplace",
    "claude-code-plugins",
    "claude-community",
    "claude-for-financial-services",
    "claude-for-legal",
    "claude-plugin-directory",
    "claude-plugins-community",
    "claude-plugins-official",
    "claude-tag-plugins",
    "financial-services-plugins",
    "first-party-plugins",
    "healthcare",
    "knowledge-work-plugins",
    "life-sciences",
];

/// Names with another meaning after `@`.
const RESERVED_NAMES: &[&str] = &[
    "builtin",
    "cargo",
    "claude-plugin-test",
    "gh",
    "github",
    "inline",
    "npm",
    "pip",
    "skills-dir",
    "synced",
    "uv",
];

impl MarketplaceSource {
    /// Parses a `source` object. Relative paths start from `base`.
    pub fn parse(value: &Value, base: &Path) -> Result<Self, String> {
        let Value::Object(fields) = value else { return Err("`source` is not an object".into()) };
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let required = |key: &str| text(key).ok_or_else(|| format!("`{key}` is missing"));
        let revision = || GitRevision { reference: text("ref").map(str::to_owned), commit: None };
        let location = match required("source")? {
            "github" => MarketplaceLocation::Git {
                repository: GitSource::github(required("repo")?, revision())?,
                file: repository_file(text("path"))?,
            },
            "git" => MarketplaceLocation::Git {
                repository: GitSource::new(required("url")?, revision())?,
                file: repository_file(text("path"))?,
            },
            "directory" => MarketplaceLocation::Directory(normalize_path(&base.join(required("path")?))),
            "file" => MarketplaceLocation::File(normalize_path(&base.join(required("path")?))),
            "url" => MarketplaceLocation::Url(check_http_url(required("url")?, fields)?),
            other => {
                return Err(format!(
                    "the source type {other:?} is not supported: use github, git, url, directory or file"
                ));
            }
        };
        Ok(Self { fields: fields.clone(), location })
    }

    /// Parses the argument of `plugin marketplace add`. `is_dir` tells whether a path is a directory.
    pub fn parse_argument(
        text: &str,
        cwd: &Path,
        home: Option<&Path>,
        is_dir: impl Fn(&Path) -> bool,
    ) -> Result<Self, String> {
        Self::parse(&argument_to_value(text, cwd, home, is_dir)?, cwd)
    }

    pub fn location(&self) -> &MarketplaceLocation {
        &self.location
    }

    /// The object for records and settings; paths are absolute.
    pub fn to_value(&self) -> Value {
        let mut fields = self.fields.clone();
        if let MarketplaceLocation::Directory(path) | MarketplaceLocation::File(path) = &self.location {
            fields.insert("path".into(), path.display().to_string().into());
        }
        fields.into()
    }

    /// Returns whether both name the same files, whatever else they say.
    pub fn is_same_location(&self, other: &Self) -> bool {
        self.location == other.location
    }

    /// Type of the source, as in settings.
    pub fn type_name(&self) -> &str {
        self.fields.get("source").and_then(Value::as_str).unwrap_or_default()
    }

    /// What to show users: the repository, the path or the URL.
    pub fn describe(&self) -> String {
        let text = |key: &str| self.fields.get(key).and_then(Value::as_str);
        let shown = match &self.location {
            MarketplaceLocation::Git { repository, .. } => text("repo").unwrap_or(&repository.url).to_owned(),
            MarketplaceLocation::Directory(path) | MarketplaceLocation::File(path) => {
                path.display().to_string()
            }
            MarketplaceLocation::Url(url) => url.clone(),
        };
        match text("ref") {
            Some(reference) => format!("{shown} at {reference}"),
            None => shown,
        }
    }

    /// Checks that a marketplace from this source may have the name.
    pub fn check_marketplace_name(&self, name: &str) -> Result<(), String> {
        let lower = name.to_ascii_lowercase();
        if RESERVED_NAMES.contains(&lower.as_str()) || lower.starts_with("claudeai-") {
            return Err(format!(
                "the marketplace name {name} is reserved; its owner must choose another name"
            ));
        }
        let spelled = lower.trim_end_matches('.').replace('.', "-");
        if OFFICIAL_NAMES.contains(&spelled.as_str()) && !(spelled == name && self.is_anthropic_repository())
        {
            return Err(format!(
                "the marketplace name {name} is reserved for repositories of github.com/anthropics; its owner must \
                 choose another name"
            ));
        }
        Ok(())
    }

    fn is_anthropic_repository(&self) -> bool {
        let prefixes = [
            "https://github.com/anthropics/",
            "ssh://git@github.com/anthropics/",
            "git@github.com:anthropics/",
        ];
        match &self.location {
            MarketplaceLocation::Git { repository, .. } => {
                prefixes.iter().any(|prefix| repository.url.starts_with(prefix))
            }
            MarketplaceLocation::Directory(_)
            | MarketplaceLocation::File(_)
            | MarketplaceLocation::Url(_) => false,
        }
    }
}

/// The `source` object for an argument of the command line.
fn argument_to_value(
    text: &str,
    cwd: &Path,
    home: Option<&Path>,
    is_dir: impl Fn(&Path) -> bool,
) -> Result<Value, String> {
    if let Some(path) = local_path(text, cwd, home)? {
        let kind = match path.extension().is_some_and(|extension| extension == "json") && !is_dir(&path) {
            true => "file",
            false => "directory",
        };
        return Ok(json!({"source": kind, "path": path.display().to_string()}));
    }
    let (address, reference) = split_reference(text);
    let with_reference = |mut value: Value| {
        if let Some(reference) = reference {
            value["ref"] = reference.into();
        }
        value
    };
    if is_git_address(address) {
        return Ok(with_reference(json!({"source": "git", "url": complete_git_url(address)})));
    }
    if address.starts_with("https://") || address.starts_with("http://") {
        return Ok(json!({"source": "url", "url": text}));
    }
    let (repo, tag) = match reference {
        None => address.split_once('@').map_or((address, None), |(repo, tag)| (repo, Some(tag))),
        Some(_) => (address, reference),
    };
    if is_github_repo(repo) {
        let mut value = json!({"source": "github", "repo": repo});
        if let Some(tag) = tag {
            value["ref"] = tag.into();
        }
        return Ok(value);
    }
    Err(format!(
        "{text:?} is not a source of a marketplace: use owner/repo, a git URL, the URL of a marketplace.json, or ./path"
    ))
}

/// A path must look like one, so that it is not confused with `owner/repo`.
fn local_path(text: &str, cwd: &Path, home: Option<&Path>) -> Result<Option<PathBuf>, String> {
    if let Some(rest) = text.strip_prefix("~/") {
        let home = home.ok_or("the home directory is unknown; write the whole path")?;
        return Ok(Some(normalize_path(&home.join(rest))));
    }
    let is_path =
        matches!(text, "." | "..") || ["/", "./", "../"].iter().any(|prefix| text.starts_with(prefix));
    Ok(is_path.then(|| normalize_path(&cwd.join(text))))
}

fn split_reference(text: &str) -> (&str, Option<&str>) {
    text.split_once('#').map_or((text, None), |(address, reference)| (address, Some(reference)))
}

/// Returns whether an address is that of a repository rather than of a file.
fn is_git_address(address: &str) -> bool {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    let is_repository = address.ends_with(".git") || address.contains("/_git/") || is_forge_page(address);
    address.starts_with("ssh://")
        || address.starts_with("file://")
        || is_scp_address(address)
        || is_web && is_repository
}

fn is_forge_page(address: &str) -> bool {
    ["https://github.com/", "https://gitlab.com/"].iter().any(|prefix| {
        let path = address.strip_prefix(prefix).map(|path| path.trim_end_matches('/'));
        path.is_some_and(|path| {
            path.split('/').filter(|part| !part.is_empty()).count() >= 2 && !path.ends_with(".json")
        })
    })
}

fn complete_git_url(address: &str) -> String {
    match is_forge_page(address) && !address.ends_with(".git") {
        true => format!("{}.git", address.trim_end_matches('/')),
        false => address.to_owned(),
    }
}

fn repository_file(path: Option<&str>) -> Result<PathBuf, String> {
    let path = path.unwrap_or(MARKETPLACE_PATH);
    let is_outside = Path::new(path).is_absolute() || path.split('/').any(|part| part == "..");
    if is_outside || path.is_empty() {
        return Err(format!("`path`: {path:?} is not a path inside the repository"));
    }
    Ok(normalize_path(Path::new(path)))
}

fn check_http_url(url: &str, fields: &Map<String, Value>) -> Result<String, String> {
    if fields.contains_key("headersHelper") {
        return Err("`headersHelper` is not supported: use `headers`, or a git repository".into());
    }
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web { Ok(url.into()) } else { Err(format!("{url:?} is not an http:// or https:// URL")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_argument(text: &str) -> Result<Value, String> {
        let is_dir = |path: &Path| path.ends_with("dir.json");
        MarketplaceSource::parse_argument(text, Path::new("/code"), Some(Path::new("/home/ann")), is_dir)
            .map(|source| source.to_value())
    }

    #[test]
    fn arguments_become_source_objects() {
        let rows = [
            ("own/repo", json!({"source": "github", "repo": "own/repo"})),
            ("own/repo#v1", json!({"source": "github", "repo": "own/repo", "ref": "v1"})),
            ("own/repo@v1", json!({"source": "github", "repo": "own/repo", "ref": "v1"})),
            ("git@host:a/b.git#main", json!({"source": "git", "url": "git@host:a/b.git", "ref": "main"})),
            ("https://x.test/a.git", json!({"source": "git", "url": "https://x.test/a.git"})),
            ("https://x.test/p/_git/a", json!({"source": "git", "url": "https://x.test/p/_git/a"})),
            ("https://github.com/a/b", json!({"source": "git", "url": "https://github.com/a/b.git"})),
            ("https://gitlab.com/a/b/c/", json!({"source": "git", "url": "https://gitlab.com/a/b/c.git"})),
            ("file:///srv/a", json!({"source": "git", "url": "file:///srv/a"})),
            ("https://x.test/m.json", json!({"source": "url", "url": "https://x.test/m.json"})),
            ("./shop", json!({"source": "directory", "path": "/code/shop"})),
            (".", json!({"source": "directory", "path": "/code"})),
            ("../shop", json!({"source": "directory", "path": "/shop"})),
            ("~/shop", json!({"source": "directory", "path": "/home/ann/shop"})),
            ("/a/m.json", json!({"source": "file", "path": "/a/m.json"})),
            ("/a/dir.json", json!({"source": "directory", "path": "/a/dir.json"})),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_argument(text), Ok(expected), "{text}");
        }
        for text in ["shop", "example.com/team/x", "own/*", "ext::sh", "--x", "", "own/repo#--x"] {
            assert!(parse_argument(text).is_err(), "{text}");
        }
    }

    #[test]
    fn source_objects_are_checked() {
        let parse = |value: Value| MarketplaceSource::parse(&value, Path::new("/code"));
        let source = parse(json!({"source": "directory", "path": "shop", "note": 1})).unwrap();
        assert_eq!(source.location(), &MarketplaceLocation::Directory("/code/shop".into()));
        assert_eq!(source.to_value(), json!({"source": "directory", "path": "/code/shop", "note": 1}));
        let source = parse(json!({"source": "github", "repo": "a/b", "path": "x/m.json"})).unwrap();
        assert!(
            matches!(source.location(), MarketplaceLocation::Git { file, .. } if file == Path::new("x/m.json"))
        );
        for (value, cause) in [
            (json!(5), "not an object"),
            (json!({}), "`source` is missing"),
            (json!({"source": "github"}), "`repo` is missing"),
            (json!({"source": "git", "url": "ext::x"}), "not a git URL"),
            (json!({"source": "git", "url": "file:///a", "path": "../x"}), "inside the repository"),
            (json!({"source": "url", "url": "ftp://x"}), "http"),
            (json!({"source": "url", "url": "https://x", "headersHelper": "x"}), "headersHelper"),
            (json!({"source": "npm", "package": "x"}), "\"npm\" is not supported"),
        ] {
            let error = parse(value.clone()).unwrap_err();
            assert!(error.contains(cause), "{value}: {error}");
        }
    }

    #[test]
    fn reserved_names_need_their_repository() {
        let check = |source: Value, name: &str| {
            MarketplaceSource::parse(&source, Path::new("/")).unwrap().check_marketplace_name(name).is_ok()
        };
        let official = json!({"source": "github", "repo": "anthropics/claude-plugins-official"});
        let other = json!({"source": "github", "repo": "mallory/x"});
        let local = json!({"source": "directory", "path": "/x"});
        for (source, name, expected) in [
            (&official, "claude-plugins-official", true),
            (&official, "claude.plugins.official", false),
            (&other, "claude-plugins-official", false),
            (&local, "claude-plugins-official", false),
            (&local, "claude.plugins-official.", false),
            (&local, "inline", false),
            (&local, "NPM", false),
            (&local, "claudeai-x", false),
            (&local, "my-shop", true),
        ] {
            assert_eq!(check(source.clone(), name), expected, "{source} {name}");
        }
    }
}
